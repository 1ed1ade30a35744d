"""The gamma density, and the chi-square density, which is one."""

from __future__ import annotations

from math import inf

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Positive
from morefit.model.formulas import TINY
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Gamma(Pdf):
    r"""$u^{k-1}e^{-u}/\Gamma(k)$ with $u=x/\theta$ for positive $x$, the shape $k$ and the scale $\theta$.

    Its mean is $k\theta$. (scipy.stats.gamma)

    Example: ``Gamma(x, shape=3.0, scale=1.5)``
    """

    defined_on = (0, inf)
    x: Observable
    shape: Positive
    scale: Positive

    def density(self) -> Expr:
        return gamma_density(self.x / self.scale, to_expr(self.shape))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return to_expr(self.scale) * gamma_area(low / self.scale, high / self.scale, to_expr(self.shape))


@dataclass(frozen=True, eq=False)
class ChiSquare(Pdf):
    r"""$x^{k/2-1}e^{-x/2}$ for positive $x$ and $k$ degrees of freedom, which need not be whole.

    (scipy.stats.chi2)

    Example: ``ChiSquare(x, degrees=4.0)``
    """

    defined_on = (0, inf)
    x: Observable
    degrees: Positive

    def density(self) -> Expr:
        return gamma_density(self.x / 2, to_expr(self.degrees) / 2)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return 2 * gamma_area(low / 2, high / 2, to_expr(self.degrees) / 2)


def gamma_density(u: Expr, shape: Expr) -> Expr:
    """Return the gamma density of scale one; with its factor, as the gamma function may be too large for a number."""
    return Op.EXP((shape - 1) * Op.LOG(u) - u - Op.LGAMMA(shape))


def gamma_area(low: Expr, high: Expr, shape: Expr) -> Expr:
    """Return the integral of the gamma density of scale one, counted from the side on which less lies."""
    start = Op.MAX(low, const(TINY))  # derivatives at zero itself are not numbers
    below = Op.GAMMAINC(shape, high) - where(low > 0, Op.GAMMAINC(shape, start), 0)
    return where(low > shape, Op.GAMMAINCC(shape, start) - Op.GAMMAINCC(shape, high), below)
