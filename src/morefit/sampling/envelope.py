"""A candidate event as expressions of random numbers, accepted or rejected under a piecewise constant envelope of its density."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Table, apply, const, domain_of, evaluate, lookup, substitute, where
from morefit.expr.evaluate import adapted_to
from morefit.kernel.symbols import uniform
from morefit.model.integrate import plain_integral
from morefit.model.observable import Observable

MARGIN = 0.25  # of what a density varies inside a cell of an envelope, added to its maximum there
NEGATIVE = 1e-9  # of the largest value; a density below minus that is no density, above it is rounded


@dataclass(frozen=True)
class Recipe:
    """Expressions of random numbers: the observables of a candidate, whether to accept it, if it was too high."""

    drawn: Mapping[str, Expr]
    accept: Expr
    above: Expr
    efficiency: float  # expected


class Numbers:
    """Random numbers of one candidate; component densities of a sum may use the same ones.

    ``exact`` asks for efficiencies that are not estimated: those of components decide how often each is tried.
    """

    def __init__(self, first: int = 0, margin: float = MARGIN, *, exact: bool = False) -> None:
        self.next, self.margin, self.exact = first, margin, exact

    def take(self) -> Expr:
        self.next += 1
        return uniform(self.next - 1)


def check_values(density: Array, points: Mapping[str, Array]) -> None:
    """Refuse a density that is infinite, negative or nowhere positive at the values of the parameters."""
    largest = np.nanmax(density, initial=0.0)
    if largest == np.inf:
        raise ModelError(
            f"density: infinite at {point_text(points, int(np.nanargmax(density)))}; cannot draw from a density"
            " without a bound, change the ranges of its observables"
        )
    if not largest > 0:
        raise ModelError(
            "density: zero, negative or not a number wherever it was tried, at the given values; are they"
            " too far from the range?"
        )
    if np.nanmin(density) < -NEGATIVE * largest:
        lowest = int(np.nanargmin(density))
        raise ModelError(
            f"density: negative at {point_text(points, lowest)}, got {float(density[lowest]):.3g} where its largest"
            f" value is {largest:.3g}; draw at values where it is positive everywhere"
        )


def point_text(points: Mapping[str, Array], index: int) -> str:
    return ", ".join(f"{name} = {float(numbers[index]):.6g}" for name, numbers in points.items())


PER_CALL = 2  # random numbers from a call of Philox
ENOUGH = 0.9  # of the candidates accepted; an envelope is refined until then
MAX_CELLS = 1 << 15
UNEQUAL = 50  # times: cells in two and three dimensions that differ by less are made equal
MIN_CELLS = 8  # in each direction, in two and three dimensions
PROBES = {1: 9, 2: 5, 3: 4}  # points in each direction of a cell, edges included, where its maximum is sought
FOOT = 0.1  # of the margin: the least height of a cell, as a part of the highest neighbour's
SPARE = 1 + 1e-9  # another backend may round upwards
WORST_SHAPE = 0.01  # of the integral
SHAPE_TOLERANCE = 1e-6  # of the first cells: they must see every peak that the integral sees


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
    density: Expr, observables: tuple[Observable, ...], numbers: Numbers, envelope: Envelope | None = None
) -> tuple[Recipe, float]:
    """Draw a cell by Walker's alias method, a point in it, and accept it by its height; also return the area under it.

    Where a density depends on what it is given, the envelope is known.
    """
    envelope = envelope or make_envelope((density,), observables, numbers.margin)
    volumes = envelope.heights * cell_volumes(envelope.edges).ravel()
    ranges = tuple((o.low, o.high) for o in observables)  # a density may be drawn from in several
    name = f"envelope of {hash((density.order[1], ranges)) & 0xFFFFFFFF:08x}"
    first, points = numbers.take(), [numbers.take() for _ in observables]
    cell, left, width = draw_cell(name, volumes, first)
    drawn: dict[str, Expr] = {}
    for axis, index in reversed(list(enumerate(indices_of(cell, envelope.shape)))):
        point = point_in(f"{name} {axis}", envelope.edges[axis], index, points[axis])
        drawn[observables[axis].name] = Op.MIN(point, const(observables[axis].high))
    height = lookup(table(f"{name} height", envelope.heights), cell)
    here = substitute(density, {o.expr: drawn[o.name] for o in observables})
    if numbers.next % PER_CALL:
        # otherwise reuse what is left of the first, instead of another Philox call
        left, width = numbers.take(), ONE
    accept = left * height < here * width
    return Recipe(drawn, accept, height < here, envelope.efficiency), float(volumes.sum())


def draw_cell(name: str, weights: Array, number: Expr) -> tuple[Expr, Expr, Expr]:
    """Draw a cell by Walker's alias method; also return what is left of the random number, evenly between 0 and another."""
    share, alias = alias_table(weights)
    place = Op.FLOOR(number * len(weights))
    # in one number, so that it takes one lookup
    both = lookup(table(f"{name} alias and share", alias + np.minimum(share, below_one(len(weights)))), place)
    other = Op.FLOOR(both)
    left, own = number * len(weights) - place, both - other
    stays = left < own
    return where(stays, place, other), where(stays, left, left - own), where(stays, own, 1 - own)


def below_one(cells: int) -> float:
    """Return the largest number below one that can be added to the number of any cell."""
    return 1 - float(np.spacing(np.float64(cells)))


