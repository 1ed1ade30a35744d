"""The bifurcated Gaussian: another width on each side of its peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morefit.expr import Expr, Op, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.segments import Core, Segment, SegmentedPeak, clipped


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
