"""Quadrature over boxes: Gauss-Legendre points in each box, and boxes cut in two where an integrand needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.digests import sha256

Measure = Callable[["Boxes"], Array]  # integrals of some quantities over each box, (boxes, quantities)

TOLERANCE = 1e-12  # relative to the integral, for the sum over all boxes; 1e-10 is promised
WORST_ERROR = 1e-7  # an integral that is further off is refused
POINTS = {1: 16, 2: 12, 3: 8}  # Gauss-Legendre points in each direction of a box, by the number of dimensions
FEW_POINTS = {1: 16, 2: 6, 3: 4}  # the same between the edges of a table of at least this number of cells:
MANY_CELLS = 100
FIRST_BOXES = {1: 8, 2: 4, 3: 2}  # in each direction, to begin with
MAX_BOXES = {1: 4096, 2: 8192, 3: 4096}
ROUNDING = 1e-10  # relative to the integral: a change that is less, and does not shrink with the box, may be rounding
NARROWEST = 1e-13  # of an axis: a box that is not cut any further


@dataclass(frozen=True)
class Axis:
    """A column that an integral binds: its range, with the points between which the integrand is smooth."""

    name: str
    edges: tuple[float, ...] = (0.0, 1.0)
    singular: bool = False  # whether the integrand may have an integrable singularity at the low end

    @property
    def low(self) -> float:
        return self.edges[0]

    @property
    def high(self) -> float:
        return self.edges[-1]


@dataclass(frozen=True)
class Domain:
    """What an integral runs over; ``places`` says for each place where a peak may hide on which axis it lies.

    The first ones of each axis, ``tracked``, are those of peaks that move. ``hidden`` means that there may be others, which
    no formula points at.
    """

    axes: tuple[Axis, ...]
    places: tuple[int, ...] = ()
    tracked: int = 0
    hidden: bool = False

    def __str__(self) -> str:
        return ";".join(f"{a.name}={','.join(e.hex() for e in a.edges)}" for a in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def points(self) -> int:
        """The number of nodes in each direction of a box; bins of one axis alone leave the others long."""
        cells = [len(axis.edges) - 1 for axis in self.axes]
        is_table = prod(cells) > MANY_CELLS and min(cells) > 1
        return (FEW_POINTS if is_table else POINTS)[len(self.axes)]


def axes_of(domain: object) -> tuple[Axis, ...]:
    """Return the axes of the domain of an integral."""
    assert isinstance(domain, Domain)
    return domain.axes


@dataclass(frozen=True, eq=False)
class Nodes:
    """The points of a quadrature: a column for each axis, their weights, and weights that sum smooth functions to zero."""

    columns: dict[str, Array]
    weights: Array
    contrast: (
        Array  # the highest Legendre coefficients in each box: small where the boxes resolve the integrand
    )


@dataclass(frozen=True, kw_only=True)
class NodeDomain(Domain):
    """What an integral by a sample runs over: its events are the nodes, at any values of the parameters."""

    digest: str  # of all numbers
    nodes: Nodes = field(compare=False, repr=False)

    @classmethod
    def of(cls, columns: Mapping[str, Array], weights: Array) -> NodeDomain:
        axes = tuple(Axis(name, (float(x.min()), float(x.max()))) for name, x in columns.items())
        digest = sha256(b"".join(x.tobytes() for x in (*columns.values(), weights))).hexdigest()
        return cls(axes=axes, digest=digest, nodes=Nodes(dict(columns), weights, np.zeros_like(weights)))

    def __str__(self) -> str:
        return f"{super().__str__()};{self.digest}"


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes inside the unit cube, which a power takes to the ranges of the axes of a domain."""

    domain: Domain
    low: Array  # (boxes, axes)
    high: Array
    power: int = 1
    points: int = 0  # in each direction; 0: as many as usual

    @classmethod
    def first(
        cls, domain: Domain, power: int = 1, extra: Sequence[Sequence[float]] = (), points: int = 0
    ) -> Boxes:
        """Return equal boxes, cut also at the edges of the axes and at extra points of each."""
        lines = []
        for k, axis in enumerate(domain.axes):
            own = power if axis.singular else 1
            width = axis.high - axis.low
            inner = [((e - axis.low) / width) ** (1 / own) for e in axis.edges]
            equal = np.linspace(0, 1, FIRST_BOXES[len(domain.axes)] + 1)
            lines.append(np.unique([*inner, *equal, *(extra[k] if extra else ())]))
        low = np.array(list(product(*(line[:-1] for line in lines))))
        high = np.array(list(product(*(line[1:] for line in lines))))
        return cls(domain, low, high, power, points)

    def __len__(self) -> int:
        return len(self.low)

    @property
    def nodes_each(self) -> int:
        """The number of nodes in a box."""
        return len(self.grid[1])

    @property
    def grid(self) -> tuple[Array, Array, Array]:
        """The nodes of a box, as ``gauss_grid`` explains."""
        return gauss_grid(len(self.domain.axes), self.points or self.domain.points)

    def replaced(self, low: Array, high: Array) -> Boxes:
        """Return other boxes of the same kind."""
        return Boxes(self.domain, low, high, self.power, self.points)

    def halved(self, axes: NDArray[np.int64]) -> Boxes:
        """Cut each box in two along its axis: all lower halves, then all upper ones."""
        rows = np.arange(len(self))
        middle = (self.low[rows, axes] + self.high[rows, axes]) / 2
        top, bottom = self.high.copy(), self.low.copy()
        top[rows, axes] = bottom[rows, axes] = middle
        return self.replaced(np.concatenate([self.low, bottom]), np.concatenate([top, self.high]))

    def nodes(self) -> Nodes:
        """Return the nodes, those of each box together."""
        grid, grid_weights, top = self.grid
        columns, weights = {}, np.tile(grid_weights, (len(self), 1))
        for k, axis in enumerate(self.domain.axes):
            half = (self.high[:, k] - self.low[:, k])[:, None] / 2
            v = self.low[:, k][:, None] + half * (1 + grid[k])
            power, width = self.power if axis.singular else 1, axis.high - axis.low
            weights *= half * width * (power * v ** (power - 1) if power > 1 else 1.0)
            columns[axis.name] = (axis.low + width * (v**power if power > 1 else v)).ravel()
        signs = np.where(np.arange(len(self)) * 0.6180339887498949 % 1 < 0.5, 1.0, -1.0)[:, None]
        return Nodes(columns, weights.ravel(), (signs * weights * top).ravel())

    @cached_property
    def edges(self) -> Array:
        """The ends of each box on the axes, (boxes, axes, 2)."""
        ends = np.stack([self.low, self.high], axis=2)
        for k, axis in enumerate(self.domain.axes):
            power = self.power if axis.singular else 1
            ends[:, k] = axis.low + (axis.high - axis.low) * ends[:, k] ** power
        return ends

    def widths_at(self, places: Array) -> Array:
        """Return the widths, on the axes, of the box around each place (places, axes); nan outside of all boxes."""
        unit = np.where(np.isfinite(places), places, -np.inf)[:, None]
        low, high = self.edges[..., 0], self.edges[..., 1]
        inside = np.all((low <= unit) & (unit <= high), axis=2)
        widths = (high - low)[inside.argmax(axis=1)]
        return np.where(np.any(inside, axis=1)[:, None], widths, np.nan)


