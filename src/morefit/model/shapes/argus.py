"""The ARGUS background: phase space that ends at a kinematic limit."""

from __future__ import annotations

from math import inf

from morefit.dataclass import dataclass
from morefit.expr import ZERO, Expr, Op, const, leaves, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import along_power, share_of
from morefit.model.integrate import integral_over
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

FLOOR = 1e-150  # of u, which is 1e-16 or zero where x is rounded to the end; its inverse square is a number


@dataclass(frozen=True, eq=False)
class Argus(Pdf):
    r"""$x\,u^p\,e^{c\,u}$ with $u=1-x^2/x_0^2$ up to the end point $x_0$, zero beyond; most often $p=1/2$ and $c<0$.

    The end point may be a parameter, also inside the range; events beyond it have no density. A power of -1 or less has an
    integral only if the range ends before.
    (ARGUS, Phys. Lett. B 241 (1990) 278; RooArgusBG of RooFit)

    Example: ``Argus(m, end_point=7.5, c=-10.0, power=0.5)``
    """

    defined_on = (0, inf)
    x: Observable
    end_point: Positive
    c: Number
    power: Number = 0.5

    def density(self) -> Expr:
        end, x = to_expr(self.end_point), self.x.expr
        u = self.distance(x)
        inside = Op.EXP(to_expr(self.power) * Op.LOG(Op.MAX(u, const(FLOOR))) + self.exponent(u))
        return where(x < end, x / end * inside, ZERO)

    def distance(self, x: Expr) -> Expr:
        """Return u, zero beyond the end."""
        end = to_expr(self.end_point)
        # 1 - x / end is zero a rounding before the end, where a negative power is then the largest number of all
        return where(x < end, (end - x) / end * (1 + x / end), 0)

    def exponent(self, u: Expr) -> Expr:
        """Return c u, less than which it is where the range begins if c is positive, so that it cannot overflow."""
        c = to_expr(self.c)
        return c * (u - where(c > 0, self.distance(const(self.x.low)), 0))

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        if self.given or leaves(Op.COLUMN, low) or leaves(Op.COLUMN, high):
            return None
        near, far = self.distance(high), self.distance(low)
        share = share_of(self.x)
        body = along_power(to_expr(self.power), near, far, lambda u: Op.EXP(self.exponent(u)), share.expr)
        return 0.5 * to_expr(self.end_point) * integral_over(body, [share], self.parameters)
