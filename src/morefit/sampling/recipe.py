"""How to draw from a model: its densities by inversion where there is a formula, else under an envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import mul

import numpy as np

from morefit.errors import ModelError
from morefit.expr import ONE, ZERO, Expr, Op, add_all, apply, const, evaluate, leaves, where
from morefit.model import Observable, Pdf
from morefit.rewrite.bind import bind
from morefit.sampling.candidate import Numbers, Recipe, check_values
from morefit.sampling.envelope import envelope_recipe
from morefit.sampling.inversion import PROBABILITY, quantile_recipe
from morefit.sampling.singular import singular_recipe


def recipe(pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Return how to draw from a density at some values of its parameters."""
    return pdf.recipe(CandidateRecipes(values, numbers))


@dataclass(frozen=True, eq=False)
class CandidateRecipes:
    """Ways to draw candidates at some values of the parameters, each with the next random numbers."""

    values: Mapping[str, float]
    numbers: Numbers

    def single(self, pdf: Pdf) -> Recipe:
        """Draw by inversion if there is a formula, else under an envelope."""
        density = bind_values(pdf.density(), pdf, self.values)
        quantile = pdf.quantile(PROBABILITY)
        if quantile is None:
            return density_recipe(density, pdf, self.values, self.numbers)
        (x,) = pdf.observables
        return quantile_recipe(bind_values(quantile, pdf, self.values), density, x, self.numbers)

    def mixture(self, weights: Sequence[Expr], pdfs: Sequence[Pdf]) -> Recipe:
        """Choose a component by one number, then draw from it; all components use the same numbers after that."""
        known = np.array([float(evaluate(w, self.values)) for w in weights])
        if not np.all(known >= 0) or not known.sum() > 0:
            raise ModelError(
                f"sum: cannot draw with the fractions {known.tolist()}; all must be positive or zero at the given values"
            )
        shares = known[known > 0] / known.sum()
        chosen = self.numbers.take()
        parts, last = [], self.numbers.next
        for component in (pdf for pdf, w in zip(pdfs, known, strict=True) if w > 0):
            own = Numbers(self.numbers.next, self.numbers.margin, exact=True)
            parts.append(recipe(component, self.values, own))
            last = max(last, own.next)
        self.numbers.next = last
        # a rejected candidate is drawn anew with its component, so components that are rejected more are tried more
        tries = shares / [part.efficiency for part in parts]
        edges = (np.cumsum(tries) / tries.sum()).tolist()
        drawn = {name: pick([p.drawn[name] for p in parts], edges, chosen) for name in parts[0].drawn}
        accept = pick([p.accept for p in parts], edges, chosen)
        above = pick([p.above for p in parts], edges, chosen)
        return Recipe(drawn, accept, above, 1 / float(tries.sum()))

    def product(self, pdfs: Sequence[Pdf]) -> Recipe:
        """Draw every factor with numbers of its own."""
        parts = [recipe(factor, self.values, self.numbers) for factor in pdfs]
        drawn = {name: expr for part in parts for name, expr in part.drawn.items()}
        accepts = [part.accept for part in parts if part.accept is not ONE]
        aboves = [part.above for part in parts if part.above is not ZERO]
        accept = reduce(mul, accepts) if accepts else ONE
        above = reduce(partial(apply, Op.MAX), aboves) if aboves else ZERO
        return Recipe(drawn, accept, above, float(np.prod([p.efficiency for p in parts])))

    def shifted(self, pdf: Pdf, true: Pdf, shift: Pdf) -> Recipe:
        """Draw a true value and a shift; their sum is accepted in the range of the observable."""
        (x,) = pdf.observables
        both = self.product([true, shift])
        total = add_all(*both.drawn.values())
        accept = both.accept * ((total >= x.low) & (total <= x.high))
        inside, *areas = (float(evaluate(p.integral(), self.values)) for p in (pdf, true, shift))
        return Recipe({x.name: total}, accept, both.above, both.efficiency * inside / (areas[0] * areas[1]))


def pick(exprs: Sequence[Expr], edges: Sequence[float], number: Expr) -> Expr:
    """Return the first expression whose edge lies above a number."""
    choice = exprs[-1]
    for edge, expr in reversed(list(zip(edges[:-1], exprs[:-1], strict=True))):
        choice = where(number < edge, expr, choice)
    return choice


def bind_values(expr: Expr, pdf: Pdf, values: Mapping[str, float]) -> Expr:
    """Fold the parameters into a formula; what they multiply by zero falls away."""
    return bind([expr], {p.name: values[p.name] for p in pdf.parameters})[0]


def density_recipe(density: Expr, pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Draw observables that the density does not depend on uniformly, the others under an envelope."""
    names = {leaf.name for leaf in leaves(Op.COLUMN, density)}
    flat = {o.name: flat_point(o, numbers.take()) for o in pdf.observables if o.name not in names}
    if not names:
        check_values(np.array([float(evaluate(density, {}))]), {})
        return Recipe(flat, ONE, ZERO, 1.0)
    box = tuple(o for o in pdf.observables if o.name in names)
    inner, area = (
        singular_recipe(density, *box, numbers) if len(box) == 1 else envelope_recipe(density, box, numbers)
    )
    efficiency = inner.efficiency
    if numbers.exact:
        rest = float(np.prod([o.high - o.low for o in pdf.observables if o.name not in names]))
        efficiency = float(evaluate(pdf.integral(), values)) / (area * rest)
    return Recipe({**inner.drawn, **flat}, inner.accept, inner.above, efficiency)


def flat_point(x: Observable, number: Expr) -> Expr:
    return apply(Op.MIN, x.low + (x.high - x.low) * number, const(x.high))
