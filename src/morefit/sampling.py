"""How to draw from a density: by inversion where there is a formula, component by component, else by an envelope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    Table,
    apply,
    column,
    const,
    evaluate,
    leaves,
    lookup,
    substitute,
    where,
)
from morefit.expr.quadrature import Array
from morefit.model.compose import Product, Sum
from morefit.model.integrate import adapt_box, adapt_line
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.rewrite.bind import bind

UNIFORM = "uniform "  # random numbers are the columns "uniform 0", "uniform 1", ...
ENOUGH = 0.9  # of the candidates accepted; an envelope is refined until then
MOST_CELLS = 1 << 15
FEWEST = 8  # cells in each direction, in two and three dimensions
PROBES = {
    1: 9,
    2: 5,
    3: 4,
}  # points in each direction of a cell, edges included, at which its maximum is sought
MARGIN = 0.25  # of what the density varies over those points, added to their maximum
SHAPE_TOLERANCE = 1e-6  # of the first cells: they must see every peak that the integral sees


@dataclass(frozen=True)
class Recipe:
    """Expressions of random numbers: the observables of a candidate, whether to accept it, if it was too high."""

    drawn: Mapping[str, Expr]
    accept: Expr
    above: Expr
    efficiency: float  # expected


class Numbers:
    """Hands out random numbers; component densities of a sum may use the same ones."""

    def __init__(self, first: int = 0, margin: float = MARGIN) -> None:
        self.next, self.margin = first, margin

    def take(self) -> Expr:
        self.next += 1
        return column(f"{UNIFORM}{self.next - 1}")


def recipe(pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Say how to draw from a density at given values of its parameters."""
    if isinstance(pdf, Sum):
        return sum_recipe(pdf, values, numbers)
    if isinstance(pdf, Product):
        return product_recipe(pdf, values, numbers)
    quantile = pdf.quantile(column("probability"))
    if quantile is not None:
        (x,) = pdf.observables
        bound = substitute(bind_values(quantile, pdf, values), {column("probability"): numbers.take()})
        inside = apply(Op.MIN, apply(Op.MAX, bound, const(x.low)), const(x.high))  # rounding at an edge
        return Recipe({x.name: inside}, ONE, ZERO, 1.0)
    return density_recipe(bind_values(pdf.density(), pdf, values), pdf.observables, values, numbers)


def bind_values(expr: Expr, pdf: Pdf, values: Mapping[str, float]) -> Expr:
    """Fold the parameters into a formula; what they multiply by zero falls away."""
    return bind([expr], {p.name: values[p.name] for p in pdf.parameters})[0]


def density_recipe(
    density: Expr, observables: tuple[Observable, ...], values: Mapping[str, float], numbers: Numbers
) -> Recipe:
    """Draw observables that the density does not depend on uniformly, the others under an envelope."""
    names = {leaf.name for leaf in leaves(Op.COLUMN, density)}
    flat = {o.name: o.low + (o.high - o.low) * numbers.take() for o in observables if o.name not in names}
    if not names:
        return Recipe(flat, ONE, ZERO, 1.0)
    inner = envelope_recipe(density, tuple(o for o in observables if o.name in names), values, numbers)
    return Recipe({**inner.drawn, **flat}, inner.accept, inner.above, inner.efficiency)


