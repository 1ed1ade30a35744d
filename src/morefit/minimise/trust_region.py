"""A trust-region Newton method with exact Hessian and limits, in the language of drivers (``kernel/program.py``).

``begin`` starts a fit, ``step`` takes what was summed at the trial point and chooses the next one; ``newton_program.py``
computes errors at the end. What a step does:

1. *Accept.* The trial point is taken if all sums are finite, no event is bad, and the value does not grow. The radius
   shrinks where the quadratic model promised much more than came true, and grows where it was right.
2. *Units.* A parameter is measured in 1 / sqrt |H_ii|, but at most in a quarter of the way between its limits.
3. *Active set.* A parameter at a limit whose slope points outwards leaves the step, and comes back when that turns.
4. *Newton.* Where Cholesky's factorisation succeeds and its step is not longer than the radius, it is Newton's step.
5. *Radius.* Where that is too long, or Cholesky fails, the step as long as the radius is found by factorisations with a shift
   (More and Sorensen, SIAM J. Sci. Stat. Comput. 4, 553), so that negative curvature is followed.
   *Eigenvalues* are computed only where curvature and slope are so small that this may be the end, and at a saddle point without
   slope. A direction without curvature and without slope is *flat*: no step is taken along it, and it keeps no fit from
   converging.
6. *Limits.* The step ends at the first limit that it meets; the model is minimised again over the other parameters. The
   first steps of a rough way end a little before: a component that is gone, as its fraction is zero, does not come back.
7. *Verdict.* The fit ends when the EDM is below the goal and all eigenvalues are positive, or zero without a slope.
   Where only a product a * b is measured, the distance to the minimum makes a curvature of either sign along the flat
   direction. So an eigenvalue below SUSPECT times that distance is not believed before the fit is closer; when it
   cannot come closer, the direction is flat. Towards a point of inflection, and a minimum without curvature, the EDM
   falls as well, but by the same factor with each step, and so does the curvature: that is no minimum.
"""

from __future__ import annotations

from math import sqrt

from morefit.kernel.fit_layout import Fit
from morefit.kernel.program import parallel
from morefit.minimise.quadratic_model import (
    SUSPECT,
    UNKNOWN,
    choose_step,
    find_free,
    measure,
    restrict,
    square,
)

MOVING, CONVERGED, GIVEN_UP, FLAT, DEGENERATE = 0.0, 1.0, 2.0, 3.0, 4.0  # the status of a fit
ROUNDING = 1e-12  # of the value: so small a change is none
MAX_DOUBTS = 25.0  # steps in doubt; a valley that hardly bends needs some, rounding alone never ends
MAX_SLOW = 4.0  # steps, each as slow as towards a point of inflection,
# of the EDM is left by such a step: less next to a minimum, more towards the end of a shelf
FASTEST, SLOWEST = (0.1, 0.33)
NEAR = 20.0  # goals: an EDM before a step from where a minimum with curvature is reached
SLOPE_LEFT = 0.1  # of the slope along a parameter: more is left by a slow step,
BENT = 0.3  # which changes the curvature by more than this part
MIN_RADIUS = 1e-9  # steps so short change nothing
FAR = 1e30  # times its start, or one: a parameter without limits that goes so far has no minimum
BAD_RATIO, GOOD_RATIO = 0.1, 0.75  # of what came true to what the model promised
MIN_RATIO, SHORTFALL = 0.55, 0.5  # of what was promised, and of the value: what falls shorter went too far
GUESS = 100.0  # of the value: a start so far above its minimum was only a guess
GROWTH = 3.0  # of the radius after a good step
CAUTION, CAUTIOUS = 0.8, 4.0  # of the way to a limit, at most, and for how many first steps of a rough way
SHRINK, MIN_SHRINK, MAX_SHRINK = 0.25, 0.1, 0.5  # of a step that failed: without a finite value, and with one


def begin(fit: Fit) -> None:
    """Start at ``x``: nothing is known yet."""
    n = len(fit.x)
    fit.status = MOVING
    fit.value = UNKNOWN
    fit.edm = UNKNOWN
    fit.radius = UNKNOWN
    fit.length = 0.0
    fit.doubts = 0.0
    fit.slows = 0.0
    for i in parallel(n):
        fit.trial[i] = fit.x[i]
        fit.gradient[i] = 0.0
        for j in parallel(n):
            fit.hessian[i * n + j] = 0.0


