"""Areas below curves, and ratios of zeros, that have short derivatives and long formulas: these are written out once, after differentiation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.dataclass import dataclass
from morefit.expr.operations.arithmetic import Choices
from morefit.expr.operations.elementary import Exponential
from morefit.expr.operations.record import Operation, Prefix, Trait
from morefit.expr.operations.special import Special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

WIDE = 0.25  # a Gaussian over a range of less than half a sigma is wide
# Gauss-Legendre points and weights, exact to 1e-19 for wide ones: to import what computes them takes longer
WIDE_RULE = (
    (0.18343464249564978, 0.36268378337836166), (0.525532409916329, 0.3137066458778869),
    (0.7966664774136267, 0.22238103445337443), (0.9602898564975362, 0.10122853629037706),
)  # fmt: skip
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
    points = (*((-x, w) for x, w in reversed(WIDE_RULE)), *WIDE_RULE)
    relative = [0.5 * w * exp(tilt * -x + square * (-0.5 * x * x)) for x, w in points]
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
    # of the far end: less one, in units of the near one
    rest = Exponential.EXPM1(-side * middle * width / sigma**2)
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


def exprel_slope(z: Any, order: int, choose: Any, exp: Any, expm1: Any) -> Any:
    r"""Return the first or second derivative of $(e^z - 1)/z$: a moment of $e^{zt}$ for t between 0 and 1."""
    series: Any = 1 / (math.factorial(SERIES) * (SERIES + 1 + order))
    for k in range(SERIES - 1, -1, -1):
        series = series * z + 1 / (math.factorial(k) * (k + 1 + order))
    far = (exp(z) - expm1(z) / z) / z
    return choose(abs(z) < 1, series, far if order == 1 else (exp(z) - far * 2) / z)


@dataclass(frozen=True)
class PowerLaw:
    r"""The area $\int_0^{width} (1 + growth\,u)^{-n}\,du$ and its derivatives, of numbers or of expressions.

    No formula divides by growth or by n - 1 where these are small.
    """

    width: Any
    growth: Any
    n: Any
    choose: Any
    exp: Any
    expm1: Any
    log1p: Any

    @classmethod
    def written(cls, width: Any, growth: Any, n: Any) -> PowerLaw:
        """Return the formulas as expressions."""
        return cls(
            width,
            growth,
            n,
            choose=Choices.WHERE,
            exp=np.exp,
            expm1=Exponential.EXPM1,
            log1p=Exponential.LOG1P,
        )

    @cached_property
    def grown(self) -> Any:
        return self.growth * self.width

    @cached_property
    def length(self) -> Any:
        return self.log1p(self.grown)

    @cached_property
    def end(self) -> Any:
        """The density at the end, which is the derivative by the width."""
        return self.exp(-self.n * self.length)

    @cached_property
    def end_by_growth(self) -> Any:
        return -self.n * self.width * self.end / (1 + self.grown)

    @cached_property
    def end_by_n(self) -> Any:
        return -self.length * self.end

    @cached_property
    def stretch(self) -> Any:
        return self.width * log1prel(self.grown, self.choose, self.log1p)

    @cached_property
    def area(self) -> Any:
        return self.stretch * exprel((1 - self.n) * self.length, self.choose, self.expm1)

    def moment(self, order: int) -> Any:
        return exprel_slope((1 - self.n) * self.length, order, self.choose, self.exp, self.expm1)

    @cached_property
    def by_n(self) -> Any:
        return -self.stretch * self.length * self.moment(1)

    @cached_property
    def by_n_twice(self) -> Any:
        return self.stretch * self.length**2 * self.moment(2)

    @cached_property
    def small(self) -> Any:
        """Whether differences of areas would lose their digits, and a short series has them."""
        return (abs(self.grown) < SMALL_GROWTH) & (abs(self.n * self.grown) < SMALL_GROWTH)

    @cached_property
    def series(self) -> tuple[Any, Any, Any]:
        """Return the binomial series of the derivative by the growth, and its derivatives by the grown part and by n."""
        z, n = self.grown, self.n
        last = -1 / (GROWTH_TERMS + 1)
        by_z, by_n = (n + (GROWTH_TERMS - 1)) * last, z * last
        h = z * by_z + (1 - 1 / GROWTH_TERMS)
        for k in range(GROWTH_TERMS - 2, 0, -1):
            share = -1 / (k + 1)
            factor = (n + k) * share
            by_z, by_n = factor * (z * by_z + h), z * (factor * by_n + h * share)
            h = z * factor * h + k / (k + 1)
        return -n * h, -n * by_z, -n * by_n - h

    def where_small(self, series: Any, difference: Any) -> Any:
        return self.choose(self.small, series, difference / self.choose(self.small, 1, self.growth))

    @cached_property
    def by_growth(self) -> Any:
        return self.where_small(self.series[0] * self.width**2, self.width * self.end - self.area)

    @cached_property
    def by_growth_twice(self) -> Any:
        difference = self.width * self.end_by_growth - self.by_growth * 2
        return self.where_small(self.series[1] * self.width**3, difference)

    @cached_property
    def by_growth_and_n(self) -> Any:
        return self.where_small(self.series[2] * self.width**2, self.width * self.end_by_n - self.by_n)


def power_law(
    rank: int,
    latex: str,
    formula: Callable[[PowerLaw], Any],
    partials: Callable[..., tuple[Expr | None, ...]],
) -> Operation:
    """Return the operation that computes one of the formulas of a power law."""

    def value(width: Any, growth: Any, n: Any) -> Any:
        return formula(
            PowerLaw(width, growth, n, choose=np.where, exp=np.exp, expm1=np.expm1, log1p=np.log1p)
        )

    return Operation(
        rank=rank, arity=3, price=200, numpy=lambda *args: numbers(value, args), latex=Prefix(latex), partials=partials,
        spelled=lambda *args: formula(PowerLaw.written(*args)),
    )  # fmt: skip


@np.errstate(all="ignore")
def numbers(formula: Callable[..., Any], args: tuple[Any, ...], *functions: Any) -> Any:
    """Return the value of a formula for numbers."""
    return np.asarray(formula(*map(np.float64, args), *functions))[()]


class Areas:
    """Integrals between two ends."""

    # of the distance of the middle of a range from the mean, of its width, and of sigma
    NORMAL_AREA: Operation = Operation(
        rank=73,
        arity=3,
        price=400,
        numpy=lambda *args: numbers(normal_area, args, np.where, np.exp, Special.ERFC.numpy),
        partials=lambda *args: with_sigma(Areas.NORMAL_AREA, by_narrow_range(*args), args),
        latex=Prefix(r"\operatorname{area}"),
        spelled=lambda z, w, sigma: normal_area(z, w, sigma, Choices.WHERE, np.exp, Special.ERFC),
    )
    # the same, for a range that is never narrow
    NORMAL_INTEGRAL: Operation = Operation(
        rank=74,
        arity=3,
        price=200,
        numpy=lambda *args: numbers(normal_integral, args, Special.ERFC.numpy),
        partials=lambda *args: with_sigma(Areas.NORMAL_INTEGRAL, by_range(*args), args),
        latex=Prefix(r"\operatorname{integral}"),
        spelled=lambda middle, width, sigma: normal_integral(middle, width, sigma, Special.ERFC),
    )
    # of the width, the growth and the power; derivatives of third order are not known
    POWER_AREA: Operation = power_law(
        75,
        r"\operatorname{power}",
        lambda law: law.area,
        lambda *args: (
            PowerLaw.written(*args).end,
            Areas.POWER_AREA_BY_GROWTH(*args),
            Areas.POWER_AREA_BY_N(*args),
        ),
    )
    POWER_AREA_BY_GROWTH: Operation = power_law(
        76,
        r"\operatorname{power}_g",
        lambda law: law.by_growth,
        lambda *args: (
            PowerLaw.written(*args).end_by_growth,
            Areas.POWER_AREA_BY_GROWTH_TWICE(*args),
            Areas.POWER_AREA_BY_GROWTH_AND_N(*args),
        ),
    )
    POWER_AREA_BY_N: Operation = power_law(
        77,
        r"\operatorname{power}_n",
        lambda law: law.by_n,
        lambda *args: (
            PowerLaw.written(*args).end_by_n,
            Areas.POWER_AREA_BY_GROWTH_AND_N(*args),
            Areas.POWER_AREA_BY_N_TWICE(*args),
        ),
    )
    POWER_AREA_BY_GROWTH_TWICE: Operation = power_law(
        78, r"\operatorname{power}_{gg}", lambda law: law.by_growth_twice, lambda *args: (None, None, None)
    )
    POWER_AREA_BY_GROWTH_AND_N: Operation = power_law(
        79, r"\operatorname{power}_{gn}", lambda law: law.by_growth_and_n, lambda *args: (None, None, None)
    )
    POWER_AREA_BY_N_TWICE: Operation = power_law(
        80, r"\operatorname{power}_{nn}", lambda law: law.by_n_twice, lambda *args: (None, None, None)
    )


NEAR = 1 / 16  # squares of s = z/(2 + z) below which ln(1 + z)/z is a series of them: z from -0.4 to 0.67
TERMS = 14  # the next one is under 1e-16 of the sum


def log_ratio_of(z: Any, order: int, choose: Any, log1p: Any) -> Any:
    r"""Return $\ln(1 + z)/z$, or its first or second derivative.

    Near zero it is $2 h g(s^2)$ with $h = 1/(2 + z)$, $s = z h$ and $g(w) = \sum_k w^k/(2k + 1)$.
    """
    h = (2 + z) ** -1
    s = z * h
    square = s * s
    g, first, second = (series(square, derivative) for derivative in range(3))
    ratio = log1p(z) / z
    slope = ((1 + z) ** -1 - ratio) / z
    if order == 0:
        return choose(square < NEAR, 2 * h * g, ratio)
    if order == 1:
        return choose(square < NEAR, 2 * h**2 * (4 * s * h * first - g), slope)
    near = 4 * h**3 * (g + h * (4 * (h - 2 * s) * first + 8 * square * h * second))
    return choose(square < NEAR, near, -((1 + z) ** -2 + 2 * slope) / z)


def series(w: Any, derivative: int) -> Any:
    """Return a derivative of the sum of w^k / (2k + 1)."""
    total: Any = 0.0
    for k in range(TERMS + derivative - 1, derivative - 1, -1):
        falling = (1, k, k * (k - 1))[derivative]
        total = total * w + falling / (2 * k + 1)
    return total


def log_ratio(rank: int, order: int, **options: Any) -> Operation:
    """Return the operation that computes ln(1 + z)/z, or a derivative of it."""

    return Operation(
        rank=rank,
        price=100 * (1 + order),
        numpy=lambda z: numbers(log_ratio_of, (z, order), np.where, np.log1p),
        latex=Prefix(r"\operatorname{log1prel}" + "'" * order),
        spelled=lambda z: log_ratio_of(z, order, Choices.WHERE, Exponential.LOG1P),
        **options,
    )


class Ratios:
    """Ratios of one number; derivatives of third order are not known."""

    LOG1PREL: Operation = log_ratio(
        90, 0, partials=lambda z: (Ratios.LOG1PREL_SLOPE(z),), traits=Trait.NOT_NEGATIVE | Trait.POSITIVE
    )
    LOG1PREL_SLOPE: Operation = log_ratio(84, 1, partials=lambda z: (Ratios.LOG1PREL_BEND(z),))
    LOG1PREL_BEND: Operation = log_ratio(85, 2, partials=lambda z: (None,))
