"""Formulas that several shapes share, written so that they stay exact where the naive ones fail."""

from __future__ import annotations

import math
from collections.abc import Callable

from morefit.expr import Expr, Op, Operand, const, to_expr, where
from morefit.expr.operations import areas
from morefit.expr.operations.areas import WIDE
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

ASINH_SERIES = 13  # terms, in squares of z: the same below |z| = 1/4
TINY = 1e-300  # instead of an area or a density that is nothing


def exprel(z: Expr) -> Expr:
    r"""Return $(e^z - 1)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    return to_expr(areas.exprel(z, where, Op.EXPM1))


def log1prel(z: Expr) -> Expr:
    r"""Return $\ln(1 + z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z > -1."""
    return Op.LOG1PREL(z)


def sinhrel(z: Expr) -> Expr:
    r"""Return $\sinh(z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    return 0.5 * (exprel(z) + exprel(-z))


def asinhrel(z: Expr) -> Expr:
    r"""Return $\mathrm{arsinh}(z)/z$, with its limit 1 at z = 0; exact with its first two derivatives for all z."""
    series = const(0)
    for k in range(ASINH_SERIES, -1, -1):
        series = series * -(z**2) + math.comb(2 * k, k) / (4**k * (2 * k + 1))
    return where(abs(z) < 0.25, series, Op.ASINH(z) / z)


def normal_area(low: Expr, high: Expr, sigma: Expr) -> Expr:
    r"""Return $\int_{low}^{high} e^{-d^2/2\sigma^2}\,dd$, exact for any width; its derivatives by sigma are to 1e-16 of area / sigma."""
    return Op.NORMAL_AREA(0.5 * (low + high), high - low, sigma)


def gaussian_area(low: Expr, high: Expr, mu: Operand, sigma: Expr) -> Expr:
    r"""Return $\int_{low}^{high} e^{-(x-\mu)^2/2\sigma^2}\,dx$; between numbers the form for narrow ranges is left out where it is not needed."""
    if is_wide(low, high, sigma):
        return Op.NORMAL_INTEGRAL(0.5 * (low + high) - mu, high - low, sigma)
    return normal_area(low - mu, high - mu, sigma)


def is_wide(low: Expr, high: Expr, sigma: Expr) -> bool:
    """Return whether a range between numbers is so wide that the form for narrow ranges is never needed."""
    return low.op is high.op is Op.CONST and high.number - low.number >= 2 * WIDE * largest(sigma)


def limits_of(value: Operand) -> tuple[float, float]:
    """Return between which numbers a parameter, an observable or a number lies; anything if unknown."""
    expr = to_expr(value)
    if isinstance(expr.value, Parameter | Observable) and not getattr(expr.value, "blind", None):
        return expr.value.low, expr.value.high
    return (expr.number, expr.number) if expr.op is Op.CONST else (-math.inf, math.inf)


def largest(value: Operand) -> float:
    """Return how large a quantity can get in size, as limits and ranges have it; infinite if unknown."""
    expr = to_expr(value)
    if isinstance(expr.value, Parameter | Observable) and not getattr(expr.value, "blind", None):
        return max(abs(expr.value.low), abs(expr.value.high))
    if expr.op is Op.CONST:
        return abs(expr.number)
    if is_inverse(expr):
        return inverse_size(smallest(expr.args[0]))
    sizes = [largest(one) for one in expr.args] if expr.op in (Op.ADD, Op.MUL) else [math.inf]
    return math.fsum(sizes) if expr.op is Op.ADD else math.prod(sizes)


def smallest(value: Operand) -> float:
    """Return how small a quantity can get in size, as limits and ranges have it; zero if unknown."""
    expr = to_expr(value)
    if expr.op is Op.CONST:
        return abs(expr.number)
    if isinstance(expr.value, Parameter | Observable) and not getattr(expr.value, "blind", None):
        return max(expr.value.low, -expr.value.high, 0.0)
    if is_inverse(expr):
        return inverse_size(largest(expr.args[0]))
    return math.prod(map(smallest, expr.args)) if expr.op is Op.MUL else 0.0


def is_inverse(expr: Expr) -> bool:
    """Return whether a formula is one divided by another."""
    return expr.op is Op.POW and expr.args[1].op is Op.CONST and expr.args[1].number == -1


def inverse_size(size: float) -> float:
    """Return one divided by a size, infinite where that is zero."""
    return 1 / size if size else math.inf


Factor = Callable[[Expr], Expr]


def along_power(power: Expr, near: Expr, far: Expr, factor: Factor, share: Expr) -> Expr:
    r"""Return what to integrate over a share from 0 to 1 for $\int u^p f(u)\,du$ from ``near``, which may be zero, to ``far``.

    Shares of a negative power are those of $u^{p+1}$, in which the integrand is the smooth $f$ alone: in $u$ much of the
    integral would lie closer to zero than numbers reach, if $p$ is almost -1. Negative where the integral is infinite.
    """
    u = near + (far - near) * share
    straight = (far - near) * Op.EXP(power * Op.LOG(u)) * factor(u)
    if limits_of(power)[0] >= 0:
        return straight
    bent = of_negative_power(power + 1, near, far, factor, share)
    return where(power < 0, bent, straight)


def of_negative_power(k: Expr, near: Expr, far: Expr, factor: Factor, share: Expr) -> Expr:
    """Return the integrand in shares of u**k, exact for any k if ``near`` is positive, else for a positive one."""
    apart = near > 0
    length = Op.LOG(far / where(apart, near, far))
    least = where(apart, Op.EXP(-k * length), 0)  # u**k at the near end, in units of that at the far one
    # (1 - least) / k, also for k = 0
    span = where(apart, length * exprel(-k * length), 1 / where(apart, 1, k))
    level, missing = least + share * (1 - least), (1 - share) * span  # of u**k, which is 1 - k * missing
    close = level > 0.5
    inverse = where(
        close,
        -missing * log1prel(where(close, -k * missing, 0)),
        Op.LOG(where(close, 1, level)) / where(close, 1, k),
    )
    return Op.EXP(k * Op.LOG(far)) * span * factor(far * Op.EXP(inverse))


def share_of(x: Observable) -> Observable:
    """Return the variable of an integral that is not over an observable itself."""
    return Observable.interned(f"share of {x.name}", 0.0, 1.0, "")
