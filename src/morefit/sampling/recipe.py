"""How to draw from a model: its densities by inversion where there is a formula, else under an envelope."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_, mul
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    Table,
    add_all,
    apply,
    const,
    evaluate,
    leaves,
    lookup,
    substitute,
    substitute_all,
)
from morefit.model import Observable, Pdf
from morefit.model.parameter import blinded_in
from morefit.rewrite.simplify import bind
from morefit.sampling.conditional_rows import NOTHING_KNOWN, ROW, ConditionalRows, KnownColumns, integrals_of
from morefit.sampling.envelope import (
    NEGATIVE,
    SPARE,
    Numbers,
    Recipe,
    check_values,
    draw_cell,
    envelope_recipe,
    first_cells,
    indices_of,
    make_envelope,
    measure,
    table,
)
from morefit.sampling.inversion import (
    PROBABILITY,
    check_quantile,
    drawn_point,
    inside_range,
    quantile_recipe,
    singular_recipe,
)
from morefit.sampling.mixture import pick
from morefit.sampling.row_envelope import above_rows

ROUNDING = 1e-6  # of numerical integrals, relative to integrals over all of space

if TYPE_CHECKING:
    from morefit.model import Efficiency
    from morefit.targets.base import Backend

MAX_AXES = 3  # of an envelope
WASTEFUL = 0.05  # of the candidates accepted: with fewer an envelope is worth its cells


def recipe(
    pdf: Pdf,
    values: Mapping[str, float],
    numbers: Numbers,
    rows: ConditionalRows | None = None,
    backend: Backend | None = None,
) -> Recipe:
    """Return how to draw from a density at some values of its parameters, and what it is given from rows of data."""
    if rows is None:
        return pdf.recipe(CandidateRecipes(values, numbers))
    chosen = {ROW: rows.row(numbers.take() if rows.resample else ZERO)}
    part = pdf.recipe(CandidateRecipes(values, numbers, KnownColumns(rows.exprs, rows, backend)))
    names, exprs = zip(*{**rows.exprs, **part.drawn}.items(), strict=True)
    *drawn, accept, above = substitute_all((*exprs, part.accept, part.above), chosen)
    return Recipe(dict(zip(names, drawn, strict=True)), accept, above, part.efficiency)


@dataclass(frozen=True, eq=False)
class CandidateRecipes:
    """Ways to draw candidates at some values of the parameters, each with the next random numbers."""

    values: Mapping[str, float]
    numbers: Numbers
    given: KnownColumns = NOTHING_KNOWN

    def single(self, pdf: Pdf) -> Recipe:
        """Draw by inversion if there is a formula, else under an envelope."""
        if pdf.given:
            return conditional_recipe(pdf, self.values, self.numbers, self.given)
        density = bind_values(pdf.density(), pdf, self.values)
        if pdf.whole_numbers and (counts := self.counts(density, *pdf.observables)) is not None:
            return counts
        quantile = pdf.quantile(PROBABILITY)
        if quantile is None:
            return density_recipe(density, pdf, self.values, self.numbers)
        (x,) = pdf.observables
        rises = not pdf.whole_numbers
        return quantile_recipe(bind_values(quantile, pdf, self.values), density, x, self.numbers, rises)

    def counts(self, density: Expr, x: Observable) -> Recipe | None:
        """Choose a whole number by a table of their probabilities, if these are numbers."""
        numbers = np.arange(x.low + 0.5, x.high + 0.5)
        with np.errstate(all="ignore"):
            chances = np.broadcast_to(evaluate(density, {x.name: numbers}), numbers.shape)
        if not (np.isfinite(chances).all() and chances.sum() > 0):
            return None
        return self.cells(chances, [x], lambda _, index, number: float(numbers[0]) + index)

    def cells(
        self, weights: Array, observables: Sequence[Observable], point: Callable[[int, Expr, Expr], Expr]
    ) -> Recipe:
        """Choose a cell of a grid, then a point along each axis of it."""
        cell, *_ = draw_cell(f"cells {Table.of(weights).digest}", weights.ravel(), self.numbers.take())
        drawn = {
            o.name: inside_range(o, point(k, index, self.numbers.take()))
            for k, (o, index) in enumerate(zip(observables, indices_of(cell, weights.shape), strict=True))
        }
        return Recipe(drawn, ONE, ZERO, 1.0)

    def mixture(self, weights: Sequence[Expr], pdfs: Sequence[Pdf]) -> Recipe:
        """Choose a component by one number, then draw from it; all components use the same numbers after that."""
        known = np.array([float(evaluate(w, self.values)) for w in weights])
        if not known.any():  # yields of 0: no event is expected, and none can be accepted
            return Recipe(
                {o.name: inside_range(o, self.numbers.take()) for o in pdfs[0].drawn}, ZERO, ZERO, 1.0
            )
        if not np.all(known >= 0):
            return self.reduced(weights, known, pdfs)
        shares = known[known > 0] / known.sum()
        chosen = self.numbers.take()
        parts, last = [], self.numbers.next
        for component in (pdf for pdf, w in zip(pdfs, known, strict=True) if w > 0):
            own = Numbers(self.numbers.next, self.numbers.margin, exact=True)
            parts.append(component.recipe(replace(self, numbers=own)))
            last = max(last, own.next)
        self.numbers.next = last
        # a rejected candidate is drawn anew with its component, so components that are rejected more are tried more
        tries = shares / [part.efficiency for part in parts]
        edges = (np.cumsum(tries) / tries.sum()).tolist()
        drawn = {name: pick([p.drawn[name] for p in parts], edges, chosen) for name in parts[0].drawn}
        accept = pick([p.accept for p in parts], edges, chosen)
        above = pick([p.above for p in parts], edges, chosen)
        return Recipe(drawn, accept, above, 1 / float(tries.sum()))

    def reduced(self, weights: Sequence[Expr], known: Array, pdfs: Sequence[Pdf]) -> Recipe:
        """Draw from the components with positive weights, and accept as often as the others leave a part of the density."""
        total, positive = float(known.sum()), float(known[known > 0].sum())
        if not total > 0 or any(map(blinded_in, weights)) or any(pdf.given for pdf in pdfs):
            numbers = "of blinded parameters" if any(map(blinded_in, weights)) else known.tolist()
            raise ModelError(
                f"sum: cannot draw with the weights {numbers}, as a part of a negative number of events; choose a truth at which"
                " all yields or fractions are zero or positive"
            )
        inner = self.mixture([const(max(w, 0.0)) for w in known.tolist()], pdfs)
        heights = [
            const(w) * bind_values(pdf.density() / pdf.integral(), pdf, self.values)
            for w, pdf in zip(known.tolist(), pdfs, strict=True)
        ]
        density = add_all(*heights)
        upper_bound(density, pdfs[0].drawn, self.numbers.margin)  # refuses one that is negative
        drawn_from = add_all(*(height for w, height in zip(known.tolist(), heights, strict=True) if w > 0))
        at = {o.expr: inner.drawn[o.name] for o in pdfs[0].drawn}
        whole, above = substitute_all((density, drawn_from), at)
        accept, wrong = self.numbers.take() * above < whole, whole < -NEGATIVE * above
        if inner.accept is not ONE:
            accept, wrong = inner.accept * accept, inner.accept * wrong
        return Recipe(
            inner.drawn,
            accept,
            wrong if inner.above is ZERO else Op.MAX(inner.above, wrong),
            inner.efficiency * total / positive,
        )

    def product(self, pdfs: Sequence[Pdf]) -> Recipe:
        """Draw every factor with numbers of its own, each after those that draw what it is given."""
        parts: list[Recipe] = []
        drawn: dict[str, Expr] = {}
        for factor in pdfs:
            parts.append(factor.recipe(replace(self, given=self.given.with_drawn(drawn))))
            drawn |= parts[-1].drawn
        accepts = [part.accept for part in parts if part.accept is not ONE]
        aboves = [part.above for part in parts if part.above is not ZERO]
        accept = reduce(mul, accepts) if accepts else ONE
        above = reduce(partial(apply, Op.MAX), aboves) if aboves else ZERO
        return Recipe(drawn, accept, above, float(np.prod([p.efficiency for p in parts])))

    def transformed(
        self, pdf: Pdf, count: int, points: Callable[[Sequence[Expr]], Sequence[Expr]], area: Expr
    ) -> Recipe:
        """Draw functions of uniform numbers, and accept them in the ranges of the observables."""
        numbers = [self.numbers.take() for _ in range(count)]
        drawn = [bind_values(point, pdf, self.values) for point in points(numbers)]
        inside = [(x >= o.low) & (x <= o.high) for x, o in zip(drawn, pdf.drawn, strict=True)]
        share = evaluate(pdf.integral(), self.values) / evaluate(area, self.values)
        if not 0 < share < 1 + ROUNDING:
            raise ModelError(
                f"density '{type(pdf).__name__}': its probability inside the ranges must be between 0 and 1, got {share:g};"
                " draw at other values"
            )
        names = [o.name for o in pdf.drawn]
        return Recipe(
            dict(zip(names, drawn, strict=True)), reduce(and_, inside), ZERO, min(float(share), 1.0)
        )

    def thinned(self, efficiency: Efficiency) -> Recipe:
        """Draw from the density, and accept as often as the acceptance says, relative to a bound of it."""
        inner = recipe(efficiency.base, self.values, self.numbers)
        acceptance = bind_values(efficiency.factor(), efficiency, self.values)
        bound = upper_bound(acceptance, efficiency.observables, self.numbers.margin)
        here = substitute(acceptance, {o.expr: inner.drawn[o.name] for o in efficiency.observables})
        accept = self.numbers.take() * bound < here
        beyond = (bound < here) | (here < -NEGATIVE * bound)
        if inner.accept is not ONE:  # an acceptance may be anything at candidates outside of the ranges
            beyond = inner.accept * beyond
        fraction = float(evaluate(efficiency.integral() / efficiency.base.integral(), self.values)) / bound
        if fraction < WASTEFUL and len(efficiency.observables) <= MAX_AXES:
            return self.single(efficiency)
        if fraction > 1:
            raise ModelError(
                "efficiency: the mean of the acceptance is above its largest value on a grid; it has a peak that is too narrow"
            )
        return Recipe(
            inner.drawn,
            accept if inner.accept is ONE else inner.accept * accept,
            beyond if inner.above is ZERO else Op.MAX(inner.above, beyond),
            inner.efficiency * fraction,
        )

    def resampled(self, efficiency: Efficiency) -> Recipe:
        """Choose a simulated event by Walker's alias method, as often as it comes at these values."""
        weights, sample = efficiency.event_weights(self.values), efficiency.simulation()
        assert sample is not None
        check_values(weights, sample.columns)
        name = f"simulation {zlib.crc32(weights.tobytes()):08x}"
        chosen, *_ = draw_cell(name, weights, self.numbers.take())
        drawn = {
            o.name: lookup(table(f"{name} {o.name}", sample.column(o)), chosen)
            for o in efficiency.observables
        }
        return Recipe(drawn, ONE, ZERO, 1.0)

    def shifted(self, pdf: Pdf, true: Pdf, shift: Pdf) -> Recipe:
        """Draw a true value and a shift; their sum is accepted in the range of the observable."""
        (x,) = pdf.observables
        both = self.product([true, shift])
        total = add_all(*both.drawn.values())
        accept = both.accept * ((total >= x.low) & (total <= x.high))
        inside, *areas = (float(evaluate(p.integral(), self.values)) for p in (pdf, true, shift))
        return Recipe({x.name: total}, accept, both.above, both.efficiency * inside / (areas[0] * areas[1]))


