"""Likelihoods with formulas for other limits and start values of parameters than those that chose their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from math import ceil, floor, inf, log
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array, Flags
from morefit.errors import ModelError
from morefit.likelihood.coarse import NLL_ERROR, coarse_rows
from morefit.likelihood.evaluation import Evaluation
from morefit.likelihood.parameters import limits_of
from morefit.model.replace import (
    Changed,
    Limits,
    Replacement,
    around,
    moved_parameters,
    wider_parameters,
)

if TYPE_CHECKING:
    from morefit.likelihood.base import Term
    from morefit.likelihood.unbinned import Likelihood

STEP = 3.0  # of values between two points
FAR = 0.5  # of a step: what is closer to the start has its nodes
INACCURATE = "nll: its integrals over bins or for each event are not accurate, whatever number of points is tried, at {}"
MAX_REMADE = 4  # likelihoods that one remembers


def for_limits(likelihood: Term, limits: Limits) -> Term:
    """Return a likelihood with formulas that hold within limits: itself unless these are wider than its own, which matter."""
    wider = wider_parameters(likelihood.all_parameters, limits)
    return remade(likelihood, wider, lambda part: part.depends_on_limits(wider)) if wider else likelihood


def for_points(likelihood: Term, points: Array) -> Term:
    """Return a likelihood with formulas that hold at rows of all parameters: itself if these lie within limits."""
    low, high = limits_of(likelihood.all_parameters)
    if ((points >= low) & (points <= high)).all():
        return likelihood
    ends = zip(points.min(axis=0).tolist(), points.max(axis=0).tolist(), strict=True)
    each = zip(likelihood.all_parameters, ends, strict=True)
    outside = {p.name: pair for p, pair in each if not p.low <= pair[0] <= pair[1] <= p.high}
    return for_limits(likelihood, {name: around(*pair) for name, pair in outside.items()})


def for_values(likelihood: Term, values: Mapping[str, float]) -> Term:
    """Return a likelihood whose integrals for each event and over bins are accurate at values of all parameters: itself if they are."""
    moved = moved_parameters(likelihood.all_parameters, values)
    return remade(likelihood, moved, lambda part: part.is_unresolved(moved, values)) if moved else likelihood


def evaluated(likelihood: Term, points: Array, order: int) -> Evaluation:
    """Evaluate a likelihood at rows of all parameters, with formulas and integrals for each event that hold there."""
    each = [one.evaluate_full(rows, order) for one, rows in accurate(likelihood, points)]
    if len(each) == 1:
        return each[0]
    return Evaluation(
        value=np.concatenate([some.value for some in each]),
        gradient=np.concatenate([some.gradient for some in each]),
        hessian=np.concatenate([some.hessian for some in each]),
        bad=np.concatenate([some.bad for some in each]),
    )


def accurate(likelihood: Term, points: Array) -> Iterator[tuple[Term, Array]]:
    """Go through rows of all parameters with likelihoods whose formulas, integrals for each event and over bins hold there.

    That is one for all rows, unless nodes are too few for some, as a few events or halves of bins show.
    """
    likelihood = for_points(likelihood, points)
    coarse = unresolved_points(likelihood, points)
    if not coarse.any():
        yield likelihood, points
        return
    names = [p.name for p in likelihood.all_parameters]
    for k, wrong in enumerate(coarse.tolist()):
        values, own = dict(zip(names, points[k].tolist(), strict=True)), likelihood
        if wrong:
            own = resolved(likelihood, values)
            if own is likelihood and is_wrong(own, values):
                there = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
                warnings.warn(INACCURATE.format(there), UserWarning, stacklevel=4)
        yield own, points[k : k + 1]


def unresolved_points(likelihood: Term, points: Array) -> Flags:
    """Return at which rows of all parameters integrals for each event of the data, or over bins, may have too few nodes."""
    values = dict(zip((p.name for p in likelihood.all_parameters), points.T, strict=True))
    wrong = np.zeros(len(points), np.bool_)
    for part in likelihood.parts:
        if part.has_node_sums and part.source is not None and part.events:
            wrong |= coarse_rows(part.source, values, part.events_to_check(), part.settings)
        wrong |= part.unresolved_rows(values)
    return wrong


def is_wrong(likelihood: Term, values: Mapping[str, float]) -> bool:
    """Return whether integrals make an nll wrong at values of all parameters, by more than ``mf.fit`` allows."""
    point = {p.name: values[p.name] for p in likelihood.parameters}
    return not likelihood.entries * likelihood.integral_error(point) <= NLL_ERROR


def resolved(likelihood: Term, values: Mapping[str, float]) -> Term:
    """Return what ``for_values`` does, or a likelihood itself where no number of nodes is enough, which fits find."""
    try:
        return for_values(likelihood, values)
    except ModelError:
        return likelihood


def half_way(start: Mapping[str, float], end: Mapping[str, float]) -> dict[str, float]:
    """Return values between two points: what has become many times as large or as small, by powers of three; the rest as at the start.

    Where integrals lack nodes a fit may be led astray, to where no nodes are enough; others serve on the way, the same for
    all fits that are led there.
    """
    ratios = {name: end[name] / start[name] if start[name] else 0.0 for name in end}
    powers = {name: round(log(ratio, STEP) / 2) if ratio > 0 else 0 for name, ratio in ratios.items()}
    return {name: start[name] * STEP**power for name, power in powers.items()}


def beyond(likelihood: Term, start: Mapping[str, float], end: Mapping[str, float]) -> dict[str, float]:
    """Return values from the start, but for what became many times as large or as small: the next power of three farther, within limits.

    Many ends share them, and so the nodes that they need.
    """
    values = dict(start)
    for p in likelihood.all_parameters:
        ratio = end[p.name] / start[p.name] if start[p.name] else 0.0
        power = log(ratio, STEP) if 0 < ratio < inf else 0.0
        if abs(power) > FAR:
            farther = start[p.name] * STEP ** (floor(power) if power < 0 else ceil(power))
            values[p.name] = min(max(farther, p.low), p.high)
    return values


def remade(likelihood: Term, others: Changed, matter: Callable[[Likelihood], bool]) -> Term:
    """Return a likelihood with others in the places of some parameters, if they matter to a part and all parts can have them."""
    if not any(map(matter, likelihood.parts)):
        return likelihood
    if any(part.source is None for part in likelihood.parts):  # one parameter cannot have two pairs of limits
        return likelihood
    known = likelihood.remade
    if others not in known:
        change = Replacement(others)
        if len(known) == MAX_REMADE:
            known.clear()
        known[others] = likelihood.with_parts([changed(part, change) for part in likelihood.parts])
    return known[others]


def changed(part: Likelihood, change: Replacement) -> Likelihood:
    """Return a likelihood with other parameters in its model and its constraints."""
    other = object.__new__(type(part))
    constraints = tuple(one.changed(change) for one in part.constraints)
    other.set_up(
        *part.changed_model(change), constraints, part.settings, part.fixed_names, weight=part.weight
    )
    return other
