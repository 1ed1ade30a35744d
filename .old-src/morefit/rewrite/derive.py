"""Exact derivatives: one table of partials, one chain rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.errors import ModelError
from morefit.expr import ONE, ZERO, Expr, Op, apply, toposort, where, wild
from morefit.rewrite.rules import Rewriter, fill
from morefit.rewrite.simplify import simplifier

x, y = wild("x"), wild("y")
WILDS = (x, y)
LONGEST_PRODUCT = 16  # a longer one is halved first: the product rule is quadratic in the length


def fn(op: Op, *args: Expr) -> Expr:
    return apply(op, *args)


# d op(x, y) / dx, d op(x, y) / dy. A kink takes the slope of its right side, so that |x|, which the library
# uses for symmetric formulas, has its right second derivatives at 0 too.
PARTIALS: dict[Op, tuple[Expr, ...]] = {
    Op.POW: (y * x ** (y - 1), x**y * fn(Op.LOG, x)),
    Op.EXP: (fn(Op.EXP, x),),
    Op.EXP2: (math.log(2) * fn(Op.EXP2, x),),
    Op.EXPM1: (fn(Op.EXP, x),),
    Op.LOG: (1 / x,),
    Op.LOG1P: (1 / (1 + x),),
    Op.SQRT: (0.5 * x**-0.5,),
    Op.SIN: (fn(Op.COS, x),),
    Op.COS: (-fn(Op.SIN, x),),
    Op.TAN: (1 + fn(Op.TAN, x) ** 2,),
    Op.ASIN: ((1 - x**2) ** -0.5,),
    Op.ACOS: (-((1 - x**2) ** -0.5),),
    Op.ATAN: (1 / (1 + x**2),),
    Op.ATAN2: (y / (x**2 + y**2), -x / (x**2 + y**2)),
    Op.SINH: (fn(Op.COSH, x),),
    Op.COSH: (fn(Op.SINH, x),),
    Op.TANH: (1 - fn(Op.TANH, x) ** 2,),
    Op.ERF: (2 / math.sqrt(math.pi) * fn(Op.EXP, -(x**2)),),
    Op.ERFC: (-2 / math.sqrt(math.pi) * fn(Op.EXP, -(x**2)),),
    Op.NDTRI: (math.sqrt(2 * math.pi) * fn(Op.EXP, 0.5 * fn(Op.NDTRI, x) ** 2),),
    Op.LGAMMA: (fn(Op.DIGAMMA, x),),
    Op.DIGAMMA: (fn(Op.TRIGAMMA, x),),
    Op.TRIGAMMA: (fn(Op.TETRAGAMMA, x),),
    Op.ABS: (where(x < 0, -1, 1),),
    Op.MIN: (where(x <= y, 1, 0), where(x <= y, 0, 1)),
    Op.MAX: (where(x <= y, 0, 1), where(x <= y, 1, 0)),
    Op.FLOOR: (ZERO,),
    Op.LESS: (ZERO, ZERO),
    Op.LESS_EQUAL: (ZERO, ZERO),
    Op.EQUAL: (ZERO, ZERO),
    Op.LOOKUP: (ZERO, ZERO),  # a step function
}
# operations whose derivative has a shape of its own, in ``slope_of``
SHAPED = frozenset({Op.ADD, Op.MUL, Op.WHERE, Op.INTEGRAL})
NO_DERIVATIVE = frozenset({Op.TETRAGAMMA})


def derivatives(root: Expr, wrt: Sequence[Expr], rewriter: Rewriter | None = None) -> list[Expr]:
    """Differentiate an expression with respect to each of some leaves."""
    new = rewriter or simplifier()
    order = toposort(root)
    bit = {leaf: 1 << i for i, leaf in enumerate(wrt)}
    reach: dict[Expr, int] = {}
    for node in order:
        mask = bit.get(node, 0)
        for arg in node.args:
            mask |= reach[arg]
        reach[node] = mask
    return [slope(root, leaf, [n for n in order if reach[n] & bit[leaf]], new) for leaf in wrt]


def slope(root: Expr, leaf: Expr, order: Sequence[Expr], new: Rewriter) -> Expr:
    """Apply the chain rule to the nodes that depend on the leaf, arguments first."""
    slopes: dict[Expr, Expr] = {leaf: ONE}
    for node in order:
        if node is not leaf:
            slopes[node] = slope_of(node, slopes, new)
    return slopes.get(root, ZERO)


def slope_of(node: Expr, slopes: dict[Expr, Expr], new: Rewriter) -> Expr:
    """Differentiate one node, the slopes of its arguments being known; a missing slope is zero."""
    inner = [slopes.get(arg, ZERO) for arg in node.args]
    if node.op is Op.ADD:
        return new(Op.ADD, tuple(s for s in inner if s is not ZERO) or (ZERO,))
    if node.op is Op.MUL:
        return product_rule(node.args, inner, new)
    if node.op is Op.WHERE:
        return new(Op.WHERE, (node.args[0], inner[1], inner[2]))
    if node.op is Op.INTEGRAL:
        return ZERO if inner[0] is ZERO else new(Op.INTEGRAL, (inner[0],), str(node.value))
    if node.op in NO_DERIVATIVE:
        raise ModelError(f"operation '{node.op.name.lower()}': has no derivative; take numeric derivatives")
    match = dict(zip(WILDS, node.args, strict=False))
    terms = []
    for partial, part in zip(PARTIALS[node.op], inner, strict=True):
        if part is not ZERO:
            terms.append(new(Op.MUL, (fill(partial, match, new), part)))
    return new(Op.ADD, tuple(terms)) if terms else ZERO


def product_rule(args: tuple[Expr, ...], inner: list[Expr], new: Rewriter) -> Expr:
    """Differentiate a product: each factor in turn, the others as they are."""
    if len(args) > LONGEST_PRODUCT:
        half = len(args) // 2
        parts = ((args[:half], inner[:half]), (args[half:], inner[half:]))
        return product_rule(
            tuple(new(Op.MUL, a) for a, _ in parts), [product_rule(a, i, new) for a, i in parts], new
        )
    terms = []
    for k, part in enumerate(inner):
        if part is not ZERO:
            terms.append(new(Op.MUL, (*args[:k], part, *args[k + 1 :])))
    return new(Op.ADD, tuple(terms)) if terms else ZERO


def gradient(root: Expr, wrt: Sequence[Expr], rewriter: Rewriter | None = None) -> list[Expr]:
    """Return the first derivatives."""
    return derivatives(root, wrt, rewriter)


def hessian(root: Expr, wrt: Sequence[Expr], rewriter: Rewriter | None = None) -> list[list[Expr]]:
    """Return the second derivatives: the lower triangle, row by row."""
    new = rewriter or simplifier()
    first = derivatives(root, wrt, new)
    return [derivatives(d, wrt[: i + 1], new) for i, d in enumerate(first)]
