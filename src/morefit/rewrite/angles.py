"""Compute the sine and cosine of a doubled angle from those of the angle, where these are needed anyway."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.expr import Expr, Op, make, rebuild, toposort, wild
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
