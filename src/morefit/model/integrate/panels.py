"""Panels along one observable, between the edges of a density: fixed numbers, or expressions that move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import (
    COMPARISONS,
    ZERO,
    Expr,
    Op,
    apply,
    const,
    evaluate,
    leaves,
    substitute,
    toposort,
    where,
)
from morefit.model.integrate.edges import HUGE, base_of_root, find_breaks, find_centres
from morefit.model.integrate.tidy import difference, number_and_rest
from morefit.model.observable import Observable

SAMPLES = 1000  # values of parameters at which edges are compared,
AT_START = 10  # number of these that are the start values,
AT_ENDS = 300  # up to this one they are limits or start values
MAX_CENTRES = 200  # of a formula that are places where a peak may hide
AT_ROOT, AT_RIDGE = 2, 4  # powers of distances from edges where another one ends as a root, and from ridges
MAX_RIDGES = 4  # of a density of several observables, along which panels are cut
RIDGE = 1 / 32  # of a range: what changes inside of that is narrow,
RARE = 0.05  # of all points at which it changes: fewer are no ridge
CLOSE = 1e-3  # of a range: two edges that differ by less are one ridge
NEAR = 1e-4  # of an axis: the least distance from an edge at which that is looked at
LEAST_RIDGE = 1e-6  # if it changes by this part of the largest value
NOTHING = 1e-30  # of a range: edges that differ by less are one, as those of x > 0 and of max(x, 1e-150)
# operations that make no peak, however large their arguments are
PEAKLESS = (
    COMPARISONS
    | {Op.CONST, Op.SCALAR, Op.COLUMN, Op.ADD, Op.MUL, Op.WHERE, Op.ABS, Op.SIGN, Op.MIN, Op.MAX}
    | {Op.SIN, Op.COS, Op.SQRT}
)
BOUNDED = {Op.ERF, Op.ERFC, Op.TANH, Op.ATAN}
RATIONAL = {Op.CONST, Op.SCALAR, Op.COLUMN, Op.ADD, Op.MUL}
Points = Mapping[str, Array]  # of parameters and observables, SAMPLES of each


@dataclass(frozen=True)
class Panel:
    """A piece of an axis; u = 0 is at its start, where the density may be singular."""

    start: Expr
    end: Expr
    width: Expr  # positive
    origin: Expr  # the start, in which an edge is a term by itself: next to a pole, x - edge keeps its digits

    @classmethod
    def between(cls, low: Expr, high: Expr, singular_low: bool, singular_high: bool) -> list[Panel]:
        """Cover a piece of an axis by a panel, or by one from each end if both are singular."""
        if not singular_high:
            return [cls(low, high, high - low, low)]
        if not singular_low:
            return [cls(high, low, high - low, high)]
        middle = (low + high) / 2
        return [cls(low, middle, middle - low, low), cls(high, middle, high - middle, high)]

    def at(self, u: Expr) -> Expr:
        return self.origin + (self.end - self.start) * u

    def filled(self, body: Expr) -> Expr:
        """Return the width times a body; an empty panel contributes nothing, whatever the body is there."""
        product = self.width * body
        return product if self.width.op is Op.CONST else where(self.width > 0, product, ZERO)

    def place_of(self, x: Expr) -> Expr:
        return (x - self.start) / (self.end - self.start)

    @staticmethod
    def place_among(panels: Sequence[Panel], x: Expr) -> Expr:
        """Return the place of a point on the panel that it lies on; not between 0 and 1 if it is on none."""
        place = panels[0].place_of(x)
        for panel in panels[1:]:
            own = panel.place_of(x)
            place = where((own >= 0) & (own <= 1), own, place)
        return place


class Edges:
    """The edges of an observable's panels: fixed numbers, and expressions that move with parameters or outer observables."""

    @np.errstate(all="ignore")
    def __init__(self, x: Observable, body: Expr, inner: set[Expr], points: Points) -> None:
        self.x, self.points = x, points
        breaks = find_breaks(body, x.expr, (x.low, x.high), inner, points)
        self.undecided = frozenset(breaks.unsolved)  # conditions that may change inside a panel
        # what no parameter moves needs no derivatives: boxes are cut closely enough there
        self.unsolved = [z for z in breaks.unsolved if leaves(Op.SCALAR, z)]
        self.power = AT_ROOT  # of the distance from a singular edge that nodes are spread by
        self.hidden = False  # whether there may be peaks that no centre points at
        self.peaks, self.centres = ([], []) if is_peakless(body) else self.find_places(body, inner)
        singular = {e: v for e, v in self.distinct(breaks.singular).items() if self.is_inside(v)}
        edges = self.distinct([*breaks.kinks, *singular])
        self.singular = {e for e, v in edges.items() if any(agree(v, known) for known in singular.values())}
        fixed = [e for e, v in edges.items() if np.all(v == v[0])]
        # an edge that never enters the range would only add empty panels, each with a copy of the density
        self.moving = [
            e for e, v in edges.items() if e not in set(fixed) and np.any((x.low < v) & (v < x.high))
        ]
        numbers = {float(edges[e][0]) + 0.0: e in self.singular for e in fixed}
        self.fixed = {e: s for e, s in sorted(numbers.items()) if x.low < e < x.high}
        self.at_low, self.at_high = numbers.get(x.low, False), numbers.get(x.high, False)

    def find_places(self, body: Expr, inner: set[Expr]) -> tuple[list[Expr], list[Expr]]:
        """Return where sums of a formula are zero and parameters move that, and all points next to which a peak may lie."""
        ends = (self.x.low, self.x.high)
        solved, self.hidden = find_centres(body, self.x.expr, ends, inner, self.points)
        values = self.distinct([*solved, *numbers_in(body)])
        # what moves may enter the range later
        moving = {c for c, v in values.items() if not np.all(v == v[0])}
        reached = {c for c in moving if np.any((self.x.low <= values[c]) & (values[c] <= self.x.high))}
        centres = [c for c, v in values.items() if c in reached or self.is_inside(v)][:MAX_CENTRES]
        return [c for c in centres if c in moving and c in set(solved)], centres

    @np.errstate(all="ignore")
    def cut_at_peaks(self, body: Expr) -> None:
        """Make edges of the highest points: of one that moves with other observables, and of one that does not.

        Nodes crowd there as at singular ends.
        """
        highest: dict[bool, tuple[float, Expr]] = {}
        ends = (self.x.low, self.x.high)
        centres = self.distinct(find_centres(body, self.x.expr, ends, set(), self.points)[0])
        for centre, values in centres.items():
            heights = evaluate(body, {**self.points, self.x.name: np.clip(values, self.x.low, self.x.high)})
            height, moves = float(np.nan_to_num(heights, posinf=0.0).mean()), bool(leaves(Op.COLUMN, centre))
            if height > highest.get(moves, (0.0, centre))[0]:
                highest[moves] = height, centre
        for _, centre in highest.values():
            values = centres[centre]
            if np.ptp(values) > 0 and np.isfinite(values).any():
                alike = [e for e in self.moving if agree(evaluate(e, self.points), values)]
                self.moving += [] if alike else [centre]
                self.singular.add(alike[0] if alike else centre)
            elif self.x.low < values[0] < self.x.high:
                self.fixed[float(values[0])] = True
        self.fixed = dict(sorted(self.fixed.items()))

    @np.errstate(all="ignore")
    def cut_along_ridges(self, body: Expr, inner: Mapping[Expr, Sequence[float]]) -> None:
        """Make edges of the points where a density changes fast and that move with outer observables: boxes follow a ridge then.

        Nodes crowd there as at singular ends. ``inner`` has the columns of axes that are mapped already, with their edges: next to those, ridges along them lie.
        """
        rng = np.random.default_rng(0)
        near = {
            u.name: np.clip(rng.choice(edges, SAMPLES) + NEAR ** rng.uniform(0, 1, SAMPLES) * s, 0.0, 1.0)
            for u, edges in inner.items()
            for s in [rng.choice([-1.0, 1.0], SAMPLES)]
        }
        for centre in [c for c in self.centres if set(leaves(Op.COLUMN, c)) - inner.keys()][:MAX_RIDGES]:
            values = np.asarray(evaluate(centre, self.points), np.float64)
            if not any(self.are_close(e, values) for e in self.moving) and self.is_ridge(body, values, near):
                # the density is smooth there: its integral does not depend on the edge
                still = {leaf: Op.FIXED(leaf) for leaf in leaves(Op.SCALAR, centre)}
                self.moving.append(substitute(centre, still))
                self.crowd()

    def crowd(self) -> None:
        """Let nodes crowd at all edges, as next to ridges and where these cross or leave the range."""
        self.singular |= set(self.moving)
        self.fixed = dict.fromkeys(self.fixed, True)
        self.power = AT_RIDGE

    def are_close(self, edge: Expr, values: Array) -> bool:
        """Return whether an edge is so close to values all over the range that boxes resolve what lies there."""
        distance = np.abs(evaluate(edge, self.points) - values)
        return not np.any(distance > CLOSE * (self.x.high - self.x.low))

    def is_ridge(self, body: Expr, centre: Array, inner: Points) -> bool:
        """Return whether a density has a narrow peak, valley or step at a point, wherever that lies in the range.

        A smooth function changes with the distance or its square: less, by a factor or two, in an eighth of a distance.
        """
        low, high = self.x.low, self.x.high
        far = RIDGE * (high - low)
        inside = (low + far < centre) & (centre < high - far)
        steps = np.array([0.0, far, -far, far / 8, -far / 8])[:, None]
        heights = evaluate(body, {**self.points, **inner, self.x.name: centre + steps})
        top, *sides = np.broadcast_to(heights, (len(steps), SAMPLES))[:, inside]
        size = np.nanmax(np.abs([top, *sides]), initial=0.0)
        bent, bent_near = (abs(2 * top - right - left) for right, left in (sides[:2], sides[2:]))
        rise, rise_near = (abs(right - left) for right, left in (sides[:2], sides[2:]))
        narrow = (bent_near > bent / 16) & (bent > LEAST_RIDGE * size)
        steep = (rise_near > rise / 3) & (rise > LEAST_RIDGE * size)
        changes = np.maximum(bent, rise) > LEAST_RIDGE * size
        # some are edges of a region that pass by
        return bool(np.sum(narrow | steep) > RARE * np.sum(changes))

    @property
    def any_singular(self) -> bool:
        return self.at_low or self.at_high or any(self.fixed.values()) or self.moving_singular

    @property
    def moving_singular(self) -> bool:
        return any(e in self.singular for e in self.moving)

    def distinct(self, exprs: Sequence[Expr]) -> dict[Expr, Array]:
        """Return expressions with their values at all points; those that agree with an earlier one are dropped."""
        known: dict[Expr, Array] = {}
        rows, near = np.empty((len(exprs), SAMPLES)), NOTHING * (self.x.high - self.x.low)
        for e in dict.fromkeys(exprs):
            earlier, row = rows[: len(known)], rows[len(known)]
            row[:] = evaluate(e, self.points)
            # most differ at a few points already
            alike = agree(earlier[:, ::AT_START], row[::AT_START], near)
            if not agree(earlier[alike], row, near).any():
                known[e] = row
        return known

    def is_inside(self, values: Array) -> bool:
        """Return whether an edge lies in the range at the start values of the parameters."""
        near, start = 1e-9 * (self.x.high - self.x.low), values[:AT_START]
        return bool(np.any((self.x.low - near <= start) & (start <= self.x.high + near)))

    def inside_unit(self, panels: int) -> tuple[float, ...]:
        """Return the edges of the unit interval, fixed ones between them where there is but one panel."""
        if panels > 1 or self.any_singular:
            return (0.0, 1.0)
        return tuple(
            (e - self.x.low) / (self.x.high - self.x.low) for e in (self.x.low, *self.fixed, self.x.high)
        )

    def panels(self, guarded: bool, cut: bool = False) -> list[Panel]:
        """Return panels that cover the range; the moving edges are clipped to each piece between fixed ones.

        If they are guarded, edges that are in order at all points need not be sorted. If nothing moves, they are cut at
        fixed edges on demand.
        """
        if not (cut or self.moving or self.any_singular):
            return Panel.between(const(self.x.low), const(self.x.high), False, False)
        moving = self.sorted_moving(guarded)
        fixed = {self.x.low: self.at_low, **self.fixed, self.x.high: self.at_high}
        panels = []
        for (low, singular_low), (high, singular_high) in pairwise(fixed.items()):
            origins = {clip(e, low, high): e + clip(e, low, high, of=e) for e in moving if self.is_pole(e)}
            inside = [(clip(e, low, high), self.moving_singular) for e in moving]
            ends = [(const(low), singular_low), *inside, (const(high), singular_high)]
            for (a, at_a), (b, at_b) in pairwise(ends):
                own = Panel.between(a, b, at_a, at_b)
                panels += [replace(panel, origin=origins.get(panel.start, panel.start)) for panel in own]
        return panels

    def is_pole(self, edge: Expr) -> bool:
        """Return whether a density may be infinite at a moving edge, which is a number wherever it was tried."""
        return edge in self.singular and bool(np.isfinite(evaluate(edge, self.points)).all())

    def sorted_moving(self, guarded: bool) -> list[Expr]:
        """Return the moving edges in ascending order, sorted by the formula wherever they may move."""
        start = {name: values[0] for name, values in self.points.items()}
        edges = sorted(self.moving, key=lambda e: np.nan_to_num(float(evaluate(e, start)), nan=self.x.low))
        of_a_square = len(edges) == 2 and is_pair(*edges)
        if len(edges) < 2 or of_a_square or (guarded and self.in_order(edges)):
            return edges
        known = [e if is_always_number(e) else where(e <= HUGE, e, const(self.x.low)) for e in edges]
        for i in range(1, len(known)):
            for j in range(i, 0, -1):
                below, above = known[j - 1], known[j]
                known[j - 1], known[j] = apply(Op.MIN, below, above), apply(Op.MAX, below, above)
        return known

    def in_order(self, edges: list[Expr]) -> bool:
        """Return whether edges are in ascending order at all points."""
        values = np.array([np.broadcast_to(evaluate(e, self.points), (SAMPLES,)) for e in edges])
        return bool(np.all(np.diff(values, axis=0) >= 0))


