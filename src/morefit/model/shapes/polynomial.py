"""Polynomials, and the polynomial without any coefficient."""

from __future__ import annotations

import math

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, add_all, const
from morefit.model.arguments import Coefficients
from morefit.model.density import Density
from morefit.model.formulas import TINY
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf

LARGEST_LOGARITHM = 700.0  # of a double, and a little to spare


@dataclass(frozen=True, eq=False)
class Polynomial(Pdf):
    r"""$1 + \sum_{k\ge1} c_k\,x^k$ on the range of $x$.

    Example: ``Polynomial(m, coefficients=[-0.1, 0.005])``
    """

    x: Observable
    coefficients: Coefficients

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.coefficients:
            raise ModelError("polynomial: needs at least one coefficient; use mf.Uniform for none")
        degree, size = len(self.coefficients), max(abs(self.x.low), abs(self.x.high))
        if (degree + 1) * math.log(max(size, 1.0)) > LARGEST_LOGARITHM:
            raise ModelError(
                f"polynomial: {self.x.name}**{degree + 1} is too large for a number on [{self.x.low}, {self.x.high}];"
                " use other units"
            )

    def density(self) -> Expr:
        return add_all(ONE, *(c * self.x**k for k, c in enumerate(self.coefficients, 1)))

    def integral(self) -> Expr:
        low, high = self.x.low, self.x.high
        powers = [(high ** (k + 1) - low ** (k + 1)) / (k + 1) for k in range(len(self.coefficients) + 1)]
        return add_all(const(powers[0]), *(c * p for c, p in zip(self.coefficients, powers[1:], strict=True)))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        # high**(k+1) - low**(k+1), divided by its factor high - low so that narrow bins keep their digits
        means = [add_all(*(high**i * low ** (k - i) for i in range(k + 1))) / (k + 1)
                 for k in range(1, len(self.coefficients) + 1)]  # fmt: skip
        return (high - low) * add_all(ONE, *(c * m for c, m in zip(self.coefficients, means, strict=True)))

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        centre = self.x - mean
        powers = [smeared_power(centre, sigma, k) for k in range(1, len(self.coefficients) + 1)]
        terms = [c * power for c, power in zip(self.coefficients, powers, strict=True)]
        return ONE, Density(add_all(ONE, *terms), self.x)

    def quantile(self, probability: Expr) -> Expr | None:
        if len(self.coefficients) > 1:
            return None
        (c,) = self.coefficients
        first, area = 1 + c * self.x.low, probability * self.integral()
        # the root of first*u + c*u**2/2 = area that is right at c = 0, and where the density vanishes at an edge
        last = Op.SQRT(Op.MAX(first**2 + 2 * c * area, const(0)))
        return self.x.low + 2 * area / Op.MAX(first + last, const(TINY))


def smeared_power(centre: Expr, sigma: Expr, k: int) -> Expr:
    """Return the mean of a power of a Gaussian number: of its moments only even ones count."""
    moments = [math.comb(k, j) * math.prod(range(1, j, 2)) for j in range(0, k + 1, 2)]
    return add_all(*(m * sigma ** (2 * i) * centre ** (k - 2 * i) for i, m in enumerate(moments)))


@dataclass(frozen=True, eq=False)
class Uniform(Pdf):
    r"""$1$ on the range of $x$.

    Example: ``Uniform(m)``
    """

    x: Observable

    def density(self) -> Expr:
        return ONE

    def integral(self) -> Expr:
        return const(self.x.high - self.x.low)

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        return high - low

    def quantile(self, probability: Expr) -> Expr:
        return self.x.low + (self.x.high - self.x.low) * probability

    def smeared(self, mean: Expr, sigma: Expr) -> tuple[Expr, Pdf]:
        return ONE, self
