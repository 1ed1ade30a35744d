"""Where a component that seems to be absent may be: a scan of its shape, one evaluation for each place.

The amount of a component (a yield, a fraction) that ends within ABSENT errors of none is put there. Parameters that have no
effect then are its shape, such as place and width of a peak. At some of their values the slope along the amount is
evaluated: the square of its score is what the component promises at each place, and the best of them are starts. In the
language of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite, sqrt

from morefit.kernel.fit_layout import PLACES, Fit
from morefit.minimise.quadratic_model import UNKNOWN, WIDEST, own_error
from morefit.minimise.trust_region import accept, is_finite

ABSENT = 2.0  # errors: a component with so little may be elsewhere
GONE = 0.5  # errors: one with one parameter of shape is only scanned if there is no more of it
FINE = 10  # places with a narrow shape; those with a wide one follow
WIDTHS = 4  # places where a width is the only parameter of the shape
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
    for i in range(int(fit.absent) + 1, len(fit.x)):
        if fit.scan == 0.0 and little(fit, i) <= ABSENT:
            fit.absent = i
            fit.scan = 1.0
    for i in range(len(fit.x)):
        fit.trial[i] = fit.end[i]
    if fit.scan > 0.0:
        i = int(fit.absent)
        fit.trial[i] = none_of(fit, i)


def little(fit: Fit, i: int) -> float:
    """Return how many errors an amount ended from none; UNKNOWN for what is no amount, which starts at zero."""
    if fit.low[i] != 0.0:
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
    elif good:
        accept(fit)
        leave_out(fit)
    else:
        next_amount(fit)


def leave_out(fit: Fit) -> None:
    """Go to the first place of the shape of a component without which the derivatives are known, if it has any."""
    shapes = find_shape(fit)
    fit.shapes = max(fit.shapes, 1.0 * shapes)
    if shapes == 0 or (shapes == 1 and little(fit, int(fit.absent)) > GONE):
        next_amount(fit)
    else:
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
    i = int(fit.absent)
    for j in range(len(fit.x)):
        fit.trial[j] = place_of(fit, j, k) if fit.shape[j] > 0.0 else fit.end[j]
    fit.trial[i] = none_of(fit, i)


def find_shape(fit: Fit) -> int:
    """Mark the parameters that have no effect without the component; return how many they are."""
    shapes = 0
    for j in range(len(fit.x)):
        fit.shape[j] = 0.0
        curvature = abs(fit.hessian[j * len(fit.x) + j])
        if j != int(fit.absent) and curvature * own_error(fit, j, WIDEST) * own_error(fit, j, WIDEST) < 0.5:
            fit.shape[j] = 1.0
            shapes += 1
    return shapes


def is_width(fit: Fit, j: int, room: float) -> bool:
    """Return whether a parameter is positive, with so much room between its limits that it is one of scale."""
    return bool(fit.low[j] > 0.0 and fit.high[j] > room * fit.low[j] and isfinite(fit.high[j]))


def places(fit: Fit) -> int:
    """Return at how many places a shape is looked for."""
    shapes = 0
    widths = 0
    for j in range(len(fit.x)):
        if fit.shape[j] > 0.0:
            shapes += 1
            widths += 1 if is_width(fit, j, SMALL_SCALE) else 0
    if shapes > 1:
        return PLACES
    return WIDTHS if widths == 1 else FINE


def place_of(fit: Fit, j: int, k: int) -> float:
    """Return the value of a parameter of the shape at a place: evenly between its limits, or between their logarithms."""
    ratio = sqrt(fit.high[j] / fit.low[j]) if is_width(fit, j, SMALL_SCALE) else 1.0
    fourth = sqrt(ratio)
    if places(fit) == WIDTHS:
        width = fit.low[j] if k == 0 else fit.high[j]
        if k == 1:
            width = fit.low[j] * ratio
        elif k == 2:
            width = fit.low[j] * ratio * fourth
        return float(width)
    if is_width(fit, j, SCALE):
        return float(fit.low[j] * fourth * sqrt(fourth) if k < FINE else fit.low[j] * ratio * fourth)
    if not isfinite(fit.high[j] - fit.low[j]):
        return float(fit.end[j])
    before = 0
    for i in range(j):
        if fit.shape[i] > 0.0 and not is_width(fit, i, SCALE):
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


def start_at_place(fit: Fit) -> None:
    """Start with the component at the place that promises most; that is not a start again."""
    k = best_place(fit)
    i = int(fit.absent)
    go_to_place(fit, k)
    for j in range(len(fit.x)):
        fit.x[j] = fit.trial[j]
    amount = min(fit.amount[k], 0.5 * (fit.high[i] - fit.low[i]))
    fit.x[i] = fit.low[i] + amount if none_of(fit, i) == 0.0 else fit.high[i] - amount
    fit.scan = 0.0
    fit.score[k] = 0.0