@lru_cache(maxsize=16)
def gauss_grid(dimensions: int, points: int) -> tuple[Array, Array, Array]:
    """Return Gauss-Legendre points of [-1, 1] in each direction, their weights, and the highest polynomials there.

    Those are the two highest that the points tell apart, added up over the directions.
    """
    x, w = np.polynomial.legendre.leggauss(points)
    highest = np.zeros(points)
    highest[-2:] = 1.0
    top = np.polynomial.legendre.legval(x, highest)
    index = np.stack([i.ravel() for i in np.meshgrid(*[np.arange(points)] * dimensions, indexing="ij")])
    return x[index], np.prod(w[index], axis=0), np.sum(top[index], axis=0)


@dataclass(frozen=True, eq=False)
class Adapted:
    """Boxes for an integrand, and what they reach: relative to the sizes of the integrals, for the worst quantity."""

    boxes: Boxes
    error: float
    totals: Array  # (quantities,)

    def rank(self, tolerance: float) -> tuple[float, int]:
        """Return a rank that is smaller for better boxes: those that reach the tolerance are compared by their number."""
        return max(self.error, 10 * tolerance), len(self.boxes)


@np.errstate(all="ignore")
def refine(
    measure: Measure, boxes: Boxes, tolerance: float, max_boxes: int, whole_size: Array | float = 0.0
) -> Adapted:
    """Cut boxes in two, along the axis where that changes the integral most, until it no longer changes.

    ``whole_size`` is the size of the integrals where the boxes are but a part of the domain.
    """
    done: list[tuple[Array, Array, Array, Array]] = []  # low, high, values, errors
    singular = any(axis.singular for axis in boxes.domain.axes)
    whole = measure(boxes)
    before = np.full(len(boxes), np.inf)  # the errors of the boxes that these were cut from
    while True:
        along = [np.full(len(boxes), k) for k in range(len(boxes.domain.axes))]
        halves = np.stack([measure(boxes.halved(k)).reshape(2, len(boxes), -1) for k in along], axis=2)
        change = halves.sum(axis=0) - whole[:, None]  # (boxes, axes, quantities)
        sizes = np.abs(whole).sum(axis=0) + sum(np.abs(values).sum(axis=0) for _, _, values, _ in done)
        sizes = np.maximum(sizes, whole_size)
        sizes = np.where(sizes > 0, sizes, 1.0)
        errors = np.abs(change).sum(axis=1)
        worst = (errors / sizes).max(axis=1)
        count = len(boxes) + sum(len(low) for low, *_ in done)
        # next to a singular end rounding is all that is left, and grows with every cut
        rounding = singular & (worst > before / 4) & (worst < ROUNDING)
        narrow = (boxes.high - boxes.low).min(axis=1) < NARROWEST
        cut = ~(worst <= tolerance / max(4.0, count**0.5)) & ~narrow & ~rounding
        stop = not cut.any() or count > max_boxes or not np.all(np.isfinite(whole))
        keep = np.ones_like(cut) if stop else ~cut
        done.append((boxes.low[keep], boxes.high[keep], whole[keep], errors[keep]))
        if stop:
            break
        axes = np.abs(change[cut] / sizes).max(axis=2).argmax(axis=1)
        boxes = boxes.replaced(boxes.low[cut], boxes.high[cut]).halved(axes)
        before = np.tile(worst[cut], 2)
        whole = np.concatenate(halves[:, np.flatnonzero(cut), axes])
    low, high, values, left = (np.concatenate(parts) for parts in zip(*done, strict=True))
    totals = values.sum(axis=0)
    sizes = np.maximum(np.abs(values).sum(axis=0), whole_size)
    relative = np.where(sizes > 0, left.sum(axis=0) / sizes, 0.0)
    known = np.all(np.isfinite(values)) and np.all(np.isfinite(relative))
    return Adapted(boxes.replaced(low, high), float(relative.max(initial=0.0)) if known else np.inf, totals)
