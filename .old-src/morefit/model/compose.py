"""Densities made of densities: sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Operand, add_all, apply, multiply_all, to_expr
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


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
        fractions: Sequence[Operand] | None = None,
        yields: Sequence[Operand] | None = None,
    ) -> None:
        object.__setattr__(self, "pdfs", tuple(pdfs))
        object.__setattr__(self, "fractions", tuple(to_expr(f) for f in fractions or ()))
        object.__setattr__(self, "yields", tuple(to_expr(y) for y in yields or ()))
        check_parts("sum", self.pdfs)
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
        first = {o.name: o for o in self.pdfs[0].observables}
        for pdf in self.pdfs:
            if {o.name for o in pdf.observables} != set(first):
                raise ModelError(
                    f"sum: its densities must share their observables, got {sorted(first)}"
                    f" and {sorted(o.name for o in pdf.observables)}"
                )
            for o in pdf.observables:
                if o != first[o.name]:
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

    def density(self) -> Expr:
        return add_all(*(w * pdf.normalised() for w, pdf in zip(self.weights, self.pdfs, strict=True)))

    def integral(self) -> Expr:
        return add_all(*self.yields) if self.yields else ONE

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
        object.__setattr__(self, "pdfs", tuple(pdfs))
        check_parts("product", self.pdfs)
        seen: set[str] = set()
        for pdf in self.pdfs:
            twice = seen & {o.name for o in pdf.observables}
            if twice:
                raise ModelError(
                    f"product: observable '{min(twice)}' stands in two of its densities; use mf.Density"
                )
            seen |= {o.name for o in pdf.observables}

    def density(self) -> Expr:
        return multiply_all(*(pdf.density() for pdf in self.pdfs))

    def integral(self) -> Expr:
        return multiply_all(*(pdf.integral() for pdf in self.pdfs))

    def log_normalised(self) -> Expr:
        return add_all(*(pdf.log_normalised() for pdf in self.pdfs))


def check_parts(kind: str, pdfs: tuple[Pdf, ...]) -> None:
    if len(pdfs) < 2:
        raise ModelError(f"{kind}: needs at least two densities, got {len(pdfs)}")
    for pdf in pdfs:
        if not isinstance(pdf, Pdf):
            raise ModelError(
                f"{kind}: takes densities, got {type(pdf).__name__}; wrap a formula in mf.Density"
            )
        if kind == "product" and pdf.expected_events() is not None:
            raise ModelError("product: an extended sum cannot be a factor; use fractions")
