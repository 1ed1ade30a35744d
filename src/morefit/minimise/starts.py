"""Where a fit that may have ended in the wrong valley is started again.

A fit of a mixture may end in a minimum that is not the lowest, such as one without one of its components. In the language
of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite, sqrt

from morefit.kernel.fit_layout import Fit

MIRROR, SWAP, UP, DOWN, BESIDE = range(
    5
)  # in the order in which they pay; from BESIDE on two for each parameter
STARTS = 4  # how many of them are tried by default
SPREAD = 20  # how many come after these where every fit is started again
ERRORS = 3.0  # along the parameter that the others widen most
ASIDE = 2.0  # errors of one parameter, to the next kink
LOOSE = 0.01  # of the way between its limits: a parameter with a larger error may have minima all over
NEAR = 2.0  # errors: a parameter so close to a limit may be one of a component that is not there
GOLDEN = 0.6180339887498949


def thorough_starts(count: int) -> int:
    """Return how many other starts a thorough fit of so many parameters has."""
    return BESIDE + 2 * count + SPREAD


def may_be_wrong(fit: Fit) -> bool:
    """Return whether the first start may have led into the wrong valley: its way was rough and ended near a limit."""
    near = False
    for i in range(len(fit.x)):
        room = min(fit.x[i] - fit.low[i], fit.high[i] - fit.x[i])
        near = near or room <= NEAR * fit.error[i]
    return near and fit.rough > 0.0


def remember_end(fit: Fit) -> None:
    """Remember where the first start led, and the valley there; the covariance is known."""
    n = len(fit.x)
    widest = 0
    most = 0.0
    for i in range(n):
        widened = fit.covariance[i * n + i] * abs(fit.hessian[i * n + i])
        if fit.error[i] >= 0.0 and widened > most:
            widest = i
            most = widened
    for i in range(n):
        fit.end[i] = fit.x[i]
        fit.end_error[i] = fit.error[i]
        fit.valley[i] = 0.0
        if most > 0.0 and fit.error[i] >= 0.0:
            fit.valley[i] = fit.covariance[widest * n + i] / sqrt(fit.covariance[widest * n + widest])


def other_start(fit: Fit, kind: int) -> None:
    """Choose another start.

    MIRROR is as far from the first start as its end, on its other side. SWAP is the end, where two parameters with
    the same limits exchange their values, as widths of two components. UP and DOWN are some errors away from the end,
    along the valley, UP with undetermined parameters of a minimum on the other side between their limits. Then each parameter
    alone is moved up, and down. All others have loosely determined parameters anywhere between their limits.
    """
    for i in range(len(fit.x)):
        x = fit.end[i]
        if kind == MIRROR:
            x = 2.0 * fit.start[i] - fit.end[i]
        elif kind == SWAP:
            x = fit.end[partner(fit, i)]
        elif (
            kind == UP
            and fit.best_rank >= 1.0
            and fit.end_error[i] < 0.0
            and isfinite(fit.high[i] - fit.low[i])
        ):
            x = fit.low[i] + fit.high[i] - fit.end[i]
        elif kind == UP:
            x = fit.end[i] + ERRORS * fit.valley[i]
        elif kind == DOWN:
            x = fit.end[i] - ERRORS * fit.valley[i]
        elif kind == BESIDE + 2 * i:
            x = fit.end[i] + ASIDE * max(fit.end_error[i], 0.0)
        elif kind == BESIDE + 2 * i + 1:
            x = fit.end[i] - ASIDE * max(fit.end_error[i], 0.0)
        elif kind >= BESIDE + 2 * len(fit.x):
            x = anywhere(fit, i, kind)
        fit.x[i] = min(max(x, fit.low[i]), fit.high[i])


def anywhere(fit: Fit, i: int, kind: int) -> float:
    """Return a place between the limits of a parameter if it is loosely determined; else its end, or its start if that is a limit.

    Places follow from the fractional parts of the golden ratio times square numbers, which fill all dimensions evenly.
    """
    width = fit.high[i] - fit.low[i]
    if isfinite(width) and not 0.0 < fit.end_error[i] < LOOSE * width:
        number = 1.0 * (kind * len(fit.x) + i)
        turns = GOLDEN * number * number
        return float(fit.low[i] + (turns - int(turns)) * width)
    if fit.low[i] < fit.end[i] < fit.high[i]:
        return float(fit.end[i])
    return float(fit.start[i])


def partner(fit: Fit, k: int) -> int:
    """Return the only other parameter with the same finite limits, or this one if there are none or several."""
    other = k
    same = 0
    for i in range(len(fit.x)):
        if i != k and fit.low[i] == fit.low[k] and fit.high[i] == fit.high[k]:
            other = i
            same += 1
    return other if same == 1 and isfinite(fit.high[k] - fit.low[k]) else k
