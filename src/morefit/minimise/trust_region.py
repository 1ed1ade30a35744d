"""A trust-region Newton method with exact Hessian and limits, in the language of drivers (``kernel/program.py``).

``begin`` starts a fit, ``step`` takes what was summed at the trial point and chooses the next one, ``finish`` computes
errors. What a step does:

1. *Accept.* The trial point is taken if all sums are finite, no event is bad, and the value does not grow. The radius
   shrinks where the quadratic model promised much more than came true, and grows where it was right.
2. *Units.* A parameter is measured in 1 / sqrt |H_ii|, but at most in a quarter of the way between its limits.
3. *Active set.* A parameter at a limit whose slope points outwards leaves the step, and comes back when that turns.
4. *Newton.* Where Cholesky's factorisation succeeds and its step is not longer than the radius, it is Newton's step.
5. *Eigenvalues.* Elsewhere the model is minimised within the radius in its eigenbasis (More and Sorensen, SIAM J. Sci.
   Stat. Comput. 4, 553), so that negative curvature is followed, also from a saddle point, where it has no slope. A
   direction without curvature and without slope is *flat*: no step is taken along it, and it keeps no fit from
   converging.
6. *Limits.* The step ends at the first limit that it meets; the model is minimised again over the other parameters.
7. *Verdict.* The fit ends when the EDM is below the goal and all eigenvalues are positive, or zero without a slope.
   Where only a product a * b is measured, the distance to the minimum makes a curvature of either sign along the flat
   direction. So an eigenvalue below SUSPECT times that distance is not believed before the fit is closer; when it
   cannot come closer, the direction is flat.
"""

from __future__ import annotations

from math import sqrt

from morefit.kernel.fit_layout import Fit
from morefit.kernel.program import Vector
from morefit.minimise.dense import backward, cholesky, eigen, forward

MOVING, CONVERGED, GIVEN_UP, FLAT = 0.0, 1.0, 2.0, 3.0  # the status of a fit
UNKNOWN = 1e300  # the value before the first evaluation
ROUNDING = 1e-12  # of the value: so small a change is none
SAFE_PIVOT = 1e-13  # of a Hessian with a unit diagonal: below, it does not count as positive definite
WEAK_PIVOT = 1e-8  # below, eigenvalues decide whether a direction is flat
NULL = 1e-11  # an eigenvalue that is zero but for rounding
SUSPECT = (
    3.0  # times the distance to the minimum, in errors: smaller eigenvalues may come from that distance alone
)
RESOLVED = 1e-16  # an EDM so small that what is suspect is zero
MAX_DOUBTS = 8.0  # steps for an EDM that does not become so small
STEEP = 1e-6  # per error: a slope at a limit below this is rounding, and does not hold a parameter there
WIDEST = 1e3  # times the way between its limits: a parameter with a larger error has no curvature
OPEN = 1e2  # times its value, or one: what stands for the way between limits where there are none
LARGEST_UNIT = 0.25  # of the way between limits
FIRST_RADIUS = 1.0  # units: where the first Hessian is not positive definite
MIN_RADIUS = 1e-9  # steps so short change nothing
BAD_RATIO, SMOOTH_RATIO, GOOD_RATIO = 0.1, 0.5, 0.75  # of what came true to what the model promised
GROWTH = 3.0  # of the radius after a good step
SHRINK, MIN_SHRINK, MAX_SHRINK = 0.25, 0.1, 0.5  # of a step that failed: without a finite value, and with one
UNTOUCHED = 1e-6  # of the largest component: what is smaller in a direction is rounding
SECULAR_STEPS = 60  # bisections, of which Newton's rule needs about five


def begin(fit: Fit) -> None:
    """Start at ``x``: nothing is known yet."""
    n = len(fit.x)
    fit.status = MOVING
    fit.value = UNKNOWN
    fit.edm = UNKNOWN
    fit.radius = UNKNOWN
    fit.length = 0.0
    fit.doubts = 0.0
    fit.troubles = 0.0
    for i in range(n):
        fit.trial[i] = fit.x[i]
        fit.gradient[i] = 0.0
        for j in range(n):
            fit.hessian[i * n + j] = 0.0


def step(fit: Fit) -> None:
    """Accept or reject the trial point after its evaluation, and choose the next one."""
    good = is_finite(fit)
    taken = good and fit.new_value <= fit.value + ROUNDING * (1.0 + abs(fit.value))
    ratio = came_true(fit) if good else 0.0
    fit.radius = next_radius(fit, good, taken, ratio)
    if taken:
        accept(fit)
    if fit.value < UNKNOWN:
        move_on(fit, taken)
        if not taken or ratio <= SMOOTH_RATIO or fit.bounded <= 0.0 or fit.flats > 0.0:
            fit.troubles += 1.0
    else:
        fit.status = GIVEN_UP


