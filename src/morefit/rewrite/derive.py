"""Exact derivatives: the partials of each operation, one chain rule, and what holds where an argument overflows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import cache

from morefit.errors import ModelError
from morefit.expr import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    Op,
    Operation,
    Trait,
    column,
    domain_of,
    leaves,
    rule_of,
    to_expr,
    toposort,
    wild,
    with_trait,
)
from morefit.expr.opaque import Opaque
from morefit.rewrite.rules import Rewriter, fill, nonnegative, positive
from morefit.rewrite.simplify import HIGH_POWER, coefficient, simplifier

# where an argument overflows: a turn-on far below its edge is zero, and so are its slopes, not infinity times zero
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
    """Return the ratio of a slope to what has it; factors that do not grow stay outside, where they cannot make it overflow.

    The slope of an integral behind a scalar is as large or small as itself: only their ratio is a number like others.
    """
    if x.op is Op.SCALAR:
        return new(Op.RATIO, (slope, x))
    terms = []
    for term in slope.args if slope.op is Op.ADD else (slope,):
        factors = term.args if term.op is Op.MUL else (term,)
        grown = growing(toposort(*factors))
        inside = [factor for factor in factors if factor in grown]
        ratio = new(Op.RATIO, (new(Op.MUL, tuple(inside)) if inside else ONE, x))
        terms.append(new(Op.MUL, (*(factor for factor in factors if factor not in grown), ratio)))
    return new(Op.ADD, tuple(terms))


ARGUMENTS = (wild("x"), wild("y"), wild("z"))
NO_SLOPE = with_trait(Trait.NO_SLOPE)
LONGEST_PRODUCT = 16  # a longer one is halved first: the product rule is quadratic in the length


@cache
def partials_of(op: Operation) -> tuple[Expr | None, ...]:
    """Return the partials of an operation, as expressions of ``ARGUMENTS``; None for one that is not known."""
    assert op.partials is not None
    partials = op.partials(*ARGUMENTS[: op.arity])
    return tuple(None if partial is None else to_expr(partial) for partial in partials)


@cache
def singularity_of(op: Operation) -> Expr | None:
    """Return where a value is finite and a partial is not, as a condition on ``ARGUMENTS``.

    There an argument that stands still has the slope 0, not 0 * inf, as maximum(p - x, 0) has beyond p.
    """
    return None if op.singular is None else op.singular(*ARGUMENTS[: op.arity])


def derivatives(
    root: Expr,
    wrt: Sequence[Expr],
    rewriter: Rewriter | None = None,
    known: Callable[[Expr], Sequence[Expr] | None] = lambda leaf: None,
    wide: Set[Expr] = frozenset(),
) -> list[Expr]:
    """Differentiate an expression with respect to each of some leaves; ``known`` says which others depend on these, and how.

    Of those, ``wide`` may be so large or small that their squares overflow or underflow.
    """
    new = rewriter or simplifier()
    order = toposort(root)
    bit = {leaf: 1 << i for i, leaf in enumerate(wrt)}
    first: list[dict[Expr, Expr]] = [{leaf: ONE} for leaf in wrt]
    reach: dict[Expr, int] = {}
    for node in order:
        mask = bit.get(node, 0)
        for arg in node.args:
            mask |= reach[arg]
        if node.op is Op.SCALAR and (inner := known(node)) is not None:
            for i, part in enumerate(inner[: len(wrt)]):
                if part is not ZERO:
                    mask |= 1 << i
                    first[i][node] = part
        reach[node] = mask
    grown = growing(order) | wide
    return [
        slope(root, first[i], [n for n in order if reach[n] >> i & 1], new, grown) for i in range(len(wrt))
    ]


def slope(
    root: Expr, slopes: dict[Expr, Expr], order: Sequence[Expr], new: Rewriter, grown: Set[Expr]
) -> Expr:
    """Apply the chain rule to the nodes that depend on a leaf, arguments first, from the slopes of the leaves on."""
    for node in order:
        if node not in slopes:
            inner = [slopes.get(arg, ZERO) for arg in node.args]
            own = slope_of_grown(node, inner, new) if node.args[0] in grown else None
            slopes[node] = slope_of(node, inner, new, grown) if own is None else own
    return slopes.get(root, ZERO)


def slope_of(node: Expr, inner: list[Expr], new: Rewriter, grown: Set[Expr]) -> Expr:
    """Differentiate one node, the slopes of its arguments being known."""
    if node.op in OWN_SLOPES:
        return OWN_SLOPES[node.op](node, inner, new)
    if isinstance(node.op, Opaque):
        return slope_of_function(node, node.op, inner, new)
    if node.op in NO_SLOPE:
        raise ModelError(f"operation '{node.op.name.lower()}': has no derivative; take numeric derivatives")
    match = dict(zip(ARGUMENTS, node.args, strict=False))
    terms = []
    for k, (partial, part) in enumerate(zip(partials_of(node.op), inner, strict=True)):
        if part is not ZERO:
            if partial is None:
                raise ModelError(
                    f"operation '{node.op.name.lower()}': has no derivative by its argument number {k + 1}; fix what"
                    " this depends on, or take numeric derivatives"
                )
            outer = fill(partial, match, new)
            term = new(Op.MUL, (outer, part))
            level = node.op in LEVELS_OFF and node.args[0] in grown
            still = new(Op.EQUAL, (outer, ZERO)) if level else standstill(node, k, part, match, new)
            terms.append(term if still is ZERO else new(Op.WHERE, (still, ZERO, term)))
    return new(Op.ADD, tuple(terms)) if terms else ZERO


def standstill(node: Expr, k: int, part: Expr, match: dict[Expr, Expr], new: Rewriter) -> Expr:
    """Return where the slope of an argument is 0 and its partial infinite, though the value is finite; often ZERO."""
    singular = singularity_of(node.op)
    exponent = node.args[1] if node.op is Op.POW else None
    if singular is None or part.op is Op.CONST or (exponent is not None and k == 1):
        return ZERO
    if exponent is not None and exponent.op is Op.CONST and not 0 < exponent.number < 1:
        return ZERO  # the partial is finite, or the value is infinite as well
    return new(Op.MUL, (fill(singular, match, new), new(Op.EQUAL, (part, ZERO))))


def slope_of_sum(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    return new(Op.ADD, tuple(s for s in inner if s is not ZERO) or (ZERO,))


def slope_of_product(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    return product_rule(node.args, inner, new)


def slope_of_function(node: Expr, op: Opaque, inner: list[Expr], new: Rewriter) -> Expr:
    """Differentiate a function of Python: each derivative is another one."""
    terms = [
        new(Op.MUL, (new(op.derivative(k), node.args), part))
        for k, part in enumerate(inner)
        if part is not ZERO
    ]
    return new(Op.ADD, tuple(terms)) if terms else ZERO


def slope_of_choice(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    return new(Op.WHERE, (node.args[0], inner[1], inner[2]))


def slope_of_minimum(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    return new(Op.WHERE, (new(Op.LESS_EQUAL, node.args), *inner))


def slope_of_maximum(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    return new(Op.WHERE, (new(Op.LESS_EQUAL, node.args), *inner[::-1]))


def slope_of_integral(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    """Differentiate the body; the boxes of a quadrature need not follow the parameters: what must, is in the body."""
    return ZERO if inner[0] is ZERO else new(Op.INTEGRAL, (inner[0], *node.args[1:]), domain_of(node))


def slope_of_node_sum(node: Expr, inner: list[Expr], new: Rewriter) -> Expr:
    """Differentiate the body; the weights of nodes that it no longer depends on add up to one."""
    rule, body = rule_of(node), inner[0]
    varies = column(rule.symbol) in set(leaves(Op.COLUMN, body))
    return new(Op.NODE_SUM, (body,), rule) if varies else body


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


# operations whose derivative is more than a sum over partials
OWN_SLOPES: dict[Operation, Callable[[Expr, list[Expr], Rewriter], Expr]] = {
    Op.ADD: slope_of_sum,
    Op.MUL: slope_of_product,
    Op.WHERE: slope_of_choice,
    Op.MIN: slope_of_minimum,
    Op.MAX: slope_of_maximum,
    Op.INTEGRAL: slope_of_integral,
    Op.NODE_SUM: slope_of_node_sum,
    Op.RATIO: slope_of_ratio,
}


def gradient(root: Expr, wrt: Sequence[Expr], rewriter: Rewriter | None = None) -> list[Expr]:
    """Return the first derivatives."""
    return derivatives(root, wrt, rewriter)
