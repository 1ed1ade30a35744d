"""The Moyal density, an approximation of the Landau density."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import ONE, Expr, Op, const, to_expr
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core

FARTHEST = 5.0  # in -z/2: the Gaussian in its exponential is zero from 4 on


@dataclass(frozen=True, eq=False)
class Moyal(Pdf):
    r"""$e^{-(z+e^{-z})/2}$ with $z=(x-\mu)/\sigma$; its peak is at $\mu$.

    (J. E. Moyal, Phil. Mag. 46 (1955) 263; scipy.stats.moyal)

    Example: ``Moyal(m, mu=5.5, sigma=0.1)``
    """

    x: Observable
    mu: Number
    sigma: Positive

    def density(self) -> Expr:
        z = (self.x - self.mu) / self.sigma
        return Op.EXP(-0.5 * (z + Op.EXP(-z)))

    def core(self, low: Expr, high: Expr) -> Core:
        """Return the Gaussian in exp(-z / 2), which falls with x."""
        ends = (Op.EXP(Op.MIN(-0.5 * (x - self.mu) / self.sigma, const(FARTHEST))) for x in (high, low))
        return Core(ONE, *ends)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return 2 * to_expr(self.sigma) * self.core(low, high).area

    def quantile(self, probability: Expr) -> Expr:
        core = self.core(const(self.x.low), const(self.x.high))
        return to_expr(self.mu) - 2 * to_expr(self.sigma) * Op.LOG(core.point((1 - probability) * core.area))
