"""The modified Bessel function of the first kind, of real order, scaled: exp(-x) I_nu(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

STEPS = 4000  # of the trapezoidal rule, many more than it needs
STEP = 10  # inverse of its length, of arguments about one
SMALL = 1.0  # up to here derivatives are power series
TERMS = 30  # of these
LEAST_ORDER = 1e-30  # of the path: that of order zero has a corner
DEPTH = 90.0  # by so much exponents fall along the path


@np.errstate(all="ignore")
def i_of_numbers(nu: Any, x: Any) -> Any:
    """Return exp(-x) I_nu(x), NaN where scipy has a negative order."""
    return np.where(np.logical_or(np.less(nu, 0), np.less(x, 0)), np.nan, scipy_special("ive")(nu, x))


def derivative_of_i(times: int, by_x: int = 0) -> Any:
    """Return a function for a derivative of exp(-x) I_nu(x) by nu and x, from a power series or an integral."""

    @np.errstate(all="ignore")
    def derivative(nu: Any, x: Any) -> Any:
        nu, x = np.broadcast_arrays(np.asarray(nu, np.float64), np.asarray(x, np.float64))
        inside = (nu >= 0) & (nu < np.inf) & (x >= 0)
        order, place = np.where(inside, nu, 1.0), np.where(inside & (x < 1e150), x, 1.0)
        near = power_series(order, np.clip(place, 1e-150, SMALL), times, by_x)
        result = np.where(place > SMALL, along_path(order, np.maximum(place, SMALL), times, by_x), near)
        at_zero = result if by_x else np.where(nu > 0, 0.0, np.inf if times == 2 else -np.inf)
        result = np.where(x == 0, at_zero, np.where(x >= 1e150, 0.0, result))
        return np.where(inside, result, np.nan)[()]

    return derivative


def power_series(nu: Any, x: Any, times: int, by_x: int) -> Any:
    """Differentiate the terms of the power series."""
    total = 0.0
    for k in range(TERMS):
        power, up = nu + 2 * k, nu + k + 1
        size = np.exp(power * np.log(0.5 * x) - x - scipy_special("gammaln")(up))
        slope, fall = np.log(0.5 * x) - scipy_special("psi")(up), power / x - 1
        if times == 2:
            factor = slope**2 - scipy_special("polygamma", 1)(up)
        elif times == 1:
            factor = slope * fall + 1 / x if by_x else slope
        else:
            factor = fall if by_x == 1 else fall**2 - power / x**2
        total = total + size / scipy_special("gamma")(k + 1) * factor
    return total


def along_path(nu: Any, x: Any, times: int, by_x: int) -> Any:
    """Integrate along t = u + i v with sinh(u) = (nu / x) v / sin(v), on which x cosh(t) - nu t is real, over s: v = 2 atan(sinh(s / 2))."""
    step, slope = 1 / np.sqrt(STEP**2 + 4 * np.hypot(nu, x)), np.maximum(nu, LEAST_ORDER) / x
    total, top = 0.0, 0.0
    for k in range(STEPS):
        sinh, cosh = np.sinh(0.5 * k * step), np.cosh(0.5 * k * step)
        v, sine, cosine = 2 * np.arctan(sinh), 2 * sinh / cosh**2, (1 - sinh**2) / cosh**2
        z = slope * (v / sine if k else 1.0)
        root, u = np.sqrt(1 + z**2), np.arcsinh(z)
        rise = slope * (sine - v * cosine) / (sine**2 * root) if k else 0.0
        real = z**2 / (1 + root) * cosine - 2 * sinh**2 / cosh**2
        exponent = x * real - nu * u
        factor = (-(u + 1j * v)) ** times * (real + 1j * slope * v) ** by_x
        term = (factor.real + factor.imag * rise) * np.exp(exponent) / cosh
        total, top = total + term * (1.0 if k else 0.5), top if k else exponent
        if not np.any(exponent > top - DEPTH):
            break
    return total * step / np.pi


class BesselFirst:
    """A Bessel function of scipy.special, and its derivatives by order and argument; those of third order are not known."""

    IVE: Operation = Operation(  # not negative orders, as scipy's: hence no ufunc
        rank=63,
        arity=2,
        price=600,
        numpy=i_of_numbers,
        partials=lambda nu, x: (BesselFirst.IVE_BY_ORDER(nu, x), BesselFirst.IVE_SLOPE(nu, x)),
        latex=Prefix(r"\operatorname{Ie}"),
        routine="ive",
        traits=Trait.NOT_NEGATIVE,
    )
    IVE_SLOPE: Operation = Operation(
        rank=118,
        arity=2,
        price=600,
        numpy=derivative_of_i(0, 1),
        partials=lambda nu, x: (BesselFirst.IVE_BY_ORDER_SLOPE(nu, x), BesselFirst.IVE_BEND(nu, x)),
        latex=Prefix(r"\operatorname{Ie}'"),
        routine="ive_slope",
    )
    IVE_BEND: Operation = Operation(
        rank=119,
        arity=2,
        price=600,
        numpy=derivative_of_i(0, 2),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{Ie}''"),
        routine="ive_bend",
    )
    IVE_BY_ORDER: Operation = Operation(
        rank=126,
        arity=2,
        price=4000,
        numpy=derivative_of_i(1),
        partials=lambda nu, x: (BesselFirst.IVE_BY_ORDER_TWICE(nu, x), BesselFirst.IVE_BY_ORDER_SLOPE(nu, x)),
        latex=Prefix(r"\operatorname{Ie}^{(1)}"),
        routine="ive_by_order",
    )
    IVE_BY_ORDER_TWICE: Operation = Operation(
        rank=127,
        arity=2,
        price=4000,
        numpy=derivative_of_i(2),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{Ie}^{(2)}"),
        routine="ive_by_order_twice",
    )
    IVE_BY_ORDER_SLOPE: Operation = Operation(
        rank=128,
        arity=2,
        price=4000,
        numpy=derivative_of_i(1, 1),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{Ie}^{(1)\prime}"),
        routine="ive_by_order_slope",
    )
