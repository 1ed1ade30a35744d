"""Special functions: the normal distribution and the gamma function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.choices import Choices
from morefit.expr.operations.record import Operation, Prefix, Trait, call, scipy_special

if TYPE_CHECKING:
    from morefit.expr.node import Expr


def plain_or(scalar: Callable[[float], float], name: str) -> Callable[[Any], Any]:
    """Use the math module for a lone number and scipy for arrays."""
    array = scipy_special(name)
    return lambda x: scalar(x) if isinstance(x, float) else array(x)


def faddeeva(x: Any, y: Any) -> Any:
    """Return scipy's w(x + i y)."""
    z = np.empty(np.broadcast(x, y).shape, np.complex128)
    z.real, z.imag = x, y
    return scipy_special("wofz")(z)


def faddeeva_slope_real(x: Expr, y: Expr) -> Expr:
    """Return the real part of w'(z) = 2 i / sqrt(pi) - 2 z w(z)."""
    return 2 * (y * Special.WOFZ_IMAG(x, y) - x * Special.WOFZ_REAL(x, y))


def faddeeva_slope_imag(x: Expr, y: Expr) -> Expr:
    """Return its imaginary part."""
    return 2 / math.sqrt(math.pi) - 2 * (x * Special.WOFZ_IMAG(x, y) + y * Special.WOFZ_REAL(x, y))


GAUSSIAN_ZERO = 38.7  # widths from the mean: a Gaussian is below the smallest number from here on
GAUSSIAN_SMALL = 10.0  # and here below 2^-70 of its height


def smeared_decay(t: Any, rate: Any, sigma: Any, *, reach: float, choose: Any, exp: Any, erfcx: Any) -> Any:
    """Return exp(-rate t) for positive t convolved with a Gaussian: exp(-t^2 / 2 sigma^2) erfcx(u) / 2.

    For negative u, where erfcx overflows, by erfcx(-u) = 2 exp(u^2) - erfcx(u). No two large numbers are subtracted.
    The Gaussian is zero from ``reach`` widths on. It and erfcx are choices of their own: where no event of a vector needs
    them they are not computed, and derivatives are made of the same two.
    """
    u, near = (sigma * rate - t / sigma) / math.sqrt(2), abs(t) < reach * sigma
    part = 0.5 * cut_gaussian(t, sigma, near, choose, exp) * choose(near, erfcx(abs(u)), 0.0)
    return choose(u < 0, exp(rate * (0.5 * rate * sigma**2 - t)) - part, part)


def cut_gaussian(t: Any, sigma: Any, near: Any, choose: Any, exp: Any) -> Any:
    """Return a Gaussian of height one that is zero where it is not near."""
    return choose(near, exp(-0.5 * (t / sigma) ** 2), 0.0)


def near_gaussian_of(rank: int, reach: float) -> Operation:
    """Return a Gaussian of height one that is zero from so many widths on, as a function of t and sigma."""

    def partials(t: Expr, sigma: Expr) -> tuple[Expr, Expr]:
        g = record(t, sigma)
        return -t / sigma**2 * g, t**2 / sigma**3 * g

    def numbers(t: Any, sigma: Any) -> Any:
        return cut_gaussian(t, sigma, abs(t) < reach * sigma, np.where, np.exp)[()]

    def spelled(t: Expr, sigma: Expr) -> Expr:
        result: Expr = cut_gaussian(t, sigma, abs(t) < reach * sigma, Choices.WHERE, np.exp)
        return result

    record = Operation(
        rank=rank,
        arity=2,
        price=50,
        numpy=numbers,
        partials=partials,
        latex=Prefix(r"\operatorname{gauss}"),
        spelled=spelled,
        traits=Trait.NOT_NEGATIVE,
    )
    return record


