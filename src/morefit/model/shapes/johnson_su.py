"""Johnson's S_U density: a Gaussian in the inverse hyperbolic sine of the observable."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, const, to_expr
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core


@dataclass(frozen=True, eq=False)
class JohnsonSU(Pdf):
    r"""$e^{-z^2/2}/\sqrt{1+y^2}$ with $y=(x-\mu)/\lambda$ and $z=\gamma+\delta\,\mathrm{arsinh}\,y$.

    A positive $\gamma$ puts the longer tail on the left. (N. L. Johnson, Biometrika 36 (1949) 149; scipy.stats.johnsonsu)

    Example: ``JohnsonSU(m, mu=5.8, scale=0.1, gamma=0.3, delta=1.5)``
    """

    x: Observable
    mu: Number
    scale: Positive
    gamma: Number
    delta: Positive

    def density(self) -> Expr:
        y = (self.x - self.mu) / self.scale
        return Op.EXP(-0.5 * (self.gamma + self.delta * Op.ASINH(y)) ** 2) / Op.SQRT(1 + y**2)

    def core(self, low: Expr, high: Expr) -> Core:
        """Return the Gaussian in z between two values of x."""
        ends = (to_expr(self.gamma) + self.delta * Op.ASINH((x - self.mu) / self.scale) for x in (low, high))
        return Core(ONE, *ends)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return to_expr(self.scale) / to_expr(self.delta) * self.core(low, high).area

    def quantile(self, probability: Expr) -> Expr:
        core = self.core(const(self.x.low), const(self.x.high))
        y = Op.SINH((core.point(probability * core.area) - self.gamma) / self.delta)
        return to_expr(self.mu) + to_expr(self.scale) * y
