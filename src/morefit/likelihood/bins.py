"""The probabilities of bins of one observable: by formula where there is one, else by quadrature, on any backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from morefit.arrays import Array
from morefit.data.histogram import divide
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import (
    ZERO,
    Expr,
    Op,
    OwnSymbol,
    add_all,
    column,
    const,
    domain_of,
    evaluate,
    integral_of,
    leaves,
    scalar,
    substitute,
    substitute_all,
    where,
)
from morefit.expr.evaluate import adapted_to, areas
from morefit.expr.quadrature import WORST_ERROR, Boxes
from morefit.likelihood.accuracy import MAX_AXES, normalised_integral
from morefit.model import Observable, Parameter, Pdf
from morefit.model.integrate import integral_out, integral_over_bins, integral_over_box, singular_ends
from morefit.model.observable import Box
from morefit.pipeline import Columns, Settings, able_backend, compile_values
from morefit.rewrite.simplify import normalise
from morefit.targets.base import Backend, Events

# a bin is an event with these two columns
LOW, HIGH = column(OwnSymbol("low edge")), column(OwnSymbol("high edge"))
MAX_EVALUATIONS = 1 << 27  # of a density, in means over rows
AT_ONCE = 1 << 22  # of them, in memory
NODES = (2, 4, 8)  # in each part of a bin; as few as are enough
FEW_ROWS = 256  # that tell how many nodes are enough
MIN_PARTS = 128  # of all bins together
GOOD_NODES, WORST_NODES = 1e-8, 1e-6  # errors relative to the largest bin, by twice as many parts
WRONG_SUM = 1e-6  # by which the probabilities of all bins differ from one: an integral missed something
Values = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Rows:
    """Given columns of events, and the weight of each in a mean over them; few stand for many."""

    columns: Mapping[str, Array]
    weights: Array  # that add up to one, or to less where events outside a range count as nothing

    def thinned(self, most: int) -> Rows:
        """Return every second, third, ... row, if there are too many."""
        step = -(-len(self.weights) // most)
        some = self.weights[::step]
        total = float(some.sum())
        scale = float(self.weights.sum()) / total if total else 1.0
        return Rows({name: c[::step].copy() for name, c in self.columns.items()}, some * scale)


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of one observable inside a box in the others; those that the box does not name have their whole range."""

    x: Observable
    edges: Array
    box: Box
    rows: Rows | None = None  # what a conditional density is given

    @property
    def span(self) -> Observable:
        """The observable on the range of all bins."""
        return Observable(self.x.name, float(self.edges[0]), float(self.edges[-1]))

    def others(self, pdf: Pdf) -> tuple[Observable, ...]:
        """Return the other observables of a density, on the ranges of the box."""
        return tuple(o.within(self.box) for o in pdf.drawn if o.name != self.x.name)

    def cover(self, pdf: Pdf) -> bool:
        """Return whether a density has no events outside of the bins; one that was integrated over a box may have some."""
        ends = (self.span.low, self.span.high)
        return not self.box and all((o.low, o.high) == ends for o in pdf.drawn if o.name == self.x.name)

    def touching(self, points: Sequence[float]) -> list[int]:
        """Return the numbers of the bins that some points lie in, or at the edge of."""
        low, high = self.edges[:-1], self.edges[1:]
        return sorted({int(k) for p in points for k in np.flatnonzero((low <= p) & (p <= high))})

    def sums(self, middles: Array, areas: Array) -> Array:
        """Add up the areas of boxes, none of which reaches over an edge, in each bin."""
        indices = np.searchsorted(self.edges, middles, side="right") - 1
        return np.asarray(np.bincount(indices, areas, len(self.edges) - 1), np.float64)