def bind_values(expr: Expr, pdf: Pdf, values: Mapping[str, float]) -> Expr:
    """Fold the parameters into a formula; what they multiply by zero falls away."""
    return bind([expr], {p.name: values[p.name] for p in pdf.parameters})[0]


def density_recipe(density: Expr, pdf: Pdf, values: Mapping[str, float], numbers: Numbers) -> Recipe:
    """Draw observables that the density does not depend on uniformly, the others under an envelope."""
    names = {leaf.name for leaf in leaves(Op.COLUMN, density)}
    free = [o for o in pdf.observables if o.name not in names]
    flat = {o.name: Op.MIN(o.low + (o.high - o.low) * numbers.take(), const(o.high)) for o in free}
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


def conditional_recipe(
    pdf: Pdf, values: Mapping[str, float], numbers: Numbers, given: KnownColumns
) -> Recipe:
    """Draw from a conditional density by inversion, or under an envelope above its normalised form for all rows.

    Each row must be accepted equally often, as another one is taken after a rejection: so the envelope is the same for all.
    """
    density = bind_values(pdf.normalised(), pdf, values)
    typical = given.typical(pdf.given)
    rows = [
        {o.expr: const(value) for o, value in zip(pdf.given, row, strict=True)} for row in typical.tolist()
    ]
    areas = integrals_of_rows(density, {o.name: typical[:, k] for k, o in enumerate(pdf.given)})
    examples = [bind([substitute(density, row | areas[k])], {})[0] for k, row in enumerate(rows)]
    quantile = pdf.quantile(PROBABILITY) if len(pdf.drawn) == 1 else None
    known = given.columns(pdf.given)
    if quantile is not None:
        (x,), bound = pdf.drawn, bind_values(quantile, pdf, values)
        for row, example in zip(rows, examples, strict=True):
            check_quantile(substitute(bound, row), example, x, not pdf.whole_numbers)
        return Recipe({x.name: drawn_point(substitute(bound, known), x, numbers)}, ONE, ZERO, 1.0)
    here = substitute(substitute(density, given.integrals(density, pdf.given)), known)
    first = make_envelope(tuple(examples), pdf.drawn, numbers.margin)
    envelope = above_rows(first, density, pdf.drawn, given.rows_by_chance(pdf.given), numbers.margin)
    inner, area = envelope_recipe(here, pdf.drawn, numbers, envelope)
    return replace(inner, efficiency=1 / area)


