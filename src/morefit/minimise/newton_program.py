"""A whole fit as a program, written once: draw a toy, sum, step, and repeat until it has converged."""

from __future__ import annotations

from functools import lru_cache

from morefit.arrays import Integers
from morefit.kernel.fit_layout import Fit, FitLayout
from morefit.kernel.program import Driver, Stage, parallel
from morefit.minimise.components import begin_scan, scan
from morefit.minimise.fit_errors import finish
from morefit.minimise.loose import look, next_value
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.minimise.starts import may_look, next_start, other_start, remember_end
from morefit.minimise.trust_region import CONVERGED, FLAT, MIN_RADIUS, MOVING, begin, step

HIGHER = (
    0.5  # of the value, one error: a minimum is worse than an end so much lower from which nothing leads down
)
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
    fit.scan = 0.0
    fit.place = 0.0
    fit.shapes = 0.0
    fit.best_rank = -1.0
    fit.best_value = UNKNOWN
    fit.running = 1.0


def advance(fit: Fit) -> None:
    """Take a step after the sums at the trial point, and end there or start again when it leads no further."""
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
    step(fit)
    fit.tries += 1.0
    if fit.steps == 1.0:
        for i in range(len(fit.x)):
            fit.first_bend[i] = fit.hessian[i * len(fit.x) + i]
    known = fit.starts > 0.0 and fit.best_rank >= 1.0
    hopeless = known and fit.value - PROMISE * fit.edm - RIPPLE > fit.best_value
    if fit.starts > 0.0 and fit.best_rank > 0.0 and fit.status == MOVING and returns(fit):
        fit.returns += 1.0
        start_again(fit, False)
    elif fit.status != MOVING or fit.tries >= fit.max_steps or hopeless:
        end_attempt(fit)


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
    if first:
        remember_end(fit, rank == 2.0)
    if best:
        keep(fit, rank, status)
        fit.returns = 0.0
    elif fit.best_rank > 0.0 and fit.value < fit.best_value + SAME * fit.goal:
        fit.returns += 1.0
    if first and fit.max_starts > 0.0 and fit.value < UNKNOWN:
        begin_scan(fit)
    if fit.scan == 0.0:
        go_on(fit, best)


def go_on(fit: Fit, best: bool) -> None:
    """Look at loose parameters at the end of the first start, if that is doubtful; then start again."""
    if may_look(fit):
        next_value(fit)
    if fit.place == 0.0:
        start_again(fit, best)


def start_again(fit: Fit, best: bool) -> None:
    """Go on from another start if there is a reason for one, at last take the best end."""
    kind = next_start(fit)
    if kind < int(fit.max_starts):
        other_start(fit, kind)
        fit.starts = kind + 1.0
        begin(fit)
        fit.tries = 0.0
    else:
        fit.running = 0.0
        if not best:
            restore(fit)


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
        for j in range(n):
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
        for j in range(n):
            fit.hessian[i * n + j] = fit.best_hessian[i * n + j]
    finish(fit)


@lru_cache(maxsize=32)
def fit_driver(layout: FitLayout) -> Driver:
    """Return the driver of a fit for a layout of its record."""
    return Driver(fit_toy, (("Fit", layout.record),))
