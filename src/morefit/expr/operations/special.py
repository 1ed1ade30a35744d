"""Special functions: error functions, decays with a Gaussian resolution, the gamma function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.expr.operations.arithmetic import Choices
from morefit.expr.operations.normal import Normal
from morefit.expr.operations.record import Operation, Prefix, Trait, scipy_special

if TYPE_CHECKING:
    from morefit.expr.node import Expr


def plain_or(scalar: Callable[[float], float], name: str) -> Callable[[Any], Any]:
    """Use the math module for a lone number and scipy for arrays."""
    array = scipy_special(name)
    return lambda x: scalar(x) if isinstance(x, float) else array(x)


GAUSSIAN_ZERO = 38.7  # widths from the mean: a Gaussian is below the smallest number from here on
GAUSSIAN_SMALL = 10.0  # and here below 2^-70 of its height


def whole_part(t: Any, u: Any, sigma: Any, choose: Any, exp: Any, erfcx: Any) -> Any:
    """Return exp(-t^2 / 2 sigma^2) erfcx(|u|) / 2."""
    gauss = exp(-0.5 * (t / sigma) ** 2)
    return choose(abs(t) < GAUSSIAN_ZERO * sigma, 0.5 * gauss * erfcx(abs(u)), 0.0)


def end_part(t: Any, u: Any, sigma: Any, choose: Any, exp: Any, erfcx: Any) -> Any:
    """Return the same, zero from ten widths on.

    Both functions are choices of their own, and derivatives are made of these two: where no event of a vector needs them they
    are not computed.
    """
    return 0.5 * cut_gaussian(t, sigma, choose, exp) * choose(is_near(t, sigma), erfcx(abs(u)), 0.0)


def cut_gaussian(t: Any, sigma: Any, choose: Any, exp: Any) -> Any:
    """Return a Gaussian of height one that is zero from ten widths on."""
    return choose(is_near(t, sigma), exp(-0.5 * (t / sigma) ** 2), 0.0)


def is_near(t: Any, sigma: Any) -> Any:
    return abs(t) < GAUSSIAN_SMALL * sigma


def gaussian_partials(t: Expr, sigma: Expr) -> tuple[Expr, Expr]:
    """Return the derivatives of a Gaussian of height one in terms of itself."""
    g = Special.GAUSSIAN_AT_END(t, sigma)
    return -t / sigma**2 * g, t**2 / sigma**3 * g


def smeared_decay_of(rank: int, part: Any, gaussian: Callable[[Expr, Expr], Expr]) -> Operation:
    """Return a decay exp(-rate t) for positive t convolved with a Gaussian, as a function of t, rate and sigma.

    That is a ``part``: exp(-t^2 / 2 sigma^2) erfcx(u) / 2. For negative u, where erfcx overflows, it follows by
    erfcx(-u) = 2 exp(u^2) - erfcx(u). No two large numbers are subtracted.
    """

    def decay(t: Any, rate: Any, sigma: Any, choose: Any, exp: Any, erfcx: Any) -> Any:
        u = (sigma * rate - t / sigma) / math.sqrt(2)
        near = part(t, u, sigma, choose, exp, erfcx)
        return choose(u < 0, exp(rate * (0.5 * rate * sigma**2 - t)) - near, near)

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
        return decay(t, rate, np.float64(sigma), np.where, np.exp, scipy_special("erfcx"))[()]

    record = Operation(
        rank=rank,
        arity=3,
        price=150,
        numpy=numbers,
        partials=partials,
        latex=Prefix(r"\operatorname{decay}"),
        spelled=lambda t, rate, sigma: decay(t, rate, sigma, Choices.WHERE, np.exp, Normal.ERFCX),
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE,
    )
    return record


class Special:
    """Functions of scipy.special."""

    ERF = Operation(
        rank=25,
        price=60,
        numpy=plain_or(math.erf, "erf"),
        ufuncs=("erf",),
        partials=lambda x: (2 / math.sqrt(math.pi) * np.exp(-(x**2)),),
        latex=Prefix(r"\operatorname{erf}"),
        routine="erf",
        traits=Trait.ODD | Trait.LEVELS_OFF,
    )
    ERFC = Operation(
        rank=26,
        price=90,
        numpy=plain_or(math.erfc, "erfc"),
        ufuncs=("erfc",),
        partials=lambda x: (-2 / math.sqrt(math.pi) * np.exp(-(x**2)),),
        latex=Prefix(r"\operatorname{erfc}"),
        routine="erfc",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE | Trait.LEVELS_OFF,
    )
    SMEARED_DECAY: Operation = smeared_decay_of(72, whole_part, lambda t, s: np.exp(-0.5 * (t / s) ** 2))
    # at the ends of a range around zero, where what a density has ten widths away is negligible in its integral
    GAUSSIAN_AT_END: Operation = Operation(
        rank=82,
        arity=2,
        price=50,
        numpy=lambda t, sigma: cut_gaussian(t, sigma, np.where, np.exp)[()],
        partials=gaussian_partials,
        latex=Prefix(r"\operatorname{gauss}"),
        spelled=lambda t, sigma: cut_gaussian(t, sigma, Choices.WHERE, np.exp),
        traits=Trait.NOT_NEGATIVE,
    )
    DECAY_AT_END: Operation = smeared_decay_of(81, end_part, lambda t, s: Special.GAUSSIAN_AT_END(t, s))
    LGAMMA = Operation(
        rank=28,
        price=200,
        numpy=scipy_special("gammaln"),
        ufuncs=("gammaln",),
        partials=lambda x: (Special.DIGAMMA(x),),
        latex=Prefix(r"\ln\Gamma"),
        routine="lgamma",
    )
    DIGAMMA: Operation = Operation(
        rank=29,
        price=200,
        numpy=scipy_special("digamma"),
        ufuncs=("psi",),
        partials=lambda x: (Special.TRIGAMMA(x),),
        latex=Prefix(r"\psi"),
        routine="digamma",
    )
    TRIGAMMA: Operation = Operation(
        rank=30,
        price=200,
        numpy=scipy_special("polygamma", 1),
        partials=lambda x: (Special.TETRAGAMMA(x),),
        latex=Prefix(r"\psi_{1}"),
        routine="trigamma",
        traits=Trait.NOT_NEGATIVE,
    )
    TETRAGAMMA: Operation = Operation(
        rank=31,
        price=200,
        numpy=scipy_special("polygamma", 2),
        latex=Prefix(r"\psi_{2}"),
        routine="tetragamma",
        traits=Trait.NO_SLOPE,
    )
