"""The power law."""

from __future__ import annotations

import math

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, to_expr, where
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

    defined_on = (TINY, math.inf)
    x: Observable
    exponent: Number

    def density(self) -> Expr:
        n = to_expr(self.exponent)
        return Op.EXP(n * (Op.LOG(self.x / self.x.high) - self.log_top()))

    def log_top(self) -> Expr:
        """Return the logarithm of the end of the range where the density is largest, in units of the upper one."""
        return where(to_expr(self.exponent) < 0, math.log(self.x.low / self.x.high), 0)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # over u = log(x), from the end where exp((n + 1) u) is largest
        n, length = to_expr(self.exponent), Op.LOG1P((high - low) / low)
        end, fall = where(n > -1, high, low), where(n > -1, -(n + 1), n + 1)
        height = end * Op.EXP(n * (Op.LOG(end / self.x.high) - self.log_top()))
        return height * length * exprel(fall * length)

    def quantile(self, probability: Expr) -> Expr:
        # from that end: exp((n + 1) u) = 1 + p (exp((n + 1) L) - 1) with L = log(low / high), without dividing by n + 1
        n, length = to_expr(self.exponent), math.log(self.x.high / self.x.low)
        rising = n > -1
        end, side = where(rising, self.x.high, self.x.low), where(rising, -1, 1)
        power = side * (n + 1)
        part = where(rising, 1 - probability, probability) * length * exprel(power * length)
        return end * Op.EXP(side * part * log1prel(power * part))
