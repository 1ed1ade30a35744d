"""Value, gradient and Hessian of a likelihood from one kernel: those of lower order are its first sums."""

import numpy as np

import morefit as mf


def value_and_derivatives(likelihood: mf.Likelihood, x, order: int = 2):
    """Return value, gradient and, for order 2, Hessian at a point; nothing may be wrong with an event."""
    points, _ = likelihood.points(x)
    evaluation = likelihood.evaluate_full(points, order)
    assert not np.any(evaluation.bad)
    found = (float(evaluation.value[0]), evaluation.gradient[0])
    return (*found, evaluation.hessian[0]) if order == 2 else found
