"""Solve an equation for one leaf of an expression, as far as inverse functions and polynomials go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache

from morefit.dataclass import dataclass
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    Operation,
    apply,
    const,
    leaves,
    substitute,
    toposort,
    where,
)
from morefit.model.integrate.tidy import difference, product, quotient, square, total

MAX_STEPS = 40  # of a floor, or turns of a periodic function, that are solved for; each is an edge
MAX_EQUATIONS = 64  # that choices and roots lead to
Span = Callable[[Expr], tuple[float, float]]  # between which numbers an expression may lie
Equation = tuple[Expr, Expr]


def nodes_with(root: Expr, columns: Set[Expr]) -> set[Expr]:
    """Return the nodes whose value depends on one of some columns."""
    within = set(columns)
    for node in toposort(root, enter_integrals=False, enter_sums=False):
        inside = leaves(Op.COLUMN, node) if node.op is Op.NODE_SUM else node.args
        if node.op is not Op.INTEGRAL and any(a in within for a in inside):
            within.add(node)
    return within


@lru_cache(maxsize=4096)
def solve(zero: Expr, x: Expr) -> tuple[Expr, ...] | None:
    """Solve ``zero == 0`` for a leaf; None if that cannot be done, or if there is no end of solutions.

    A solution may be not a number where there is none, and need not be one: some are lost to squares.
    """
    return solve_turns(zero, x, None)


def solve_turns(
    zero: Expr, x: Expr, span: Span | None, choices: bool = True, known: Polynomials | None = None
) -> tuple[Expr, ...] | None:
    """Solve ``zero == 0`` for a leaf; periodic functions for the turns that their arguments span, if that is known.

    ``known`` are the polynomials of all nodes of an expression that it is a part of.
    """
    solutions: dict[Expr, None] = {}
    open_equations, seen, tried = [(zero, ZERO)], dict[Expr, set[Expr]](), 0
    while open_equations:
        left, right = open_equations.pop()
        if right in seen.setdefault(left, set()):
            continue
        seen[left].add(right)
        tried += 1
        own = known if known is not None and left in known.of else Polynomials.within(left, x)
        if left not in own.nodes:
            continue
        if (pair := roots_of_square(left, right, own)) is not None:
            solutions |= dict.fromkeys(pair)
            continue
        coefficients = own.of[left]
        if coefficients is not None:
            solutions |= dict.fromkeys(roots(difference(coefficients[0], right), coefficients[1:]))
            continue
        simpler = invert(left, right, own.nodes, span)
        if simpler is None and choices:
            simpler = without_choices(left, right, own.nodes)
        if simpler is None or tried > MAX_EQUATIONS:
            return None
        open_equations += simpler
    return tuple(solutions)


def without_choices(left: Expr, right: Expr, within: Set[Expr]) -> list[Equation] | None:
    """Return the equations with either side of a choice, or the square of one with a root; not all solutions are its own."""
    nodes = [n for n in toposort(left, enter_integrals=False, enter_sums=False) if n in within]
    for node in reversed(nodes):  # the outermost first, so that most of what is inside of it is left out
        if node.op in SIDES:
            return [(difference(substitute(left, {node: side}), right), ZERO) for side in sides_of(node)]
    for node in nodes:
        if node.op is Op.SQRT and (square := squared(difference(left, right), node)) is not None:
            return [(square, ZERO)]
    return None


def sides_of(node: Expr) -> list[Expr]:
    """Return what a choice may be, where choices are made between choices as well."""
    seen: dict[Expr, None] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        if one.op in SIDES and one not in seen:
            stack += SIDES[one.op](*one.args)
        seen[one] = None
    return [one for one in seen if one.op not in SIDES]


def squared(zero: Expr, root: Expr) -> Expr | None:
    """Return an expression without a root, which is zero where one with it is; None if it is no polynomial in the root."""
    coefficients = polynomial(zero, root)
    if coefficients is None or len(coefficients) == 1:
        return None
    inside = root.args[0]
    even, odd = coefficients[0], coefficients[1]
    if len(coefficients) == 3:
        even = total(even, product(coefficients[2], inside))
    if odd is ZERO or even is ZERO:
        return product(odd, inside) if even is ZERO else even
    return difference(product(square(odd), inside), square(even))


@dataclass(frozen=True, eq=False)
class Polynomials:
    """All nodes of an expression as polynomials in a leaf: what a sum and its parts have in common is computed once."""

    of: Mapping[Expr, list[Expr] | None]  # coefficients; None of what is none of degree 2 at most
    nodes: Set[Expr]  # those that depend on the leaf

    @classmethod
    def within(cls, root: Expr, x: Expr) -> Polynomials:
        nodes = nodes_with(root, {x})
        done: dict[Expr, list[Expr] | None] = {}
        for node in toposort(root, enter_integrals=False, enter_sums=False):
            if node is x:
                done[node] = [ZERO, ONE]
            elif node not in nodes:
                done[node] = [node]
            else:
                done[node] = None if node.op is Op.NODE_SUM else combine(node, [done[a] for a in node.args])
        return cls(done, nodes)


def polynomial(root: Expr, x: Expr) -> list[Expr] | None:
    """Return the coefficients of an expression as a polynomial in a leaf, of degree 2 at most, or None."""
    return Polynomials.within(root, x).of[root]


def combine(node: Expr, parts: Sequence[list[Expr] | None]) -> list[Expr] | None:
    """Return the coefficients of a sum, a product or a whole power of polynomials."""
    known = [part for part in parts if part is not None]
    if node.op is Op.POW and node.args[1].op is Op.CONST and node.args[1].number in (1.0, 2.0) and parts[0]:
        known = [parts[0]] * int(node.args[1].number)
    elif len(known) < len(parts) or node.op not in (Op.ADD, Op.MUL):
        return None
    if node.op is Op.ADD:
        degree = max(len(part) for part in known)
        return trimmed([total(*(part[k] for part in known if k < len(part))) for k in range(degree)])
    powers = [ONE]
    for part in known:
        longer: list[list[Expr]] = [[] for _ in range(len(powers) + len(part) - 1)]
        for i, a in enumerate(powers):
            for j, b in enumerate(part):
                longer[i + j].append(product(a, b))
        powers = trimmed([total(*terms) for terms in longer])
        if len(powers) > 3:
            return None
    return powers


def trimmed(coefficients: list[Expr]) -> list[Expr]:
    """Return the coefficients of a polynomial without the highest ones that are zero."""
    while len(coefficients) > 1 and coefficients[-1] is ZERO:
        coefficients = coefficients[:-1]
    return coefficients


def roots(constant: Expr, rest: Sequence[Expr]) -> list[Expr]:
    """Return the zeros of a polynomial of degree 1 or 2, the smaller first."""
    if not rest:
        return []
    if len(rest) == 1:
        return [quotient(product(const(-1), constant), rest[0])]
    slope, bend = rest
    middle = quotient(slope, product(const(-2), bend))
    half = apply(Op.SQRT, difference(square(middle), quotient(constant, bend)))
    return [difference(middle, half), total(middle, half)]


def roots_of_square(left: Expr, right: Expr, known: Polynomials) -> list[Expr] | None:
    """Return the zeros of a written square of a line, the smaller first; None if an expression is none.

    Multiplied out, they would be the difference of two large numbers where the line is steep, as (x - mu) / sigma is.
    """
    layers: list[Expr] = []
    square_of, inner = left, [left]
    while square_of.op in (Op.ADD, Op.MUL) and len(inner) == 1:
        layers.append(square_of)
        inner = [a for a in square_of.args if a in known.nodes]
        square_of = inner[0]
    if len(inner) != 1 or square_of.op is not Op.POW or square_of.args[1].op is not Op.CONST:
        return None
    line = known.of[square_of.args[0]]
    if square_of.args[1].number != 2 or line is None or len(line) != 2:
        return None
    for layer in layers:
        outer = [a for a in layer.args if a not in known.nodes]
        right = difference(right, total(*outer)) if layer.op is Op.ADD else quotient(right, product(*outer))
    if right is ZERO:
        return None
    middle = quotient(line[0], product(const(-1), line[1]))
    half = apply(Op.SQRT, quotient(right, square(line[1])))
    return [difference(middle, half), total(middle, half)]


def invert(left: Expr, right: Expr, within: Set[Expr], span: Span | None) -> list[Equation] | None:
    """Return simpler equations that ``left == right`` leads to; ``within`` are the nodes with the unknown."""
    inner = [a for a in left.args if a in within]
    outer = [a for a in left.args if a not in within]
    if left.op is Op.ADD and len(inner) == 1:
        return [(inner[0], difference(right, total(*outer)))]
    if left.op is Op.ADD and len(inner) == 2 and not outer and right is ZERO:
        return equal_logarithms(*inner)
    if left.op is Op.MUL and len(inner) == 1:
        return [(inner[0], quotient(right, product(*outer)))]
    if left.op is Op.MUL and right is ZERO:
        return [(factor, ZERO) for factor in inner]
    if left.op is Op.POW:
        return invert_power(left.args[0], left.args[1], right, within)
    if left.op in (Op.MIN, Op.MAX):
        return [(a, right) for a in inner]
    if left.op is Op.WHERE:
        return [(a, right) for a in left.args[1:]]
    if left.op in INVERSES and len(inner) == 1:
        return [(inner[0], value) for value in INVERSES[left.op](right)]
    if left.op in PERIODIC and span is not None:
        return [(inner[0], value) for value in turns(left.op, right, *span(inner[0]))] or None
    return None


def equal_logarithms(one: Expr, other: Expr) -> list[Equation] | None:
    """Return the equation between the logarithms of two terms whose sum is zero, if they are products of powers."""
    logs = [logarithm(one), logarithm(other)]
    if logs[0] is None or logs[1] is None:
        return None
    return [(difference(logs[0], logs[1]), ZERO)]


def logarithm(term: Expr) -> Expr | None:
    """Return the logarithm of the size of a product of exponentials and powers, written without one."""
    parts: list[Expr] = []
    for factor in term.args if term.op is Op.MUL else (term,):
        if factor.op is Op.EXP:
            parts.append(factor.args[0])
        elif factor.op is Op.POW:
            parts.append(factor.args[1] * apply(Op.LOG, apply(Op.ABS, factor.args[0])))
        elif not leaves(Op.COLUMN, factor):
            parts.append(apply(Op.LOG, apply(Op.ABS, factor)))
        else:
            return None
    return total(*parts)


def turns(op: Operation, value: Expr, low: float, high: float) -> list[Expr]:
    """Return the arguments between two numbers, and a turn further, at which a periodic function has a value."""
    period = math.pi if op is Op.TAN else 2 * math.pi
    first, last = math.floor(low / period) - 1, math.ceil(high / period) + 1
    if last - first > MAX_STEPS:
        return []
    angle = apply({Op.SIN: Op.ASIN, Op.COS: Op.ACOS, Op.TAN: Op.ATAN}[op], value)
    angles = {Op.SIN: [angle, math.pi - angle], Op.COS: [angle, -angle], Op.TAN: [angle]}[op]
    return [a + k * period for k in range(first, last + 1) for a in angles]


def invert_power(base: Expr, exponent: Expr, right: Expr, within: Set[Expr]) -> list[Equation] | None:
    if base not in within:
        return [(exponent, apply(Op.LOG, right) / apply(Op.LOG, base))]
    if exponent in within:
        return None
    if right is ZERO:
        return [(base, ZERO)]
    root = right ** (1 / exponent)
    if exponent.op is Op.CONST and exponent.number == int(exponent.number):
        if exponent.number % 2 == 0:
            return [(base, root), (base, -root)]
        size = apply(Op.ABS, right) ** (1 / exponent)
        return [(base, where(right < 0, -size, size))]
    return [(base, root)]


# what an operation is, on either side of where it changes
SIDES: dict[Operation, Callable[..., Iterable[Expr]]] = {
    Op.ABS: lambda x: [x, -x],
    Op.SIGN: lambda x: [ONE, -ONE],
    Op.MIN: lambda x, y: [x, y],
    Op.MAX: lambda x, y: [x, y],
    Op.WHERE: lambda condition, x, y: [x, y],
}
PERIODIC = frozenset({Op.SIN, Op.COS, Op.TAN})
INVERSES: dict[Operation, Callable[[Expr], Iterable[Expr]]] = {
    Op.EXP: lambda y: [apply(Op.LOG, y)],
    Op.EXP2: lambda y: [apply(Op.LOG, y) / math.log(2)],
    Op.EXPM1: lambda y: [apply(Op.LOG1P, y)],
    Op.LOG: lambda y: [apply(Op.EXP, y)],
    Op.LOG1P: lambda y: [apply(Op.EXPM1, y)],
    Op.SQRT: lambda y: [square(y)],
    Op.ABS: lambda y: [y] if y is ZERO else [y, -y],
    Op.ASIN: lambda y: [apply(Op.SIN, y)],
    Op.ACOS: lambda y: [apply(Op.COS, y)],
    Op.ATAN: lambda y: [apply(Op.TAN, y)],
    Op.SINH: lambda y: [apply(Op.ASINH, y)],
    Op.COSH: lambda y: [apply(Op.ACOSH, y), -apply(Op.ACOSH, y)],
    Op.TANH: lambda y: [apply(Op.ATANH, y)],
    Op.ERF: lambda y: [apply(Op.NDTRI, (1 + y) / 2) / math.sqrt(2)],
    Op.ERFC: lambda y: [apply(Op.NDTRI, 1 - y / 2) / math.sqrt(2)],
    Op.ASINH: lambda y: [apply(Op.SINH, y)],
    Op.ACOSH: lambda y: [apply(Op.COSH, y)],
    Op.ATANH: lambda y: [apply(Op.TANH, y)],
    Op.LOG2: lambda y: [apply(Op.EXP2, y)],
    Op.LOG10: lambda y: [apply(Op.EXP, math.log(10) * y)],
    Op.NDTR: lambda y: [apply(Op.NDTRI, y)],
    Op.NDTRI: lambda y: [0.5 * (1 + apply(Op.ERF, y / math.sqrt(2)))],
}
