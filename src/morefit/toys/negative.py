"""Toys that have no fit because something is negative: their density between events, or the sum of their weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Flags, Integers
from morefit.data.weights import observables_of
from morefit.expr import ONE, Expr
from morefit.kernel.sums import Request
from morefit.likelihood import Likelihood
from morefit.minimise.batch import Fits
from morefit.pipeline import Settings, compile_sums
from morefit.toys.results import HOW
from morefit.toys.text import LOOKED_AT
from morefit.toys.whole_fits import by_events

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble

NEGATIVE = HOW.index("negative density")


def how_obtained(ensemble: Ensemble, fits: Fits, first: int = 0) -> NDArray[np.uint8]:
    """Return how toys from number ``first`` on were obtained; the first of a study are looked at between their events."""
    count = min(LOOKED_AT - first, len(fits.nll))
    if count <= 0:
        return fits.method
    columns = fits.values[:count].T
    values = {**ensemble.start, **dict(zip(ensemble.floating, columns, strict=True))}

    def in_a_part(of: Callable[[Likelihood], Flags]) -> Flags:
        """Return for which toys something is so in a part of the likelihood."""
        rows = [np.broadcast_to(of(part), count) for part in ensemble.fitted.parts]
        return np.asarray(np.any(rows, axis=0) & fits.valid[:count], np.bool_)

    below = in_a_part(lambda part: part.negative_rows(values))
    if not below.any():
        return fits.method
    how = fits.method.copy()
    how[:count][below] = NEGATIVE
    return how


@lru_cache(maxsize=64)
def may_be_negative(weight: Expr) -> bool:
    """Return whether a formula of weights is negative somewhere, looked at on a grid."""
    from morefit.model.acceptance import MAX_OBSERVABLES, values_on_grid  # for weights

    if len(observables_of(weight)) > MAX_OBSERVABLES:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        heights, _ = values_on_grid(weight, {})
    return not heights.min() >= 0


def lost_toys(toys: Toys) -> Integers:
    """Return the toys that have a part whose weights add up to less than zero; their events are drawn again for it."""
    ensemble = toys.ensemble
    negative = [k for k, w in enumerate(ensemble.formulas) if w is not None and may_be_negative(w)]
    lost = np.zeros(len(toys), np.bool_)
    if negative:
        from morefit.toys.batch import Toys

        count = compile_sums(Request(ONE, (), 0, weighted=True), (), Settings(ensemble.backend))
        for some in by_events(np.arange(len(toys)), toys.events):
            own = Toys(ensemble, toys.first + int(some[0]), toys.sizes[some])
            sets = np.arange(len(some))
            for k in negative:
                sums = own.data[k].bind(count, sets)(np.empty((len(some), 0)))[:, 0]
                lost[some] |= ~(sums >= 0)
    return np.flatnonzero(lost)
