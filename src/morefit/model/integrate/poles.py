"""Whether a density may have infinite values or derivatives: roots and inverse powers of what may be zero."""

from __future__ import annotations

from collections import Counter

import numpy as np

from morefit.expr import (
    COMPARISONS,
    ONE,
    Expr,
    Op,
    add_all,
    evaluate,
    leaves,
    rebuild,
    remake,
    toposort,
)
from morefit.model.integrate.edges import base_of_root
from morefit.model.integrate.panels import Points
from morefit.model.integrate.separate import open_nested


def has_poles(density: Expr, points: Points) -> bool:
    """Return whether a density may have infinite derivatives; roots in its conditions only say where edges are."""
    (decided,) = rebuild((density,), lambda node, args: ONE if node.op in COMPARISONS else remake(node, args))
    bases = map(base_of_root, toposort(decided, enter_integrals=False, enter_sums=False))
    return any(
        base is not None and bool(leaves(Op.COLUMN, base)) and may_vanish(base, points) for base in bases
    )


@np.errstate(all="ignore")
def may_vanish(base: Expr, points: Points) -> bool:
    """Return whether the base of a power may be zero; that of a resonance, squares and something positive, is not."""
    terms = open_nested(Op.ADD, (base,))
    others = [term for term in terms if not leaves(Op.COLUMN, term)]
    positive = bool(others) and bool(np.all(evaluate(add_all(*others), points) > 0))
    return not (positive and all(is_square(term) for term in terms if leaves(Op.COLUMN, term)))


def is_square(term: Expr) -> bool:
    """Return whether a term is never negative: an even power, or a product of each factor twice with positive numbers."""
    factors = Counter(open_nested(Op.MUL, (term,)))
    return all(
        count % 2 == 0
        or (factor.op is Op.CONST and factor.number >= 0)
        or (factor.op is Op.POW and factor.args[1].op is Op.CONST and factor.args[1].number % 2 == 0)
        for factor, count in factors.items()
    )
