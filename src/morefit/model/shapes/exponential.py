"""The exponential."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, Op, Operand, apply, to_expr
from morefit.model.formulas import exprel
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Exponential(Pdf):
    r"""$e^{\alpha x}$ on the range of $x$; uniform for $\alpha = 0$."""

    x: Observable
    slope: Operand

    def density(self) -> Expr:
        # counted from the lower edge, so that neither it nor its integral overflows at large x
        return apply(Op.EXP, self.slope * (self.x - self.x.low))

    def integral(self) -> Expr:
        width = self.x.high - self.x.low
        return width * exprel(to_expr(self.slope) * width)
