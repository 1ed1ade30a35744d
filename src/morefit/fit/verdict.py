"""Judge a point by the exact Hessian: its covariance, how far the minimum is, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from morefit.backend import Array
from morefit.fit.objective import Objective
from morefit.fit.problem import Problem
from morefit.likelihood import AnyLikelihood, Evaluation

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
    problem = objective.problem
    last = objective.at(values, 2)
    hessian, gradient = last.hessian[0], last.gradient[0]
    covariance = invert(hessian)
    errors = np.nan_to_num(np.sqrt(np.diag(covariance)))
    at_limit = tuple(
        name
        for name, x, error, slope in zip(problem.floating, values, errors, gradient, strict=True)
        if touches(x, error, slope, problem.limits[name])
    )
    free = [k for k, name in enumerate(problem.floating) if name not in at_limit]
    return Verdict(values, last, covariance, at_limit, distance(hessian, gradient, free), goal_of(tolerance))


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


def touches(x: float, error: float, slope: float, limits: tuple[float, float]) -> bool:
    """Say whether a parameter ended at a limit: within a thousandth of its error, the slope pointing outwards."""
    near = AT_LIMIT * error
    low, high = limits
    return (x - low <= near and slope >= 0) or (high - x <= near and slope <= 0)


def distance(hessian: Array, gradient: Array, free: list[int]) -> float:
    """Return half of g H^-1 g over the parameters that are not at a limit."""
    if not free:
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


def sandwich(likelihood: AnyLikelihood, problem: Problem, verdict: Verdict) -> Array:
    """Return the covariance of a weighted fit: H^-1 C H^-1."""
    rows = list(problem.rows)
    scores = likelihood.score_covariance(problem.full(verdict.values))[0][np.ix_(rows, rows)]
    return np.asarray(verdict.covariance @ scores @ verdict.covariance, np.float64)
