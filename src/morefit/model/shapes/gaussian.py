"""The Gaussian, and one with two widths."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import gaussian_area
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core, Segment, SegmentedPeak, clipped


@dataclass(frozen=True, eq=False)
class Gaussian(Pdf):
    r"""$e^{-(x-\mu)^2/2\sigma^2}$ on the range of $x$.

    Example: ``Gaussian(m, mu=5.8, sigma=0.1)``
    """

    x: Observable
    mu: Number
    sigma: Positive

    def density(self) -> Expr:
        pull = (self.x - self.mu) / self.sigma
        return Op.EXP(-0.5 * pull**2)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return gaussian_area(low, high, self.mu, to_expr(self.sigma))

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        width = Op.SQRT(to_expr(self.sigma) ** 2 + sigma**2)
        return self.sigma / width, Gaussian(self.x, self.mu + mean, width)

    def quantile(self, probability: Expr) -> Expr:
        # measured from the end of the range that is closer to the mean, so that a far tail keeps its digits
        mu, sigma = to_expr(self.mu), to_expr(self.sigma)
        low, high = (self.x.low - mu) / sigma, (self.x.high - mu) / sigma
        side = where(low + high > 0, -1, 1)
        below, above = (0.5 * Op.ERFC(-side * end / math.sqrt(2)) for end in (low, high))
        return mu + side * sigma * Op.NDTRI(below + probability * (above - below))


@dataclass(frozen=True, eq=False)
class BifurcatedGaussian(SegmentedPeak):
    r"""$e^{-(x-\mu)^2/2\sigma^2}$ with $\sigma=\sigma_{left}$ for $x<\mu$, else $\sigma_{right}$.

    Also called split or two-piece normal distribution. (G. T. Fechner, Kollektivmasslehre, 1897)

    Example: ``BifurcatedGaussian(m, mu=5.3, sigma_left=0.1, sigma_right=0.2)``
    """

    x: Observable
    mu: Number
    sigma_left: Positive
    sigma_right: Positive

    def density(self) -> Expr:
        sigma = where(self.x < self.mu, self.sigma_left, self.sigma_right)
        return Op.EXP(-0.5 * ((self.x - self.mu) / sigma) ** 2)

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        left, right = to_expr(self.sigma_left), to_expr(self.sigma_right)
        return Core(left, *clipped(low, high, None, 0)), Core(right, *clipped(low, high, 0, None))
