"""The Fermi function: a step with a smooth edge."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, const, to_expr, where
from morefit.model.arguments import NonZero, Number
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class Fermi(Pdf):
    r"""$1/(1+e^{(x-\mu)/w})$: a step down at $\mu$ with the width $w$; a negative $w$ makes it a step up.

    (the Fermi-Dirac distribution; one half of a logistic curve)

    Example: ``Fermi(m, mu=5.8, width=0.2)``
    """

    x: Observable
    mu: Number
    width: NonZero

    def density(self) -> Expr:
        return step(self.steps(self.x.expr))

    def steps(self, x: Expr) -> Expr:
        """Return the distance from the step, in widths."""
        return (x - to_expr(self.mu)) / to_expr(self.width)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        first, last = (self.steps(end) for end in (low, high))
        return abs(to_expr(self.width)) * area(Op.MIN(first, last), Op.MAX(first, last))

    def quantile(self, probability: Expr) -> Expr:
        first, last = (self.steps(const(end)) for end in (self.x.low, self.x.high))
        left, right = Op.MIN(first, last), Op.MAX(first, last)
        share = where(to_expr(self.width) > 0, 1 - probability, probability)
        # the area from z on is softplus(-z); its inverse is -log(exp(area) - 1)
        above = softplus(-right) + share * area(left, right)
        return to_expr(self.mu) - to_expr(self.width) * (above + Op.LOG(-Op.EXPM1(-above)))


def step(z: Expr) -> Expr:
    """Return 1 / (1 + exp(z)) = exp(-z) / (1 + exp(-z)), whichever does not overflow."""
    small = Op.EXP(below_zero(z))
    return where(z > 0, small, 1) / (1 + small)


def softplus(z: Expr) -> Expr:
    """Return log(1 + exp(z)), the integral of the step from -z on."""
    return where(z > 0, z, 0) + Op.LOG1P(Op.EXP(below_zero(z)))


def below_zero(z: Expr) -> Expr:
    """Return -|z|, with a derivative at zero, unlike a sign."""
    return where(z > 0, -z, z)


def area(left: Expr, right: Expr) -> Expr:
    """Return the integral of the step in units of its width; exact for close ends and for far ones."""
    close = -Op.LOG1P(Op.EXPM1(left - right) * step(left))
    return where(right - left < 1, close, where(left > 0, close, softplus(-left) - softplus(-right)))
