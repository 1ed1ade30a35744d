"""Moments: sums over events of the terms that derivatives are made of, scaled by functions of parameters once per call.

The derivatives of a Gaussian in a mixture are polynomials in the distance d from its mean, times its share w of the density: all of
them together are made of the sums of w, w d, ..., w d**4. Where derivatives share terms like this, the terms are summed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import field

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, const, make, toposort
from morefit.kernel.sums import product, total
from morefit.rewrite.simplify import base_and_power
from morefit.rewrite.stages import Depends, depends_on

MAX_TERMS = 16  # of a derivative
MAX_POWER = 4  # of a product, to be multiplied out
POWER_PRICE = 4  # operations, of a power or a quotient
SUM_PRICE = 2  # operations, of a sum more: registers hold few of them

Monomial = frozenset[tuple[Expr, float]]  # powers of what depends on the event
Polynomial = Mapping[Monomial, Expr]  # coefficients, which depend on parameters alone
NOTHING: Monomial = frozenset()


@dataclass(frozen=True)
class Moments:
    """Terms of an event to be summed, and the derivatives that are made of these sums: of each, which sums and coefficients."""

    sums: tuple[Expr, ...] = ()
    made_of: Mapping[Expr, Sequence[tuple[int, Expr]]] = field(default_factory=dict)


def find_moments(rows: Sequence[Expr], terms: Sequence[Expr], others: Sequence[Expr]) -> Moments:
    """Find derivatives that take fewer operations as moments: those that are a sum of their own, and terms of other sums.

    ``others`` are computed for each event in any case.
    """
    wanted = dict.fromkeys((*rows, *terms))
    own, all_others = set(rows), toposort(*others)
    known = polynomials((*wanted, *others))
    there = {
        monomial: node
        for node in all_others
        if len(known[node]) == 1
        for monomial, coefficient in known[node].items()
        if coefficient is ONE
    }
    made_of = {d: known[d] for d in wanted if NOTHING not in known[d]}
    once_per_call = {
        node for node, polynomial in known.items() if NOTHING in polynomial and len(polynomial) == 1
    }
    computed = {*all_others, *once_per_call}
    sums: list[Expr] = []
    chosen: dict[Expr, list[tuple[int, Expr]]] = {}
    for derivatives in groups_of(made_of):
        monomials = sorted_by_degree({m for d in derivatives for m in made_of[d]})
        products = multiplied(monomials, there)
        before = operations(derivatives, computed)
        after = operations([products[m] for m in monomials], computed)
        more = len(monomials) - sum(d in own for d in derivatives)
        if before - after > SUM_PRICE * more:
            place = {m: k for k, m in enumerate(monomials, len(sums))}
            sums += [products[m] for m in monomials]
            chosen |= {d: [(place[m], by) for m, by in made_of[d].items()] for d in derivatives}
    return Moments(tuple(sums), chosen)


def operations(roots: Sequence[Expr], done: Container[Expr]) -> int:
    """Count what an event takes to compute some expressions besides others, and to add them to sums: a product joins the addition after it."""
    count, waiting = sum(root in done or root.op is not Op.MUL for root in roots), list(roots)
    seen: set[Expr] = set()
    while waiting:
        node = waiting.pop()
        if node in done or node in seen:
            continue
        seen.add(node)
        waiting += node.args
        if node.op in (Op.ADD, Op.MUL):
            count += len(node.args) - 1
        if node.op is Op.ADD:
            count -= min(sum(arg.op is Op.MUL and arg not in done for arg in node.args), len(node.args) - 1)
        if node.op is Op.POW:
            count += POWER_PRICE
    return count


def groups_of(made_of: Mapping[Expr, Polynomial]) -> list[list[Expr]]:
    """Return derivatives that share terms, directly or through others, together."""
    joined = {derivative: derivative for derivative in made_of}

    def first_of(derivative: Expr) -> Expr:
        while (other := joined[derivative]) is not derivative:
            joined[derivative] = joined[other]
            derivative = other
        return derivative

    having: dict[Monomial, Expr] = {}
    for derivative, polynomial in made_of.items():
        for monomial in polynomial:
            joined[first_of(derivative)] = first_of(having.setdefault(monomial, derivative))
    groups: dict[Expr, list[Expr]] = {}
    for derivative in made_of:
        groups.setdefault(first_of(derivative), []).append(derivative)
    return list(groups.values())


def degree(monomial: Monomial) -> float:
    return sum(abs(power) for _, power in monomial)


def sorted_by_degree(monomials: set[Monomial]) -> list[Monomial]:
    return sorted(monomials, key=lambda m: (degree(m), sorted((base.order, power) for base, power in m)))


def multiplied(monomials: Sequence[Monomial], there: Mapping[Monomial, Expr]) -> dict[Monomial, Expr]:
    """Return the products of an event, each of one with less times a factor if possible; the first ones have least."""
    products = dict(there)
    for monomial in monomials:
        if monomial not in products:
            pairs = [pair for pair in divisions(monomial) if pair[0] in products]
            pair = next((p for p in pairs if p[1] in products), pairs[0] if pairs else None)
            products[monomial] = (
                product_of(monomial)
                if pair is None
                else make(Op.MUL, tuple(products[f] if f in products else product_of(f) for f in pair))
            )
    return products


def divisions(monomial: Monomial) -> list[tuple[Monomial, Monomial]]:
    """Return ways to divide a product by one of its factors, or by all of it: those that leave most first."""
    ordered = sorted(monomial, key=lambda f: f[0].order)
    one = [(base, power, math.copysign(1.0, power)) for base, power in ordered]
    whole = [(base, power, power) for base, power in ordered if abs(power) > 1]
    return [
        (over(monomial, base, part), frozenset([(base, part)]))
        for base, power, part in one + whole
        if len(monomial) > 1 or power != part
    ]


def over(monomial: Monomial, base: Expr, part: float) -> Monomial:
    """Divide a product by a power of one of its factors."""
    powers = dict(monomial)
    left = powers.pop(base) - part
    return frozenset((powers | {base: left} if left else powers).items())


def product_of(monomial: Monomial) -> Expr:
    ordered = sorted(monomial, key=lambda f: f[0].order)
    return product(*(base if p == 1.0 else make(Op.POW, (base, const(p))) for base, p in ordered))


def polynomials(roots: Sequence[Expr]) -> dict[Expr, Polynomial]:
    """Return every node below the roots as a polynomial in what depends on the event.

    A sum is multiplied out at most once, with no other and not with itself: its terms may be larger than the sum, and their
    products larger than its square. A sum in which something depends on the event alone never is: the difference of an
    observable and a parameter is nearly exact.
    """
    known: dict[Expr, Polynomial] = {}
    depends = depends_on(*roots)
    for node in toposort(*roots):
        if not depends[node] & Depends.EVENT:
            known[node] = {NOTHING: node}
            continue
        opened = None
        if depends[node] is Depends.BOTH:
            if node.op is Op.ADD and not any(depends[arg] is Depends.EVENT for arg in node.args):
                opened = sum_of([known[arg] for arg in node.args])
            elif node.op is Op.MUL:
                sums = sum(len(known[arg]) > 1 for arg in node.args)
                opened = product_of_all(
                    [known[arg] if sums == 1 or len(known[arg]) == 1 else alone(arg) for arg in node.args]
                )
            elif node.op is Op.POW:
                base, power = factor_of(node)
                if 1 < power <= MAX_POWER and len(known[base]) == 1:
                    opened = product_of_all([known[base]] * int(power))
        known[node] = alone(node) if opened is None else opened
    return known


def sum_of(polynomials: Sequence[Polynomial]) -> Polynomial | None:
    coefficients: dict[Monomial, list[Expr]] = {}
    for polynomial in polynomials:
        for monomial, coefficient in polynomial.items():
            coefficients.setdefault(monomial, []).append(coefficient)
    if len(coefficients) > MAX_TERMS:
        return None
    return {m: total(*each) for m, each in coefficients.items()}


def product_of_all(polynomials: Sequence[Polynomial]) -> Polynomial | None:
    whole: Polynomial = {NOTHING: ONE}
    for polynomial in polynomials:
        pieces = [{times(a, b): product(x, y)} for a, x in whole.items() for b, y in polynomial.items()]
        joined = sum_of(pieces)
        if joined is None:
            return None
        whole = joined
    return whole


def times(one: Monomial, other: Monomial) -> Monomial:
    powers = dict(one)
    for base, power in other:
        powers[base] = powers.get(base, 0.0) + power
    return frozenset((base, power) for base, power in powers.items() if power)


def factor_of(node: Expr) -> tuple[Expr, float]:
    """Split a whole power into its base and the power: those of a base that is negative merge as well."""
    base, power = base_and_power(node)
    return (base, power) if power == int(power) else (node, 1.0)


def alone(node: Expr) -> Polynomial:
    return {frozenset([factor_of(node)]): ONE}
