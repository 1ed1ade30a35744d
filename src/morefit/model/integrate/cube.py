"""Map a density onto the unit cube: panels run between its kinks, which are expressions, so that they move along.

Between two edges a(parameters) and b(parameters) an observable is a + (b - a) u with u in [0, 1]; the integral is the sum
over panels of (b - a) times the integral over u. Derivatives of the edges come in by the chain rule. In two and three
dimensions the edges of an inner observable depend on the outer ones, and their own kinks are edges there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import permutations
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    add_all,
    column,
    const,
    evaluate,
    integral_of,
    leaves,
    substitute,
    where,
)
from morefit.expr.quadrature import Axis, Domain
from morefit.model.integrate.panels import (
    AT_ENDS,
    AT_RIDGE,
    AT_START,
    SAMPLES,
    Edges,
    Panel,
    Points,
    is_always_finite,
)
from morefit.model.integrate.pieces import decide, guarded, split_by_kinks
from morefit.model.integrate.poles import has_poles
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

MAX_PLACES = 400
MAX_TRACKED = 64  # peaks that move,
MAX_COPIES = 4  # of a density of one observable, in each of which choices are decided
MAX_PAIRED = 12  # in several dimensions


def integral_over_box(
    density: Expr, observables: Sequence[Observable], parameters: Sequence[Parameter]
) -> Expr:
    """Return the numerical integral of a density over a box, the order of the observables such that kinks can be solved."""
    return integral_over_boxes(density, [observables], parameters)


def integral_over_boxes(
    density: Expr, boxes: Sequence[Sequence[Observable]], parameters: Sequence[Parameter]
) -> Expr:
    """Return the numerical integral of a density over several boxes, all of them on one cube."""
    cubes = []
    for observables in boxes:
        inside, points = on_ranges(density, observables), sample_points(observables, parameters)
        cubes += [map_to_cube(part, observables, points) for part in split_by_kinks(inside)]
    axes = []
    for k in range(len(boxes[0])):
        own = [cube.axes[k] for cube in cubes]
        edges = sorted({edge for axis in own for edge in axis.edges})
        axes.append(Axis(own[0].name, tuple(edges), any(axis.singular for axis in own)))
    body = add_all(*(cube.body for cube in cubes)) if len(cubes) > 1 else cubes[0].body
    together = cubes[0].pair_peaks() if len(axes) > 1 and len(cubes) == 1 else 0
    tracked = [(0, place) for cube in cubes for place in cube.tracked]
    places = [*tracked, *(place for cube in cubes for place in cube.places)]
    unsolved = [zero for cube in cubes for zero in cube.unsolved]
    hidden = any(cube.hidden for cube in cubes)
    domain = Domain(tuple(axes), tuple(k for k, _ in places), len(tracked) or together, hidden)
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


def plain_integral(density: Expr, observables: Sequence[Observable]) -> Expr:
    """Return the integral of a density without parameters whose boxes lie in its observables, as they are."""
    cube = Cube(on_ranges(density, observables), sample_points(observables, ()), len(observables))
    for x in reversed(observables):
        cube.keep(x)
    return cube.integral()


def integral_to_check(density: Expr, observables: Sequence[Observable], points: Array) -> tuple[Expr, Array]:
    """Return the integral of a density without parameters in its observables, as they are but for axes with poles.

    Those are panels that start at the poles; the points, (points, observables), are returned as they lie on the axes.
    """
    cube = Cube(on_ranges(density, observables), sample_points(observables, ()), len(observables))
    columns = {o.name: points[:, k] for k, o in enumerate(observables)}
    places: list[Array] = []
    for x in reversed(observables):
        edges = Edges(x, cube.body, cube.mapped, cube.points)
        if edges.any_singular:
            on_panels = [panel.place_of(x.expr) for panel in edges.panels(cube.dimensions == 1)]
            unit = np.array([np.broadcast_to(evaluate(p, columns), len(points)) for p in on_panels])
            which = np.argmax((0 <= unit) & (unit <= 1), axis=0)
            places.insert(0, unit[which, np.arange(len(points))])
            cube.integrate(x)
        else:
            places.insert(0, columns[x.name])
            cube.keep(x, edges=edges)
    return cube.integral(), np.column_stack(places)


def still_integral(
    density: Expr, observables: Sequence[Observable], parameters: Sequence[Parameter]
) -> Expr | None:
    """Return the integral of a density in its observables, as they are; None if it has poles or parameters move its edges."""
    cube = Cube(on_ranges(density, observables), sample_points(observables, parameters), len(observables))
    for x in reversed(observables):
        edges = Edges(x, cube.body, cube.mapped, cube.points)
        if edges.any_singular or edges.moving or edges.unsolved:
            return None
        cube.keep(x, edges=edges)
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


def moving_edges(
    density: Expr, x: Observable, parameters: Sequence[Parameter], given: Sequence[Observable]
) -> list[Expr]:
    """Return the edges of a density along an observable that move with parameters or with observables that are given."""
    return Edges(x, density, set(), sample_points((x, *given), parameters)).moving


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


def choose_panel(u: Expr, parts: Sequence[Expr]) -> Expr:
    """Return the part of the panel that a point of an axis lies on, where each panel is as long as one."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return where(u < half, choose_panel(u, parts[:half]), choose_panel(u - half, parts[half:]))


