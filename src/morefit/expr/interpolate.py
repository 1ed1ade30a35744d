"""Functions of NumPy that are no ufuncs and work on expressions: clip and interp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr.build import apply, lookup, where
from morefit.expr.node import Expr, Operand, to_expr
from morefit.expr.operations import Op
from morefit.expr.symbol import Table

EQUAL_STEPS = 1e-12  # relative: knots closer than this to a regular grid are one


def clip(x: Operand, low: Operand, high: Operand) -> Expr:
    """Return x where it lies between two bounds, and the nearer bound elsewhere."""
    return apply(Op.MIN, apply(Op.MAX, x, low), high)


def interp(x: Operand, xs: Sequence[float] | Array, ys: Sequence[float] | Array) -> Expr:
    """Interpolate linearly between points, as ``np.interp`` does; constant beyond the first and the last.

    ``xs`` and ``ys`` are numbers; ``xs`` must rise. Equally spaced points cost two lookups, others log2(n) more.
    """
    knots, heights = knots_and_heights(xs, ys)
    inside = clip(x, knots[0], knots[-1])
    cells = len(knots) - 1
    step = (knots[-1] - knots[0]) / cells
    regular = bool(np.allclose(np.diff(knots), step, rtol=EQUAL_STEPS, atol=0))
    left: Expr
    if regular:
        place = (inside - knots[0]) / step
        cell = where(place >= 0, apply(Op.MIN, np.floor(place), cells - 1), 0)  # not where it is not a number
        left = knots[0] + step * cell
    else:
        cell = cell_of(inside, knots)
        left = lookup(table_of(knots), cell)
    slopes = np.diff(heights) / (step if regular else np.diff(knots))
    return lookup(table_of(heights), cell) + lookup(table_of(slopes), cell) * (inside - left)


def knots_and_heights(xs: Any, ys: Any) -> tuple[Array, Array]:
    """Check the points of an interpolation."""
    knots, heights = (np.asarray(v, np.float64) for v in (xs, ys))
    if knots.ndim != 1 or knots.shape != heights.shape or len(knots) < 2:
        raise ModelError(
            f"interp: xs and ys must be two or more numbers each, got shapes {knots.shape} and {heights.shape}"
        )
    if not (np.all(np.isfinite(knots)) and np.all(np.isfinite(heights)) and np.all(np.diff(knots) > 0)):
        raise ModelError(
            "interp: xs must rise, and all numbers be finite; sort the points, drop those that repeat"
        )
    return knots, heights


def cell_of(x: Expr, knots: Array) -> Expr:
    """Return the number of the last knot that is not above x, by bisection; the last knot begins no cell."""
    cells = len(knots) - 1
    size = 1 << (cells - 1).bit_length()
    padded = table_of(np.concatenate([knots[:-1], np.full(size - cells, np.finfo(np.float64).max)]))
    cell, half = to_expr(0), size // 2
    while half:
        cell = where(lookup(padded, cell + half) <= x, cell + half, cell)
        half //= 2
    return cell


def table_of(numbers: Array) -> Table:
    """Return a table, named by its contents."""
    data = np.ascontiguousarray(numbers, "<f8").tobytes()
    return Table(f"numbers {data.hex()}", data, f"{len(numbers)} numbers")


# by the function of NumPy, which calls it where an argument is an expression
NUMPY_FUNCTIONS: dict[Callable[..., Any], Callable[..., Expr]] = {np.clip: clip, np.interp: interp}
