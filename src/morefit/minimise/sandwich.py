"""A whole fit of weighted events, as a program: a fit as of any events, then errors from its squared scores."""

from __future__ import annotations

from math import sqrt

from morefit.arrays import Integers
from morefit.kernel.fit_layout import Fit
from morefit.kernel.program import Stage, parallel
from morefit.minimise.newton_program import advance, begin_fit, draw, sums

NOT_ONE = 0.1  # more than rounding can change a diagonal element of H^-1 H
# squared ones, summed over the events at the trial point: the lower triangle of the new Hessian
scores = Stage("scores")


def fit_toy(job: Integers, fit: Fit) -> None:
    """Draw and fit one toy of weighted events."""
    draw(job, fit)
    begin_fit(fit)
    while fit.running > 0.0:
        sums(job, fit)
        advance(fit)
    begin_scores(fit)
    scores(job, fit)
    correct_errors(fit)


def begin_scores(fit: Fit) -> None:
    """Return to where the fit ended."""
    for i in parallel(len(fit.x)):
        fit.trial[i] = fit.x[i]


def correct_errors(fit: Fit) -> None:
    """Correct errors and covariance for weights: H^-1 C H^-1 with the sum C of squared weighted scores.

    A variance that does not come from the Hessian, of a parameter at a limit, stays as it is, and a parameter without an
    error has none.
    """
    n = len(fit.x)
    for i in parallel(n):
        one = 0.0
        for k in range(n):
            one += fit.covariance[i * n + k] * fit.hessian[k * n + i]
        limited = fit.x[i] <= fit.low[i] or fit.x[i] >= fit.high[i]
        fit.part[i] = 0.0 if limited and abs(one - 1.0) > NOT_ONE else 1.0
    for i in parallel(n):
        for j in range(n):
            left = 0.0
            for k in range(n):
                left += fit.part[k] * fit.covariance[i * n + k] * fit.new_hessian[max(j, k) * n + min(j, k)]
            fit.matrix[i * n + j] = left
    for i in parallel(n):
        for j in range(i + 1):
            both = 0.0
            for k in range(n):
                both += fit.matrix[i * n + k] * fit.part[k] * fit.covariance[k * n + j]
            fit.lower[i * n + j] = both
    for i in parallel(n):
        for j in range(n):
            if i != j:
                corrected = fit.lower[max(i, j) * n + min(i, j)]
                fit.covariance[i * n + j] = fit.part[i] * fit.part[j] * corrected
        if fit.part[i] > 0.0 and fit.error[i] >= 0.0:
            fit.covariance[i * n + i] = fit.lower[i * n + i]
            fit.error[i] = sqrt(fit.lower[i * n + i]) if fit.lower[i * n + i] >= 0.0 else -1.0
