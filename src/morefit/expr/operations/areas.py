"""Areas below curves that have short derivatives and long formulas: these are written out once, after differentiation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.choices import Choices
from morefit.expr.operations.exponential import Exponential
from morefit.expr.operations.record import Operation, Prefix
from morefit.expr.operations.special import Special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

WIDE = 0.25  # a Gaussian over a range of less than half a sigma is wide
WIDE_POINTS = 8  # Gauss-Legendre: exact to 1e-19 for wide ones
SERIES = 19  # terms: below |z| = 1 the next one is under 1e-18 of the sum, also in the second derivative
LOG_SERIES = 16  # terms, in squares of s = z/(2 + z): the same below |z| = 1/2
SMALL_GROWTH = 0.05  # of a power law over its whole width: below, also times its power, it is a short series
GROWTH_TERMS = 12  # the next one is under 1e-16 of the sum


def normal_integral(middle: Any, width: Any, sigma: Any, erfc: Any) -> Any:
    r"""Return the integral of $e^{-d^2/2\sigma^2}$ over a range, exact in relative terms also far out in a tail."""
    scale = sigma**-1 * math.sqrt(0.5)
    centre, half = abs(middle) * scale, width * (0.5 * scale)
    return sigma * math.sqrt(math.pi / 2) * (erfc(centre - half) - erfc(centre + half))


def normal_area(middle: Any, width: Any, sigma: Any, choose: Any, exp: Any, erfc: Any) -> Any:
    """Return the same, exact also where the range is narrow.

    The difference of two error functions would lose its digits there; the density is then almost flat, and integrated as
    the value in the middle times a mean of what it is relative to it.
    """
    scale = sigma**-1
    centre, half = middle * scale, width * (0.5 * scale)
    tilt, square = centre * half, half * half
    nodes, weights = np.polynomial.legendre.leggauss(WIDE_POINTS)
    relative = [
        float(w / 2) * exp(tilt * float(-x) + square * float(-0.5 * x * x))
        for x, w in zip(nodes, weights, strict=True)
    ]
    flat = width * exp(centre * centre * -0.5) * reduce(add, relative)
    wide = (half < WIDE) & (abs(tilt) < WIDE)
    return choose(wide, flat, normal_integral(middle, width, sigma, erfc))


def by_range(middle: Expr, width: Expr, sigma: Expr) -> tuple[Expr, Expr]:
    """Return the derivatives of an area below a Gaussian by the middle and the width of its range."""
    first, last = (np.exp(-0.5 * ((middle + side * width) / sigma) ** 2) for side in (-0.5, 0.5))
    return last - first, 0.5 * (first + last)


def by_narrow_range(middle: Expr, width: Expr, sigma: Expr) -> tuple[Expr, Expr]:
    """Return the same, exact also where the densities at both ends are almost equal."""
    side = Choices.WHERE(middle < 0, -1, 1)  # with a derivative in the middle, unlike a sign
    near = np.exp(-0.5 * ((side * middle - 0.5 * width) / sigma) ** 2)
    rest = Exponential.EXPM1(
        -side * middle * width / sigma**2
    )  # of the far end: less one, in units of the near one
    return side * near * rest, near * (1 + 0.5 * rest)


def with_sigma(area: Operation, slopes: tuple[Expr, Expr], args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the derivatives by the middle, the width, and sigma, which follows since an area scales with all three."""
    middle, width, sigma = args
    return *slopes, (area(*args) - middle * slopes[0] - width * slopes[1]) / sigma


