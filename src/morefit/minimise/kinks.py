"""Minima of densities with kinks: each event makes one in the likelihood, with jumps of its slopes and lower valleys beside."""

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
# of errors, in which a lower value beside a kink would show
STEPS_ASIDE = tuple(sign * size for size in (1e-4, 1e-3, 1e-2, 0.1, 0.3) for sign in (-1, 1))
DIRECTIONS = 16  # of such steps, besides those of the parameters


@np.errstate(invalid="ignore")
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
    if not moves:  # no parameter has an error
        return None
    points = np.clip(verdict.values + np.array(moves), *limits_of(objective).T)
    try:
        there = objective.likelihood.evaluate_full(objective.problem.full_rows(points), 0)
    except ModelError:  # no integral at one of them
        return None
    values = np.where((there.bad == 0) & np.isfinite(there.value), there.value, np.inf)
    best = int(np.argmin(values))
    return points[best] if values[best] < value - RIPPLE else None


@np.errstate(invalid="ignore")
def at_kink(objective: Objective, verdict: Verdict) -> Verdict:
    """Return a verdict with the distance to the minimum that steps around it show, if the slopes show a larger one.

    At the kink of an event slopes jump, so that they are not zero however close the minimum is.
    """
    names, value = objective.problem.floating, verdict.last.value[0]
    covariance = verdict.covariance(names)
    if verdict.edm <= verdict.goal or not np.isfinite(covariance).all() or verdict.last.bad[0]:
        return verdict
    downhill = -(covariance @ verdict.last.gradient[0])
    moves = np.concatenate([steps_aside(covariance), np.outer(STEPS_ASIDE, downhill)])
    points = np.clip(verdict.values + moves, *limits_of(objective).T)
    try:
        there = objective.likelihood.evaluate_full(objective.problem.full_rows(points), 0)
    except ModelError:  # no integral at one of them
        return verdict
    lowest = float(np.min(np.where(there.bad == 0, there.value, np.inf), initial=np.inf))
    return replace(verdict, edm=min(verdict.edm, max(float(value) - lowest, 0.0)))


def steps_aside(covariance: Array) -> Array:
    """Return steps of several sizes along each parameter and in other directions, in which a lower value beside a kink would show."""
    count = len(covariance)
    if not np.isfinite(covariance).all():
        return np.zeros((len(STEPS_ASIDE) * (count + DIRECTIONS), count))
    lengths, axes = np.linalg.eigh(covariance)
    turned = np.random.default_rng(0).normal(size=(DIRECTIONS, count))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    alone = np.diag(np.sqrt(np.diagonal(covariance)))
    directions = np.concatenate([alone, turned * np.sqrt(np.maximum(lengths, 0.0)) @ axes.T])
    return np.concatenate([part * directions for part in STEPS_ASIDE])


def describe_valley(objective: Objective, verdict: Verdict, place: Array) -> str:
    """Describe a place that is lower than the minimum."""
    k = int(np.argmax(np.abs(place - verdict.values)))
    lower = verdict.last.value[0] - objective.at(place, 0).value[0]
    return (
        f"this is a local minimum: the nll is lower by {lower:.2g} at {objective.problem.floating[k]} ="
        f" {place[k]:.6g}, and has kinks at events between; scan it, or fit a density without them"
    )
