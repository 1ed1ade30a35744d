"""The algebra morefit knows: one row per identity, each checked by number in tests/rewrite/test_rules.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from morefit.expr import (
    NARY,
    ONE,
    ZERO,
    Expr,
    Op,
    Trait,
    const,
    leaves,
    make,
    price,
    rebuild,
    remake,
    substitute_all,
    toposort,
    uses,
    where,
    wild,
    with_trait,
)
from morefit.rewrite.rules import (
    EVEN,
    FALSE,
    FRACTION,
    NOT_NEGATIVE,
    NUMBER,
    ODD,
    ODD_HALF,
    TRUE,
    WHOLE,
    Collector,
    Make,
    Rewriter,
    Rule,
    nonnegative,
    positive,
    whole,
)
from morefit.rewrite.share import share

x, y, z, a, b = (wild(name) for name in "xyzab")
LONGEST = 40  # arguments of a sum in a sum, or a product in a product, that is opened again
EVEN_FUNCTIONS, ODD_FUNCTIONS = with_trait(Trait.EVEN), with_trait(Trait.ODD)
HIGH_POWER = 32  # from there on, a power of a number in everyday units may overflow


# ------------------------------------------------------------------ sums and products of any length


def coefficient(term: Expr) -> tuple[float, Expr]:
    """Split ``3 * x * y`` into 3 and ``x * y``."""
    if term.op is Op.MUL and term.args[0].op is Op.CONST:
        rest = term.args[1:]
        return term.args[0].number, rest[0] if len(rest) == 1 else make(Op.MUL, rest)
    return 1.0, term


def scaled(number: float, base: Expr) -> Expr:
    if number == 1.0:
        return base
    return make(Op.MUL, (const(number), *(base.args if base.op is Op.MUL else (base,))))


def collect_terms(node: Expr, new: Make, longest: int = LONGEST) -> Expr | None:
    """Flatten a sum, add its numbers and gather its like terms; a longer sum inside is not opened."""
    total, terms = 0.0, dict[Expr, float]()
    stack = [(1.0, arg) for arg in reversed(node.args)]
    while stack:
        sign, arg = stack.pop()
        number, base = coefficient(arg)
        number *= sign
        if base.op is Op.ADD and abs(number) == 1.0 and len(base.args) <= longest:
            stack += [(number, inner) for inner in reversed(base.args)]
        elif base.op is Op.CONST:
            total += number * base.number
        else:
            terms[base] = terms.get(base, 0.0) + number
    if not all(map(math.isfinite, (total, *terms.values()))):
        return None
    parts = [scaled(number, base) for base, number in terms.items() if number != 0.0]
    if total != 0.0 or not parts:
        parts.append(const(total + 0.0))  # no minus zero
    return parts[0] if len(parts) == 1 else make(Op.ADD, tuple(parts))


def base_and_power(factor: Expr) -> tuple[Expr, float]:
    """Split ``x**3`` into x and 3; a root is the power one half."""
    if factor.op is Op.POW and factor.args[1].op is Op.CONST:
        return factor.args[0], factor.args[1].number
    if factor.op is Op.SQRT:
        return factor.args[0], 0.5
    return factor, 1.0


def may_merge(base: Expr, powers: list[float]) -> bool:
    """Return whether ``x**a * x**b == x**(a + b)`` for every x the left side is defined for, and no other."""
    fractions = [p for p in powers if p != int(p)]
    return not fractions or sum(powers) != int(sum(powers)) or nonnegative(base)


def vanishes(product: Expr) -> bool:
    """Return whether numbers, none of them zero, have a product too small for a double."""
    numbers = [
        n.number
        for arg in product.args
        for n in (arg.args if arg.op is Op.MUL else (arg,))
        if n.op is Op.CONST
    ]
    return 0.0 not in numbers


def collect_factors(node: Expr, new: Make) -> Expr | None:
    """Flatten a product, multiply its numbers, gather its like factors and its exponentials."""
    number, factors, exponents, long = 1.0, dict[Expr, list[Expr]](), list[Expr](), list[Expr]()
    stack = list(reversed(node.args))
    while stack:
        arg = stack.pop()
        if arg.op is Op.MUL and len(arg.args) > LONGEST:
            long.append(arg)
        elif arg.op is Op.MUL:
            stack += reversed(arg.args)
        elif arg.op is Op.CONST:
            number *= arg.number
        elif arg.op is Op.EXP:
            exponents.append(arg.args[0])
        else:
            factors.setdefault(base_and_power(arg)[0], []).append(arg)
    if not math.isfinite(number) or (number == 0.0 and vanishes(node)):
        return None
    if number == 0.0:
        return ZERO
    parts = [make(Op.EXP, (exponents[0],))] if len(exponents) == 1 else []
    if len(exponents) > 1:
        parts.append(new(Op.EXP, (new(Op.ADD, tuple(exponents)),)))
    for base, same_base in factors.items():
        powers = [base_and_power(factor)[1] for factor in same_base]
        together = len(same_base) > 1 and may_merge(base, powers)
        parts += [new(Op.POW, (base, const(sum(powers))))] if together else same_base
    return product(number, parts, long)


def product(number: float, parts: list[Expr], long: list[Expr]) -> Expr | None:
    """Multiply factors that have nothing in common; one that turned into a product or number is opened."""
    if any(p.op is Op.MUL or p.op is Op.CONST for p in parts):
        inner = [q for p in parts for q in (p.args if p.op is Op.MUL else (p,))]
        for p in inner:
            number *= p.number if p.op is Op.CONST else 1.0
        parts = [p for p in inner if p.op is not Op.CONST]
        if not math.isfinite(number):
            return None
    if number == 0.0:
        return ZERO
    parts = parts + long
    if number != 1.0 or not parts:
        parts = [const(number), *parts]
    return parts[0] if len(parts) == 1 else make(Op.MUL, tuple(parts))


def is_plain(node: Expr) -> bool:
    return node.op is Op.CONST and node.number != 0.0


def separable(factors: tuple[Expr, ...], exponent: float) -> list[Expr]:
    """Return the factors that can leave a fractional power of their product.

    One that is positive can. One that may be zero could hide that the rest is negative: 0 * -1 has a root,
    -1 has none. So it needs a rest that is not negative, or a power that is not defined at zero.
    """
    safe = [f for f in factors if nonnegative(f)]
    return safe if len(safe) == len(factors) or exponent < 0 else [f for f in safe if positive(f)]


def without(factors: tuple[Expr, ...], some: list[Expr]) -> tuple[Expr, ...]:
    """Return the factors that are not among some."""
    return tuple(f for f in factors if not any(f is s for s in some))


def power_of_product(node: Expr, new: Make) -> Expr | None:
    """Raise each factor to a whole power, or take what is not negative out of another one."""
    base, exponent = node.args
    if base.op is not Op.MUL or exponent.op is not Op.CONST:
        return None
    if whole(exponent):
        if abs(exponent.number) >= HIGH_POWER:
            return None  # the powers of single factors may overflow though their product does not
        powers = [new(Op.POW, (f, exponent)) for f in base.args]
        if any(f.op is Op.CONST and not is_plain(p) for f, p in zip(base.args, powers, strict=True)):
            return None  # the power of the number alone is too large or too small for a double
        return new(Op.MUL, tuple(powers))
    safe = separable(base.args, exponent.number)
    if not safe:
        return None
    rest = without(base.args, safe)
    outside = [new(Op.POW, (f, exponent)) for f in safe]
    inside = [new(Op.POW, (new(Op.MUL, rest), exponent))] if rest else []
    return new(Op.MUL, (*outside, *inside))


def root_of_product(node: Expr, new: Make) -> Expr | None:
    """Take numbers and what is not negative out of a root where that costs nothing."""
    (base,) = node.args
    if base.op is not Op.MUL:
        return None
    free = [f for f in separable(base.args, 0.5) if positive(f) or base_and_power(f)[1] % 2 == 0]
    if not free:
        return None
    rest = without(base.args, free)
    inside = (new(Op.SQRT, (new(Op.MUL, rest),)),) if rest else ()
    return new(Op.MUL, (*(new(Op.SQRT, (f,)) for f in free), *inside))


def open_logarithm(node: Expr, new: Make) -> Expr | None:
    """Turn the logarithm of a product into a sum for the factors known to be positive."""
    (base,) = node.args
    if base.op is not Op.MUL:
        return None
    safe = [f for f in base.args if positive(f) or (f.op is Op.POW and positive(f.args[0]))]
    rest = without(base.args, safe)
    if not safe:
        return None
    terms = [new(Op.LOG, (f,)) for f in safe]
    return new(Op.ADD, (*terms, new(Op.LOG, (new(Op.MUL, rest),))) if rest else tuple(terms))


def negative_argument(node: Expr, new: Make) -> Expr | None:
    """Take a minus sign out of an odd or even function."""
    number, base = coefficient(node.args[0])
    if number >= 0:
        return None
    inner = new(node.op, (scaled(-number, base),))
    return inner if node.op in EVEN_FUNCTIONS else new(Op.MUL, (const(-1), inner))


ALGEBRA: list[Rule | Collector] = [
    Collector("gather terms", Op.ADD, collect_terms, (
        (2 * x + (3 * x + 1) + 4, 5 * x + 5), (x - x, ZERO), (x + y - (x + y), ZERO), (x - (y - x), 2 * x - y))),
    Collector("gather factors", Op.MUL, collect_factors, (
        (2 * x * (3 * x), 6 * x**2), (x**3 * x**-1, x**2), (x * 0, ZERO), (x**0.5 * x, x**1.5),
        (Op.EXP(x) * Op.EXP(y), Op.EXP(x + y)))),
    Collector("power of a product", Op.POW, power_of_product, (
        ((2 * x) ** 3, 8 * x**3), ((x / y) ** 2, x**2 * y**-2), ((x * Op.EXP(y)) ** 0.5,
         Op.SQRT(x) * Op.EXP(0.5 * y)))),
    Collector("root of a product", Op.SQRT, root_of_product, (
        (Op.SQRT(4 * x), 2 * Op.SQRT(x)), (Op.SQRT(Op.EXP(x) * y**2), Op.EXP(0.5 * x) * Op.ABS(y)))),
    Collector("logarithm of a product", Op.LOG, open_logarithm, (
        (Op.LOG(Op.EXP(x) * y), x + Op.LOG(y)), (Op.LOG(2 * y), math.log(2) + Op.LOG(y)))),
    *(Collector(f"minus sign out of {op.name.lower()}", op, negative_argument, ((op(-x), op(x)),))
      for op in EVEN_FUNCTIONS),
    *(Collector(f"minus sign out of {op.name.lower()}", op, negative_argument, ((op(-x), -op(x)),))
      for op in ODD_FUNCTIONS),
    Rule("name of an expression", Op.NAMED(x), x),
    Rule("power one", x**1, x),
    Rule("power zero", x**0, ONE),
    Rule("power of one", ONE**x, ONE),
    Rule("power one half", x**0.5, Op.SQRT(x)),
    Rule("power of a whole power", (x**a) ** b, x ** (a * b), {a: WHOLE, b: WHOLE}),
    Rule("power of a power", (x**a) ** b, x ** (a * b), {x: NOT_NEGATIVE, a: NUMBER, b: NUMBER}),
    Rule("odd power of a root", Op.SQRT(x) ** b, x ** (b * 0.5), {b: ODD_HALF}),
    Rule("power of a root", Op.SQRT(x) ** b, x ** (b * 0.5), {x: NOT_NEGATIVE, b: NUMBER}),
    Rule("power of an exponential", Op.EXP(x) ** y, Op.EXP(x * y)),
    Rule("even power of a size", Op.ABS(x) ** b, x**b, {b: EVEN}),
    Rule("root of an exponential", Op.SQRT(Op.EXP(x)), Op.EXP(0.5 * x)),
    Rule("root of a square", Op.SQRT(x**2), Op.ABS(x)),
    Rule("root of an even power", Op.SQRT(x**b), Op.ABS(x) ** (0.5 * b), {b: EVEN}),
    Rule("exponential of a logarithm", Op.EXP(Op.LOG(x)), x, {x: NOT_NEGATIVE}),
    Rule("logarithm of an exponential", Op.LOG(Op.EXP(x)), x),
    Rule("logarithm of a power of two", Op.LOG(Op.EXP2(x)), math.log(2) * x),
    Rule("logarithm of a power", Op.LOG(x**a), a * Op.LOG(x), {x: NOT_NEGATIVE, a: NUMBER}),
    Rule("logarithm of an odd power", Op.LOG(x**a), a * Op.LOG(x), {a: ODD}),
    Rule("logarithm of a fractional power", Op.LOG(x**a), a * Op.LOG(x), {a: FRACTION}),
    Rule("logarithm of a root", Op.LOG(Op.SQRT(x)), 0.5 * Op.LOG(x)),
    Rule("log1p of expm1", Op.LOG1P(Op.EXPM1(x)), x),
    Rule("size of what is not negative", Op.ABS(x), x, {x: NOT_NEGATIVE}),
    Rule("smaller of two alike", Op.MIN(x, x), x),
    Rule("larger of two alike", Op.MAX(x, x), x),
    Rule("less than itself", Op.LESS(x, x), ZERO),
    Rule("known choice, yes", where(a, x, y), x, {a: TRUE}),
    Rule("known choice, no", where(a, x, y), y, {a: FALSE}),
    Rule("equal branches", where(z, x, x), x),
]  # fmt: skip

NESTED_ALGEBRA = [
    Collector(
        "gather terms",
        Op.ADD,
        partial(collect_terms, longest=0),
        ((2 * x + 3 * x + 1 + 4, 5 * x + 5), (x - x, ZERO)),
    ),
    *(rule for rule in ALGEBRA if not (isinstance(rule, Collector) and rule.op is Op.ADD)),
]


def simplifier() -> Rewriter:
    """Return a fresh rewriter for this algebra."""
    return Rewriter(ALGEBRA)


def normalise(*roots: Expr) -> tuple[Expr, ...]:
    """Apply the algebra until nothing changes: sums and products come out flat."""
    return rebuild(open_chains(roots), simplifier().rebuild)


def open_chains(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Flatten sums of sums and products of products that nothing else uses.

    The algebra would do it too, one level at a time: for a sum of n terms built one by one, n**2 / 2 steps.
    """
    count, order = uses(*roots), toposort(*roots)
    inner = {a for n in order if n.op in NARY for a in n.args if a.op is n.op and count[a] == 1}
    done: dict[Expr, Expr] = {}
    for node in order:
        if node in inner:
            continue
        parts: list[Expr] = []
        stack = list(reversed(node.args))
        while stack:
            arg = stack.pop()
            if node.op in NARY and arg in inner and arg.op is node.op:
                stack += reversed(arg.args)
            else:
                parts.append(done[arg])
        done[node] = remake(node, tuple(parts))
    return tuple(done[r] for r in roots)


def simplify_all(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return equivalent expressions of together at most the same price."""
    better = share(normalise(*roots))
    return better if price(*better) <= price(*roots) else roots


def simplify(root: Expr) -> Expr:
    """Return an equivalent expression of at most the same price."""
    return simplify_all((root,))[0]


def bind(roots: Sequence[Expr], values: Mapping[str, float]) -> tuple[Expr, ...]:
    """Replace the scalars named in ``values`` by numbers and simplify what is left."""
    known = {leaf: const(values[leaf.name]) for leaf in leaves(Op.SCALAR, *roots) if leaf.name in values}
    return normalise(*substitute_all(roots, known))
