"""The probability of a bin of a model as an expression of its edges: by formula, term by term, or by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
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
    column,
    const,
    evaluate,
    leaves,
    multiply_all,
    substitute,
    toposort,
)
from morefit.expr.quadrature import gauss_grid
from morefit.kernel.record import fingerprint
from morefit.likelihood.bin_rules import edge_columns, rule, rule_around, values_elsewhere
from morefit.likelihood.table import TableColumn
from morefit.model import Observable, Pdf
from morefit.model.integrate import find_breaks, find_centres, grouped, integral_over, integrate_box, separate

# of a rule in each direction, tried in turn
POINTS = {1: (4, 6, 8, 10, 12, 16, 24, 32, 48, 64), 2: (4, 6, 8), 3: (3, 4)}
# nodes of a rule and of its derivatives, tried in turn: these take up to 5 and 15 s to compile
MAX_SIZES = (60_000, 150_000)
FACTOR_POINTS = 16  # in each direction, of factors that no parameter changes
# of a density along its observable, between which rules have nodes of their own; tried in turn
MAX_KINKS = (
    3,
    6,
    12,
)
MAX_PEAKS = 3  # that points lie around
ORDERS = (0, 1, 3)  # of zeros of the speed at kinks, tried in turn
RULE_ERROR = 1e-9  # relative, of a probability by a rule
FACTOR_ERROR = 1e-13  # relative to the largest bin
ELSEWHERE_ERROR = 1e-6  # relative, of the sum over all bins at other values than those at the start
TOTAL_ERROR = 1e-7  # relative, of the sum over all bins: more shows a peak that rules have missed
TOGETHER = 64  # rows of parameters that are looked at
NOTHING = 1e-13  # probability that may be wrong

Edges = Mapping[str, Array]


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
        """Return a weighted sum of the density at points inside each bin, as many as are needed at the start values.

        The first rule that is accurate at other values as well is taken, as fits go there, or else the best of them.
        """
        elsewhere, known = self.totals_elsewhere(pdf), dict[Expr, float]()
        for area in self.small_rules(pdf):
            if area is None and known:  # all rules of one size are tried
                break
            if area is not None and self.rule_error(pdf, area, self.values, relative=True) <= RULE_ERROR:
                known[area] = self.error_elsewhere(area, elsewhere)
                if known[area] <= ELSEWHERE_ERROR:
                    break
        if not known:
            raise ModelError(
                f"density '{pdf.density()!r}': could not be integrated over bins at the start values; use narrower bins,"
                " give it a formula in integral_between, or write it as a product of densities"
            )
        best = min(known, key=lambda area: known[area])
        self.rules.append((pdf, best))
        return best

    def small_rules(self, pdf: Pdf) -> Iterator[Expr | None]:
        """Yield rules that do not take long to compile, then None, and larger ones."""
        floating = sum(not p.fixed for p in pdf.parameters)
        most, numbers = (floating + 1) * (floating + 2) / 2, POINTS.get(len(pdf.observables), ())
        ways, tried = list(self.ways_of(pdf)), set[tuple[int, int]]()
        for size in MAX_SIZES:
            for way, make in enumerate(ways):
                for points in numbers:
                    area = make(points)
                    if len(list(toposort(area))) * most > size:
                        break
                    if (way, points) not in tried:
                        tried.add((way, points))
                        yield area
            yield None

    def ways_of(self, pdf: Pdf) -> Iterator[Callable[[int], Expr]]:
        """Yield rules for any number of points: between kinks, at which a density may begin as a power, and around a peak."""
        choices = list(self.kinks_of(pdf))
        for order in ORDERS:
            for kinks in choices:
                if kinks or order == 0:
                    yield partial(rule, pdf, kinks=kinks, order=order)
        peaks = [] if any(choices) else self.peaks_of(pdf)
        for count in range(1, len(peaks) + 1):
            yield partial(rule_around, pdf, peaks[:count])

    def kinks_of(self, pdf: Pdf) -> Iterator[list[Expr]]:
        """Yield the kinks of a density of one observable between which to integrate: a few, and more of them if there are."""
        if len(pdf.observables) > 1:
            yield []
            return
        (o,) = pdf.observables
        kinks = find_breaks(pdf.density(), o.expr, (o.low, o.high), set(), self.point_inside(o)).kinks
        for most, fewer in zip(MAX_KINKS, (-1, *MAX_KINKS), strict=False):
            if len(kinks) > fewer:
                yield list(kinks[:most])

    def point_inside(self, o: Observable) -> dict[str, Any]:
        """Return the start values, and the middle of a range."""
        return {**self.values, o.name: 0.5 * (o.low + o.high)}

    @np.errstate(all="ignore")
    def peaks_of(self, pdf: Pdf) -> list[Expr]:
        """Return where the highest peaks of a density of one observable may lie, as numbers in derivatives: it is smooth there."""
        if len(pdf.observables) > 1:
            return []
        (o,) = pdf.observables
        known, ends, heights = self.point_inside(o), (o.low, o.high), dict[float, tuple[float, Expr]]()
        for centre in find_centres(pdf.density(), o.expr, ends, set(), known)[0]:
            place = float(np.clip(evaluate(centre, known), *ends))
            height = float(evaluate(pdf.density(), {**known, o.name: place}))
            if np.isfinite(height) and height > 0:
                heights.setdefault(place, (height, centre))
        highest = sorted(heights.values(), key=lambda peak: -peak[0])[:MAX_PEAKS]
        still = {leaf: Op.FIXED(leaf) for _, centre in highest for leaf in leaves(Op.SCALAR, centre)}
        return [substitute(centre, still) for _, centre in highest]

    def totals_elsewhere(self, pdf: Pdf) -> list[tuple[dict[str, float], float]]:
        """Return some values of the parameters of a density of one observable, and its integral over all bins there."""
        if len(pdf.observables) > 1:
            return []
        total, totals = integral_over(pdf.density(), self.boxed(pdf.observables), pdf.parameters), []
        for values in values_elsewhere(pdf.parameters, self.values):
            try:
                with np.errstate(all="ignore"):
                    area = float(evaluate(total, values))
            except ModelError:  # no integral there
                continue
            if np.isfinite(area) and area > 0:
                totals.append((values, area))
        return totals

    @np.errstate(all="ignore")
    def error_elsewhere(self, area: Expr, totals: Sequence[tuple[dict[str, float], float]]) -> float:
        """Return the largest relative error of the sum of a rule over all bins at other values."""
        columns = edge_values(self.observables[:1], self.edges) if totals else {}
        sums = [float(np.sum(evaluate(area, {**values, **columns}))) for values, _ in totals]
        off = [abs(found / total - 1) for found, (_, total) in zip(sums, totals, strict=True)]
        return max((error if np.isfinite(error) else np.inf for error in off), default=0.0)

    def rule_error(self, pdf: Pdf, area: Expr, values: Mapping[str, float], *, relative: bool) -> float:
        """Return the largest relative error of a bin, or the sum of the errors of all, by halving the bins.

        The sum over all bins is compared with the integral over their range, which follows narrow peaks.
        """
        own = {p.name: values[p.name] for p in pdf.parameters}
        with np.errstate(all="ignore"):
            rough, fine = self.bins_and_halves(pdf, area, own)
            norm = float(evaluate(pdf.integral(), own))
            total = float(
                evaluate(integral_over(pdf.density(), self.boxed(pdf.observables), pdf.parameters), own)
            )
            off = np.abs(rough - fine) / norm
            missed = max(0.0, abs(rough.sum() - total) / norm - TOTAL_ERROR)
            size = np.abs(fine) / norm
            worst = float(np.max(off / (size + NOTHING / RULE_ERROR))) if relative else float(off.sum())
        return worst + missed if np.isfinite(worst + missed) else np.inf

    def bins_and_halves(self, pdf: Pdf, area: Expr, values: Mapping[str, Any]) -> tuple[Array, Array]:
        """Return the integrals over bins by a rule, and by that of their halves, at numbers or columns of numbers, one bin after the other."""
        edges = {o.name: self.edges[o.name] for o in pdf.observables}
        halves = {name: np.unique([*line, *((line[1:] + line[:-1]) / 2)]) for name, line in edges.items()}
        rough, fine = (
            np.asarray(evaluate(area, {**values, **edge_values(pdf.observables, some)}))
            for some in (edges, halves)
        )
        rows = fine.shape[:-1]
        fine = fine.reshape(*rows, *cells(pdf.observables, halves))
        for k in range(len(rows), fine.ndim):
            fine = np.add.reduceat(fine, np.arange(0, fine.shape[k], 2), axis=k)
        return rough, fine.reshape(rough.shape)

    def errors_of_rows(self, pdf: Pdf, area: Expr, values: Mapping[str, Any]) -> Array:
        """Return the sum of the errors of all bins, relative to their sum, at rows of parameters; nan where there is none."""
        own = np.broadcast_arrays(*(np.atleast_1d(values[p.name]) for p in pdf.parameters)) or [np.zeros(1)]
        errors = []
        for start in range(0, len(own[0]), TOGETHER):
            some = (column[start : start + TOGETHER, None] for column in own)
            rows = {p.name: column for p, column in zip(pdf.parameters, some, strict=False)}
            with np.errstate(all="ignore"):
                rough, fine = self.bins_and_halves(pdf, area, rows)
                errors.append(np.abs(rough - fine).sum(axis=-1) / np.abs(fine.sum(axis=-1)))
        return np.concatenate(errors)


def cells(observables: Sequence[Observable], edges: Edges) -> tuple[int, ...]:
    return tuple(len(edges[o.name]) - 1 for o in observables)


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
