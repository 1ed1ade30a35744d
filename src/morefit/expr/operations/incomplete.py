"""Incomplete gamma functions, regularised: distribution functions of gamma distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special
from morefit.expr.operations.special import Special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

PANELS = 24  # of the reference integral, besides those about its peak and its end


def derivative_by_shape(times: int) -> Any:
    """Return a function for a derivative of P(a, x) by a, from integrals of log(t)^k t^(a - 1) e^-t over both sides of x."""

    def derivative(a: Any, x: Any) -> Any:
        function = np.vectorize(lambda a, x: one_derivative(float(a), float(x), times), otypes=[np.float64])
        return function(a, x)

    return derivative


def one_derivative(a: float, x: float, times: int) -> float:
    """Integrate over u = log(t) on the lighter side of x, by Gauss-Legendre panels that follow the peak at u = log(a)."""
    if not (a >= 0 and x >= 0 and math.isfinite(a)):
        return math.nan
    if a == 0 or x in (0.0, math.inf):
        return 0.0
    start, peak, width = math.log(x), math.log(a), 1 / math.sqrt(a)
    upper = x > a
    end = start + 12 * width + 40 if upper else start - 12 * width - 40 / min(a, 1.0)
    cuts = [peak + k * width for k in range(-12, 13)]
    cuts += [start + sign * width * 2.0**-k for k in range(12) for sign in (-1, 1)]
    low, high = sorted((start, end))
    edges = np.unique([*np.linspace(low, high, PANELS), *(cut for cut in cuts if low < cut < high)])
    nodes, weights = np.polynomial.legendre.leggauss(30)
    half = 0.5 * np.diff(edges)[:, None]
    u = edges[:-1, None] + half * (1 + nodes)
    with np.errstate(over="ignore", under="ignore"):
        body = half * weights * np.exp(a * u - np.exp(u) - scipy_special("gammaln")(a))
    slope = u - scipy_special("psi")(a)
    moment = slope if times == 1 else slope**2 - scipy_special("polygamma", 1)(a)
    return float(np.sum(body * moment)) * (-1.0 if upper else 1.0)


def density_of_numbers(a: Any, x: Any) -> Any:
    """Return x^(a - 1) e^-x / Gamma(a)."""
    with np.errstate(all="ignore"):
        logarithm = scipy_special("xlogy")(np.subtract(a, 1), x) - x - scipy_special("gammaln")(a)
        inside = np.logical_and(np.greater(a, 0), np.greater_equal(x, 0)) & np.isfinite(a)
        return np.where(inside, np.where(np.isinf(x), 0.0, np.exp(logarithm)), np.nan)[()]


def log_distance(a: Expr, x: Expr) -> Expr:
    return np.log(x) - Special.DIGAMMA(a)  # type: ignore[no-any-return]


class Incomplete:
    """Incomplete gamma functions of scipy.special, and their derivatives."""

    GAMMAINC: Operation = Operation(
        rank=64,
        arity=2,
        price=2000,
        numpy=scipy_special("gammainc"),
        ufuncs=("gammainc",),
        partials=lambda a, x: (Incomplete.GAMMAINC_BY_SHAPE(a, x), Incomplete.GAMMA_DENSITY(a, x)),
        latex=Prefix(r"P"),
        routine="gammainc",
        traits=Trait.NOT_NEGATIVE,
    )
    GAMMAINCC: Operation = Operation(
        rank=65,
        arity=2,
        price=2000,
        numpy=scipy_special("gammaincc"),
        ufuncs=("gammaincc",),
        partials=lambda a, x: (-Incomplete.GAMMAINC_BY_SHAPE(a, x), -Incomplete.GAMMA_DENSITY(a, x)),
        latex=Prefix(r"Q"),
        routine="gammaincc",
        traits=Trait.NOT_NEGATIVE,
    )
    GAMMAINC_BY_SHAPE: Operation = Operation(
        rank=66,
        arity=2,
        price=3000,
        numpy=derivative_by_shape(1),
        partials=lambda a, x: (
            Incomplete.GAMMAINC_BY_SHAPE_TWICE(a, x),
            Incomplete.GAMMA_DENSITY(a, x) * log_distance(a, x),
        ),
        latex=Prefix(r"P^{(1)}"),
        routine="gammainc_by_shape",
    )
    GAMMAINC_BY_SHAPE_TWICE: Operation = Operation(
        rank=67,
        arity=2,
        price=3000,
        numpy=derivative_by_shape(2),
        partials=lambda a, x: (
            None,
            Incomplete.GAMMA_DENSITY(a, x) * (log_distance(a, x) ** 2 - Special.TRIGAMMA(a)),
        ),
        latex=Prefix(r"P^{(2)}"),
        routine="gammainc_by_shape_twice",
    )
    GAMMA_DENSITY: Operation = Operation(
        rank=125,
        arity=2,
        price=270,
        numpy=density_of_numbers,
        partials=lambda a, x: (
            Incomplete.GAMMA_DENSITY(a, x) * log_distance(a, x),
            Incomplete.GAMMA_DENSITY(a, x) * ((a - 1) / x - 1),
        ),
        latex=Prefix(r"P'"),
        routine="gamma_density",
        traits=Trait.NOT_NEGATIVE,
    )
