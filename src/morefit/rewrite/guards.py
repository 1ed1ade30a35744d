"""What wildcards of rules may stand for: whole numbers, what cannot be negative, and so on, each with numbers to try it with."""

from __future__ import annotations

from morefit.expr import ZERO, Expr, Op, Trait, with_trait
from morefit.rewrite.rules import Guard

NEVER_NEGATIVE = with_trait(Trait.NOT_NEGATIVE)
POSITIVE = with_trait(Trait.POSITIVE)
KEEPS_SIGN = with_trait(Trait.KEEPS_SIGN)
DEPTH = 5  # how far down to look for a proof that something cannot be negative


def nonnegative(node: Expr, depth: int = DEPTH) -> bool:
    """Return whether an expression is known to be >= 0 (or NaN) everywhere."""
    if node.op is Op.CONST:
        return node.number >= 0
    if node.op in NEVER_NEGATIVE:
        return True
    if depth == 0 or node.op not in KEEPS_SIGN:
        return node.op is Op.POW and whole(node.args[1]) and node.args[1].number % 2 == 0
    if node.op is Op.POW:
        return nonnegative(node.args[0], depth - 1) or (whole(node.args[1]) and node.args[1].number % 2 == 0)
    return all(nonnegative(arg, depth - 1) for arg in node.args)


def positive(node: Expr) -> bool:
    """Return whether an expression is known to be > 0 in exact arithmetic."""
    return node.op in POSITIVE or (node.op is Op.CONST and node.number > 0)


def whole(node: Expr) -> bool:
    return node.op is Op.CONST and node.number == int(node.number)


def odd(node: Expr) -> bool:
    return whole(node) and node.number % 2 == 1


NUMBER = Guard(lambda e: e.op is Op.CONST, (0.5, 1.5, -2.0, 3.0))
WHOLE = Guard(whole, (-3.0, -1.0, 2.0, 4.0))
ODD = Guard(odd, (-3.0, 1.0, 5.0))
FRACTION = Guard(lambda e: e.op is Op.CONST and not whole(e), (0.5, -0.3, 1.5))
EVEN = Guard(lambda e: whole(e) and e.number % 2 == 0, (-2.0, 2.0, 4.0))
ODD_HALF = Guard(odd, (-1.0, 1.0, 3.0))
TRUE = Guard(lambda e: e.op is Op.CONST and e.number != 0, (1.0, -2.0))
FALSE = Guard(lambda e: e is ZERO, (0.0,))
NOT_NEGATIVE = Guard(nonnegative, (0.0, 0.5, 3.0))
