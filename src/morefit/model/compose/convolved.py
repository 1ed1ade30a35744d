"""A density convolved with a resolution without a formula for both: by an integral for each event, or cell by cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morefit.arrays import Array
from morefit.expr import (
    ZERO,
    Expr,
    Op,
    Table,
    TermRule,
    add_all,
    column,
    const,
    evaluate,
    lookup,
    node_sum,
    substitute,
    to_expr,
    where,
)
from morefit.model.density import Density
from morefit.model.integrate import integral_over
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.model.recipes import Recipe, Recipes
from morefit.model.resolution import smeared_cells
from morefit.model.shapes.gaussian import Gaussian

Pieces = tuple[Array, Array]  # edges of cells, and rows of coefficients, one for each power


@dataclass(frozen=True, eq=False)
class Convolved(Pdf):
    """A density convolved with a resolution by an integral for each event."""

    x: Observable
    difference: Observable
    source: Pdf  # of true values
    resolution: Pdf
    truth: tuple[float, float] | None

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        return (self.x, *self.given)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(dict.fromkeys((*self.source.parameters, *self.resolution.parameters)))

    def true_density(self, t: Expr) -> Expr:
        """Return the density of a true value."""
        return self.cut(t, substitute(self.source.density(), {self.x.expr: t}))

    def cut(self, t: Expr, value: Expr) -> Expr:
        """Return a value that is zero where the true value does not occur."""
        for end, sign in zip(self.truth or (), (1, -1), strict=False):
            if math.isfinite(end):
                value = where(sign * (t - end) < 0, ZERO, value)
        return value

    def smear(self, d: Expr) -> Expr:
        """Return the density of a difference."""
        (own,) = self.resolution.drawn
        return substitute(self.resolution.density(), {own.expr: d})

    def density(self) -> Expr:
        if (pieces := self.pieces_of_source()) is not None:
            return self.by_cells(self.x.expr, pieces)
        if (steps := self.steps_of_source()) is not None:
            return self.by_steps(self.x.expr, *steps)
        x, d = self.x.expr, self.difference.expr
        product = self.smear(d) * self.true_density(x - d)
        return integral_over(product, [self.difference], self.parameters, given=[self.x])

    def pieces_of_source(self) -> Pieces | None:
        """Return the cells of a template and their polynomials, if it is one and the resolution is made of Gaussians."""
        gaussians = all(isinstance(one, Gaussian) for _, one in self.resolution.shares())
        return self.source.pieces() if gaussians and self.truth == (self.x.low, self.x.high) else None

    def by_cells(self, x: Expr, pieces: Pieces) -> Expr:
        """Return a template, cell by cell, with a resolution that is made of Gaussians."""
        parts = []
        for share, gaussian in self.resolution.shares():
            assert isinstance(gaussian, Gaussian)
            ends = x - self.difference.high, x - self.difference.low
            seen = smeared_cells(x - gaussian.mu, *pieces, to_expr(gaussian.sigma), ends)
            parts.append(seen if gaussian is self.resolution else share / gaussian.integral() * seen)
        return add_all(*parts) if len(parts) > 1 else parts[0]

    def steps_of_source(self) -> Pieces | None:
        """Return the cells of a template of steps, if the resolution has a formula for its integral."""
        pieces = self.source.pieces() if self.truth == (self.x.low, self.x.high) else None
        d = self.difference
        known = self.resolution.integral_between(const(d.low), d.expr)
        return None if pieces is None or len(pieces[1]) > 1 or known is None else pieces

    def by_steps(self, x: Expr, edges: Array, rows: Array) -> Expr:
        """Return a template of steps, cell by cell: each contributes what the resolution has between its edges."""
        d = self.difference

        def area(low: Expr, high: Expr) -> Expr:
            known = self.resolution.integral_between(
                *(Op.MIN(Op.MAX(x - edge, d.low), d.high) for edge in (high, low))
            )
            assert known is not None
            return known

        return sum_of_steps(edges, rows[0], area)

    def area_by_steps(self, x: Expr, edges: Array, rows: Array) -> Expr:
        """Return the integral of a template of steps up to a measured value, cell by cell: it is an integral of what the resolution has below a difference."""
        d = self.difference
        end = Observable.interned(f"end {d.name}", d.low, d.high, "")
        share, whole = (self.resolution.integral_between(const(d.low), b) for b in (d.expr, const(d.high)))
        assert share is not None
        assert whole is not None
        below = integral_over(where(d < end, share, ZERO), [d], self.parameters, given=[end])

        def up_to(difference: Expr) -> Expr:
            inside = substitute(below, {end.expr: Op.MIN(Op.MAX(difference, d.low), d.high)})
            return where(difference > d.low, inside, ZERO) + whole * Op.MAX(difference - d.high, 0.0)

        return sum_of_steps(edges, rows[0], lambda low, high: up_to(x - low) - up_to(x - high))

    def integral(self) -> Expr:
        known = self.integral_between(const(self.x.low), const(self.x.high))
        if known is not None:
            return known
        x, d = self.x.expr, self.difference.expr
        product = self.smear(d) * self.true_density(x - d)
        return integral_over(product, [self.x, self.difference], self.parameters)

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        if (
            pieces := self.pieces_of_source()
        ) is not None:  # what lies below a value is what was below it, smeared
            total = summed_up(pieces, self.x.high - self.difference.low)
            return self.by_cells(high, total) - self.by_cells(low, total)
        if low.op is high.op is Op.CONST:  # one integral for all events
            known = self.smeared_area(low, high)
            return None if known is None else integral_over(known[0], [known[1]], self.parameters)
        if (steps := self.steps_of_source()) is not None:
            return self.area_by_steps(high, *steps) - self.area_by_steps(low, *steps)
        # kinks are put in order for ends in their ranges, so that an end has the whole range of the observable
        end = Observable.interned(f"end {self.x.name}", self.x.low, self.x.high, "")
        known = self.smeared_area(const(self.x.low), end.expr)
        if known is None:
            return None
        if known[1] is self.difference:
            below, start = integral_over(known[0], [known[1]], self.parameters, given=[end]), ZERO
        else:
            below = self.area_by_parts(end)
            start = substitute(below, {end.expr: const(self.x.low)})
        # at the low end panels are empty, and the order of their edges is not known
        below_low = where(low <= self.x.low, start, substitute(below, {end.expr: low}))
        return substitute(below, {end.expr: high}) - below_low

    def area_by_parts(self, end: Observable) -> Expr:
        """Return the integral up to an end, up to a constant, by what the resolution has below each difference.

        Its kinks do not move with the end then, which matters if it is a table and has many. Of what lies outside of
        the range, the smaller part is counted, as it cancels.
        """
        d, true, place = self.difference, self.true_value, Observable.interned("place", 0.0, 1.0, "")
        starts = {p.name: p.start for p in self.parameters}
        at_low, at_high = (
            float(evaluate(self.true_density(const(e)), starts)) for e in (true.low, true.high)
        )
        falls = at_low > at_high
        between = self.resolution.integral_between
        share = between(d.expr, const(d.high)) if falls else between(const(d.low), d.expr)
        whole = between(const(d.low), const(d.high))
        assert share is not None
        assert whole is not None
        near = self.true_density(end - d) * share
        width = self.x.high - end if falls else end - self.x.low
        others = self.x.high - d.low - width * place if falls else self.x.low - d.high + width * place
        far = self.true_density(others) * width
        sums = [
            integral_over(part, [o], self.parameters, given=[end]) for part, o in ((near, d), (far, place))
        ]
        return (-1 if falls else 1) * (sums[0] + whole * sums[1])

    def smeared_area(self, low: Expr, high: Expr) -> tuple[Expr, Observable] | None:
        """Return what the integral over an interval is one integral of, and over what, if there is a formula."""
        d, t = self.difference, self.true_value
        area = self.source.integral_between(*self.true_ends(low - d, high - d))
        if area is not None:
            return self.smear(d.expr) * area, d
        ends = (Op.MIN(Op.MAX(end - t, d.low), d.high) for end in (low, high))
        area = self.resolution.integral_between(*ends)
        return None if area is None else (self.true_density(t.expr) * area, t)

    def true_ends(self, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        """Return the ends of an interval of true values, without those that do not occur."""
        ends = [low, high]
        for end, nearer in zip(self.truth or (), (Op.MAX, Op.MIN), strict=False):
            if math.isfinite(end):
                ends = [nearer(one, end) for one in ends]
        return ends[0], ends[1]

    @property
    def true_value(self) -> Observable:
        """The true value: its range are those from which a measured value in the range can come."""
        low, high = self.truth or (-math.inf, math.inf)
        ends = max(low, self.x.low - self.difference.high), min(high, self.x.high - self.difference.low)
        return Observable.interned(f"true {self.x.name}", *ends, "")

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        if self.given:  # each row must be accepted equally often
            return recipes.single(self)
        t, d = self.true_value, self.difference
        true = Density(self.true_density(t.expr), t)
        own = self.resolution.observables[0] is d
        return recipes.shifted(self, true, self.resolution if own else Density(self.smear(d.expr), d))


def sum_of_steps(edges: Array, heights: Array, term: Callable[[Expr, Expr], Expr]) -> Expr:
    """Return the sum over cells of their heights times a function of their edges, in a loop inside the kernel."""
    rule = TermRule.of(len(heights), 1)
    table, place = Table.of(np.column_stack([edges[:-1], edges[1:], heights])), 3 * column(rule.symbol)
    low, high, height = (lookup(table, place + k) for k in range(3))
    return len(heights) * node_sum(height * term(low, high), rule)


def summed_up(pieces: Pieces, end: float) -> Pieces:
    """Return the integral of a piecewise polynomial from its first edge on, as another that stays constant up to an end."""
    edges, rows = pieces
    powers = np.arange(1, len(rows) + 1)[:, None]
    higher = rows / powers
    before = np.concatenate([[0.0], np.cumsum(np.sum(higher * np.diff(edges) ** powers, axis=0))])
    last = np.zeros(len(rows) + 1)
    last[0] = before[-1]
    whole = np.column_stack([np.vstack([before[:-1], higher]), last])
    return np.append(edges, max(end, edges[-1] + 1.0)), whole
