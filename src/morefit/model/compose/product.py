"""A product of densities in different observables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, add_all, multiply_all
from morefit.model.compose.checks import check_parts, conditional_on
from morefit.model.density import projected_density
from morefit.model.evaluation import Recipe, Recipes
from morefit.model.observable import Box, Observable
from morefit.model.pdf import Branches, Change, Pdf, Shares
from morefit.model.region import Region, intersection


@dataclass(frozen=True, init=False, eq=False)
class Product(Pdf):
    r"""$\prod_k p_k$ of densities in different observables, or conditional on those of others: $p(x|y)\,p(y)$.

    Example: ``mf.Product([signal, mf.Exponential(t, -1 / tau)])``
    """

    pdfs: tuple[Pdf, ...]

    def __init__(self, pdfs: Sequence[Pdf]) -> None:
        object.__setattr__(self, "pdfs", check_parts("product", pdfs))
        seen: set[str] = set()
        for pdf in self.pdfs:
            twice = seen & {o.name for o in pdf.drawn}
            if twice:
                raise ModelError(
                    f"product: observable '{min(twice)}' stands in two of its densities; use mf.Density"
                )
            seen |= {o.name for o in pdf.drawn}
        vars(self)["given"] = conditional_on("product", self, self.pdfs)
        in_order(self.pdfs)

    def components(self) -> tuple[Pdf, ...]:
        return tuple(part for pdf in self.pdfs for part in pdf.components())

    def factors(self) -> tuple[Pdf, ...]:
        groups = joined(self.pdfs)
        if len(groups) == 1:
            return (self,)
        factors = (group[0].factors() if len(group) == 1 else (Product(group),) for group in groups)
        return tuple(factor for some in factors for factor in some)

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
        return recipes.product(in_order(self.pdfs))

    def groups(self, names: Iterable[str]) -> list[tuple[Pdf, ...]]:
        """Return the densities on which the distribution of some observables depends, those that depend on others together."""
        wanted, pdfs = set(names), []
        for pdf in reversed(in_order(self.pdfs)):  # what nothing wanted is given integrates to one
            if wanted & {o.name for o in pdf.drawn}:
                pdfs.append(pdf)
                wanted |= {o.name for o in pdf.given}
        return joined([pdf for pdf in self.pdfs if any(pdf is one for one in pdfs)])

    def marginals(self, x: Observable, box: Box, values: Mapping[str, float]) -> Shares:
        groups = self.groups({x.name, *box})
        own = next(group for group in groups if draws(group, x.name))
        parts = own[0].marginals(x, box, values) if len(own) == 1 else ((ONE, Product(own)),)
        others = [probability_of(group, box, values) for group in groups if group is not own]
        return tuple((multiply_all(weight, *others), part) for weight, part in parts)

    def probability(self, box: Box, values: Mapping[str, float] | None = None) -> Expr:
        return multiply_all(ONE, *(probability_of(group, box, values) for group in self.groups(box)))

    def region(self) -> Region:
        region: Region = {}
        for pdf in self.pdfs:
            region = intersection(region, pdf.region())
        return region

    def beyond(self, x: Observable) -> Pdf:
        return Product([pdf.beyond(x) for pdf in self.pdfs])

    def with_yields_in(self, region: Region) -> Pdf:
        return Product([pdf.with_yields_in(region) for pdf in self.pdfs])

    def projected(self, remaining: tuple[Observable, ...], region: Region) -> Pdf:
        names = {o.name for o in remaining}
        factors: list[Pdf] = []
        for group in self.groups({*names, *region}):
            whole = group[0] if len(group) == 1 else Product(group)
            some = tuple(o for o in whole.observables if o.name in names)
            if some and len(group) > 1 and len(some) < len(whole.observables):
                factors.append(projected_density(whole, some, region))
            elif some:
                factors += [whole.projected(some, region)] if len(group) == 1 else group
        return factors[0] if len(factors) == 1 else Product(factors)

    def density(self) -> Expr:
        return multiply_all(*(pdf.normalised() if pdf.given else pdf.density() for pdf in self.pdfs))

    def integral(self) -> Expr:
        return multiply_all(ONE, *(pdf.integral() for pdf in self.pdfs if not pdf.given))

    def log_normalised(self) -> Expr:
        return add_all(*(pdf.log_normalised() for pdf in self.pdfs))


def draws(pdfs: Iterable[Pdf], name: str) -> bool:
    """Return whether one of some densities draws an observable."""
    return any(o.name == name for pdf in pdfs for o in pdf.drawn)


def probability_of(pdfs: Sequence[Pdf], box: Box, values: Mapping[str, float] | None) -> Expr:
    """Return the probability that an event of densities that depend on each other lies inside a box."""
    return pdfs[0].probability(box, values) if len(pdfs) == 1 else Pdf.probability(Product(pdfs), box, values)


def in_order(pdfs: Sequence[Pdf]) -> tuple[Pdf, ...]:
    """Return densities such that each comes after those that draw what it is given, else as they stand."""
    ordered: list[Pdf] = []
    waiting = list(pdfs)
    while waiting:
        ready = [p for p in waiting if not any(draws(waiting, o.name) for o in p.given)]
        if not ready:
            names = ", ".join(f"'{o.name}'" for p in waiting for o in p.drawn)
            raise ModelError(f"product: {names} are each given to the density of another; leave one out")
        ordered.append(ready[0])
        waiting = [p for p in waiting if p is not ready[0]]
    return tuple(ordered)


def joined(pdfs: Sequence[Pdf]) -> list[tuple[Pdf, ...]]:
    """Return densities in groups that are independent: those that are given what another draws stand with it."""
    groups: list[tuple[Pdf, ...]] = []
    for pdf in pdfs:
        linked = [
            group
            for group in groups
            if any(draws(group, o.name) for o in pdf.given)
            or any(draws([pdf], o.name) for one in group for o in one.given)
        ]
        others = [group for group in groups if not any(group is one for one in linked)]
        groups = [*others, (*(one for group in linked for one in group), pdf)]
    return groups
