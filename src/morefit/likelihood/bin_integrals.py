"""The probability of a bin of a model as an expression of its edges: by formula, term by term, or by a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise, product
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    Expr,
    Op,
    add_all,
    apply,
    column,
    const,
    evaluate,
    multiply_all,
    substitute,
    toposort,
    where,
)
from morefit.expr.quadrature import gauss_grid
from morefit.kernel.record import fingerprint
from morefit.likelihood.table import LARGEST, TableColumn
from morefit.model import Observable, Pdf
from morefit.model.integrate import find_breaks, grouped, integral_over, integrate_box, separate

# of a rule in each direction, tried in turn
POINTS = {1: (4, 6, 8, 10, 12, 16, 24, 32), 2: (4, 6, 8), 3: (3, 4)}
# nodes of a rule and of its derivatives, tried in turn: these take up to 5 and 15 s to compile
MAX_SIZES = (60_000, 150_000)
FACTOR_POINTS = 16  # in each direction, of factors that no parameter changes
# of a density along its observable, between which rules have nodes of their own; tried in turn
MAX_KINKS = (
    3,
    6,
    12,
)
ORDERS = (0, 1, 3)  # of zeros of the speed at kinks, tried in turn
RULE_ERROR = 1e-9  # relative, of a probability by a rule
FACTOR_ERROR = 1e-13  # relative to the largest bin
TOTAL_ERROR = 1e-7  # relative, of the sum over all bins: more shows a peak that rules have missed
NOTHING = 1e-13  # probability that may be wrong

Edges = Mapping[str, Array]


def edge_columns(o: Observable) -> tuple[TableColumn, TableColumn]:
    """Return the columns of the low and the high edge of each bin along an observable."""
    low, high = (TableColumn(f"{end} edge of {o.name}", o.low, o.high) for end in ("low", "high"))
    return low, high


def edge_values(observables: Sequence[Observable], edges: Edges) -> dict[str, Array]:
    """Return the low and high edges of all bins along each observable, one bin after the other."""
    columns: dict[str, Array] = {}
    for end, name in ((slice(None, -1), 0), (slice(1, None), 1)):
        grid = np.meshgrid(*(edges[o.name][end] for o in observables), indexing="ij")
        columns |= {edge_columns(o)[name].name: g.ravel() for o, g in zip(observables, grid, strict=True)}
    return columns


@dataclass(eq=False)
class BinIntegrals:
    """Makes expressions for bins with some edges; rules are made for start values and checked there."""

    observables: tuple[Observable, ...]
    edges: Edges
    values: Mapping[str, float]
    columns: dict[str, Array] = field(default_factory=dict)  # that expressions read besides the edges
    rules: list[tuple[Pdf, Expr]] = field(default_factory=list)  # integrals of densities by rules

    def probability(self, pdf: Pdf, *, whole: bool = False) -> Expr:
        """Return the probability of a bin, or of all bins together."""
        if len(factors := pdf.factors()) > 1:
            return multiply_all(*(self.probability(factor, whole=whole) for factor in factors))
        if len(shares := pdf.shares()) > 1:
            return add_all(*(share * self.probability(part, whole=whole) for share, part in shares))
        if whole and self.spans(pdf.observables):
            return ONE
        return self.area(pdf, whole) / pdf.integral()

    def spans(self, observables: Sequence[Observable]) -> bool:
        """Return whether the bins cover the ranges of observables."""
        return all(tuple(self.edges[o.name][[0, -1]]) == (o.low, o.high) for o in observables)

    def area(self, pdf: Pdf, whole: bool) -> Expr:
        """Return the integral of a density that is no composition."""
        if len(pdf.observables) == 1:
            (o,) = pdf.observables
            ends = (
                map(const, self.edges[o.name][[0, -1]].tolist())
                if whole
                else (c.expr for c in edge_columns(o))
            )
            formula = pdf.integral_between(*ends)
            if formula is not None:
                return formula
        if whole:
            return integral_over(pdf.density(), self.boxed(pdf.observables), pdf.parameters)
        terms = separate(pdf.density())
        return self.by_rule(pdf) if terms is None else self.term_by_term(pdf, terms)

    def boxed(self, observables: Sequence[Observable]) -> tuple[Observable, ...]:
        """Return observables on the ranges of the bins."""
        return tuple(o.within({o.name: tuple(self.edges[o.name][[0, -1]])}) for o in observables)

    # --------------------------------------------------------------------- term by term

    def term_by_term(self, pdf: Pdf, terms: Sequence[tuple[tuple[Expr, ...], tuple[Expr, ...]]]) -> Expr:
        """Return a sum of parameter factors times columns: factors of the event are integrated over all bins once."""
        parts = [multiply_all(*weight, self.factor_column(pdf, event)) for weight, event in terms]
        return add_all(*parts) if len(parts) > 1 else parts[0]

    def factor_column(self, pdf: Pdf, factors: tuple[Expr, ...]) -> Expr:
        """Return the integrals of a product of event factors as a column; factors in different observables apart."""
        total = np.ones(1)
        groups = grouped(factors)
        free = {o.name for o in pdf.observables}.difference(*(names for names, _ in groups))
        for names, parts in [*groups, *(({name}, [ONE]) for name in sorted(free))]:
            own = [o for o in pdf.observables if o.name in names]
            factor = multiply_all(*parts)
            areas = integrate_cells(factor, own, self.edges) if own else np.asarray(evaluate(factor, {}))
            total = total * self.spread(own, areas)
        name = f"integral of {fingerprint(factors)}"
        self.columns[name] = np.broadcast_to(total, self.shape).ravel()
        return column(TableColumn(name))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(self.edges[o.name]) - 1 for o in self.observables)

    def spread(self, own: Sequence[Observable], areas: Array) -> Array:
        """Give areas of bins of some observables an axis for each of the others."""
        names = [o.name for o in own]
        order = [names.index(o.name) for o in self.observables if o.name in names]
        shape = [len(self.edges[o.name]) - 1 if o.name in names else 1 for o in self.observables]
        return np.transpose(areas, order).reshape(shape)

    # --------------------------------------------------------------------- by a rule

    def by_rule(self, pdf: Pdf) -> Expr:
        """Return a weighted sum of the density at points inside each bin, as many as are needed at the start values."""
        floating = sum(not p.fixed for p in pdf.parameters)
        most, numbers = (floating + 1) * (floating + 2) / 2, POINTS.get(len(pdf.observables), ())
        ways, tried = list(self.pieces_of(pdf)), set[tuple[int, int]]()
        for size in MAX_SIZES:
            for way, (kinks, order) in enumerate(ways):
                for points in numbers:
                    area = rule(pdf, points, kinks, order)
                    if len(list(toposort(area))) * most > size:
                        break
                    if (way, points) in tried:
                        continue
                    tried.add((way, points))
                    if self.rule_error(pdf, area, self.values, relative=True) <= RULE_ERROR:
                        self.rules.append((pdf, area))
                        return area
        raise ModelError(
            f"density '{pdf.density()!r}': could not be integrated over bins at the start values; use narrower bins,"
            " give it a formula in integral_between, or write it as a product of densities"
        )

    def pieces_of(self, pdf: Pdf) -> Iterator[tuple[list[Expr], int]]:
        """Yield the kinks to integrate between, and how close to them the points lie: a density may begin as a power."""
        choices = list(self.kinks_of(pdf))
        for order in ORDERS:
            yield from ((kinks, order) for kinks in choices if kinks or order == 0)

    def kinks_of(self, pdf: Pdf) -> Iterator[list[Expr]]:
        """Yield the kinks of a density of one observable between which to integrate: a few, and more of them if there are."""
        if len(pdf.observables) > 1:
            yield []
            return
        (o,) = pdf.observables
        known: dict[str, Any] = {**self.values, o.name: 0.5 * (o.low + o.high)}
        kinks = find_breaks(pdf.density(), o.expr, (o.low, o.high), set(), known).kinks
        for most, fewer in zip(MAX_KINKS, (-1, *MAX_KINKS), strict=False):
            if len(kinks) > fewer:
                yield list(kinks[:most])

    def rule_error(self, pdf: Pdf, area: Expr, values: Mapping[str, float], *, relative: bool) -> float:
        """Return the largest relative error of a bin, or the sum of the errors of all, by halving the bins.

        The sum over all bins is compared with the integral over their range, which follows narrow peaks.
        """
        own = {p.name: values[p.name] for p in pdf.parameters}
        edges = {o.name: self.edges[o.name] for o in pdf.observables}
        halves = {name: np.unique([*line, *((line[1:] + line[:-1]) / 2)]) for name, line in edges.items()}
        with np.errstate(all="ignore"):
            rough, fine = (
                np.reshape(
                    evaluate(area, {**own, **edge_values(pdf.observables, some)}),
                    cells(pdf.observables, some),
                )
                for some in (edges, halves)
            )
            for k in range(rough.ndim):
                fine = np.add.reduceat(fine, np.arange(0, fine.shape[k], 2), axis=k)
            norm = float(evaluate(pdf.integral(), own))
            total = float(
                evaluate(integral_over(pdf.density(), self.boxed(pdf.observables), pdf.parameters), own)
            )
            off = np.abs(rough - fine) / norm
            missed = max(0.0, abs(rough.sum() - total) / norm - TOTAL_ERROR)
            size = np.abs(fine) / norm
            worst = float(np.max(off / (size + NOTHING / RULE_ERROR))) if relative else float(off.sum())
        return worst + missed if np.isfinite(worst + missed) else np.inf


def cells(observables: Sequence[Observable], edges: Edges) -> tuple[int, ...]:
    return tuple(len(edges[o.name]) - 1 for o in observables)


def rule(pdf: Pdf, points: int, kinks: Sequence[Expr], order: int = 0) -> Expr:
    """Return the integral over a bin by Gauss-Legendre points; on a line, between the kinks of the density.

    A piece is run through with a speed (1 - t^2)^order: a power of the distance to a kink, such as the root with which phase
    space ends, becomes a higher power of t, which points integrate well.
    """
    density, observables = pdf.density(), pdf.observables
    nodes, weights, _ = gauss_grid(len(observables), points)
    if order:
        speed = np.polynomial.Polynomial([1.0, 0.0, -1.0]) ** order
        place = speed.integ()
        nodes, weights = place(nodes) / place(1.0), weights * speed(nodes[0]) / place(1.0)
    lines = [list(pieces(o, kinks)) for o in observables]
    terms = []
    for box in product(*lines):
        half = [(high - low) * 0.5 for low, high in box]
        middle = [(high + low) * 0.5 for low, high in box]
        places = [[m + h * float(t) for m, h, t in zip(middle, half, node, strict=True)] for node in nodes.T]
        values_there = [
            substitute(density, {o.expr: place for o, place in zip(observables, at, strict=True)})
            for at in places
        ]
        mean = add_all(*(float(w) * f for w, f in zip(weights, values_there, strict=True)))
        terms.append(multiply_all(*half, mean))
    return add_all(*terms) if len(terms) > 1 else terms[0]


def pieces(o: Observable, kinks: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Cut a bin at the kinks of a density, which may move with parameters; outside the bin a piece has no width."""
    low, high = edge_columns(o)[0].expr, edge_columns(o)[1].expr
    fixed = all(kink.op is Op.CONST for kink in kinks)
    if fixed:
        kinks = sorted(kinks, key=lambda kink: kink.number)
    inside = [apply(Op.MIN, apply(Op.MAX, kink, low), high) for kink in kinks]
    # at some values of parameters there may be none
    cuts = [where(abs(kink) <= LARGEST, cut, low) for kink, cut in zip(kinks, inside, strict=True)]
    for i in range(0 if fixed else len(cuts)):  # their order may change with the parameters
        for j in range(i):
            cuts[j], cuts[i] = apply(Op.MIN, cuts[j], cuts[i]), apply(Op.MAX, cuts[j], cuts[i])
    line = [low, *cuts, high]
    yield from pairwise(line)


