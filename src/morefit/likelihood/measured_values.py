"""Measured values of constraints: their covariance, and, of a formula, those that a function of the user draws and those that are expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import Expr, Op, evaluate, leaves
from morefit.rewrite.derive import derivatives
from morefit.validate import as_number, finite_number

ASYMMETRY = 1e-9  # of a covariance matrix, in units of its errors: what rounding can cause
STEPS = 50  # of Newton's method
SOLVED = 1e-6  # standard deviations of a parameter that its estimate may be off by


def finite_values(value: ArrayLike) -> list[float]:
    """Return one number or several as a list."""
    each = np.atleast_1d(np.asarray(value, object))
    return [finite_number("constraint: value", one, ModelError) for one in each]


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


def covariance_of(error: Any, count: int) -> tuple[tuple[float, ...], ...]:
    """Return the covariance matrix of measured values, from their errors or as it is given."""
    if error is None:
        raise ModelError("constraint: error is missing; write mf.constraint(quantity, value, error)")
    matrix = np.asarray(error, object)
    if matrix.ndim < 2:
        errors = [as_number(e) for e in np.atleast_1d(matrix)]
        if len(errors) != count:
            raise ModelError(f"constraint: needs one error for each of {count} values, got {len(errors)}")
        for number, own in zip(errors, np.atleast_1d(matrix), strict=True):
            if number is None or not 0 < number < math.inf:
                raise ModelError(f"constraint: error must be positive, got {own}")
        matrix = np.diag(np.array(errors, np.float64) ** 2)
    try:
        numbers = np.asarray(matrix, np.float64)
        if numbers.shape != (count, count) or not np.isfinite(numbers).all():
            raise ValueError
        scale = np.sqrt(np.abs(np.diag(numbers)))
        if (np.abs(numbers - numbers.T) > ASYMMETRY * np.outer(scale, scale)).any():
            raise ValueError
        np.linalg.cholesky(numbers)
    except (ValueError, TypeError, np.linalg.LinAlgError):
        raise ModelError(
            f"constraint: error must be {count} numbers or a symmetric, positive-definite covariance matrix of shape"
            f" ({count}, {count}), got {error!r}"
        ) from None
    return tuple(tuple(row) for row in (0.5 * (numbers + numbers.T)).tolist())
