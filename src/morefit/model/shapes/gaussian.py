"""The Gaussian."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, Op, Operand, apply, to_expr
from morefit.model.formulas import normal_integral
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Gaussian(Pdf):
    r"""$e^{-(x-\mu)^2/2\sigma^2}$ on the range of $x$."""

    x: Observable
    mu: Operand
    sigma: Operand

    def density(self) -> Expr:
        pull = (self.x - self.mu) / self.sigma
        return apply(Op.EXP, -0.5 * pull**2)

    def integral(self) -> Expr:
        sigma = to_expr(self.sigma)
        return sigma * normal_integral((self.x.low - self.mu) / sigma, (self.x.high - self.mu) / sigma)
