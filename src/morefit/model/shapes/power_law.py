"""The power law."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from morefit.expr import Expr, Op, const, to_expr
from morefit.model.arguments import Number
from morefit.model.formulas import TINY, exprel, log1prel
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class PowerLaw(Pdf):
    r"""$x^{n}$ on a range of positive $x$; the exponent may have any sign.

    (scipy.stats.truncpareto for negative ones)

    Example: ``PowerLaw(x, exponent=-2.5)``
    """

    defined_on = (TINY, inf)
    x: Observable
    exponent: Number

    def density(self) -> Expr:
        return Op.EXP(to_expr(self.exponent) * Op.LOG(self.x / self.x.high))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # x**n from low on: low**(n + 1) times the integral of exp((n + 1) u) over u = log(x / low)
        power, length = to_expr(self.exponent) + 1, Op.LOG1P((high - low) / low)
        return low * Op.EXP(self.exponent * Op.LOG(low / self.x.high)) * length * exprel(power * length)

    def quantile(self, probability: Expr) -> Expr:
        # with L = log(high / low): exp((n + 1) u) = 1 + p (exp((n + 1) L) - 1), written without dividing by n + 1
        power, low = to_expr(self.exponent) + 1, const(self.x.low)
        length = Op.LOG(const(self.x.high) / low)
        part = probability * length * exprel(power * length)
        return low * Op.EXP(part * log1prel(power * part))
