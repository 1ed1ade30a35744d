"""A density written as a bare expression."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, add_all, symbols, to_expr
from morefit.model.arguments import check_observables, described, listing
from morefit.model.integrate import integral_out, integral_over
from morefit.model.observable import Observable
from morefit.model.parts import check_known
from morefit.model.pdf import Change, Pdf
from morefit.model.region import Region, boxes, part_of


@dataclass(frozen=True, init=False, eq=False)
class Density(Pdf):
    """Any expression in observables and parameters; without ``integral`` it is integrated term by term or numerically.

    ``integral`` is that over the ranges of all observables that are not ``given``; it is compared with a numerical one, unless
    ``check=False``: where events are labels, or the measure is another one, no quadrature knows it.

    Example: ``mf.Density(np.exp(-t / tau) * (1 + 0.1 * t), t)``
    """

    formula: Expr
    domain: tuple[Observable, ...]
    integral_formula: Expr | None
    integral_checked: bool

    def __init__(
        self,
        formula: Operand,
        observables: Sequence[Observable] | Observable,
        *,
        integral: Operand | None = None,
        check: bool = True,
    ) -> None:
        domain, given = check_observables("density: observables", observables), {o.name for o in self.given}
        object.__setattr__(self, "domain", (*(o for o in domain if o.name not in given), *self.given))
        object.__setattr__(self, "formula", to_expr(formula))
        object.__setattr__(self, "integral_formula", None if integral is None else to_expr(integral))
        if not isinstance(check, bool):
            raise ModelError(f"density: check must be True or False, got {described(check)}")
        object.__setattr__(self, "integral_checked", check)
        names = {o.name for o in self.domain}
        unknown = [s.name for s in symbols(Op.COLUMN, self.formula) if s.name not in names]
        if unknown:
            raise ModelError(
                f"density: its formula uses {', '.join(map(repr, unknown))}, missing from observables"
                f" {sorted(names)}; add them"
            )
        own = () if self.integral_formula is None else symbols(Op.COLUMN, self.integral_formula)
        if any(s.name not in given for s in own):
            raise ModelError(
                "density: the integral must not depend on observables; integrate over their ranges"
            )

    def density(self) -> Expr:
        return self.formula

    def integral(self) -> Expr:
        return super().integral() if self.integral_formula is None else self.integral_formula

    def replaced(self, change: Change) -> Pdf:
        domain, integral = change(self.domain), self.integral_formula
        if integral is not None and any(
            (old.low, old.high) != (new.low, new.high) for old, new in zip(self.domain, domain, strict=True)
        ):
            raise ModelError("density: has an integral of its own for its old range; write the density anew")
        known = None if integral is None else change(integral)
        return Density(
            change(self.formula),
            domain,
            integral=known,
            check=self.integral_checked,
            **self.conditional_option(change),
        )

    @property
    def has_own_integral(self) -> bool:
        return self.integral_formula is not None

    def known_integral(self) -> Expr | None:
        return self.integral_formula


def projected_density(pdf: Pdf, remaining: tuple[Observable, ...], region: Region) -> Density:
    """Return the density of some observables, of events whose other observables lie in a region.

    It has a formula, or one observable is integrated over for each event.
    """
    check_known(pdf, "a marginal density")
    dropped = [o for o in pdf.observables if o.name not in {one.name for one in remaining}]
    own = list(boxes(part_of(region, dropped)))
    parts = [integrated(pdf, remaining, tuple(o.within(box) for o in dropped)) for box in own]
    if len(dropped) == 1 and any(part is None for part in parts):
        parts = [
            integral_over(pdf.density(), [dropped[0].within(box)], pdf.parameters, remaining) for box in own
        ]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral over {listing(dropped)} has no formula;"
            f" write it as a product, or as a sum of terms in which {listing(remaining)} have factors of their own"
        )
    area = add_all(*(pdf.integral() * pdf.probability(box) for box in own))
    return Density(add_all(*known), remaining, integral=area, check=False)


def integrated(pdf: Pdf, remaining: tuple[Observable, ...], dropped: tuple[Observable, ...]) -> Expr | None:
    """Return a density integrated over some of its observables, if there is a formula."""
    first, *others = remaining
    formula, left = pdf.partly_integrated(first, (*others, *dropped))
    if left == tuple(others):
        return formula
    return integral_out(pdf.density(), remaining, dropped)
