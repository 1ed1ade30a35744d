"""The Bukin function: an asymmetric peak with a tail on each side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import ONE, Expr, Op, const, to_expr, where
from morefit.expr.interpolate import clip
from morefit.model.arguments import Number, Positive
from morefit.model.formulas import asinhrel, log1prel, normal_area
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

WIDTH = 2 * math.sqrt(2 * math.log(2))  # the full width at half maximum, in sigma
SERIES = (1.0, 1.0, 3.0, 15.0, 105.0, 945.0, 10395.0, 135135.0)  # of an exponential of a parabola
STRAIGHT = 2000.0  # times its bend is less than the square of its slope: the next term is below 1e-17


@dataclass(frozen=True, eq=False)
class Bukin(Pdf):
    r"""$2^{-s^2}$ between the points at half of the peak, with $s=\ln(1+4\xi r d)/2\,\mathrm{arsinh}\,\xi$, $r=\sqrt{1+\xi^2}$, $d=(x-\mu)/2.36\sigma$.

    Outside, with $u$ the distance from the half point $x_h$, in units of $2.36\sigma$:
    $\frac12\exp(\rho\,u^2/u_\mu^2-4\ln2\,u\,r\,\xi/(\mathrm{arsinh}\,\xi\,(r\pm\xi)^2))$, where $u_\mu$ is the distance of the
    peak from $x_h$, and $\rho$ that of the side: negative for a tail that falls faster.
    (A. D. Bukin, arXiv:0711.4449; RooBukinPdf of RooFit)

    Example: ``Bukin(m, mu=5.8, sigma=0.1, xi=0.2, rho_left=-0.1, rho_right=-0.2)``
    """

    x: Observable
    mu: Number
    sigma: Positive
    xi: Number
    rho_left: Number
    rho_right: Number

    def constants(self) -> Constants:
        """Return what the formula is made of besides the distance from the peak."""
        xi = to_expr(self.xi)
        root, bend = Op.SQRT(1 + xi**2), 1 / asinhrel(xi)
        fall = 4 * math.log(2) * root * bend
        return Constants(
            slope=WIDTH * root * bend,
            tail=4 * xi / (WIDTH * bend),
            left=0.5 * (1 - xi / root),
            right=0.5 * (1 + xi / root),
            fall_left=fall / (root - xi) ** 2,
            fall_right=fall / (root + xi) ** 2,
        )

    def distance(self, x: Expr) -> Expr:
        return (x - to_expr(self.mu)) / (WIDTH * to_expr(self.sigma))

    def density(self) -> Expr:
        c, d = self.constants(), self.distance(self.x.expr)
        inside = clip(d, -c.left, c.right)
        stretched = c.stretched(inside)
        below, above = Op.MAX(-c.left - d, const(0)), Op.MAX(d - c.right, const(0))
        tails = self.rho_left * (below / c.left) ** 2 - c.fall_left * below
        tails = tails + self.rho_right * (above / c.right) ** 2 - c.fall_right * above
        return Op.EXP(tails - 0.5 * stretched**2)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        c, low, high = self.constants(), self.distance(low), self.distance(high)
        middle = [clip(end, -c.left, c.right) for end in (low, high)]
        first, last = (c.stretched(end) - c.tail for end in middle)
        core = Op.EXP(0.5 * c.tail**2) / c.slope * if_any(middle, normal_area(first, last, ONE))
        zero = const(0)
        below = [Op.MAX(-c.left - end, zero) for end in (high, low)]
        above = [Op.MAX(end - c.right, zero) for end in (low, high)]
        left = tail_area(below, to_expr(self.rho_left) / c.left**2, c.fall_left)
        right = tail_area(above, to_expr(self.rho_right) / c.right**2, c.fall_right)
        return WIDTH * to_expr(self.sigma) * (core + 0.5 * (left + right))


@dataclass(frozen=True, eq=False, kw_only=True)
class Constants:
    """Numbers of a Bukin function, distances in units of the full width at half maximum."""

    slope: Expr  # of the stretched distance, at the peak
    tail: Expr  # parameter of the Novosibirsk function in the middle
    left: Expr  # from the peak to half of it
    right: Expr
    fall_left: Expr  # rates at which the tails begin to fall
    fall_right: Expr

    def stretched(self, d: Expr) -> Expr:
        """Return the distance in which the middle is a Gaussian of width one."""
        return self.slope * d * log1prel(self.tail * self.slope * d)


def tail_area(between: Sequence[Expr], growth: Expr, fall: Expr) -> Expr:
    r"""Return $\int e^{k y^2-c y}dy$ between two positive distances, by Dawson's function or erfcx as k is positive or not.

    Both are the series of an almost straight exponent where k is small, and next to zero that has all derivatives.
    """
    ends = []
    for y in between:
        slope, height = fall - 2 * growth * y, Op.EXP((growth * y - fall) * y)
        straight = STRAIGHT * abs(growth) < slope**2
        bend, series = where(straight, 2 * growth / where(straight, slope, 1) ** 2, 0), to_expr(SERIES[-1])
        for coefficient in reversed(SERIES[:-1]):
            series = series * bend + coefficient
        k = where(straight, fall**2, growth)  # no formula divides by zero
        root = Op.SQRT(abs(k))
        shift = fall / (2 * root)
        rising = 0.5 * math.sqrt(math.pi) * Op.WOFZ_IMAG(root * y - shift, 0)
        bent = where(k > 0, rising, -0.5 * math.sqrt(math.pi) * Op.ERFCX(root * y + shift)) / root
        ends.append(height * where(straight, -series / where(straight, slope, 1), bent))
    return if_any(between, ends[1] - ends[0])


def if_any(between: Sequence[Expr], area: Expr) -> Expr:
    """Return the area of a piece, exactly zero if it is empty: rounding would be more than a far tail holds."""
    return where(between[0] < between[1], area, 0)
