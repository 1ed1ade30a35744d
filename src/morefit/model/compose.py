"""Densities made of densities: sums and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Operand, add_all, apply, multiply_all
from morefit.model.arguments import NOT_NEGATIVE, SHARE, Allowed, check_operand, described, listed
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

ROUNDING = 1e-12  # that numbers may exceed their total by


@dataclass(frozen=True, init=False, eq=False)
class Sum(Pdf):
    r"""$\sum_k f_k\,p_k$ with fractions $f_k$ (the last is what is left), or with yields, then extended.

    ``fractions`` are one fewer than the densities; ``yields`` one each. Both may be parameters or expressions.
    """

    pdfs: tuple[Pdf, ...]
    fractions: tuple[Expr, ...]
    yields: tuple[Expr, ...]

    def __init__(
        self,
        pdfs: Sequence[Pdf],
        *,
        fractions: Sequence[Operand] | Operand | None = None,
        yields: Sequence[Operand] | None = None,
    ) -> None:
        object.__setattr__(self, "pdfs", check_parts("sum", pdfs))
        object.__setattr__(self, "fractions", check_weights("fractions", fractions, SHARE))
        object.__setattr__(self, "yields", check_weights("yields", yields, NOT_NEGATIVE))
        count = len(self.pdfs)
        if (fractions is None) == (yields is None):
            raise ModelError("sum: give either fractions or yields")
        if fractions is not None and len(self.fractions) != count - 1:
            raise ModelError(
                f"sum: {count} densities need {count - 1} fractions (the last gets what is left),"
                f" got {len(self.fractions)}"
            )
        if yields is not None and len(self.yields) != count:
            raise ModelError(f"sum: {count} densities need {count} yields, got {len(self.yields)}")
        check_total(self.fractions)
        first = {o.name: o for o in self.pdfs[0].observables}
        for pdf in self.pdfs:
            if {o.name for o in pdf.observables} != set(first):
                raise ModelError(
                    f"sum: its densities must share their observables, got {sorted(first)}"
                    f" and {sorted(o.name for o in pdf.observables)}"
                )
            for o in pdf.observables:
                if o is not first[o.name]:
                    raise ModelError(
                        f"observable '{o.name}': two different ones share this name in one model,"
                        f" {first[o.name]!r} and {o!r}; rename one or use the same object"
                    )

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The factor of each density: yields, or fractions with the last completed to one."""
        if self.yields:
            return self.yields
        rest = 1 - (add_all(*self.fractions) if len(self.fractions) > 1 else self.fractions[0])
        return (*self.fractions, rest)

    def components(self) -> tuple[Pdf, ...]:
        return tuple(part for pdf in self.pdfs for part in pdf.components())

    def density(self) -> Expr:
        return add_all(*(w * pdf.normalised() for w, pdf in zip(self.weights, self.pdfs, strict=True)))

    def integral(self) -> Expr:
        return add_all(*self.yields) if self.yields else ONE

    def known_integral(self) -> None:
        return None  # its parts are looked at by themselves

    def expected_events(self) -> Expr | None:
        return add_all(*self.yields) if self.yields else None

    def log_intensity(self) -> Expr:
        return apply(Op.LOG, self.density())

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        return self.pdfs[0].observables


@dataclass(frozen=True, init=False, eq=False)
class Product(Pdf):
    r"""$\prod_k p_k$ of densities in different observables."""

    pdfs: tuple[Pdf, ...]

    def __init__(self, pdfs: Sequence[Pdf]) -> None:
        object.__setattr__(self, "pdfs", check_parts("product", pdfs))
        seen: set[str] = set()
        for pdf in self.pdfs:
            twice = seen & {o.name for o in pdf.observables}
            if twice:
                raise ModelError(
                    f"product: observable '{min(twice)}' stands in two of its densities; use mf.Density"
                )
            seen |= {o.name for o in pdf.observables}

    def components(self) -> tuple[Pdf, ...]:
        return tuple(part for pdf in self.pdfs for part in pdf.components())

    def density(self) -> Expr:
        return multiply_all(*(pdf.density() for pdf in self.pdfs))

    def integral(self) -> Expr:
        return multiply_all(*(pdf.integral() for pdf in self.pdfs))

    def known_integral(self) -> None:
        return None  # its factors are looked at by themselves

    def log_normalised(self) -> Expr:
        return add_all(*(pdf.log_normalised() for pdf in self.pdfs))


def check_parts(kind: str, pdfs: Sequence[Pdf]) -> tuple[Pdf, ...]:
    """Return the densities of a sum or product, if they are ones that can be normalised on their own."""
    parts = (pdfs,) if isinstance(pdfs, Pdf) else listed(f"{kind}: densities", pdfs)
    if len(parts) < 2:
        raise ModelError(f"{kind}: needs at least two densities, got {len(parts)}")
    for pdf in parts:
        if not isinstance(pdf, Pdf):
            raise ModelError(f"{kind}: takes densities, got {described(pdf)}; wrap a formula in mf.Density")
        if pdf.expected_events() is not None:
            role = "a factor" if kind == "product" else "a part of another"
            raise ModelError(
                f"{kind}: an extended sum cannot be {role}; use fractions in it instead of yields"
            )
    return parts


def check_weights(
    what: str, weights: Sequence[Operand] | Operand | None, domain: Allowed
) -> tuple[Expr, ...]:
    """Return fractions or yields as expressions, if they start in their domain and do not depend on the event."""
    each = () if weights is None else listed(f"sum: {what}", weights)
    return tuple(check_operand(f"sum: {what}[{k}]", weight, domain) for k, weight in enumerate(each))


def check_total(fractions: tuple[Expr, ...]) -> None:
    """Refuse fractions that are numbers and leave less than nothing for the last density."""
    if (total := math.fsum(f.number for f in fractions if f.op is Op.CONST)) > 1 + ROUNDING:
        raise ModelError(f"sum: fractions must add up to 1 at most, got {total:g}")
