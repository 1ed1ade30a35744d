"""The Crystal Ball function: a Gaussian core with a power-law tail."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.expr import Expr, Op, Operand, apply, const, to_expr, where
from morefit.model.formulas import exprel, normal_integral
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

TINY = 1e-300  # instead of an area that is nothing


@dataclass(frozen=True, eq=False)
class CrystalBall(Pdf):
    r"""With $t=(x-\mu)/\sigma$ and $a=|\alpha|$: $e^{-t^2/2}$ for $t>-a$, else $e^{-a^2/2}(1-\frac{a}{n}(a+t))^{-n}$.

    A negative $\alpha$ puts the tail on the right. (J. E. Gaiser, SLAC-R-255, 1982)
    """

    x: Observable
    mu: Operand
    sigma: Operand
    alpha: Operand
    n: Operand

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
        return to_expr(self.sigma) * (core.area + tail.area)

    def quantile(self, probability: Expr) -> Expr:
        side, core, tail = self.parts(const(self.x.low), const(self.x.high))
        target = where(side < 0, 1 - probability, probability) * (core.area + tail.area)
        t = where(target < tail.area, tail.point(target), core.point(target - tail.area))
        return to_expr(self.mu) + side * to_expr(self.sigma) * t

    def parts(self, left: Expr, right: Expr) -> tuple[Expr, Core, Tail]:
        """Return the side of the tail, and both parts as far as they lie between two values."""
        side, a, n = self.constants()
        ends = [side * (edge - self.mu) / to_expr(self.sigma) for edge in (left, right)]
        low, high = where(side < 0, ends[1], ends[0]), where(side < 0, ends[0], ends[1])
        core = Core(apply(Op.MAX, low, -a), apply(Op.MAX, high, -a))
        return side, core, Tail(a, n, apply(Op.MIN, low, -a), apply(Op.MIN, high, -a))

    def constants(self) -> tuple[Expr, Expr, Expr]:
        """Return the side of the tail (1 left, -1 right), the size of alpha, and n."""
        alpha = to_expr(self.alpha)
        return where(alpha < 0, -1, 1), abs(alpha), to_expr(self.n)


def tail_ratio(t: Expr, a: Expr, n: Expr) -> Expr:
    """Return what the tail raises to the power -n: 1 where it meets the core, growing outwards."""
    return 1 - a / n * (a + t)


@dataclass(frozen=True, eq=False)
class Core:
    """A normal density between two ends."""

    low: Expr
    high: Expr

    @property
    def area(self) -> Expr:
        return normal_integral(self.low, self.high)

    def point(self, target: Expr) -> Expr:
        """Return where the area from the lower end on reaches a target."""
        side = where(self.low + self.high > 0, -1, 1)  # from the end where a tail keeps its digits
        below, above = (0.5 * apply(Op.ERFC, -side * end / math.sqrt(2)) for end in (self.low, self.high))
        share = target / apply(Op.MAX, self.area, const(TINY))
        return side * apply(Op.NDTRI, below + share * (above - below))


@dataclass(frozen=True, eq=False)
class Tail:
    """A power law between two ends; in the logarithm of ``tail_ratio`` it is an exponential."""

    a: Expr
    n: Expr
    low: Expr
    high: Expr

    @property
    def near(self) -> Expr:
        return apply(Op.LOG, tail_ratio(self.high, self.a, self.n))

    @property
    def length(self) -> Expr:
        return apply(Op.LOG, tail_ratio(self.low, self.a, self.n)) - self.near

    @property
    def area(self) -> Expr:
        # the integral of r**-n over r, written so that n = 1 is no special case
        powers = apply(Op.EXP, (1 - self.n) * self.near) * self.length * exprel((1 - self.n) * self.length)
        return apply(Op.EXP, -0.5 * self.a**2) * self.n / self.a * powers

    def point(self, target: Expr) -> Expr:
        """Return where the area from the far end on reaches a target."""
        share = 1 - target / apply(Op.MAX, self.area, const(TINY))  # counted from the near end
        slope = 1 - self.n
        bent = apply(Op.LOG1P, share * apply(Op.EXPM1, slope * self.length)) / slope
        log = self.near + where(abs(slope) > 0, bent, share * self.length)
        return -self.a - self.n / self.a * apply(Op.EXPM1, log)
