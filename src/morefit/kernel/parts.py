"""The parts of what a loop sums: a density under a logarithm with its derivatives, divided by it, and the families among these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from morefit.dataclass import dataclass
from morefit.expr import MINUS_ONE, ONE, ZERO, Expr, Op, make, toposort
from morefit.kernel.families import Family, factors_of
from morefit.kernel.sums import product, total
from morefit.rewrite.share import share


@dataclass(frozen=True)
class Part:
    """One density under a logarithm, or the plain part: its value and derivatives, ready for the loop.

    The second derivatives of squares are without the products of first derivatives.
    """

    value: Expr
    first: tuple[Expr, ...]
    second: tuple[Expr, ...]


@dataclass(frozen=True)
class Square:
    """A square in a density: its factor, and the first derivatives of what is squared."""

    factor: Expr
    first: tuple[Expr, ...]


def divided(part: Part, others: Sequence[Expr] = ()) -> tuple[Part, list[Expr]]:
    """Divide the derivatives of a density, and others, by it; the quotients share what they have in common.

    A derivative that is, but for a number, a product that the density needs anyway is not computed again: this is
    so for all parameters in which a density is linear.
    """
    inverse = make(Op.POW, (part.value, MINUS_ONE))
    there = {frozenset(Counter(factors_of(n)).items()): n for n in toposort(part.value) if n.op is Op.MUL}

    def quotient(derivative: Expr) -> Expr:
        if derivative is ZERO or part.value is ONE:
            return derivative
        factors = factors_of(derivative)
        numbers = [f for f in factors if f.op is Op.CONST]
        rest = [f for f in factors if f.op is not Op.CONST]
        known = there.get(frozenset(Counter(rest).items()))
        return make(Op.MUL, (inverse, *numbers, *(rest if known is None else [known])))

    value, *rest = share((part.value, *(quotient(d) for d in (*part.first, *part.second, *others))))
    first, both = len(part.first), len(part.first) + len(part.second)
    return Part(value, tuple(rest[:first]), tuple(rest[first:both])), rest[both:]


@dataclass(frozen=True)
class Members:
    """A family of parameters in the loop: the share of its factor in the density, and the slopes."""

    family: Family
    ratio: Expr
    slopes: Mapping[int, Expr]
    crossed: Mapping[tuple[int, int], Expr]  # factors of slopes, divided by the density

    def pair(self, i: int, j: int, first: Sequence[Expr]) -> Expr | None:
        """Return the second derivative of the logarithm by two parameters, but for what is summed apart; None if it is not known."""
        if (i, j) in self.family.pairs:
            spread = total(self.ratio, product(MINUS_ONE, self.ratio, self.ratio))
            return product(product(spread, self.slopes[i]), self.slopes[j])
        for member, other in ((i, j), (j, i)):
            if (member, other) in self.crossed:
                factor = total(self.crossed[member, other], product(MINUS_ONE, self.ratio, first[other]))
                return product(factor, self.slopes[member])
        return None
