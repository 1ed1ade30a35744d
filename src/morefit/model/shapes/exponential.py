"""The exponential."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, Op, Operand, apply, to_expr, where
from morefit.model.formulas import exprel, sinhrel
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Exponential(Pdf):
    r"""$e^{\alpha x}$ on the range of $x$; uniform for $\alpha = 0$."""

    x: Observable
    slope: Operand

    def density(self) -> Expr:
        return apply(Op.EXP, self.slope * (self.x - self.origin()))

    def integral(self) -> Expr:
        width, slope = self.x.high - self.x.low, to_expr(self.slope)
        side = self.side()
        return width * (exprel(-side * slope * width) if side else sinhrel(0.5 * slope * width))

    def quantile(self, probability: Expr) -> Expr:
        width, slope = self.x.high - self.x.low, to_expr(self.slope)
        falling = self.x.low + apply(Op.LOG, 1 + probability * apply(Op.EXPM1, slope * width)) / slope
        rising = self.x.high + apply(Op.LOG, 1 + (1 - probability) * apply(Op.EXPM1, -slope * width)) / slope
        level = self.x.low + width * probability
        return where(abs(slope * width) < 1e-9, level, where(slope < 0, falling, rising))

    def side(self) -> int:
        """Say which way the limits of the slope let it point: -1, 1, or 0 for both."""
        if isinstance(self.slope, Parameter):
            return -1 if self.slope.high <= 0 else 1 if self.slope.low >= 0 else 0
        return 0

    def origin(self) -> float:
        """Count x from the edge where the density is largest, or from the middle: it must not overflow."""
        return {-1: self.x.low, 1: self.x.high, 0: 0.5 * (self.x.low + self.x.high)}[self.side()]
