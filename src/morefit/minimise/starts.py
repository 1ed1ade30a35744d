"""Where a fit that ended at a limit, or at no minimum, is started again: in other valleys, but no farther away.

A fit of a mixture may end in a minimum that is not the lowest, such as one without one of its components. In the language
of drivers (``kernel/program.py``).
"""

from __future__ import annotations

from math import sqrt

from morefit.kernel.fit_layout import Fit

MIRROR, UP, DOWN, STARTS = range(4)  # in the order in which they pay, and how many they are
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
    along the valley.
    """
    for i in range(len(fit.x)):
        x = fit.end[i]
        if kind == MIRROR:
            x = 2.0 * fit.start[i] - fit.end[i]
        elif kind == UP:
            x = fit.end[i] + ERRORS * fit.valley[i]
        else:
            x = fit.end[i] - ERRORS * fit.valley[i]
        fit.x[i] = min(max(x, fit.low[i]), fit.high[i])
