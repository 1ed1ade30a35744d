"""Turn leaves into numbers, so that everything they made variable folds away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morefit.expr import Expr, Op, const, leaves, substitute_all
from morefit.rewrite.simplify import normalise


def bind(roots: Sequence[Expr], values: Mapping[str, float]) -> tuple[Expr, ...]:
    """Replace the scalars named in ``values`` by numbers and simplify what is left."""
    known = {leaf: const(values[leaf.name]) for leaf in leaves(Op.SCALAR, *roots) if leaf.name in values}
    return normalise(*substitute_all(roots, known))
