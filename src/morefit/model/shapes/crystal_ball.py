"""The Crystal Ball function: a Gaussian core with a power-law tail."""

from __future__ import annotations

from dataclasses import dataclass

from morefit.expr import Expr, Op, Operand, apply, to_expr, where
from morefit.model.formulas import exprel, normal_integral
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


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
        side, a, n = self.constants()
        sigma = to_expr(self.sigma)
        ends = [side * (edge - self.mu) / sigma for edge in (self.x.low, self.x.high)]
        low, high = where(side < 0, ends[1], ends[0]), where(side < 0, ends[0], ends[1])
        core = normal_integral(apply(Op.MAX, low, -a), apply(Op.MAX, high, -a))
        far = apply(Op.LOG, tail_ratio(apply(Op.MIN, low, -a), a, n))
        near = apply(Op.LOG, tail_ratio(apply(Op.MIN, high, -a), a, n))
        # the integral of r**-n over r, written so that n = 1 is no special case
        powers = apply(Op.EXP, (1 - n) * near) * (far - near) * exprel((1 - n) * (far - near))
        return sigma * (core + apply(Op.EXP, -0.5 * a**2) * n / a * powers)

    def constants(self) -> tuple[Expr, Expr, Expr]:
        """Return the side of the tail (1 left, -1 right), the size of alpha, and n."""
        alpha = to_expr(self.alpha)
        return where(alpha < 0, -1, 1), abs(alpha), to_expr(self.n)


def tail_ratio(t: Expr, a: Expr, n: Expr) -> Expr:
    """Return what the tail raises to the power -n: 1 where it meets the core, growing outwards."""
    return 1 - a / n * (a + t)
