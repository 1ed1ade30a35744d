"""Check a minimum with the exact Hessian: covariance, distance to the minimum, reasons why it is not valid."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from morefit.arrays import Array, Flags, all_finite
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.kernel.fit_layout import value_unit
from morefit.likelihood import Evaluation
from morefit.minimise.objective import Objective
from morefit.minimise.quadratic_model import STEEP, SUSPECT
from morefit.minimise.spectrum import FALLING, Direction, Spectrum, decompose, in_words, least_curvature
from morefit.minimise.trust_region import ROUNDING, is_slow_along

AT_LIMIT = 1e-3  # of the error, or of the way between the limits: closer to a limit than this counts as at it
MAX_EXTRA_STEPS = 8  # from where a minimiser stopped
# of the way between limits, or of the value: where steps of a likelihood would show
LOOK_ASIDE = (-0.1, -0.01, 0.01, 0.1)
FARTHER = tuple(sign * 10.0**power for power in range(2, 33, 3) for sign in (-1, 1))
LOOK_BEYOND = (0.01, 0.1)  # of the value: where a likelihood that falls would end


@dataclass(frozen=True, eq=False)
class Verdict:
    """The exact derivatives at a point, and what follows from them."""

    values: Array
    last: Evaluation
    inverse: Array  # of the Hessian, along the directions that have curvature; nan if one has less than none
    own: Array  # variances that do not come from the inverse: those of parameters fixed at a limit
    edm: float
    goal: float
    at_limit: tuple[str, ...] = ()
    flat: tuple[Direction, ...] = ()  # directions along which the nll does not change
    falling: tuple[Direction, ...] = ()  # directions along which it falls without bound
    bent: tuple[str, ...] = ()  # parameters along which it is no parabola, however close the minimum is
    unit: float = 1.0  # of rises of the nll

    def covariance(self, names: Sequence[str]) -> Array:
        """Return the covariance matrix of the parameters, nan for those that are undetermined."""
        return blanked(self.inverse + self.own, names, self.flat)


def blanked(covariance: Array, names: Sequence[str], flat: Sequence[Direction]) -> Array:
    """Return a covariance matrix with nan for the parameters that take part in flat directions."""
    if not flat:
        return covariance
    lost = part_in(names, flat)
    return np.where(lost[:, None] | lost[None, :], np.nan, covariance)


def part_in(names: Sequence[str], flat: Sequence[Direction]) -> Flags:
    """Return which parameters take part in flat directions."""
    return np.array([any(n in direction for direction in flat) for n in names], np.bool_)


def check_minimum(objective: Objective, values: Array, tolerance: float) -> Verdict:
    """Evaluate the Hessian at a point: covariance, distance to the minimum, parameters at a limit, flat directions.

    Next to a minimum a direction without curvature seems to have some, of either sign, as much as the minimum is
    away. Where that may be so, Newton steps lead on until the eigenvalues no longer change.
    """
    begin = time.perf_counter()
    goal = edm_goal(tolerance) * objective.weight
    verdict, spectrum = at_the_limits(objective, *evaluate_point(objective, values, goal))
    for _ in range(MAX_EXTRA_STEPS):
        if spectrum is None or not spectrum.suspicious:
            break
        point = np.clip(verdict.values + spectrum.step, *limits_of(objective).T)
        closer, there = evaluate_point(objective, point, verdict.goal)
        if there is None or not no_higher(closer, verdict):
            break
        settled = there.agrees_with(spectrum)
        verdict, spectrum = closer, there
        if settled:
            break
    objective.checking += time.perf_counter() - begin
    return verdict


def check_parabola(objective: Objective, verdict: Verdict) -> Verdict:
    """Take one more Newton step: where it is slow, there is no minimum with curvature, and errors would be arbitrary."""
    begin, names = time.perf_counter(), objective.problem.floating
    free = np.array([name not in verdict.at_limit for name in names], np.bool_)
    gradient, hessian = verdict.last.gradient[0], verdict.last.hessian[0]
    move = np.where(free, -verdict.inverse @ np.where(free, gradient, 0.0), 0.0)
    rounding = ROUNDING * (verdict.unit + abs(verdict.last.value[0]))
    if not abs(move @ gradient) > rounding or verdict.flat:  # nor nan
        return verdict
    there = objective.at(np.clip(verdict.values + move, *limits_of(objective).T), 2)
    objective.checking += time.perf_counter() - begin
    along = (gradient, there.gradient[0], np.diagonal(hessian), np.diagonal(there.hessian[0]))
    bent = tuple(n for n, f, *step in zip(names, free, *along, strict=True) if f and is_slow_along(*step))
    if not bent:
        return verdict
    inverse = blanked(verdict.inverse, names, [dict.fromkeys(bent, 1.0)])
    return replace(verdict, inverse=inverse, bent=bent)


def at_the_limits(
    objective: Objective, verdict: Verdict, spectrum: Spectrum | None
) -> tuple[Verdict, Spectrum | None]:
    """Put parameters that are almost at a limit there: Minuit cannot, and what depends on it may be undetermined."""
    if not verdict.at_limit:
        return verdict, spectrum
    low, high = limits_of(objective).T
    fixed = np.array([n in verdict.at_limit for n in objective.problem.floating], np.bool_)
    point = np.where(fixed, np.where(verdict.last.gradient[0] > 0, low, high), verdict.values)
    if np.array_equal(point, verdict.values):
        return verdict, spectrum
    there, seen = evaluate_point(objective, point, verdict.goal)
    return (there, seen) if no_higher(there, verdict) else (verdict, spectrum)


def no_higher(one: Verdict, other: Verdict) -> bool:
    """Return whether the value at a point is at most that at another, within rounding."""
    value, highest = one.last.value[0], other.last.value[0]
    return bool(not one.last.bad[0] and value <= highest + ROUNDING * (one.unit + abs(highest)))


def limits_of(objective: Objective) -> Array:
    return objective.problem.floating_limits


def evaluate_point(objective: Objective, values: Array, goal: float) -> tuple[Verdict, Spectrum | None]:
    """Evaluate the Hessian at a point; the spectrum is left out where all eigenvalues are large.

    What is large does not depend on the scale of weights: the spectrum is that of the nll in its unit.
    """
    names, last, limits = objective.problem.floating, objective.at(values, 2), limits_of(objective)
    unit = value_unit(objective.weight)
    hessian, gradient = last.hessian[0] / unit, last.gradient[0] / unit
    inverse, own = invert(hessian), np.zeros_like(hessian)
    positive = not len(names) or math.isfinite(inverse[0, 0])  # all of it is, or nothing
    sizes = np.maximum(np.abs(values), np.abs(objective.problem.start))
    least = least_curvature(sizes, limits)
    errors = np.sqrt(np.diagonal(inverse)) if positive else errors_alone(gradient, limits)
    fixed = np.zeros(len(values), np.bool_)
    slopes = gradient
    if not positive or not far_from_limits(values, errors, limits):
        slopes = gradient * np.maximum(np.abs(np.diagonal(hessian)), least) ** -0.5
        fixed = touching(values, errors, slopes, limits)
    if positive and not fixed.any():
        edm = float(0.5 * gradient @ inverse @ gradient)
        if well_determined(hessian, inverse, edm, least):
            return Verdict(values, last, inverse / unit, own, edm=edm * unit, goal=goal, unit=unit), None
    spectrum = decompose(hessian, gradient, sizes, limits, ~fixed)
    if spectrum is None:
        return Verdict(values, last, inverse / unit, own, edm=math.nan, goal=goal, unit=unit), None
    weak = fixed & (np.abs(slopes) < SUSPECT * math.sqrt(2 * spectrum.edm))
    if weak.any():  # no larger than the distance to the minimum explains: it may be zero
        fixed &= ~weak
        spectrum = decompose(hessian, gradient, sizes, limits, ~fixed) or spectrum
    at_limit = tuple(name for name, is_fixed in zip(names, fixed, strict=True) if is_fixed)
    if not positive or spectrum.null.any():
        inverse = spectrum.inverse if spectrum.definite else np.full_like(hessian, np.nan)
        own = np.diag(np.where(fixed, errors_alone(gradient, limits), 0.0) ** 2)
    edm = spectrum.edm if spectrum.definite else math.nan
    flat = spectrum.directions(names, spectrum.null) if spectrum.definite else ()
    falling = spectrum.directions(names, spectrum.falling)
    return Verdict(
        values,
        last,
        inverse / unit,
        own,
        edm=edm * unit,
        goal=goal,
        at_limit=at_limit,
        flat=flat,
        falling=falling,
        unit=unit,
    ), spectrum


def far_from_limits(values: Array, errors: Array, limits: Array) -> bool:
    """Return whether no parameter can be said to be at a limit, whatever its slope."""
    low, high = limits.T
    return bool(
        np.minimum(values - low, high - values).min(initial=np.inf) > AT_LIMIT * errors.max(initial=0.0)
    )


def errors_alone(gradient: Array, limits: Array) -> Array:
    """Return the error of a parameter at a limit: how far it must move for its slope to matter."""
    low, high = limits.T
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(0.5 / np.abs(gradient), high - low), np.float64)


def well_determined(hessian: Array, inverse: Array, edm: float, least: Array) -> bool:
    """Return whether all parameters have curvature, and no combination so little that the distance may cause it.

    The smallest eigenvalue is at least what is left of a parameter's information, divided by their number.
    """
    curvature = np.diagonal(hessian)
    left = 1 / (np.diagonal(inverse) * curvature)
    return bool((curvature > least).all() and left.min() > SUSPECT * len(left) * math.sqrt(2 * edm))


def edm_goal(tolerance: float, least: float = 1e-4) -> float:
    """Return the estimated distance to the minimum (EDM) at which Minuit stops, for a tolerance of at least its least one."""
    return 0.002 * max(tolerance, least) * 0.5


def invert(hessian: Array) -> Array:
    """Invert a positive-definite matrix, scaled to a unit diagonal first; nan where it is not one."""
    diagonal = np.diagonal(hessian)
    if not np.isfinite(hessian).all() or not (diagonal > 0).all():
        return np.full_like(hessian, np.nan)
    scale = 1 / np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(hessian * (scale * scale[:, None]))
    except np.linalg.LinAlgError:
        return np.full_like(hessian, np.nan)
    inverse = np.linalg.solve(factor, np.diag(scale))
    return np.asarray(inverse.T @ inverse, np.float64)


def touching(values: Array, errors: Array, slopes: Array, limits: Array) -> Flags:
    """Return which parameters ended at a limit: within a thousandth of their errors, the slope pointing outwards.

    Slopes are those for a step of one error.
    """
    low, high = limits.T
    near = np.where(np.isfinite(errors), AT_LIMIT * np.minimum(errors, high - low), 0.0)
    at_low, at_high = values - low <= near, high - values <= near
    return np.asarray((at_low & (slopes > STEEP)) | (at_high & (slopes < -STEEP)), np.bool_)


def changing_elsewhere(objective: Objective, verdict: Verdict) -> frozenset[str]:
    """Return which parameters without a derivative change the likelihood farther away: it has steps, or a shelf."""
    names, limits = objective.problem.floating, limits_of(objective)
    changing, falling = set(), FALLING * verdict.unit
    for direction in verdict.flat:
        k = names.index(next(iter(direction)))
        way = min(limits[k, 1] - limits[k, 0], max(abs(verdict.values[k]), 1.0))
        farther = FARTHER if math.isinf(limits[k, 1] - limits[k, 0]) else ()  # its unit is not known
        for part in (*LOOK_ASIDE, *farther) if len(direction) == 1 else ():
            point = verdict.values.copy()
            point[k] = np.clip(point[k] + part * way, *limits[k])
            try:
                there = objective.at(point, 2)
            except ModelError:  # no integral there
                continue
            if not there.bad[0] and abs(there.value[0] - verdict.last.value[0]) > falling:
                changing.add(names[k])
    return frozenset(changing)


def ends_beyond(objective: Objective, verdict: Verdict) -> bool:
    """Return whether there is no likelihood a little farther down along a direction in which it falls."""
    for direction in verdict.falling:
        limits = limits_of(objective)
        line = np.array([direction.get(n, 0.0) for n in objective.problem.floating])
        line *= -np.sign(line @ verdict.last.gradient[0])
        size = max(float(np.max(np.abs(verdict.values[line != 0]))), 1.0)
        for part in LOOK_BEYOND:
            point = np.clip(verdict.values + part * size * line, *limits.T)
            try:
                bad = objective.at(point, 2).bad[0]
            except ModelError:  # no integral there
                return True
            if bad:
                return True
    return False


def failure_reasons(
    verdict: Verdict, changing: frozenset[str] = frozenset(), ends: bool = False
) -> Iterable[str]:
    """Yield the reasons why a point is no valid minimum; some flat parameters may be ``changing`` it elsewhere.

    Where it falls up to where there is no likelihood, it ``ends`` there.
    """
    if verdict.bent:
        yield (
            f"the likelihood is no parabola along {', '.join(verdict.bent)}: its curvature comes from the distance to where it is flat;"
            " start elsewhere, or fit another function of it"
        )
    elif verdict.falling and ends:
        along = ", ".join(dict.fromkeys(name for direction in verdict.falling for name in direction))
        yield (
            f"the likelihood has no minimum: it grows along {along} up to where the density becomes negative, as no data are"
            " there; set limits that keep it positive"
        )
    elif verdict.falling:
        yield from map(endless, verdict.falling)
    elif not all_finite(verdict.inverse):
        yield "the Hessian is not positive definite, so there are no errors"
    elif not verdict.edm <= 10 * verdict.goal:  # Minuit's own margin for calling a minimum valid
        yield f"the estimated distance to the minimum, {verdict.edm:.3g}, is above the goal of {verdict.goal:.3g}"
    else:  # a parameter at a limit may leave others without effect, which is no defect of the rest
        yield from map(stepping, sorted(changing))
        flat = [d for d in verdict.flat if changing.isdisjoint(d)]
        yield from map(undetermined, (d for d in flat if len(d) > 1 or not verdict.at_limit))
    if not math.isfinite(verdict.last.value[0]):
        yield "the likelihood is not finite at the minimum"


def endless(direction: Direction) -> str:
    """Describe along which parameters there is no minimum."""
    along = next(iter(direction)) if len(direction) == 1 else in_words(direction)
    return f"the likelihood has no minimum: it grows without end along {along}; set limits"


def stepping(name: str) -> str:
    """Describe a parameter that the likelihood has no derivative by, but depends on."""
    return (
        f"the likelihood changes with {name}, in steps or farther away, but has no derivative by it here: start elsewhere,"
        " write a smooth formula, or fix it and compare the nll at several values"
    )


def jumping(names: Sequence[str]) -> str:
    """Describe parameters that move a step of a density."""
    return (
        f"the density has a step that moves with {' and '.join(names)}: the likelihood jumps wherever it passes an event, and"
        " derivatives do not lead to its minimum; write a smooth formula, or fix it and compare the nll at several values"
    )


def undetermined(direction: Direction) -> str:
    """Describe which parameters the data do not determine."""
    *others, last = sorted(direction)
    names = f"{', '.join(others)} and {last}" if others else last
    how = f"along {in_words(direction)}; fix one of them" if others else "with it; fix it"
    return f"the data do not determine {names}: the likelihood does not change {how}"