def move_on(fit: Fit, taken: bool) -> None:
    """Judge the best point so far; end there, or choose the next trial point."""
    n = len(fit.x)
    measure(fit)
    size = find_free(fit)
    for i in range(n):
        fit.move[i] = 0.0
    restrict(fit, size)
    minimise_model(fit, size, fit.radius)
    radius = fit.model_radius
    edm = fit.model_edm
    bounded = fit.bounded > 0.0
    close = bounded and edm <= fit.goal
    unsure = fit.doubtful > 0.0
    flats = fit.flats
    doubtful = unsure or fit.steepness < SUSPECT * size * sqrt(2.0 * edm)
    if close and doubtful:
        fit.doubts += 1.0
    fit.edm = edm if bounded else UNKNOWN
    if close and (not doubtful or fit.doubts >= MAX_DOUBTS):
        fit.status = FLAT if flats > 0.0 or unsure else CONVERGED
    elif not taken and fit.radius < MIN_RADIUS:
        fit.status = GIVEN_UP
    fit.radius = radius
    if fit.status == MOVING:
        move_within_limits(fit, size, radius)
        length = 0.0
        for i in range(n):
            fit.trial[i] = min(max(fit.x[i] + fit.move[i], fit.low[i]), fit.high[i])
            way = (fit.trial[i] - fit.x[i]) / fit.unit[i]
            length += way * way
        fit.length = sqrt(length)
        if fit.length <= 0.0:
            fit.status = GIVEN_UP
    fit.bounded = 1.0 if bounded else 0.0  # of the whole model again, not of what limits left of it
    fit.flats = flats


def is_finite(fit: Fit) -> bool:
    """Return whether the trial point has a value and all derivatives, and no bad events."""
    n = len(fit.x)
    good = bool(fit.bad <= 0.0 and abs(fit.new_value) < UNKNOWN)  # false for nan
    for i in range(n):
        good = good and abs(fit.new_gradient[i]) < UNKNOWN
        for j in range(i + 1):
            good = good and abs(fit.new_hessian[i * n + j]) < UNKNOWN
    return good


def came_true(fit: Fit) -> float:
    """Return how much of what the model promised for the last step came true; one where this is all rounding."""
    n = len(fit.x)
    expected = 0.0
    for i in range(n):
        towards = fit.trial[i] - fit.x[i]
        bend = 0.0
        for j in range(n):
            bend += fit.hessian[i * n + j] * (fit.trial[j] - fit.x[j])
        expected -= towards * (fit.gradient[i] + 0.5 * bend)
    if fit.value == UNKNOWN or abs(expected) <= ROUNDING * (1.0 + abs(fit.value)):
        return 1.0
    return float((fit.value - fit.new_value) / expected)


def next_radius(fit: Fit, good: bool, taken: bool, ratio: float) -> float:
    """Return the radius after a trial: smaller where the model promised too much, larger where it was right."""
    if fit.value == UNKNOWN:
        return fit.radius
    if not taken:
        slope = 0.0
        for i in range(len(fit.x)):
            slope += fit.gradient[i] * (fit.trial[i] - fit.x[i])
        shrink = SHRINK
        if good and slope < 0.0:  # the minimum of the parabola through both values and the slope
            shrink = 0.5 * slope / (slope + fit.value - fit.new_value)
            shrink = min(max(shrink, MIN_SHRINK), MAX_SHRINK)
        return shrink * min(fit.length, fit.radius)
    if ratio < BAD_RATIO:
        return min(fit.radius, MAX_SHRINK * fit.length)
    if ratio > GOOD_RATIO and fit.radius < UNKNOWN:
        return max(fit.radius, GROWTH * fit.length)
    return fit.radius


def accept(fit: Fit) -> None:
    """Take the trial point, and what is known there."""
    n = len(fit.x)
    fit.value = fit.new_value
    fit.unresolved = fit.new_unresolved
    for i in range(n):
        fit.x[i] = fit.trial[i]
        fit.gradient[i] = fit.new_gradient[i]
        for j in range(i + 1):
            fit.hessian[i * n + j] = fit.new_hessian[i * n + j]
            fit.hessian[j * n + i] = fit.new_hessian[i * n + j]


def measure(fit: Fit) -> None:
    """Compute the unit of each parameter: its error if others were fixed, at most a part of the way between limits."""
    n = len(fit.x)
    for i in range(n):
        span = min(fit.high[i] - fit.low[i], OPEN * max(abs(fit.x[i]), 1.0))
        curvature = abs(fit.hessian[i * n + i])
        longest = LARGEST_UNIT * span
        fit.unit[i] = 1.0 / sqrt(curvature) if curvature * longest * longest > 1.0 else longest


