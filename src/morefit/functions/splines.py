"""Cubic splines through points whose heights may be parameters: a sum of fixed functions times the heights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, add_all, to_expr
from morefit.expr.interpolate import antiderivative, checked_axis, hermite, piecewise_family, short

Boundary = Literal["not-a-knot", "natural"]
MIN_KNOTS = {"not-a-knot": 4, "natural": 2}
MAX_KNOTS = 1000  # of a spline, whose points all depend on each other


def spline(
    x: Operand,
    knots: Sequence[float] | Array,
    values: Sequence[Operand],
    *,
    boundary: Boundary = "not-a-knot",
) -> Expr:
    """Return the cubic spline through points; constant beyond the first and the last.

    ``knots`` are numbers that rise; ``values`` are numbers, parameters or expressions. ``boundary`` is "not-a-knot", or
    "natural" for a second derivative of zero at both ends, as in CubicSpline of scipy.
    """
    ends, heights = check_points(knots, values, boundary)
    return weighted(x, ends, heights, basis(ends, boundary))


def spline_integral(x: Operand, knots: Array, heights: Sequence[Expr], boundary: Boundary) -> Expr:
    """Return the integral of a spline from its first knot up to x."""
    return weighted(
        x, knots, heights, np.array([antiderivative(knots, rows) for rows in basis(knots, boundary)])
    )


def weighted(x: Operand, knots: Array, heights: Sequence[Expr], functions: Array) -> Expr:
    """Add piecewise polynomials, (functions, powers, cells), times heights; those times numbers are one."""
    known = np.array([h.number if h.op is Op.CONST else 0.0 for h in heights])
    moving = [k for k, height in enumerate(heights) if height.op is not Op.CONST]
    families = [*functions[moving], np.tensordot(known, functions, 1)]
    *curves, fixed = piecewise_family(to_expr(x), knots, np.array(families))
    return add_all(*(heights[k] * curve for k, curve in zip(moving, curves, strict=True)), fixed)


def check_points(knots: Any, values: Any, boundary: str) -> tuple[Array, list[Expr]]:
    """Return the knots and the heights of a spline."""
    if boundary not in MIN_KNOTS:
        raise ModelError(f"spline: boundary must be 'not-a-knot' or 'natural', got {boundary!r}")
    ends = checked_axis("spline: knots", knots)
    if not MIN_KNOTS[boundary] <= len(ends) <= MAX_KNOTS:
        rule = f"boundary '{boundary}' needs {MIN_KNOTS[boundary]} to {MAX_KNOTS} knots"
        raise ModelError(f"spline: {rule}, got {len(ends)}; use mf.table for another interpolation")
    if not isinstance(values, Iterable) or len(heights := [to_expr(v) for v in values]) != len(ends):
        count = len(heights) if isinstance(values, Iterable) else short(values)
        raise ModelError(f"spline: needs one value for each of {len(ends)} knots, got {count}")
    return ends, heights


def basis(knots: Array, boundary: Boundary) -> Array:
    """Return for each knot the polynomials of the spline that is one there and zero at the others, (knots, powers, cells)."""
    units = np.eye(len(knots))
    derivatives = np.linalg.solve(*equations(knots, boundary))
    return np.array([hermite(knots, unit, d) for unit, d in zip(units, derivatives.T, strict=True)])


def equations(knots: Array, boundary: Boundary) -> tuple[Array, Array]:
    """Return the matrices of the conditions for the derivatives at the knots: left @ derivatives = right @ values."""
    n, h = len(knots), np.diff(knots)
    slopes = (np.eye(n)[1:] - np.eye(n)[:-1]) / h[:, None]  # of the lines between points, times the values
    left, right = np.zeros((n, n)), np.zeros((n, n))
    for k in range(1, n - 1):
        left[k, k - 1 : k + 2] = h[k], 2 * (h[k - 1] + h[k]), h[k - 1]
        right[k] = 3 * (h[k] * slopes[k - 1] + h[k - 1] * slopes[k])
    for end, inner, s, w in ((0, 1, slopes[:2], h[:2]), (n - 1, n - 2, slopes[:-3:-1], h[:-3:-1])):
        if boundary == "natural":
            left[end, [end, inner]] = 2, 1
            right[end] = 3 * s[0]
        else:
            left[end, [end, inner]] = w[1], w[0] + w[1]
            right[end] = ((w[0] + 2 * (w[0] + w[1])) * w[1] * s[0] + w[0] ** 2 * s[1]) / (w[0] + w[1])
    return left, right
