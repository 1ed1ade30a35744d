"""Formulas that several shapes share, written so that they stay exact where the naive ones fail."""

from __future__ import annotations

import math

import numpy as np

from morefit.expr import Expr, Op, Operand, add_all, apply, const, to_expr, where
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

SERIES = 19  # terms: below |z| = 1 the next one is under 1e-18 of the sum, also in the second derivative
LOG_SERIES = 16  # terms, in squares of s = z/(2 + z): the same below |z| = 1/2
ASINH_SERIES = 13  # terms, in squares of z: the same below |z| = 1/4
WIDE = 0.25  # a Gaussian over a range of less than half a sigma is wide
WIDE_POINTS = 8  # Gauss-Legendre: exact to 1e-19 for wide ones
TINY = 1e-300  # instead of an area or a density that is nothing


def exprel(z: Expr) -> Expr:
    r"""Return $(e^z - 1)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    series = const(1 / math.factorial(SERIES + 1))
    for k in range(SERIES, 0, -1):
        series = series * z + 1 / math.factorial(k)
    return where(abs(z) < 1, series, apply(Op.EXPM1, z) / z)


def log1prel(z: Expr) -> Expr:
    r"""Return $\ln(1 + z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z > -1."""
    square, series = (z / (2 + z)) ** 2, const(1 / (2 * LOG_SERIES + 1))
    for k in range(LOG_SERIES - 1, -1, -1):
        series = series * square + 1 / (2 * k + 1)
    return where(abs(z) < 0.5, 2 / (2 + z) * series, apply(Op.LOG1P, z) / z)


def sinhrel(z: Expr) -> Expr:
    r"""Return $\sinh(z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    return 0.5 * (exprel(z) + exprel(-z))


def asinhrel(z: Expr) -> Expr:
    r"""Return $\mathrm{arsinh}(z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    series = const(0)
    for k in range(ASINH_SERIES, -1, -1):
        series = series * -(z**2) + math.comb(2 * k, k) / (4**k * (2 * k + 1))
    return where(abs(z) < 0.25, series, Op.ASINH(z) / z)


def normal_integral(low: Expr, high: Expr) -> Expr:
    r"""Return $\int_{low}^{high} e^{-t^2/2}\,dt$, exact in relative terms also far out in a tail."""
    middle = abs(low + high) / (2 * math.sqrt(2))
    half = (high - low) / (2 * math.sqrt(2))
    return math.sqrt(math.pi / 2) * (apply(Op.ERFC, middle - half) - apply(Op.ERFC, middle + half))


def normal_area(low: Expr, high: Expr, sigma: Expr) -> Expr:
    r"""Return $\int_{low}^{high} e^{-d^2/2\sigma^2}\,dd$, exact with its first two derivatives for any width.

    Where the range is narrow, the difference of two error functions would lose the derivatives by the width; the
    density is then almost flat, and integrated as the value in the middle times a mean of what it is relative to it.
    """
    middle, half = (low + high) / (2 * sigma), (high - low) / (2 * sigma)
    tilt = middle * half
    nodes, weights = np.polynomial.legendre.leggauss(WIDE_POINTS)
    relative = [
        w / 2 * apply(Op.EXP, -x * tilt - 0.5 * x**2 * half**2) for x, w in zip(nodes, weights, strict=True)
    ]
    flat = (high - low) * apply(Op.EXP, -0.5 * middle**2) * add_all(*relative)
    wide = (half < WIDE) & (abs(tilt) < WIDE)
    return where(wide, flat, sigma * normal_integral(low / sigma, high / sigma))


def gaussian_area(low: Expr, high: Expr, mu: Operand, sigma: Expr) -> Expr:
    r"""Return $\int_{low}^{high} e^{-(x-\mu)^2/2\sigma^2}\,dx$; between numbers the form for narrow ranges is left out where it is not needed."""
    if is_wide(low, high, sigma):
        return sigma * normal_integral((low - mu) / sigma, (high - mu) / sigma)
    return normal_area(low - mu, high - mu, sigma)


def is_wide(low: Expr, high: Expr, sigma: Expr) -> bool:
    """Return whether a range between numbers is so wide that the form for narrow ranges is never needed."""
    return low.op is high.op is Op.CONST and high.number - low.number >= 2 * WIDE * largest(sigma)


def largest(value: Operand) -> float:
    """Return how large a quantity can get in size, as limits and ranges have it; infinite if unknown."""
    expr = to_expr(value)
    if isinstance(expr.value, Parameter | Observable) and not getattr(expr.value, "blind", None):
        return max(abs(expr.value.low), abs(expr.value.high))
    if expr.op is Op.CONST:
        return abs(expr.number)
    sizes = [largest(one) for one in expr.args] if expr.op in (Op.ADD, Op.MUL) else [math.inf]
    return math.fsum(sizes) if expr.op is Op.ADD else math.prod(sizes)
