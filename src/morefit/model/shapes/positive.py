"""Densities of positive numbers: gamma, of which chi-square is one, Weibull and log-normal."""

from __future__ import annotations

from math import inf, log

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core

TINY = 1e-150  # in the place of zero: the square of its inverse is a number, for second derivatives


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


FARTHEST = 50.0  # in the logarithm of u**k: nothing is left of the density from there on


@dataclass(frozen=True, eq=False)
class Weibull(Pdf):
    r"""$u^{k-1}e^{-u^k}$ with $u=x/\lambda$ for positive $x$, the shape $k$ and the scale $\lambda$.

    (W. Weibull, J. Appl. Mech. 18 (1951) 293; scipy.stats.weibull_min)

    Example: ``Weibull(x, shape=1.7, scale=4.0)``
    """

    defined_on = (0, inf)
    x: Observable
    shape: Positive
    scale: Positive

    def density(self) -> Expr:
        u, shape = Op.LOG(self.x / self.scale), to_expr(self.shape)
        return Op.EXP((shape - 1) * u - Op.EXP(shape * u))

    def ends(self, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        """Return u**k at one end, and how much it grows to the other; exact for ends close to each other."""
        start, shape = Op.MAX(low, const(TINY)), to_expr(self.shape)
        logarithms = (shape * Op.LOG(end / self.scale) for end in (start, high))
        first, last = (Op.EXP(Op.MIN(u, const(FARTHEST))) for u in logarithms)
        first = where(low > 0, first, 0)  # a small power of the smallest number is not small
        close = first * Op.EXPM1(shape * Op.LOG1P((high - start) / start))
        return first, where(2 * start > high, close, last - first)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        first, growth = self.ends(low, high)
        return -to_expr(self.scale) / to_expr(self.shape) * Op.EXP(-first) * Op.EXPM1(-growth)

    def quantile(self, probability: Expr) -> Expr:
        first, growth = self.ends(const(self.x.low), const(self.x.high))
        power = first - Op.LOG1P(probability * Op.EXPM1(-growth))
        return to_expr(self.scale) * Op.EXP(Op.LOG(power) / self.shape)


MAX_WIDTHS = 100.0  # widths below the median: nothing is left of the density there, however wide it is


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
        below = Op.MIN(log(TINY) - self.mu, -MAX_WIDTHS * sigma)  # without the end: that is no kink along it
        return Core(sigma, where(low > 0, first, below), last)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return self.core(low, high).area

    def quantile(self, probability: Expr) -> Expr:
        core = self.core(const(self.x.low), const(self.x.high))
        return Op.EXP(self.mu + core.point(probability * core.area))
