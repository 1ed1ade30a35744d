"""Modified Bessel functions of real order, scaled: exp(x) K_nu(x) and exp(-x) I_nu(x)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

STEPS = 5000  # of the trapezoidal rule; far more than it needs from x = 1e-300 on


def derivative_by_order(times: int) -> Any:
    """Return a function for a derivative of exp(x) K_nu(x) by nu, from its integral over t by the trapezoidal rule."""

    def derivative(nu: Any, x: Any) -> Any:
        nu, x = np.broadcast_arrays(np.asarray(nu, np.float64), np.asarray(x, np.float64))
        step = 1 / np.sqrt(40 + 4 * np.hypot(nu, x))
        total, largest = np.zeros_like(x), np.zeros_like(x)
        for k in range(1, STEPS):
            t = k * step
            fall = 2 * x * np.sinh(0.5 * t) ** 2
            sides = [np.exp(sign * np.abs(nu) * t - fall) for sign in (1, -1)]
            term = t**times * 0.5 * (sides[0] + (-1) ** times * sides[1])
            total, largest = total + term, np.maximum(largest, term)
            if not np.any((term > 1e-20 * largest) & (term > 0)) and k > 10:
                break
        sign = np.sign(nu) ** times if times % 2 else 1.0
        return np.where(x > 0, sign * step * total, np.where(x == 0, sign * np.inf, np.nan)) + 0 * nu

    return derivative


def ratio_by_order(nu: Expr, x: Expr) -> Expr:
    """Return the derivative of the ratio of two neighbours by the order."""
    return Bessel.KV_RATIO(nu, x) * (Bessel.LOG_KVE_BY_ORDER(nu + 1, x) - Bessel.LOG_KVE_BY_ORDER(nu, x))


class Bessel:
    """Bessel functions of scipy.special, and derivatives of K by its order."""

    KVE: Operation = Operation(
        rank=60,
        arity=2,
        price=800,
        numpy=scipy_special("kve"),
        ufuncs=("kve",),
        partials=lambda nu, x: (
            Bessel.KVE_BY_ORDER(nu, x),
            (1 + nu / x) * Bessel.KVE(nu, x) - Bessel.KVE(nu + 1, x),
        ),
        latex=Prefix(r"\operatorname{Ke}"),
        routine="kve",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    KVE_BY_ORDER: Operation = Operation(
        rank=61,
        arity=2,
        price=800,
        numpy=derivative_by_order(1),
        partials=lambda nu, x: (
            Bessel.KVE_BY_ORDER_TWICE(nu, x),
            (1 + nu / x) * Bessel.KVE_BY_ORDER(nu, x)
            + Bessel.KVE(nu, x) / x
            - Bessel.KVE_BY_ORDER(nu + 1, x),
        ),
        latex=Prefix(r"\operatorname{Ke}^{(1)}"),
        routine="kve_by_order",
    )
    KVE_BY_ORDER_TWICE: Operation = Operation(
        rank=62,
        arity=2,
        price=800,
        numpy=derivative_by_order(2),
        partials=lambda nu, x: (
            None,
            (1 + nu / x) * Bessel.KVE_BY_ORDER_TWICE(nu, x)
            + 2 * Bessel.KVE_BY_ORDER(nu, x) / x
            - Bessel.KVE_BY_ORDER_TWICE(nu + 1, x),
        ),
        latex=Prefix(r"\operatorname{Ke}^{(2)}"),
        routine="kve_by_order_twice",
        traits=Trait.NOT_NEGATIVE,
    )
    # the logarithm of exp(x) K_nu(x) and the ratio K_{nu+1}(x) / K_nu(x), which obeys a Riccati equation: derivatives of both by
    # x are made of the ratio alone
    LOG_KVE: Operation = Operation(
        rank=86,
        arity=2,
        price=840,
        numpy=lambda nu, x: np.log(scipy_special("kve")(nu, x)),
        partials=lambda nu, x: (Bessel.LOG_KVE_BY_ORDER(nu, x), 1 + nu / x - Bessel.KV_RATIO(nu, x)),
        latex=Prefix(r"\operatorname{logKe}"),
        spelled=lambda nu, x: np.log(Bessel.KVE(nu, x)),
    )
    KV_RATIO: Operation = Operation(
        rank=87,
        arity=2,
        price=1600,
        numpy=lambda nu, x: scipy_special("kve")(nu + 1, x) / scipy_special("kve")(nu, x),
        partials=lambda nu, x: (
            ratio_by_order(nu, x),
            Bessel.KV_RATIO(nu, x) ** 2 - (2 * nu + 1) / x * Bessel.KV_RATIO(nu, x) - 1,
        ),
        latex=Prefix(r"\operatorname{Kratio}"),
        spelled=lambda nu, x: Bessel.KVE(nu + 1, x) / Bessel.KVE(nu, x),
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    LOG_KVE_BY_ORDER: Operation = Operation(
        rank=88,
        arity=2,
        price=1600,
        numpy=lambda nu, x: derivative_by_order(1)(nu, x) / scipy_special("kve")(nu, x),
        partials=lambda nu, x: (Bessel.LOG_KVE_BY_ORDER_TWICE(nu, x), 1 / x - ratio_by_order(nu, x)),
        latex=Prefix(r"\operatorname{logKe}^{(1)}"),
        spelled=lambda nu, x: Bessel.KVE_BY_ORDER(nu, x) / Bessel.KVE(nu, x),
    )
    LOG_KVE_BY_ORDER_TWICE: Operation = Operation(
        rank=89,
        arity=2,
        price=2400,
        numpy=lambda nu, x: (
            derivative_by_order(2)(nu, x) / scipy_special("kve")(nu, x)
            - (derivative_by_order(1)(nu, x) / scipy_special("kve")(nu, x)) ** 2
        ),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{logKe}^{(2)}"),
        spelled=lambda nu, x: (
            Bessel.KVE_BY_ORDER_TWICE(nu, x) / Bessel.KVE(nu, x)
            - (Bessel.KVE_BY_ORDER(nu, x) / Bessel.KVE(nu, x)) ** 2
        ),
    )
    IVE: Operation = Operation(  # not negative orders, as scipy's: hence no ufunc
        rank=63,
        arity=2,
        price=600,
        numpy=lambda nu, x: np.where(
            np.logical_or(np.less(nu, 0), np.less(x, 0)), np.nan, scipy_special("ive")(nu, x)
        ),
        partials=lambda nu, x: (None, (nu / x - 1) * Bessel.IVE(nu, x) + Bessel.IVE(nu + 1, x)),
        latex=Prefix(r"\operatorname{Ie}"),
        routine="ive",
        traits=Trait.NOT_NEGATIVE,
    )
