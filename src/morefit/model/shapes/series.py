"""Series of polynomials over the range of the observable: Chebyshev, Legendre, Bernstein."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import ONE, Expr, Op, add_all
from morefit.functions import bernstein_series, chebyshev_series, legendre_series
from morefit.model.arguments import Coefficients
from morefit.model.observable import Observable
from morefit.model.pdf import Pdf


@dataclass(frozen=True, eq=False)
class _Series(Pdf):
    """One plus a sum of orthogonal polynomials, in t from -1 to 1 over the range of x."""

    x: Observable
    coefficients: Coefficients

    def __post_init__(self) -> None:
        super().__post_init__()
        check_coefficients(self, 1)

    @abstractmethod
    def series(self, t: Expr) -> Expr:
        """Return the density as a function of t."""

    def density(self) -> Expr:
        return self.series(along(self.x, self.x.expr, -1))

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        ends = along(self.x, low, -1), along(self.x, high, -1)
        half = 0.5 * (self.x.high - self.x.low)
        return half * area_of_polynomial(self.series, len(self.coefficients), *ends)


@dataclass(frozen=True, eq=False)
class Chebyshev(_Series):
    r"""$1+\sum_{k\ge1}c_kT_k(t)$ with $t$ from -1 to 1 over the range of $x$, and Chebyshev's polynomials $T_k$.

    (RooChebychev of RooFit)

    Example: ``Chebyshev(m, coefficients=[-0.3, 0.1])``
    """

    def series(self, t: Expr) -> Expr:
        return chebyshev_series([ONE, *self.coefficients], t)


@dataclass(frozen=True, eq=False)
class Legendre(_Series):
    r"""$1+\sum_{k\ge1}c_kP_k(t)$ with $t$ from -1 to 1 over the range of $x$, and Legendre's polynomials $P_k$.

    Its integral over the range does not depend on the coefficients, which are hardly correlated.

    Example: ``Legendre(m, coefficients=[-0.3, 0.1])``
    """

    def series(self, t: Expr) -> Expr:
        return legendre_series([ONE, *self.coefficients], t)


@dataclass(frozen=True, eq=False)
class Bernstein(Pdf):
    r"""$\sum_{k=0}^nc_k\binom nkt^k(1-t)^{n-k}$ with $t$ from 0 to 1 over the range of $x$.

    Positive everywhere if all coefficients are; ``positive=True`` takes their squares instead of them, so that they
    may be any numbers. Only ratios of coefficients matter: make one of them a number. (RooBernstein of RooFit)

    Example: ``Bernstein(m, coefficients=[1.0, 0.6, 0.4], positive=False)``
    """

    x: Observable
    coefficients: Coefficients
    positive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_coefficients(self, 2)

    def weights(self) -> list[Expr]:
        """Return what multiplies the polynomials."""
        return [c**2 for c in self.coefficients] if self.positive else list(self.coefficients)

    def density(self) -> Expr:
        return bernstein_series(self.weights(), along(self.x, self.x.expr, 0))

    def integral(self) -> Expr:
        return (self.x.high - self.x.low) / len(self.coefficients) * add_all(*self.weights())

    def integral_between(self, low: Expr, high: Expr) -> Expr:
        ends = along(self.x, low, 0), along(self.x, high, 0)
        degree = len(self.coefficients) - 1
        return (self.x.high - self.x.low) * area_of_polynomial(
            lambda t: bernstein_series(self.weights(), t), degree, *ends
        )


@dataclass(frozen=True, eq=False)
class ExponentialOfPolynomial(Pdf):
    r"""$e^{\sum_{k\ge1}c_kt^k}$ with $t$ from -1 to 1 over the range of $x$; positive for any coefficients.

    (RooExpPoly of RooFit, in other units)

    Example: ``ExponentialOfPolynomial(m, coefficients=[-1.0, 0.4])``
    """

    x: Observable
    coefficients: Coefficients

    def __post_init__(self) -> None:
        super().__post_init__()
        check_coefficients(self, 1)

    def density(self) -> Expr:
        t = along(self.x, self.x.expr, -1)
        return Op.EXP(add_all(*(c * t**k for k, c in enumerate(self.coefficients, 1))))


def along(x: Observable, value: Expr, start: int) -> Expr:
    """Return where a value lies in a range, from ``start`` at its lower end to 1 at its upper one."""
    half = (x.high - x.low) / (1 - start)
    return (value - 0.5 * (x.low + x.high)) / half if start < 0 else (value - x.low) / half


def area_of_polynomial(polynomial: Callable[[Expr], Expr], degree: int, low: Expr, high: Expr) -> Expr:
    """Integrate a polynomial from end to end by as many Gauss-Legendre nodes as make it exact; narrow bins keep their digits."""
    nodes, weights = np.polynomial.legendre.leggauss(math.ceil((degree + 1) / 2))
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    values = [float(w) * polynomial(middle + float(u) * half) for u, w in zip(nodes, weights, strict=True)]
    return half * add_all(*values)


def check_coefficients(density: _Series | Bernstein | ExponentialOfPolynomial, least: int) -> None:
    """Refuse a series with too few coefficients to depend on the observable."""
    if len(density.coefficients) < least:
        raise ModelError(
            f"density '{type(density).__name__}': needs at least {least} coefficient{'s' * (least > 1)},"
            f" got {len(density.coefficients)}; use mf.Uniform for none"
        )
