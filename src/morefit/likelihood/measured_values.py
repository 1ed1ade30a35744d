"""Measured values of a constraint that is a formula: those that a function of the user draws, and those that are expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.expr import Expr, Op, evaluate, leaves
from morefit.rewrite.derive import derivatives

STEPS = 50  # of Newton's method
SOLVED = 1e-6  # standard deviations of a parameter that its estimate may be off by


def in_order(names: Sequence[str], drawn: ArrayLike | Mapping[str, float]) -> Array | None:
    """Return numbers that were drawn, in the order of names or by name; None where they are not finite numbers."""
    try:
        numbers = [drawn[name] for name in names] if isinstance(drawn, Mapping) else drawn
        row = np.atleast_1d(np.asarray(numbers, np.float64))
    except (KeyError, TypeError, ValueError):
        return None
    return row if row.shape == (len(names),) and np.isfinite(row).all() else None


def expected_values(
    formula: Expr, seen: Sequence[Expr], measured: Sequence[float], values: Mapping[str, float]
) -> Array | None:
    """Return measured values for which the derivatives of a formula by its parameters are zero; None if no steps reach any."""
    wrt = [leaf for leaf in leaves(Op.SCALAR, formula) if not any(leaf is s for s in seen)]
    slopes = derivatives(formula, wrt)
    curvatures = [derivatives(slope, [p])[0] for slope, p in zip(slopes, wrt, strict=True)]
    mixed = [derivatives(slope, seen) for slope in slopes]
    names = [str(s) for s in seen]
    point = np.array(measured, np.float64)
    for _ in range(STEPS):
        at = {**values, **dict(zip(names, point.tolist(), strict=True))}
        gradient = np.array([float(evaluate(slope, at)) for slope in slopes])
        widths = np.sqrt(np.abs([float(evaluate(c, at)) for c in curvatures]))
        if not np.isfinite([*gradient, *widths]).all():
            return None
        if (np.abs(gradient) <= SOLVED * widths).all():
            return point
        matrix = np.array([[float(evaluate(m, at)) for m in row] for row in mixed])
        point = point - np.linalg.lstsq(matrix, gradient)[0]
    return None