def integrate_cells(factor: Expr, observables: Sequence[Observable], edges: Edges) -> Array:
    """Integrate an event-only factor over the cells of a grid; those that a rule does not reach adaptively."""
    nodes, weights, _ = gauss_grid(len(observables), FACTOR_POINTS // (2 if len(observables) > 2 else 1))

    def by_points(lines: Sequence[Array]) -> Array:
        half = [np.diff(line) / 2 for line in lines]
        areas = []
        for k in range(len(half[0])):  # of the first axis, so that nodes of a slice are in memory at once
            grid = np.meshgrid(half[0][k : k + 1], *half[1:], indexing="ij")
            low = np.meshgrid(lines[0][k : k + 1], *(line[:-1] for line in lines[1:]), indexing="ij")
            at = {
                o.name: (first + h)[..., None] + h[..., None] * node
                for o, first, h, node in zip(observables, low, grid, nodes, strict=True)
            }
            heights = np.broadcast_to(evaluate(factor, at), (*grid[0].shape, len(weights)))
            areas.append((heights @ weights) * np.prod(grid, axis=0))
        return np.concatenate(areas)

    lines = [edges[o.name] for o in observables]
    halved = [np.unique([*line, *((line[1:] + line[:-1]) / 2)]) for line in lines]
    with np.errstate(all="ignore"):
        rough, fine = by_points(lines), by_points(halved)
    for k in range(rough.ndim):
        fine = np.add.reduceat(fine, np.arange(0, fine.shape[k], 2), axis=k)
    good = np.abs(rough - fine) <= FACTOR_ERROR * np.abs(fine).max(initial=0.0)
    for cell in np.argwhere(~good).tolist():
        box = tuple(
            o.within({o.name: (float(line[i]), float(line[i + 1]))})
            for o, line, i in zip(observables, lines, cell, strict=True)
        )
        adapted = integrate_box(factor, box)
        if adapted is None:
            raise ModelError(
                f"density: its factor '{factor!r}' could not be integrated over the bin {box}; give it a formula"
            )
        fine[tuple(cell)] = adapted[0]
    return fine
