"""Functions between numbers in a table, of any number of arguments: steps, lines, polynomials; and clip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr.build import add_all, lookup, where
from morefit.expr.node import Expr, Operand, Quantity, make, to_expr
from morefit.expr.operations import Op
from morefit.expr.symbol import Table, as_double

Interpolation = Literal["steps", "linear", "cubic"]
MAX_NUMBERS = 1 << 24  # of a table: their places are exact in single precision


def clip(x: Operand, low: Operand, high: Operand) -> Expr:
    """Return x where it lies between two bounds, and the nearer bound elsewhere."""
    return Op.MIN(Op.MAX(x, low), high)


def interp(x: Operand, xs: Sequence[float] | Array, ys: Sequence[float] | Array) -> Expr:
    """Interpolate linearly between points, as ``np.interp`` does; constant beyond the first and the last.

    ``xs`` and ``ys`` are numbers; ``xs`` must rise.
    """
    knots = checked_axis("interp: xs", xs)
    return table(x, knots, checked_values("interp: ys", ys, [len(knots)]))


def table(
    points: Operand | Sequence[Operand], axes: Any, values: Any, interpolation: Interpolation = "linear"
) -> Expr:
    """Interpolate in a table of numbers, with one axis for each of the ``points``; constant beyond the ends of an axis.

    Parameters
    ----------
    points : an observable, a parameter or an expression, or a list of them, one per axis
    axes : rising numbers, or a list with those of each axis: the edges of cells for "steps", else the places of values
    values : an array with one number per cell, or per place
    interpolation : "steps", "linear", or "cubic" (monotone, as PchipInterpolator of scipy; one axis only)
    """
    if isinstance(points, Quantity) or as_double(points) is not None:
        points, axes = [points], [axes]
    if interpolation not in ("steps", "linear", "cubic"):
        raise ModelError(f"table: interpolation must be 'steps', 'linear' or 'cubic', got {interpolation!r}")
    places = [to_expr(point) for point in points]
    grid = [checked_axis(f"table: axis {k}", axis) for k, axis in enumerate(axes)]
    if not 0 < len(places) == len(grid):
        raise ModelError(
            f"table: needs one axis for each of one or more points, got {len(grid)} for {len(places)}"
        )
    numbers = checked_values("table: values", values, [len(a) - (interpolation == "steps") for a in grid])
    if len(places) == 1:
        return piecewise(places[0], grid[0], coefficients(grid[0], numbers, interpolation))
    if interpolation == "cubic":
        raise ModelError(f"table: 'cubic' takes one axis, got {len(places)}; use 'linear'")
    return corners(places, grid, numbers, interpolation == "linear")


def piecewise(x: Operand, edges: Sequence[float] | Array, rows: Sequence[Any] | Array) -> Expr:
    """Return a piecewise polynomial; constant below the first edge and above the last.

    ``rows`` has a row for each power of the distance from the lower edge of a cell, each with a number per cell.
    """
    ends = checked_axis("piecewise: edges", edges)
    contents = checked_values("piecewise: coefficients", rows, [len(rows), len(ends) - 1])
    return piecewise_family(to_expr(x), ends, contents[None])[0]


def piecewise_family(x: Expr, edges: Array, families: Array) -> list[Expr]:
    """Return piecewise polynomials with the same edges, (functions, powers, cells); all that a cell needs is in one place."""
    powers = families.shape[1]
    flat = families.reshape(-1, families.shape[2])
    columns = flat if powers == 1 else np.vstack([flat, edges[:-1]])
    padded = Table.of(np.pad(columns, [(0, 0), (0, 1)], constant_values=np.nan).T)
    cell = cell_of(x, edges)
    numbers = [lookup(padded, len(columns) * cell + k) for k in range(len(columns))]
    if powers == 1:
        return numbers
    distance, functions = inside(x, edges) - numbers.pop(), []
    for first in range(0, len(numbers), powers):
        *lower, total = numbers[first : first + powers]
        for number in reversed(lower):
            total = number + distance * total
        functions.append(total)
    return functions


def corners(points: Sequence[Expr], grid: Sequence[Array], values: Array, linear: bool) -> Expr:
    """Return the value of the cell of a point, or what lies linearly between the values at its corners."""
    padded = Table.of(np.pad(values, [(0, 1)] * values.ndim, constant_values=np.nan))
    strides = [int(np.prod([n + 1 for n in values.shape[k + 1 :]])) for k in range(values.ndim)]
    cells = [cell_of(point, axis) for point, axis in zip(points, grid, strict=True)]
    first = add_all(*(stride * cell for stride, cell in zip(strides, cells, strict=True)))
    if not linear:
        return lookup(padded, first)
    shifts = list(product(*((0, stride) for stride in strides)))
    heights = [lookup(padded, first + sum(shift)) for shift in shifts]
    for point, axis, cell in reversed(list(zip(points, grid, cells, strict=True))):
        widths = np.append(np.diff(axis), np.nan)
        share = (inside(point, axis) - lookup(Table.of(axis), cell)) * lookup(Table.of(1 / widths), cell)
        heights = [a + share * (b - a) for a, b in zip(heights[::2], heights[1::2], strict=True)]
    return heights[0]


def cell_of(x: Operand, edges: Array) -> Expr:
    """Return the number of the cell between edges that a value lies in."""
    return make(Op.CELL, (make(Op.TABLE, value=Table.of(edges)), to_expr(x)))


def inside(x: Expr, axis: Sequence[float] | Array) -> Expr:
    """Return a value, or the nearer end of an axis; unlike that of ``clip``, its slope is one at both ends."""
    return where(x < axis[0], axis[0], where(x > axis[-1], axis[-1], x))


def coefficients(axis: Array, values: Array, interpolation: Interpolation) -> Array:
    """Return the polynomials of cells along one axis, a row for each power."""
    if interpolation == "steps":
        return values[None]
    widths = np.diff(axis)
    slopes = np.diff(values) / widths
    if interpolation == "linear":
        return np.array([values[:-1], slopes])
    return cubic_cells(axis, values, monotone_slopes(widths, slopes))


def cubic_cells(axis: Array, values: Array, derivatives: Array) -> Array:
    """Return the cubic polynomials of cells with these values and derivatives at their edges."""
    widths = np.diff(axis)
    slopes = np.diff(values, axis=0) / widths
    start, end = derivatives[:-1], derivatives[1:]
    bend = (start + end - 2 * slopes) / widths
    return np.array([values[:-1], start, (slopes - start) / widths - bend, bend / widths])


def antiderivative(edges: Array, rows: Array) -> Array:
    """Return the polynomials of the integral of a piecewise polynomial from its first edge on."""
    raised = rows / np.arange(1, len(rows) + 1)[:, None]
    areas = np.sum(raised * np.diff(edges) ** np.arange(1, len(rows) + 1)[:, None], axis=0)
    return np.vstack([np.cumsum(areas) - areas, raised])


def monotone_slopes(widths: Array, slopes: Array) -> Array:
    """Return derivatives at points that keep a cubic monotone between them (Fritsch and Butland 1984)."""
    if len(slopes) == 1:
        return np.repeat(slopes, 2)
    before, after = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    same = slopes[:-1] * slopes[1:] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (before + after) / (before / slopes[:-1] + after / slopes[1:])
    ends = [end_slope(*widths[:2], *slopes[:2]), end_slope(*widths[:-3:-1], *slopes[:-3:-1])]
    return np.concatenate([ends[:1], np.where(same, inner, 0.0), ends[1:]])


def end_slope(width: float, next_width: float, slope: float, next_slope: float) -> float:
    """Return the derivative at an end: of three points, unless that overshoots."""
    end = ((2 * width + next_width) * slope - width * next_slope) / (width + next_width)
    if end * slope <= 0:
        return 0.0
    return 3 * slope if slope * next_slope <= 0 and abs(end) > 3 * abs(slope) else float(end)


def checked_axis(what: str, axis: Any) -> Array:
    """Return two or more finite numbers that rise."""
    numbers = checked_numbers(what, axis)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.all(np.diff(numbers) > 0):
        raise ModelError(
            f"{what} must be two or more numbers that rise, got {short(axis)}; sort them, drop those that repeat"
        )
    return numbers


def checked_values(what: str, values: Any, shape: Sequence[int]) -> Array:
    """Return finite numbers of a shape."""
    numbers = checked_numbers(what, values)
    if numbers.shape != tuple(shape):
        raise ModelError(f"{what} must have the shape {tuple(shape)}, got {numbers.shape}")
    if numbers.size > MAX_NUMBERS:
        raise ModelError(f"{what} must be {MAX_NUMBERS} numbers at most, got {numbers.size}; use fewer cells")
    return numbers


def checked_numbers(what: str, values: Any) -> Array:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be numbers, got {short(values)}") from None
    if np.ma.is_masked(values):
        raise ModelError(f"{what} must not be masked, got {short(values)}; leave out what is masked")
    if not np.all(np.isfinite(numbers)):
        raise ModelError(f"{what} must be finite, got {int(np.sum(~np.isfinite(numbers)))} that are not")
    return numbers


def short(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 80 else f"a {type(values).__name__}"
