"""Whether a density is negative between events or inside of bins, where no sum of a likelihood shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from math import inf, isnan, prod
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, evaluate, symbols, toposort
from morefit.expr.evaluate import evaluate_nodes
from morefit.expr.operations import LEAVES
from morefit.expr.operations.record import Trait
from morefit.expr.walk import BINDING
from morefit.likelihood.accuracy import node_sums
from morefit.model import Observable, Parameter, Pdf
from morefit.model.counts import counted_in
from morefit.model.parts import is_simulated

POINTS = {1: 512, 2: 32, 3: 10}  # along each observable; densities of more are not looked at
SLOW_POINTS = 64  # of one observable, where each of them has an integral
BELOW = 1e-9  # of the largest height: less is rounding
TOGETHER = 64  # rows of parameters, whose heights fit into a cache

Bounds = tuple[float, float]
# derivatives by parameters, at points or the same at all of them; of no name what is left without them
Linear = dict[str, Any]


def negative_place(model: Pdf, values: Mapping[str, float]) -> str:
    """Describe where a density is most negative at values of all parameters; empty if it is not, as far as a grid shows."""
    if not has_grid(model) or never_negative(model, values):
        return ""
    grid = grid_of(model)
    heights = grid.heights(values)
    lowest = int(heights.argmin())
    if heights[lowest] >= 0 or heights[lowest] >= -BELOW * (largest := float(np.abs(heights).max())):
        return ""
    place = ", ".join(f"{name} = {column[lowest]:.6g}" for name, column in grid.columns.items())
    return f"the density is negative at {place}, {heights[lowest] / largest:.2g} of its largest height; change limits or the model"


def negative_rows(model: Pdf, values: Mapping[str, Any]) -> Flags:
    """Return at which rows of parameters, numbers or arrays of one length, a density is negative, as far as a grid shows.

    Parts and their weights are looked at first: where none is negative, their sum is not.
    """
    own = np.broadcast_arrays(*(np.atleast_1d(values[p.name]) for p in model.parameters)) or [np.zeros(1)]
    rows = {p.name: column for p, column in zip(model.parameters, own, strict=False)}
    below = may_be_negative(model, rows, len(own[0])) if has_grid(model) else np.zeros(len(own[0]), np.bool_)
    if not is_part(model) and below.any():
        below[below] = grid_of(model).negative({name: column[below] for name, column in rows.items()})
    return below


def may_be_negative(model: Pdf, rows: Mapping[str, Array], count: int) -> Flags:
    """Return at which rows a part of a density, or the weight of one, is negative."""
    if is_part(model):
        return np.zeros(count, np.bool_) if is_positive(model) else grid_of(model).negative(rows)
    below = np.zeros(count, np.bool_)
    for _, weight, pdf in model.branches():
        below |= may_be_negative(pdf, rows, count)
        if weight is not None and lowest_of(weight) < 0:
            # an acceptance depends on events
            below |= True if symbols(Op.COLUMN, weight) else np.asarray(evaluate(weight, rows)) < 0
    return below


def is_part(model: Pdf) -> bool:
    """Return whether a density is no sum or product of others."""
    return model.components()[0] is model or not model.branches()


@dataclass(frozen=True, eq=False)
class Grid:
    """Points of the observables of a model, and what of its density they determine alone."""

    density: Expr
    columns: dict[str, Array]
    known: dict[Expr, Any]
    order: tuple[Expr, ...]  # what depends on parameters, arguments first

    @cached_property
    def slopes(self) -> tuple[list[str], Array] | None:
        """The derivatives of the density at all points by parameters, with its value where all are zero; None if it is not linear."""
        parts: dict[Expr, Linear] = {node: {"": value} for node, value in self.known.items()}
        for node in self.order:
            with np.errstate(all="ignore"):
                linear = linear_in(node, [parts[arg] for arg in node.args if arg in parts])
            if linear is None:
                return None
            parts[node] = linear
        total = {"": 0.0} | parts[self.density]
        points = len(next(iter(self.columns.values())))
        matrix = np.stack([np.broadcast_to(total[name], points) for name in total]).T
        return ([name for name in total if name], matrix) if np.isfinite(matrix).all() else None

    def heights(self, values: Mapping[str, float]) -> Array:
        """Return the density at all points, zero where it is not a number."""
        if self.slopes is not None:
            names, matrix = self.slopes
            heights: Array = matrix.dot(np.array([1.0, *[values[name] for name in names]]))  # @ may warn
            if heights[heights.argmin()] >= 0 or np.isfinite(heights).all():  # nan is the least number
                return heights
        with np.errstate(all="ignore"):
            done = self.known.copy()
            evaluate_nodes(self.order, {**values, **self.columns}, done)
        density = done[self.density]
        return np.where(np.isfinite(density), density, 0.0) + np.zeros(len(next(iter(self.columns.values()))))

    def negative(self, rows: Mapping[str, Array]) -> Flags:
        """Return at which rows of parameters the density is negative at a point, by more than rounding."""
        count = row_count(rows)
        below = np.zeros(count, np.bool_)
        for first in range(0, count, TOGETHER):
            heights = self.heights_of(
                {name: column[first : first + TOGETHER] for name, column in rows.items()}
            )
            odd = np.flatnonzero(~(heights.min(axis=1) >= 0))  # or nan
            some = np.where(np.isfinite(heights[odd]), heights[odd], 0.0)
            below[first + odd] = some.min(axis=1) < -BELOW * np.abs(some).max(axis=1)
        return below

    def heights_of(self, rows: Mapping[str, Array]) -> Array:
        """Return the density for rows of parameters at all points, (rows, points)."""
        count = row_count(rows)
        with np.errstate(all="ignore"):
            if self.slopes is not None:
                names, matrix = self.slopes
                return np.stack([np.ones(count), *(rows[name] for name in names)], axis=1) @ matrix.T
            done = self.known.copy()
            evaluate_nodes(self.order, {**{n: v[:, None] for n, v in rows.items()}, **self.columns}, done)
        points = len(next(iter(self.columns.values())))
        return np.broadcast_to(done[self.density], (count, points))


def row_count(rows: Mapping[str, Array]) -> int:
    """Return how many rows of parameters there are, one if there are no parameters."""
    return len(next(iter(rows.values()))) if rows else 1


def linear_in(node: Expr, args: Sequence[Linear]) -> Linear | None:
    """Return a node as a linear function of parameters, if its arguments are linear ones and it is such a function of them."""
    if node.op is Op.SCALAR:
        return {node.name: 1.0}
    if len(args) < len(node.args):
        return None
    if node.op is Op.ADD:
        names = dict.fromkeys(name for arg in args for name in arg)
        return {name: sum(arg[name] for arg in args if name in arg) for name in names}
    if node.op is not Op.MUL or sum(arg.keys() != {""} for arg in args) > 1:
        return None
    factor = prod((arg[""] for arg in args if arg.keys() == {""}), start=1.0)
    rest = next((arg for arg in args if arg.keys() != {""}), {"": 1.0})
    return {name: slope * factor for name, slope in rest.items()}


@lru_cache(maxsize=32)
def grid_of(model: Pdf) -> Grid:
    """Return the points at which the density of a model is looked at."""
    region, points = model.region(), POINTS[len(model.observables)]
    if len(model.observables) == 1 and node_sums(model):
        points = SLOW_POINTS
    lines = [line_of(region.get(o.name) or [(o.low, o.high)], points) for o in model.observables]
    columns = {o.name: a.ravel() for o, a in zip(model.observables, np.meshgrid(*lines), strict=True)}
    density, known, order = density_of(model), dict[Expr, Any](), list[Expr]()
    for node in toposort(density, enter_integrals=False, enter_sums=False):
        fixed = node.op is not Op.SCALAR and node.op not in BINDING and all(a in known for a in node.args)
        if fixed:
            with np.errstate(all="ignore"):
                evaluate_nodes([node], columns, known)
        else:
            order.append(node)
    return Grid(density, columns, known, tuple(order))


def line_of(ranges: Sequence[Bounds], points: int) -> Array:
    """Return points inside of ranges."""
    inner = (np.arange(points) + 0.5) / points
    return np.concatenate([low + (high - low) * inner for low, high in ranges])


def never_negative(model: Pdf, values: Mapping[str, float]) -> bool:
    """Return whether a density is known to have no negative values: its parts at parameters within limits, with their weights at these."""
    weights = doubtful_weights(model)
    if weights is None or not all(evaluate(weight, values) >= 0 for weight in weights):
        return False
    return all(p.low <= values[p.name] <= p.high for p in model.parameters)


@lru_cache(maxsize=256)  # every fit asks
def doubtful_weights(model: Pdf) -> tuple[Expr, ...] | None:
    """Return weights of parts of a density that has no negative values where these have none; None if it may have some."""
    if is_part(model):
        return () if is_positive(model) else None
    weights: list[Expr] = []
    for _, weight, pdf in model.branches():
        inner = doubtful_weights(pdf)
        if inner is None:
            return None
        weights += inner
        if weight is not None and lowest_of(weight) < 0:
            if symbols(Op.COLUMN, weight):  # an acceptance
                return None
            weights.append(weight)
    return tuple(weights)


@lru_cache(maxsize=256)  # every fit asks
def has_grid(model: Pdf) -> bool:
    """Return whether the density of a model can be looked at on a grid."""
    few = len(model.observables) in POINTS
    return few and not (model.given or counted_in(model) or is_simulated(model))


@lru_cache(maxsize=256)
def density_of(model: Pdf) -> Expr:
    return model.density()


@lru_cache(maxsize=256)
def is_positive(model: Pdf) -> bool:
    """Return whether a density is known to have no negative values at any parameters."""
    return all(lowest_of(each) >= 0 for each in model.integrands())


@lru_cache(maxsize=256)
def lowest_of(expr: Expr) -> float:
    """Return a number that an expression is never below within the limits of its symbols, -inf if none is known."""
    bounds: dict[Expr, Bounds] = {}
    for node in toposort(expr, enter_integrals=False, enter_sums=False):
        bounds[node] = bounds_of(node, [bounds[arg] for arg in node.args if arg in bounds])
    return bounds[expr][0]


def bounds_of(node: Expr, args: Sequence[Bounds]) -> Bounds:
    """Return what the values of a node lie between, from what its arguments do."""
    if node.op is Op.CONST:
        return node.number, node.number
    if node.op in LEAVES and isinstance(symbol := node.value, Parameter | Observable):
        return symbol.low, symbol.high
    if node.op is Op.ADD:
        return sum(low for low, _ in args), sum(high for _, high in args)
    if node.op is Op.MUL:
        total: Bounds = (1.0, 1.0)
        for each in args:
            corners = [0.0 if isnan(a * b) else a * b for a, b in product(total, each)]  # 0 * inf is 0
            total = min(corners), max(corners)
        return total
    if node.op is Op.WHERE:
        return min(low for low, _ in args[1:]), max(high for _, high in args[1:])
    # powers with exponents that vary are not numbers where the base is negative
    even = node.op is Op.POW and (node.args[1].op is not Op.CONST or node.args[1].number % 2 == 0)
    traits = node.op.traits
    keeps = Trait.KEEPS_SIGN in traits and len(args) == len(node.args) and all(low >= 0 for low, _ in args)
    return (0.0, inf) if even or keeps or Trait.NOT_NEGATIVE in traits else (-inf, inf)
