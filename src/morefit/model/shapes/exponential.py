"""The exponential."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, Op, Operand, apply, to_expr, where
from morefit.model.formulas import exprel
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Exponential(Pdf):
    r"""$e^{\alpha x}$ on the range of $x$; uniform for $\alpha = 0$."""

    x: Observable
    slope: Operand

    def density(self) -> Expr:
        # counted from the edge where it is largest, so that neither it nor its integral overflows
        slope = to_expr(self.slope)
        return apply(Op.EXP, slope * (self.x - where(slope < 0, self.x.low, self.x.high)))

    def integral(self) -> Expr:
        width = self.x.high - self.x.low
        return width * exprel(-abs(to_expr(self.slope) * width))
