"""Toys whose integrals for each event have too few nodes where their fits ended: fitted again with more of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.errors import ModelError
from morefit.likelihood import Term
from morefit.likelihood.coarse import coarse_rows
from morefit.likelihood.event_sums import NLL_ERROR
from morefit.likelihood.wider import for_values
from morefit.minimise.batch import FAILED, Fits

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble


def fit_with_finer_nodes(toys: Toys, fits: Fits) -> None:
    """Fit toys again whose integrals are wrong where they ended, each as ``mf.fit`` does; what stays wrong failed."""
    ensemble = toys.ensemble
    for toy in suspects(toys, fits).tolist():
        if not is_wrong(toys, toy, ensemble.fitted, fits.values[toy]):
            continue
        here = np.array([toy])
        fits.valid[here], fits.method[here] = False, FAILED
        try:
            fitted = for_values(ensemble.fitted, values_of(ensemble, fits.values[toy]))
        except ModelError:  # there are no nodes that are enough
            continue
        if fitted is ensemble.fitted:
            continue
        finer, one = replace(ensemble, fitted=fitted), toys.one(toy)
        again = one.first_fit(finer)
        one.fit_again(again, again.failed, finer)
        if again.valid[0] and not is_wrong(toys, toy, fitted, again.values[0]):
            fits.take_all(here, again)


def suspects(toys: Toys, fits: Fits) -> Integers:
    """Return the valid fits where an integral for each event may be wrong."""
    ensemble, valid = toys.ensemble, np.flatnonzero(fits.valid & (toys.events > 0))
    wrong, values = np.zeros(len(valid), np.bool_), values_of(ensemble, fits.values[valid].T)
    for k, part in enumerate(ensemble.fitted.parts if len(valid) else ()):
        if part.has_node_sums and part.source is not None and toys.sizes[valid, k].all():
            wrong |= coarse_rows(part.source, values, toys.events_to_check(valid, k, part), part.settings)
    return valid[wrong]


def values_of(ensemble: Ensemble, floating: Array) -> dict[str, Any]:
    """Return all parameters by name; those that float are numbers, or columns of numbers."""
    return {**ensemble.start, **dict(zip(ensemble.floating, floating, strict=True))}


def is_wrong(toys: Toys, toy: int, fitted: Term, values: Array) -> bool:
    """Return whether the nll of a toy is wrong at fitted values, by more than ``mf.fit`` allows."""
    own = toys.likelihood(toy, fitted)
    point = dict(zip(toys.ensemble.floating, values.tolist(), strict=True))
    return not own.entries * own.integral_error(point) <= NLL_ERROR
