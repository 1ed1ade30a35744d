"""Valleys beside a minimum: kinks at events make many, and that in which a fit ended need not be the lowest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.minimise.check import Verdict, limits_of
from morefit.minimise.newton_program import RIPPLE
from morefit.minimise.objective import Objective

SCANNED = 3.0  # errors of a parameter, to both sides
PLACES = 60  # along each


def lowest_beside(objective: Objective, verdict: Verdict) -> Array | None:
    """Return the lowest of some places along each parameter, if it is lower than the minimum by more than a ripple."""
    names, value = objective.problem.floating, verdict.last.value[0]
    errors = np.sqrt(np.diagonal(verdict.covariance(names)))
    moves = [
        error * one * part
        for error, one in zip(errors, np.eye(len(names)), strict=True)
        for part in np.linspace(-SCANNED, SCANNED, PLACES)
        if np.isfinite(error)
    ]
    points = np.clip(verdict.values + np.array(moves).reshape(-1, len(names)), *limits_of(objective).T)
    try:
        there = objective.likelihood.evaluate_full(objective.problem.full_rows(points), 0)
    except ModelError:  # no integral at one of them
        return None
    values = np.where(there.bad == 0, there.value, np.inf)
    best = int(np.argmin(values)) if len(points) else 0
    return points[best] if len(points) and values[best] < value - RIPPLE else None


def started_at(objective: Objective, place: Array) -> Objective:
    """Return the same objective with another start; calls are counted together."""
    problem = objective.problem
    values = dict(problem.values) | dict(zip(problem.floating, place.tolist(), strict=True))
    return Objective(
        objective.likelihood, replace(problem, values=values), objective.by_scores, objective.calls
    )


def in_words(objective: Objective, verdict: Verdict, place: Array) -> str:
    """Describe a place that is lower than the minimum."""
    k = int(np.argmax(np.abs(place - verdict.values)))
    lower = verdict.last.value[0] - objective.at(place, 0).value[0]
    return (
        f"this is a local minimum: the nll is lower by {lower:.2g} at {objective.problem.floating[k]} ="
        f" {place[k]:.6g}, and has kinks at events between; scan it, or fit a density without them"
    )
