"""Modified Bessel functions of real order, scaled: exp(x) K_nu(x) and exp(-x) I_nu(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, call, scipy_special

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
        llvm=call("kve"),
        c="kve({0}, {1})",
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
        llvm=call("kve_by_order"),
        c="kve_by_order({0}, {1})",
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
        llvm=call("kve_by_order_twice"),
        c="kve_by_order_twice({0}, {1})",
        traits=Trait.NOT_NEGATIVE,
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
        llvm=call("ive"),
        c="ive({0}, {1})",
        traits=Trait.NOT_NEGATIVE,
    )
