"""Reference implementation of expressions, in numpy; all backends are tested against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr.adapt import adapt, combine_places
from morefit.expr.node import Expr
from morefit.expr.operations import Op
from morefit.expr.quadrature import TOLERANCE, WORST_ERROR, Adapted, Axis, Boxes, Domain, NodeDomain
from morefit.expr.symbol import Symbol, Table
from morefit.expr.walk import domain_of, leaves, rule_of, toposort

MAX_NODES = 1 << 15  # of a quadrature that are evaluated together: they stay in the cache
# points of an axis, then of each piece with a change of sign, and the number of scans
FIRST_SCAN, LATER_SCAN, SCANS = 513, 33, 5
MAX_ZEROS = 100
GRID = {2: 5, 3: 3}  # points in each direction of a box at which signs of sums are compared
HALVINGS = 14  # of a piece with a change of sign, before a chord meets zero


def evaluate(root: Expr, values: Mapping[str, Any]) -> Any:
    """Compute an expression from the values of its scalars, columns and wildcards, by name."""
    with np.errstate(all="ignore"):
        return evaluate_all((root,), values)[0]


def evaluate_all(roots: tuple[Expr, ...], values: Mapping[str, Any]) -> list[Any]:
    done: dict[Expr, Any] = {}
    evaluate_nodes(toposort(*roots, enter_integrals=False, enter_sums=False), values, done)
    return [done[r] for r in roots]


def evaluate_nodes(order: Iterable[Expr], values: Mapping[str, Any], done: dict[Expr, Any]) -> None:
    """Compute nodes one after the other and add them to what is known; their arguments come before or are known."""
    for node in order:
        if node.op is Op.CONST:
            done[node] = node.number
        elif isinstance(node.value, Table):
            done[node] = node.value.array
        elif node.op is Op.INTEGRAL:
            done[node] = integrate(node, values)
        elif node.op is Op.NODE_SUM:
            done[node] = sum_over_nodes(node, values)
        elif node.args:
            done[node] = node.op.numpy(*(done[a] for a in node.args))
        else:
            done[node] = np.multiply(values[node.name], 1.0)  # numpy has no negative powers of integers


# ------------------------------------------------------------------------------------- integrals


def sum_over_nodes(node: Expr, values: Mapping[str, Any]) -> Any:
    """Compute a sum over the nodes of a rule, some of them together along an axis before all others."""
    rule = rule_of(node)
    known = {name: np.asarray(value) for name, value in values.items()}
    names = {leaf.name for leaf in toposort(node) if not leaf.args and isinstance(leaf.value, Symbol)}
    shape = np.broadcast_shapes(*(known[name].shape for name in names & known.keys()))
    together = max(1, MAX_NODES // max(math.prod(shape), 1))
    total: Any = 0.0
    for start in range(0, rule.count, together):
        nodes, weights = (
            table.array[start : start + together].reshape(-1, *(1 for _ in shape)) for table in rule.tables
        )
        body = evaluate(node.args[0], {**known, rule.symbol.name: nodes})
        total = total + np.sum(weights * body, axis=0)
    return total


def integrate(node: Expr, values: Mapping[str, Any]) -> Any:
    """Compute an integral with boxes made for these very values; parameters may be arrays of one shape."""
    names = [leaf.name for leaf in leaves(Op.SCALAR, node)]
    known = np.broadcast_arrays(*(np.asarray(values[name], np.float64) for name in names))
    if not names or not known[0].ndim:
        return integrate_at(node, tuple((n, float(v)) for n, v in zip(names, known, strict=True)))
    rows = zip(*(k.ravel() for k in known), strict=True)
    integrals = [integrate_at(node, tuple(zip(names, map(float, row), strict=True))) for row in rows]
    return np.array(integrals).reshape(known[0].shape)


def integrate_at(node: Expr, values: tuple[tuple[str, float], ...]) -> float:
    domain = domain_of(node)
    if isinstance(domain, NodeDomain):
        nodes = domain.nodes
    else:
        adapted = adapted_to(node.args[1:], domain, values)
        if not adapted.error <= WORST_ERROR:
            raise cannot_integrate(dict(values), adapted.error)
        nodes = adapted.boxes.nodes()
    return float(Op.INTEGRAL.numpy(nodes.weights, evaluate(node.args[0], dict(values) | nodes.columns)))


def cannot_integrate(values: Mapping[str, float], error: float) -> ModelError:
    """Return the error for an integral that quadrature does not reach."""
    at = ", ".join(f"{name} = {value:.6g}" for name, value in values.items()) or "all values"
    how = "infinite or not a number" if not error < np.inf else f"uncertain by {error:.1g}"
    return ModelError(
        f"density: its numerical integral is {how} at {at}; give an integral, narrower ranges or better values"
    )


Values = tuple[tuple[str, float], ...]


@lru_cache(maxsize=256)
def adapted_to(
    integrand: tuple[Expr, ...], domain: Domain, values: Values, tolerance: float = TOLERANCE
) -> Adapted:
    """Find boxes for an integrand (and the places where its peaks may hide) at some values, or take known ones."""
    return adapt_around(integrand, domain, values, places_at(integrand, domain, dict(values)), tolerance)


def adapt_around(
    integrand: tuple[Expr, ...], domain: Domain, values: Values, places: Array, tolerance: float = TOLERANCE
) -> Adapted:
    """Find boxes for an integrand at some values, cut closely around some places."""

    known = dict(values)
    return adapt(
        domain,
        lambda boxes: areas(integrand[0], boxes, known)[:, None],
        places,
        tolerance,
        search=lambda boxes: zeros_in_boxes(integrand[0], boxes, known),
    )


def areas(integrand: Expr, boxes: Boxes, values: Mapping[str, float]) -> Array:
    """Integrate over each box."""
    together = max(1, MAX_NODES // boxes.nodes_each)
    parts = []
    for start in range(0, len(boxes), together):
        low, high = boxes.low[start : start + together], boxes.high[start : start + together]
        nodes = boxes.replaced(low, high).nodes()
        body = evaluate(integrand, {**values, **nodes.columns})
        parts.append((nodes.weights * body).reshape(len(low), -1).sum(axis=1))
    return np.concatenate(parts)


def places_at(integrand: Sequence[Expr], domain: Domain, values: Mapping[str, float]) -> Array:
    """Return the points where a peak of an integrand, which they follow, may hide at some values, (points, axes)."""

    def on_axis(k: int, points: Mapping[str, Array], count: int) -> Array:
        own = tuple(place for place, axis in zip(integrand[1:], domain.places, strict=False) if axis == k)
        with np.errstate(all="ignore"):
            numbers = evaluate_all(own, {**values, **points})  # all together: they have most in common
        return np.array([np.broadcast_to(each, count) for each in numbers]).reshape(len(own), count)

    axes = len(domain.axes)
    places = combine_places(domain, on_axis) if domain.places else np.empty((0, axes))
    if not (domain.hidden and axes == 1):
        return places
    return np.concatenate([zeros_of_sums(integrand[0], domain.axes[0], values)[:, None], places])


def zeros_in_boxes(body: Expr, boxes: Boxes, values: Mapping[str, float]) -> Array:
    """Return a point of each box (boxes, axes) where a sum in a formula is zero, if one changes its sign there; nan if none does.

    Of all such points on the lines of a grid, it is the one where the formula is largest.
    """
    domain, axes = boxes.domain, len(boxes.domain.axes)
    best, heights = np.full(boxes.low.shape, np.nan), np.full(len(boxes), -np.inf)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, GRID[axes])] * axes, indexing="ij"), axis=-1)
    shape, widths = grid.shape[:-1], boxes.high - boxes.low
    inside = boxes.low[:, None] + widths[:, None] * grid.reshape(-1, axes)
    for one in sums_along(body, domain.names) if domain.places or domain.hidden else ():
        numbers = at_points(one, boxes, inside, values).reshape(len(boxes), *shape)
        for axis in range(axes):
            first, last = (np.moveaxis(numbers, 1 + axis, 1)[:, end] for end in (slice(-1), slice(1, None)))
            changes = np.moveaxis(first * last < 0, 1, 1 + axis)
            rows, *cell = np.nonzero(changes)
            low = boxes.low[rows] + widths[rows] * np.stack(cell, axis=1) / (GRID[axes] - 1)
            step = np.zeros_like(low)
            step[:, axis] = widths[rows, axis] / (GRID[axes] - 1)
            points = crossing(partial(at_points, one, boxes, values=values), low, low + step)
            height = np.nan_to_num(np.abs(at_points(body, boxes, points, values)))
            order = np.argsort(height, kind="stable")  # the last one of a box stays
            order = order[height[order] > heights[rows[order]]]
            best[rows[order]], heights[rows[order]] = points[order], height[order]
    return best


def crossing(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return where a function is zero between two points with different signs, for each row of them."""
    if not len(low):
        return low
    sign = np.sign(function(low))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        before = (np.sign(function(middle)) == sign)[:, None]
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    first, last = function(low)[:, None], function(high)[:, None]
    return np.asarray(low + (high - low) * np.where(first != last, first / (first - last), 0.5))