def smeared_decay_of(rank: int, reach: float, gaussian: Operation) -> Operation:
    """Return a decay seen with a Gaussian resolution that is zero from so many widths on, as a function of t, rate and sigma."""

    def partials(t: Expr, rate: Expr, sigma: Expr) -> tuple[Expr, Expr, Expr]:
        """Return the derivatives f' = g - rate f by t, and those by rate and sigma, which follow from it; g is the Gaussian."""
        f, g = record(t, rate, sigma), gaussian(t, sigma) / (math.sqrt(2 * math.pi) * sigma)
        return (
            g - rate * f,
            (sigma**2 * rate - t) * f - sigma**2 * g,
            rate**2 * sigma * f - (t / sigma + rate * sigma) * g,
        )

    @np.errstate(all="ignore")
    def numbers(t: Any, rate: Any, sigma: Any) -> Any:
        functions = {"choose": np.where, "exp": np.exp, "erfcx": scipy_special("erfcx")}
        return smeared_decay(t, rate, np.float64(sigma), reach=reach, **functions)[()]

    def spelled(t: Expr, rate: Expr, sigma: Expr) -> Expr:
        functions = {"choose": Choices.WHERE, "exp": np.exp, "erfcx": Special.ERFCX}
        result: Expr = smeared_decay(t, rate, sigma, reach=reach, **functions)
        return result

    record = Operation(
        rank=rank,
        arity=3,
        price=150,
        numpy=numbers,
        partials=partials,
        latex=Prefix(r"\operatorname{decay}"),
        spelled=spelled,
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    return record


class Special:
    """Functions of scipy.special."""

    ERF = Operation(
        rank=25,
        arity=1,
        price=60,
        numpy=plain_or(math.erf, "erf"),
        ufuncs=("erf",),
        partials=lambda x: (2 / math.sqrt(math.pi) * np.exp(-(x**2)),),
        latex=Prefix(r"\operatorname{erf}"),
        llvm=call("erf"),
        c="erf({0})",
        traits=Trait.ODD,
    )
    ERFC = Operation(
        rank=26,
        arity=1,
        price=90,
        numpy=plain_or(math.erfc, "erfc"),
        ufuncs=("erfc",),
        partials=lambda x: (-2 / math.sqrt(math.pi) * np.exp(-(x**2)),),
        latex=Prefix(r"\operatorname{erfc}"),
        llvm=call("erfc"),
        c="erfc({0})",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    ERFCX: Operation = Operation(  # exp(x^2) erfc(x)
        rank=54,
        arity=1,
        price=60,
        numpy=scipy_special("erfcx"),
        ufuncs=("erfcx",),
        partials=lambda x: (2 * x * Special.ERFCX(x) - 2 / math.sqrt(math.pi),),
        latex=Prefix(r"\operatorname{erfcx}"),
        llvm=call("erfcx"),
        c="erfcx({0})",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    NDTR = Operation(  # the standard normal distribution
        rank=55,
        arity=1,
        price=70,
        numpy=scipy_special("ndtr"),
        ufuncs=("ndtr",),
        partials=lambda x: (1 / math.sqrt(2 * math.pi) * np.exp(-0.5 * x**2),),
        latex=Prefix(r"\Phi"),
        llvm=call("ndtr"),
        c="ndtr({0})",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    LOG_NDTR = Operation(
        rank=56,
        arity=1,
        price=130,
        numpy=scipy_special("log_ndtr"),
        ufuncs=("log_ndtr",),
        partials=lambda x: (math.sqrt(2 / math.pi) / Special.ERFCX(-math.sqrt(0.5) * x),),
        latex=Prefix(r"\ln\Phi"),
        llvm=call("log_ndtr"),
        c="log_ndtr({0})",
    )
    # the Faddeeva function w(x + i y): its real part u and imaginary part v obey w' = 2 i / sqrt(pi) - 2 z w
    WOFZ_REAL: Operation = Operation(
        rank=57,
        arity=2,
        price=250,
        numpy=lambda x, y: faddeeva(x, y).real,
        partials=lambda x, y: (faddeeva_slope_real(x, y), -faddeeva_slope_imag(x, y)),
        latex=Prefix(r"\operatorname{Re}w"),
        llvm=call("wofz_real"),
        c="wofz_real({0}, {1})",
    )
    WOFZ_IMAG: Operation = Operation(
        rank=58,
        arity=2,
        price=250,
        numpy=lambda x, y: faddeeva(x, y).imag,
        partials=lambda x, y: (faddeeva_slope_imag(x, y), faddeeva_slope_real(x, y)),
        latex=Prefix(r"\operatorname{Im}w"),
        llvm=call("wofz_imag"),
        c="wofz_imag({0}, {1})",
    )
    NEAR_GAUSSIAN: Operation = near_gaussian_of(77, GAUSSIAN_ZERO)
    SMEARED_DECAY: Operation = smeared_decay_of(72, GAUSSIAN_ZERO, NEAR_GAUSSIAN)
    # at the ends of a range around zero, where what a density has beyond them is negligible in its integral
    GAUSSIAN_AT_END: Operation = near_gaussian_of(78, GAUSSIAN_SMALL)
    DECAY_AT_END: Operation = smeared_decay_of(76, GAUSSIAN_SMALL, GAUSSIAN_AT_END)
    NDTRI: Operation = Operation(  # the inverse of the standard normal distribution
        rank=27,
        arity=1,
        price=120,
        numpy=scipy_special("ndtri"),
        ufuncs=("ndtri",),
        partials=lambda x: (math.sqrt(2 * math.pi) * np.exp(0.5 * Special.NDTRI(x) ** 2),),
        latex=Prefix(r"\Phi^{-1}"),
        llvm=call("ndtri"),
        c="ndtri({0})",
    )
    LGAMMA = Operation(
        rank=28,
        arity=1,
        price=200,
        numpy=scipy_special("gammaln"),
        ufuncs=("gammaln",),
        partials=lambda x: (Special.DIGAMMA(x),),
        latex=Prefix(r"\ln\Gamma"),
        llvm=call("lgamma"),
        c="lgamma({0})",
    )
    DIGAMMA: Operation = Operation(
        rank=29,
        arity=1,
        price=200,
        numpy=scipy_special("digamma"),
        ufuncs=("psi",),
        partials=lambda x: (Special.TRIGAMMA(x),),
        latex=Prefix(r"\psi"),
        llvm=call("digamma"),
        c="digamma({0})",
    )
    TRIGAMMA: Operation = Operation(
        rank=30,
        arity=1,
        price=200,
        numpy=scipy_special("polygamma", 1),
        partials=lambda x: (Special.TETRAGAMMA(x),),
        latex=Prefix(r"\psi_{1}"),
        llvm=call("trigamma"),
        c="trigamma({0})",
        traits=Trait.NOT_NEGATIVE,
    )
    TETRAGAMMA: Operation = Operation(
        rank=31,
        arity=1,
        price=200,
        numpy=scipy_special("polygamma", 2),
        latex=Prefix(r"\psi_{2}"),
        llvm=call("tetragamma"),
        c="tetragamma({0})",
        traits=Trait.NO_SLOPE,
    )