def sum_recipe(pdf: Sum, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Choose a component by one number, then draw from it; all components use the same numbers after that."""
    weights = np.array([float(evaluate(w, values)) for w in pdf.weights])
    if not np.all(weights >= 0) or not weights.sum() > 0:
        raise ModelError(
            f"sum: cannot draw with the fractions {weights.tolist()}; all must be positive or zero at the given values"
        )
    edges = np.cumsum(weights / weights.sum())
    chosen = numbers.take()
    parts, last = [], numbers.next
    for component in pdf.pdfs:
        own = Numbers(numbers.next, numbers.margin)
        parts.append(recipe(component, values, own))
        last = max(last, own.next)
    numbers.next = last
    kept = [(edge, part) for edge, w, part in zip(edges, weights, parts, strict=True) if w > 0]

    def pick(exprs: list[Expr]) -> Expr:
        choice = exprs[-1]
        for (edge, _), expr in reversed(list(zip(kept[:-1], exprs[:-1], strict=True))):
            choice = where(chosen < edge, expr, choice)
        return choice

    drawn = {o.name: pick([part.drawn[o.name] for _, part in kept]) for o in pdf.observables}
    shares = weights / weights.sum()
    tried = sum(s / p.efficiency for s, p in zip(shares, parts, strict=True))
    return Recipe(drawn, pick([p.accept for _, p in kept]), pick([p.above for _, p in kept]), 1 / tried)


def product_recipe(pdf: Product, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Draw every factor with numbers of its own."""
    parts = [recipe(factor, values, numbers) for factor in pdf.pdfs]
    drawn = {name: expr for part in parts for name, expr in part.drawn.items()}
    accept, above = ONE, ZERO
    for part in parts:
        accept = part.accept if accept is ONE else accept if part.accept is ONE else accept * part.accept
        above = (
            part.above if above is ZERO else above if part.above is ZERO else apply(Op.MAX, above, part.above)
        )
    return Recipe(drawn, accept, above, float(np.prod([p.efficiency for p in parts])))


# ------------------------------------------------------------------------------------ envelopes


@dataclass(frozen=True, eq=False)
class Envelope:
    """A piecewise constant function above a density: cells between edges, and a height for each."""

    edges: tuple[Array, ...]
    heights: Array  # one for each cell, the last direction fastest
    efficiency: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(e) - 1 for e in self.edges)


def envelope_recipe(
    density: Expr, observables: tuple[Observable, ...], values: Mapping[str, float], numbers: Numbers
) -> Recipe:
    """Draw a cell by Walker's alias method, a point in it, and accept it by its height."""
    envelope = make_envelope(density, observables, values, numbers.margin)
    volumes = envelope.heights * cell_volumes(envelope.edges).ravel()
    share, alias = alias_table(volumes)
    name = f"envelope of {density.order[1] & 0xFFFFFFFF:08x}"
    first, points = numbers.take(), [numbers.take() for _ in observables]
    size = len(volumes)
    scaled = first * size
    place = apply(Op.FLOOR, scaled)
    cell = where(scaled - place < lookup(table(f"{name} share", share), place), place,
                 lookup(table(f"{name} alias", alias), place))  # fmt: skip
    drawn: dict[str, Expr] = {}
    rest = cell
    for axis in reversed(range(len(observables))):
        count = envelope.shape[axis]
        rows = (
            apply(Op.FLOOR, (rest + 0.5) / count) if axis else const(0)
        )  # whole numbers, half a step from rounding
        index = rest - rows * count
        drawn[observables[axis].name] = point_in(f"{name} {axis}", envelope.edges[axis], index, points[axis])
        rest = rows
    height = lookup(table(f"{name} height", envelope.heights), cell)
    here = substitute(density, {o.expr: drawn[o.name] for o in observables})
    accept = numbers.take() * height < here
    return Recipe(drawn, accept, height < here, envelope.efficiency)


def point_in(name: str, edges: Array, index: Expr, number: Expr) -> Expr:
    """Return a point of a cell; equal cells need no table."""
    widths = np.diff(edges)
    if np.ptp(widths) <= 1e-12 * widths[0]:
        return float(edges[0]) + float(edges[-1] - edges[0]) / len(widths) * (index + number)
    return (
        lookup(table(f"{name} low", edges[:-1]), index)
        + lookup(table(f"{name} width", widths), index) * number
    )


def table(name: str, numbers: Array) -> Table:
    return Table(name, np.ascontiguousarray(numbers, np.float64).tobytes())


def cell_volumes(edges: tuple[Array, ...]) -> Array:
    volumes = np.ones(1)
    for e in edges:
        volumes = np.outer(volumes, np.diff(e)).ravel()
    return volumes


def make_envelope(
    density: Expr, observables: tuple[Observable, ...], values: Mapping[str, float], margin: float
) -> Envelope:
    """Refine cells until most candidates are accepted."""
    edges = first_cells(density, observables, values)
    envelope = measure(density, observables, edges, margin)
    while envelope.efficiency < ENOUGH:
        finer = best_refinement(density, observables, envelope, margin)
        if finer is None:
            break
        envelope = finer
    return envelope


def first_cells(
    density: Expr, observables: tuple[Observable, ...], values: Mapping[str, float]
) -> tuple[Array, ...]:
    """Start with the panels that integrate the density: they are small where it changes fast."""
    if len(observables) == 1:
        line = adapt_line(density, values, observables[0], SHAPE_TOLERANCE)
        if line is not None:
            return (line,)
    else:
        axes = adapt_box(density, values, observables, SHAPE_TOLERANCE)
        if axes is not None:
            return tuple(at_least(np.array(e), FEWEST) for _, e in axes)
    return tuple(np.linspace(o.low, o.high, 17) for o in observables)


