"""The scaled error function and the normal distribution, with derivatives that keep their digits far from the origin.

There differences such as ``2 x erfcx(x) - 2 / sqrt(pi)`` cancel. With q = 1 / (2 x^2), sqrt(pi) x erfcx(x) is the integral of
exp(-v - q v^2 / 2) over positive v; its derivatives by q are moments, of one sign, and those of erfcx are made of these.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from morefit.expr.operations.arithmetic import Choices
from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

TAIL_FROM = 2.0  # up to here differences lose little; the moments are polynomials from here on
PANELS = (0.0, 2.0, 6.0, 14.0, 30.0, 60.0)  # of the integrals of the reference
ROOT_PI, ROOT_HALF = math.sqrt(math.pi), math.sqrt(0.5)


@cache
def panels() -> tuple[Any, Any]:
    """Return Gauss-Legendre points and weights for integrals of the reference, made at the first use."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    low, half = np.array(PANELS[:-1])[:, None], 0.5 * np.diff(PANELS)[:, None]
    v = (low + half * (1 + nodes)).ravel()
    return v, (half * weights).ravel() * np.exp(-v)


def tail_moment(order: int) -> Any:
    """Return a function for a derivative of sqrt(pi) x erfcx(x) by 1 / (2 x^2), by an integral."""

    def moment(x: Any) -> Any:
        v, weights = panels()
        q = 0.5 / np.maximum(np.asarray(x, np.float64), TAIL_FROM) ** 2
        moments = np.exp(-0.5 * q[..., None] * v**2) @ (weights * (-0.5 * v**2) ** order)
        return np.where(np.isnan(x), np.nan, moments)[()]

    return moment


def erfcx_slope(x: Any, choose: Any, erfcx: Any, moments: Any) -> Any:
    """Return the derivative of erfcx."""
    return choose(x < TAIL_FROM, 2 * x * erfcx(x) - 2 / ROOT_PI, far_slope(x, erfcx, moments))


def far_slope(x: Any, erfcx: Any, moments: Any) -> Any:
    """Return the same, for x >= TAIL_FROM."""
    inverse = 1 / x
    return -inverse * (erfcx(x) + moments[0](x) * inverse**3 / ROOT_PI)


def erfcx_bend(x: Any, choose: Any, erfcx: Any, moments: Any) -> Any:
    """Return the second derivative of erfcx."""
    inverse = 1 / x
    square = inverse**2
    moment = 5 * moments[0](x) + moments[1](x) * square
    far = 2 * erfcx(x) * square + moment * square**2 * inverse / ROOT_PI
    near = (2 + 4 * x**2) * erfcx(x) - x * (4 / ROOT_PI)
    return choose(x < TAIL_FROM, near, far)


def mills(x: Any, erfcx: Any) -> Any:
    """Return the density of the normal distribution over its integral up to x."""
    return math.sqrt(2 / math.pi) / erfcx(-ROOT_HALF * x)


def mills_rest(x: Any, choose: Any, erfcx: Any, moments: Any) -> Any:
    """Return the same plus x, which it approaches far below zero."""
    u = -ROOT_HALF * x
    far = -ROOT_HALF * far_slope(u, erfcx, moments) / erfcx(u)
    return choose(u < TAIL_FROM, mills(x, erfcx) + x, far)


@np.errstate(all="ignore")
def numbers(formula: Any, x: Any, *functions: Any) -> Any:
    """Return the value of a formula for numbers."""
    return np.asarray(formula(np.float64(x), *functions))[()]


def of_numbers(formula: Any) -> Any:
    moments = tail_moment(1), tail_moment(2)
    return lambda x: numbers(formula, x, np.where, scipy_special("erfcx"), moments)


def written(formula: Any) -> Any:
    return lambda x: formula(x, Choices.WHERE, Normal.ERFCX, (Normal.TAIL_SLOPE, Normal.TAIL_BEND))


