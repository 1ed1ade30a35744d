"""Crystal Ball functions with a power-law tail on each side, with one width or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morefit.expr import Expr, Op, to_expr, where
from morefit.model.arguments import Number, Positive
from morefit.model.observable import Observable
from morefit.model.segments import Core, Mirrored, Segment, SegmentedPeak, Tail, clipped, mirrored, tail_ratio


@dataclass(frozen=True, eq=False)
class DoubleCrystalBall(SegmentedPeak):
    r"""With $t=(x-\mu)/\sigma$: $e^{-t^2/2}$ for $-\alpha_{left}<t<\alpha_{right}$, else $e^{-\alpha^2/2}(1+\frac\alpha n(|t|-\alpha))^{-n}$.

    Outside, $\alpha$ and $n$ are those of the side. (J. E. Gaiser, SLAC-R-255, 1982, with a second tail)

    Example: ``DoubleCrystalBall(m, mu=5.8, sigma=0.1, alpha_left=1.3, n_left=2.5, alpha_right=1.8, n_right=4.0)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    alpha_left: Positive
    n_left: Positive
    alpha_right: Positive
    n_right: Positive

    def density(self) -> Expr:
        return two_tailed((self.x - self.mu) / self.sigma, self)

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        sigma, left, right = (to_expr(v) for v in (self.sigma, self.alpha_left, self.alpha_right))
        return (
            Tail(sigma, left, to_expr(self.n_left), *clipped(low, high, None, -left * sigma)),
            Core(sigma, *clipped(low, high, -left * sigma, right * sigma)),
            Mirrored(
                Tail(sigma, right, to_expr(self.n_right), *mirrored(clipped(low, high, right * sigma, None)))
            ),
        )


@dataclass(frozen=True, eq=False)
class GeneralisedCrystalBall(SegmentedPeak):
    r"""A ``DoubleCrystalBall`` with $t=(x-\mu)/\sigma_{left}$ on the left of the peak and $(x-\mu)/\sigma_{right}$ on the right.

    (the generalised Crystal Ball of zfit, RooCrystalBall of RooFit)

    Example: ``GeneralisedCrystalBall(m, mu=5.8, sigma_left=0.1, sigma_right=0.15, alpha_left=1.3, n_left=2.5, alpha_right=1.8, n_right=4.0)``
    """

    x: Observable
    mu: Number
    sigma_left: Positive
    sigma_right: Positive
    alpha_left: Positive
    n_left: Positive
    alpha_right: Positive
    n_right: Positive

    def density(self) -> Expr:
        distance = self.x - self.mu
        return two_tailed(distance / where(distance < 0, self.sigma_left, self.sigma_right), self)

    def segments(self, low: Expr, high: Expr) -> Sequence[Segment]:
        narrow, wide = to_expr(self.sigma_left), to_expr(self.sigma_right)
        left, right = to_expr(self.alpha_left), to_expr(self.alpha_right)
        return (
            Tail(narrow, left, to_expr(self.n_left), *clipped(low, high, None, -left * narrow)),
            Core(narrow, *clipped(low, high, -left * narrow, 0)),
            Core(wide, *clipped(low, high, 0, right * wide)),
            Mirrored(
                Tail(wide, right, to_expr(self.n_right), *mirrored(clipped(low, high, right * wide, None)))
            ),
        )


def two_tailed(t: Expr, shape: DoubleCrystalBall | GeneralisedCrystalBall) -> Expr:
    """Return a Gaussian with a tail on each side; one logarithm and one exponential serve all three parts.

    Sides are chosen between lines in t, not between their parameters, so that events cost no division.
    """
    a, b = to_expr(shape.alpha_left), to_expr(shape.alpha_right)
    n, k = to_expr(shape.n_left), to_expr(shape.n_right)
    left, right = t < -a, t > b
    line = Op.LOG(where(left, tail_ratio(t, a, n), where(right, tail_ratio(-t, b, k), 1)))
    return Op.EXP(where(left, -0.5 * a**2 - n * line, where(right, -0.5 * b**2 - k * line, -0.5 * t**2)))
