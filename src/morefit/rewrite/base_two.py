"""Give exponentials base two where the factor this needs can hide in a scalar that is computed once per call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.expr import Expr, Op, fresh_prefix, make, rebuild, remake, scalar

LOG2_E = make(Op.CONST, value=1 / math.log(2))


def use_base_two(roots: Sequence[Expr]) -> tuple[tuple[Expr, ...], dict[str, Expr]]:
    """Turn exp(s * x) with a scalar s into exp2(t * x); return the new scalars t as expressions of the old.

    This spares the loop the multiplications that split an argument into multiples of log(2) and a rest.
    """
    prefix = fresh_prefix("e", *roots)
    names: dict[Expr, Expr] = {}

    def turn(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op is not Op.EXP or args[0].op is not Op.MUL:
            return remake(node, args)
        old = next((f for f in args[0].args if f.op is Op.SCALAR), None)
        if old is None:
            return remake(node, args)
        new = names.setdefault(old, scalar(f"{prefix}{len(names)}"))
        factors = tuple(new if f is old else f for f in args[0].args)
        return make(Op.EXP2, (make(Op.MUL, factors),))

    turned = rebuild(tuple(roots), turn)
    return turned, {new.name: make(Op.MUL, (LOG2_E, old)) for old, new in names.items()}
