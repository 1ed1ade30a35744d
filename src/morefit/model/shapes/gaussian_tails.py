"""Gaussians with exponential tails, on one side or both."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.segments import Core, Mirrored, Rising, Segment, SegmentedPeak, clipped, mirrored


@dataclass(frozen=True, eq=False)
class GaussianExponentialTail(SegmentedPeak):
    r"""With $t=(x-\mu)/\sigma$: $e^{-t^2/2}$ for $t>-k$, else $e^{k^2/2+kt}$; the tail is on the left.

    Known as GaussExp. (S. Das, arXiv:1603.08591)

    Example: ``GaussianExponentialTail(m, mu=5.8, sigma=0.1, k=1.2)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    k: Positive

    def density(self) -> Expr:
        t, k = (self.x - self.mu) / self.sigma, to_expr(self.k)
        return Op.EXP(where(t < -k, k * (0.5 * k + t), -0.5 * t**2))

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        sigma, k = to_expr(self.sigma), to_expr(self.k)
        return rising_tail(sigma, k, clipped(low, high, None, -k * sigma)), Core(
            sigma, *clipped(low, high, -k * sigma, None)
        )


@dataclass(frozen=True, eq=False)
class GaussianExponentialTails(SegmentedPeak):
    r"""With $t=(x-\mu)/\sigma$: $e^{-t^2/2}$ for $-k_{left}<t<k_{right}$, else $e^{k_{left}^2/2+k_{left}t}$, $e^{k_{right}^2/2-k_{right}t}$.

    Known as ExpGaussExp. (S. Das, arXiv:1603.08591)

    Example: ``GaussianExponentialTails(m, mu=5.8, sigma=0.1, k_left=1.2, k_right=2.0)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    k_left: Positive
    k_right: Positive

    def density(self) -> Expr:
        t, left, right = (self.x - self.mu) / self.sigma, to_expr(self.k_left), to_expr(self.k_right)
        core_or_right = where(t > right, right * (0.5 * right - t), -0.5 * t**2)
        return Op.EXP(where(t < -left, left * (0.5 * left + t), core_or_right))

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        sigma, left, right = to_expr(self.sigma), to_expr(self.k_left), to_expr(self.k_right)
        core = Core(sigma, *clipped(low, high, -left * sigma, right * sigma))
        tail = rising_tail(sigma, right, mirrored(clipped(low, high, right * sigma, None)))
        return rising_tail(sigma, left, clipped(low, high, None, -left * sigma)), core, Mirrored(tail)


def rising_tail(sigma: Expr, k: Expr, ends: tuple[Expr, Expr]) -> Rising:
    """Return the tail on the left of a Gaussian, between two distances from its mean."""
    return Rising(sigma / k, Op.EXP(-0.5 * k**2), -k * sigma, *ends)
