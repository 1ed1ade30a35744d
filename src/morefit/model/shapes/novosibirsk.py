"""The Novosibirsk function: a Gaussian in a logarithm of the observable."""

from __future__ import annotations

import math

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, const, to_expr
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import exprel, log1prel, sinhrel
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core

HALF = math.sqrt(math.log(4))  # half of the full width at half maximum, in sigma
END = -1 + 1e-15  # next to the end point, beyond which the density is nothing


@dataclass(frozen=True, eq=False)
class Novosibirsk(Pdf):
    r"""$e^{-\ln^2(1+\Lambda(x-\mu))/2\tau^2}$ with $\Lambda=\sinh(\tau\sqrt{\ln4})/(\sigma\sqrt{\ln4})$; a Gaussian for $\tau=0$.

    $\sigma$ is the full width at half maximum over 2.36; a positive tail parameter $\tau$ puts the tail on the right.
    (H. Ikeda et al., Nucl. Instrum. Meth. A 441 (2000) 401; RooNovosibirsk of RooFit with the other sign)

    Example: ``Novosibirsk(m, mu=5.8, sigma=0.2, tail=0.3)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    tail: Number

    def density(self) -> Expr:
        return Op.EXP(-0.5 * self.stretched(self.x.expr) ** 2)

    def slope(self) -> Expr:
        """Return the derivative of ``stretched`` at the peak."""
        return sinhrel(HALF * to_expr(self.tail)) / to_expr(self.sigma)

    def stretched(self, x: Expr) -> Expr:
        """Return the logarithm over the tail parameter, which is (x - mu) / sigma where that is zero."""
        distance = self.slope() * (x - to_expr(self.mu))
        return distance * log1prel(Op.MAX(to_expr(self.tail) * distance, const(END)))

    def core(self, low: Expr, high: Expr) -> Core:
        """Return the Gaussian in the stretched observable, less its mean."""
        return Core(ONE, *(self.stretched(end) - self.tail for end in (low, high)))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return Op.EXP(0.5 * to_expr(self.tail) ** 2) / self.slope() * self.core(low, high).area

    def quantile(self, probability: Expr) -> Expr:
        core = self.core(const(self.x.low), const(self.x.high))
        stretched = to_expr(self.tail) + core.point(probability * core.area)
        return to_expr(self.mu) + stretched * exprel(to_expr(self.tail) * stretched) / self.slope()