def agree(some: Array, values: Array, near: float = 0.0) -> NDArray[np.bool_]:
    """Return whether expressions have the same values wherever they were tried, within rounding."""
    same = np.abs(some - values) <= np.maximum(1e-9 * np.maximum(np.abs(some), np.abs(values)), near)
    return np.asarray(np.all(same | (np.isnan(some) & np.isnan(values)), axis=-1))


def is_pair(lower: Expr, upper: Expr) -> bool:
    """Return whether two expressions are a - b and a + b with a root b."""
    number, root = number_and_rest(difference(upper, lower))
    return number > 0 and root.op is Op.SQRT


def is_always_number(edge: Expr) -> bool:
    """Return whether an expression is made of sums, products and whole powers, so that its order can be solved for."""
    nodes = toposort(edge, enter_integrals=False, enter_sums=False)
    return all(n.op in RATIONAL or (n.op is Op.POW and is_whole(n.args[1])) for n in nodes)


def is_whole(exponent: Expr) -> bool:
    return exponent.op is Op.CONST and exponent.number == int(exponent.number)


def is_always_finite(body: Expr) -> bool:
    """Return whether an expression is finite at any finite values, because its operations are."""
    return all(
        node.op in (PEAKLESS | BOUNDED) - {Op.SQRT}
        or (node.op is Op.POW and is_whole(node.args[1]) and node.args[1].number >= 0)
        for node in toposort(body, enter_integrals=False, enter_sums=False)
    )


def is_peakless(body: Expr) -> bool:
    """Return whether an expression is made of polynomials, waves and roots between its kinks, so that no peak can hide."""
    return all(
        node.op in PEAKLESS or (node.op is Op.POW and base_of_root(node) is None)
        for node in toposort(body, enter_integrals=False, enter_sums=False)
    )


def clip(edge: Expr, low: float, high: float, of: Expr = ZERO) -> Expr:
    """Return where an edge is inside a piece of an axis, counted from a point; what is not a number is at its low end."""
    return where(low < edge, where(edge < high, edge - of, high - of), low - of)


def numbers_in(density: Expr) -> list[Expr]:
    """Return parameters and written numbers of a formula, next to which a peak may lie, whatever the formula does with them."""
    written = {abs(c.number) for c in leaves(Op.CONST, density)}
    return [*leaves(Op.SCALAR, density), *(const(s * w) for w in sorted(written) for s in (1, -1))]