def find_free(fit: Fit) -> int:
    """List the parameters that no limit stops; return how many they are, and leave the smallest slope of the others."""
    size = 0
    fit.steepness = UNKNOWN
    for i in range(len(fit.x)):
        slope = fit.gradient[i] * fit.unit[i]
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
    for a in range(size):
        i = int(fit.free[a])
        slope = fit.gradient[i]
        for j in range(n):
            slope += fit.hessian[i * n + j] * fit.move[j]
        fit.slopes[a] = slope * fit.unit[i]
        for b in range(a + 1):
            j = int(fit.free[b])
            element = fit.hessian[i * n + j] * fit.unit[i] * fit.unit[j]
            fit.matrix[a * size + b] = element
            fit.matrix[b * size + a] = element
        if abs(fit.matrix[a * size + a]) < (LARGEST_UNIT / WIDEST) * (LARGEST_UNIT / WIDEST):
            fit.matrix[a * size + a] = 0.0


def minimise_model(fit: Fit, size: int, radius: float) -> None:
    """Minimise the model of some parameters within a radius, and judge it."""
    edm = 0.0
    least = cholesky(fit.matrix, size, SAFE_PIVOT, fit.lower)
    if least > SAFE_PIVOT:
        forward(fit.lower, size, fit.slopes, fit.along)
        edm = 0.5 * square(fit.along, size)
        backward(fit.lower, size, fit.along, fit.part)
        for a in range(size):
            fit.part[a] = -fit.part[a]
        # the smallest eigenvalue is at least a pivot divided by their number
        sure = SUSPECT * size * sqrt(2.0 * edm) < least
        inside = square(fit.part, size) <= radius * radius
        if least > WEAK_PIVOT and inside and (sure or edm > fit.goal):
            judged(fit, edm, radius, True, not sure, 0)
            return
    if not eigen(fit.matrix, size, fit.along, fit.values, fit.vectors):
        shorter = min(1.0, FIRST_RADIUS / sqrt(square(fit.slopes, size)))
        for a in range(size):
            fit.part[a] = -fit.slopes[a] * shorter
        judged(fit, UNKNOWN, min(radius, FIRST_RADIUS), False, True, 0)
        return
    for k in range(size):
        total = 0.0
        for a in range(size):
            total += fit.vectors[a * size + k] * fit.slopes[a]
        fit.along[k] = total
    judge(fit, size, radius)
    minimise_inside(fit, size, fit.model_radius)
    for a in range(size):
        total = 0.0
        for k in range(size):
            total += fit.vectors[a * size + k] * fit.along[k]
        fit.part[a] = total


def judged(fit: Fit, edm: float, radius: float, bounded: bool, doubtful: bool, flats: int) -> None:
    """Leave what the model says."""
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
    if shifted_square(fit.values, fit.along, size, low) > radius * radius:
        shift = find_shift(fit.values, fit.along, size, low, radius)
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


def find_shift(values: Vector, slopes: Vector, size: int, least: float, radius: float) -> float:
    """Return the shift of all eigenvalues with which the step is as long as the radius."""
    low = least
    high = least + sqrt(square(slopes, size)) / radius
    shift = least
    for _ in range(SECULAR_STEPS):
        total = 0.0
        slope = 0.0
        for k in range(size):
            way = slopes[k] / (values[k] + shift)
            total += way * way
            slope += way * way / (values[k] + shift)
        length = sqrt(total)
        if abs(length - radius) <= 0.01 * radius:
            break
        if length > radius:
            low = shift
        else:
            high = shift
        # Newton's rule for 1 / length, which is almost straight
        shift += (length - radius) / radius * total / slope
        if not low < shift < high:
            shift = 0.5 * (low + high)
    return shift


def move_within_limits(fit: Fit, free: int, radius: float) -> None:
    """Follow the step of the free parameters to the first limit, then that of the parameters that are still free.

    The model falls all the way. A limit that is reached is not left again within a step.
    """
    size = free
    length = 0.0
    while size > 0:
        way = 1.0
        for a in range(size):
            way = min(way, way_to_limit(fit, a))
        left = 0
        length += way * sqrt(square(fit.part, size))
        for a in range(size):
            i = int(fit.free[a])
            if way < 1.0 and way_to_limit(fit, a) <= way:
                fit.move[i] += room_for(fit, a)
            else:
                fit.move[i] += way * fit.part[a] * fit.unit[i]
                fit.free[left] = i
                left += 1
        if left == size or not length < radius:
            return
        size = left
        restrict(fit, size)
        minimise_model(fit, size, min(radius - length, radius))


def way_to_limit(fit: Fit, a: int) -> float:
    """Return which part of its step brings a free parameter to a limit; more than one if none does."""
    towards = fit.part[a] * fit.unit[int(fit.free[a])]
    room = room_for(fit, a)
    return float(room / towards) if abs(towards) > abs(room) else 2.0


