"""The Poisson distribution of a count."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import ONE, ZERO, Expr, Op, const, to_expr, where
from morefit.model.arguments import Positive
from morefit.model.counts import Counts


@dataclass(frozen=True, eq=False)
class Poisson(Counts):
    r"""$\mu^x e^{-\mu}/x!$ for whole numbers $x$, the mean being $\mu$; normalised on those in the range of $x$.

    The range ends halfway between whole numbers. Around each the density is a step of width one, so that the integral
    from 1.5 to 4.5 is the probability of 2, 3 and 4. Data must be whole numbers. (scipy.stats.poisson)

    Example: ``Poisson(n, mean=3.5)``
    """

    mean: Positive

    def chance(self, number: Expr) -> Expr:
        mean = to_expr(self.mean)
        return Op.EXP(number * Op.LOG(mean) - mean - Op.LGAMMA(number + 1))

    def chance_below(self, number: Expr) -> Expr:
        return where(number > 0, Op.GAMMAINCC(Op.MAX(number, const(1)), self.mean), ZERO)

    def chance_from(self, number: Expr) -> Expr:
        return where(number > 0, Op.GAMMAINC(Op.MAX(number, const(1)), self.mean), ONE)

    def expected(self) -> Expr:
        return to_expr(self.mean)
