"""How probable bins of one observable are: by formula where there is one, else by quadrature, on any backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    Expr,
    Op,
    OwnSymbol,
    add_all,
    column,
    const,
    domain_of,
    evaluate,
    leaves,
    multiply_all,
    substitute,
)
from morefit.expr.evaluate import adapted_to
from morefit.expr.quadrature import WORST_ERROR
from morefit.model import Observable, Parameter, Pdf, Product, Sum
from morefit.model.integrate import by_terms, integral_over, plain_integral
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets import Backend, Events

# a bin is an event with these two columns
LOW, HIGH = column(OwnSymbol("low edge")), column(OwnSymbol("high edge"))
MOST_AXES = 3  # in which quadrature is done
Values = Mapping[str, float]
Box = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of one observable inside a box in the others; those that the box does not name have their whole range."""

    x: Observable
    edges: Array
    box: Box

    @property
    def span(self) -> Observable:
        """The observable on the range of all bins."""
        return Observable(self.x.name, float(self.edges[0]), float(self.edges[-1]))

    def others(self, pdf: Pdf) -> tuple[Observable, ...]:
        """Return the other observables of a density, on the ranges of the box."""
        return tuple(inside(o, self.box) for o in pdf.observables if o.name != self.x.name)

    def sums(self, middles: Array, areas: Array) -> Array:
        """Add up the areas of boxes, none of which reaches over an edge, in each bin."""
        places = np.searchsorted(self.edges, middles, side="right") - 1
        return np.asarray(np.bincount(places, areas, len(self.edges) - 1), np.float64)


def inside(o: Observable, box: Box) -> Observable:
    """Return an observable on its range in a box."""
    low, high = box.get(o.name, (o.low, o.high))
    return Observable(o.name, float(low), float(high))


