"""Toys whose integrals for each event are polynomials of columns: which of them, and whether they hold where fits ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Flags
from morefit.likelihood import Likelihood
from morefit.likelihood.accuracy import node_sums
from morefit.likelihood.parameters import symbols_of
from morefit.likelihood.smooth_sums import rough_rows, smooth_sums
from morefit.minimise.batch import Fits
from morefit.model.integrate.smooth import SmoothSum
from morefit.toys.on_nodes import part_values

if TYPE_CHECKING:
    from morefit.toys.ensemble import Ensemble


def smooth_in(ensemble: Ensemble, part: Likelihood, drawn: Likelihood) -> tuple[SmoothSum, ...]:
    """Return the integrals for each event of a part of several columns that polynomials of some of them stand for."""
    if not ensemble.polynomials or ensemble.on_nodes or part.slow is None or len(part.model.observables) == 1:
        return ()
    start = ensemble.start
    rows = [{p.name: p.start for p in part.all_parameters}, start, {**start, **ensemble.truth}]
    ranges = column_ranges(ensemble, part, drawn)
    return smooth_sums(node_sums(part.model), symbols_of(part.parameters), ranges, rows)


def column_ranges(ensemble: Ensemble, part: Likelihood, drawn: Likelihood) -> dict[str, tuple[float, float]]:
    """Return between which values the columns of a part lie in all toys."""
    ranges = {o.name: (o.low, o.high) for o in part.model.observables}
    for o in drawn.model.given if ensemble.has_rows and drawn.events else ():
        ranges[o.name] = (float(drawn.data[o.name].min()), float(drawn.data[o.name].max()))
    return ranges


def are_rough(fits: Fits, ensemble: Ensemble) -> Flags:
    """Return which fits ended where polynomials are not accurate."""
    rough = np.zeros(len(fits.values), np.bool_)
    parts, each = ensemble.fitted.parts, part_values(fits.values, ensemble)
    for part, full, smooth in zip(parts, each, ensemble.smooth, strict=True):
        rough |= rough_rows(smooth, symbols_of(part.all_parameters), full, part.settings)
    return rough
