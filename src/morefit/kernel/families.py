"""Families: parameters that change a density through one factor; its second derivatives by them take few sums.

The derivatives of a peak f * exp(u) are f * exp(u) * u_i: a factor F that they have in common, times slopes A_i. With
r = F / density, the Hessian of the logarithm is r * u_ij + (r - r**2) * A_i * A_j: one product for each pair. And the u_ij of a
peak are often made of the same few terms of the event, with other coefficients: then the terms are summed, and scaled once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice

from morefit.dataclass import dataclass
from morefit.expr import ZERO, Expr, Op, const, where
from morefit.rewrite.rules import Rewriter
from morefit.rewrite.simplify import base_and_power
from morefit.rewrite.stages import Depends, depends_on

MAX_SUMS = 64  # different terms that the second derivatives of a family may be made of
MAX_TERMS = 128  # of one second derivative
# times as many terms in the second derivatives as there are different ones, for these to be summed
MIN_SPARED = 2.0
SAME = 1e-12  # relative difference of equal coefficients

Powers = tuple[tuple[Expr, float], ...]  # bases and their powers
Region = tuple[tuple[Expr, int], ...]  # conditions, and for each which side of a choice: 1 or 2
Term = tuple[Region, frozenset[tuple[Expr, float]]]  # of an event: where it counts, and powers


@dataclass(frozen=True)
class Product:
    """A number times powers of expressions."""

    number: float
    powers: Mapping[Expr, float]

    @classmethod
    def of(cls, node: Expr) -> Product:
        number, powers = 1.0, dict[Expr, float]()
        for factor in factors_of(node):
            if factor.op is Op.CONST:
                number *= factor.number
            else:
                base, power = base_and_power(factor)
                powers[base] = powers.get(base, 0.0) + power
        return cls(number, {base: power for base, power in powers.items() if power})

    def has(self, other: Product) -> bool:
        """Return whether dividing by another product leaves no new factor."""
        mine = ((self.powers.get(base, 0.0), power) for base, power in other.powers.items())
        return other.number != 0 and all(own * power > 0 and abs(own) >= abs(power) for own, power in mine)

    def over(self, other: Product) -> Product:
        """Divide by another product."""
        powers = dict(self.powers)
        for base, power in other.powers.items():
            powers[base] = powers.get(base, 0.0) - power
        return Product(self.number / other.number, {b: p for b, p in powers.items() if p})

    def times(self, other: Product) -> Product:
        powers = dict(self.powers)
        for base, power in other.powers.items():
            powers[base] = powers.get(base, 0.0) + power
        return Product(self.number * other.number, {b: p for b, p in powers.items() if p})

    def is_like(self, other: Product) -> bool:
        near = abs(self.number - other.number) <= SAME * abs(other.number)
        return near and self.powers == other.powers

    def built(self, new: Rewriter) -> Expr:
        factors = [base if p == 1.0 else new(Op.POW, (base, const(p))) for base, p in self.powers.items()]
        return new(Op.MUL, (const(self.number), *factors)) if factors else const(self.number)


def factors_of(node: Expr) -> list[Expr]:
    """Open a product, and products inside it."""
    factors: list[Expr] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if top.op is Op.MUL:
            stack += top.args
        else:
            factors.append(top)
    return factors


def addends_of(node: Expr) -> tuple[Expr, ...]:
    return node.args if node.op is Op.ADD else () if node is ZERO else (node,)


@dataclass
class Family:
    """Where the factor of a family, its slopes and the terms of its second derivatives stand among the terms of all."""

    factor: int
    slopes: dict[int, int]  # by parameter
    # with the product of slopes in their second derivative
    pairs: set[tuple[int, int]] = field(default_factory=set)
    # a member and another: factor of the slope
    crossed: dict[tuple[int, int], int] = field(default_factory=dict)
    # terms, with conditions
    sums: list[tuple[int, tuple[tuple[int, int], ...]]] = field(default_factory=list)
    scaled: list[tuple[int, int, int]] = field(default_factory=list)  # place in the Hessian, sum, coefficient


@dataclass
class Families:
    """The families of a density, and the terms that they add to those of the loop."""

    members: list[Family] = field(default_factory=list)
    terms: dict[Expr, int] = field(default_factory=dict)

    def place(self, term: Expr) -> int:
        """Return where a term stands, which is added if it is new."""
        return self.terms.setdefault(term, len(self.terms))


class Finder:
    """Finds families among the derivatives of a density; ``rest`` are second derivatives without what they take care of."""

    def __init__(self, first: Sequence[Expr], second: Sequence[Expr], new: Rewriter) -> None:
        self.first, self.rest, self.new = first, list(second), new
        self.depends = depends_on(*first, *second)
        self.families = Families()

    def find(self) -> Families:
        groups: dict[object, tuple[Product, dict[int, Product]]] = {}
        for i in range(len(self.first)):
            if split := self.split(i):
                factor, slope = split
                key = factor.number, frozenset(factor.powers.items())
                groups.setdefault(key, (factor, {}))[1][i] = slope
        for factor, slopes in groups.values():
            self.add(factor, slopes)
        return self.families

    def varies(self, node: Expr) -> bool:
        return bool(self.depends[node] & Depends.EVENT)

    def split(self, i: int) -> tuple[Product, Product] | None:
        """Split a first derivative into factor and slope, if the second one has the slope squared."""
        if not self.first[i].args or self.first[i].op is Op.ADD:
            return None
        whole = Product.of(self.first[i])
        for term in map(Product.of, addends_of(self.rest[triangle(i, i)])):
            if whole.number and term.has(whole) and whole.has(slope := term.over(whole)):
                factor = whole.over(slope)
                if all(any(map(self.varies, one.powers)) for one in (slope, factor)):
                    return factor, slope
        return None

    def add(self, factor: Product, slopes: Mapping[int, Product]) -> None:
        """Add a family; what it takes care of is taken out of the second derivatives."""
        place, new = self.families.place, self.new
        family = Family(place(factor.built(new)), {i: place(s.built(new)) for i, s in slopes.items()})
        inner: dict[int, list[Product]] = {}  # what is left of second derivatives, without the factor
        for i in slopes:
            for j in (k for k in slopes if k <= i):
                at = triangle(i, j)
                wanted = factor.times(slopes[i]).times(slopes[j])
                terms = [Product.of(term) for term in addends_of(self.rest[at])]
                others = [term for term in terms if not term.is_like(wanted)]
                if len(others) == len(terms) - 1:
                    family.pairs.add((i, j))
                    self.rest[at] = new(Op.ADD, tuple(t.built(new) for t in others)) if others else ZERO
                    if all(term.has(factor) for term in others):
                        inner[at] = [term.over(factor) for term in others]
        self.cross(family, slopes)
        self.open(family, inner)
        self.families.members.append(family)

    def cross(self, family: Family, slopes: Mapping[int, Product]) -> None:
        """Take the slopes out of second derivatives by one member and one other parameter."""
        for i, slope in slopes.items():
            for j in (k for k in range(len(self.first)) if k not in slopes):
                at = triangle(max(i, j), min(i, j))
                term = Product.of(self.rest[at])
                if self.rest[at].args and self.rest[at].op is not Op.ADD and term.has(slope):
                    family.crossed[i, j] = self.families.place(term.over(slope).built(self.new))
                    self.rest[at] = ZERO

    def open(self, family: Family, inner: Mapping[int, Sequence[Product]]) -> None:
        """Sum the terms that second derivatives are made of, if they are few."""
        rows: dict[int, dict[Term, list[Expr]]] = {}
        for at, products in inner.items():
            opened = list(islice((t for product in products for t in self.opened(product)), MAX_TERMS + 1))
            if len(opened) > MAX_TERMS:
                return
            rows[at] = {}
            for weight, term in opened:
                rows[at].setdefault(term, []).append(weight)
        different = dict.fromkeys(term for row in rows.values() for term in row)
        if not different or len(different) > MAX_SUMS:
            return
        if sum(map(len, rows.values())) < MIN_SPARED * len(different):
            return
        place, new = self.families.place, self.new
        for region, powers in different:
            conditions = tuple((place(condition), side) for condition, side in region)
            family.sums.append((place(Product(1.0, dict(powers)).built(new)), conditions))
        numbers = {term: k for k, term in enumerate(different)}
        for at, row in rows.items():
            self.rest[at] = ZERO
            weights = ((term, new(Op.ADD, tuple(parts))) for term, parts in row.items())
            family.scaled += [(at, numbers[t], place(weight)) for t, weight in weights if weight is not ZERO]

    def opened(self, product: Product) -> Iterator[tuple[Expr, Term]]:
        """Multiply a product out: weights that depend on parameters only, and terms of the event."""
        stack: list[tuple[Powers, tuple[Expr, ...], Region, dict[Expr, float]]] = [
            (tuple(product.powers.items()), (const(product.number),), (), {})
        ]
        while stack:
            waiting, weight, region, powers = stack.pop()
            if not waiting:
                yield self.new(Op.MUL, weight), (region, frozenset((b, p) for b, p in powers.items() if p))
                continue
            (node, power), *others = waiting
            whole = power == int(power)
            if not self.varies(node):
                factor = node if power == 1.0 else self.new(Op.POW, (node, const(power)))
                stack.append((tuple(others), (*weight, factor), region, powers))
            elif node.op is Op.MUL and whole:
                inside = ((base, p * power) for base, p in map(base_and_power, node.args))
                stack.append(((*inside, *others), weight, region, powers))
            elif node.op is Op.ADD and power in (1.0, 2.0) and self.may_open(node):
                again = ((node, 1.0),) * (power == 2.0)
                each = ((base_and_power(arg), *again, *others) for arg in node.args)
                stack += [(more, weight, region, powers) for more in each]
            elif node.op is Op.WHERE and whole and power > 0 and self.varies(node.args[0]):
                known = [side for condition, side in region if condition is node.args[0]]
                for side in (side for side in known or (1, 2) if node.args[side] is not ZERO):
                    base, p = base_and_power(node.args[side])
                    here = region if known else (*region, (node.args[0], side))
                    stack.append((((base, p * power), *others), weight, here, powers))
            else:
                stack.append((tuple(others), weight, region, {**powers, node: powers.get(node, 0.0) + power}))

    def may_open(self, node: Expr) -> bool:
        """Return whether no term of a sum has a factor of the event alone.

        The difference of an observable and a parameter is nearly exact; multiplied out, it would lose digits.
        """
        factors = [factor for term in node.args for factor in factors_of(term)]
        return not any(self.depends[factor] is Depends.EVENT for factor in factors)


def triangle(i: int, j: int) -> int:
    """Return where a pair stands in the lower triangle, row by row."""
    return i * (i + 1) // 2 + j


def masked(term: Expr, region: Sequence[tuple[Expr, int]]) -> Expr:
    """Return a term where its conditions hold, else zero."""
    for condition, side in reversed(region):
        term = where(condition, term, ZERO) if side == 1 else where(condition, ZERO, term)
    return term
