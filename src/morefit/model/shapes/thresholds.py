"""Densities with a threshold or a kinematic limit: ARGUS, phase space, D* mass differences, dilepton backgrounds, and a smooth step."""

from __future__ import annotations

from math import inf
from typing import Annotated

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ZERO, Expr, Op, Operand, const, leaves, to_expr, where
from morefit.model.arguments import Allowed, NonZero, Number, Positive
from morefit.model.formulas import TINY, along_power, share_of
from morefit.model.integrate import integral_over
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

FLOOR = 1e-150  # of u, which is 1e-16 or zero where x is rounded to the end; its inverse square is a number


@dataclass(frozen=True, eq=False)
class Argus(Pdf):
    r"""$x\,u^p\,e^{c\,u}$ with $u=1-x^2/x_0^2$ up to the end point $x_0$, zero beyond; most often $p=1/2$ and $c<0$.

    The end point may be a parameter, also inside the range; events beyond it have no density. A power of -1 or less has an
    integral only if the range ends before.
    (ARGUS, Phys. Lett. B 241 (1990) 278; RooArgusBG of RooFit)

    Example: ``Argus(m, end_point=7.5, c=-10.0, power=0.5)``
    """

    defined_on = (0, inf)
    x: Observable
    end_point: Positive
    c: Number
    power: Number = 0.5

    def density(self) -> Expr:
        end, x = to_expr(self.end_point), self.x.expr
        u = self.distance(x)
        inside = Op.EXP(to_expr(self.power) * Op.LOG(Op.MAX(u, const(FLOOR))) + self.exponent(u))
        return where(x < end, x / end * inside, ZERO)

    def distance(self, x: Expr) -> Expr:
        """Return u, zero beyond the end."""
        end = to_expr(self.end_point)
        # 1 - x / end is zero a rounding before the end, where a negative power is then the largest number of all
        return where(x < end, (end - x) / end * (1 + x / end), 0)

    def exponent(self, u: Expr) -> Expr:
        """Return c u, less than which it is where the range begins if c is positive, so that it cannot overflow."""
        c = to_expr(self.c)
        return c * (u - where(c > 0, self.distance(const(self.x.low)), 0))

    def integral_between(self, low: Expr, high: Expr) -> Expr | None:
        if self.given or leaves(Op.COLUMN, low) or leaves(Op.COLUMN, high):
            return None
        near, far = self.distance(high), self.distance(low)
        share = share_of(self.x)
        body = along_power(to_expr(self.power), near, far, lambda u: Op.EXP(self.exponent(u)), share.expr)
        return 0.5 * to_expr(self.end_point) * integral_over(body, [share], self.parameters)


@dataclass(frozen=True, eq=False)
class CMSShape(Pdf):
    r"""$\operatorname{erfc}(\beta(\alpha-x))\,e^{-\gamma x}$: a threshold at $\alpha$ that rises at the rate $\beta$, and a fall at $\gamma$.

    Used for backgrounds under Z bosons; the position of the exponential is a factor, and needs no parameter.
    (RooCMSShape of CMS tools for tag and probe)

    Example: ``CMSShape(x, alpha=3.0, beta=0.8, gamma=0.3)``
    """

    x: Observable
    alpha: Number
    beta: Positive
    gamma: Number

    def density(self) -> Expr:
        gamma, middle = to_expr(self.gamma), 0.5 * (self.x.low + self.x.high)
        rise = Op.ERFC(to_expr(self.beta) * (to_expr(self.alpha) - self.x))
        return rise * Op.EXP(-gamma * (self.x - where(gamma < 0, const(self.x.high), const(middle))))


@dataclass(frozen=True, eq=False)
class DstarThreshold(Pdf):
    r"""$(1-e^{-(x-x_0)/c})\,(x/x_0)^a+b\,(x/x_0-1)$ from the threshold $x_0$ on, zero below.

    For mass differences such as m(D*) - m(D0). (RooDstD0BG of RooFit)

    Example: ``DstarThreshold(m, threshold=4.5, a=-2.0, b=0.1, c=0.7)``
    """

    x: Observable
    threshold: Positive
    a: Number
    b: Number
    c: Positive

    def density(self) -> Expr:
        start = to_expr(self.threshold)
        above = where(self.x > start, self.x - start, ZERO)
        ratio = 1 + above / start
        rising = -Op.EXPM1(-above / self.c) * Op.EXP(to_expr(self.a) * Op.LOG(ratio))
        return rising + to_expr(self.b) * above / start


Bodies = Annotated[Operand, Allowed("a whole number from 2 on", lambda v: v >= 2 and v == int(v))]


@dataclass(frozen=True, eq=False)
class PhaseSpace(Pdf):
    r"""$(x-x_1)^{(3l-5)/2}(x_2-x)^{(3(n-l)-2)/2}$ between $x_1$ and $x_2$: the mass of $l$ of the $n$ particles of a decay.

    ``lower`` is the sum of the masses of the $l$ particles and ``upper`` the mass of the mother less the masses of the
    others; both may be parameters. Right next to both ends, and a good approximation between them.
    (E. Byckling and K. Kajantie, Particle Kinematics, 1973)

    Example: ``PhaseSpace(m, lower=4.5, upper=7.5, particles=2, total=4)``
    """

    x: Observable
    lower: Positive
    upper: Positive
    particles: Bodies
    total: Bodies

    def __post_init__(self) -> None:
        super().__post_init__()
        some, all_of_them = to_expr(self.particles), to_expr(self.total)
        if not (some.op is all_of_them.op is Op.CONST and some.number < all_of_them.number):
            raise ModelError(
                f"density 'PhaseSpace': particles must be numbers, fewer than in total, got {some!r} of {all_of_them!r};"
                " use a resonance for a mass that is fixed"
            )

    def density(self) -> Expr:
        low, high, x = to_expr(self.lower), to_expr(self.upper), self.x.expr
        some = to_expr(self.particles).number
        others = to_expr(self.total).number - to_expr(self.particles).number
        inside, width = (x > low) & (x < high), high - low
        left, right = (Op.LOG(Op.MAX(d / width, const(TINY))) for d in (x - low, high - x))
        return where(inside, Op.EXP((1.5 * some - 2.5) * left + (1.5 * others - 1) * right), ZERO)


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
