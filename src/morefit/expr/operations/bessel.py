"""Modified Bessel functions of both kinds, of real order, scaled: exp(-x) I_nu(x) and exp(x) K_nu(x)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

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


def derivative_of_i(times: int, by_x: int) -> Any:
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


K_STEPS = 5000  # of the trapezoidal rule; far more than it needs from x = 1e-300 on


def derivative_of_k(times: int, by_x: int = 0) -> Any:
    """Return a function for a derivative of exp(x) K_nu(x) by nu and x, from its integral over t by the trapezoidal rule."""

    def derivative(nu: Any, x: Any) -> Any:
        nu, x = np.broadcast_arrays(np.asarray(nu, np.float64), np.asarray(x, np.float64))
        step = 1 / np.sqrt(40 + 4 * np.hypot(nu, x))
        total, largest = np.zeros_like(x), np.zeros_like(x)
        for k in range(1, K_STEPS):
            t = k * step
            height = 2 * np.sinh(0.5 * t) ** 2
            sides = [np.exp(sign * np.abs(nu) * t - x * height) for sign in (1, -1)]
            term = t**times * height**by_x * 0.5 * (sides[0] + (-1) ** times * sides[1])
            total, largest = total + term, np.maximum(largest, term)
            if not np.any((term > 1e-20 * largest) & (term > 0)) and k > 10:
                break
        sign = (-1) ** by_x * (np.sign(nu) ** times if times % 2 else 1.0)
        return np.where(x > 0, sign * step * total, np.where(x == 0, sign * np.inf, np.nan)) + 0 * nu

    return derivative


def ratio_by_order(nu: Expr, x: Expr) -> Expr:
    """Return the derivative of the ratio of two neighbours by the order."""
    return Bessel.KV_RATIO(nu, x) * (Bessel.LOG_KVE_BY_ORDER(nu + 1, x) - Bessel.LOG_KVE_BY_ORDER(nu, x))


# derivatives by the order and by x: what is added to the names of functions, and to those in LaTeX
DERIVATIVES = {
    (0, 0): ("", ""),
    (0, 1): ("_slope", "'"),
    (0, 2): ("_bend", "''"),
    (1, 0): ("_by_order", "^{(1)}"),
    (2, 0): ("_by_order_twice", "^{(2)}"),
    (1, 1): ("_by_order_slope", r"^{(1)\prime}"),
}


def first_kind(rank: int, by: tuple[int, int], price: int, partials: Any) -> Operation:
    """Return the operation for a derivative of exp(-x) I_nu(x)."""
    suffix, mark = DERIVATIVES[by]
    return Operation(
        rank=rank,
        arity=2,
        price=price,
        numpy=derivative_of_i(*by),
        partials=partials,
        latex=Prefix(rf"\operatorname{{Ie}}{mark}"),
        routine=f"ive{suffix}",
    )


def second_kind(rank: int, by: tuple[int, int], partials: Any, traits: Trait = Trait.NONE) -> Operation:
    """Return the operation for a derivative of exp(x) K_nu(x)."""
    suffix, mark = DERIVATIVES[by]
    return Operation(
        rank=rank,
        arity=2,
        price=800,
        numpy=derivative_of_k(*by),
        partials=partials,
        latex=Prefix(rf"\operatorname{{Ke}}{mark}"),
        routine=f"kve{suffix}",
        traits=traits,
    )


class Bessel:
    """Bessel functions of scipy.special, and their derivatives by order and argument; most of third order are not known."""

    IVE: Operation = Operation(  # not negative orders, as scipy's: hence no ufunc
        rank=63,
        arity=2,
        price=600,
        numpy=i_of_numbers,
        partials=lambda nu, x: (Bessel.IVE_BY_ORDER(nu, x), Bessel.IVE_SLOPE(nu, x)),
        latex=Prefix(r"\operatorname{Ie}"),
        routine="ive",
        traits=Trait.NOT_NEGATIVE,
    )
    IVE_SLOPE: Operation = first_kind(
        118, (0, 1), 600, lambda nu, x: (Bessel.IVE_BY_ORDER_SLOPE(nu, x), Bessel.IVE_BEND(nu, x))
    )
    IVE_BEND: Operation = first_kind(119, (0, 2), 600, lambda nu, x: (None, None))
    IVE_BY_ORDER: Operation = first_kind(
        126, (1, 0), 4000, lambda nu, x: (Bessel.IVE_BY_ORDER_TWICE(nu, x), Bessel.IVE_BY_ORDER_SLOPE(nu, x))
    )
    IVE_BY_ORDER_TWICE: Operation = first_kind(127, (2, 0), 4000, lambda nu, x: (None, None))
    IVE_BY_ORDER_SLOPE: Operation = first_kind(128, (1, 1), 4000, lambda nu, x: (None, None))

    KVE: Operation = Operation(
        rank=60,
        arity=2,
        price=800,
        numpy=scipy_special("kve"),
        ufuncs=("kve",),
        partials=lambda nu, x: (Bessel.KVE_BY_ORDER(nu, x), Bessel.KVE_SLOPE(nu, x)),
        latex=Prefix(r"\operatorname{Ke}"),
        routine="kve",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    KVE_BY_ORDER: Operation = second_kind(
        61, (1, 0), lambda nu, x: (Bessel.KVE_BY_ORDER_TWICE(nu, x), Bessel.KVE_BY_ORDER_SLOPE(nu, x))
    )
    KVE_BY_ORDER_TWICE: Operation = second_kind(
        62,
        (2, 0),
        lambda nu, x: (
            None,
            (1 + nu / x) * Bessel.KVE_BY_ORDER_TWICE(nu, x)
            + 2 * Bessel.KVE_BY_ORDER(nu, x) / x
            - Bessel.KVE_BY_ORDER_TWICE(nu + 1, x),
        ),
        Trait.NOT_NEGATIVE,
    )
    # derivatives by x are integrals of one sign
    KVE_SLOPE: Operation = second_kind(
        114, (0, 1), lambda nu, x: (Bessel.KVE_BY_ORDER_SLOPE(nu, x), Bessel.KVE_BEND(nu, x))
    )
    KVE_BEND: Operation = second_kind(
        115, (0, 2), lambda nu, x: (None, None), Trait.NOT_NEGATIVE | Trait.POSITIVE
    )
    KVE_BY_ORDER_SLOPE: Operation = second_kind(116, (1, 1), lambda nu, x: (None, None))
    # the logarithm of exp(x) K_nu(x) and the ratio K_{nu+1}(x) / K_nu(x)
    LOG_KVE: Operation = Operation(
        rank=86,
        arity=2,
        price=840,
        numpy=lambda nu, x: np.log(scipy_special("kve")(nu, x)),
        partials=lambda nu, x: (Bessel.LOG_KVE_BY_ORDER(nu, x), Bessel.LOG_KVE_SLOPE(nu, x)),
        latex=Prefix(r"\operatorname{logKe}"),
        spelled=lambda nu, x: np.log(Bessel.KVE(nu, x)),
    )
    LOG_KVE_SLOPE: Operation = Operation(
        rank=117,
        arity=2,
        price=1600,
        numpy=lambda nu, x: derivative_of_k(0, 1)(nu, x) / scipy_special("kve")(nu, x),
        partials=lambda nu, x: (
            Bessel.KVE_BY_ORDER_SLOPE(nu, x) / Bessel.KVE(nu, x)
            - Bessel.LOG_KVE_SLOPE(nu, x) * Bessel.LOG_KVE_BY_ORDER(nu, x),
            Bessel.KVE_BEND(nu, x) / Bessel.KVE(nu, x) - Bessel.LOG_KVE_SLOPE(nu, x) ** 2,
        ),
        latex=Prefix(r"\operatorname{logKe}'"),
        spelled=lambda nu, x: Bessel.KVE_SLOPE(nu, x) / Bessel.KVE(nu, x),
    )
    KV_RATIO: Operation = Operation(
        rank=87,
        arity=2,
        price=1600,
        numpy=lambda nu, x: scipy_special("kve")(nu + 1, x) / scipy_special("kve")(nu, x),
        partials=lambda nu, x: (
            ratio_by_order(nu, x),
            Bessel.KV_RATIO(nu, x) * (Bessel.LOG_KVE_SLOPE(nu + 1, x) - Bessel.LOG_KVE_SLOPE(nu, x)),
        ),
        latex=Prefix(r"\operatorname{Kratio}"),
        spelled=lambda nu, x: Bessel.KVE(nu + 1, x) / Bessel.KVE(nu, x),
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    LOG_KVE_BY_ORDER: Operation = Operation(
        rank=88,
        arity=2,
        price=1600,
        numpy=lambda nu, x: derivative_of_k(1)(nu, x) / scipy_special("kve")(nu, x),
        partials=lambda nu, x: (
            Bessel.LOG_KVE_BY_ORDER_TWICE(nu, x),
            Bessel.KVE_BY_ORDER_SLOPE(nu, x) / Bessel.KVE(nu, x)
            - Bessel.LOG_KVE_SLOPE(nu, x) * Bessel.LOG_KVE_BY_ORDER(nu, x),
        ),
        latex=Prefix(r"\operatorname{logKe}^{(1)}"),
        spelled=lambda nu, x: Bessel.KVE_BY_ORDER(nu, x) / Bessel.KVE(nu, x),
    )
    LOG_KVE_BY_ORDER_TWICE: Operation = Operation(
        rank=89,
        arity=2,
        price=2400,
        numpy=lambda nu, x: (
            derivative_of_k(2)(nu, x) / scipy_special("kve")(nu, x)
            - (derivative_of_k(1)(nu, x) / scipy_special("kve")(nu, x)) ** 2
        ),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{logKe}^{(2)}"),
        spelled=lambda nu, x: (
            Bessel.KVE_BY_ORDER_TWICE(nu, x) / Bessel.KVE(nu, x)
            - (Bessel.KVE_BY_ORDER(nu, x) / Bessel.KVE(nu, x)) ** 2
        ),
    )
