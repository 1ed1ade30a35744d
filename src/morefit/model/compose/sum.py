"""A sum of densities in the same observables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Operand, add_all, apply
from morefit.model.arguments import NOT_NEGATIVE, SHARE, Allowed, check_operand, listed
from morefit.model.compose.checks import check_observables_of, check_parts
from morefit.model.observable import Box, Observable
from morefit.model.pdf import Branches, Pdf, Recipe, Recipes, Shares
from morefit.model.printed import numbered

ROUNDING = 1e-12  # that numbers may exceed their total by


@dataclass(frozen=True, init=False, eq=False)
class Sum(Pdf):
    r"""$\sum_k f_k\,p_k$ with fractions $f_k$ (the last is what is left), or with yields, then extended.

    ``fractions`` are one fewer than the densities; ``yields`` one each. Both may be parameters or expressions.
    ``labels`` name the densities in print and in the legends of plots.
    """

    pdfs: tuple[Pdf, ...]
    fractions: tuple[Expr, ...]
    yields: tuple[Expr, ...]
    labels: tuple[str, ...]

    def __init__(
        self,
        pdfs: Sequence[Pdf],
        *,
        fractions: Sequence[Operand] | Operand | None = None,
        yields: Sequence[Operand] | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        object.__setattr__(self, "pdfs", check_parts("sum", pdfs))
        object.__setattr__(self, "fractions", check_weights("fractions", fractions, SHARE))
        object.__setattr__(self, "yields", check_weights("yields", yields, NOT_NEGATIVE))
        object.__setattr__(self, "labels", check_labels(labels, len(self.pdfs)))
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
        check_observables_of("sum", self.pdfs)

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The factor of each density: yields, or fractions with the last completed to one."""
        if self.yields:
            return self.yields
        rest = 1 - (add_all(*self.fractions) if len(self.fractions) > 1 else self.fractions[0])
        return (*self.fractions, rest)

    def components(self) -> tuple[Pdf, ...]:
        return tuple(part for pdf in self.pdfs for part in pdf.components())

    def branches(self) -> Branches:
        return tuple(zip(self.labels or [""] * len(self.pdfs), self.weights, self.pdfs, strict=True))

    def share_names(self) -> tuple[str, ...]:
        return self.labels or tuple(numbered([type(pdf).__name__ for pdf in self.pdfs]))

    def shares(self) -> Shares:
        total = self.expected_events()
        shares = self.weights if total is None else tuple(w / total for w in self.yields)
        return tuple(zip(shares, self.pdfs, strict=True))

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        return recipes.mixture(self.weights, self.pdfs)

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        return tuple(
            (share * weight, part)
            for share, pdf in self.shares()
            for weight, part in pdf.marginals(x, box, values)
        )

    def probability(self, box: Box, values: Mapping[str, float]) -> Expr:
        if self.fits_into(box):
            return ONE
        return add_all(*(share * pdf.probability(box, values) for share, pdf in self.shares()))

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


def check_weights(
    what: str, weights: Sequence[Operand] | Operand | None, domain: Allowed
) -> tuple[Expr, ...]:
    """Return fractions or yields as expressions, if they start in their domain and do not depend on the event."""
    each = () if weights is None else listed(f"sum: {what}", weights)
    return tuple(check_operand(f"sum: {what}[{k}]", weight, domain) for k, weight in enumerate(each))


def check_labels(labels: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return labels, one per density and all different, or none."""
    if labels is None:
        return ()
    names = listed("sum: labels", labels)
    if len(names) != count or len(set(names)) < count or not all(isinstance(n, str) and n for n in names):
        raise ModelError(f"sum: labels must be {count} different texts, one per density, got {list(names)!r}")
    return names


def check_total(fractions: tuple[Expr, ...]) -> None:
    """Refuse fractions that are numbers and leave less than nothing for the last density."""
    if (total := math.fsum(f.number for f in fractions if f.op is Op.CONST)) > 1 + ROUNDING:
        raise ModelError(f"sum: fractions must add up to 1 at most, got {total:g}")
