"""The nll as a function of two parameters, minimised over the others, and its lines of equal height."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, nan, sqrt
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags
from morefit.data.histogram import divide
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.likelihood import Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import (
    BYTES_OF_POINT,
    Conditional,
    best_fit,
    check_floating,
    check_points,
    spaced,
    span,
    warn_of_weights,
)
from morefit.minimise.problem import as_likelihood
from morefit.model import Parameter, Pdf
from morefit.records.named_arrays import FrozenByName
from morefit.resources import check_memory
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.progress import Bar
from morefit.validate import check_level, name_of, whole_number

FINER = 6  # cells in each direction into which a cell of the grid is divided to draw lines
MARGIN = 1.25  # how far a contour's grid goes beyond the outermost level of a parabola

# A crossing of the level lies on an edge of the grid: from a node, one step in x or in y.
Edge = tuple[int, int, bool]  # (i, j, whether it goes in x)

# Corners above the level, counted 1, 2, 4, 8 around a cell -> pairs of its edges to connect. Edges are counted
# around it as well, each after its corner.
SEGMENTS: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((3, 0),), 2: ((0, 1),), 3: ((3, 1),), 4: ((1, 2),), 6: ((0, 2),), 7: ((3, 2),),
    8: ((2, 3),), 9: ((0, 2),), 11: ((1, 2),), 12: ((1, 3),), 13: ((0, 1),), 14: ((3, 0),),
}  # fmt: skip
# Two opposite corners are above: the middle of the cell decides whether they belong together.
ROUND_EVEN, ROUND_ODD = ((3, 0), (1, 2)), ((0, 1), (2, 3))


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class Contour(FrozenByName):
    """The nll as a function of two parameters on a grid, minimised over the others at each node.

    Where ``valid`` is False there is no valid minimum, and lines leave out the cells around the node.
    """

    x_name: str
    y_name: str
    x: Array  # (I,), ascending
    y: Array  # (J,), ascending
    nll: Array  # (I, J)
    names: tuple[str, ...]  # the other floating parameters
    others: Array  # (I, J, R)
    valid: Flags  # (I, J)
    best: tuple[float, float]
    minimum: float
    levels: tuple[float, ...]

    named = {"others": ("names", 1)}

    @property
    def delta(self) -> Array:
        """How far the nll is above its minimum."""
        return self.nll - self.minimum

    def lines(self, level: float) -> list[Array]:
        """Return the lines, each (points, 2), on which a region of this probability in two dimensions ends.

        A closed line ends with its first point; an open one ends at the border of the grid or at invalid nodes.
        """
        check_level("contour", level)
        x, y, delta = finer_grid(self.x, self.y, np.where(self.valid, self.delta, nan))
        # The root of a parabola is straight, so it is what linear interpolation suits.
        height = np.sqrt(np.clip(delta, 0, None)) - sqrt(-log(1 - level))
        points = {}
        pairs: list[tuple[Edge, Edge]] = []
        for one, other in crossings(height):
            points[one], points[other] = place(x, y, height, one), place(x, y, height, other)
            pairs.append((one, other))
        return [np.array([points[edge] for edge in chain]) for chain in chains(pairs)]

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        grid = f"{len(self.x)} x {len(self.y)} points"
        lines = [f"contour of {self.x_name} and {self.y_name}: {grid}, {verdict}"]
        for level in self.levels:
            curves = self.lines(level)
            ends = sum(not np.array_equal(line[0], line[-1]) for line in curves)
            lines.append(
                f"  {100 * level:g} %: {len(curves)} line{'s' * (len(curves) != 1)}"
                + (f", {ends} OPEN" if ends else "")
            )
        return "\n".join(lines)


def finer_grid(x: Array, y: Array, delta: Array) -> tuple[Array, Array, Array]:
    """Return heights on a finer grid: those of a parabola plus what remains, which is interpolated linearly.

    A valley between strongly correlated parameters is narrower than a cell, and would be cut into pieces.
    """
    fine = [divide(axis, FINER) for axis in (x, y)]
    steps = [np.arange(len(axis)) / FINER for axis in fine]
    parabola = parabola_of(x, y, delta)
    rest = delta - powers(x, y) @ parabola
    for number, at in enumerate(steps):
        below = np.minimum(at.astype(np.int64), rest.shape[number] - 2)
        share = np.expand_dims(at - below, 1 - number)
        low, high = np.take(rest, below, number), np.take(rest, below + 1, number)
        rest = np.where(share == 0, low, np.where(share == 1, high, (1 - share) * low + share * high))
    return fine[0], fine[1], powers(*fine) @ parabola + rest


def parabola_of(x: Array, y: Array, delta: Array) -> Array:
    """Return the coefficients of the parabola that describes the lowest heights best, (6,)."""
    known = np.isfinite(delta)
    weights = 1 / (1 + np.abs(delta[known]))
    return np.asarray(np.linalg.lstsq(powers(x, y)[known] * weights[:, None], delta[known] * weights)[0])


def powers(x: Array, y: Array) -> Array:
    """Return the powers up to the second of places on a grid, which go from -1 to 1, (I, J, 6)."""
    scaled = [2 * (axis - axis[0]) / (axis[-1] - axis[0]) - 1 for axis in (x, y)]
    u, v = np.meshgrid(*scaled, indexing="ij")
    return np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=-1)


def place(x: Array, y: Array, height: Array, edge: Edge) -> tuple[float, float]:
    """Return where an edge is crossed."""
    i, j, along_x = edge
    k, m = (i + 1, j) if along_x else (i, j + 1)
    t = height[i, j] / (height[i, j] - height[k, m])
    return float(x[i] + t * (x[k] - x[i])), float(y[j] + t * (y[m] - y[j]))


def crossings(height: Array) -> Iterator[tuple[Edge, Edge]]:
    """Go through the pieces of line between edges of cells: marching squares."""
    corners = (height[:-1, :-1], height[1:, :-1], height[1:, 1:], height[:-1, 1:])
    kind = sum(((c > 0) << k for k, c in enumerate(corners)), np.zeros(corners[0].shape, np.int64))
    known = np.isfinite(sum(corners, np.zeros(corners[0].shape)))
    middle = sum(corners, np.zeros(corners[0].shape)) > 0
    for i, j in np.argwhere(known & (kind > 0) & (kind < 15)).tolist():
        edges: tuple[Edge, ...] = ((i, j, True), (i + 1, j, False), (i, j + 1, True), (i, j, False))
        for one, other in segments(int(kind[i, j]), bool(middle[i, j])):
            yield edges[one], edges[other]


def segments(kind: int, middle: bool) -> tuple[tuple[int, int], ...]:
    """Return which edges of a cell to connect."""
    if kind == 5:
        return ROUND_ODD if middle else ROUND_EVEN
    if kind == 10:
        return ROUND_EVEN if middle else ROUND_ODD
    return SEGMENTS[kind]


def chains(pairs: Sequence[tuple[Edge, Edge]]) -> Iterator[list[Edge]]:
    """Join pairs that share an edge to lines: first the open ones, from an end, then the closed ones."""
    neighbours: dict[Edge, list[Edge]] = {}
    for one, other in pairs:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    ends = [edge for edge, near in neighbours.items() if len(near) == 1]
    for start in (*ends, *neighbours):
        if neighbours[start]:
            yield walk_along(neighbours, start)


def walk_along(neighbours: dict[Edge, list[Edge]], start: Edge) -> list[Edge]:
    """Follow a line from an edge, taking away what was followed."""
    chain = [start]
    while neighbours[chain[-1]]:
        here = chain[-1]
        there = neighbours[here].pop()
        neighbours[there].remove(here)
        chain.append(there)
    return chain


@in_sentences
def contour(
    likelihood: Term | Pdf,
    x: str | Parameter,
    y: str | Parameter,
    *,
    data: Any = None,
    levels: Sequence[float] = (0.6827, 0.9545),
    bounds: tuple[tuple[float, float], tuple[float, float]] | None = None,
    size: int = 31,
    best: FitResult | None = None,
    progress: bool = True,
) -> Contour:
    """Minimise a likelihood over all other floating parameters on a grid in two, all nodes together.

    ``levels`` are probabilities of regions in two dimensions; the grid holds the outermost one if the nll is
    about a parabola, unless ``bounds`` of x and of y are passed. ``best`` is as for ``profile``.

    Example: ``mf.intervals.contour(nll, mu, sigma, size=9, progress=False)``
    """
    levels = [check_level("contour", level) for level in np.atleast_1d(np.asarray(levels, object))]
    if not levels:
        raise OptionError("contour: needs at least one level, got none")
    likelihood, names = as_likelihood("contour", likelihood, data), (name_of(x), name_of(y))
    warn_of_weights("contour", likelihood)
    best = best_fit("contour", likelihood, best)
    check_floating("contour", best, *names)
    axes = [axis(best, name, k, max(levels), bounds=bounds, size=size) for k, name in enumerate(names)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    with Bar(f"contour of {names[0]} and {names[1]}", len(points), progress) as bar:
        scan = Conditional(likelihood, best, names, points, bar)
        scan.minimise()
    centre, minimum = scan.lowest()
    shape = (len(axes[0]), len(axes[1]))
    return Contour(
        x_name=names[0],
        y_name=names[1],
        x=axes[0],
        y=axes[1],
        nll=scan.fits.nll.reshape(shape),
        names=scan.rest,
        others=scan.fits.values.reshape(*shape, -1),
        valid=scan.fits.valid.reshape(shape),
        best=(float(centre[0]), float(centre[1])),
        minimum=minimum,
        levels=tuple(levels),
    )


def axis(best: FitResult, name: str, k: int, level: float, *, bounds: object, size: int) -> Array:
    """Return the values of one parameter on the grid."""
    size = whole_number("contour: size", size, 2)
    check_memory(f"contour: a grid of {size:.6g} x {size:.6g} points", BYTES_OF_POINT * float(size) ** 2)
    if bounds is None:
        points = span("contour", best, name, MARGIN * sqrt(-2 * log(1 - level)), size)
    elif not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise OptionError(
            f"contour: bounds must be those of x and of y, ((low, high), (low, high)), got {bounds!r}"
        )
    else:
        points = spaced("contour", bounds[k], size)
    check_points("contour", best, name, points)
    return points