def indices_of(cell: Expr, shape: Sequence[int]) -> list[Expr]:
    """Return the place of a cell along each axis; the last one runs fastest."""
    indices = []
    for axis in reversed(range(len(shape))):
        # whole numbers, half a step from rounding
        rows = Op.FLOOR((cell + 0.5) / shape[axis]) if axis else const(0)
        indices.append(cell - rows * shape[axis])
        cell = rows
    return indices[::-1]


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
    densities: tuple[Expr, ...], observables: tuple[Observable, ...], margin: float
) -> Envelope:
    """Refine cells until most candidates are accepted; of several densities, such as examples of one, the largest counts."""
    edges = first_cells(densities, observables)
    density = reduce(partial(apply, Op.MAX), densities)
    if len(densities) > 1:
        density = (1 + margin) * density  # those between the examples may be higher
    envelope = measure(density, observables, edges, margin)
    while envelope.efficiency < ENOUGH:
        finer = best_refinement(density, observables, envelope, margin)
        if finer is None:
            break
        envelope = finer
    return envelope


def first_cells(densities: tuple[Expr, ...], observables: tuple[Observable, ...]) -> tuple[Array, ...]:
    """Start with the edges of boxes that integrate the densities: they are small where these change fast."""
    low, high = zip(*(first_boxes(density, observables) for density in densities), strict=True)
    ends = np.concatenate([*low, *high])
    cells = [o.low + (o.high - o.low) * np.unique(ends[:, k]) for k, o in enumerate(observables)]
    if len(cells) == 1:
        return tuple(cells)
    while np.prod([len(c) - 1 for c in cells]) > MAX_CELLS // 2:
        longest = max(range(len(cells)), key=lambda k: len(cells[k]))
        cells[longest] = np.union1d(cells[longest][::2], cells[longest][-1:])
    return tuple(at_least(c, MIN_CELLS) for c in cells)


def first_boxes(density: Expr, observables: tuple[Observable, ...]) -> tuple[Array, Array]:
    """Return the lower and upper ends of boxes that integrate a density, relative to the ranges."""
    integral = plain_integral(density, observables)
    adapted = adapted_to(integral.args[1:], domain_of(integral), (), SHAPE_TOLERANCE)
    if WORST_SHAPE < adapted.error < np.inf:
        raise ModelError(
            "density: cannot be drawn from, its integral does not converge at the given values; is it bounded on the"
            " ranges of its observables?"
        )
    return adapted.boxes.low, adapted.boxes.high


def at_least(edges: Array, cells: int) -> Array:
    """Cut few cells into enough equal ones: with too few, a symmetric density seems to gain nothing by a cut.

    Equal cells need no tables, so edges stay only where some are much closer than others.
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
    if int(np.prod(envelope.shape)) * 2 > MAX_CELLS:
        return None
    edges = list(envelope.edges)
    axis = int(np.argmax(envelope.changes))
    cut = envelope.waste >= np.quantile(envelope.waste, 0.5) if len(edges) == 1 else slice(None)
    middles = ((edges[axis][:-1] + edges[axis][1:]) / 2)[cut]
    edges[axis] = np.sort(np.concatenate([edges[axis], middles]))
    return measure(density, observables, tuple(edges), margin)


def probe_axes(edges: tuple[Array, ...]) -> list[Array]:
    """Return places along each axis: the same number in every cell, those on its edges included."""
    steps = PROBES[len(edges)] - 1
    inner = np.arange(steps) / steps
    return [np.append((e[:-1, None] + np.diff(e)[:, None] * inner).ravel(), e[-1]) for e in edges]


def probe(density: Expr, observables: tuple[Observable, ...], edges: tuple[Array, ...]) -> Array:
    """Evaluate a density on the grid of these places."""
    axes = probe_axes(edges)
    grids = np.meshgrid(*axes, indexing="ij", sparse=True)
    named = {o.name: g for o, g in zip(observables, grids, strict=True)}
    shape = tuple(len(a) for a in axes)
    grid: Array = np.array(np.broadcast_to(evaluate(density, named), shape), np.float64)
    check_values(grid.ravel(), {n: np.broadcast_to(g, shape).ravel() for n, g in named.items()})
    return grid


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
    """Return the height of every cell: the maximum of the density at its points, plus a part of its variation there.

    Where the density is negative by rounding, or not a number at single points, it counts as zero.
    """
    grid = probe(density, observables, edges)
    lost = np.argwhere(over_all(1.0 * np.isnan(grid), np.minimum))
    if len(lost):
        place = {o.name: e[k : k + 1] for o, e, k in zip(observables, edges, lost[0], strict=True)}
        raise ModelError(
            f"density: not a number from {point_text(place, 0)} on; say with mf.where what it is there"
        )
    grid = np.maximum(np.nan_to_num(grid, nan=0.0), 0.0)
    heights = heights_of(grid, margin)
    volumes = cell_volumes(edges)
    mean = over_all(grid, np.add).ravel() / PROBES[grid.ndim] ** grid.ndim
    waste = (heights.ravel() - mean) * volumes
    efficiency = float(np.sum(mean * volumes) / np.sum(heights.ravel() * volumes))
    return Envelope(edges, heights.ravel(), efficiency, waste, spreads(grid))


def heights_of(grid: Array, margin: float) -> Array:
    """Return the heights of cells: the maximum of a density at the points of each, and a part of its variation there."""
    top, bottom = over_all(grid, np.maximum), over_all(grid, np.minimum)
    heights = top + margin * (top - bottom)
    # a cell that looks empty may hide the foot of a peak: it gets a little, so that it is at least looked at
    foot = np.maximum(FOOT * margin * highest_neighbour(top), 1e-9 * top.max())
    return np.asarray(SPARE * np.maximum(heights, foot))


def spreads(grid: Array) -> tuple[float, ...]:
    """Return how much a density changes inside cells along each axis."""
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
