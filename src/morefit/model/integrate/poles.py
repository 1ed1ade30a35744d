"""Whether a density may have infinite values or derivatives: roots and inverse powers of what may be zero."""

from __future__ import annotations

import numpy as np

from morefit.expr import (
    COMPARISONS,
    ONE,
    Expr,
    Op,
    add_all,
    const,
    evaluate,
    leaves,
    rebuild,
    remake,
    toposort,
)
from morefit.model.integrate.edges import base_of_root
from morefit.model.integrate.panels import Points

TWO = const(2)


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
    terms = base.args if base.op is Op.ADD else (base,)
    others = [term for term in terms if not leaves(Op.COLUMN, term)]
    squares = sum(term.op is Op.POW and term.args[1] is TWO for term in terms if leaves(Op.COLUMN, term))
    positive = bool(others) and bool(np.all(evaluate(add_all(*others), points) > 0))
    return not (positive and squares + len(others) == len(terms))