def room_for(fit: Fit, a: int) -> float:
    """Return how far a free parameter may still move in the direction of its step."""
    i = int(fit.free[a])
    limit = fit.high[i] if fit.part[a] > 0.0 else fit.low[i]
    return float(limit - fit.x[i] - fit.move[i])


def square(vector: Vector, size: int) -> float:
    total = 0.0
    for k in range(size):
        total += vector[k] * vector[k]
    return total


def shifted_square(values: Vector, slopes: Vector, size: int, shift: float) -> float:
    """Return the square of the length of a step with shifted eigenvalues."""
    total = 0.0
    for k in range(size):
        way = slopes[k] / (values[k] + shift)
        total += way * way
    return total


def finish(fit: Fit) -> None:
    """Compute errors and covariance at the minimum, and which parameters are at a limit.

    The covariance is the inverse of the Hessian. Where this is positive definite only for the free parameters, it is
    theirs, and a parameter that is fixed has an error of its own: that of Minuit for a parameter at a limit. It does
    not extend along flat directions; parameters that take part in one have no error.
    """
    n = len(fit.x)
    measure(fit)
    for i in range(n):
        fit.move[i] = 0.0
        for j in range(n):
            fit.covariance[i * n + j] = 0.0
    fit.fixed = n - find_free(fit)
    size = n
    for i in range(n):
        fit.free[i] = i
    restrict(fit, n)
    definite = cholesky(fit.matrix, n, SAFE_PIVOT, fit.lower) > SAFE_PIVOT
    if not definite:
        size = find_free(fit)
        restrict(fit, size)
        definite = cholesky(fit.matrix, size, SAFE_PIVOT, fit.lower) > SAFE_PIVOT
        errors_at_limits(fit, size)
    if definite and fit.status != FLAT:
        invert(fit, size)
    elif not (fit.status == FLAT and pseudo_invert(fit, size)):
        for i in range(n):
            fit.error[i] = -1.0
        return
    for i in range(n):
        fit.error[i] = sqrt(fit.covariance[i * n + i]) if fit.covariance[i * n + i] >= 0.0 else -1.0


def errors_at_limits(fit: Fit, size: int) -> None:
    """Give parameters at a limit the variance of how far they must move to raise the value by one half."""
    n = len(fit.x)
    for i in range(n):
        fixed = True
        for a in range(size):
            fixed = fixed and int(fit.free[a]) != i
        if fixed:
            reach = min(0.5 / abs(fit.gradient[i]), fit.high[i] - fit.low[i])
            fit.covariance[i * n + i] = reach * reach


def invert(fit: Fit, size: int) -> None:
    """Write the inverse of the Hessian of the free parameters, from Cholesky's factor."""
    n = len(fit.x)
    # the inverse of the factor, column by column
    for k in range(size):
        for i in range(k):
            fit.vectors[i * size + k] = 0.0
        fit.vectors[k * size + k] = 1.0 / fit.lower[k * size + k]
        for i in range(k + 1, size):
            rest = 0.0
            for j in range(k, i):
                rest -= fit.lower[i * size + j] * fit.vectors[j * size + k]
            fit.vectors[i * size + k] = rest / fit.lower[i * size + i]
    for a in range(size):
        i = int(fit.free[a])
        for b in range(a + 1):
            j = int(fit.free[b])
            total = 0.0
            for k in range(a, size):
                total += fit.vectors[k * size + a] * fit.vectors[k * size + b]
            fit.covariance[i * n + j] = total * fit.unit[i] * fit.unit[j]
            fit.covariance[j * n + i] = fit.covariance[i * n + j]


def pseudo_invert(fit: Fit, size: int) -> bool:
    """Write the inverse of the Hessian along the directions that have curvature; mark parameters along the others."""
    n = len(fit.x)
    if not eigen(fit.matrix, size, fit.along, fit.values, fit.vectors):
        return False
    null = max(NULL, SUSPECT * sqrt(2.0 * fit.edm))
    for a in range(size):
        i = int(fit.free[a])
        for b in range(a + 1):
            j = int(fit.free[b])
            total = 0.0
            for k in range(size):
                if fit.values[k] > null:
                    total += fit.vectors[a * size + k] * fit.vectors[b * size + k] / fit.values[k]
            fit.covariance[i * n + j] = total * fit.unit[i] * fit.unit[j]
            fit.covariance[j * n + i] = fit.covariance[i * n + j]
    for k in range(size):
        largest = 0.0
        for a in range(size):
            largest = max(largest, abs(fit.vectors[a * size + k]))
        for a in range(size):
            i = int(fit.free[a])
            if fit.values[k] <= null and abs(fit.vectors[a * size + k]) > UNTOUCHED * largest:
                fit.covariance[i * n + i] = -1.0
    return True
