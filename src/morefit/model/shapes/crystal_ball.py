"""The Crystal Ball function: a Gaussian core with a power-law tail."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.expr import Expr, Op, apply, const, to_expr, where
from morefit.model.arguments import NonZero, Number, Positive
from morefit.model.formulas import exprel, log1prel, normal_area
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

TINY = 1e-300  # instead of an area that is nothing


@dataclass(frozen=True, eq=False)
class CrystalBall(Pdf):
    r"""With $t=(x-\mu)/\sigma$ and $a=|\alpha|$: $e^{-t^2/2}$ for $t>-a$, else $e^{-a^2/2}(1-\frac{a}{n}(a+t))^{-n}$.

    A negative $\alpha$ puts the tail on the right. (J. E. Gaiser, SLAC-R-255, 1982)
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
        return where(core, apply(Op.EXP, -0.5 * t**2), apply(Op.EXP, -0.5 * a**2 - n * apply(Op.LOG, ratio)))

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
        core = Core(sigma, apply(Op.MAX, low, cut), apply(Op.MAX, high, cut))
        return side, core, Tail(sigma, a, n, apply(Op.MIN, low, cut), apply(Op.MIN, high, cut))

    def constants(self) -> tuple[Expr, Expr, Expr]:
        """Return the side of the tail (1 left, -1 right), the size of alpha, and n."""
        alpha = to_expr(self.alpha)
        return where(alpha < 0, -1, 1), abs(alpha), to_expr(self.n)


def tail_ratio(t: Expr, a: Expr, n: Expr) -> Expr:
    """Return what the tail raises to the power -n: 1 where it meets the core, growing outwards."""
    return 1 - a / n * (a + t)


@dataclass(frozen=True, eq=False)
class Core:
    """A normal density between two distances from its mean."""

    sigma: Expr
    low: Expr
    high: Expr

    @property
    def area(self) -> Expr:
        return normal_area(self.low, self.high, self.sigma)

    def point(self, target: Expr) -> Expr:
        """Return where the area from the lower end on reaches a target."""
        side = where(self.low + self.high > 0, -1, 1)  # from the end where a tail keeps its digits
        ends = (-side * end / (math.sqrt(2) * self.sigma) for end in (self.low, self.high))
        below, above = (0.5 * apply(Op.ERFC, end) for end in ends)
        share = target / apply(Op.MAX, self.area, const(TINY))
        return side * self.sigma * apply(Op.NDTRI, below + share * (above - below))


@dataclass(frozen=True, eq=False)
class Tail:
    """A power law between two distances from the mean.

    It is counted from the end near the core, where it has the density ``near``: at a distance u from there it is
    ``near * (1 + growth * u)**-n``. No formula divides by alpha or by n - 1.
    """

    sigma: Expr
    a: Expr
    n: Expr
    low: Expr
    high: Expr

    @property
    def ratio(self) -> Expr:
        return tail_ratio(self.high / self.sigma, self.a, self.n)

    @property
    def near(self) -> Expr:
        return apply(Op.EXP, -0.5 * self.a**2 - self.n * apply(Op.LOG, self.ratio))

    @property
    def growth(self) -> Expr:
        return self.a / (self.n * self.sigma * self.ratio)

    @property
    def area(self) -> Expr:
        width = self.high - self.low
        grown = self.growth * width
        return self.near * width * log1prel(grown) * exprel((1 - self.n) * apply(Op.LOG1P, grown))

    def point(self, target: Expr) -> Expr:
        """Return where the area from the far end on reaches a target."""
        plain = (self.area - target) / apply(
            Op.MAX, self.near, const(TINY)
        )  # the distance if it did not fall
        grown = self.growth * plain
        bent = log1prel((1 - self.n) * grown)
        return self.high - plain * bent * exprel(grown * bent)