def integrals_of_rows(density: Expr, rows: Mapping[str, Array]) -> list[dict[Expr, Expr]]:
    """Return for each row what the integrals for each event in a density are that depend on given observables alone."""
    count = len(next(iter(rows.values())))
    numbers = {node: np.broadcast_to(evaluate(node, rows), count) for node in integrals_of(density, rows)}
    return [{node: const(float(each[k])) for node, each in numbers.items()} for k in range(count)]


def upper_bound(acceptance: Expr, observables: Sequence[Observable], margin: float) -> float:
    """Return what an acceptance without parameters does not exceed: by cells that see its peaks, or on a grid in four dimensions."""
    names = {leaf.name for leaf in leaves(Op.COLUMN, acceptance)}
    own = tuple(o for o in observables if o.name in names)
    if not own:
        check_values(np.array([float(evaluate(acceptance, {}))]), {})
        return SPARE * float(evaluate(acceptance, {}))
    if len(own) <= MAX_AXES:
        return float(measure(acceptance, own, first_cells((acceptance,), own), margin).heights.max())
    from morefit.model.acceptance import values_on_grid

    heights, points = values_on_grid(acceptance, {})
    check_values(heights.ravel(), {name: grid.ravel() for name, grid in points.items()})
    steps = [np.abs(np.diff(heights, axis=k)).max() for k in range(heights.ndim)]
    return SPARE * float(heights.max() + margin * sum(steps))