def bin_probabilities(
    pdfs: Sequence[Pdf], parameters: Sequence[Parameter], values: Values, bins: Bins, backend: Backend
) -> list[Array]:
    """Return for each density how likely an event in its ranges lies in each bin, and in the box.

    Formulas of all densities go into one kernel, which sees each bin as an event.
    """
    for pdf in pdfs:
        backend = able_backend(pdf, backend)
    formulas: list[list[Expr]] = [[] for _ in pdfs]
    totals = np.zeros((len(pdfs), len(bins.edges) - 1))
    for pdf, terms, total in zip(pdfs, formulas, totals, strict=True):
        for weight, part in pdf.marginals(bins.x, bins.box, values):
            if is_absent(weight, values):
                continue
            known = part.binned(bins.x, bins.edges, bins.box, values)
            formula = probability_between(part, LOW, HIGH) if known is None else None
            if known is not None:
                total += float(evaluate(weight, values)) * known
            elif part.given and formula is None:
                total += by_nodes(weight, part, tuple(parameters), values, bins=bins, backend=backend)
            elif formula is None:
                if bins.rows is None:
                    share = float(evaluate(weight, values))
                else:  # which may depend on what is given, but not on the bin
                    one = replace(bins, edges=bins.edges[:2])
                    share = float(over_rows((weight,), one, tuple(parameters), values, backend)[0, 0])
                total += share * by_quadrature(part, bins, values)
            else:
                terms.append(weight * formula)
    outputs = tuple(add_all(*terms) if len(terms) > 1 else terms[0] for terms in formulas if terms)
    if outputs:
        which = [bool(terms) for terms in formulas]
        totals[which] += by_formula(outputs, bins, tuple(parameters), values, backend)
    return list(totals)


def is_absent(weight: Expr, values: Values) -> bool:
    """Return whether a density has no events; in ranges that it does not reach, its own probabilities are no numbers."""
    return not leaves(Op.COLUMN, weight) and float(evaluate(weight, values)) == 0


def probability_between(pdf: Pdf, low: Expr, high: Expr) -> Expr | None:
    """Return the probability of a bin of a density in one observable, if there is a formula."""
    area = pdf.integral_between(low, high) if len(pdf.drawn) == 1 else None
    return None if area is None else area / pdf.integral()


def by_formula(
    outputs: tuple[Expr, ...], bins: Bins, parameters: tuple[Parameter, ...], values: Values, backend: Backend
) -> Array:
    """Evaluate expressions of the edges of a bin for all bins, (outputs, bins)."""
    if bins.rows is not None:
        return over_rows(outputs, bins, parameters, values, backend)
    edges = bins.edges
    data = Columns({LOW.name: edges[:-1].copy(), HIGH.name: edges[1:].copy()})
    point = np.array([[values[p.name] for p in parameters]])
    compiled = compile_values(
        outputs, tuple(p.symbol for p in parameters), Settings(backend, precompute="none")
    )
    return np.asarray(compiled.bind(data, Events.all_sets(data.count))(point)[0], np.float64)


