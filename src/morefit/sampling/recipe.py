"""How to draw from a density: by inversion where there is a formula, component by component, else by an envelope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    OwnSymbol,
    Table,
    apply,
    column,
    const,
    domain_of,
    evaluate,
    leaves,
    lookup,
    substitute,
    toposort,
    where,
)
from morefit.expr.evaluate import adapted_to
from morefit.expr.quadrature import POWERS
from morefit.kernel.symbols import uniform
from morefit.model.compose import Product, Sum
from morefit.model.integrate import plain_integral, singular_ends
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.rewrite.bind import bind

PROBABILITY = column("probability")  # what a quantile is a function of
PER_CALL = 2  # of them from a call of Philox
ENOUGH = 0.9  # of the candidates accepted; an envelope is refined until then
MOST_CELLS = 1 << 15
UNEQUAL = 50  # times: cells in two and three dimensions that differ by less are made equal
FEWEST = 8  # cells in each direction, in two and three dimensions
PROBES = {1: 9, 2: 5, 3: 4}  # points in each direction of a cell, edges included, where its maximum is sought
MARGIN = 0.25  # of what the density varies over those points, added to their maximum
FOOT = 0.1  # of the margin: the least height of a cell, as a part of the highest neighbour's
SPARE = 1 + 1e-9  # another backend may round upwards
NEGATIVE = 1e-9  # of the largest value; a density below minus that is no density, above it is rounded
GROWS = 1.5  # a density that is that much larger a million times closer to a point is infinite there
CHECKS = 65  # points at which a formula for a quantile is checked
WORST_SHAPE = 0.01  # of the integral
SHAPE_TOLERANCE = 1e-6  # of the first cells: they must see every peak that the integral sees


@dataclass(frozen=True)
class Recipe:
    """Expressions of random numbers: the observables of a candidate, whether to accept it, if it was too high."""

    drawn: Mapping[str, Expr]
    accept: Expr
    above: Expr
    efficiency: float  # expected


class Numbers:
    """Hands out random numbers; component densities of a sum may use the same ones.

    ``exact`` asks for efficiencies that are not estimated: those of components decide how often each is tried.
    """

    def __init__(self, first: int = 0, margin: float = MARGIN, *, exact: bool = False) -> None:
        self.next, self.margin, self.exact = first, margin, exact

    def take(self) -> Expr:
        self.next += 1
        return uniform(self.next - 1)


def recipe(pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Say how to draw from a density at given values of its parameters."""
    if isinstance(pdf, Sum):
        return sum_recipe(pdf, values, numbers)
    if isinstance(pdf, Product):
        return product_recipe(pdf, values, numbers)
    quantile = pdf.quantile(PROBABILITY)
    if quantile is not None:
        return quantile_recipe(bind_values(quantile, pdf, values), pdf, values, numbers)
    return density_recipe(pdf, values, numbers)


