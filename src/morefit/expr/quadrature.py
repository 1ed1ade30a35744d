"""Quadrature over boxes: Gauss-Legendre points in each box, and boxes cut in two where an integrand needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from hashlib import sha256
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array

Measure = Callable[["Boxes"], Array]  # integrals of some quantities over each box, (boxes, quantities)

TOLERANCE = 1e-12  # relative to the integral, for the sum over all boxes; 1e-10 is promised
WORST_ERROR = 1e-7  # an integral that is further off is refused
POINTS = {1: 16, 2: 12, 3: 8}  # Gauss-Legendre points in each direction of a box, by the number of dimensions
FEW_POINTS = {1: 16, 2: 6, 3: 4}  # the same between the edges of a table of so many cells:
MANY_CELLS = 100
FIRST_BOXES = {1: 8, 2: 4, 3: 2}  # in each direction, to begin with
MAX_BOXES = {1: 4096, 2: 8192, 3: 4096}
MAX_GROWTH = 4  # times the boxes to begin with: an axis may have many edges
MANY_BOXES = {1: 24, 2: 96, 3: 96}  # more than a smooth integrand takes: other powers are tried
# of the map that takes an integrable singularity away from the low end of an axis
POWERS = (2, 4, 8, 16, 32)
ROUNDING = 1e-10  # relative to the integral: a change that is less, and does not shrink with the box, may be rounding
UNRESOLVED = 1e-13  # of an axis: closer to an end than this, rounding may show
SINGULAR_END = 1e-6  # of an axis
NARROWEST = 1e-13  # of an axis: a box that is not cut any further
SHARE = {
    1: 1.5,
    2: 2.0,
    3: 2.0,
}  # times: a box that holds that much more than its share of a larger one may hide a peak
DEPTH = 20  # halvings around a place where a narrow peak may hide
MAX_PLACES = {1: 24, 2: 16, 3: 8}  # at which peaks are looked for


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
    """What an integral runs over; ``places`` says for each place where a peak may hide on which axis it lies."""

    axes: tuple[Axis, ...]
    places: tuple[int, ...] = ()

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

    def edges(self) -> Array:
        """Return the ends of each box on the axes, (boxes, axes, 2)."""
        ends = np.stack([self.low, self.high], axis=2)
        for k, axis in enumerate(self.domain.axes):
            power = self.power if axis.singular else 1
            ends[:, k] = axis.low + (axis.high - axis.low) * ends[:, k] ** power
        return ends

    def widths_at(self, places: Array) -> Array:
        """Return the widths, on the axes, of the box around each place (places, axes); nan outside of all boxes."""
        unit = np.where(np.isfinite(places), places, -np.inf)[:, None]
        edges = self.edges()
        inside = np.all((edges[..., 0] <= unit) & (unit <= edges[..., 1]), axis=2)
        widths = (edges[..., 1] - edges[..., 0])[inside.argmax(axis=1)]
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
        change = np.stack(
            [
                measure(boxes.halved(np.full(len(boxes), k))).reshape(2, len(boxes), -1).sum(axis=0) - whole
                for k in range(len(boxes.domain.axes))
            ],
            axis=1,
        )  # (boxes, axes, quantities)
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
        whole = measure(boxes)
    low, high, values, left = (np.concatenate(parts) for parts in zip(*done, strict=True))
    totals = values.sum(axis=0)
    sizes = np.maximum(np.abs(values).sum(axis=0), whole_size)
    relative = np.where(sizes > 0, left.sum(axis=0) / sizes, 0.0)
    known = np.all(np.isfinite(values)) and np.all(np.isfinite(relative))
    return Adapted(boxes.replaced(low, high), float(relative.max(initial=0.0)) if known else np.inf, totals)


@np.errstate(all="ignore")
def adapt(
    domain: Domain, measure: Measure, places: Array, tolerance: float = TOLERANCE, points: int = 0
) -> Adapted:
    """Find boxes for an integrand; ``places`` (points, axes) are where a narrow peak may hide, on the axes' ranges.

    The fewest boxes win among powers of the map at the low end.
    """
    singular = any(axis.singular for axis in domain.axes)
    tried: list[Adapted] = []
    for power in POWERS if singular else (1,):
        first = Boxes.first(domain, power, points=points)
        max_boxes = max(MAX_BOXES[len(domain.axes)], MAX_GROWTH * len(first))
        tried.append(refine(measure, first, tolerance, max_boxes))
        if tried[-1].error <= 10 * tolerance and len(tried[-1].boxes) <= MANY_BOXES[len(domain.axes)]:
            break
    best = min(tried, key=lambda adapted: adapted.rank(tolerance))
    if singular:
        best = check_ends(measure, best, tolerance, max_boxes)
    for place in to_cube(domain, places, best.boxes.power):
        best = look_closer(measure, best, place, tolerance)
    return best


def check_ends(measure: Measure, adapted: Adapted, tolerance: float, max_boxes: int) -> Adapted:
    """Add to the error what another power finds, if much of the integral lies within rounding of a singular end.

    There x - x.low may have lost its digits, so that the integrand is wrong, but no box shows it.
    """
    domain = adapted.boxes.domain
    corner = near_end(adapted.boxes, 0.0, UNRESOLVED)
    sizes = np.maximum(np.abs(adapted.totals), np.finfo(float).tiny)
    if np.all(np.abs(measure(corner)[0]) <= tolerance * sizes):
        return adapted
    outer, inner = (np.abs(measure(near_end(adapted.boxes, 10.0**-k, 10.0 ** (1 - k)))[0]) for k in (9, 10))
    if np.any((inner > tolerance * sizes) & (inner > 0.99 * outer)):  # every decade adds as much: a pole
        return Adapted(adapted.boxes, np.inf, adapted.totals)
    other = refine(
        measure,
        Boxes.first(domain, 2 * adapted.boxes.power, points=adapted.boxes.points),
        tolerance,
        max_boxes,
    )
    if not other.error < np.inf:  # its points are too close to the end
        return adapted
    difference = float(np.max(np.abs(other.totals - adapted.totals) / sizes))
    return Adapted(adapted.boxes, max(adapted.error, difference), adapted.totals)


def near_end(boxes: Boxes, low: float, high: float) -> Boxes:
    """Return a box that is so close to the low ends of singular axes, and spans the others."""
    ends = ((low, high) if axis.singular else (0.0, 1.0) for axis in boxes.domain.axes)
    unit = np.array([[e ** (1 / boxes.power) for e in pair] for pair in ends])
    return boxes.replaced(unit[None, :, 0], unit[None, :, 1])


def look_closer(measure: Measure, adapted: Adapted, place: Array, tolerance: float) -> Adapted:
    """Cut the boxes around a place ever closer, and keep that if it finds something that they missed."""
    boxes, max_boxes = adapted.boxes, MAX_BOXES[len(adapted.boxes.domain.axes)]
    around = np.all((boxes.low <= place) & (place <= boxes.high), axis=1)
    near = boxes.replaced(boxes.low[around], boxes.high[around])
    sizes = np.abs(adapted.totals)
    if not hides_something(measure, near, place, tolerance * sizes):
        return adapted
    closer = refine(measure, cut_around(near, place), tolerance, max_boxes, sizes)
    missed = closer.totals - measure(near).sum(axis=0)
    if not closer.error < np.inf or np.all(
        np.abs(missed) <= max(10 * tolerance, adapted.error) * (sizes + np.abs(missed))
    ):
        return adapted
    low, high = (
        np.concatenate([getattr(boxes, end)[~around], getattr(closer.boxes, end)]) for end in ("low", "high")
    )
    return Adapted(boxes.replaced(low, high), max(adapted.error, closer.error), adapted.totals + missed)


def hides_something(measure: Measure, boxes: Boxes, place: Array, negligible: Array) -> bool:
    """Return whether ever smaller boxes around a place hold more than their share of what the next larger one holds."""
    low, high = boxes.low.min(axis=0), boxes.high.max(axis=0)
    parts = 0.5 ** np.arange(1, DEPTH + 1)[:, None]
    nested = boxes.replaced(place - parts * (place - low), place + parts * (high - place))
    shares = np.abs(np.concatenate([measure(boxes).sum(axis=0)[None], measure(nested)]))
    share = SHARE[len(place)] * 0.5 ** len(place)
    return bool(
        np.any((shares[1:] > share * shares[:-1]) & (shares[1:] > negligible))
        or not np.all(np.isfinite(shares))
    )


def to_cube(domain: Domain, places: Array, power: int) -> Array:
    """Return the places inside the ranges, as points of the unit cube."""
    if not len(places):
        return places
    low, high = (np.array([getattr(a, end) for a in domain.axes]) for end in ("low", "high"))
    powers = np.array([1 / power if a.singular else 1.0 for a in domain.axes])
    unit = (places - low) / (high - low)
    ends = np.array([SINGULAR_END if axis.singular else 0.0 for axis in domain.axes])  # powers look there
    inside = np.all((unit >= ends) & (unit <= 1), axis=1)
    cube = np.round(unit[inside] ** powers, 12)
    _, first = np.unique(cube, axis=0, return_index=True)
    return np.asarray(cube[np.sort(first)])  # the likeliest first


def cut_around(boxes: Boxes, place: Array) -> Boxes:
    """Cut the boxes around a place again and again, in all directions."""
    far: list[Boxes] = []
    while np.any(boxes.high - boxes.low > 2.0**-DEPTH):
        for axis in range(len(boxes.domain.axes)):
            boxes = boxes.halved(np.full(len(boxes), axis))
        around = np.all((boxes.low <= place) & (place <= boxes.high), axis=1)
        far.append(boxes.replaced(boxes.low[~around], boxes.high[~around]))
        boxes = boxes.replaced(boxes.low[around], boxes.high[around])
    far.append(boxes)
    return boxes.replaced(np.concatenate([b.low for b in far]), np.concatenate([b.high for b in far]))


def combine_places(domain: Domain, columns: Sequence[Callable[[dict[str, float]], Iterable[float]]]) -> Array:
    """Return points made of one place on each axis; those of an axis may depend on the axes before it.

    An axis without a place inside its range contributes its middle.
    """

    def extend(points: list[dict[str, float]], k: int) -> list[dict[str, float]]:
        axis, longer = domain.axes[k], []
        for i, point in enumerate(points):
            own = [p for p in columns[k](point) if axis.low <= p <= axis.high] or [(axis.low + axis.high) / 2]
            longer += [(i + j, {**point, axis.name: p}) for j, p in enumerate(own)]
        longer.sort(key=lambda pair: pair[0])  # the first places of all axes together come first
        return [point for _, point in longer[:limit]]

    limit = MAX_PLACES[len(domain.axes)]
    nowhere: list[dict[str, float]] = [{}]
    points = reduce(extend, range(len(domain.axes)), nowhere)
    return np.array([[point[name] for name in domain.names] for point in points])
