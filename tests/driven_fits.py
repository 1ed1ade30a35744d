"""Fits of plain functions by the driver of whole fits, as Python runs it."""

from math import inf

import numpy as np

from morefit.kernel.fit_layout import FitLayout
from morefit.minimise.newton_program import advance, begin_fit
from running_drivers import PythonRecord

GOAL = 1e-4
EVERYWHERE = (-inf, inf)


def new_fit(start, limits=None, goal=GOAL, starts=0, max_steps=300, edges=()):
    """Return the record of a fit that begins."""
    layout = FitLayout(len(start))
    limits = np.array(limits or [EVERYWHERE] * len(start), float)
    (record,) = layout.first_records(np.array([start], float), limits, goal, starts, edges=edges)
    fit = PythonRecord(layout.record, record)
    fit.max_steps = max_steps
    return fit


def evaluate(fit, function):
    """Write value, gradient and Hessian at the trial point."""
    value, gradient, hessian = function(fit.trial.copy())
    fit.new_value, fit.bad = value, 0.0
    fit.new_gradient[:] = gradient
    fit.new_hessian[:] = np.tril(np.asarray(hessian, float)).ravel()


@np.errstate(all="ignore")
def minimise(function, start, limits=None, goal=GOAL, starts=0, max_steps=300, edges=()):
    """Minimise a function; return the record of the fit and the points where it was evaluated."""
    fit, points = new_fit(start, limits, goal, starts, max_steps, edges), []
    begin_fit(fit)
    while fit.running > 0:
        points.append(fit.trial.copy())
        evaluate(fit, function)
        advance(fit)
    return fit, points


def quadratic(matrix, at):
    matrix, at = np.asarray(matrix, float), np.asarray(at, float)
    return lambda x: (0.5 * (x - at) @ matrix @ (x - at), matrix @ (x - at), matrix)