@dataclass
class Cube:
    """A density of which some observables have been mapped onto the unit interval, the innermost first."""

    body: Expr
    points: Points
    dimensions: int
    axes: list[Axis] = field(default_factory=list)  # the outermost first
    mapped: set[Expr] = field(default_factory=set)  # columns of the axes that are unit intervals
    places: list[tuple[int, Expr]] = field(default_factory=list)  # number of the axis, place
    tracked: list[Expr] = field(default_factory=list)  # places of moving peaks, on whichever panel they are
    peaks: list[int] = field(default_factory=list)  # number of moving peaks on an axis, if it is one panel
    hidden: bool = False  # whether there may be peaks at other places
    unsolved: list[Expr] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)  # conditions of parameters for the body to be right
    ridged: bool = False  # whether edges of the last axis run along ridges
    poles: bool = False  # whether the density itself may have infinite derivatives

    def __post_init__(self) -> None:
        self.poles = has_poles(self.body, self.points)

    def integrate(self, x: Observable) -> None:
        """Map the next observable."""
        number = self.dimensions - 1 - len(self.axes)
        name = f"u {number}"
        edges = Edges(x, self.body, self.mapped, self.points)
        if number > 0:
            ends = {column(axis.name): axis.edges for axis in self.axes}
            edges.cut_along_ridges(self.body, {u: ends[u] for u in self.mapped})
        if self.ridged:
            edges.crowd()
        self.ridged = edges.power == AT_RIDGE
        panels = edges.panels(self.dimensions == 1)
        self.hidden |= edges.hidden
        poles = edges.any_singular and (self.poles or self.dimensions == 1)
        if len(panels) > (MAX_COPIES if self.dimensions == 1 else 1) and not poles:
            self.join(x, edges, panels)
            return
        on_panels = [{x.expr: panel.at(column(name))} for panel in panels]
        own = [(number, panel.place_of(c)) for c in edges.centres for panel in panels]
        if self.dimensions == 1:
            self.tracked = [Panel.place_among(panels, c) for c in edges.peaks[:MAX_TRACKED]]
        self.peaks.append(len(edges.peaks) if len(panels) == 1 else 0)
        inner = [(k, substitute(place, at)) for k, place in self.places for at in on_panels]
        self.places = [*inner[:MAX_PLACES], *own[:MAX_PLACES]]
        self.unsolved = [substitute(z, at) for z in (*self.unsolved, *edges.unsolved) for at in on_panels]
        parts, decided = [], self.dimensions == 1 and bool(edges.moving or edges.any_singular)
        for panel, at in zip(panels, on_panels, strict=True):
            body = self.decided(edges, panel) if decided else self.body
            inside = substitute(body, at)
            # beyond the range a root has no value, and a branch that was decided on may have none
            may_fail = bool(edges.singular) or (decided and not is_always_finite(body))
            parts.append(panel.filled(inside) if may_fail else panel.width * inside)
        self.body = add_all(*parts) if len(parts) > 1 else parts[0]
        self.axes.insert(0, Axis(name, edges.inside_unit(len(panels)), edges.any_singular))
        self.mapped.add(column(name))

    def join(self, x: Observable, edges: Edges, panels: Sequence[Panel]) -> None:
        """Map the next observable by one axis for all panels, each as long as the others: there is one copy of the density.

        Nodes are squares next to a singular end, where an edge of another observable ends as a root, and fourth powers next to a
        ridge.
        """
        number = self.dimensions - 1 - len(self.axes)
        name, count = f"u {number}", len(panels)
        u = count * column(name)
        steps = [const(k) for k in range(count)]
        start, width, below = (
            choose_panel(u, parts)
            for parts in ([p.start for p in panels], [p.end - p.start for p in panels], steps)
        )
        within = u - below
        power = edges.power if edges.any_singular else 1
        place, slope = (within**power, power * within ** (power - 1)) if power > 1 else (within, ONE)
        at = {x.expr: start + width * place}

        def on_axis(c: Expr) -> Expr:
            own = [panel.place_of(c) for panel in panels]
            units = [p ** (1 / power) for p in own] if power > 1 else own
            place = steps[0] + units[0]
            for step, unit, inside in zip(steps[1:], units[1:], own[1:], strict=True):
                place = where((inside >= 0) & (inside <= 1), step + unit, place)
            return place / count

        if self.dimensions == 1:
            self.tracked = [on_axis(c) for c in edges.peaks[:MAX_TRACKED]]
            self.guards += [p.width >= 0 for p in panels if leaves(Op.SCALAR, p.width)]
        self.peaks.append(len(edges.peaks))
        inner = [(k, substitute(place, at)) for k, place in self.places]
        self.places = [*inner, *((number, on_axis(c)) for c in edges.centres)]
        self.unsolved = [substitute(zero, at) for zero in (*self.unsolved, *edges.unsolved)]
        size = choose_panel(u, [p.width for p in panels])
        body = count * size * slope * substitute(self.body, at)
        self.body = where(size > 0, body, ZERO)
        self.axes.insert(0, Axis(name, tuple(k / count for k in range(count + 1))))
        self.mapped.add(column(name))

    def keep(self, x: Observable, cuts: Sequence[float] = (), edges: Edges | None = None) -> None:
        """Leave the next observable as it is; no box reaches over its kinks, nor over further cuts."""
        if edges is None:
            edges = Edges(x, self.body, self.mapped, self.points)
        inner = {e for e in (*edges.fixed, *cuts) if x.low < e < x.high}
        self.hidden |= edges.hidden
        number = self.dimensions - 1 - len(self.axes)
        self.places = [*((number, c) for c in edges.centres if not leaves(Op.COLUMN, c)), *self.places]
        self.axes.insert(0, Axis(x.name, (x.low, *sorted(inner), x.high)))

    @np.errstate(all="ignore")
    def pair_peaks(self) -> int:
        """Let the places on each axis begin with those that make the highest points together; return how many.

        That is looked at where the parameters start.
        """
        count, axes = min(*self.peaks, MAX_PAIRED), range(self.dimensions)
        if count < 2:
            return count
        own = [[place for k, place in self.places if k == axis][:count] for axis in axes]
        values: dict[str, Any] = {name: numbers[0] for name, numbers in self.points.items()}
        for k, places in enumerate(own):
            shape = [count] * k + [1] * (self.dimensions - k)
            values[f"u {k}"] = np.concatenate(
                [np.broadcast_to(evaluate(p, values), shape) for p in places], k
            )
        heights = np.array(np.broadcast_to(evaluate(self.body, values), [count] * self.dimensions))
        heights[~np.isfinite(heights)] = 0.0
        first = []
        for _ in range(count):
            best = np.unravel_index(np.argmax(heights), heights.shape)
            first += [(axis, own[axis][best[axis]]) for axis in axes]
            for axis in axes:
                np.moveaxis(heights, axis, 0)[best[axis]] = -np.inf
        self.places = [*first, *self.places]
        return count

    def integral(self) -> Expr:
        """Return the integral over all axes."""
        domain = Domain(tuple(self.axes), tuple(k for k, _ in self.places), hidden=self.hidden)
        return integral_of(self.body, domain, *(place for _, place in self.places))

    def decided(self, edges: Edges, panel: Panel) -> Expr:
        """Return the body inside a panel, where its choices are known unless the panel is turned around."""
        body, guards = decide(self.body, edges, panel)
        empty = panel.width == 0
        self.guards += [empty | guard for guard in guards]
        if leaves(Op.SCALAR, panel.width):
            self.guards.append(panel.width >= 0)
        return body