def exprel(z: Any, choose: Any, expm1: Any) -> Any:
    r"""Return $(e^z - 1)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    series = 1 / math.factorial(SERIES + 1)
    for k in range(SERIES, 0, -1):
        series = series * z + 1 / math.factorial(k)
    return choose(abs(z) < 1, series, expm1(z) / z)


def log1prel(z: Any, choose: Any, log1p: Any) -> Any:
    r"""Return $\ln(1 + z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z > -1."""
    square, series = (z / (2 + z)) ** 2, 1 / (2 * LOG_SERIES + 1)
    for k in range(LOG_SERIES - 1, -1, -1):
        series = series * square + 1 / (2 * k + 1)
    return choose(abs(z) < 0.5, 2 / (2 + z) * series, log1p(z) / z)


def power_area(width: Any, growth: Any, n: Any, choose: Any, expm1: Any, log1p: Any) -> Any:
    r"""Return $\int_0^{width} (1 + growth\,u)^{-n}\,du$; no formula divides by growth or by n - 1."""
    grown = growth * width
    return width * log1prel(grown, choose, log1p) * exprel((1 - n) * log1p(grown), choose, expm1)


def power_area_partials(width: Expr, growth: Expr, n: Expr) -> tuple[Expr, ...]:
    """Return the density at the end, what follows for the growth by scaling, and the derivative of the formula by n."""
    where, log1p = Choices.WHERE, Exponential.LOG1P
    area, grown = Areas.POWER_AREA(width, growth, n), growth * width
    length = log1p(grown)
    end, z = np.exp(-n * length), (1 - n) * length
    small = (abs(grown) < SMALL_GROWTH) & (abs(n * grown) < SMALL_GROWTH)
    term, series = -n, -0.5 * n  # of the binomial series, whose other form would lose its digits
    for k in range(1, GROWTH_TERMS):
        term = term * grown * (n + k) / -(k + 1)
        series = series + term * ((k + 1) / (k + 2))
    by_growth = where(small, series * width**2, (width * end - area) / where(small, 1, growth))
    moment: Any = 1 / (math.factorial(SERIES) * (SERIES + 2))  # the derivative of exprel
    for k in range(SERIES - 1, -1, -1):
        moment = moment * z + 1 / (math.factorial(k) * (k + 2))
    moment = where(abs(z) < 1, moment, (np.exp(z) - Exponential.EXPM1(z) / z) / z)
    return end, by_growth, -width * log1prel(grown, where, log1p) * length * moment


@np.errstate(all="ignore")
def numbers(formula: Callable[..., Any], args: tuple[Any, ...], *functions: Any) -> Any:
    """Return the value of a formula for numbers."""
    return np.asarray(formula(*map(np.float64, args), *functions))[()]


class Areas:
    """Integrals between two ends."""

    NORMAL_AREA: Operation = (
        Operation(  # of the distance of the middle of a range from the mean, of its width, and of sigma
            rank=73,
            arity=3,
            price=400,
            numpy=lambda *args: numbers(normal_area, args, np.where, np.exp, Special.ERFC.numpy),
            partials=lambda *args: with_sigma(Areas.NORMAL_AREA, by_narrow_range(*args), args),
            latex=Prefix(r"\operatorname{area}"),
            spelled=lambda middle, width, sigma: normal_area(
                middle, width, sigma, Choices.WHERE, np.exp, Special.ERFC
            ),
        )
    )
    NORMAL_INTEGRAL: Operation = Operation(  # the same, for a range that is never narrow
        rank=74,
        arity=3,
        price=200,
        numpy=lambda *args: numbers(normal_integral, args, Special.ERFC.numpy),
        partials=lambda *args: with_sigma(Areas.NORMAL_INTEGRAL, by_range(*args), args),
        latex=Prefix(r"\operatorname{integral}"),
        spelled=lambda middle, width, sigma: normal_integral(middle, width, sigma, Special.ERFC),
    )
    POWER_AREA: Operation = Operation(  # of the width, the growth and the power
        rank=75,
        arity=3,
        price=200,
        numpy=lambda *args: numbers(power_area, args, np.where, np.expm1, np.log1p),
        partials=power_area_partials,
        latex=Prefix(r"\operatorname{power}"),
        spelled=lambda width, growth, n: power_area(
            width, growth, n, Choices.WHERE, Exponential.EXPM1, Exponential.LOG1P
        ),
    )
