"""Derivatives where an argument overflows: a turn-on far below its edge is zero, and so are its slopes, not infinity times zero."""

from __future__ import annotations

from collections.abc import Iterable, Set

from morefit.expr import MINUS_ONE, ONE, ZERO, Expr, Op, Trait, toposort, with_trait
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.simplify import HIGH_POWER, coefficient, nonnegative, positive

GROWS, LEVELS_OFF = with_trait(Trait.GROWS), with_trait(Trait.LEVELS_OFF)


def growing(order: Iterable[Expr]) -> set[Expr]:
    """Return the nodes that are infinite at some events where their leaves are not, of nodes with arguments first."""
    varies: set[Expr] = set()
    grown: set[Expr] = set()
    for node in order:
        if node.op is Op.COLUMN or (node.op is not Op.INTEGRAL and not varies.isdisjoint(node.args)):
            varies.add(node)
            if may_grow(node, grown):
                grown.add(node)
    return grown


def may_grow(node: Expr, grown: Set[Expr]) -> bool:
    """Return whether a node may be infinite, those of its arguments that may be so being known."""
    if node.op in GROWS:
        return node.op not in LEVELS_OFF or not is_bounded(node.args[0])
    if node.op is Op.POW:
        power = node.args[1].number if node.args[1].op is Op.CONST else HIGH_POWER
        return abs(power) >= HIGH_POWER or (power > 0 and node.args[0] in grown)
    return node.op not in LEVELS_OFF and not grown.isdisjoint(node.args)


def is_bounded(exponent: Expr) -> bool:
    """Return whether all terms of an exponent are known to have upper bounds."""
    for term in exponent.args if exponent.op is Op.ADD else (exponent,):
        number, base = coefficient(term)
        limit = Op.MIN if number > 0 else Op.MAX
        limited = base.op is limit and any(arg.op is Op.CONST for arg in base.args)
        if not (base.op is Op.CONST or limited or (number < 0 and nonnegative(base))):
            return False
    return True


def slope_of_grown(node: Expr, inner: list[Expr], new: Rewriter) -> Expr | None:
    """Differentiate a function of what may overflow; None for one that the chain rule is enough for.

    The slope of a power is the power times the relative slope of its base, which does not overflow with it: as
    y x**(y - 1), both factors of the second derivative would, at the square root of the largest number.
    """
    (x, *rest), slope = node.args, inner[0]
    if node.op is Op.LOG:
        return relative(slope, x, new)
    if node.op is Op.LOG1P:
        return relative(slope, new(Op.ADD, (ONE, x)), new)
    if node.op is Op.POW and (rest[0].number < 0 if rest[0].op is Op.CONST else is_positive(x)):
        power = ZERO if slope is ZERO else new(Op.MUL, (rest[0], node, relative(slope, x, new)))
        return power if inner[1] is ZERO else new(Op.ADD, (power, slope_by_exponent(node, inner[1], new)))
    return None


def is_positive(node: Expr) -> bool:
    """Return whether a sum has a positive number, which cannot underflow, and no term that is negative."""
    numbers = (arg for arg in node.args if arg.op is Op.CONST) if node.op is Op.ADD else ()
    return nonnegative(node) and any(map(positive, numbers))


def slope_by_exponent(node: Expr, slope: Expr, new: Rewriter) -> Expr:
    """Differentiate a power by its exponent: zero, as a negative power, where the base is infinite."""
    infinite = new(Op.EQUAL, (new(Op.POW, (node.args[0], MINUS_ONE)), ZERO))
    term = new(Op.MUL, (node, new(Op.LOG, (node.args[0],)), slope))
    return new(Op.WHERE, (infinite, ZERO, term))


def slope_of_ratio(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    """Differentiate a ratio by ratios."""
    terms, below = [], node.args[1]
    if inner[0] is not ZERO:
        terms.append(relative(inner[0], below, new))
    if inner[1] is not ZERO:
        terms.append(new(Op.MUL, (MINUS_ONE, node, relative(inner[1], below, new))))
    return new(Op.ADD, tuple(terms)) if terms else ZERO


def relative(slope: Expr, x: Expr, new: Rewriter) -> Expr:
    """Return the ratio of a slope to what has it; factors that do not grow stay outside, where they cannot make it overflow."""
    terms = []
    for term in slope.args if slope.op is Op.ADD else (slope,):
        factors = term.args if term.op is Op.MUL else (term,)
        grown = growing(toposort(*factors))
        inside = [factor for factor in factors if factor in grown]
        ratio = new(Op.RATIO, (new(Op.MUL, tuple(inside)) if inside else ONE, x))
        terms.append(new(Op.MUL, (*(factor for factor in factors if factor not in grown), ratio)))
    return new(Op.ADD, tuple(terms))
