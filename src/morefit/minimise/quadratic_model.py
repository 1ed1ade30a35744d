"""The quadratic model of a step: in units of its parameters, minimised within a radius, and judged.

In the language of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import sqrt

from morefit.kernel.fit_layout import Fit
from morefit.kernel.program import Vector, parallel
from morefit.minimise.dense import backward, cholesky, eigen, failed_direction, forward, invert_factor

UNKNOWN = 1e300  # the value before the first evaluation
SAFE_PIVOT = 1e-13  # of a Hessian with a unit diagonal: below, it does not count as positive definite
WEAK_PIVOT = 1e-8  # below, eigenvalues decide whether a direction is flat
NULL = 1e-11  # an eigenvalue that is zero but for rounding
SUSPECT = 3.0  # times the distance to the minimum, in errors: that may make smaller eigenvalues
RESOLVED = 1e-22  # an EDM so small that what is suspect is zero
NEGLIGIBLE = 1e-40  # of two parameters in their units: a curvature that has no effect, whose products some processors take long for
STEEP = 1e-6  # per error: a slope at a limit below this is rounding, and does not stop a parameter there
WIDEST = 1e3  # times the way between its limits: a parameter with a larger error has no curvature
OPEN = 1e2  # times its value, its start, or one: what stands for the way between limits where there are none
LARGEST_UNIT = 0.25  # of the way between limits
FIRST_RADIUS = 1.0  # units: where the first Hessian is not positive definite
SECULAR_STEPS = 60  # bisections, of which Newton's rule needs about five
AS_LONG = 0.01  # of the radius: a step is as long but for this part
FIRST_SHIFT = 0.5  # of the smallest and the largest that may be needed, above the smallest
# of the way to the largest: where Newton's rule leads too far down, and where a shift was too small
CLOSER, AWAY = 0.1, 0.3


def measure(fit: Fit) -> None:
    """Compute the unit of each parameter: its error if others were fixed, at most a part of the way between limits."""
    for i in parallel(len(fit.x)):
        fit.unit[i] = own_error(fit, i, LARGEST_UNIT)


def own_error(fit: Fit, i: int, widest: float) -> float:
    """Return the error of a parameter if others were fixed, at most ``widest`` times the distance between its limits."""
    size = max(max(abs(fit.x[i]), abs(fit.start[i])), 1.0)
    longest = widest * min(fit.high[i] - fit.low[i], OPEN * size)
    curvature = abs(fit.hessian[i * len(fit.x) + i])
    return 1.0 / sqrt(curvature) if curvature * longest * longest > 1.0 else float(longest)


def find_free(fit: Fit) -> int:
    """List the parameters that no limit stops; return how many they are, and leave the smallest slope of the others."""
    size = 0
    fit.steepness = UNKNOWN
    for i in range(len(fit.x)):
        slope = fit.gradient[i] * own_error(fit, i, WIDEST)
        at_low = fit.x[i] <= fit.low[i] and slope > STEEP
        at_high = fit.x[i] >= fit.high[i] and slope < -STEEP
        if at_low or at_high:
            fit.steepness = min(fit.steepness, abs(slope))
        else:
            fit.free[size] = i
            size += 1
    return size


def restrict(fit: Fit, size: int) -> None:
    """Write the quadratic model of the free parameters in their units, after the others have moved.

    The diagonal is zero for a parameter without curvature: what there is of it comes from rounding.
    """
    n = len(fit.x)
    for a in parallel(size):
        i = int(fit.free[a])
        slope = fit.gradient[i]
        for k in range(n):
            slope += fit.hessian[i * n + k] * fit.move[k]
        fit.slopes[a] = slope * fit.unit[i]
        for b in parallel(a + 1):
            j = int(fit.free[b])
            curvature = fit.hessian[i * n + j] * fit.unit[i] * fit.unit[j]
            element = 0.0 if abs(curvature) < NEGLIGIBLE else curvature
            fit.matrix[a * size + b] = element
            fit.matrix[b * size + a] = element
        if abs(fit.matrix[a * size + a]) < (LARGEST_UNIT / WIDEST) * (LARGEST_UNIT / WIDEST):
            fit.matrix[a * size + a] = 0.0


def choose_step(fit: Fit, size: int, radius: float) -> None:
    """Minimise the model of some parameters within a radius, and judge it, but for its EDM where it falls without end."""
    if not newton_step(fit, size, radius) and not (fit.max_shifts > 0.0 and step_as_long(fit, size, radius)):
        minimise_in_eigenbasis(fit, size, radius)


def minimise_model(fit: Fit, size: int, radius: float) -> None:
    """Minimise the model of some parameters within a radius, and judge it."""
    if not newton_step(fit, size, radius):
        minimise_in_eigenbasis(fit, size, radius)


def newton_step(fit: Fit, size: int, radius: float) -> bool:
    """Take Newton's step of a positive definite model; return whether it ends inside, with no eigenvalue in doubt."""
    fit.pivot = cholesky(fit.matrix, 0.0, size, SAFE_PIVOT, fit.lower)
    fit.bend = 0.0
    if not fit.pivot > SAFE_PIVOT:
        fit.bend = fit.pivot / failed_direction(fit.lower, size, fit.part)
        return False
    edm = 0.5 * solve(fit, size)
    # the smallest eigenvalue is at least a pivot divided by their number, or one divided by the inverse's trace
    suspect = SUSPECT * sqrt(2.0 * edm)
    sure = suspect * size < fit.pivot
    inside = sqrt(square(fit.part, size)) <= radius
    if fit.pivot > WEAK_PIVOT and inside and not sure and edm <= fit.goal:
        sure = suspect * invert_factor(fit.lower, size, fit.vectors) < 1.0
    judged(fit, edm, radius, True, not sure, 0)
    return fit.pivot > WEAK_PIVOT and inside and (sure or edm > fit.goal)


