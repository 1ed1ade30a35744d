"""Reference implementation of expressions, in numpy; all backends are tested against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr.adapt import POINT, adapt, combine_places
from morefit.expr.node import Expr
from morefit.expr.operations import Op
from morefit.expr.quadrature import TOLERANCE, WORST_ERROR, Adapted, Axis, Boxes, Domain, NodeDomain
from morefit.expr.symbol import Symbol, Table
from morefit.expr.walk import BINDING, domain_of, leaves, rule_of, toposort

MAX_NODES = 1 << 15  # of a quadrature that are evaluated together: they stay in the cache
# points of an axis, then of each piece with a change of sign
FIRST_SCAN, LATER_SCAN = 513, 33
MAX_ZEROS = 100
GRID = {2: 5, 3: 3}  # points in each direction of a box at which signs of sums are compared
MAX_STEPS = 20  # towards a zero in a piece with a change of sign,
CLOSE = 2.0**-30  # until that much of the piece is left


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


@dataclass(frozen=True, eq=False)
class Along:
    """A formula along the axes of boxes: what depends on none of them is computed once, and the rest wherever it is needed."""

    values: Mapping[str, float]
    fixed: Mapping[Expr, Any]
    sums: tuple[Expr, ...]  # that depend on an axis
    orders: dict[tuple[Expr, ...], list[Expr]] = field(default_factory=dict)  # in which parts are computed

    @classmethod
    def of(cls, body: Expr, names: Iterable[str], values: Mapping[str, float]) -> Along:
        order = toposort(body, enter_integrals=False, enter_sums=False)
        known, varying = set(names), set[Expr]()
        for node in order:
            if node.op is Op.COLUMN or node.op in BINDING:
                varies = any(leaf.name in known for leaf in leaves(Op.COLUMN, node))
            else:
                varies = any(a in varying for a in node.args)
            if varies:
                varying.add(node)
        fixed: dict[Expr, Any] = {}
        with np.errstate(all="ignore"):
            evaluate_nodes((node for node in order if node not in varying), values, fixed)
        return cls(values, fixed, tuple(node for node in order if node.op is Op.ADD and node in varying))

    def at_rows(self, root: Expr, boxes: Boxes, rows: Integers, points: Array) -> Array:
        """Do so for one part; whatever rows points have."""
        return self.at([root], boxes, points)[0]

    def at(self, roots: Sequence[Expr], boxes: Boxes, points: Array) -> list[Array]:
        """Evaluate parts of the formula at points of the unit cube, (..., axes); not too many of them together."""
        if (known := tuple(roots)) not in self.orders:
            nodes = toposort(*roots, enter_integrals=False, enter_sums=False)
            self.orders[known] = [node for node in nodes if node not in self.fixed]
        order = self.orders[known]
        flat = points.reshape(-1, points.shape[-1])
        parts = []
        for start in range(0, len(flat), MAX_NODES) or [0]:
            some, done = flat[start : start + MAX_NODES], dict(self.fixed)
            with np.errstate(all="ignore"):
                evaluate_nodes(order, {**self.values, **columns_at(boxes, some)}, done)
            parts.append([np.broadcast_to(done[root], len(some)) for root in roots])
        return [np.concatenate(own).reshape(points.shape[:-1]) for own in zip(*parts, strict=True)]


def zeros_in_boxes(body: Expr, boxes: Boxes, values: Mapping[str, float]) -> Array:
    """Return a point of each box (boxes, axes) where a sum in a formula is zero, if one changes its sign there; nan if none does.

    Of all such points on the lines of a grid, it is the one where the formula is largest.
    """
    domain = boxes.domain
    best = np.full(boxes.low.shape, np.nan)
    if not (domain.places or domain.hidden):
        return best
    along = Along.of(body, domain.names, values)
    each = list(zeros_of_each(along, boxes))
    if not each:
        return best
    which, places = (np.concatenate(own) for own in zip(*each, strict=True))
    side = POINT * (boxes.high - boxes.low)[which]
    places = np.clip(places, boxes.low[which] + side, boxes.high[which] - side)
    heights = np.nan_to_num(np.abs(along.at([body], boxes, places)[0]))
    order = np.argsort(-heights, kind="stable")[::-1]  # the last one of a box stays
    best[which[order]] = places[order]
    return best


def zeros_of_each(along: Along, boxes: Boxes) -> Iterator[tuple[Integers, Array]]:
    """Go through sums; return the boxes with zeros on the lines of their grids, and where these are, (zeros, axes).

    At a zero there may be a step: its sides are returned as well.
    """
    axes = len(boxes.domain.axes)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, GRID[axes])] * axes, indexing="ij"), axis=-1)
    low, high = (end.reshape(-1, *(1,) * axes, axes) for end in (boxes.low, boxes.high))
    inside = low + (high - low) * grid
    every = along.at(along.sums, boxes, inside) if along.sums else []
    for one, numbers in zip(along.sums, every, strict=True):
        cells, steps = [], []
        for axis in range(axes):
            first, last = (np.moveaxis(numbers, 1 + axis, 1)[:, end] for end in (slice(-1), slice(1, None)))
            cells.append(np.argwhere(np.moveaxis(first * last < 0, 1, 1 + axis)))
            steps.append(cells[-1] + np.eye(1 + axes, dtype=np.int64)[1 + axis])
        here, ahead = (tuple(np.concatenate(ends).T) for ends in (cells, steps))
        low, high = inside[here], inside[ahead]
        zero = crossing(partial(along.at_rows, one, boxes), low, high, (numbers[here], numbers[ahead]))
        near = 2 * POINT * (high - low) * (GRID[axes] - 1)
        yield np.tile(here[0], 3), np.concatenate([zero, zero - near, zero + near])


def crossing(
    function: Callable[[Integers, Array], Array], low: Array, high: Array, ends: tuple[Array, Array]
) -> Array:
    """Return where a function of rows and points is zero between two points with different signs, for each row of them.

    By inverse quadratic interpolation where that is safe, else by halving (T. R. Chandrupatla, Adv. Eng. Softw. 28 (1997) 145).
    """
    a, b, c = np.zeros(len(low)), np.ones(len(low)), np.zeros(len(low))
    fa, fb, fc = ends[0].copy(), ends[1].copy(), ends[0].copy()
    part, left = np.full(len(low), 0.5), np.arange(len(low))
    for _ in range(MAX_STEPS if len(low) else 0):
        x = a[left] + part * (b[left] - a[left])
        value = function(left, low[left] + (high - low)[left] * x[:, None])
        same = np.sign(value) == np.sign(fa[left])
        c[left], fc[left] = np.where(same, a[left], b[left]), np.where(same, fa[left], fb[left])
        b[left], fb[left] = np.where(same, b[left], a[left]), np.where(same, fb[left], fa[left])
        a[left], fa[left] = x, value
        left = left[(np.abs(b - a)[left] > CLOSE) & (value != 0)]
        if not len(left):
            break
        with np.errstate(all="ignore"):
            xi, phi = ((p - q)[left] / (r - q)[left] for p, q, r in ((a, b, c), (fa, fb, fc)))
            inverse = (fa / (fb - fa) * fc / (fb - fc))[left]
            inverse += ((c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb))[left]
            safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & np.isfinite(inverse)
            least = 0.5 * CLOSE / np.abs(b - a)[left]
        part = np.clip(np.where(safe, inverse, 0.5), least, 1 - least)
    return np.asarray(low + (high - low) * np.where(np.abs(fa) <= np.abs(fb), a, b)[:, None])


def columns_at(boxes: Boxes, points: Array) -> dict[str, Array]:
    """Return the columns of points of the unit cube, whose last axis has their coordinates."""
    columns = {}
    for k, axis in enumerate(boxes.domain.axes):
        power = boxes.power if axis.singular else 1
        columns[axis.name] = axis.low + (axis.high - axis.low) * points[..., k] ** power
    return columns


def zeros_of_sums(body: Expr, axis: Axis, values: Mapping[str, float]) -> Array:
    """Return where sums in a formula change their sign along an axis, closely enough to see a narrow peak there."""
    return known_zeros(body, axis, tuple(values.items()))


@lru_cache(maxsize=16)  # boxes are made for parameters at which they are then looked at
@np.errstate(all="ignore")
def known_zeros(body: Expr, axis: Axis, values: Values) -> Array:
    known = dict(values)
    along = Along.of(body, [axis.name], known)
    order = toposort(*along.sums, enter_integrals=False, enter_sums=False)
    order = [node for node in order if node not in along.fixed]

    def numbers(which: Integers, grid: Array) -> Array:
        """Return sums at rows of points; all together, as they have most in common."""
        done = dict(along.fixed)
        evaluate_nodes(order, {**known, axis.name: grid}, done)
        each = (np.broadcast_to(done[along.sums[k]], grid.shape) for k in which)
        return np.array([points[row % len(grid)] for row, points in enumerate(each)])

    which, low, high = np.arange(len(along.sums)), np.array([axis.low]), np.array([axis.high])
    for points in (FIRST_SCAN, LATER_SCAN):
        if not len(which):
            return np.empty(0)
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, points)
        heights = numbers(which, grid)
        rows, cells = np.nonzero(np.sign(heights[:, :-1]) * np.sign(heights[:, 1:]) < 0)
        own = rows % len(grid)  # all sums have the first one
        which, low, high = which[rows], grid[own, cells], grid[own, cells + 1]
        ends = heights[rows, cells], heights[rows, cells + 1]
    zeros = crossing(lambda left, x: numbers(which[left], x)[:, 0], low[:, None], high[:, None], ends)
    return np.asarray(np.unique(zeros))[:MAX_ZEROS]
