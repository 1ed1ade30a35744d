"""A product of densities in different observables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from morefit.errors import ModelError
from morefit.expr import ONE, Expr, add_all, multiply_all
from morefit.model.compose.checks import check_parts
from morefit.model.observable import Box, Observable
from morefit.model.pdf import Branches, Change, Pdf, Recipe, Recipes, Shares
from morefit.model.region import Region, intersection


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

    def factors(self) -> tuple[Pdf, ...]:
        return tuple(factor for pdf in self.pdfs for factor in pdf.factors())

    def branches(self) -> Branches:
        return tuple(("", None, pdf) for pdf in self.pdfs)

    def shares(self) -> Shares:
        """Return the densities that the first sum among the factors adds up, each times the other factors."""
        k = self.first_sum()
        if k is None:
            return ((ONE, self),)
        before, after = self.pdfs[:k], self.pdfs[k + 1 :]
        return tuple((share, Product([*before, part, *after])) for share, part in self.pdfs[k].shares())

    def share_names(self) -> tuple[str, ...]:
        k = self.first_sum()
        return super().share_names() if k is None else self.pdfs[k].share_names()

    def first_sum(self) -> int | None:
        """Return the place of the first factor that adds up densities, if there is one."""
        return next((k for k, pdf in enumerate(self.pdfs) if len(pdf.shares()) > 1), None)

    def replaced(self, change: Change) -> Pdf:
        return Product(change(self.pdfs))

    def recipe(self, recipes: Recipes[Recipe]) -> Recipe:
        return recipes.product(self.pdfs)

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        own = next(pdf for pdf in self.pdfs if x.name in {o.name for o in pdf.observables})
        others = [pdf.probability(box, values) for pdf in self.pdfs if pdf is not own]
        return tuple((multiply_all(weight, *others), part) for weight, part in own.marginals(x, box, values))

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        return multiply_all(*(pdf.probability(box, values) for pdf in self.pdfs))

    def region(self) -> Region:
        region: Region = {}
        for pdf in self.pdfs:
            region = intersection(region, pdf.region())
        return region

    def beyond(self, x: Observable) -> Pdf:
        return Product([pdf.beyond(x) for pdf in self.pdfs])

    def with_yields_in(self, region: Region) -> Pdf:
        return Product([pdf.with_yields_in(region) for pdf in self.pdfs])

    def projected(self, kept: tuple[Observable, ...], region: Region) -> Pdf:
        names = {o.name for o in kept}
        own = [(pdf, tuple(o for o in pdf.observables if o.name in names)) for pdf in self.pdfs]
        factors = [pdf.projected(some, region) for pdf, some in own if some]
        return factors[0] if len(factors) == 1 else Product(factors)

    def density(self) -> Expr:
        return multiply_all(*(pdf.density() for pdf in self.pdfs))

    def integral(self) -> Expr:
        return multiply_all(*(pdf.integral() for pdf in self.pdfs))

    def known_integral(self) -> None:
        return None  # its factors are looked at by themselves

    def log_normalised(self) -> Expr:
        return add_all(*(pdf.log_normalised() for pdf in self.pdfs))
