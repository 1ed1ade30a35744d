"""A density seen with a resolution by an integral: over the points or cells of a template, or for each event."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache, partial

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
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
from morefit.expr.interpolate import piecewise
from morefit.model.density import Density
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.integrate import integral_over, moving_edges
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.model.resolution import smeared_cells
from morefit.model.shapes.gaussian import Gaussian
from morefit.model.template_sums import integral_over_template

# edges of an integral over differences than of one over true values: the latter is cheaper then
MANY_MORE = 3
REACH = 12.0  # widths of a Gaussian, beyond which it is 5e-32 of its height
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
        """Return a value that is zero where the true value does not occur.

        At the end itself, where nodes next to it may be rounded to, derivatives of a root are zero times infinity.
        """
        for end, sign in zip(self.truth or (), (1, -1), strict=False):
            if math.isfinite(end):
                value = where(sign * (t - end) > 0, value, ZERO)
        return value

    def smear(self, d: Expr) -> Expr:
        """Return the density of a difference."""
        (own,) = self.resolution.drawn
        return substitute(self.resolution.density(), {own.expr: d})

    def density(self) -> Expr:
        if (pieces := self.pieces_of_source()) is not None:
            return self.by_cells(self.x.expr, pieces)
        if (seen := self.over_both(self.x.expr, 1)) is not None:
            return seen
        if self.over_template is not None:
            return self.over_template
        if (steps := self.steps_of_source()) is not None:
            return self.by_steps(self.x.expr, *steps)
        x, d = self.x.expr, self.difference.expr
        product = self.smear_nearby(d) * self.true_density(x - d)
        return integral_over(product, [self.difference], self.parameters, given=[self.x])

    def smear_nearby(self, d: Expr) -> Expr:
        """Return the density of a difference; that of a Gaussian much narrower than the range is zero where it is of no account."""
        gaussian, whole = self.resolution, self.smear(d)
        if not isinstance(gaussian, Gaussian):
            return whole
        mean, sigma = to_expr(gaussian.mu), to_expr(gaussian.sigma)
        width = float(evaluate(sigma, {p.name: p.start for p in self.parameters}))
        if self.difference.high - self.difference.low <= 2 * REACH * width:
            return whole
        return where(d < mean - REACH * sigma, ZERO, where(d > mean + REACH * sigma, ZERO, whole))

    def integrands(self) -> tuple[Expr, ...]:
        return self.true_density(self.true_value.expr), self.resolution.density()

    @cached_property
    def over_template(self) -> Expr | None:
        """The density as a sum over points of a template, with any resolution; None if the source is none."""
        pieces = self.source.pieces()
        if pieces is None or self.given or self.truth != (self.x.low, self.x.high):
            return None
        x, d = self.x.expr, self.difference

        def resolution(t: Expr) -> Expr:
            return where((x - t < d.low) | (x - t > d.high), ZERO, self.smear(x - t))

        def inside(t: Expr) -> Expr:
            return self.smear(x - t)

        width = self.x.high - self.x.low
        function = inside if d.low <= -width and d.high >= width else resolution
        return integral_over_template(function, self.true_value, pieces, self.parameters, [self.x])

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

    def over_both(self, x: Expr, integrals: int) -> Expr | None:
        """Return the sum over the steps of a resolution of so many integrals of a template; None if one is none.

        One makes it the density, two make it what lies below a value.
        """
        source, steps = self.source.pieces(), self.resolution.pieces()
        if source is None or steps is None or len(steps[1]) > 1 or self.truth != (self.x.low, self.x.high):
            return None
        for _ in range(integrals):
            source = summed_up(source, self.x.high - self.difference.low)
        integral = partial(piecewise, edges=source[0], rows=source[1])
        return sum_of_steps(steps[0], steps[1][0], lambda low, high: integral(x - low) - integral(x - high))

    def steps_of_source(self) -> Pieces | None:
        """Return the cells of a template of steps, if the resolution has a formula for its integral."""
        pieces = self.source.pieces() if self.truth == (self.x.low, self.x.high) else None
        known = self.resolution.integral_between(const(self.difference.low), self.difference.expr)
        return None if pieces is None or len(pieces[1]) > 1 or known is None else pieces

    def by_steps(self, x: Expr, edges: Array, rows: Array) -> Expr:
        """Return a template of steps, cell by cell: each contributes what the resolution has between its edges."""

        def area(low: Expr, high: Expr) -> Expr:
            known = self.resolution.integral_between(*self.differences(x - high, x - low))
            assert known is not None
            return known

        return sum_of_steps(edges, rows[0], area)

    def area_by_steps(self, x: Expr, edges: Array, rows: Array) -> Expr:
        """Return the integral of a template of steps up to a measured value, cell by cell.

        It is an integral of what the resolution has below a difference.
        """
        d = self.difference
        end = Observable.interned(f"end {d.name}", d.low, d.high, "")
        share, whole = (self.resolution.integral_between(const(d.low), b) for b in (d.expr, const(d.high)))
        assert share is not None
        assert whole is not None
        below = integral_over(where(d < end, share, ZERO), [d], self.parameters, given=[end])

        def up_to(difference: Expr) -> Expr:
            (inside,) = self.differences(difference)
            return where(difference > d.low, substitute(below, {end.expr: inside}), ZERO) + whole * Op.MAX(
                difference - d.high, 0.0
            )

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
        above, below_low = self.over_both(high, 2), self.over_both(low, 2)
        if above is not None and below_low is not None:
            return above - below_low
        if low.op is high.op is Op.CONST:  # one integral for all events
            return self.seen_between(low, high, ())
        if self.over_template is None and (steps := self.steps_of_source()) is not None:
            return self.area_by_steps(high, *steps) - self.area_by_steps(low, *steps)
        # kinks are put in order for ends in their ranges, so that an end has the whole range of the observable
        end = Observable.interned(f"end {self.x.name}", self.x.low, self.x.high, "")
        below, start = self.area_by_parts(end), ZERO
        if below is not None:
            start = substitute(below, {end.expr: const(self.x.low)})
        elif (below := self.seen_between(const(self.x.low), end.expr, (end,))) is None:
            return None
        # at the low end panels are empty, and the order of their edges is not known
        below_low = where(low <= self.x.low, start, substitute(below, {end.expr: low}))
        return substitute(below, {end.expr: high}) - below_low

    def area_by_parts(self, end: Observable) -> Expr | None:
        """Return the integral up to an end, up to a constant, by what the resolution has below each difference.

        None if there is no formula for that, or there is one for the true density.

        Its kinks do not move with the end then, which matters if it is a table and has many. Of what lies outside of
        the range, the smaller part is counted, as it cancels.
        """
        low, high = self.true_ends(self.x.low - self.difference.expr, end - self.difference.expr)
        if self.over_template is not None or self.source.integral_between(low, high) is not None:
            return None
        d, true, place = self.difference, self.true_value, Observable.interned("place", 0.0, 1.0, "")
        starts = {p.name: p.start for p in self.parameters}
        at_low, at_high = (
            float(evaluate(self.true_density(const(e)), starts)) for e in (true.low, true.high)
        )
        falls = at_low > at_high
        between = self.resolution.integral_between
        share = between(d.expr, const(d.high)) if falls else between(const(d.low), d.expr)
        whole = between(const(d.low), const(d.high))
        if share is None or whole is None:
            return None
        near = self.true_density(end - d) * share
        width = self.x.high - end if falls else end - self.x.low
        others = self.x.high - d.low - width * place if falls else self.x.low - d.high + width * place
        far = self.true_density(others) * width
        sums = [
            integral_over(part, [o], self.parameters, given=[end]) for part, o in ((near, d), (far, place))
        ]
        return (-1 if falls else 1) * (sums[0] + whole * sums[1])

    @lru_cache(maxsize=64)  # noqa: B019 (densities are few, and refer to nothing large)
    def seen_between(self, low: Expr, high: Expr, given: tuple[Observable, ...]) -> Expr | None:
        """Return the integral over an interval whose ends are numbers or observables, if it is one over true values."""
        if self.over_template is not None:
            pieces, t = self.source.pieces(), self.true_value
            assert pieces is not None
            ends = self.differences(low - t, high - t)
            if (area := self.resolution.integral_between(*ends)) is not None:
                total = integral_over_template(
                    lambda at: substitute(area, {t.expr: at}), t, pieces, self.parameters, given
                )
                if total is not None:
                    return total
        known = self.smeared_area(low, high, given)
        return None if known is None else integral_over(known[0], [known[1]], self.parameters, given=given)

    def differences(self, *ends: Expr) -> tuple[Expr, ...]:
        """Return differences of measured and true values inside of their range."""
        return tuple(Op.MIN(Op.MAX(end, self.difference.low), self.difference.high) for end in ends)

    def smeared_area(
        self, low: Expr, high: Expr, given: tuple[Observable, ...]
    ) -> tuple[Expr, Observable] | None:
        """Return what the integral over an interval is one integral of, and over what, if there is a formula.

        Of two, it is the one over differences, unless that has many more edges that move.
        """
        d, t = self.difference, self.true_value
        known: list[tuple[Expr, Observable]] = []
        true = self.source.integral_between(*self.true_ends(low - d, high - d))
        if true is not None:
            known.append((self.smear(d.expr) * true, d))
        seen = self.resolution.integral_between(*self.differences(low - t, high - t))
        if seen is not None:
            known.append((self.true_density(t.expr) * seen, t))
        if len(known) == 2:
            first, other = (len(moving_edges(*one, self.parameters, given)) for one in known)
            return known[first > MANY_MORE + other]
        return known[0] if known else None

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
        whole = (t.low, t.high) == (self.x.low, self.x.high) and self.source.pieces() is not None
        true = self.source if whole else Density(self.true_density(t.expr), t)
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
