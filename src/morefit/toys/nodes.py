"""Toys whose integrals for each event have too few nodes where their fits ended: fitted again with more of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.likelihood.coarse import coarse_rows
from morefit.likelihood.wider import is_wrong, resolved
from morefit.minimise.batch import FAILED, Fits

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble


def fit_with_finer_nodes(toys: Toys, fits: Fits, ensemble: Ensemble, known: Flags) -> None:
    """Fit toys again whose integrals are wrong where they ended, of those whose end is known; what stays wrong failed.

    Each is fitted as ``mf.fit`` does, with the parameters that an ensemble fits.
    """
    for toy in suspects(toys, fits, ensemble, known).tolist():
        values = values_of(ensemble, fits.values[toy])
        if not is_wrong(toys.likelihood(toy, ensemble.fitted), values):
            continue
        here = np.array([toy])
        fits.valid[here], fits.method[here], fits.edm[here] = False, FAILED, np.nan
        fitted = resolved(ensemble.fitted, values)
        if fitted is ensemble.fitted:  # there are no nodes that are enough
            continue
        finer, one = replace(ensemble, fitted=fitted, start=values), toys.one(toy)
        again = one.first_fit(finer)
        one.fit_again(again, again.failed, finer)
        ended = values_of(ensemble, again.values[0])
        if again.valid[0] and not is_wrong(toys.likelihood(toy, fitted), ended):
            fits.take_all(here, again)


def suspects(toys: Toys, fits: Fits, ensemble: Ensemble, known: Flags) -> Integers:
    """Return the fits where an integral for each event may be wrong."""
    wrong = np.zeros(len(toys), np.bool_)
    for k, part in enumerate(ensemble.fitted.parts):
        own = np.flatnonzero(known & (toys.sizes[:, k] > 0))
        if part.has_node_sums and part.source is not None and len(own):
            values = values_of(ensemble, fits.values[own].T)
            wrong[own] |= coarse_rows(part.source, values, toys.events_to_check(own, k, part))
    return np.flatnonzero(wrong)


def unresolved_bins(ensemble: Ensemble, floating: Array) -> Flags:
    """Return at which rows of floating parameters integrals over bins are wrong."""
    values, wrong = values_of(ensemble, floating.T), np.zeros(len(floating), np.bool_)
    for part in ensemble.fitted.parts:
        wrong |= part.unresolved_rows(values)
    return wrong


def values_of(ensemble: Ensemble, floating: Array) -> dict[str, Any]:
    """Return all parameters by name; those that float are numbers, or columns of numbers."""
    return {**ensemble.start, **dict(zip(ensemble.floating, floating, strict=True))}