def solve(fit: Fit, size: int) -> float:
    """Write the step to the minimum of the factorised model; return how steeply that falls at first."""
    forward(fit.lower, size, fit.slopes, fit.along)
    steepness = square(fit.along, size)
    backward(fit.lower, size, fit.along, fit.part)
    for a in parallel(size):
        fit.part[a] = -fit.part[a]
    return steepness


def step_as_long(fit: Fit, size: int, radius: float) -> bool:
    """Take the step as long as the radius that minimises the model; return whether that is its minimum within the radius for sure.

    It is if Newton's step leads to the minimum of the model, but is too long, and if the model falls without end. Whether a curvature so
    small that the distance may have made it is believed, only eigenvalues tell, which cost as much as ten factorisations.
    """
    outside = fit.pivot > WEAK_PIVOT and fit.model_edm > fit.goal
    length = FIRST_RADIUS if radius == UNKNOWN else radius
    # from a saddle without slope only eigenvectors lead down
    if square(fit.slopes, size) == 0.0 or not (outside or fit.bend < -NULL):
        return False
    fit.lowest = fit.bend
    shift = find_step_as_long(fit, size, length)
    if outside or shift < 0.0:
        return shift >= 0.0
    squared = square(fit.part, size)
    # the step times the matrix times the step; the EDM of the rising directions is at least half of that
    curved = -shift * squared
    for a in range(size):
        curved -= fit.slopes[a] * fit.part[a]
    judged(fit, UNKNOWN, length, False, False, 0)
    lowest = min(fit.lowest, curved / squared)
    return lowest < -SUSPECT * sqrt(2.0 * fit.goal) or 0.5 * curved > fit.goal


def find_step_as_long(fit: Fit, size: int, length: float) -> float:
    """Shift all eigenvalues until the step is that long (More and Sorensen, section 3); return the shift, less than zero if none is found.

    Shifts are those that ``find_shift`` tries with known eigenvalues, so that steps are the same but for rounding.
    """
    if fit.bend == 0.0 and sqrt(square(fit.part, size)) <= (1.0 + AS_LONG) * length:
        return 0.0
    low = -fit.bend
    high = UNKNOWN
    shift = first_shift(fit, size, length) if fit.bend < 0.0 else next_shift(fit, size, 0.0, length)
    for _ in range(int(fit.max_shifts)):
        pivot = cholesky(fit.matrix, shift, size, SAFE_PIVOT, fit.lower)
        if pivot > SAFE_PIVOT:
            solve(fit, size)
            way = sqrt(square(fit.part, size))
            if abs(way - length) <= AS_LONG * length:
                return shift
            if way > length:
                low = shift
            else:
                high = shift
            shift = between(low, next_shift(fit, size, shift, length), high)
        else:
            fit.lowest = min(fit.lowest, pivot / failed_direction(fit.lower, size, fit.part) - shift)
            low = shift
            shift = larger_shift(fit, size, length, low, high)
    return -1.0


def first_shift(fit: Fit, size: int, length: float) -> float:
    """Return the first shift that is tried where a curvature is negative: the smallest that may do is as large as that."""
    return float(FIRST_SHIFT * (steepness_for(fit, size, length) - fit.bend) - fit.bend)


def larger_shift(fit: Fit, size: int, length: float, low: float, high: float) -> float:
    """Return the shift that is tried after one that was too small for a minimum."""
    return float(
        low + (AWAY * (high - low) if high < UNKNOWN else FIRST_SHIFT * steepness_for(fit, size, length))
    )


def steepness_for(fit: Fit, size: int, length: float) -> float:
    """Return the shift with which a step would be that long without curvature."""
    return sqrt(square(fit.slopes, size)) / length


def between(low: float, shift: float, high: float) -> float:
    """Return a shift if it is between two others, else one closer to the smaller one."""
    return shift if low < shift < high else low + CLOSER * (high - low)


def next_shift(fit: Fit, size: int, shift: float, length: float) -> float:
    """Return the next shift after that of the present factor and step: Newton's rule for 1 / length, which is almost straight."""
    forward(fit.lower, size, fit.part, fit.along)
    squared = square(fit.part, size)
    return float(shift + (sqrt(squared) - length) / length * squared / square(fit.along, size))