def step(fit: Fit) -> None:
    """Accept or reject the trial point after its evaluation, and choose the next one."""
    good = is_finite(fit)
    lower = good and fit.new_value <= fit.value + ROUNDING * (1.0 + abs(fit.value))
    ratio = came_true(fit) if good else 0.0
    taken = lower and not went_too_far(fit, ratio)
    if not lower:
        fit.rough = 1.0
    fit.radius = next_radius(fit, good, taken, ratio)
    slow = taken and fit.value < UNKNOWN and is_slow(fit)
    if taken:
        accept(fit)
    if fit.value < UNKNOWN:
        move_on(fit, taken, slow)
    else:
        fit.status = GIVEN_UP


def move_on(fit: Fit, taken: bool, slow: bool) -> None:
    """Judge the best point so far; end there, or choose the next trial point."""
    n = len(fit.x)
    measure(fit)
    size = find_free(fit)
    for i in parallel(n):
        fit.move[i] = 0.0
    restrict(fit, size)
    choose_step(fit, size, fit.radius)
    radius = fit.model_radius
    edm = fit.model_edm
    bounded = fit.bounded > 0.0
    if not bounded:
        fit.rough = 1.0
        fit.saddles += 1.0
    close = bounded and edm <= fit.goal
    unsure = fit.doubtful > 0.0
    flats = fit.flats
    doubtful = unsure or slow or fit.steepness < SUSPECT * size * sqrt(2.0 * edm)
    if close and doubtful:
        fit.doubts += 1.0
    alike = slow and bounded and FASTEST * fit.edm < edm < SLOWEST * fit.edm
    fit.slows = fit.slows + 1.0 if alike else 0.0
    fit.edm = edm if bounded else UNKNOWN
    endless = slow and (fit.slows >= MAX_SLOW or fit.doubts >= MAX_DOUBTS)
    if (not taken and fit.radius < MIN_RADIUS) or (close and endless):
        fit.status = GIVEN_UP
    elif close and (not doubtful or fit.doubts >= MAX_DOUBTS):
        fit.status = FLAT if flats > 0.0 or unsure else CONVERGED
    fit.radius = radius
    if fit.status == MOVING:
        move_within_limits(fit, size, radius)
        fit.length = place(fit)
        stopped = fit.length <= 0.0 or fit.length >= UNKNOWN
        if stopped or (fit.length < MIN_RADIUS and not bounded):  # limits are in the way
            fit.status = GIVEN_UP


def place(fit: Fit) -> float:
    """Put the trial point where the move leads; return how far that is, in units, or UNKNOWN if there is no end.

    A limit that is missed by rounding is reached.
    """
    total = 0.0
    for i in range(len(fit.x)):
        there = fit.x[i] + fit.move[i]
        near = ROUNDING * abs(fit.move[i])
        if there < fit.low[i] + near:
            there = fit.low[i]
        elif there > fit.high[i] - near:
            there = fit.high[i]
        if not abs(there) < FAR * max(abs(fit.start[i]), 1.0):
            return UNKNOWN
        fit.trial[i] = there
        way = (there - fit.x[i]) / fit.unit[i]
        total += way * way
    return sqrt(total)


def is_finite(fit: Fit) -> bool:
    """Return whether the trial point has a value and all derivatives, and no bad events."""
    n = len(fit.x)
    for i in parallel(n):
        infinite = 0.0
        for j in range(i + 1):
            infinite += 0.0 if abs(fit.new_hessian[i * n + j]) < UNKNOWN else 1.0  # also of nan
        fit.along[i] = abs(fit.new_gradient[i]) if infinite == 0.0 else UNKNOWN
    good = has_value(fit)
    for i in range(n):
        good = good and fit.along[i] < UNKNOWN
    return good


def has_value(fit: Fit) -> bool:
    """Return whether the trial point has a value, and no bad events."""
    return bool(fit.bad <= 0.0 and abs(fit.new_value) < UNKNOWN)


def has_slopes(fit: Fit) -> bool:
    """Return whether the trial point has a value and first derivatives, and no bad events."""
    good = has_value(fit)
    for i in range(len(fit.x)):
        good = good and abs(fit.new_gradient[i]) < UNKNOWN
    return good