def at_points(expr: Expr, boxes: Boxes, points: Array, values: Mapping[str, float]) -> Array:
    """Evaluate an expression at points of the unit cube, whose last axis has their coordinates."""
    columns = {}
    for k, axis in enumerate(boxes.domain.axes):
        power = boxes.power if axis.singular else 1
        columns[axis.name] = axis.low + (axis.high - axis.low) * points[..., k] ** power
    return np.array(np.broadcast_to(evaluate(expr, {**values, **columns}), points.shape[:-1]), np.float64)


def sums_along(body: Expr, names: Iterable[str]) -> tuple[Expr, ...]:
    """Return the sums in a formula that depend on some columns."""
    within = [n for n in toposort(body, enter_integrals=False, enter_sums=False) if n.op is Op.ADD]
    known = set(names)
    return tuple(n for n in within if any(leaf.name in known for leaf in leaves(Op.COLUMN, n)))


def zeros_of_sums(body: Expr, axis: Axis, values: Mapping[str, float]) -> Array:
    """Return where sums in a formula change their sign along an axis, closely enough to see a narrow peak there."""
    sums = sums_along(body, [axis.name])
    low, high = np.full((len(sums), 1), axis.low), np.full((len(sums), 1), axis.high)
    which = np.arange(len(sums))
    for points in (FIRST_SCAN, *(LATER_SCAN,) * SCANS):
        grid = low + (high - low) * np.linspace(0, 1, points)
        with np.errstate(all="ignore"):
            numbers = evaluate_all(sums, {**values, axis.name: grid})
        signs = np.array(
            [np.sign(np.broadcast_to(numbers[k], grid.shape)[row]) for row, k in enumerate(which)]
        )
        rows, columns = np.nonzero(signs[:, :-1] * signs[:, 1:] < 0) if len(which) else (which, which)
        low, high = grid[rows, columns][:, None], grid[rows, columns + 1][:, None]
        which = which[rows]
    return np.asarray(np.unique((low + high) / 2))[:MAX_ZEROS]
