"""A whole fit as a program, written once: draw a toy, sum, step, repeat until it has converged, and errors at its end."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite, sqrt

from morefit.arrays import Integers
from morefit.kernel.fit_layout import Fit, FitLayout
from morefit.kernel.program import Driver, Stage, parallel
from morefit.minimise.components import begin_scan, scan
from morefit.minimise.dense import cholesky, eigen, invert_factor
from morefit.minimise.loose import is_steep, look, next_value, recentre
from morefit.minimise.quadratic_model import NULL, SAFE_PIVOT, SUSPECT, UNKNOWN, find_free, measure, restrict
from morefit.minimise.starts import (
    AGAIN,
    EDGE,
    may_look,
    next_start,
    other_start,
    remember_end,
)
from morefit.minimise.survey import may_survey, survey
from morefit.minimise.trust_region import (
    CONVERGED,
    DEGENERATE,
    FLAT,
    MIN_RADIUS,
    MOVING,
    begin,
    has_slopes,
    step,
)

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
        for j in parallel(n):
            fit.covariance[i * n + j] = 0.0
    fit.fixed = n - find_free(fit)
    size = n
    for i in parallel(n):
        fit.free[i] = i
    restrict(fit, n)
    definite = cholesky(fit.matrix, 0.0, n, SAFE_PIVOT, fit.lower) > SAFE_PIVOT
    if not definite:
        size = find_free(fit)
        restrict(fit, size)
        definite = cholesky(fit.matrix, 0.0, size, SAFE_PIVOT, fit.lower) > SAFE_PIVOT
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
            fit.covariance[i * n + i] = reach * reach * fit.value_unit


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


# of the value, one error: a minimum is worse than an end so much lower from which nothing leads down
HIGHER = 0.5
MUCH = 10.0  # of the value: an end so much lower than the first is one of which nothing was known when other starts were chosen
MAX_ROUNDS = 3.0  # of other starts, each from an end that is so much lower than the one before
SAME = 20.0  # goals: an end that is no higher than the best by more is the same
PROMISE = 3.0  # times the EDM: another start that promises less is given up
CLOSE_BY = 0.05  # errors, and EDM: a start whose next step leads so close to the best end leads back to it,
CURVED = 0.05  # if it promises the same value but for so much of the EDM
RIPPLE = 0.03  # of the value: kinks make minima that are lower by less, which no step promises
draw = Stage("draw")  # the events of a toy
sums = Stage("sums")  # over its events, at the trial point


def fit_toy(job: Integers, fit: Fit) -> None:
    """Draw and fit one toy."""
    draw(job, fit)
    begin_fit(fit)
    while fit.running > 0.0:
        sums(job, fit)
        advance(fit)


def begin_fit(fit: Fit) -> None:
    """Begin at the start."""
    for i in parallel(len(fit.x)):
        fit.x[i] = fit.start[i]
    begin(fit)
    fit.steps = 0.0
    fit.tries = 0.0
    fit.starts = 0.0
    fit.returns = 0.0
    fit.rough = 0.0
    fit.saddles = 0.0
    fit.rounds = 0.0
    fit.recentred = 0.0
    fit.shallow = 0.0
    fit.scan = 0.0
    fit.place = 0.0
    fit.shapes = 0.0
    fit.survey = 0.0
    fit.surveyed = 0.0
    fit.surveys = 0.0
    fit.valleys = 0.0
    fit.roams = 0.0
    fit.roam_returns = 0.0
    fit.best_rank = -1.0
    fit.best_value = UNKNOWN
    fit.running = 1.0


def advance(fit: Fit) -> None:
    """Take a step after the sums at the trial point, and end there or start again when it leads no further."""
    if fit.value_unit != 1.0:
        divide_sums(fit)
    fit.steps += 1.0
    if fit.scan > 0.0:
        scan(fit)
        if fit.scan == 0.0:
            go_on(fit, False)
        return
    if fit.place > 0.0:
        look(fit)
        if fit.place == 0.0:
            start_again(fit, False)
        return
    if fit.survey > 0.0:
        survey(fit)
        if fit.survey == 0.0:
            start_again(fit, False)
        return
    step(fit)
    fit.tries += 1.0
    if fit.steps == 1.0 and fit.value == UNKNOWN and has_slopes(fit):
        begin_in_middle(fit)
        return
    if fit.steps == 1.0:
        for i in range(len(fit.x)):
            fit.first_bend[i] = fit.hessian[i * len(fit.x) + i]
    known = fit.starts > 0.0 and fit.best_rank >= 1.0
    worse = known and fit.value - PROMISE * fit.edm - RIPPLE > fit.best_value
    if fit.starts == EDGE + AGAIN and fit.tries == 1.0:
        worse = is_steep(fit) or worse
    if fit.starts > 0.0 and fit.best_rank > 0.0 and fit.status == MOVING and returns(fit):
        fit.returns += 1.0
        fit.roam_returns += 1.0 if fit.roams > 0.0 else 0.0
        start_again(fit, False)
    elif fit.status != MOVING or fit.tries >= fit.max_steps or worse:
        end_attempt(fit)


def begin_in_middle(fit: Fit) -> None:
    """Begin with places in the middle of their limits: where one starts far outside of the range, there are no second derivatives."""
    for i in range(len(fit.x)):
        if fit.edge[i] > 0.0 and isfinite(fit.high[i] - fit.low[i]):
            fit.x[i] = 0.5 * (fit.low[i] + fit.high[i])
    begin(fit)


def divide_sums(fit: Fit) -> None:
    """Divide the sums at the trial point by their unit, so that whether something is large does not depend on weights."""
    n = len(fit.x)
    fit.new_value /= fit.value_unit
    for i in parallel(n):
        fit.new_gradient[i] /= fit.value_unit
        for j in range(i + 1):
            fit.new_hessian[i * n + j] /= fit.value_unit


def multiply_result(fit: Fit) -> None:
    """Return to sums as they are, at the end of a fit; variances of parameters at a limit have no unit."""
    n = len(fit.x)
    fit.value *= fit.value_unit
    fit.edm *= fit.value_unit
    for i in parallel(n):
        fit.gradient[i] *= fit.value_unit
        for j in parallel(n):
            fit.hessian[i * n + j] *= fit.value_unit
            fit.covariance[i * n + j] /= fit.value_unit
        if fit.error[i] >= 0.0:
            fit.error[i] = sqrt(fit.covariance[i * n + i])


def returns(fit: Fit) -> bool:
    """Return whether the next step leads to the best end so far."""
    n = len(fit.x)
    if fit.value < fit.best_value - fit.goal:
        return False
    if abs(fit.value - fit.edm - fit.best_value) > fit.goal + CURVED * fit.edm or fit.edm > CLOSE_BY:
        return False
    distance = 0.0
    for i in range(n):
        for j in range(n):
            between = (fit.trial[i] - fit.best[i]) * (fit.trial[j] - fit.best[j])
            distance += fit.best_hessian[i * n + j] * between
    return distance < CLOSE_BY * CLOSE_BY


def end_attempt(fit: Fit) -> None:
    """Compute the errors; go on elsewhere if this may be the wrong minimum, or none."""
    status = fit.status
    finish(fit)
    settled = fit.edm < HIGHER or fit.radius < MIN_RADIUS  # close to a minimum, or at a kink
    rank = 2.0 if fit.status == CONVERGED else 1.0 if fit.status == FLAT else 0.5 if settled else 0.0
    best = rank > fit.best_rank or (rank == fit.best_rank and fit.value < fit.best_value - fit.goal)
    if min(rank, fit.best_rank) > 0.0 and abs(fit.value - fit.best_value) > HIGHER:
        best = bool(fit.value < fit.best_value)
    first = fit.starts == 0.0
    if best:
        keep(fit, rank, status)
        fit.returns = 0.0
        fit.roam_returns = 0.0
        if fit.starts == EDGE + AGAIN:
            recentre(fit)
    elif fit.best_rank > 0.0 and fit.value < fit.best_value + SAME * fit.goal:
        fit.returns += 1.0
        fit.roam_returns += 1.0 if fit.roams > 0.0 else 0.0
    if first:
        begin_round(fit)
    if fit.scan == 0.0:
        go_on(fit, best)


def begin_round(fit: Fit) -> None:
    """Begin to look for lower ends than the present one, the best so far."""
    remember_end(fit, fit.best_rank == 2.0)
    fit.starts = 0.0
    fit.returns = 0.0
    fit.side = 0.0
    if fit.max_starts > 0.0 and fit.value < UNKNOWN:
        begin_scan(fit)


def go_on(fit: Fit, best: bool) -> None:
    """Look at loose parameters at the end of the first start, if that is doubtful; then start again."""
    if may_look(fit):
        next_value(fit)
    if fit.place == 0.0:
        start_again(fit, best)


def start_again(fit: Fit, best: bool) -> None:
    """Go on from another start if there is a reason for one, at last take the best end."""
    kind = next_start(fit)
    here = best
    if kind >= int(fit.max_starts) and may_survey(fit):
        return
    if kind >= int(fit.max_starts) and is_much_lower(fit):
        restore(fit)
        here = True
        fit.rounds += 1.0
        begin_round(fit)
        if fit.scan > 0.0:
            return
        kind = next_start(fit)
    if kind < int(fit.max_starts):
        other_start(fit, kind)
        fit.starts = kind + (AGAIN if kind == EDGE else 1.0)
        begin(fit)
        fit.tries = 0.0
    else:
        fit.running = 0.0
        if not here:
            restore(fit)
        if fit.value_unit != 1.0:
            multiply_result(fit)


def is_much_lower(fit: Fit) -> bool:
    """Return whether a round ends so much lower than it began that another one may pay."""
    lower = fit.best_value < fit.end_value - (HIGHER if fit.side > 0.0 else MUCH)
    return lower and fit.rounds < MAX_ROUNDS and fit.thorough == 0.0


def keep(fit: Fit, rank: float, status: float) -> None:
    """Keep the best end so far, and its status before errors were computed."""
    n = len(fit.x)
    fit.best_rank = rank
    fit.best_status = status
    fit.best_value = fit.value
    fit.best_edm = fit.edm
    fit.best_unresolved = fit.unresolved
    for i in parallel(n):
        fit.best[i] = fit.x[i]
        fit.best_gradient[i] = fit.gradient[i]
        for j in parallel(n):
            fit.best_hessian[i * n + j] = fit.hessian[i * n + j]


def restore(fit: Fit) -> None:
    """Return to the best end, and compute its errors again."""
    n = len(fit.x)
    fit.status = fit.best_status
    fit.value = fit.best_value
    fit.edm = fit.best_edm
    fit.unresolved = fit.best_unresolved
    for i in parallel(n):
        fit.x[i] = fit.best[i]
        fit.gradient[i] = fit.best_gradient[i]
        for j in parallel(n):
            fit.hessian[i * n + j] = fit.best_hessian[i * n + j]
    finish(fit)


@lru_cache(maxsize=32)
def fit_driver(layout: FitLayout, weighted: bool = False) -> Driver:
    """Return the driver of a fit for a layout of its record; of weighted events, with errors from squared scores."""
    if weighted:
        from morefit.minimise import sandwich  # which begins with what is here

        return Driver(sandwich.fit_toy, (("Fit", layout.record),), weighted=True)
    return Driver(fit_toy, (("Fit", layout.record),))
