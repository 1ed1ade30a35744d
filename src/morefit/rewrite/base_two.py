"""Give exponentials base two where the factor this needs can hide in scalars that are computed once per call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.expr import Expr, Op, const, fresh_prefix, make, rebuild, remake, scalar, uses

LOG2_E = make(Op.CONST, value=1 / math.log(2))
DEPTH = 6  # of sums and choices in an exponent


def is_weight(factor: Expr) -> bool:
    """Return whether a factor is a scalar, or its negative."""
    return factor.op is Op.SCALAR or (factor.op is Op.MUL and any(f.op is Op.SCALAR for f in factor.args))


class Scaler:
    """Multiplies expressions by log2(e) where scalars and numbers can take it up."""

    def __init__(self, roots: Sequence[Expr]) -> None:
        self.prefix, self.count = fresh_prefix("e", *roots), uses(*roots)
        self.names: dict[Expr, Expr] = {}

    def name(self, old: Expr) -> Expr:
        """Return the scalar that is log2(e) times another."""
        return self.names.setdefault(old, scalar(f"{self.prefix}{len(self.names)}"))

    def scalable(self, node: Expr, depth: int = DEPTH) -> bool:
        """Return whether the factor costs the loop nothing: nothing else uses the sums and products it changes."""
        if node.op is Op.MUL:
            return any(map(is_weight, node.args))
        if node.op not in (Op.ADD, Op.WHERE):
            return node.op in (Op.SCALAR, Op.CONST)
        parts = node.args[node.op is Op.WHERE :]
        return depth > 0 and all(
            self.scalable(p, depth - 1) and (not p.args or self.count[p] == 1) for p in parts
        )

    def scaled(self, node: Expr) -> Expr:
        """Return a scalable node times log2(e)."""
        if node.op is Op.SCALAR:
            return self.name(node)
        if node.op is Op.CONST:
            return const(node.number * LOG2_E.number)
        if node.op is Op.MUL:
            old = next(filter(is_weight, node.args))
            return make(Op.MUL, tuple(self.scaled(old) if f is old else f for f in node.args))
        condition = node.args[:1] if node.op is Op.WHERE else ()
        return make(node.op, (*condition, *(self.scaled(part) for part in node.args[len(condition) :])))


def use_base_two(roots: Sequence[Expr]) -> tuple[tuple[Expr, ...], dict[str, Expr]]:
    """Turn exp(s * x) with a scalar s into exp2(t * x); return the new scalars t as expressions of the old.

    This spares the loop the multiplications that split an argument into multiples of log(2) and a rest. Sums of such
    products, and choices between them, are turned as well.
    """
    scaler = Scaler(roots)

    def turn(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op is not Op.EXP or not scaler.scalable(node.args[0]):
            return remake(node, args)
        return make(Op.EXP2, (scaler.scaled(args[0]),))

    turned = rebuild(tuple(roots), turn)
    return turned, {new.name: make(Op.MUL, (LOG2_E, old)) for old, new in scaler.names.items()}
