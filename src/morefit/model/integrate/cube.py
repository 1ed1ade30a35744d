"""Map a density onto the unit cube: panels run between its kinks, which are expressions, so that they move along.

Between two edges a(parameters) and b(parameters) an observable is a + (b - a) u with u in [0, 1]; the integral is the sum
over panels of (b - a) times the integral over u. Derivatives of the edges come in by the chain rule. In two and three
dimensions the edges of an inner observable depend on the outer ones, and their own kinks are edges there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.expr import (
    COMPARISONS,
    Expr,
    Op,
    add_all,
    apply,
    column,
    const,
    evaluate,
    integral_of,
    leaves,
    multiply_all,
    substitute,
    toposort,
    where,
)
from morefit.expr.quadrature import Axis, Domain
from morefit.model.integrate.edges import HUGE, base_of_root, find_breaks, find_centres, zeros_of_kinks
from morefit.model.integrate.pieces import decide, guarded
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

SAMPLES = 1000  # values of parameters at which edges are compared,
AT_START = 10  # number of these that are the start values,
AT_ENDS = 300  # up to this one they are limits or start values
MAX_PARTS = 256  # of a density with kinks of their own
MAX_CENTRES = 12
# operations that make no peak, however large their arguments are
PEAKLESS = (
    COMPARISONS
    | {Op.CONST, Op.SCALAR, Op.COLUMN, Op.ADD, Op.MUL, Op.WHERE, Op.ABS, Op.MIN, Op.MAX}
    | {Op.SIN, Op.COS, Op.SQRT}
)
MAX_PLACES = 48
Points = Mapping[str, Array]  # of parameters and observables, SAMPLES of each


def integral_over_box(
    density: Expr, observables: Sequence[Observable], parameters: Sequence[Parameter]
) -> Expr:
    """Return the numerical integral of a density over a box, the order of the observables such that kinks can be solved."""
    density, points = on_ranges(density, observables), sample_points(observables, parameters)
    cubes = [map_to_cube(part, observables, points) for part in split_by_kinks(density)]
    axes = []
    for k in range(len(observables)):
        own = [cube.axes[k] for cube in cubes]
        edges = sorted({edge for axis in own for edge in axis.edges})
        axes.append(Axis(own[0].name, tuple(edges), any(axis.singular for axis in own)))
    body = add_all(*(cube.body for cube in cubes)) if len(cubes) > 1 else cubes[0].body
    places = [place for cube in cubes for place in cube.places]
    unsolved = [zero for cube in cubes for zero in cube.unsolved]
    domain = Domain(tuple(axes), tuple(k for k, _ in places))
    whole = integral_of(body, domain, *(place for _, place in places), *unsolved)
    return guarded(whole, [guard for cube in cubes for guard in cube.guards])


def map_to_cube(density: Expr, observables: Sequence[Observable], points: Points) -> Cube:
    """Map a density, the order of the observables such that its kinks can be solved for."""
    best: Cube | None = None
    for order in permutations(observables):
        cube = Cube(density, points, len(order))
        for x in reversed(order):
            cube.integrate(x)
        if best is None or len(cube.unsolved) < len(best.unsolved):
            best = cube
        if not cube.unsolved:
            break
    assert best is not None
    return best


def split_by_kinks(density: Expr) -> list[Expr]:
    """Write a density as a sum of parts that have their kinks in common, so that each has few edges."""
    groups: dict[frozenset[Expr], list[Expr]] = {}
    stack: list[tuple[Expr, ...]] = [(density,)]
    while stack:
        factors = stack.pop()
        k = next((k for k, factor in enumerate(factors) if is_mixed(factor)), None)
        if k is None:
            product = factors[0] if len(factors) == 1 else multiply_all(*factors)
            groups.setdefault(kinks_of(product), []).append(product)
        elif factors[k].op is Op.MUL:
            stack.append((*factors[:k], *factors[k].args, *factors[k + 1 :]))
        else:
            stack += [(*factors[:k], term, *factors[k + 1 :]) for term in reversed(factors[k].args)]
        if len(stack) + len(groups) > MAX_PARTS:
            return [density]
    return [terms[0] if len(terms) == 1 else add_all(*terms) for terms in groups.values()]


def is_mixed(factor: Expr) -> bool:
    """Return whether a factor is a sum of terms with different kinks, or a product with such a factor."""
    if factor.op is Op.ADD:
        return len({kinks_of(term) for term in factor.args}) > 1
    return factor.op is Op.MUL and any(is_mixed(part) for part in factor.args)


@lru_cache(maxsize=4096)
def kinks_of(expr: Expr) -> frozenset[Expr]:
    """Return the expressions of observables at whose zeros an expression has kinks."""
    nodes = toposort(expr, enter_integrals=False)
    zeros = (zero for node in nodes for zero in zeros_of_kinks(node))
    return frozenset(zero for zero in zeros if leaves(Op.COLUMN, zero))


def plain_integral(density: Expr, observables: Sequence[Observable]) -> Expr:
    """Return the integral of a density without parameters whose boxes lie in its observables, as they are."""
    cube = Cube(on_ranges(density, observables), sample_points(observables, ()), len(observables))
    for x in reversed(observables):
        cube.keep(x)
    return cube.integral()


def integral_over_bins(
    density: Expr, x: Observable, others: Sequence[Observable], edges: Sequence[float]
) -> Expr:
    """Return the integral of a density without parameters, no box of which reaches over the edge of a bin of x.

    The other observables are mapped onto panels, so that regions with slanted and curved edges are smooth.
    """
    observables = (x, *others)
    cube = Cube(on_ranges(density, observables), sample_points(observables, ()), len(observables))
    for other in reversed(others):
        cube.integrate(other)
    cube.keep(x, edges)
    return cube.integral()


def singular_ends(density: Expr, x: Observable, others: Sequence[Observable] = ()) -> list[float]:
    """Return the points of a range next to which a density without parameters may be infinite."""
    observables = (x, *others)
    edges = Edges(x, on_ranges(density, observables), set(), sample_points(observables, ()))
    ends = {x.low: edges.at_low, **edges.fixed, x.high: edges.at_high}
    return [end for end, singular in ends.items() if singular]


def on_ranges(density: Expr, observables: Sequence[Observable]) -> Expr:
    """Return a density of observables that may have other ranges than it knows, but the same names."""
    by_name = {o.name: o.expr for o in observables}
    return substitute(density, {leaf: by_name[leaf.name] for leaf in leaves(Op.COLUMN, density)})


def sample_points(observables: Sequence[Observable], parameters: Sequence[Parameter]) -> Points:
    """Return values of parameters and observables: the start, limits, then points between the limits."""
    rng = np.random.default_rng(0)
    points = {o.name: rng.uniform(o.low, o.high, SAMPLES) for o in observables}
    for p in parameters:
        reach = 10 * max(abs(p.start), 1.0)
        low = p.low if np.isfinite(p.low) else min(p.start, p.high) - reach
        high = p.high if np.isfinite(p.high) else max(p.start, p.low) + reach
        between, ends = rng.uniform(low, high, SAMPLES), rng.choice([low, p.start, high], SAMPLES)
        k = np.arange(SAMPLES)
        points[p.name] = np.where(k < AT_START, p.start, np.where(k < AT_ENDS, ends, between))
    return points


@dataclass(frozen=True)
class Panel:
    """A piece of an axis; u = 0 is at its start, where the density may be singular."""

    start: Expr
    end: Expr
    width: Expr  # positive

    @classmethod
    def between(cls, low: Expr, high: Expr, singular_low: bool, singular_high: bool) -> list[Panel]:
        """Cover a piece of an axis by a panel, or by one from each end if both are singular."""
        if not singular_high:
            return [cls(low, high, high - low)]
        if not singular_low:
            return [cls(high, low, high - low)]
        middle = (low + high) / 2
        return [cls(low, middle, middle - low), cls(high, middle, high - middle)]

    def at(self, u: Expr) -> Expr:
        return self.start + (self.end - self.start) * u

    def place_of(self, x: Expr) -> Expr:
        return (x - self.start) / (self.end - self.start)


@dataclass
class Cube:
    """A density of which some observables have been mapped onto the unit interval, the innermost first."""

    body: Expr
    points: Points
    dimensions: int
    axes: list[Axis] = field(default_factory=list)  # the outermost first
    mapped: set[Expr] = field(default_factory=set)  # columns of the axes that are unit intervals
    places: list[tuple[int, Expr]] = field(default_factory=list)  # number of the axis, place
    unsolved: list[Expr] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)  # conditions of parameters for the body to be right

    def integrate(self, x: Observable) -> None:
        """Map the next observable."""
        number = self.dimensions - 1 - len(self.axes)
        name = f"u {number}"
        edges = Edges(x, self.body, self.mapped, self.points)
        panels = edges.panels(self.dimensions == 1)
        on_panels = [{x.expr: panel.at(column(name))} for panel in panels]
        own = [(number, panel.place_of(c)) for c in edges.centres for panel in panels]
        inner = [(k, substitute(place, at)) for k, place in self.places for at in on_panels]
        self.places = [*inner[:MAX_PLACES], *own[:MAX_PLACES]]
        self.unsolved = [substitute(z, at) for z in (*self.unsolved, *edges.unsolved) for at in on_panels]
        parts = []
        for panel, at in zip(panels, on_panels, strict=True):
            body = self.decided(x, panel) if self.dimensions == 1 and edges.moving else self.body
            parts.append(panel.width * substitute(body, at))
        self.body = add_all(*parts) if len(parts) > 1 else parts[0]
        self.axes.insert(0, Axis(name, edges.inside_unit(len(panels)), edges.any_singular))
        self.mapped.add(column(name))

    def keep(self, x: Observable, cuts: Sequence[float] = ()) -> None:
        """Leave the next observable as it is; no box reaches over its kinks, nor over further cuts."""
        edges = Edges(x, self.body, self.mapped, self.points)
        inner = {e for e in (*edges.fixed, *cuts) if x.low < e < x.high}
        number = self.dimensions - 1 - len(self.axes)
        self.places = [*((number, c) for c in edges.centres if not leaves(Op.COLUMN, c)), *self.places]
        self.axes.insert(0, Axis(x.name, (x.low, *sorted(inner), x.high)))

    def integral(self) -> Expr:
        """Return the integral over all axes."""
        domain = Domain(tuple(self.axes), tuple(k for k, _ in self.places))
        return integral_of(self.body, domain, *(place for _, place in self.places))

    def decided(self, x: Observable, panel: Panel) -> Expr:
        """Return the body inside a panel, where its choices are known unless the panel is turned around."""
        body, guards = decide(self.body, x.expr, (panel.start + panel.end) / 2, panel.width, self.points)
        empty = panel.width == 0
        self.guards += [empty | guard for guard in guards]
        self.guards.append(panel.width >= 0)
        return body


class Edges:
    """The edges of an observable's panels: fixed numbers, and expressions that move with parameters or outer observables."""

    def __init__(self, x: Observable, body: Expr, inner: set[Expr], points: Points) -> None:
        self.x, self.points = x, points
        breaks = find_breaks(body, x.expr, (x.low, x.high), inner, points)
        # what no parameter moves needs no derivatives: boxes are cut closely enough there
        self.unsolved = [z for z in breaks.unsolved if leaves(Op.SCALAR, z)]
        peaks = [] if is_peakless(body) else [*find_centres(body, x.expr, inner), *numbers_in(body)]
        centres = self.distinct(peaks)
        self.centres = [c for c, v in centres.items() if self.is_inside(v)][:MAX_CENTRES]
        singular = {e: v for e, v in self.distinct(breaks.singular).items() if self.is_inside(v)}
        edges = self.distinct([*breaks.kinks, *singular])
        self.singular = {e for e, v in edges.items() if any(agree(v, known) for known in singular.values())}
        fixed = [e for e, v in edges.items() if np.ptp(v) == 0]
        self.moving = [e for e, v in edges.items() if e not in set(fixed) and np.isfinite(v).any()]
        numbers = {float(edges[e][0]) + 0.0: e in self.singular for e in fixed}
        self.fixed = {e: s for e, s in sorted(numbers.items()) if x.low < e < x.high}
        self.at_low, self.at_high = numbers.get(x.low, False), numbers.get(x.high, False)

    @property
    def any_singular(self) -> bool:
        return self.at_low or self.at_high or any(self.fixed.values()) or self.moving_singular

    @property
    def moving_singular(self) -> bool:
        return any(e in self.singular for e in self.moving)

    def distinct(self, exprs: Sequence[Expr]) -> dict[Expr, Array]:
        """Return expressions with their values at all points; those that agree with an earlier one are dropped."""
        known: dict[Expr, Array] = {}
        for e in dict.fromkeys(exprs):
            values = np.broadcast_to(np.asarray(evaluate(e, self.points), np.float64), (SAMPLES,))
            if not known or not agree(np.array(list(known.values())), values).any():
                known[e] = values
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

    def panels(self, guarded: bool) -> list[Panel]:
        """Return panels that cover the range; the moving edges are clipped to each piece between fixed ones.

        If they are guarded, edges that are in order at all points need not be sorted.
        """
        if not self.moving and not self.any_singular:
            return Panel.between(const(self.x.low), const(self.x.high), False, False)
        moving = self.sorted_moving(guarded)
        fixed = {self.x.low: self.at_low, **self.fixed, self.x.high: self.at_high}
        panels = []
        for (low, singular_low), (high, singular_high) in pairwise(fixed.items()):
            inside = [(clip(e, low, high), self.moving_singular) for e in moving]
            ends = [(const(low), singular_low), *inside, (const(high), singular_high)]
            for (a, at_a), (b, at_b) in pairwise(ends):
                panels += Panel.between(a, b, at_a, at_b)
        return panels

    def sorted_moving(self, guarded: bool) -> list[Expr]:
        """Return the moving edges in ascending order, sorted by the formula wherever they may move."""
        start = {name: values[0] for name, values in self.points.items()}
        edges = sorted(self.moving, key=lambda e: np.nan_to_num(float(evaluate(e, start)), nan=self.x.low))
        if len(edges) < 2 or self.always_ordered(edges) or (guarded and self.in_order(edges)):
            return edges
        known = [where(e <= HUGE, e, const(self.x.low)) for e in edges]  # where it is a number
        for i in range(1, len(known)):
            for j in range(i, 0, -1):
                below, above = known[j - 1], known[j]
                known[j - 1], known[j] = apply(Op.MIN, below, above), apply(Op.MAX, below, above)
        return known

    def in_order(self, edges: list[Expr]) -> bool:
        """Return whether edges are in ascending order at all points."""
        values = np.array([np.broadcast_to(evaluate(e, self.points), (SAMPLES,)) for e in edges])
        return bool(np.all(np.diff(values, axis=0) >= 0))

    def always_ordered(self, edges: list[Expr]) -> bool:
        """Return whether two edges are the two solutions of one square."""
        return len(edges) == 2 and edges[0].op is Op.ADD and edges[1].op is Op.ADD and is_pair(*edges)


