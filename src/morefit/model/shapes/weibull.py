"""The Weibull density."""

from __future__ import annotations

from math import inf

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Positive
from morefit.model.formulas import TINY
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

FARTHEST = 50.0  # in the logarithm of u**k: nothing is left of the density from there on


@dataclass(frozen=True, eq=False)
class Weibull(Pdf):
    r"""$u^{k-1}e^{-u^k}$ with $u=x/\lambda$ for positive $x$, the shape $k$ and the scale $\lambda$.

    (W. Weibull, J. Appl. Mech. 18 (1951) 293; scipy.stats.weibull_min)

    Example: ``Weibull(x, shape=1.7, scale=4.0)``
    """

    defined_on = (0, inf)
    x: Observable
    shape: Positive
    scale: Positive

    def density(self) -> Expr:
        u, shape = Op.LOG(self.x / self.scale), to_expr(self.shape)
        return Op.EXP((shape - 1) * u - Op.EXP(shape * u))

    def ends(self, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        """Return u**k at one end, and how much it grows to the other; exact for ends close to each other."""
        start, shape = Op.MAX(low, const(TINY)), to_expr(self.shape)
        logarithms = (shape * Op.LOG(end / self.scale) for end in (start, high))
        first, last = (Op.EXP(Op.MIN(u, const(FARTHEST))) for u in logarithms)
        first = where(low > 0, first, 0)  # a small power of the smallest number is not small
        close = first * Op.EXPM1(shape * Op.LOG1P((high - start) / start))
        return first, where(2 * start > high, close, last - first)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        first, growth = self.ends(low, high)
        return -to_expr(self.scale) / to_expr(self.shape) * Op.EXP(-first) * Op.EXPM1(-growth)

    def quantile(self, probability: Expr) -> Expr:
        first, growth = self.ends(const(self.x.low), const(self.x.high))
        power = first - Op.LOG1P(probability * Op.EXPM1(-growth))
        return to_expr(self.scale) * Op.EXP(Op.LOG(power) / self.shape)
