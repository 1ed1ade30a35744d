"""Judge a point by the exact Hessian: its covariance, how far the minimum is, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from morefit.backend import Array
from morefit.fit.newton import NUMBERS, Flags, Sets
from morefit.fit.objective import Objective
from morefit.fit.rules import reach
from morefit.likelihood import Evaluation

AT_LIMIT = 1e-3  # of the error: closer to a limit than this counts as at it


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the exact derivatives say of a point."""

    values: Array
    last: Evaluation
    covariance: Array
    at_limit: tuple[str, ...]
    edm: float
    goal: float


def look_at(objective: Objective, values: Array, tolerance: float) -> Verdict:
    """Evaluate the Hessian at a point: covariance, distance to the minimum, parameters at a limit."""
    names, last = objective.problem.floating, objective.at(values, 2)
    hessian, gradient = last.hessian[0], last.gradient[0]
    limits = np.array([objective.problem.limits[name] for name in names])
    covariance = invert(hessian)
    with np.errstate(divide="ignore"):
        alone = reach(NUMBERS, gradient, *limits.T)
    positive = bool(np.all(np.isfinite(covariance)))
    errors = np.sqrt(np.diag(covariance)) if positive else alone
    held = touching(values, errors, gradient, limits)
    if not positive:
        covariance = without_held(hessian, held, alone)
    at_limit = tuple(name for name, is_held in zip(names, held, strict=True) if is_held)
    if positive and not held.any():
        edm = float(0.5 * gradient @ covariance @ gradient)
    else:
        edm = distance(hessian, gradient, np.flatnonzero(~held))
    return Verdict(values, last, covariance, at_limit, edm, goal_of(tolerance))


def goal_of(tolerance: float) -> float:
    """Return the distance to the minimum at which Minuit is content."""
    return 0.002 * max(tolerance, 1e-4) * 0.5


def invert(hessian: Array) -> Array:
    """Invert a positive-definite matrix, scaled to a unit diagonal first; nan where it is not one."""
    nothing = np.full_like(hessian, np.nan)
    diagonal = np.diag(hessian)
    if not np.all(np.isfinite(hessian)) or not np.all(diagonal > 0):
        return nothing
    scale = 1 / np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(hessian * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return nothing
    inverse = np.linalg.solve(factor, np.diag(scale))
    return np.asarray(inverse.T @ inverse, np.float64)


def touching(values: Array, errors: Array, gradient: Array, limits: Array) -> Flags:
    """Say which parameters ended at a limit: within a thousandth of their errors, the slope pointing outwards."""
    low, high = limits.T
    near = np.where(np.isfinite(errors), AT_LIMIT * errors, 0.0)
    at_low, at_high = values - low <= near, high - values <= near
    return np.asarray((at_low & (gradient > 0)) | (at_high & (gradient < 0)), np.bool_)


def without_held(hessian: Array, held: Flags, alone: Array) -> Array:
    """Return the covariance of the free parameters; those held at a limit have errors of their own instead."""
    free = np.ix_(~held, ~held)
    inverse = invert(hessian[free])
    if not np.all(np.isfinite(inverse)):
        return np.full_like(hessian, np.nan)
    covariance = np.diag(alone**2)
    covariance[free] = inverse
    return covariance


def distance(hessian: Array, gradient: Array, free: Sets) -> float:
    """Return half of g H^-1 g over the parameters that are not at a limit."""
    if not len(free):
        return 0.0
    inverse = invert(hessian[np.ix_(free, free)])
    slopes = gradient[free]
    return float(0.5 * slopes @ inverse @ slopes)


def complaints(exhausted: bool, verdict: Verdict) -> Iterable[str]:
    """List what is wrong with a fit."""
    if exhausted:
        yield "the call limit was reached before the minimum"
    if not np.all(np.isfinite(verdict.covariance)):
        yield "the Hessian is not positive definite, so there are no errors"
    elif not verdict.edm <= 10 * verdict.goal:  # Minuit's own margin for calling a minimum valid
        yield f"the estimated distance to the minimum, {verdict.edm:.3g}, is above the goal of {verdict.goal:.3g}"
    if not math.isfinite(verdict.last.value[0]):
        yield "the likelihood is not finite at the minimum"
