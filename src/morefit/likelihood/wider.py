"""Likelihoods with formulas for other limits and start values of parameters than those that chose their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.likelihood.coarse import coarse_rows, some_events
from morefit.likelihood.evaluation import Evaluation
from morefit.likelihood.parameters import limits_of
from morefit.model import Pdf
from morefit.model.replace import (
    Changed,
    Limits,
    Replacement,
    around,
    depends_on_limits,
    is_unresolved,
    moved_parameters,
    wider_parameters,
)

if TYPE_CHECKING:
    from morefit.likelihood.base import Term
    from morefit.likelihood.unbinned import Likelihood

MAX_REMADE = 4  # likelihoods that one remembers


def for_limits(likelihood: Term, limits: Limits) -> Term:
    """Return a likelihood with formulas that hold within limits: itself unless these are wider than its own, which matter."""
    wider = wider_parameters(likelihood.all_parameters, limits)
    return remade(likelihood, wider, depends_on_limits) if wider else likelihood


def for_points(likelihood: Term, points: Array) -> Term:
    """Return a likelihood with formulas that hold at rows of all parameters: itself if these lie within limits."""
    low, high = limits_of(likelihood.all_parameters)
    if np.all((points >= low) & (points <= high)):
        return likelihood
    ends = zip(points.min(axis=0).tolist(), points.max(axis=0).tolist(), strict=True)
    each = zip(likelihood.all_parameters, ends, strict=True)
    outside = {p.name: pair for p, pair in each if not p.low <= pair[0] <= pair[1] <= p.high}
    return for_limits(likelihood, {name: around(*pair) for name, pair in outside.items()})


def for_values(likelihood: Term, values: Mapping[str, float]) -> Term:
    """Return a likelihood whose integrals for each event are accurate at values of all parameters: itself if they are."""
    moved = moved_parameters(likelihood.all_parameters, values)
    return remade(likelihood, moved, is_unresolved) if moved else likelihood


def evaluated(likelihood: Term, points: Array, order: int) -> Evaluation:
    """Evaluate a likelihood at rows of all parameters, with formulas and integrals for each event that hold there."""
    likelihood = for_points(likelihood, points)
    names = [p.name for p in likelihood.all_parameters]
    coarse = np.zeros(len(points), np.bool_)
    for part in likelihood.parts:
        if part.has_node_sums and part.events:
            events = some_events(part.data.sample.columns, part.model)
            coarse |= coarse_rows(part.model, dict(zip(names, points.T, strict=True)), events)
    if not coarse.any():
        return likelihood.evaluate_full(points, order)
    each = [
        resolved(likelihood, dict(zip(names, row, strict=True))) if wrong else likelihood
        for row, wrong in zip(points.tolist(), coarse, strict=True)
    ]
    rows = [one.evaluate_full(points[k : k + 1], order) for k, one in enumerate(each)]
    return Evaluation(
        value=np.concatenate([row.value for row in rows]),
        gradient=np.concatenate([row.gradient for row in rows]),
        hessian=np.concatenate([row.hessian for row in rows]),
        bad=np.concatenate([row.bad for row in rows]),
    )


def resolved(likelihood: Term, values: Mapping[str, float]) -> Term:
    """Return what ``for_values`` does, or a likelihood itself where no number of nodes is enough, which fits find."""
    try:
        return for_values(likelihood, values)
    except ModelError:
        return likelihood


def remade(likelihood: Term, others: Changed, matter: Callable[[Pdf, Changed], bool]) -> Term:
    """Return a likelihood with others in the places of some parameters, if they matter and all parts can have them."""
    sources = [part.source for part in likelihood.parts]
    if not any(matter(source, others) for source in sources if source is not None):
        return likelihood
    if any(source is None for source in sources):  # one parameter cannot have two pairs of limits
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
