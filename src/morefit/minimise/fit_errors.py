"""Errors and covariance at the end of a fit, in the language of drivers (``kernel/program.py``)."""

from __future__ import annotations

from math import sqrt

from morefit.kernel.fit_layout import Fit
from morefit.kernel.program import parallel
from morefit.minimise.dense import cholesky, eigen, invert_factor
from morefit.minimise.quadratic_model import NULL, SAFE_PIVOT, SUSPECT, find_free, measure, restrict
from morefit.minimise.trust_region import DEGENERATE, FLAT

UNTOUCHED = 1e-6  # of the largest component: what is smaller in a direction is rounding


def finish(fit: Fit) -> None:
    """Compute errors and covariance at the minimum, and which parameters are at a limit.

    The covariance is the inverse of the Hessian. Where this is positive definite only for the free parameters, it is
    theirs, and a parameter that is fixed has an error of its own: that of Minuit for a parameter at a limit. It does
    not extend along flat directions; parameters that take part in one have no error.
    """
    n = len(fit.x)
    measure(fit)
    for i in parallel(n):
        fit.move[i] = 0.0
        for j in range(n):
            fit.covariance[i * n + j] = 0.0
    fit.fixed = n - find_free(fit)
    size = n
    for i in parallel(n):
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
        for i in parallel(n):
            fit.error[i] = -1.0
        return
    for i in parallel(n):
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
    invert_factor(fit.lower, size, fit.vectors)
    for a in parallel(size):
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
    for a in parallel(size):
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
            place = int(fit.free[a])
            if fit.values[k] <= null and abs(fit.vectors[a * size + k]) > UNTOUCHED * largest:
                fit.covariance[place * n + place] = -1.0
                if fit.matrix[a * size + a] != 0.0:  # it has an effect, but others can undo it
                    fit.status = DEGENERATE
    return True
