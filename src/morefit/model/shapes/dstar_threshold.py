"""The background of the mass difference of D* and D0, from its threshold on."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import ZERO, Expr, Op, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class DstarThreshold(Pdf):
    r"""$(1-e^{-(x-x_0)/c})\,(x/x_0)^a+b\,(x/x_0-1)$ from the threshold $x_0$ on, zero below.

    For mass differences such as m(D*) - m(D0). (RooDstD0BG of RooFit)

    Example: ``DstarThreshold(m, threshold=4.5, a=-2.0, b=0.1, c=0.7)``
    """

    x: Observable
    threshold: Positive
    a: Number
    b: Number
    c: Positive

    def density(self) -> Expr:
        start = to_expr(self.threshold)
        above = where(self.x > start, self.x - start, ZERO)
        ratio = 1 + above / start
        rising = -Op.EXPM1(-above / self.c) * Op.EXP(to_expr(self.a) * Op.LOG(ratio))
        return rising + to_expr(self.b) * above / start
