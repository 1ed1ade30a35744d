"""Where a fit that ended at a limit, or at no minimum, is started again: in other valleys, but no farther away.

A fit of a mixture may end in a minimum that is not the lowest, such as one without one of its components. In the language
of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import isfinite, sqrt

from morefit.kernel.fit_layout import Fit

MIRROR, UP, DOWN, SWAP = range(4)  # in the order in which they pay where a fit ended at a limit
STARTS, THOROUGH = 3, 4  # how many of them are tried by default, and where every fit is started again
ERRORS = 3.0  # along the parameter that the others widen most


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
        fit.valley[i] = 0.0
        if most > 0.0 and fit.error[i] >= 0.0:
            fit.valley[i] = fit.covariance[widest * n + i] / sqrt(fit.covariance[widest * n + widest])


def other_start(fit: Fit, kind: int) -> None:
    """Choose another start.

    MIRROR is as far from the first start as its end, on its other side. UP and DOWN are some errors away from the end,
    along the valley. SWAP is the end, where parameters with the same limits exchange their values, as widths of two
    components: the first with the last of them, and so on.
    """
    for i in range(len(fit.x)):
        x = fit.end[i]
        if kind == MIRROR:
            x = 2.0 * fit.start[i] - fit.end[i]
        elif kind == UP:
            x = fit.end[i] + ERRORS * fit.valley[i]
        elif kind == DOWN:
            x = fit.end[i] - ERRORS * fit.valley[i]
        else:
            x = fit.end[partner(fit, i)]
        fit.x[i] = min(max(x, fit.low[i]), fit.high[i])


def partner(fit: Fit, k: int) -> int:
    """Return the parameter with the same finite limits that is as far from the last of them as this one is from the first."""
    width = fit.high[k] - fit.low[k]
    before = 0
    total = 0
    for i in range(len(fit.x)):
        if fit.low[i] == fit.low[k] and fit.high[i] == fit.high[k]:
            total += 1
            if i < k:
                before += 1
    other = k
    seen = 0
    for i in range(len(fit.x)):
        if fit.low[i] == fit.low[k] and fit.high[i] == fit.high[k]:
            if seen == total - 1 - before and isfinite(width):
                other = i
            seen += 1
    return other
