"""The ARGUS background: phase space that ends at a kinematic limit."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import ZERO, Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

FLOOR = 1e-40  # of u, which is 1e-16 or zero where x is rounded to the end; its inverse square is a number


@dataclass(frozen=True, eq=False)
class Argus(Pdf):
    r"""$x\,u^p\,e^{c\,u}$ with $u=1-x^2/x_0^2$ up to the end point $x_0$, zero beyond; most often $p=1/2$ and $c<0$.

    The end point may be a parameter, also inside the range; events beyond it have no density.
    (ARGUS, Phys. Lett. B 241 (1990) 278; RooArgusBG of RooFit)

    Example: ``Argus(m, end_point=7.5, c=-10.0, power=0.5)``
    """

    x: Observable
    end_point: Positive
    c: Number
    power: Number = 0.5

    def density(self) -> Expr:
        end, x = to_expr(self.end_point), self.x.expr
        # 1 - x / end is zero a rounding before the end, where a negative power is then the largest number of all
        u = where(x < end, (end - x) / end * (1 + x / end), 0)
        inside = Op.EXP(to_expr(self.power) * Op.LOG(Op.MAX(u, const(FLOOR))) + to_expr(self.c) * u)
        return where(x < end, x / end * inside, ZERO)
