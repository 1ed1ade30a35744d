"""The Voigt profile: a Breit-Wigner seen with a Gaussian resolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.expr import Expr, Op, to_expr
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


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
        unit = math.sqrt(2) * to_expr(self.sigma)
        return Op.WOFZ_REAL((self.x - self.mu) / unit, 0.5 * to_expr(self.gamma) / unit)

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        width = Op.SQRT(to_expr(self.sigma) ** 2 + sigma**2)
        return self.sigma / width, Voigt(self.x, self.mu + mean, width, self.gamma)
