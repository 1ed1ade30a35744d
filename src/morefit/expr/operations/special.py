"""Special functions: the normal distribution and the gamma function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, call, scipy_special


def plain_or(scalar: Callable[[float], float], name: str) -> Callable[[Any], Any]:
    """Use the math module for a lone number and scipy for arrays."""
    array = scipy_special(name)
    return lambda x: scalar(x) if isinstance(x, float) else array(x)


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