class Normal:
    """Functions of scipy.special, and their derivatives; those of third order cancel far out."""

    ERFCX: Operation = Operation(  # exp(x^2) erfc(x)
        rank=54,
        price=60,
        numpy=scipy_special("erfcx"),
        ufuncs=("erfcx",),
        partials=lambda x: (Normal.ERFCX_SLOPE(x),),
        latex=Prefix(r"\operatorname{erfcx}"),
        routine="erfcx",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    ERFCX_SLOPE: Operation = Operation(
        rank=91,
        price=80,
        numpy=of_numbers(erfcx_slope),
        partials=lambda x: (Normal.ERFCX_BEND(x),),
        latex=Prefix(r"\operatorname{erfcx}'"),
        spelled=written(erfcx_slope),
    )
    ERFCX_BEND: Operation = Operation(
        rank=92,
        price=90,
        numpy=of_numbers(erfcx_bend),
        partials=lambda x: (4 * Normal.ERFCX_SLOPE(x) + 2 * x * Normal.ERFCX_BEND(x),),
        latex=Prefix(r"\operatorname{erfcx}''"),
        spelled=written(erfcx_bend),
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    # sqrt(pi) x erfcx(x), for x >= TAIL_FROM, which has a limit far out, and its derivatives by 1 / (2 x^2)
    TAIL: Operation = Operation(
        rank=120,
        price=65,
        numpy=lambda x: ROOT_PI * x * scipy_special("erfcx")(x),
        partials=lambda x: (-Normal.TAIL_SLOPE(x) / x**3,),
        latex=Prefix(r"\operatorname{tail}"),
        spelled=lambda x: ROOT_PI * x * Normal.ERFCX(x),
    )
    TAIL_SLOPE: Operation = Operation(
        rank=93,
        price=60,
        numpy=tail_moment(1),
        partials=lambda x: (-Normal.TAIL_BEND(x) / x**3,),
        latex=Prefix(r"\operatorname{tail}'"),
        routine="tail_slope",
    )
    TAIL_BEND: Operation = Operation(
        rank=94,
        price=60,
        numpy=tail_moment(2),
        latex=Prefix(r"\operatorname{tail}''"),
        routine="tail_bend",
        traits=Trait.NO_SLOPE,
    )
    NDTR = Operation(  # the standard normal distribution
        rank=55,
        price=70,
        numpy=scipy_special("ndtr"),
        ufuncs=("ndtr",),
        partials=lambda x: (1 / math.sqrt(2 * math.pi) * np.exp(-0.5 * x**2),),
        latex=Prefix(r"\Phi"),
        routine="ndtr",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE | Trait.LEVELS_OFF,
    )
    LOG_NDTR = Operation(
        rank=56,
        price=130,
        numpy=scipy_special("log_ndtr"),
        ufuncs=("log_ndtr",),
        partials=lambda x: (Normal.MILLS(x),),
        latex=Prefix(r"\ln\Phi"),
        routine="log_ndtr",
    )
    MILLS: Operation = Operation(
        rank=95,
        price=80,
        numpy=lambda x: numbers(mills, x, scipy_special("erfcx")),
        partials=lambda x: (-Normal.MILLS(x) * Normal.MILLS_REST(x),),
        latex=Prefix(r"(\ln\Phi)'"),
        spelled=lambda x: mills(x, Normal.ERFCX),
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    MILLS_REST: Operation = Operation(
        rank=96,
        price=120,
        numpy=of_numbers(mills_rest),
        partials=lambda x: (1 - Normal.MILLS(x) * Normal.MILLS_REST(x),),
        latex=Prefix(r"\operatorname{rest}"),
        spelled=written(mills_rest),
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    NDTRI: Operation = Operation(  # the inverse of the standard normal distribution
        rank=27,
        price=120,
        numpy=scipy_special("ndtri"),
        ufuncs=("ndtri",),
        partials=lambda x: (math.sqrt(2 * math.pi) * np.exp(0.5 * Normal.NDTRI(x) ** 2),),
        latex=Prefix(r"\Phi^{-1}"),
        routine="ndtri",
    )
