"""A sum of densities in the same observables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, Operand, add_all, evaluate, multiply_all
from morefit.model.arguments import NOT_NEGATIVE, SHARE, Allowed, check_operand, check_start, listed
from morefit.model.compose.checks import check_observables_of, check_parts, conditional_on
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.observable import Box, Observable
from morefit.model.parts import check_same_simulations
from morefit.model.pdf import Branches, Change, Pdf, Shares
from morefit.model.printed import numbered
from morefit.model.region import Region, probability_of, region_text

ROUNDING = 1e-12  # that numbers may exceed their total by
AT_MOST_ONE = Allowed(
    "1 at most (with recursive=True each is a share of what is left)", lambda total: total <= 1 + ROUNDING
)


@dataclass(frozen=True, init=False, eq=False)
class Sum(Pdf):
    r"""$\sum_k f_k\,p_k$ with fractions $f_k$ (the last is what is left), or with yields, then extended.

    ``fractions`` are one fewer than the densities; ``yields`` one each. Both may be parameters or expressions. With
    ``recursive``, a fraction is that of what the densities before it leave over, so that fractions between 0 and 1
    never add up to more than 1. One density alone with a yield is extended.
    ``labels`` name the densities in print and in the legends of plots.

    Example: ``mf.Sum([signal, background], yields=[n_signal, n_background])``
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
        recursive: bool = False,
    ) -> None:
        object.__setattr__(self, "pdfs", check_parts("sum", pdfs, 2 if yields is None else 1))
        shares = check_weights("fractions", fractions, SHARE)
        object.__setattr__(self, "fractions", products_of_rests(shares) if recursive else shares)
        object.__setattr__(self, "yields", check_weights("yields", yields, NOT_NEGATIVE))
        object.__setattr__(self, "labels", check_labels(labels, len(self.pdfs)))
        count = len(self.pdfs)
        if (fractions is None) == (yields is None):
            raise ModelError("sum: give either fractions or yields")
        if recursive and fractions is None:
            raise ModelError("sum: only fractions can be recursive, got yields")
        if fractions is not None and len(self.fractions) != count - 1:
            raise ModelError(
                f"sum: {count} densities need {count - 1} fractions (the last gets what is left),"
                f" got {len(self.fractions)}"
            )
        if yields is not None and len(self.yields) != count:
            raise ModelError(f"sum: {count} densities need {count} yields, got {len(self.yields)}")
        check_total(self.fractions)
        vars(self)["given"] = conditional_on("sum", self, self.pdfs)
        check_same_simulations("sum", self.pdfs)
        check_observables_of("sum", self.pdfs)

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The factor of each density: yields, or fractions with the last completed to one."""
        if self.yields:
            return self.yields
        return (*self.fractions, 1 - total_of(self.fractions))

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

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        if self.fits_into(box):
            return ONE
        return total_of([share * pdf.probability(box, values) for share, pdf in self.shares()])

    def with_yields_in(self, region: Region) -> Pdf:
        pdfs = [pdf.with_yields_in(region) for pdf in self.pdfs]
        if self.given:  # probabilities, which are those of each event, cannot be part of fractions
            from morefit.model.compose.restricted import restricted

            parts = [restricted(pdf, region) for pdf in pdfs]
            return Sum(
                parts,
                fractions=self.fractions or None,
                yields=self.yields or None,
                labels=self.labels or None,
            )
        inside = [probability_of(pdf, region) for pdf in pdfs]
        start = {p.name: p.start for p in self.parameters}
        empty = [k for k, one in enumerate(inside) if not float(evaluate(one, start)) > 0]
        if empty:
            raise ModelError(
                f"sum: densities must have events in {region_text(region)} to count them there, got none of"
                f" pdfs[{empty[0]}] at the start values; count them in the full ranges, or choose another start"
            )
        return self.reweighted(pdfs, [1 / one for one in inside])

    def projected(self, remaining: tuple[Observable, ...], region: Region) -> Pdf:
        pdfs = [pdf.projected(remaining, region) for pdf in self.pdfs]
        return self.reweighted(pdfs, [probability_of(pdf, region) for pdf in self.pdfs] if region else None)

    def reweighted(self, pdfs: Sequence[Pdf], factors: Sequence[Expr] | None) -> Sum:
        """Return a sum of other densities whose weights are multiplied by factors; fractions still add up to one."""
        fractions, yields = self.fractions, self.yields
        if factors is not None:
            scaled = tuple(w * factor for w, factor in zip(self.weights, factors, strict=True))
            yields = scaled if self.yields else ()
            fractions = () if self.yields else tuple(w / add_all(*scaled) for w in scaled[:-1])
        return Sum(pdfs, fractions=fractions or None, yields=yields or None, labels=self.labels or None)

    def density(self) -> Expr:
        return total_of([w * pdf.normalised() for w, pdf in zip(self.weights, self.pdfs, strict=True)])

    def integral(self) -> Expr:
        return total_of(self.yields) if self.yields else ONE

    def expected_events(self) -> Expr | None:
        return total_of(self.yields) if self.yields else None

    def log_intensity(self) -> Expr:
        return Op.LOG(self.density())

    def replaced(self, change: Change) -> Pdf:
        return Sum(
            change(self.pdfs),
            fractions=change(self.fractions) or None,
            yields=change(self.yields) or None,
            labels=self.labels or None,
            **self.conditional_option(change),
        )

    @cached_property
    def observables(self) -> tuple[Observable, ...]:
        return (*self.pdfs[0].drawn, *self.given)


def total_of(terms: Sequence[Expr]) -> Expr:
    """Add terms, of which there may be one only."""
    return add_all(*terms) if len(terms) > 1 else terms[0]


def products_of_rests(fractions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return each fraction times what those before it leave over."""
    rests = [1 - fraction for fraction in fractions]
    return tuple(multiply_all(*rests[:k], f) if k else f for k, f in enumerate(fractions))


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
    """Refuse fractions that leave less than nothing for the last density, as numbers or where they start."""
    if (total := math.fsum(f.number for f in fractions if f.op is Op.CONST)) > 1 + ROUNDING:
        raise ModelError(f"sum: fractions must add up to 1 at most, got {total:g}")
    if len(fractions) > 1:
        check_start("sum: the total of the fractions", add_all(*fractions), AT_MOST_ONE)