def quantile_recipe(quantile: Expr, pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Draw by inversion."""
    (x,) = pdf.observables
    check_quantile(quantile, bind_values(pdf.density(), pdf, values), x)
    bound = substitute(quantile, {PROBABILITY: numbers.take()})
    return Recipe({x.name: inside(x, bound)}, ONE, ZERO, 1.0)


def inside(x: Observable, point: Expr) -> Expr:
    """Keep a point in its range, which rounding may leave at an edge."""
    return apply(Op.MIN, apply(Op.MAX, point, const(x.low)), const(x.high))


def check_quantile(quantile: Expr, density: Expr, x: Observable) -> None:
    """Refuse a formula whose density is not one at the given values, or that cannot tell points apart."""
    between = np.linspace(0, 1, CHECKS)[1:-1]
    points = np.broadcast_to(evaluate_plainly(quantile, {PROBABILITY.name: between}), between.shape)
    places = np.concatenate([np.linspace(x.low, x.high, CHECKS), np.clip(points, x.low, x.high)])
    check_numbers(np.broadcast_to(evaluate(density, {x.name: places}), places.shape), {x.name: places})
    if not np.all(np.diff(points) >= 0) or not np.ptp(points) > 0:
        raise ModelError(
            f"density: cannot be drawn from, the inverse of its distribution in '{x.name}' is not a rising"
            " function at the given values; are they too far from the range?"
        )


def evaluate_plainly(expr: Expr, values: Mapping[str, Array]) -> Array:
    """Evaluate without scipy, if it is only the normal distribution that needs it: importing it takes 0.2 s."""
    known = dict(values)
    while (node := next((n for n in toposort(expr) if n.op is Op.NDTRI), None)) is not None:
        stand_in = column(OwnSymbol(f"normal quantile {len(known)}"))
        probabilities = np.asarray(evaluate(node.args[0], known), np.float64)
        known[stand_in.name] = np.vectorize(normal_quantile, otypes=[np.float64])(probabilities)
        expr = substitute(expr, {node: stand_in})
    return np.asarray(evaluate(expr, known), np.float64)


def normal_quantile(probability: float) -> float:
    """Invert the normal distribution; its ends are infinite."""
    if 0 < probability < 1:
        return NormalDist().inv_cdf(probability)
    return {0.0: -np.inf, 1.0: np.inf}.get(probability, np.nan)


def check_numbers(found: Array, places: Mapping[str, Array]) -> None:
    """Refuse a density that is infinite, negative or nowhere positive at the given values."""
    largest = np.nanmax(found, initial=0.0)
    if largest == np.inf:
        raise ModelError(
            f"density: infinite at {place_text(places, int(np.nanargmax(found)))}; cannot draw from a density"
            " without a bound, change the ranges of its observables"
        )
    if not largest > 0:
        raise ModelError(
            "density: zero, negative or not a number wherever it was tried, at the given values; are they"
            " too far from the range?"
        )
    if np.nanmin(found) < -NEGATIVE * largest:
        lowest = int(np.nanargmin(found))
        raise ModelError(
            f"density: negative at {place_text(places, lowest)}, got {float(found[lowest]):.3g} where its largest"
            f" value is {largest:.3g}; draw at values where it is positive everywhere"
        )


def place_text(places: Mapping[str, Array], index: int) -> str:
    return ", ".join(f"{name} = {float(numbers[index]):.6g}" for name, numbers in places.items())


def bind_values(expr: Expr, pdf: Pdf, values: Mapping[str, float]) -> Expr:
    """Fold the parameters into a formula; what they multiply by zero falls away."""
    return bind([expr], {p.name: values[p.name] for p in pdf.parameters})[0]


def density_recipe(pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Draw observables that the density does not depend on uniformly, the others under an envelope."""
    density = bind_values(pdf.density(), pdf, values)
    names = {leaf.name for leaf in leaves(Op.COLUMN, density)}
    flat = {o.name: flat_point(o, numbers.take()) for o in pdf.observables if o.name not in names}
    if not names:
        check_numbers(np.array([float(evaluate(density, {}))]), {})
        return Recipe(flat, ONE, ZERO, 1.0)
    box = tuple(o for o in pdf.observables if o.name in names)
    inner, area = (
        singular_recipe(density, *box, numbers) if len(box) == 1 else envelope_recipe(density, box, numbers)
    )
    efficiency = inner.efficiency
    if numbers.exact:
        rest = float(np.prod([o.high - o.low for o in pdf.observables if o.name not in names]))
        efficiency = float(evaluate(pdf.integral(), values)) / (area * rest)
    return Recipe({**inner.drawn, **flat}, inner.accept, inner.above, efficiency)


def singular_recipe(density: Expr, x: Observable, numbers: Numbers) -> tuple[Recipe, float]:
    """Draw an observable under an envelope; where its density is infinite, a power of a bounded one instead."""
    pieces = singular_pieces(density, x)
    if not pieces:
        return envelope_recipe(density, (x,), numbers)
    stand_in = Observable(f"root_of_{x.name}", 0.0, 1.0)
    for power in POWERS:
        point, slope = from_pieces(pieces, stand_in.expr, power)
        bounded = substitute(density, {x.expr: point}) * slope
        closer = np.array([[1e-9], [1e-6]]) ** (1 / power)  # of a piece; even closer rounding may bound it
        starts = (np.arange(len(pieces)) + closer) / len(pieces)
        near = np.asarray(evaluate(bounded, {stand_in.name: starts}))
        if np.all(near[0] <= near[1] * (1 + 1e-9)):
            recipe, area = envelope_recipe(bounded, (stand_in,), numbers)
            drawn = substitute(point, {stand_in.expr: recipe.drawn[stand_in.name]})
            return Recipe({x.name: drawn}, recipe.accept, recipe.above, recipe.efficiency), area
    return envelope_recipe(density, (x,), numbers)  # which says where it is infinite


def singular_pieces(density: Expr, x: Observable) -> list[tuple[float, float]]:
    """Return pieces that cover the range, each from a point where the density may be infinite; none if it is finite."""
    ends = singular_ends(density, x)
    width = x.high - x.low
    infinite: dict[tuple[float, int], bool] = {}
    for end in ends:
        for side in (-1, 1):
            near = np.asarray(evaluate(density, {x.name: end + side * width * np.array([1e-6, 1e-12])}))
            inside = x.low < end + side * 1e-6 * width < x.high
            infinite[end, side] = inside and not bool(near[1] <= GROWS * near[0])
    if not any(infinite.values()):
        return []
    pieces = []
    for low, high in pairwise(sorted({x.low, *ends, x.high})):
        from_low, from_high = infinite.get((low, 1), False), infinite.get((high, -1), False)
        if from_low and from_high:
            pieces += [(low, (low + high) / 2), (high, (low + high) / 2)]
        else:
            pieces.append((high, low) if from_high else (low, high))
    return pieces


def from_pieces(pieces: Sequence[tuple[float, float]], v: Expr, power: int) -> tuple[Expr, Expr]:
    """Return a point of the pieces, each of which has an equal part of [0, 1], closer to its start than v; and its slope."""
    points, slopes = [], []
    for k, (start, end) in enumerate(pieces):
        part = len(pieces) * v - k
        point = start + (end - start) * part**power
        first = const(float(np.nextafter(start, end)))  # where the density is infinite at most next door
        points.append(apply(Op.MAX if end > start else Op.MIN, point, first))
        slopes.append(len(pieces) * abs(end - start) * power * part ** (power - 1))
    for k in reversed(range(len(pieces) - 1)):
        here = v < (k + 1) / len(pieces)
        points[k], slopes[k] = where(here, points[k], points[k + 1]), where(here, slopes[k], slopes[k + 1])
    return points[0], slopes[0]


def flat_point(x: Observable, number: Expr) -> Expr:
    return apply(Op.MIN, x.low + (x.high - x.low) * number, const(x.high))


def sum_recipe(pdf: Sum, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Choose a component by one number, then draw from it; all components use the same numbers after that."""
    weights = np.array([float(evaluate(w, values)) for w in pdf.weights])
    if not np.all(weights >= 0) or not weights.sum() > 0:
        raise ModelError(
            f"sum: cannot draw with the fractions {weights.tolist()}; all must be positive or zero at the given values"
        )
    shares = weights[weights > 0] / weights.sum()
    chosen = numbers.take()
    parts, last = [], numbers.next
    for component in (c for c, w in zip(pdf.pdfs, weights, strict=True) if w > 0):
        own = Numbers(numbers.next, numbers.margin, exact=True)
        parts.append(recipe(component, values, own))
        last = max(last, own.next)
    numbers.next = last
    # a candidate that is not accepted is drawn anew, component and all: what is rejected more is tried more often
    tries = shares / [part.efficiency for part in parts]
    edges = np.cumsum(tries) / tries.sum()
    kept = list(zip(edges.tolist(), parts, strict=True))

    def pick(exprs: list[Expr]) -> Expr:
        choice = exprs[-1]
        for (edge, _), expr in reversed(list(zip(kept[:-1], exprs[:-1], strict=True))):
            choice = where(chosen < edge, expr, choice)
        return choice

    drawn = {o.name: pick([part.drawn[o.name] for _, part in kept]) for o in pdf.observables}
    efficiency = 1 / float(tries.sum())
    return Recipe(drawn, pick([p.accept for p in parts]), pick([p.above for p in parts]), efficiency)


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
    efficiency: float  # estimated
    waste: Array  # of each cell: how much of its volume lies above the density
    changes: tuple[float, ...]  # of the density inside cells, along each axis

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(e) - 1 for e in self.edges)


def envelope_recipe(
    density: Expr, observables: tuple[Observable, ...], numbers: Numbers
) -> tuple[Recipe, float]:
    """Draw a cell by Walker's alias method, a point in it, and accept it by its height; also say the area under it."""
    envelope = make_envelope(density, observables, numbers.margin)
    volumes = envelope.heights * cell_volumes(envelope.edges).ravel()
    share, alias = alias_table(volumes)
    name = f"envelope of {density.order[1] & 0xFFFFFFFF:08x}"
    first, points = numbers.take(), [numbers.take() for _ in observables]
    size = len(volumes)
    place = apply(Op.FLOOR, first * size)
    left, own = first * size - place, lookup(table(name, "share", share), place)
    stays = left < own
    cell = where(stays, place, lookup(table(name, "alias", alias), place))
    drawn: dict[str, Expr] = {}
    rest = cell
    for axis in reversed(range(len(observables))):
        count = envelope.shape[axis]
        # whole numbers, half a step from rounding
        rows = apply(Op.FLOOR, (rest + 0.5) / count) if axis else const(0)
        index = rest - rows * count
        point = point_in(f"{name} {axis}", envelope.edges[axis], index, points[axis])
        drawn[observables[axis].name] = apply(Op.MIN, point, const(observables[axis].high))
        rest = rows
    height = lookup(table(name, "height", envelope.heights), cell)
    here = substitute(density, {o.expr: drawn[o.name] for o in observables})
    if numbers.next % PER_CALL:
        judge = numbers.take()
    else:  # it would be the first of another call of the generator; what is left of the choice of a cell is as good
        judge = where(stays, left, left - own) / where(stays, own, 1 - own)
    accept = judge * height < here
    return Recipe(drawn, accept, height < here, envelope.efficiency), float(volumes.sum())


def point_in(name: str, edges: Array, index: Expr, number: Expr) -> Expr:
    """Return a point of a cell; equal cells need no table."""
    widths = np.diff(edges)
    if np.ptp(widths) <= 1e-12 * widths[0]:
        return float(edges[0]) + float(edges[-1] - edges[0]) / len(widths) * (index + number)
    return (
        lookup(table(name, "low", edges[:-1]), index) + lookup(table(name, "width", widths), index) * number
    )


def table(name: str, label: str, numbers: Array) -> Table:
    return Table(f"{name} {label}", np.ascontiguousarray(numbers, np.float64).tobytes(), label)


def cell_volumes(edges: tuple[Array, ...]) -> Array:
    volumes = np.ones(1)
    for e in edges:
        volumes = np.outer(volumes, np.diff(e)).ravel()
    return volumes


def make_envelope(density: Expr, observables: tuple[Observable, ...], margin: float) -> Envelope:
    """Refine cells until most candidates are accepted."""
    edges = first_cells(density, observables)
    envelope = measure(density, observables, edges, margin)
    while envelope.efficiency < ENOUGH:
        finer = best_refinement(density, observables, envelope, margin)
        if finer is None:
            break
        envelope = finer
    return envelope


def first_cells(density: Expr, observables: tuple[Observable, ...]) -> tuple[Array, ...]:
    """Start with the edges of boxes that integrate the density: they are small where it changes fast."""
    integral = plain_integral(density, observables, {})
    adapted = adapted_to(integral.args[1:], domain_of(integral), (), SHAPE_TOLERANCE)
    if WORST_SHAPE < adapted.error < np.inf:
        raise ModelError(
            "density: cannot be drawn from, its integral does not converge at the given values; is it bounded on the"
            " ranges of its observables?"
        )
    boxes = adapted.boxes
    cells = []
    for k, o in enumerate(observables):
        edges = np.unique(np.concatenate([boxes.low[:, k], boxes.high[:, k]]))
        cells.append(o.low + (o.high - o.low) * edges)
    if len(cells) == 1:
        return tuple(cells)
    while np.prod([len(c) - 1 for c in cells]) > MOST_CELLS // 2:
        longest = max(range(len(cells)), key=lambda k: len(cells[k]))
        cells[longest] = np.union1d(cells[longest][::2], cells[longest][-1:])
    return tuple(at_least(c, FEWEST) for c in cells)


def at_least(edges: Array, cells: int) -> Array:
    """Cut few cells into enough equal ones: with too few, a symmetric density seems to gain nothing by a cut.

    Equal cells need no tables, so edges are kept only where some are much closer than others.
    """
    widths = np.diff(edges)
    if widths.min() < widths.max() / UNEQUAL:
        return edges
    count = 1 << (max(len(widths), cells) - 1).bit_length()  # they are halved until there are enough
    return np.linspace(edges[0], edges[-1], count + 1)


def best_refinement(
    density: Expr, observables: tuple[Observable, ...], envelope: Envelope, margin: float
) -> Envelope | None:
    """Cut the cells that waste most: in one dimension those, else all along the direction of the largest changes."""
    if int(np.prod(envelope.shape)) * 2 > MOST_CELLS:
        return None
    edges = list(envelope.edges)
    axis = int(np.argmax(envelope.changes))
    cut = envelope.waste >= np.quantile(envelope.waste, 0.5) if len(edges) == 1 else slice(None)
    middles = ((edges[axis][:-1] + edges[axis][1:]) / 2)[cut]
    edges[axis] = np.sort(np.concatenate([edges[axis], middles]))
    return measure(density, observables, tuple(edges), margin)


def probe(density: Expr, observables: tuple[Observable, ...], edges: tuple[Array, ...]) -> Array:
    """Evaluate a density on a grid that has the same number of points in every cell, those on its edges included."""
    steps = PROBES[len(edges)] - 1
    inner = np.arange(steps) / steps
    axes = [np.append((e[:-1, None] + np.diff(e)[:, None] * inner).ravel(), e[-1]) for e in edges]
    grids = np.meshgrid(*axes, indexing="ij", sparse=True)
    named = {o.name: g for o, g in zip(observables, grids, strict=True)}
    shape = tuple(len(a) for a in axes)
    found: Array = np.array(np.broadcast_to(evaluate(density, named), shape), np.float64)
    check_numbers(found.ravel(), {n: np.broadcast_to(g, shape).ravel() for n, g in named.items()})
    return found


def over_cells(grid: Array, how: Callable[[Array, Array], Array], axis: int) -> Array:
    """Combine the points of each cell along one axis."""
    steps = PROBES[grid.ndim] - 1
    moved = np.moveaxis(grid, axis, 0)
    parts = [moved[k : len(moved) - steps + k : steps] for k in range(steps + 1)]
    return np.moveaxis(reduce(how, parts), 0, axis)


def over_all(grid: Array, how: Callable[[Array, Array], Array]) -> Array:
    for axis in range(grid.ndim):
        grid = over_cells(grid, how, axis)
    return grid


def highest_neighbour(heights: Array) -> Array:
    """Return the largest of each cell and those around it."""
    for axis in range(heights.ndim):
        moved = np.moveaxis(heights, axis, 0)
        largest = moved.copy()
        largest[1:] = np.maximum(largest[1:], moved[:-1])
        largest[:-1] = np.maximum(largest[:-1], moved[1:])
        heights = np.moveaxis(largest, 0, axis)
    return heights


def measure(
    density: Expr, observables: tuple[Observable, ...], edges: tuple[Array, ...], margin: float
) -> Envelope:
    """Put a height on every cell, above what the density reaches at its points by a part of what it varies.

    Where the density is negative by rounding, or not a number at single points, it counts as zero.
    """
    found = probe(density, observables, edges)
    lost = np.argwhere(over_all(1.0 * np.isnan(found), np.minimum))
    if len(lost):
        place = {o.name: e[k : k + 1] for o, e, k in zip(observables, edges, lost[0], strict=True)}
        raise ModelError(
            f"density: not a number from {place_text(place, 0)} on; say with mf.where what it is there"
        )
    found = np.maximum(np.nan_to_num(found, nan=0.0), 0.0)
    top, bottom = over_all(found, np.maximum), over_all(found, np.minimum)
    heights = top + margin * (top - bottom)
    # a cell that looks empty may hide the foot of a peak: it gets a little, so that it is at least looked at
    foot = np.maximum(FOOT * margin * highest_neighbour(top), 1e-9 * top.max())
    heights = SPARE * np.maximum(heights, foot)
    volumes = cell_volumes(edges)
    mean = over_all(found, np.add).ravel() / PROBES[found.ndim] ** found.ndim
    waste = (heights.ravel() - mean) * volumes
    efficiency = float(np.sum(mean * volumes) / np.sum(heights.ravel() * volumes))
    return Envelope(edges, heights.ravel(), efficiency, waste, spreads(found))


def spreads(grid: Array) -> tuple[float, ...]:
    """Say how much a density changes inside cells along each axis."""
    return tuple(
        float(np.mean(over_cells(grid, np.maximum, k) - over_cells(grid, np.minimum, k)))
        for k in range(grid.ndim)
    )


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
