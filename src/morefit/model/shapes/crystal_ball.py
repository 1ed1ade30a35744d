"""Gaussian cores with tails on one side or both: power laws, as in Crystal Ball functions, or exponentials."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import NonZero, Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import (
    Core,
    Mirrored,
    Rising,
    Segment,
    SegmentedPeak,
    Tail,
    clipped,
    mirrored,
    tail_ratio,
)


@dataclass(frozen=True, eq=False)
class CrystalBall(Pdf):
    r"""With $t=(x-\mu)/\sigma$ and $a=|\alpha|$: $e^{-t^2/2}$ for $t>-a$, else $e^{-a^2/2}(1-\frac{a}{n}(a+t))^{-n}$.

    A negative $\alpha$ puts the tail on the right. (J. E. Gaiser, SLAC-R-255, 1982)

    Example: ``CrystalBall(m, mu=5.8, sigma=0.1, alpha=1.3, n=2.5)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    alpha: NonZero
    n: Positive

    def density(self) -> Expr:
        side, a, n = self.constants()
        t = side * (self.x - self.mu) / self.sigma
        core = t > -a
        ratio = where(core, 1, tail_ratio(t, a, n))
        return Op.EXP(where(core, -0.5 * t**2, -0.5 * a**2 - n * Op.LOG(ratio)))

    def integral(self) -> Expr:
        return self.integral_between(const(self.x.low), const(self.x.high))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        _, core, tail = self.parts(low, high)
        return core.area + tail.area

    def quantile(self, probability: Expr) -> Expr:
        side, core, tail = self.parts(const(self.x.low), const(self.x.high))
        target = where(side < 0, 1 - probability, probability) * (core.area + tail.area)
        distance = where(target < tail.area, tail.point(target), core.point(target - tail.area))
        return to_expr(self.mu) + side * distance

    def parts(self, left: Expr, right: Expr) -> tuple[Expr, Core, Tail]:
        """Return the side of the tail, and both parts as far as they lie between two values."""
        side, a, n = self.constants()
        sigma = to_expr(self.sigma)
        ends = [side * (edge - self.mu) for edge in (left, right)]
        low, high = where(side < 0, ends[1], ends[0]), where(side < 0, ends[0], ends[1])
        cut = -a * sigma
        core = Core(sigma, Op.MAX(low, cut), Op.MAX(high, cut))
        return side, core, Tail(sigma, a, n, Op.MIN(low, cut), Op.MIN(high, cut))

    def constants(self) -> tuple[Expr, Expr, Expr]:
        """Return the side of the tail (1 left, -1 right), the size of alpha, and n."""
        alpha = to_expr(self.alpha)
        return where(alpha < 0, -1, 1), abs(alpha), to_expr(self.n)


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
