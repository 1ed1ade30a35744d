"""The exponentially modified Gaussian: a Gaussian convolved with an exponential."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.expr import ONE, ZERO, Expr, Op, to_expr, where
from morefit.model.arguments import NonZero, Number, Positive
from morefit.model.formulas import largest, smallest
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.resolution import gauss_area

SERIES = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0)  # in inverse squares
FAR = 30.0  # from here on the next term is below 1e-17


@dataclass(frozen=True, eq=False)
class ExponentiallyModifiedGaussian(Pdf):
    r"""$\int_0^\infty e^{-s/\tau}e^{-(x-\mu-s)^2/2\sigma^2}ds$: a Gaussian whose mean is smeared by an exponential.

    A negative $\tau$ puts the tail on the left. (E. Grushka, Anal. Chem. 44 (1972) 1733; scipy.stats.exponnorm)

    Example: ``ExponentiallyModifiedGaussian(m, mu=5.6, sigma=0.1, tau=0.2)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    tau: NonZero

    def density(self) -> Expr:
        return self.at(self.along_tail(self.x.expr))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # from the differential equation of the density, tau f' = gauss - f
        tau, sigma = to_expr(self.tau), to_expr(self.sigma)
        ends = [self.along_tail(end) for end in (low, high)]
        first, last = where(tau < 0, ends[1], ends[0]), where(tau < 0, ends[0], ends[1])
        return gauss_area(first, last, ZERO, sigma) + abs(tau) * (self.at(first) - self.at(last))

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        width = Op.SQRT(to_expr(self.sigma) ** 2 + sigma**2)
        return ONE, ExponentiallyModifiedGaussian(self.x, self.mu + mean, width, self.tau)

    def along_tail(self, x: Expr) -> Expr:
        """Return the distance from the mean, positive on the side of the tail."""
        return where(to_expr(self.tau) < 0, -1, 1) * (x - to_expr(self.mu))

    def at(self, distance: Expr) -> Expr:
        """Return the normalised density at a distance from the mean.

        Derivatives of a decay by its rate cancel where it is much shorter than the width: there it is a Gaussian times the
        asymptotic series of erfcx.
        """
        tau, sigma = abs(to_expr(self.tau)), to_expr(self.sigma)
        usual = Op.SMEARED_DECAY(distance, 1 / tau, sigma) / tau
        if FAR * smallest(self.tau) > largest(sigma):
            return usual  # limits exclude a short tail, and a series costs time
        left = sigma - tau * distance / sigma  # of sigma, by a shift that vanishes with tau
        far, rest = left > FAR * tau, Op.MAX(left, FAR * tau)
        square = (tau / rest) ** 2
        series = to_expr(SERIES[-1])
        for coefficient in reversed(SERIES[:-1]):
            series = series * square + coefficient
        short = Op.EXP(-0.5 * (distance / sigma) ** 2) / (math.sqrt(2 * math.pi) * rest) * series
        return where(far, short, usual)
