"""Breit-Wigner resonances, and one with a Gaussian resolution: the Voigt density."""

from __future__ import annotations

import math

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, const, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

FAR = 16.0  # squares of a mass below the square of the range: a series in their ratio
TERMS = 14  # of it: the next is below 1e-17


@dataclass(frozen=True, eq=False)
class BreitWigner(Pdf):
    r"""$1/(1+t^2)$ with $t=2(x-\mu)/\Gamma$ and the full width $\Gamma$ at half maximum.

    Also called Cauchy or Lorentz density. (G. Breit and E. Wigner, Phys. Rev. 49 (1936) 519; scipy.stats.cauchy)

    Example: ``BreitWigner(m, mu=5.8, gamma=0.1)``
    """

    x: Observable
    mu: Number
    gamma: Positive

    def density(self) -> Expr:
        return 1 / (1 + ((self.x - to_expr(self.mu)) / (0.5 * to_expr(self.gamma))) ** 2)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        half = 0.5 * to_expr(self.gamma)
        return half * angle_between((low - self.mu) / half, (high - self.mu) / half)

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        factor = 0.5 * math.pi * to_expr(self.gamma)
        return factor, Voigt(self.x, self.mu + mean, sigma, self.gamma)

    def quantile(self, probability: Expr) -> Expr:
        half = 0.5 * to_expr(self.gamma)
        low, high = ((const(end) - to_expr(self.mu)) / half for end in (self.x.low, self.x.high))
        # from the lower end by the tangent of a sum, so that a far range keeps its digits
        # of half of the angle, below a quarter turn
        step = Op.TAN(0.5 * probability * angle_between(low, high))
        grown = 2 * step / ((1 - step) * (1 + step) - 2 * low * step)
        return to_expr(self.mu) + half * (low + grown * (1 + low**2))


@dataclass(frozen=True, eq=False)
class RelativisticBreitWigner(Pdf):
    r"""$M^2\Gamma^2/((x^2-M^2)^2+M^2\Gamma^2)$ with the mass $M$ and the constant width $\Gamma$.

    (PDG, review of resonances; scipy.stats.rel_breitwigner)

    Example: ``RelativisticBreitWigner(m, mass=5.8, width=0.2)``
    """

    x: Observable
    mass: Positive
    width: Positive

    def density(self) -> Expr:
        mass, width = to_expr(self.mass), to_expr(self.width)
        return 1 / (1 + ((self.x - mass) * (self.x + mass) / (mass * width)) ** 2)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # with c = a + i b, c**2 = M**2 + i M Gamma: the imaginary part of log((x - c) / (x + c)) / (2 c)
        mass, width = to_expr(self.mass), to_expr(self.width)
        square = mass * Op.SQRT(mass**2 + width**2)  # of the size of c
        a = Op.SQRT(0.5 * (square + mass**2))
        b = 0.5 * mass * width / a
        nearest = where(low > 0, low, where(high < 0, high, 0))
        beyond = FAR * square < nearest**2
        angles = sum((angle_between((low + s * a) / b, (high + s * a) / b) for s in (-1, 1)), const(0))
        near, far = (
            0.5 * Op.LOG1P((high - low) * (high + low + 2 * s * a) / ((low + s * a) ** 2 + b**2))
            for s in (-1, 1)
        )
        whole = 0.5 * mass * width / square * (a * angles - b * (near - far))
        return where(beyond, (mass * width) ** 2 * (self.tail_from(low) - self.tail_from(high)), whole)

    def tail_from(self, x: Expr) -> Expr:
        r"""Return the integral over $M^2\Gamma^2$ from x on: $\sum_k\operatorname{Im}c^{2k}/(M\Gamma(2k+1)x^{2k+1})$.

        Far above the mass it is exact, where angles and logarithms cancel.
        """
        mass, width = to_expr(self.mass), to_expr(self.width)
        start = where(FAR * mass * Op.SQRT(mass**2 + width**2) < x**2, x, 1)
        real, turned = (mass / start) ** 2, mass * width / start**2  # of c**2 / x**2
        # a power's real part, and its imaginary one over the first's
        powers, total = (ONE, const(0)), const(0)
        for k in range(1, TERMS + 1):
            powers = powers[0] * real - powers[1] * turned**2, powers[0] + powers[1] * real
            total = total + powers[1] / (2 * k + 1)
        return total / start**3


@dataclass(frozen=True, eq=False)
class Voigt(Pdf):
    r"""$\operatorname{Re}w(z)$ with $z=(x-\mu+i\Gamma/2)/\sqrt2\sigma$ and the Faddeeva function $w$.

    A ``BreitWigner`` of full width $\Gamma$ convolved with a Gaussian of width $\sigma$. (RooVoigtian of RooFit;
    scipy.special.voigt_profile with gamma/2)

    Example: ``Voigt(m, mu=5.8, sigma=0.1, gamma=0.1)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    gamma: Positive

    def density(self) -> Expr:
        half, unit = 0.5 * to_expr(self.gamma), math.sqrt(2) * to_expr(self.sigma)
        return Op.VOIGT(self.x - self.mu, half, unit) / math.sqrt(math.pi)

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        width = Op.SQRT(to_expr(self.sigma) ** 2 + sigma**2)
        return ONE, Voigt(self.x, self.mu + mean, width, self.gamma)


def angle_between(low: Expr, high: Expr) -> Expr:
    """Return the difference of two inverse tangents, exact also where they are almost equal."""
    return Op.ATAN2(high - low, 1 + low * high)
