"""A whole fit as a program, written once: draw a toy, sum, step, and repeat until it has converged."""

from __future__ import annotations

from functools import lru_cache

from morefit.arrays import Integers
from morefit.kernel.fit_layout import Fit, FitLayout
from morefit.kernel.program import Stage, parallel
from morefit.kernel.read_program import Driver
from morefit.minimise.fit_errors import finish
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.minimise.starts import may_be_wrong, other_start, remember_end
from morefit.minimise.trust_region import CONVERGED, FLAT, MIN_RADIUS, MOVING, begin, step

HIGHER = (
    0.5  # of the value, one error: a minimum is worse than an end so much lower from which nothing leads down
)
PROMISE = 3.0  # times the EDM: another start that promises less is given up
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
        fit.best[i] = fit.start[i]
    begin(fit)
    fit.steps = 0.0
    fit.tries = 0.0
    fit.starts = 0.0
    fit.rough = 0.0
    fit.returning = 0.0
    fit.best_rank = -1.0
    fit.best_value = UNKNOWN
    fit.running = 1.0


def advance(fit: Fit) -> None:
    """Take a step after the sums at the trial point, and end there or start again when it leads no further."""
    step(fit)
    fit.steps += 1.0
    fit.tries += 1.0
    known = fit.starts > 0.0 and fit.returning == 0.0 and fit.best_rank >= 1.0
    hopeless = known and fit.value - PROMISE * fit.edm > fit.best_value - fit.goal
    if fit.status != MOVING or fit.tries >= fit.max_steps or hopeless:
        end_attempt(fit)


def end_attempt(fit: Fit) -> None:
    """Compute the errors; go on from another start if this may be the wrong minimum, or none, at last back to the best end.

    A thorough fit goes on in any case.
    """
    finish(fit)
    settled = fit.edm < HIGHER or fit.radius < MIN_RADIUS  # close to a minimum, or at a kink
    rank = 2.0 if fit.status == CONVERGED else 1.0 if fit.status == FLAT else 0.5 if settled else 0.0
    best = rank > fit.best_rank or (rank == fit.best_rank and fit.value < fit.best_value - fit.goal)
    if min(rank, fit.best_rank) > 0.0 and abs(fit.value - fit.best_value) > HIGHER:
        best = bool(fit.value < fit.best_value)
    if best:
        fit.best_rank = rank
        fit.best_value = fit.value
        for i in range(len(fit.x)):
            fit.best[i] = fit.x[i]
    if fit.starts == 0.0 and rank == 2.0 and fit.thorough == 0.0 and not may_be_wrong(fit):
        fit.running = 0.0
    elif fit.starts < fit.max_starts and fit.returning == 0.0:
        if fit.starts == 0.0:
            remember_end(fit)
        other_start(fit, int(fit.starts))
        fit.starts += 1.0
        restart(fit)
    elif best or fit.returning > 0.0:
        fit.running = 0.0
    else:
        for i in range(len(fit.x)):
            fit.x[i] = fit.best[i]
        fit.returning = 1.0
        restart(fit)


def restart(fit: Fit) -> None:
    """Begin again at x."""
    begin(fit)
    fit.tries = 0.0


@lru_cache(maxsize=32)
def fit_driver(layout: FitLayout) -> Driver:
    """Return the driver of a fit for a layout of its record."""
    return Driver(fit_toy, (("Fit", layout.record),))
