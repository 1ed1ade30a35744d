"""The exponentially modified Gaussian: a Gaussian convolved with an exponential."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import ONE, ZERO, Expr, Op, to_expr, where
from morefit.model.arguments import NonZero, Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.resolution import smeared_decay_area


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
        side, rate = self.side_and_rate()
        return Op.SMEARED_DECAY(side * (self.x - self.mu), rate, to_expr(self.sigma))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        side, rate = self.side_and_rate()
        ends = [side * (end - self.mu) for end in (low, high)]
        first, last = where(side < 0, ends[1], ends[0]), where(side < 0, ends[0], ends[1])
        return smeared_decay_area(first, last, rate, ZERO, to_expr(self.sigma))

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        width = Op.SQRT(to_expr(self.sigma) ** 2 + sigma**2)
        return ONE, ExponentiallyModifiedGaussian(self.x, self.mu + mean, width, self.tau)

    def side_and_rate(self) -> tuple[Expr, Expr]:
        """Return 1 for a tail on the right and -1 for one on the left, and the rate at which it falls."""
        tau = to_expr(self.tau)
        return where(tau < 0, -1, 1), 1 / abs(tau)
