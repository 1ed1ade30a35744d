"""The beta density."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, to_expr, where
from morefit.model.arguments import Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Beta(Pdf):
    r"""$x^{a-1}(1-x)^{b-1}/B(a,b)$ for $x$ between 0 and 1.

    (scipy.stats.beta)

    Example: ``Beta(u, a=2.0, b=3.5)``
    """

    defined_on = (0, 1)
    x: Observable
    a: Positive
    b: Positive

    def density(self) -> Expr:
        a, b = to_expr(self.a), to_expr(self.b)
        return Op.EXP((a - 1) * Op.LOG(self.x) + (b - 1) * Op.LOG(1 - self.x) - Op.BETALN(a, b))

    def integral(self) -> Expr:
        return ONE if (self.x.low, self.x.high) == (0, 1) else super().integral()

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        """Return the difference of two distribution functions, counted from the side on which less lies."""
        a, b = to_expr(self.a), to_expr(self.b)
        below = Op.BETAINC(a, b, high) - Op.BETAINC(a, b, low)
        above = Op.BETAINC(b, a, 1 - low) - Op.BETAINC(b, a, 1 - high)
        return where(low * (a + b) > a, above, below)
