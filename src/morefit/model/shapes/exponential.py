"""The exponential."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Number
from morefit.model.formulas import exprel
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf

SAFE = 200.0  # e to this power, cubed as in a second derivative, is far from overflowing


@dataclass(frozen=True, eq=False)
class Exponential(Pdf):
    r"""$e^{\alpha x}$ on the range of $x$; uniform for $\alpha = 0$.

    Example: ``Exponential(m, slope=-1.5)``
    """

    x: Observable
    slope: Number

    def density(self) -> Expr:
        # counted from an edge where it is largest, or nearly so, to avoid overflow
        edge = where(self.side() < 0, self.x.low, self.x.high)
        return Op.EXP(to_expr(self.slope) * (self.x - edge))

    def integral(self) -> Expr:
        width = self.x.high - self.x.low
        return width * exprel(-self.side() * to_expr(self.slope) * width)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        edge, near = where(self.side() < 0, self.x.low, self.x.high), where(self.side() < 0, low, high)
        slope, width = to_expr(self.slope), high - low
        return Op.EXP(slope * (near - edge)) * width * exprel(-self.side() * slope * width)

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        slope = to_expr(self.slope)
        return Op.EXP(slope * (0.5 * slope * sigma**2 - mean)), self

    def quantile(self, probability: Expr) -> Expr:
        width, slope = self.x.high - self.x.low, to_expr(self.slope)
        falling = self.x.low + Op.LOG(1 + probability * Op.EXPM1(slope * width)) / slope
        rising = self.x.high + Op.LOG(1 + (1 - probability) * Op.EXPM1(-slope * width)) / slope
        level = self.x.low + width * probability
        return where(abs(slope * width) < 1e-9, level, where(slope < 0, falling, rising))

    def side(self) -> Expr:
        """Return -1 to count from the lower edge, 1 from the upper; a choice where the limits allow both ways."""
        width = self.x.high - self.x.low
        if isinstance(self.slope, Parameter) and self.slope.high * width <= SAFE:
            return const(-1)
        if isinstance(self.slope, Parameter) and self.slope.low * width >= -SAFE:
            return const(1)
        return where(to_expr(self.slope) < 0, -1, 1)
