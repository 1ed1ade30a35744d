"""The log-normal density: a Gaussian in the logarithm of the observable."""

from __future__ import annotations

from math import inf

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import TINY
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core

FARTHEST = 100.0  # widths below the median: nothing is left of the density there, however wide it is


@dataclass(frozen=True, eq=False)
class LogNormal(Pdf):
    r"""$\frac1x e^{-(\ln x-\mu)^2/2\sigma^2}$ for positive $x$; $e^\mu$ is the median.

    (scipy.stats.lognorm with s=sigma, scale=exp(mu))

    Example: ``LogNormal(x, mu=1.5, sigma=0.3)``
    """

    defined_on = (0, inf)
    x: Observable
    mu: Number
    sigma: Positive

    def density(self) -> Expr:
        return Op.EXP(-0.5 * ((Op.LOG(self.x) - self.mu) / self.sigma) ** 2) / self.x

    def core(self, low: Expr, high: Expr) -> Core:
        """Return the Gaussian in the logarithm between two values of x."""
        sigma = to_expr(self.sigma)
        first, last = (Op.LOG(Op.MAX(end, const(TINY))) - self.mu for end in (low, high))
        return Core(sigma, where(low > 0, first, Op.MIN(first, -FARTHEST * sigma)), last)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return self.core(low, high).area

    def quantile(self, probability: Expr) -> Expr:
        core = self.core(const(self.x.low), const(self.x.high))
        return Op.EXP(self.mu + core.point(probability * core.area))
