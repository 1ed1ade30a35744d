"""The modified Bessel function of the second kind, of real order, scaled: exp(x) K_nu(x)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

if TYPE_CHECKING:
    from morefit.expr.node import Expr

STEPS = 5000  # of the trapezoidal rule; far more than it needs from x = 1e-300 on


def derivative_of_k(times: int, by_x: int = 0) -> Any:
    """Return a function for a derivative of exp(x) K_nu(x) by nu and x, from its integral over t by the trapezoidal rule."""

    def derivative(nu: Any, x: Any) -> Any:
        nu, x = np.broadcast_arrays(np.asarray(nu, np.float64), np.asarray(x, np.float64))
        step = 1 / np.sqrt(40 + 4 * np.hypot(nu, x))
        total, largest = np.zeros_like(x), np.zeros_like(x)
        for k in range(1, STEPS):
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


class Bessel:
    """A Bessel function of scipy.special, and its derivatives by order and argument."""

    KVE: Operation = Operation(
        rank=60,
        arity=2,
        price=800,
        numpy=scipy_special("kve"),
        ufuncs=("kve",),
        partials=lambda nu, x: (
            Bessel.KVE_BY_ORDER(nu, x),
            Bessel.KVE_SLOPE(nu, x),
        ),
        latex=Prefix(r"\operatorname{Ke}"),
        routine="kve",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    KVE_BY_ORDER: Operation = Operation(
        rank=61,
        arity=2,
        price=800,
        numpy=derivative_of_k(1),
        partials=lambda nu, x: (
            Bessel.KVE_BY_ORDER_TWICE(nu, x),
            Bessel.KVE_BY_ORDER_SLOPE(nu, x),
        ),
        latex=Prefix(r"\operatorname{Ke}^{(1)}"),
        routine="kve_by_order",
    )
    KVE_BY_ORDER_TWICE: Operation = Operation(
        rank=62,
        arity=2,
        price=800,
        numpy=derivative_of_k(2),
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
    # derivatives by x are integrals of one sign; those of third order are not known
    KVE_SLOPE: Operation = Operation(
        rank=114,
        arity=2,
        price=800,
        numpy=derivative_of_k(0, 1),
        partials=lambda nu, x: (Bessel.KVE_BY_ORDER_SLOPE(nu, x), Bessel.KVE_BEND(nu, x)),
        latex=Prefix(r"\operatorname{Ke}'"),
        routine="kve_slope",
    )
    KVE_BEND: Operation = Operation(
        rank=115,
        arity=2,
        price=800,
        numpy=derivative_of_k(0, 2),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{Ke}''"),
        routine="kve_bend",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    KVE_BY_ORDER_SLOPE: Operation = Operation(
        rank=116,
        arity=2,
        price=800,
        numpy=derivative_of_k(1, 1),
        partials=lambda nu, x: (None, None),
        latex=Prefix(r"\operatorname{Ke}^{(1)\prime}"),
        routine="kve_by_order_slope",
    )
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