def over_rows(
    outputs: tuple[Expr, ...], bins: Bins, parameters: tuple[Parameter, ...], values: Values, backend: Backend
) -> Array:
    """Evaluate expressions of the edges of a bin and of given columns for all bins, averaged over rows, (outputs, bins)."""
    assert bins.rows is not None
    count, low, high = len(bins.edges) - 1, scalar("low edge of a bin"), scalar("high edge of a bin")
    compiled = compile_values(
        substitute_all(outputs, {LOW: low, HIGH: high}),
        (*(p.symbol for p in parameters), low, high),
        Settings(backend, precompute="none"),
    )
    known = np.tile([values[p.name] for p in parameters], (count, 1))
    points = np.column_stack([known, bins.edges[:-1], bins.edges[1:]])
    rows = bins.rows.thinned(max(1, MAX_EVALUATIONS // count))
    step = max(1, AT_ONCE // (count * len(outputs)))
    total = np.zeros((count, len(outputs)))
    for first in range(0, len(rows.weights), step):
        weights = rows.weights[first : first + step]
        columns = Columns({name: c[first : first + step].copy() for name, c in rows.columns.items()})
        total += compiled.bind(columns, Events.all_sets(len(weights)))(points) @ weights
    return total.T


def by_nodes(
    weight: Expr, pdf: Pdf, parameters: tuple[Parameter, ...], values: Values, *, bins: Bins, backend: Backend
) -> Array:
    """Integrate a conditional density without a formula over the bins, by Gauss-Legendre nodes in parts of them.

    Its normalisation is computed once for each row, and some rows tell how many nodes are needed.
    """
    if len(pdf.drawn) > 1:
        raise unresolved(pdf, bins.x)
    assert bins.rows is not None
    count = len(bins.edges) - 1
    parts = -(-MIN_PARTS // count)
    rows = bins.rows.thinned(max(1, MAX_EVALUATIONS // (count * parts)))
    known = substitute(weight / pdf.integral(), {p.symbol: const(values[p.name]) for p in parameters})
    compiled = compile_values((known,), (), Settings(backend, precompute="none"))
    scales = compiled.bind(Columns(dict(rows.columns)), Events.all_sets(len(rows.weights)))(np.empty((1, 0)))
    rows = replace(rows, weights=rows.weights * scales[0, 0])

    def areas_at(nodes: int, parts: int, rows: Rows) -> Array:
        outputs = (area_by_nodes(pdf.density(), bins.x, nodes),)
        finer = replace(bins, edges=divide(bins.edges, parts), rows=rows)
        areas = over_rows(outputs, finer, parameters, values, backend)
        return np.asarray(areas.reshape(count, parts).sum(axis=1), np.float64)

    few = rows.thinned(FEW_ROWS)
    for nodes in NODES:
        coarse, fine = areas_at(nodes, parts, few), areas_at(nodes, 2 * parts, few)
        error = float(np.max(np.abs(fine - coarse)) / np.max(np.abs(fine)))
        if error <= GOOD_NODES:
            return areas_at(nodes, parts, rows)
    if not error <= WORST_NODES:
        raise unresolved(pdf, bins.x)
    return areas_at(NODES[-1], 2 * parts, rows)


def area_by_nodes(density: Expr, x: Observable, nodes: int) -> Expr:
    """Return the integral of a density over a bin, as a sum over Gauss-Legendre nodes."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    half = 0.5 * (HIGH - LOW)
    terms = [
        w * substitute(density, {x.expr: 0.5 * (LOW + HIGH) + u * half})
        for u, w in zip(places.tolist(), weights.tolist(), strict=True)
    ]
    return half * add_all(*terms)


def by_quadrature(pdf: Pdf, bins: Bins, values: Values) -> Array:
    """Integrate a normalised density over the bins, the other observables first: term by term if that works."""
    x = bins.x
    formula, others = pdf.partly_integrated(x, bins.others(pdf))
    density = substitute(formula, {leaf: const(values[leaf.name]) for leaf in leaves(Op.SCALAR, formula)})
    projected = integral_out(density, (x,), others) if others else None
    if projected is not None:
        density, others = projected, ()
    if len(others) >= MAX_AXES:
        raise unresolved(pdf, x)
    areas = integrate_bins(pdf, density, bins, others)
    probabilities = areas / float(evaluate(normalised_integral(pdf), values))
    if bins.cover(pdf) and abs(probabilities.sum() - 1) > WRONG_SUM:
        raise unresolved(pdf, x)
    return probabilities


def integrate_bins(pdf: Pdf, density: Expr, bins: Bins, others: tuple[Observable, ...]) -> Array:
    """Integrate a density without parameters over the bins; those next to a singularity each with panels from there."""
    x, span, rest = bins.x, bins.span, density
    totals = np.zeros(len(bins.edges) - 1)
    for k in bins.touching(singular_ends(density, span, others)):
        own = Observable(x.name, float(bins.edges[k]), float(bins.edges[k + 1]))
        integral = integral_over_box(density, (own, *others), ())
        (body,) = normalise(integral.args[0])  # 1 - (1 - u) would be rounded, next to a singularity at 1
        totals[k] = integrate(pdf, x, integral_of(body, domain_of(integral), *integral.args[2:]))[1].sum()
        rest = where((span.expr >= own.low) & (span.expr <= own.high), ZERO, rest)
    boxes, parts = integrate(pdf, x, integral_over_bins(rest, span, others, bins.edges.tolist()))
    middles = span.low + (span.high - span.low) * (boxes.low[:, 0] + boxes.high[:, 0]) / 2
    return totals + bins.sums(middles, parts)


def integrate(pdf: Pdf, x: Observable, integral: Expr) -> tuple[Boxes, Array]:
    """Return boxes for an integral without parameters, and the integral over each."""
    adapted = adapted_to(integral.args[1:], domain_of(integral), ())
    if not adapted.error <= WORST_ERROR:
        raise unresolved(pdf, x)
    return adapted.boxes, areas(integral.args[0], adapted.boxes, {})


def unresolved(pdf: Pdf, x: Observable) -> ModelError:
    return ModelError(
        f"density '{pdf.density()!r}': could not be integrated over bins of '{x.name}' at these values;"
        " give it a formula in integral_between, or write it as a product of densities"
    )
