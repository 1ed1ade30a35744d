"""The Crystal Ball function: a Gaussian core with a power-law tail."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, Op, apply, const, to_expr, where
from morefit.model.arguments import NonZero, Number, Positive
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf
from morefit.model.segments import Core, Tail, tail_ratio


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
        return apply(Op.EXP, where(core, -0.5 * t**2, -0.5 * a**2 - n * apply(Op.LOG, ratio)))

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
