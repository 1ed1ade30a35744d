"""Toys whose integrals for each event or over bins have too few points where their fits ended: fitted again with more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.likelihood.coarse import coarse_rows
from morefit.likelihood.wider import beyond, half_way, is_wrong, resolved
from morefit.minimise.batch import FAILED, Fits

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble

MAX_KNOWN = 8  # ensembles with other nodes that one remembers


def fit_with_finer_nodes(toys: Toys, fits: Fits, ensemble: Ensemble, known: Flags) -> None:
    """Fit toys again whose integrals are wrong where they ended, of those that failed and whose end is known; what stays wrong failed.

    Those that ended alike are fitted together. What is left is fitted one by one, as ``mf.fit`` does, with the parameters that
    an ensemble fits.
    """
    wrong = [
        toy
        for toy in suspects(toys, fits, ensemble, known | (fits.method == FAILED)).tolist()
        if is_wrong(toys.likelihood(toy, ensemble.fitted), values_of(ensemble, fits.values[toy]))
    ]
    for toy in fit_together(toys, fits, ensemble, wrong):
        end = values_of(ensemble, fits.values[toy])
        tries = [(end, end), (half_way(ensemble.start, end), ensemble.start)]
        if not known[toy]:
            tries.reverse()
        fits.valid[toy], fits.method[toy], fits.edm[toy] = False, FAILED, np.nan
        for values, start in tries:
            again = fit_one(toys, toy, ensemble, values, start)
            if again is not None:
                fits.take_all(np.array([toy]), again)
                break


def fit_together(toys: Toys, fits: Fits, ensemble: Ensemble, wrong: Sequence[int]) -> list[int]:
    """Fit toys again that ended alike, with nodes that serve there; return those that are not valid, or wrong where they end now."""
    groups: dict[Ensemble | None, list[int]] = {}
    for toy in wrong:
        shared = with_shared_nodes(ensemble, values_of(ensemble, fits.values[toy]))
        groups.setdefault(shared, []).append(toy)
    left = groups.pop(None, [])
    for finer, group in groups.items():
        assert finer is not None
        some = np.array(group)
        again = toys.gathered(some).first_fit(finer)
        right = np.array([is_right(toys, toy, finer, again, k) for k, toy in enumerate(group)])
        fits.take_all(some[right], again.rows(np.flatnonzero(right)))
        left += some[~right].tolist()
    return sorted(left)


def fit_one(
    toys: Toys, toy: int, ensemble: Ensemble, values: Mapping[str, float], start: Mapping[str, float]
) -> Fits | None:
    """Fit one toy from a start with nodes for some values; None where it is not valid, or where these are not enough."""
    finer, one = with_nodes_for(ensemble, values, start), toys.one(toy)
    if finer is None:
        return None
    again = one.first_fit(finer)
    one.fit_again(again, again.failed, finer)
    return again if is_right(toys, toy, finer, again, 0) else None


def is_right(toys: Toys, toy: int, finer: Ensemble, fits: Fits, row: int) -> bool:
    """Return whether a toy that was fitted again has a minimum, and nodes that are enough where it ended."""
    end = values_of(finer, fits.values[row])
    return bool(fits.valid[row]) and not is_wrong(toys.likelihood(toy, finer.fitted), end)


def with_nodes_for(
    ensemble: Ensemble, values: Mapping[str, float], start: Mapping[str, float]
) -> Ensemble | None:
    """Return an ensemble whose integrals for each event and over bins have nodes for some values; None if these are its own."""
    fitted = resolved(ensemble.fitted, values)
    if fitted is ensemble.fitted:
        return None
    other = replace(ensemble, fitted=fitted, start=start)
    # not with those for where it starts
    other.fitted = fitted.with_parts([part.replaced(backend=ensemble.backend) for part in fitted.parts])
    return other


def with_shared_nodes(ensemble: Ensemble, end: Mapping[str, float]) -> Ensemble | None:
    """Return one with nodes that serve where fits end and what is alike, which is made once; None if there is none."""
    values, known = beyond(ensemble.fitted, ensemble.start, end), ensemble.with_other_nodes
    key = tuple(values.items())
    if key not in known:
        if len(known) == MAX_KNOWN:
            known.clear()
        known[key] = with_nodes_for(ensemble, values, ensemble.start)
    return known[key]


def suspects(toys: Toys, fits: Fits, ensemble: Ensemble, known: Flags) -> Integers:
    """Return the fits where an integral for each event, or over bins, may be wrong."""
    wrong = np.zeros(len(toys), np.bool_)
    for k, part in enumerate(ensemble.fitted.parts):
        source = part.source if part.has_node_sums else None
        if source is None and not part.has_unjudged_integrals:
            continue
        own = np.flatnonzero(known & (toys.sizes[:, k] > 0))
        if not len(own):
            continue
        values = values_of(ensemble, fits.values[own].T)
        wrong[own] |= part.unresolved_rows(values)
        if source is not None:
            wrong[own] |= coarse_rows(source, values, toys.events_to_check(own, k, part), part.settings)
    return np.flatnonzero(wrong)


def values_of(ensemble: Ensemble, floating: Array) -> dict[str, Any]:
    """Return all parameters by name; those that float are numbers, or columns of numbers."""
    return {**ensemble.start, **dict(zip(ensemble.floating, floating, strict=True))}
