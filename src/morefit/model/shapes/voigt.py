"""The Voigt profile: a Breit-Wigner seen with a Gaussian resolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.expr import ONE, Expr, Op, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import largest, smallest
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

NARROW = 40.0  # sigmas below half of the width: a resolution that is a series
SERIES = (1.0, 1.0, 3.0, 15.0, 105.0, 945.0, 10395.0)  # in squares of sigma; the next term is below 1e-17


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
        sigma, half = to_expr(self.sigma), 0.5 * to_expr(self.gamma)
        unit = math.sqrt(2) * sigma
        smeared = Op.WOFZ_REAL((self.x - self.mu) / unit, half / unit) / (math.sqrt(math.pi) * unit)
        if NARROW * smallest(self.sigma) > largest(half):
            return smeared  # limits exclude a narrow resolution, and a series costs time
        narrow = NARROW * sigma < half
        return where(narrow, almost_breit_wigner(self.x - self.mu, half, where(narrow, sigma, 0)), smeared)

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        width = Op.SQRT(to_expr(self.sigma) ** 2 + sigma**2)
        return ONE, Voigt(self.x, self.mu + mean, width, self.gamma)


def almost_breit_wigner(distance: Expr, half: Expr, sigma: Expr) -> Expr:
    r"""Return $\frac1\pi\operatorname{Re}\frac iD(1+\sigma^2/D^2+3\sigma^4/D^4+\ldots)$ with $D=d+i\Gamma/2$.

    Slopes of the Faddeeva function cancel far from the origin, where all events are if the resolution is narrow.
    """
    square = distance**2 + half**2
    real, imaginary = distance / square, -half / square  # of 1 / D
    turned = sigma**2 * (real**2 - imaginary**2), sigma**2 * (2 * real * imaginary)
    total: tuple[Expr, Expr] = to_expr(SERIES[-1]), to_expr(0.0)
    for coefficient in reversed(SERIES[:-1]):
        total = (
            total[0] * turned[0] - total[1] * turned[1] + coefficient,
            total[0] * turned[1] + total[1] * turned[0],
        )
    return -(real * total[1] + imaginary * total[0]) / math.pi