def bin_probabilities(
    pdfs: Sequence[Pdf], parameters: Sequence[Parameter], values: Values, bins: Bins, backend: Backend
) -> list[Array]:
    """Return for each density how likely an event in its ranges lies in each bin, and in the box.

    Formulas of all densities go into one kernel, which sees each bin as an event.
    """
    job = Job(tuple(parameters), values, bins, Settings(backend, precompute="none"))
    formulas = [job.formula(pdf) for pdf in pdfs]
    known = iter(job.by_formula(tuple(f for f in formulas if f is not None)))
    return [
        job.by_quadrature(pdf) if formula is None else next(known)
        for pdf, formula in zip(pdfs, formulas, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be integrated where, and how it is compiled."""

    parameters: tuple[Parameter, ...]
    values: Values
    bins: Bins
    settings: Settings

    @property
    def point(self) -> Array:
        return np.array([self.values[p.name] for p in self.parameters])

    # ------------------------------------------------------------------------------ formulas

    def formula(self, pdf: Pdf) -> Expr | None:
        """Return the probability of a bin as an expression of its edges, if there is a formula."""
        if isinstance(pdf, Sum):
            parts = [self.formula(part) for part in pdf.pdfs]
            known = [w * part for w, part in zip(pdf.weights, parts, strict=True) if part is not None]
            return add_all(*known) / pdf.integral() if len(known) == len(parts) else None
        if isinstance(pdf, Product):
            own = self.formula(self.factor(pdf))
            return None if own is None else own * self.rest(pdf)
        found = pdf.integral_between(LOW, HIGH) if len(pdf.observables) == 1 else None
        return None if found is None else found / pdf.integral()

    def by_formula(self, formulas: tuple[Expr, ...]) -> list[Array]:
        """Evaluate formulas for all bins."""
        if not formulas:
            return []
        edges = self.bins.edges
        data = Columns({LOW.name: edges[:-1].copy(), HIGH.name: edges[1:].copy()})
        return list(self.launch(formulas, data, self.point[None])[0])

    def factor(self, pdf: Product) -> Pdf:
        """Return the factor of a product that depends on the binned observable."""
        return next(p for p in pdf.pdfs if self.bins.x.name in {o.name for o in p.observables})

    def rest(self, pdf: Product) -> Expr:
        """Return how likely the other factors of a product have an event inside the box."""
        own = self.factor(pdf)
        return multiply_all(ONE, *(self.share(other) for other in pdf.pdfs if other is not own))

    def share(self, pdf: Pdf) -> Expr:
        """Return how likely an event lies inside the box, of a density that does not depend on the binned observable."""
        box = tuple(inside(o, self.bins.box) for o in pdf.observables)
        if all((a.low, a.high) == (b.low, b.high) for a, b in zip(box, pdf.observables, strict=True)):
            return ONE
        if isinstance(pdf, Sum):
            parts = [w * self.share(part) for w, part in zip(pdf.weights, pdf.pdfs, strict=True)]
            return add_all(*parts) / pdf.integral()
        if isinstance(pdf, Product):
            return multiply_all(*(self.share(factor) for factor in pdf.pdfs))
        found = pdf.integral_between(const(box[0].low), const(box[0].high)) if len(box) == 1 else None
        if found is None:
            found = integral_over(pdf.density(), box, self.held(pdf))
        return found / pdf.integral()

    def held(self, pdf: Pdf) -> list[Parameter]:
        """Return the parameters of a density, held at the values, so that rules are made for these."""
        return [Parameter(p.name, self.values[p.name], fixed=True) for p in pdf.parameters]

    # ---------------------------------------------------------------------------- quadrature

    def by_quadrature(self, pdf: Pdf) -> Array:
        """Integrate numerically, component by component and factor by factor."""
        if isinstance(pdf, Sum):
            weights = np.array([float(evaluate(w, self.values)) for w in pdf.weights])
            found = bin_probabilities(
                pdf.pdfs, self.parameters, self.values, self.bins, self.settings.backend
            )
            return np.asarray(weights @ np.array(found) / weights.sum(), np.float64)
        if isinstance(pdf, Product):
            return self.by_quadrature(self.factor(pdf)) * float(evaluate(self.rest(pdf), self.values))
        return self.areas(pdf) / float(evaluate(pdf.integral(), self.values))

    def areas(self, pdf: Pdf) -> Array:
        """Integrate a density over the bins, the other observables first: term by term if that works."""
        x, others = self.bins.x, self.bins.others(pdf)
        place = Parameter(x.name, self.bins.span.low).expr  # the observable, as a number that is given
        known = {leaf: const(self.values[leaf.name]) for leaf in leaves(Op.SCALAR, pdf.density())}
        density = substitute(pdf.density(), known)
        projected = by_terms(substitute(density, {x.expr: place}), others) if others else None
        if projected is not None:
            density, others = substitute(projected, {place: x.expr}), ()
        if len(others) >= MOST_AXES:
            raise self.hopeless(pdf)
        integral = plain_integral(density, (self.bins.span, *others), {x.name: self.bins.edges.tolist()})
        adapted = adapted_to(integral.args[1:], domain_of(integral), ())
        if not adapted.error <= WORST_ERROR:
            raise self.hopeless(pdf)
        nodes, boxes = adapted.boxes.nodes(), len(adapted.boxes)
        areas = (nodes.weights * evaluate(integral.args[0], nodes.columns)).reshape(boxes, -1).sum(axis=1)
        middles = nodes.columns[x.name].reshape(boxes, -1).mean(axis=1)
        return self.bins.sums(middles, areas)

    def launch(self, outputs: tuple[Expr, ...], data: Columns, sets: Array, *extra: Expr) -> Array:
        """Compute expressions for each set and event, (sets, outputs, events)."""
        leaves = (*(p.expr for p in self.parameters), *extra)
        bound = compile_values(outputs, leaves, self.settings).bind(data, Events.all_sets(data.count))
        return bound(sets)

    def hopeless(self, pdf: Pdf) -> ModelError:
        return ModelError(
            f"density '{pdf.density()!r}': could not be integrated over bins of '{self.bins.x.name}' at these"
            " values; give it a formula in integral_between, or write it as a product of densities"
        )
