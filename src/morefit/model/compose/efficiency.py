"""A density times an acceptance: what is left of the events of a density after a selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    Expr,
    Op,
    Operand,
    add_all,
    const,
    evaluate,
    known_expr,
    leaves,
    make,
    multiply_all,
    substitute,
    symbols,
)
from morefit.model.acceptance import MAX_OBSERVABLES, Expansion, Simulation, values_on_grid
from morefit.model.arguments import described, listing
from morefit.model.compose.accepted import Acceptance, Region, combined, split_by_factors
from morefit.model.compose.checks import conditional_on
from morefit.model.compose.product import Product
from morefit.model.counts import counted_in
from morefit.model.density import Density
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.observable import Box, Observable
from morefit.model.parameter import Parameter
from morefit.model.parts import simulations
from morefit.model.pdf import Branches, Pdf, Shares

NEGATIVE = 1e-9  # of the largest value of an acceptance: less is rounding


@dataclass(frozen=True, init=False, eq=False)
class Efficiency(Pdf):
    r"""$p(x)\,\varepsilon(x)$, normalised: the density of events that an acceptance $\varepsilon$ leaves over.

    ``acceptance`` is an expression in one to four observables of the density, which may contain parameters, an expansion
    (``mf.acceptance.Expansion``), or simulated events that were accepted (``mf.acceptance.simulation``), with which
    $\varepsilon$ itself need not be known. Only its shape matters, not its scale. Fractions of a sum are those before the
    acceptance; yields are numbers of observed events, of each density of the sum. Of a conditional density
    $p(x|y)\,\varepsilon(x, y)$ is normalised over $x$ for each event; the acceptance may depend on what is given.

    Example: ``mf.Efficiency(mf.Exponential(t, -1 / tau), 1 - np.exp(-2 * t))``
    """

    base: Pdf  # before the acceptance
    acceptance: Acceptance | Simulation

    def __init__(self, pdf: Pdf, acceptance: Operand | Expansion | Simulation) -> None:
        if not isinstance(pdf, Pdf):
            raise ModelError(
                f"efficiency: takes a density, got {described(pdf)}; the order is Efficiency(pdf, acceptance)"
            )
        if given := conditional_on("efficiency", self, [pdf]):
            vars(self)["given"] = given
            check_conditional(pdf, acceptance)
        if simulations(pdf):
            raise ModelError(
                "efficiency: an acceptance known by simulation only must be the outermost;"
                " write Efficiency(Efficiency(pdf, acceptance), simulation)"
            )
        checked = acceptance if isinstance(acceptance, Expansion | Simulation) else known_expr(acceptance)
        if checked is None:
            raise ModelError(
                f"efficiency: acceptance must be an expression, an expansion or a simulation, got {described(acceptance)};"
                " see mf.acceptance for samples"
            )
        if isinstance(checked, Expr) and (counted := counted_in(pdf)):  # that of a number is that of its step
            steps = {o.expr: Op.FLOOR(o + 0.5) for o in pdf.observables if o.name in counted}
            checked = substitute(checked, steps)
        object.__setattr__(self, "base", pdf)
        object.__setattr__(self, "acceptance", checked)
        check_domain({o.name: o for o in (*pdf.observables, *self.given)}, checked, self.given)
        if not isinstance(checked, Simulation):
            check_heights(checked.expr)

    @classmethod
    def of(cls, pdf: Pdf, acceptance: Acceptance | Simulation) -> Efficiency:
        """Return an efficiency whose arguments need no validation."""
        new = object.__new__(cls)
        object.__setattr__(new, "base", pdf)
        object.__setattr__(new, "acceptance", acceptance)
        if pdf.given:
            vars(new)["given"] = pdf.given
        return new

    # ------------------------------------------------------------------------------ densities

    def factor(self) -> Expr:
        """Return the acceptance; one where only a simulation knows it: it does not depend on parameters."""
        return ONE if isinstance(self.acceptance, Simulation) else self.acceptance.expr

    def before(self) -> Expr:
        """Return the density without the acceptance; with yields each part is divided by what it keeps of its events."""
        expected = self.base.expected_events()
        if expected is None:
            return self.base.density()
        parts = [share * part.density() / self.accepted(part) for share, part in self.base.shares()]
        return expected * (add_all(*parts) if len(parts) > 1 else parts[0])

    def density(self) -> Expr:
        return self.before() * self.factor()

    def integral(self) -> Expr:
        if self.given:
            total = self.base.integral_times(self.factor())
            return super().integral() if total is None else total
        expected = self.base.expected_events()
        return self.accepted(self.base) if expected is None else expected

    def accepted(self, pdf: Pdf) -> Expr:
        """Return the integral of a density times the acceptance."""
        if isinstance(self.acceptance, Simulation):
            return make(Op.MUL, (self.acceptance.mean(pdf.density()),))  # a node that nothing else can be
        return Region().integral(pdf, self.acceptance)

    def integrals_by_events(self) -> list[tuple[Expr, tuple[Any, Expr]]]:
        if not isinstance(self.acceptance, Simulation):
            return []
        own = [self.base] if self.base.expected_events() is None else [part for _, part in self.base.shares()]
        return [
            (self.accepted(pdf), (self.acceptance, self.acceptance.at_events(pdf.density()))) for pdf in own
        ]

    def expected_events(self) -> Expr | None:
        return self.base.expected_events()

    def log_normalised(self) -> Expr:
        return self.log_before() - Op.LOG(self.integral())

    def log_intensity(self) -> Expr:
        return self.log_normalised() if self.base.expected_events() is None else self.log_before()

    def log_before(self) -> Expr:
        """Return the logarithm of the density as a sum: that of the acceptance is the same in every call."""
        factor = self.factor()
        return Op.LOG(self.before()) if factor is ONE else Op.LOG(self.before()) + Op.LOG(factor)

    # ------------------------------------------------------------------------------ parts

    def shares(self) -> Shares:
        parts = [(share, pdf, Efficiency.of(pdf, self.acceptance)) for share, pdf in self.base.shares()]
        if len(parts) == 1:
            return ((ONE, self),)
        if self.base.expected_events() is not None:
            return tuple((share, part) for share, _, part in parts)
        accepted = [share * part.integral() / pdf.integral() for share, pdf, part in parts]
        return tuple(
            (one / add_all(*accepted), part) for one, (_, _, part) in zip(accepted, parts, strict=True)
        )

    def share_names(self) -> tuple[str, ...]:
        return self.base.share_names()

    def factors(self) -> tuple[Pdf, ...]:
        if isinstance(self.acceptance, Simulation) or self.base.expected_events() is not None:
            return (self,)
        names = {o.name for o in symbols(Op.COLUMN, self.acceptance.expr)}
        changed = [
            pdf for pdf in self.base.factors() if not names.isdisjoint(o.name for o in pdf.observables)
        ]
        others = [pdf for pdf in self.base.factors() if names.isdisjoint(o.name for o in pdf.observables)]
        if not others:
            return (self,)
        inner = changed[0] if len(changed) == 1 else Product(changed)
        return (Efficiency.of(inner, self.acceptance), *others)

    def components(self) -> tuple[Pdf, ...]:
        parts = self.factors()
        if parts[0] is self:
            parts = tuple(part for _, part in self.shares())
        return (self,) if parts[0] is self else tuple(one for part in parts for one in part.components())

    def branches(self) -> Branches:
        if isinstance(self.acceptance, Expr):
            return (("acceptance", self.acceptance, self.base),)
        return ((f"acceptance {self.acceptance!r}", None, self.base),)

    def simulation(self) -> Simulation | None:
        return self.acceptance if isinstance(self.acceptance, Simulation) else None

    # ------------------------------------------------------------------------------ drawing and bins

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        if isinstance(self.acceptance, Simulation):
            return recipes.resampled(self)
        if self.given:
            return recipes.single(self)
        if self.base.expected_events() is not None and len(self.shares()) > 1:
            weights, parts = zip(*self.shares(), strict=True)
            return recipes.mixture(weights, parts)
        return recipes.thinned(self)

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        if self.given:
            return ((ONE, self),)
        shares, factors = self.shares(), self.base.factors()
        if len(shares) > 1:
            return tuple((s * w, part) for s, pdf in shares for w, part in pdf.marginals(x, box, values))
        if isinstance(self.acceptance, Simulation):
            return ((ONE, self),)
        terms = split_by_factors(factors, self.acceptance) if len(factors) > 1 else None
        if terms is None:
            return ((ONE, self.by_moments(x, box) or self),)
        k = next(k for k, f in enumerate(factors) if any(o is x for o in f.observables))
        region, numbers = Region(box, values), []
        for term in terms:
            others = [
                region.integral(f, a) for i, (f, a) in enumerate(zip(factors, term, strict=True)) if i != k
            ]
            numbers.append(float(evaluate(multiply_all(*others), values)))
        seen = Efficiency.of(factors[k], combined(numbers, [term[k] for term in terms]))
        weight = seen.integral() / self.integral()
        part = seen if leaves(Op.COLUMN, seen.factor()) else factors[k]
        return tuple((weight * w, one) for w, one in part.marginals(x, box, values))

    def by_moments(self, x: Observable, box: Box) -> Density | None:
        """Return the density of one observable, the others in a box, if the integrals over them are moments."""
        if not isinstance(self.acceptance, Expansion) or not self.acceptance.axes([x.name]):
            return None
        inside = [o.within(box) for o in self.observables]
        density = self.acceptance.integral(self.base.density(), inside, x)
        return None if density is None else Density(density, x, integral=self.integral(), check=False)

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        if self.given or self.fits_into(box):
            return super().probability(box, values)
        if len(self.shares()) > 1:
            return add_all(*(share * part.probability(box, values) for share, part in self.shares()))
        if isinstance(self.acceptance, Simulation):
            if values is None:
                raise ModelError(
                    "efficiency: the probability of a part of the ranges is known by simulation only, not as a formula;"
                    " fit the whole ranges, or make an acceptance with mf.acceptance.from_sample"
                )
            weights = self.event_weights(values)
            return const(float(weights[self.inside(box)].sum() / weights.sum()))
        return Region(box, values).integral(self.base, self.acceptance) / self.accepted(self.base)

    def binned(self, x: Observable, edges: Array, box: Box, values: Mapping[str, float]) -> Array | None:
        if not isinstance(self.acceptance, Simulation):
            return None
        weights, inside = self.event_weights(values), self.inside(box)
        column = self.acceptance.column(x)[inside]
        return np.asarray(np.histogram(column, edges, weights=weights[inside])[0] / weights.sum())

    def event_weights(self, values: Mapping[str, float]) -> Array:
        """Return how often each simulated event comes at some values, up to a factor."""
        assert isinstance(self.acceptance, Simulation)
        density = self.acceptance.at_events(self.base.density())
        return np.asarray(self.acceptance.weights * evaluate(density, {**values, **self.acceptance.columns}))

    def inside(self, box: Box) -> Flags:
        """Return which simulated events lie in a box."""
        assert isinstance(self.acceptance, Simulation)
        keep = np.ones(len(self.acceptance.weights), bool)
        for o in self.observables:
            low, high = box.get(o.name, (o.low, o.high))
            keep &= (low <= self.acceptance.column(o)) & (self.acceptance.column(o) <= high)
        return keep


# ------------------------------------------------------------------------------------ checks


def check_conditional(pdf: Pdf, acceptance: object) -> None:
    """Refuse what has no integral for each event: several observables, sums, yields and simulations."""
    if len(pdf.drawn) > 1:
        raise ModelError(
            f"efficiency: a conditional density must draw one observable, got {listing(pdf.drawn)}; multiply the efficiency"
            " by the density of the others with mf.Product"
        )
    if isinstance(acceptance, Simulation):
        raise ModelError(
            f"efficiency: a simulation cannot normalise the conditional density in {listing(pdf.drawn)} for each event;"
            " make an acceptance with mf.acceptance.from_sample"
        )
    if len(pdf.shares()) > 1 or pdf.expected_events() is not None:
        raise ModelError(
            "efficiency: a conditional sum has no fractions before the acceptance, as they differ between events;"
            " write mf.Sum([mf.Efficiency(...), ...])"
        )


def check_domain(
    known: Mapping[str, Observable], acceptance: Acceptance | Simulation, given: Sequence[Observable]
) -> None:
    """Refuse an acceptance in other observables than those of the density, or in none that it draws."""
    is_sample = isinstance(acceptance, Simulation)
    own = (
        acceptance.observables if isinstance(acceptance, Simulation) else symbols(Op.COLUMN, acceptance.expr)
    )
    if all(any(o.name == one.name for one in given) for o in own):
        what = "no observable that is drawn" if own else "no observable"
        raise ModelError(
            f"efficiency: the acceptance {described(acceptance)} depends on {what}, so that it cancels; leave it out"
        )
    if unknown := [o for o in own if o.name not in known]:
        raise ModelError(
            f"efficiency: the acceptance depends on {listing(unknown)}, which the density in {listing(known.values())}"
            f" does not have; multiply it by a density of that observable with mf.Product, or write given=[{unknown[0].name}]"
        )
    if other := [o for o in own if o is not known[o.name]]:
        raise ModelError(
            f"observable '{other[0].name}': two different ones share this name in one model,"
            f" {known[other[0].name]!r} and {other[0]!r}; rename one or use the same object"
        )
    if is_sample and len(own) < len(known):
        missing = [o for o in known.values() if not any(o is one for one in own)]
        raise ModelError(
            f"efficiency: the simulation lacks {listing(missing)}; give it all observables of the density, or multiply the"
            " efficiency by a density of the others with mf.Product"
        )
    if len(own) > MAX_OBSERVABLES and not is_sample:
        raise ModelError(
            f"efficiency: an acceptance may depend on {MAX_OBSERVABLES} observables at most, got {len(own)}; use simulation"
        )


def check_heights(acceptance: Expr) -> None:
    """Refuse an acceptance that is negative, infinite, not a number, or zero everywhere, at the start values."""
    start = {p.name: p.start for p in symbols(Op.SCALAR, acceptance) if isinstance(p, Parameter)}
    heights, points = values_on_grid(acceptance, start)
    bad = ~np.isfinite(heights) | (heights < -NEGATIVE * np.nanmax(np.abs(heights), initial=0.0))
    if bad.any():
        worst = int(np.argmin(np.where(bad, np.nan_to_num(heights, nan=-np.inf, posinf=-np.inf), np.inf)))
        place = ", ".join(f"{name} = {grid.ravel()[worst]:.6g}" for name, grid in points.items())
        raise ModelError(
            f"efficiency: the acceptance must be finite and not negative, got {heights.ravel()[worst]:.3g} at {place};"
            " clip it with np.maximum(acceptance, 0), or say with mf.where what it is there"
        )
    if not heights.max() > 0:
        raise ModelError(
            "efficiency: the acceptance is zero everywhere at the start values of its parameters"
        )
