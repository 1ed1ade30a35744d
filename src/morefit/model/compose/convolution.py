"""A density seen with a resolution: by formula where there is one, else by an integral for each event."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, ZERO, Expr, Op, add_all, const, evaluate, substitute, to_expr, where
from morefit.model.arguments import listing
from morefit.model.compose.convolution_checks import check_parts, check_truth
from morefit.model.compose.sum import Sum
from morefit.model.density import Density
from morefit.model.integrate import integral_over, moving_edges
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.model.recipes import Recipe, Recipes
from morefit.model.replace import Replacement
from morefit.model.resolution import smeared_cells
from morefit.model.shapes.gaussian import Gaussian
from morefit.model.template_sums import integral_over_template
from morefit.text.arguments import in_sentences

MANY_MORE = (
    3  # edges of an integral over differences than of one over true values: the latter is cheaper then
)
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
        if self.over_template is not None:
            return self.over_template
        x, d = self.x.expr, self.difference.expr
        product = self.smear(d) * self.true_density(x - d)
        return integral_over(product, [self.difference], self.parameters, given=[self.x])

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
            return self.seen_between(low, high, ())
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
        self, low: Expr, high: Expr, given: tuple[Observable, ...] = ()
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
