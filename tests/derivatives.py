"""Derivatives up to the second: of a likelihood from one kernel, whose first sums are those of lower order, and of expressions."""

import numpy as np

import morefit as mf
from morefit.expr import Expr
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import simplifier


def value_and_derivatives(likelihood: mf.Likelihood, x, order: int = 2):
    """Return value, gradient and, for order 2, Hessian at a point; nothing may be wrong with an event."""
    points, _ = likelihood.points(x)
    evaluation = likelihood.evaluate_full(points, order)
    assert not np.any(evaluation.bad)
    found = (float(evaluation.value[0]), evaluation.gradient[0])
    return (*found, evaluation.hessian[0]) if order == 2 else found


def hessian(root: Expr, wrt: list[Expr]) -> list[list[Expr]]:
    """Return the second derivatives of an expression: the lower triangle, row by row."""
    new = simplifier()
    return [derivatives(d, wrt[: i + 1], new) for i, d in enumerate(derivatives(root, wrt, new))]
