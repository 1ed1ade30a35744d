"""Write a density as a sum of parts that have their kinks in common, so that each has few edges."""

from __future__ import annotations

from functools import lru_cache

from morefit.expr import Expr, Op, add_all, leaves, multiply_all, toposort
from morefit.model.integrate.edges import zeros_of_kinks

MAX_PARTS = 256  # of a density with kinks of their own


def split_by_kinks(density: Expr) -> list[Expr]:
    """Write a density as a sum of parts that have their kinks in common, so that each has few edges."""
    groups: dict[frozenset[Expr], list[Expr]] = {}
    stack: list[tuple[Expr, ...]] = [(density,)]
    while stack:
        factors = stack.pop()
        k = next((k for k, factor in enumerate(factors) if is_mixed(factor)), None)
        if k is None:
            product = factors[0] if len(factors) == 1 else multiply_all(*factors)
            groups.setdefault(kinks_of(product), []).append(product)
        elif factors[k].op is Op.MUL:
            stack.append((*factors[:k], *factors[k].args, *factors[k + 1 :]))
        else:
            stack += [(*factors[:k], term, *factors[k + 1 :]) for term in reversed(factors[k].args)]
        if len(stack) + len(groups) > MAX_PARTS:
            return [density]
    return [terms[0] if len(terms) == 1 else add_all(*terms) for terms in groups.values()]


def is_mixed(factor: Expr) -> bool:
    """Return whether a factor is a sum of terms with different kinks, or a product with such a factor."""
    if factor.op is Op.ADD:
        return len({kinks_of(term) for term in factor.args}) > 1
    return factor.op is Op.MUL and any(is_mixed(part) for part in factor.args)


@lru_cache(maxsize=4096)
def kinks_of(expr: Expr) -> frozenset[Expr]:
    """Return the expressions of observables at whose zeros an expression has kinks."""
    nodes = toposort(expr, enter_integrals=False, enter_sums=False)
    zeros = (zero for node in nodes for zero in zeros_of_kinks(node))
    return frozenset(zero for zero in zeros if leaves(Op.COLUMN, zero))
