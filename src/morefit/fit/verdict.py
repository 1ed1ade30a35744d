"""Judge a point by the exact Hessian: its covariance, how far the minimum is, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from morefit.backend import Array
from morefit.fit.newton import NUMBERS, Flags
from morefit.fit.objective import Objective
from morefit.fit.rules import ROUNDING, SUSPECT, least_curvature, reach
from morefit.fit.spectrum import Direction, Spectrum, decompose, in_words
from morefit.likelihood import Evaluation

AT_LIMIT = 1e-3  # of the error, or of the way between the limits: closer to a limit than this counts as at it
MOST_STEPS_ON = 8  # from where a minimiser stopped


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the exact derivatives say of a point."""

    values: Array
    last: Evaluation
    inverse: Array  # of the Hessian, along the directions that have curvature; nan if one has less than none
    own: Array  # variances that have nothing to do with an inverse: those of parameters held at a limit
    at_limit: tuple[str, ...]
    edm: float
    goal: float
    flat: tuple[Direction, ...] = ()  # directions without curvature

    def covariance(self, names: Sequence[str]) -> Array:
        """Return the covariance matrix of the parameters, nan for those that are undetermined."""
        return blanked(self.inverse + self.own, names, self.flat)


def blanked(covariance: Array, names: Sequence[str], flat: Sequence[Direction]) -> Array:
    """Return a covariance matrix with nan for the parameters that take part in flat directions."""
    lost = np.array([any(n in direction for direction in flat) for n in names], np.bool_)
    return np.where(lost[:, None] | lost[None, :], np.nan, covariance)


def look_at(objective: Objective, values: Array, tolerance: float) -> Verdict:
    """Evaluate the Hessian at a point: covariance, distance to the minimum, parameters at a limit, flat directions.

    Next to a minimum a direction without curvature seems to have some, of either sign, as much as the minimum is
    away. Where that may be so, Newton steps lead on until the eigenvalues no longer change.
    """
    verdict, spectrum = judge(objective, values, goal_of(tolerance))
    for _ in range(MOST_STEPS_ON):
        if spectrum is None or not spectrum.suspicious:
            break
        point = np.clip(verdict.values + spectrum.step, *limits_of(objective).T)
        closer, there = judge(objective, point, verdict.goal)
        before, after = verdict.last.value[0], closer.last.value[0]
        if there is None or closer.last.bad[0] or not after <= before + ROUNDING * (1 + abs(before)):
            break
        settled = there.agrees_with(spectrum)
        verdict, spectrum = closer, there
        if settled:
            break
    return verdict


def limits_of(objective: Objective) -> Array:
    return np.array([objective.problem.limits[name] for name in objective.problem.floating])


def judge(objective: Objective, values: Array, goal: float) -> tuple[Verdict, Spectrum | None]:
    """Evaluate the Hessian at a point; the spectrum is left out where all eigenvalues are large."""
    names, last, limits = objective.problem.floating, objective.at(values, 2), limits_of(objective)
    hessian, gradient = last.hessian[0], last.gradient[0]
    inverse, own = invert(hessian), np.zeros_like(hessian)
    with np.errstate(divide="ignore"):
        alone = reach(NUMBERS, gradient, *limits.T)
    positive = bool(np.all(np.isfinite(inverse)))
    held = touching(values, np.sqrt(np.diag(inverse)) if positive else alone, gradient, limits)
    at_limit = tuple(name for name, is_held in zip(names, held, strict=True) if is_held)
    if positive and not held.any():
        edm = float(0.5 * gradient @ inverse @ gradient)
        if well_determined(hessian, inverse, edm, least_curvature(NUMBERS, values, *limits.T)):
            return Verdict(values, last, inverse, own, at_limit, edm, goal), None
    spectrum = decompose(hessian, gradient, values, limits, ~held)
    if spectrum is None:
        return Verdict(values, last, inverse, own, at_limit, math.nan, goal), None
    if not positive or spectrum.null.any():
        inverse = spectrum.inverse if spectrum.definite else np.full_like(hessian, np.nan)
        own = np.diag(np.where(held, alone, 0.0) ** 2)
    edm = spectrum.edm if spectrum.definite else math.nan
    return Verdict(values, last, inverse, own, at_limit, edm, goal, spectrum.flat_directions(names)), spectrum


def well_determined(hessian: Array, inverse: Array, edm: float, least: Array) -> bool:
    """Say whether every parameter has curvature, and no combination so little that it may come from the distance.

    The smallest eigenvalue is at least what is left of a parameter's information, divided by their number.
    """
    curvature = np.diag(hessian)
    left = 1 / (np.diag(inverse) * curvature)
    return bool(np.all(curvature > least) and np.all(left > SUSPECT * len(left) * math.sqrt(2 * edm)))


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
    near = np.where(np.isfinite(errors), AT_LIMIT * np.minimum(errors, high - low), 0.0)
    at_low, at_high = values - low <= near, high - values <= near
    return np.asarray((at_low & (gradient > 0)) | (at_high & (gradient < 0)), np.bool_)


def complaints(exhausted: bool, verdict: Verdict) -> Iterable[str]:
    """List what is wrong with a fit."""
    if exhausted:
        yield "the call limit was reached before the minimum"
    if not np.all(np.isfinite(verdict.inverse)):
        yield "the Hessian is not positive definite, so there are no errors"
    elif not verdict.edm <= 10 * verdict.goal:  # Minuit's own margin for calling a minimum valid
        yield f"the estimated distance to the minimum, {verdict.edm:.3g}, is above the goal of {verdict.goal:.3g}"
    elif verdict.flat:
        yield from map(undetermined, verdict.flat)
    if not math.isfinite(verdict.last.value[0]):
        yield "the likelihood is not finite at the minimum"


def undetermined(direction: Direction) -> str:
    """Say which parameters the data do not determine."""
    names = sorted(direction)
    if len(names) == 1:
        return f"the data do not determine {names[0]}: the likelihood does not change with it; fix it"
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"the data do not determine {listed}: the likelihood does not change along {in_words(direction)}; fix one of them"
