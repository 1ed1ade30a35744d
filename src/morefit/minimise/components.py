"""Where a component that seems to be absent may be: a scan of its shape, one evaluation for each place.

The amount of a component (a yield, a fraction) that ends within ABSENT errors of none is put there, and the other parameters
take one Newton step. Parameters that have no effect then are its shape, such as place and width of a peak. At some of their
values the slope along the amount is evaluated: the square of its score is what the component promises at each place, and the
best of them are starts. In the language of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite, sqrt

from morefit.kernel.fit_layout import PLACES, Fit
from morefit.kernel.program import parallel
from morefit.minimise.quadratic_model import (
    UNKNOWN,
    WIDEST,
    find_free,
    measure,
    minimise_model,
    own_error,
    restrict,
)
from morefit.minimise.trust_region import accept, is_finite, move_within_limits, place

# errors: a component with so little may be elsewhere; one of a fit that wandered, with more
ABSENT, LITTLE = 2.0, 6.0
GROWN = 2.0  # times its start: the width of a peak that may have taken the place of a background
PRESENT = 15.0  # of the value: a component without which it rises by more is there, however large its error
REST = 0.1  # of the value: the other parameters take a step if that promises more,
FRESH_STEPS = 4.0  # or some, from their start
GONE = 0.5  # errors: one with one parameter of shape is only scanned if there is no more of it
FEW = 5.0  # times: the upper limit of an amount is so much farther from none than a negative lower one
FINE = 10  # places with a narrow shape; those with a wide one follow
WIDTHS = 4  # places where a width is the only parameter of the shape
SCALES = 9  # places of a lifetime, whose limits differ by more than LONG times, or of a rate, which may be next to zero
LONG = 100.0
# times the lower limit, which is above zero: a parameter with more room is a width, if it is alone and if it is not
SMALL_SCALE, SCALE = 2.0, 4.0
MIN_SCORE = 2e-4  # of the value: a component that promises less is none
GOLDEN = 0.6180339887498949


def begin_scan(fit: Fit) -> None:
    """Look for components that may be elsewhere, at the end of the first start."""
    fit.absent = -1.0
    fit.shapes = 0.0
    for k in range(PLACES):
        fit.score[k] = 0.0
    next_amount(fit)
    if fit.scan > 0.0 and fit.end[int(fit.absent)] == fit.trial[int(fit.absent)]:  # it ended there
        leave_out(fit)


def next_amount(fit: Fit) -> None:
    """Put the next amount that may be none at its limit, to be evaluated; no scan goes on if there is none."""
    fit.scan = 0.0
    most = LITTLE if fit.wandered > 0.0 or has_grown(fit) else ABSENT
    for i in range(int(fit.absent) + 1, len(fit.x)):
        if fit.scan == 0.0 and little(fit, i) <= most:
            fit.absent = i
            fit.scan = 1.0
    fit.refitted = 0.0
    if fit.scan > 0.0:
        leave(fit, int(fit.absent))


def leave(fit: Fit, i: int) -> None:
    """Put an amount at its limit, and the other parameters where the valley of the first end leads."""
    n = len(fit.x)
    for j in parallel(n):
        fit.move[j] = 0.0
        fit.x[j] = fit.best[j]
        fit.gradient[j] = fit.best_gradient[j]
        for k in range(n):
            fit.hessian[j * n + k] = fit.best_hessian[j * n + k]
    fit.move[i] = none_of(fit, i) - fit.end[i]
    size = model_of_rest(fit)
    move_within_limits(fit, size, fit.model_radius)
    place(fit)
    if is_fresh(fit):
        for j in range(n):
            fit.trial[j] = fit.start[j]
    fit.trial[i] = none_of(fit, i)


def little(fit: Fit, i: int) -> float:
    """Return how many errors an amount ended from none; UNKNOWN for what is no amount.

    The limits of an amount start at zero, or somewhat below: the yield of a signal that may be negative, after a rough way. What moves something along an
    observable, such as a mean with limits from zero, is none.
    """
    negative = fit.low[i] < 0.0 and fit.high[i] > FEW * -fit.low[i] and fit.rough > 0.0
    if fit.edge[i] != 0.0 or (fit.low[i] != 0.0 and not negative):
        return UNKNOWN
    room = abs(fit.end[i] - none_of(fit, i))
    if room <= 0.0 or fit.end_error[i] < 0.0:
        return 0.0
    return float(room / fit.end_error[i]) if fit.end_error[i] > 0.0 else UNKNOWN


def none_of(fit: Fit, i: int) -> float:
    """Return the limit where a component has no events: zero, or one for what a fraction leaves to the others."""
    return 1.0 if fit.high[i] == 1.0 and fit.end[i] > 0.5 else 0.0


def scan(fit: Fit) -> None:
    """Take what was summed at a point of the scan, and choose the next one."""
    good = is_finite(fit)
    if fit.scan > 1.0:
        judge_place(fit, good)
    elif good and (fit.refitted == 0.0 or fit.new_value < fit.value):
        accept(fit)
        refit_rest(fit)
    elif fit.refitted > 0.0:
        leave_out(fit)
    else:
        next_amount(fit)


def refit_rest(fit: Fit) -> None:
    """Let the other parameters take a step now that the component is gone, unless it is not absent at all."""
    for j in range(len(fit.x)):
        fit.move[j] = 0.0
    size = model_of_rest(fit)
    lowest = fit.value - fit.model_edm if fit.bounded > 0.0 else fit.value
    steps = FRESH_STEPS if is_fresh(fit) else 1.0
    promising = fit.bounded > 0.0 and fit.model_edm > REST
    if lowest > fit.best_value + PRESENT and (steps == 1.0 or fit.refitted >= steps):
        next_amount(fit)
    elif fit.refitted < steps and (promising or lowest > fit.best_value + PRESENT):
        move_within_limits(fit, size, fit.model_radius)
        place(fit)
        fit.refitted += 1.0
    else:
        leave_out(fit)


def is_fresh(fit: Fit) -> bool:
    """Return whether the other parameters begin at their start without a component: one whose width has grown, and that is there."""
    return has_grown(fit) and little(fit, int(fit.absent)) > ABSENT


def model_of_rest(fit: Fit) -> int:
    """Minimise the quadratic model of the parameters that are free but for the amount, which has moved; return their number."""
    measure(fit)
    size = 0
    for a in range(find_free(fit)):
        if int(fit.free[a]) != int(fit.absent):
            fit.free[size] = fit.free[a]
            size += 1
    restrict(fit, size)
    minimise_model(fit, size, UNKNOWN)
    return size


def leave_out(fit: Fit) -> None:
    """Go to the first place of the shape of a component without which the derivatives are known, if it has any."""
    for j in range(len(fit.x)):
        fit.without[j] = fit.x[j]
    shapes = find_shape(fit)
    doubtful = fit.doubtful_end >= 1.0 and places(fit) == SCALES
    rest = fit.low[int(fit.absent)] == 0.0 and little(fit, int(fit.absent)) > GONE
    if shapes == 0 or (shapes == 1 and rest and not doubtful):
        fit.shapes = max(fit.shapes, 0.5 * shapes)
        next_amount(fit)
    else:
        fit.shapes = 1.0 * shapes
        go_to_place(fit, 0)


def judge_place(fit: Fit, good: bool) -> None:
    """Compute what the component promises at the present place, and go to the next one."""
    i = int(fit.absent)
    k = int(fit.scan) - 2
    slope = fit.new_gradient[i] if none_of(fit, i) == 0.0 else -fit.new_gradient[i]
    bend = fit.new_hessian[i * len(fit.x) + i]
    if good and slope < 0.0 and bend > 0.0:
        fit.score[k] = 0.5 * slope * slope / bend
        fit.amount[k] = -slope / bend
    go_to_place(fit, k + 1)


def go_to_place(fit: Fit, k: int) -> None:
    """Put the trial point at a place of the scan; end the scan after the last one."""
    fit.scan = k + 2.0 if k < places(fit) else 0.0
    if fit.scan == 0.0 and places(fit) < PLACES:
        keep_summits(fit)
    i = int(fit.absent)
    for j in range(len(fit.x)):
        fit.trial[j] = place_of(fit, j, k) if fit.shape[j] > 0.0 else fit.without[j]
    fit.trial[i] = none_of(fit, i)


def find_shape(fit: Fit) -> int:
    """Mark the parameters that have no effect without the component; return how many they are.

    Where there was some of it, those that had no effect before are not its own.
    """
    n = len(fit.x)
    i = int(fit.absent)
    gone = fit.end[i] == none_of(fit, i)
    shapes = 0
    for j in range(n):
        fit.shape[j] = 0.0
        widest = own_error(fit, j, WIDEST)
        before = abs(fit.best_hessian[j * n + j])  # at the end of the first start
        if (
            j != i
            and abs(fit.hessian[j * n + j]) * widest * widest < 0.5
            and (gone or before * widest * widest >= 0.5)
        ):
            fit.shape[j] = 1.0
            shapes += 1
    return shapes


def is_width(fit: Fit, j: int, room: float) -> bool:
    """Return whether a parameter that moves nothing is positive, with so much room between its limits that it is one of scale."""
    wide = fit.low[j] > 0.0 and fit.high[j] > room * fit.low[j] and isfinite(fit.high[j])
    return bool(wide and fit.edge[j] == 0.0)


def has_grown(fit: Fit) -> bool:
    """Return whether a rough way widened a width so much that its peak may have taken the place of a background."""
    grown = False
    for j in range(len(fit.x)):
        grown = grown or (is_width(fit, j, SCALE) and fit.end[j] > GROWN * fit.start[j])
    return bool(grown and fit.rough > 0.0)


def is_scale(fit: Fit, j: int) -> bool:
    """Return whether a parameter of a shape with several is a width; where all may be, the one that reaches farthest is a place."""
    scale = False
    for i in range(len(fit.x)):
        if i != j and fit.shape[i] > 0.0:
            scale = scale or not is_width(fit, i, SCALE) or fit.high[i] > fit.high[j]
    return scale and is_width(fit, j, SCALE)


def is_rate(fit: Fit, j: int) -> bool:
    """Return whether a parameter is negative, up to zero, as the slope of an exponential."""
    return bool(isfinite(fit.low[j]) and fit.low[j] < 0.0 and fit.high[j] == 0.0)


def places(fit: Fit) -> int:
    """Return at how many places a shape is looked for."""
    shapes = 0
    only = 0
    for j in range(len(fit.x)):
        if fit.shape[j] > 0.0:
            shapes += 1
            only = j
    if shapes > 1:
        return PLACES
    if is_width(fit, only, LONG) or is_rate(fit, only):
        return SCALES
    return WIDTHS if is_width(fit, only, SMALL_SCALE) else FINE


def place_of(fit: Fit, j: int, k: int) -> float:
    """Return the value of a parameter of the shape at a place: evenly between its limits, or between their logarithms."""
    ratio = sqrt(fit.high[j] / fit.low[j]) if is_width(fit, j, SMALL_SCALE) else 1.0
    fourth = sqrt(ratio)
    if places(fit) == SCALES:
        part = 1.0 / sqrt(fourth) if ratio > 1.0 else 0.5
        scale = fit.high[j] if ratio > 1.0 else fit.low[j]
        for _ in range(k):
            scale *= part
        return float(scale)
    if places(fit) == WIDTHS:
        width = fit.low[j] if k == 0 else fit.high[j]
        if k == 1:
            width = fit.low[j] * ratio
        elif k == 2:
            width = fit.low[j] * ratio * fourth
        return float(width)
    if is_scale(fit, j):
        return float(fit.low[j] * fourth * sqrt(fourth) if k < FINE else fit.low[j] * ratio * fourth)
    if not isfinite(fit.high[j] - fit.low[j]):
        return float(fit.end[j])
    before = 0
    for i in range(j):
        if fit.shape[i] > 0.0 and not is_scale(fit, i):
            before += 1
    part = (k + 0.5) / FINE if k < FINE else (k - FINE + 0.5) / (PLACES - FINE)
    if before > 0:
        turns = GOLDEN * before * (k + 1.0)
        part = turns - int(turns)
    return float(fit.low[j] + part * (fit.high[j] - fit.low[j]))


def best_place(fit: Fit) -> int:
    """Return the place that promises most of those that are left, -1 if none does."""
    best = -1
    most = MIN_SCORE
    for k in range(PLACES):
        if fit.score[k] > most:
            best = k
            most = fit.score[k]
    return best


def keep_summits(fit: Fit) -> None:
    """Forget places of the only parameter of a shape that promise less than a neighbour: from there the fit leads to the same end."""
    before = 0.0
    for k in range(PLACES):
        here = fit.score[k]
        after = fit.score[k + 1] if k + 1 < PLACES else 0.0
        if here < before or here < after:
            fit.score[k] = 0.0
        before = here


def start_at_place(fit: Fit) -> None:
    """Start with the component at the place that promises most; that is not a start again."""
    k = best_place(fit)
    i = int(fit.absent)
    go_to_place(fit, k)
    for j in range(len(fit.x)):
        fit.x[j] = fit.trial[j]
    amount = min(fit.amount[k], 0.5 * (fit.high[i] - fit.low[i]))
    fit.x[i] = amount if none_of(fit, i) == 0.0 else fit.high[i] - amount
    fit.scan = 0.0
    fit.score[k] = 0.0