def came_true(fit: Fit) -> float:
    """Return how much of what the model promised for the last step came true; one where this is all rounding."""
    n = len(fit.x)
    for i in parallel(n):
        bend = 0.0
        for j in range(n):
            bend += fit.hessian[i * n + j] * (fit.trial[j] - fit.x[j])
        fit.along[i] = (fit.trial[i] - fit.x[i]) * (fit.gradient[i] + 0.5 * bend)
    expected = 0.0
    for i in range(n):
        expected -= fit.along[i]
    if fit.value == UNKNOWN or abs(expected) <= ROUNDING * (1.0 + abs(fit.value)):
        return 1.0
    return float((fit.value - fit.new_value) / expected)


def is_slow(fit: Fit) -> bool:
    """Return whether the last step was slow along a parameter that no limit stops.

    Steps from far away may be; there only parameters with errors as wide as a part of their limits are looked at.
    """
    n = len(fit.x)
    near = fit.edm < NEAR * fit.goal
    slow = False
    for i in range(n):
        before = fit.hessian[i * n + i]
        wide = 2.0 * before * fit.unit[i] * fit.unit[i] < 1.0
        at_low = fit.trial[i] <= fit.low[i] and fit.new_gradient[i] > 0.0
        at_high = fit.trial[i] >= fit.high[i] and fit.new_gradient[i] < 0.0
        if (near or wide) and not (at_low or at_high):
            slow = slow or is_slow_along(
                fit.gradient[i], fit.new_gradient[i], before, fit.new_hessian[i * n + i]
            )
    return slow


def is_slow_along(slope: float, new_slope: float, curvature: float, new_curvature: float) -> bool:
    """Return whether a step left much of the slope along a parameter, and another curvature.

    All steps are that towards a point of inflection, or a minimum without curvature: the distance to it makes the curvature.
    """
    bent = abs(new_curvature - curvature) > BENT * max(abs(curvature), abs(new_curvature))
    return bent and abs(new_slope) > SLOPE_LEFT * abs(slope)


def went_too_far(fit: Fit, ratio: float) -> bool:
    """Return whether a step to a lower point fell so short of its promise that another valley may lie between.

    Where the curvature is negative, or the promise that of a start that was only a guess, it may go where it can, and so may
    later steps, which follow a valley.
    """
    if ratio >= MIN_RATIO or fit.edm == UNKNOWN or fit.tries > CAUTIOUS:
        return False
    gain = fit.value - fit.new_value
    return bool(gain * (1.0 - ratio) > SHORTFALL * ratio and gain < GUESS * ratio)


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
    for i in parallel(n):
        fit.x[i] = fit.trial[i]
        fit.gradient[i] = fit.new_gradient[i]
        # an angle whose slope leads beyond a limit goes on at the other one, where the sums are the same
        if fit.edge[i] < 0.0 and fit.trial[i] <= fit.low[i] and fit.new_gradient[i] > 0.0:
            fit.x[i] = fit.high[i]
        elif fit.edge[i] < 0.0 and fit.trial[i] >= fit.high[i] and fit.new_gradient[i] < 0.0:
            fit.x[i] = fit.low[i]
        for j in parallel(i + 1):
            fit.hessian[i * n + j] = fit.new_hessian[i * n + j]
            fit.hessian[j * n + i] = fit.new_hessian[i * n + j]


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
        choose_step(fit, size, min(radius - length, radius))


def way_to_limit(fit: Fit, a: int) -> float:
    """Return which part of its step brings a free parameter to a limit; more than one if none does."""
    towards = fit.part[a] * fit.unit[int(fit.free[a])]
    room = room_for(fit, a)
    return float(room / towards) if abs(towards) > abs(room) else 2.0


def room_for(fit: Fit, a: int) -> float:
    """Return how far a free parameter may still move in the direction of its step."""
    i = int(fit.free[a])
    limit = fit.high[i] if fit.part[a] > 0.0 else fit.low[i]
    part = CAUTION if fit.rough > 0.0 and fit.tries < CAUTIOUS and fit.edge[i] >= 0.0 else 1.0
    return float(part * (limit - fit.x[i]) - fit.move[i])