def agree(some: Array, values: Array) -> NDArray[np.bool_]:
    """Return whether expressions have the same values wherever they were tried, within rounding."""
    same = np.abs(some - values) <= 1e-9 * np.maximum(np.abs(some), np.abs(values))
    return np.asarray(np.all(same | (np.isnan(some) & np.isnan(values)), axis=-1))


def is_pair(lower: Expr, upper: Expr) -> bool:
    """Return whether two expressions are a - b and a + b with a root b."""
    common = set(lower.args) & set(upper.args)
    rest = [a for a in upper.args if a not in common]
    return len(common) == 1 and len(rest) == 1 and rest[0].op is Op.SQRT


def is_peakless(body: Expr) -> bool:
    """Return whether an expression is made of polynomials, waves and roots between its kinks, so that no peak can hide."""
    return all(
        node.op in PEAKLESS or (node.op is Op.POW and base_of_root(node) is None)
        for node in toposort(body, enter_integrals=False)
    )


def clip(edge: Expr, low: float, high: float) -> Expr:
    """Keep an edge inside a piece of an axis; what is not a number is at its low end."""
    return where(low < edge, where(edge < high, edge, const(high)), const(low))


def numbers_in(density: Expr) -> list[Expr]:
    """Return parameters and written numbers of a formula, next to which a peak may lie, whatever the formula does with them."""
    written = {abs(c.number) for c in leaves(Op.CONST, density)}
    return [*leaves(Op.SCALAR, density), *(const(s * w) for w in sorted(written) for s in (1, -1))]
