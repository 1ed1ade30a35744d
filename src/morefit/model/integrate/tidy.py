"""Sums, products and quotients of expressions with numbers folded and terms cancelled: solutions of equations stay short."""

from __future__ import annotations

from morefit.expr import ONE, ZERO, Expr, Op, add_all, const, multiply_all


def total(*terms: Expr) -> Expr:
    """Return a sum; equal terms are gathered, and those that cancel are dropped."""
    number, parts = 0.0, dict[Expr, float]()
    stack = [(term, 1.0) for term in reversed(terms)]
    while stack:
        term, factor = stack.pop()
        if term.op is Op.CONST:
            number += factor * term.number
        elif term.op is Op.ADD:
            stack += [(arg, factor) for arg in reversed(term.args)]
        else:
            own, rest = number_and_rest(term)
            if rest.op is Op.ADD or rest.op is Op.CONST:
                stack.append((rest, factor * own))
            else:
                parts[rest] = parts.get(rest, 0.0) + factor * own
    gathered = [part if k == 1 else k * part for part, k in parts.items() if k != 0]
    if number != 0 or not gathered:
        gathered.append(const(number))
    return gathered[0] if len(gathered) == 1 else add_all(*gathered)


def product(*factors: Expr) -> Expr:
    """Return a product, its numbers multiplied."""
    number, parts = 1.0, list[Expr]()
    for factor in factors:
        own, rest = number_and_rest(factor)
        number *= own
        parts += rest.args if rest.op is Op.MUL else () if rest is ONE else (rest,)
    if number == 0:
        return ZERO
    if number != 1 or not parts:
        parts.insert(0, const(number))
    return parts[0] if len(parts) == 1 else multiply_all(*parts)


def quotient(above: Expr, below: Expr) -> Expr:
    """Return a quotient; one by a number is a product."""
    if below.op is Op.CONST and below.number != 0:
        return (
            const(above.number / below.number)
            if above.op is Op.CONST
            else product(const(1 / below.number), above)
        )
    return ZERO if above is ZERO else above / below


def difference(one: Expr, other: Expr) -> Expr:
    return total(one, product(const(-1), other))


def square(x: Expr) -> Expr:
    """Return the square of an expression; that of a root is what it is taken of."""
    number, rest = number_and_rest(x)
    inner = rest.args[0] if rest.op is Op.SQRT else ONE if rest is ONE else rest**2
    return product(const(number**2), inner)


def number_and_rest(x: Expr) -> tuple[float, Expr]:
    """Return the number that an expression is a multiple of, and what is multiplied."""
    if x.op is Op.CONST:
        return x.number, ONE
    if x.op is not Op.MUL:
        return 1.0, x
    number, rest = 1.0, list[Expr]()
    for arg in x.args:
        own, inner = number_and_rest(arg)
        number *= own
        rest += () if inner is ONE else (inner,)
    return number, multiply_all(*rest) if len(rest) > 1 else rest[0] if rest else ONE
