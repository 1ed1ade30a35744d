"""A density seen with a resolution: by formula where there is one, else by an integral for each event."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
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
from morefit.model.arguments import described, listed, listing
from morefit.model.compose.sum import Sum
from morefit.model.counts import counted_in
from morefit.model.density import Density
from morefit.model.integrate import integral_over
from morefit.model.observable import Observable, check_number
from morefit.model.parameter import Parameter
from morefit.model.parts import check_known
from morefit.model.pdf import Pdf
from morefit.model.recipes import Recipe, Recipes
from morefit.model.replace import Replacement
from morefit.model.resolution import smeared_cells
from morefit.model.shapes.gaussian import Gaussian
from morefit.text.arguments import in_sentences

Pieces = tuple[Array, Array]  # edges of cells, and rows of coefficients, one for each power


@in_sentences
def Convolution(  # it stands where a density is made
    pdf: Pdf, resolution: Pdf, *, truth: tuple[float, float] | None = None
) -> Pdf:
    r"""Return the density of a measured value $x=t+d$: $\int p(t)\,R(x-t)\,dt$, normalised on the range of $x$.

    ``pdf`` is the density of the true value $t$, written in the observable $x$ that is measured. The range of $x$ is
    that of measured values: true values may lie outside of it, anywhere the formula of ``pdf`` is positive, or, with
    ``truth=(low, high)``, anywhere between these; those of a table, such as a histogram, in its range. ``resolution`` is the density of the difference $d$ of measured and
    true value, in an observable of its own whose range is that of differences; written in $x$, differences reach from
    ``x.low - x.high`` to ``x.high - x.low``.

    A Gaussian may have a width for each event: ``Gaussian(t, 0, sigma_t, given=[sigma_t])``.
    A Gaussian resolution, or a sum of some, has a formula for many densities, and is not cut at the ends of its range;
    the result is then a density of another kind, such as ``Voigt``. All others are integrated for each event, to
    1e-8 of the density or better. The convolution of a ``Sum`` is the sum of convolutions: its fractions and yields are
    those of measured events in the range of $x$.

    Example: ``mf.Convolution(mf.shapes.BreitWigner(m, 5.8, 0.1), mf.Gaussian(d, 0.0, sigma))``
    """
    result = convolved(pdf, resolution, truth)
    if result is pdf or (resolution.given and unaffected(pdf, resolution, truth)):
        warnings.warn(
            f"convolution: {type(pdf).__name__} over all true values has the same shape with any Gaussian, so that the resolution"
            " has no effect; where true values begin or end, pass truth=(low, high), and for a decay from 0 on take"
            " mf.shapes.Decay",
            UserWarning,
            stacklevel=2,
        )
    return result


def convolved(pdf: Pdf, resolution: Pdf, truth: tuple[float, float] | None) -> Pdf:
    """Return the convolution, by formula if there is one."""
    x, difference = check_parts(pdf, resolution)
    ends = check_truth(truth) or (None if holds_outside(pdf) else (x.low, x.high))
    if isinstance(pdf, Sum):
        parts = [convolved(part, resolution, truth) for part in pdf.pdfs]
        weights: dict[str, Any] = {"yields": pdf.yields} if pdf.yields else {"fractions": pdf.fractions}
        return Sum(parts, labels=pdf.labels or None, **weights)
    exact = None if ends else by_formula(pdf, resolution)
    if exact is not None:
        return exact
    if difference is x:
        width = x.high - x.low
        difference = Observable.interned(f"smear {x.name}", -width, width, "")
    by_event = {"given": resolution.given} if resolution.given else {}
    seen = Convolved(x, difference, pdf, resolution, ends, **by_event)
    if resolution.given and seen.pieces_of_source() is None:
        raise ModelError(
            f"convolution: a resolution with {listing(resolution.given)} given needs a formula, which Gaussians have for many"
            " densities on their whole range of true values, and for templates; this pair has none; a decay from 0 on is"
            " mf.shapes.Decay"
        )
    return seen


def unaffected(pdf: Pdf, resolution: Pdf, truth: tuple[float, float] | None) -> bool:
    """Return whether a density that holds everywhere has the same shape with a Gaussian resolution."""
    if truth is not None or isinstance(pdf, Sum) or not isinstance(resolution, Gaussian):
        return False
    known = pdf.smeared(ZERO, ONE)
    return known is not None and known[1] is pdf


def holds_outside(pdf: Pdf) -> bool:
    """Return whether the formula of a density means something outside of the range of its observable."""
    return pdf.extends and all(holds_outside(part) for *_, part in pdf.branches())


def by_formula(pdf: Pdf, resolution: Pdf) -> Pdf | None:
    """Return the convolution with a Gaussian or a sum of Gaussians, if there is a formula."""
    numbers = {o: Parameter(f"{o.name}_given", (o.low + o.high) / 2, o.low, o.high) for o in resolution.given}
    columns = {o.expr: number.expr for o, number in numbers.items()}
    parts: list[tuple[Expr, Pdf]] = []
    for share, gaussian in resolution.shares():
        if not isinstance(gaussian, Gaussian):
            return None
        mean, sigma = (substitute(to_expr(one), columns) for one in (gaussian.mu, gaussian.sigma))
        known = pdf.smeared(mean, sigma)
        if known is None:
            return None
        factor, part = known
        parts.append((share * factor, part))
    if len(parts) == 1:
        return conditional_on(numbers, parts[0][1]) if numbers else parts[0][1]
    if numbers:
        raise ModelError(
            f"convolution: of a sum of Gaussians none may depend on {listing(numbers)}, which is given: the shares of events in"
            " the range would depend on it; use one Gaussian, or a shape with such a resolution, as mf.shapes.Decay"
        )
    if all(part is pdf for _, part in parts):  # so that their fractions mean nothing
        return pdf
    # each Gaussian has its share of all events; of those in the range it has what its integral says
    areas = [weight * part.integral() for weight, part in parts]
    return Sum([part for _, part in parts], fractions=[area / add_all(*areas) for area in areas[:-1]])


def conditional_on(numbers: Mapping[Observable, Parameter], pdf: Pdf) -> Pdf:
    """Return a new density with observables that are given in the place of parameters."""
    own = pdf.replaced(lambda attribute: attribute)  # one that is the user's must not change
    vars(own)["given"] = tuple(numbers)
    return own.replaced(Replacement([(number, o) for o, number in numbers.items()]))


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


def check_parts(pdf: Pdf, resolution: Pdf) -> tuple[Observable, Observable]:
    """Return the observable of a density and that of its resolution, if each has one."""
    for role, part in (("density", pdf), ("resolution", resolution)):
        if not isinstance(part, Pdf):
            raise ModelError(
                f"convolution: the {role} must be a density, got {described(part)}; wrap a formula in mf.Density"
            )
        if part.given and part is pdf:
            raise ModelError(
                f"convolution: the {role} must not be conditional, got one with {listing(part.given)} given; write a width"
                " for each event into a shape, such as mf.shapes.Decay(t, tau, sigma=[s], given=[s]) or Voigt"
            )
        check_known(part, "a convolution")
        if counted := sorted(counted_in(part)):
            raise ModelError(
                f"convolution: the {role} must not be one of whole numbers, got '{counted[0]}', whose steps would be smeared in the"
                " place of the numbers; write mf.Sum of the resolution at each of them"
            )
        if len(part.drawn) != 1:
            names = ", ".join(repr(o.name) for o in part.observables)
            raise ModelError(
                f"convolution: the {role} must have one observable, got {names}; convolve the factors of a product"
            )
    if resolution.expected_events() is not None:
        raise ModelError("convolution: the resolution cannot be an extended sum; use fractions in it")
    (x,), (difference,) = pdf.drawn, resolution.drawn
    if difference is not x and difference.name in {x.name, *(p.name for p in pdf.parameters)}:
        raise ModelError(
            f"convolution: '{difference.name}' names the difference of measured and true value and something else;"
            " rename it"
        )
    return x, difference


def check_truth(truth: Sequence[float] | None) -> tuple[float, float] | None:
    """Return the ends of the range of true values as doubles."""
    if truth is None:
        return None
    ends = listed("convolution: truth", truth)
    if len(ends) != 2:
        raise ModelError(f"convolution: truth must be (low, high), got {truth!r}")
    low, high = (
        check_number("convolution", "truth", name, end)
        for name, end in zip(("low", "high"), ends, strict=True)
    )
    if not low < high:
        raise ModelError(f"convolution: truth must have low below high, got {truth!r}")
    return low, high
