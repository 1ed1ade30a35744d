"""Other forms of expressions that cost less: doubled angles, choices inside of branches that have made them, exponentials of base two."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.expr import (
    NARY,
    Expr,
    Op,
    const,
    fresh_prefix,
    make,
    rebuild,
    remake,
    scalar,
    toposort,
    uses,
    wild,
)
from morefit.expr.walk import DIVISION_PRICE, power_price
from morefit.rewrite.rules import Rewriter, Rule, fill
from morefit.rewrite.simplify import coefficient, scaled

u = wild("u")
COS, SIN = Op.COS(u), Op.SIN(u)
DOUBLE_ANGLES = (
    Rule("cosine of a doubled angle", Op.COS(2 * u), 2 * COS**2 - 1),
    Rule("cosine of a doubled angle by its sine", Op.COS(2 * u), 1 - 2 * SIN**2),
    Rule("sine of a doubled angle", Op.SIN(2 * u), 2 * COS * SIN),
)


def use_double_angles(roots: Sequence[Expr], new: Rewriter) -> tuple[Expr, ...]:
    """Write cos(2u) and sin(2u) as polynomials of cos(u) and sin(u); the roots are in the normal form of ``new``.

    Angular densities have both. A polynomial costs less than a function, and often less than to read a column
    (docs/decisions/0018-double-angles.md).
    """
    chosen = choose_rules(roots)

    def turn(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node not in chosen:
            return new.rebuild(node, args)
        return fill(chosen[node].after, {u: half(args[0])}, new)

    return rebuild(tuple(roots), turn) if chosen else tuple(roots)


def choose_rules(roots: Sequence[Expr]) -> dict[Expr, Rule]:
    """Find the functions of doubled angles that a rule can replace without a new function.

    What is replaced does not serve to replace another: every doubling costs accuracy.
    """
    nodes = functions(*roots)
    left, chosen = set(nodes), dict[Expr, Rule]()
    for node in sorted(nodes, key=lambda n: (abs(coefficient(n.args[0])[0]), n.order)):
        angle = half(node.args[0])
        for rule in DOUBLE_ANGLES:
            needed = {make(f.op, (angle,)) for f in functions(rule.after)}
            if rule.before.op is node.op and needed <= left:
                chosen[node] = rule
                left.remove(node)
                break
    return chosen


def functions(*roots: Expr) -> list[Expr]:
    return [n for n in toposort(*roots) if n.op in (Op.COS, Op.SIN)]


def half(angle: Expr) -> Expr:
    number, base = coefficient(angle)
    return scaled(number / 2, base)


OPENED = (*NARY, Op.WHERE)


def settle_choices(roots: Sequence[Expr], new: Rewriter) -> tuple[Expr, ...]:
    """Replace choices inside a branch by what is chosen there; the roots are in the normal form of ``new``.

    Derivatives of densities that are put together from pieces are full of them: most are zero in all pieces but one.
    """
    memos: dict[tuple[Expr, int], dict[Expr, Expr]] = {}

    def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op is not Op.WHERE:
            return new.rebuild(node, args)
        branches = (
            inside(args[side], (args[0], side), memos.setdefault((args[0], side), {}), new) for side in (1, 2)
        )
        return new(Op.WHERE, (args[0], *branches))

    return rebuild(tuple(roots), settle)


def is_opened(node: Expr) -> bool:
    """Return whether to look for choices below; a function of one serves both branches, and one for each would be two."""
    return node.op in OPENED or (
        node.op is Op.POW
        and node.args[1].op is Op.CONST
        and power_price(node.args[1].number) < DIVISION_PRICE
    )


def inside(branch: Expr, place: tuple[Expr, int], memo: dict[Expr, Expr], new: Rewriter) -> Expr:
    """Return what a branch is where its condition holds (side 1) or does not (side 2)."""
    condition, side = place
    stack = [branch]
    while stack:
        node = stack[-1]
        chosen = node.op is Op.WHERE and node.args[0] is condition
        args = (node.args[side],) if chosen else node.args if is_opened(node) else ()
        missing = [] if node in memo else [arg for arg in args if arg not in memo]
        stack += missing
        if not missing:
            stack.pop()
            parts = tuple(memo[arg] for arg in args) if node not in memo else ()
            memo.setdefault(node, node if not parts else parts[0] if chosen else new.rebuild(node, parts))
    return memo[branch]


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