def minimise_in_eigenbasis(fit: Fit, size: int, radius: float) -> None:
    """Minimise the model of some parameters within a radius, and judge it, by its eigenvalues."""
    if not eigen(fit.matrix, size, fit.along, fit.values, fit.vectors):
        shorter = min(1.0, FIRST_RADIUS / sqrt(square(fit.slopes, size)))
        for a in parallel(size):
            fit.part[a] = -fit.slopes[a] * shorter
        judged(fit, UNKNOWN, min(radius, FIRST_RADIUS), False, True, 0)
        return
    for k in parallel(size):
        total = 0.0
        for a in range(size):
            total += fit.vectors[a * size + k] * fit.slopes[a]
        fit.along[k] = total
    judge(fit, size, radius)
    minimise_inside(fit, size, fit.model_radius)
    for a in parallel(size):
        total = 0.0
        for k in range(size):
            total += fit.vectors[a * size + k] * fit.along[k]
        fit.part[a] = total


def judged(fit: Fit, edm: float, radius: float, bounded: bool, doubtful: bool, flats: int) -> None:
    """Store the result of the quadratic model in the fit."""
    fit.model_edm = edm
    fit.model_radius = radius  # in which it was minimised
    fit.bounded = 1.0 if bounded else 0.0  # no eigenvalue is negative and nothing falls without end
    fit.doubtful = 1.0 if doubtful else 0.0  # an eigenvalue is so small that the distance may have made it
    fit.flats = flats  # directions without curvature and slope


def judge(fit: Fit, size: int, radius: float) -> None:
    """Judge a model in its eigenbasis, and mark its flat directions: value one, no slope."""
    edm = 0.0
    for k in range(size):
        if fit.values[k] > NULL:
            edm += 0.5 * fit.along[k] * fit.along[k] / fit.values[k]
    suspect = SUSPECT * sqrt(2.0 * edm)
    null = max(NULL, suspect) if edm < RESOLVED else NULL
    bounded = True
    doubtful = False
    flats = 0
    for k in range(size):
        if abs(fit.values[k]) <= null and abs(fit.along[k]) <= fit.goal:
            flats += 1
            fit.values[k] = 1.0
            fit.along[k] = 0.0
        elif abs(fit.values[k]) < suspect and edm <= fit.goal:
            doubtful = True
            if fit.values[k] <= null:
                fit.values[k] = 1.0
        elif fit.values[k] <= null:
            bounded = False
    inside = FIRST_RADIUS if not bounded and radius == UNKNOWN else radius
    judged(fit, edm, inside, bounded, doubtful, flats)


def minimise_inside(fit: Fit, size: int, radius: float) -> None:
    """Replace slopes by the step that minimises slope p + value p^2 / 2 within the radius."""
    lowest = 0
    for k in range(size):
        if fit.values[k] < fit.values[lowest]:
            lowest = k
    bottom = fit.values[lowest] if size > 0 else 1.0
    low = 0.0 if bottom > NULL else 1e-6 - bottom
    if shifted_length(fit.values, fit.along, size, low) > radius:
        shift = find_shift(fit, size, bottom, low, radius)
        for k in range(size):
            fit.along[k] = -fit.along[k] / (fit.values[k] + shift)
        return
    for k in range(size):
        fit.along[k] = -fit.along[k] / (fit.values[k] + low)
    if (
        bottom < -NULL
    ):  # down a saddle, also where it has no slope; the largest component tells the sides apart
        rest = square(fit.along, size) - fit.along[lowest] * fit.along[lowest]
        sign = fit.along[lowest]
        if sign == 0.0:
            for a in range(size):
                if abs(fit.vectors[a * size + lowest]) > abs(sign):
                    sign = fit.vectors[a * size + lowest]
        way = sqrt(max(radius * radius - rest, 0.0))
        fit.along[lowest] = -way if sign < 0.0 else way


def find_shift(fit: Fit, size: int, lowest: float, least: float, radius: float) -> float:
    """Return the shift of all eigenvalues with which the step is as long as the radius; from ``least`` on it is a minimum."""
    low = -fit.bend if fit.bend < 0.0 else least
    high = UNKNOWN
    shift = first_shift(fit, size, radius) if fit.bend < 0.0 else least
    for _ in range(SECULAR_STEPS):
        if lowest + shift > SAFE_PIVOT:
            total = 0.0
            slope = 0.0
            for k in range(size):
                way = fit.along[k] / (fit.values[k] + shift)
                total += way * way
                slope += way * way / (fit.values[k] + shift)
            length = sqrt(total)
            if abs(length - radius) <= AS_LONG * radius:
                break
            if length > radius:
                low = shift
            else:
                high = shift
            # Newton's rule for 1 / length, which is almost straight
            shift = between(low, shift + (length - radius) / radius * total / slope, high)
        else:
            low = shift
            shift = larger_shift(fit, size, radius, low, high)
    return shift


def square(vector: Vector, size: int) -> float:
    total = 0.0
    for k in range(size):
        total += vector[k] * vector[k]
    return total


def shifted_length(values: Vector, slopes: Vector, size: int, shift: float) -> float:
    """Return the length of a step with shifted eigenvalues."""
    total = 0.0
    for k in range(size):
        way = slopes[k] / (values[k] + shift)
        total += way * way
    return sqrt(total)
