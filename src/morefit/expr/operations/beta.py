"""The beta function and the incomplete one, with differences of digamma functions that do not cancel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special
from morefit.expr.operations.special import Special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

POINTS = 30  # of Gauss and Legendre, in each panel of a reference integral
FALL = 40.0  # by so much the logarithm of an integrand falls up to its end


@cache
def points() -> tuple[Any, Any]:
    """Return places in [0, 1] and their weights, made at the first use."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    return 0.5 * (1 + nodes), 0.5 * weights


def rise(function: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return f(x + h) - f(x) as a function of x and h: the integral of the slope, if h is small."""

    @np.errstate(all="ignore")
    def difference(x: Any, h: Any) -> Any:
        x, h = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(h, np.float64))
        places, weights = points()
        short = h < 0.5 * x
        inside = slope(np.where(short, x, 1.0)[..., None] + np.where(short, h, 0.0)[..., None] * places)
        result = np.where(short, h * (inside @ weights), function(x + h) - function(np.abs(x)))
        result = np.where(np.isinf(x), 0.0, result)
        return np.where((x >= 0) & (h >= 0), result, np.nan)[()]

    return difference


digamma_rise = rise(scipy_special("psi"), scipy_special("polygamma", 1))
trigamma_rise = rise(scipy_special("polygamma", 1), scipy_special("polygamma", 2))
lgamma_rise = rise(scipy_special("gammaln"), scipy_special("psi"))


@np.errstate(all="ignore")
def betaln_of_numbers(a: Any, b: Any) -> Any:
    """Return the logarithm of the beta function."""
    p, q = np.minimum(a, b), np.maximum(a, b)
    small = np.less(p, 0.1)  # scipy has no logarithm of the gamma function of denormal numbers
    lgamma = scipy_special("gammaln")(np.where(small, 1 + p, p)) - np.where(small, np.log(p), 0.0)
    result = lgamma - lgamma_rise(q, p)
    return np.where(np.isinf(q), np.where(np.greater_equal(p, 0), -np.inf, np.nan), result)[()]


@np.errstate(all="ignore")
def density_of_numbers(a: Any, b: Any, x: Any) -> Any:
    """Return x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    logarithm = scipy_special("xlogy")(np.subtract(a, 1), x) + scipy_special("xlog1py")(
        np.subtract(b, 1), np.negative(x)
    )
    inside = np.greater(a, 0) & np.greater(b, 0) & np.isfinite(np.add(a, b))
    inside &= np.greater_equal(x, 0) & np.less_equal(x, 1)
    return np.where(inside, np.exp(logarithm - betaln_of_numbers(a, b)), np.nan)[()]


def derivative_by_shapes(by: str) -> Any:
    """Return a function for a derivative of I_x(a, b) by its shapes, from an integral over the lighter side of x."""

    def derivative(a: Any, b: Any, x: Any) -> Any:
        function = np.vectorize(one_derivative, otypes=[np.float64], excluded=["by"])
        return function(*map(np.float64, (a, b, x)), by=by)[()]

    return derivative


def one_derivative(a: float, b: float, x: float, by: str) -> float:
    """Integrate over u = log(t / (1 - t)) by Gauss-Legendre panels that follow the peak and the ends."""
    if not (a > 0 and b > 0 and a + b < math.inf and 0 <= x <= 1):
        return math.nan
    if x in (0.0, 1.0):
        return 0.0
    upper = scipy_special("betainc")(a, b, x) > 0.5
    start, peak, width = math.log(x) - math.log1p(-x), math.log(a) - math.log(b), math.sqrt(1 / a + 1 / b)
    end = start + 12 * width + FALL / min(b, 1.0) if upper else start - 12 * width - FALL / min(a, 1.0)
    sizes = [sign * unit * 2.0**k for sign in (-1, 1) for unit in (1.0, width) for k in range(-12, 7)]
    low, high = sorted((start, end))
    cuts = (centre + size for centre in (start, peak, 0.0) for size in (0.0, *sizes))
    edges = np.unique([*np.linspace(low, high, POINTS), *(cut for cut in cuts if low < cut < high)])
    places, weights = points()
    panels = np.diff(edges)[:, None]
    u = edges[:-1, None] + panels * places
    below, above = -np.logaddexp(0.0, -u), -np.logaddexp(0.0, u)  # logarithms of t and 1 - t
    with np.errstate(over="ignore", under="ignore"):
        body = panels * weights * np.exp(a * below + b * above - betaln_of_numbers(a, b))
    slopes = {"a": below + digamma_rise(a, b), "b": above + digamma_rise(b, a)}
    bends = {
        "aa": lambda: trigamma_rise(a, b),
        "ab": lambda: scipy_special("polygamma", 1)(a + b),
        "bb": lambda: trigamma_rise(b, a),
    }
    moment = slopes[by] if len(by) == 1 else slopes[by[0]] * slopes[by[1]] + bends[by]()
    return float(np.sum(body * moment)) * (-1.0 if upper else 1.0)


def slopes_of_density(a: Expr, b: Expr, x: Expr) -> tuple[Expr, Expr]:
    """Return the derivatives of the logarithm of a beta density by its shapes."""
    return np.log(x) + Beta.DIGAMMA_RISE(a, b), np.log1p(-x) + Beta.DIGAMMA_RISE(b, a)


def by_shapes(rank: int, by: str, price: int, partials: Callable[..., tuple[Any, ...]]) -> Operation:
    """Return the operation that computes a derivative of the incomplete beta function."""
    return Operation(
        rank=rank,
        arity=3,
        price=price,
        numpy=derivative_by_shapes(by),
        partials=partials,
        latex=Prefix(f"I_{{{by}}}"),
        routine=f"betainc_by_{by}",
    )


def moved(a: Expr, b: Expr, x: Expr, by: int) -> Expr:
    """Return the derivative of the incomplete beta function by x and by a shape."""
    return Beta.BETA_DENSITY(a, b, x) * slopes_of_density(a, b, x)[by]


class Beta:
    """Beta functions of scipy.special, and their derivatives; those of third order by the shapes alone are not known."""

    BETALN: Operation = Operation(
        rank=129,
        arity=2,
        price=350,
        numpy=betaln_of_numbers,
        ufuncs=("betaln",),
        partials=lambda a, b: (-Beta.DIGAMMA_RISE(a, b), -Beta.DIGAMMA_RISE(b, a)),
        latex=Prefix(r"\ln B"),
        routine="betaln",
    )
    DIGAMMA_RISE: Operation = Operation(  # digamma(x + h) - digamma(x)
        rank=130,
        arity=2,
        price=200,
        numpy=digamma_rise,
        partials=lambda x, h: (Beta.TRIGAMMA_RISE(x, h), Special.TRIGAMMA(x + h)),
        latex=Prefix(r"\Delta\psi"),
        routine="digamma_rise",
        traits=Trait.NOT_NEGATIVE,
    )
    TRIGAMMA_RISE: Operation = Operation(
        rank=131,
        arity=2,
        price=200,
        numpy=trigamma_rise,
        partials=lambda x, h: (
            Special.TETRAGAMMA(x + h) - Special.TETRAGAMMA(x),
            Special.TETRAGAMMA(x + h),
        ),
        latex=Prefix(r"\Delta\psi_{1}"),
        routine="trigamma_rise",
    )
    BETAINC: Operation = Operation(
        rank=68,
        arity=3,
        price=2000,
        numpy=scipy_special("betainc"),
        ufuncs=("betainc",),
        partials=lambda a, b, x: (
            Beta.BETAINC_BY_A(a, b, x),
            Beta.BETAINC_BY_B(a, b, x),
            Beta.BETA_DENSITY(a, b, x),
        ),
        latex=Prefix(r"I"),
        routine="betainc",
        traits=Trait.NOT_NEGATIVE,
    )
    BETA_DENSITY: Operation = Operation(
        rank=132,
        arity=3,
        price=650,
        numpy=density_of_numbers,
        partials=lambda a, b, x: (
            moved(a, b, x, 0),
            moved(a, b, x, 1),
            Beta.BETA_DENSITY(a, b, x) * ((a - 1) / x - (b - 1) / (1 - x)),
        ),
        latex=Prefix(r"I'"),
        routine="beta_density",
        traits=Trait.NOT_NEGATIVE,
    )
    BETAINC_BY_A: Operation = by_shapes(
        133, "a", 3800,
        lambda a, b, x: (Beta.BETAINC_BY_AA(a, b, x), Beta.BETAINC_BY_AB(a, b, x), moved(a, b, x, 0)),
    )  # fmt: skip
    BETAINC_BY_B: Operation = by_shapes(
        134, "b", 3800,
        lambda a, b, x: (Beta.BETAINC_BY_AB(a, b, x), Beta.BETAINC_BY_BB(a, b, x), moved(a, b, x, 1)),
    )  # fmt: skip
    BETAINC_BY_AA: Operation = by_shapes(135, "aa", 5600, lambda a, b, x: (None, None, None))
    BETAINC_BY_AB: Operation = by_shapes(136, "ab", 6800, lambda a, b, x: (None, None, None))
    BETAINC_BY_BB: Operation = by_shapes(137, "bb", 5600, lambda a, b, x: (None, None, None))