def at_least(edges: Array, cells: int) -> Array:
    """Cut equal cells until there are enough: with too few, a symmetric density seems to gain nothing by a cut."""
    return np.linspace(edges[0], edges[-1], max(len(edges) - 1, cells) + 1)


def best_refinement(
    density: Expr, observables: tuple[Observable, ...], envelope: Envelope, margin: float
) -> Envelope | None:
    """Cut the cells that waste most: in one dimension those, else all along the direction that gains most."""
    if int(np.prod(envelope.shape)) * 2 > MOST_CELLS:
        return None
    if len(observables) == 1:
        (edges,) = envelope.edges
        width = np.diff(edges)
        waste = (
            envelope.heights * width - np.maximum(cell_means(density, observables, envelope.edges), 0) * width
        )
        worst = waste >= np.quantile(waste, 0.5)
        middles = ((edges[:-1] + edges[1:]) / 2)[worst]
        return measure(density, observables, (np.sort(np.concatenate([edges, middles])),), margin)
    trials = []
    for axis, e in enumerate(envelope.edges):
        halves = np.sort(np.concatenate([e, (e[:-1] + e[1:]) / 2]))
        finer = (*envelope.edges[:axis], halves, *envelope.edges[axis + 1 :])
        trials.append(measure(density, observables, finer, margin))
    best = max(trials, key=lambda trial: trial.efficiency)
    return best if best.efficiency > envelope.efficiency + 1e-4 or max(envelope.shape) < 64 else None


def probe(density: Expr, observables: tuple[Observable, ...], edges: tuple[Array, ...], points: int) -> Array:
    """Evaluate a density at points of every cell, edges included: (cells, points)."""
    axes = [e[:-1, None] + np.diff(e)[:, None] * np.linspace(0, 1, points) for e in edges]
    grids = np.meshgrid(*(a.ravel() for a in axes), indexing="ij")
    named = {o.name: g.ravel() for o, g in zip(observables, grids, strict=True)}
    values = np.broadcast_to(evaluate(density, named), grids[0].size)
    split = values.reshape([n for e in edges for n in (len(e) - 1, points)])
    order = [*range(0, 2 * len(edges), 2), *range(1, 2 * len(edges), 2)]
    return split.transpose(order).reshape(int(np.prod([len(e) - 1 for e in edges])), -1)


def cell_means(density: Expr, observables: tuple[Observable, ...], edges: tuple[Array, ...]) -> Array:
    return np.asarray(
        np.nanmean(probe(density, observables, edges, PROBES[len(observables)]), axis=1), np.float64
    )


def measure(
    density: Expr, observables: tuple[Observable, ...], edges: tuple[Array, ...], margin: float
) -> Envelope:
    """Put a height on every cell, above what the density reaches at its points by a part of what it varies."""
    found = probe(density, observables, edges, PROBES[len(observables)])
    found = np.nan_to_num(found, nan=0.0, posinf=0.0)
    top, bottom = found.max(axis=1), found.min(axis=1)
    heights = np.maximum(top + margin * (top - bottom), 0.0)
    # a cell that looks empty may hide the foot of a peak: it gets a little, so that it is at least looked at
    heights = np.maximum(heights, 1e-9 * heights.max())
    volumes = cell_volumes(edges)
    mean = np.maximum(found, 0).mean(axis=1)
    return Envelope(edges, heights, float(np.sum(mean * volumes) / np.sum(heights * volumes)))


def alias_table(weights: Array) -> tuple[Array, Array]:
    """Return for each cell its own share and the cell that gets the rest (Walker 1977, Vose 1991)."""
    scaled = weights / weights.sum() * len(weights)
    share, alias = np.ones(len(weights)), np.arange(len(weights), dtype=np.float64)
    small = [k for k, s in enumerate(scaled) if s < 1]
    large = [k for k, s in enumerate(scaled) if s >= 1]
    left = scaled.tolist()
    while small and large:
        k, big = small.pop(), large[-1]
        share[k], alias[k] = left[k], big
        left[big] -= 1 - left[k]
        if left[big] < 1:
            small.append(large.pop())
    return share, alias
