"""Integrals of densities times acceptances: part by part, factor by factor, by moments, or numerically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, add_all, leaves, multiply_all, symbols
from morefit.model.acceptance import Expansion
from morefit.model.compose.product import Product
from morefit.model.integrate import integral_over
from morefit.model.observable import Box
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf

Acceptance = Expr | Expansion
MAX_TERMS = 400  # of an acceptance that is integrated factor by factor


@dataclass(frozen=True)
class Region:
    """Where densities are integrated: their ranges, or a box; numerical integrals are made for ``values`` then."""

    box: Box | None = None
    values: Mapping[str, float] | None = None

    def integral(self, pdf: Pdf, acceptance: Acceptance) -> Expr:
        """Return the integral of a density times an acceptance: factor by factor, part by part, or by formula or rule."""
        if not leaves(Op.COLUMN, acceptance.expr):
            if self.box is None:
                return acceptance.expr * pdf.integral()
            return multiply_all(acceptance.expr, pdf.integral(), pdf.probability(self.box, self.values))
        factors = pdf.factors()
        terms = split_by_factors(factors, acceptance) if len(factors) > 1 else None
        if terms is not None:
            products = [multiply_all(*map(self.integral, factors, term)) for term in terms]
            return add_all(*products) if len(products) > 1 else products[0]
        names = {leaf.name for leaf in leaves(Op.COLUMN, acceptance.expr)}
        changed = [f for f in factors if not names.isdisjoint(o.name for o in f.observables)]
        if len(changed) < len(factors):
            others = [self.integral(f, ONE) for f in factors if not any(f is one for one in changed)]
            return multiply_all(self.integral(Product(changed), acceptance), *others)
        if len(shares := pdf.shares()) > 1:
            accepted = [share * self.integral(part, acceptance) / part.integral() for share, part in shares]
            return pdf.integral() * add_all(*accepted)
        inside = [o.within(self.box or {}) for o in pdf.observables]
        if (
            isinstance(acceptance, Expansion)
            and (total := acceptance.integral(pdf.density(), inside)) is not None
        ):
            return total
        density = pdf.density() * acceptance.expr
        parameters = [p for p in symbols(Op.SCALAR, density) if isinstance(p, Parameter)]
        if self.values is not None:
            parameters = [Parameter(p.name, self.values[p.name], fixed=True) for p in parameters]
        return integral_over(density, inside, parameters)


def split_by_factors(factors: Sequence[Pdf], acceptance: Acceptance) -> list[list[Acceptance]] | None:
    """Write an acceptance as a sum of products of a function for each factor of a density, if it is one."""
    group = {o.name: k for k, factor in enumerate(factors) for o in factor.observables}
    if isinstance(acceptance, Expansion):
        return split_expansion(len(factors), group, acceptance)
    done: list[list[Acceptance]] = []
    stack: list[list[Expr]] = [[acceptance]]
    while stack:
        product = stack.pop()
        groups = [{group[leaf.name] for leaf in leaves(Op.COLUMN, one)} for one in product]
        k = next((k for k, own in enumerate(groups) if len(own) > 1), None)
        if k is None:
            own = [min(g, default=0) for g in groups]
            done.append(
                [
                    multiply_all(*(p for p, i in zip(product, own, strict=True) if i == n))
                    for n in range(len(factors))
                ]
            )
        elif product[k].op is Op.MUL:
            stack.append([*product[:k], *product[k].args, *product[k + 1 :]])
        elif product[k].op is Op.ADD:
            stack += [[*product[:k], term, *product[k + 1 :]] for term in product[k].args]
        else:
            return None
        if len(stack) + len(done) > MAX_TERMS:
            return None
    return done


def split_expansion(
    count: int, group: Mapping[str, int], expansion: Expansion
) -> list[list[Acceptance]] | None:
    """Write an expansion as a sum over the polynomials of all factors but one, times expansions in that one."""
    own = [group[o.name] for o in expansion.observables]
    largest = max(own, key=own.count)
    outer = [o for o in expansion.observables if group[o.name] != largest]
    inner = [o for o in expansion.observables if group[o.name] == largest]
    bases = [expansion.basis(o) for o in outer]
    terms: list[list[Acceptance]] = []
    for order, coefficients in expansion.split([o.name for o in outer]):
        polynomials = [basis[k] for basis, k in zip(bases, order, strict=True)]
        term: list[Acceptance] = [
            multiply_all(*(p for p, o in zip(polynomials, outer, strict=True) if group[o.name] == k))
            for k in range(count)
        ]
        term[largest] = Expansion(inner, coefficients, expansion.kind)
        terms.append(term)
    return terms if len(terms) <= MAX_TERMS else None


def combined(numbers: Sequence[float], acceptances: Sequence[Acceptance]) -> Acceptance:
    """Return the sum of acceptances times numbers; of expansions an expansion."""
    first = acceptances[0]
    if isinstance(first, Expansion):
        arrays = [
            n * a.coefficients for n, a in zip(numbers, acceptances, strict=True) if isinstance(a, Expansion)
        ]
        return Expansion(first.observables, sum(arrays[1:], arrays[0]), first.kind)
    return add_all(*(n * a.expr for n, a in zip(numbers, acceptances, strict=True)))
