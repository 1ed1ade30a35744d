"""A whole fit as a program, written once: draw a toy, sum, step, and repeat until it has converged."""

from __future__ import annotations

from functools import lru_cache

from morefit.arrays import Integers
from morefit.kernel.fit_layout import Fit, FitLayout
from morefit.kernel.program import Program, Stage, read_program
from morefit.minimise.trust_region import MOVING, begin, finish, step

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
    for i in range(len(fit.x)):
        fit.x[i] = fit.start[i]
    begin(fit)
    fit.steps = 0.0
    fit.running = 1.0


def advance(fit: Fit) -> None:
    """Take a step after the sums at the trial point, and compute the errors when the fit has ended."""
    step(fit)
    fit.steps += 1.0
    if fit.status != MOVING or fit.steps >= fit.max_steps:
        finish(fit)
        fit.running = 0.0


@lru_cache(maxsize=32)
def fit_program(layout: FitLayout) -> Program:
    """Read the program for a layout of its record."""
    return read_program(fit_toy, {"Fit": layout.record})
