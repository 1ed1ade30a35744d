"""The exponentially modified Gaussian: a Gaussian convolved with an exponential."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import ONE, ZERO, Expr, Op, to_expr, where
from morefit.model.arguments import NonZero, Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.resolution import gauss_area, may_be_short, short_decay


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
        """Return the normalised density at a distance from the mean."""
        tau, sigma = abs(to_expr(self.tau)), to_expr(self.sigma)
        if may_be_short(self.tau, sigma):
            return short_decay(distance, tau, sigma)
        return Op.SMEARED_DECAY(distance, 1 / tau, sigma) / tau
