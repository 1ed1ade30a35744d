"""Exponentials, logarithms and hyperbolic functions."""

from __future__ import annotations

import math

import numpy as np

from morefit.expr.operations.record import (
    ADDS,
    RAISES,
    STANDS_ALONE,
    Around,
    Operation,
    Prefix,
    Trait,
    call,
)


class Exponential:
    """Exponentials, logarithms and what is made of them."""

    EXP = Operation(
        rank=9,
        price=18,
        numpy=np.exp,
        partials=lambda x: (np.exp(x),),
        latex=Around(RAISES, "e^{", "}"),
        llvm=call("exp", flushed="exp_flushed"),
        c="exp({0})",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE | Trait.GROWS | Trait.LEVELS_OFF,
    )
    EXP2 = Operation(
        rank=10,
        price=15,
        numpy=np.exp2,
        partials=lambda x: (math.log(2) * np.exp2(x),),
        latex=Around(RAISES, "2^{", "}"),
        llvm=call("exp2", flushed="exp2_flushed"),
        c="exp2({0})",
        traits=Trait.NOT_NEGATIVE | Trait.POSITIVE | Trait.GROWS | Trait.LEVELS_OFF,
    )
    EXPM1 = Operation(
        rank=11,
        price=28,
        numpy=np.expm1,
        partials=lambda x: (np.exp(x),),
        latex=Around(ADDS, "e^{", "} - 1"),
        routine="expm1",
        traits=Trait.GROWS,
    )
    LOG = Operation(
        rank=12,
        price=26,
        numpy=np.log,
        partials=lambda x: (1 / x,),
        latex=Prefix(r"\ln", raised=True),
        routine="log",
    )
    LOG1P = Operation(
        rank=13,
        price=32,
        numpy=np.log1p,
        partials=lambda x: (1 / (1 + x),),
        latex=Around(STANDS_ALONE, r"\ln\left(1 + ", r"\right)", inner=ADDS),
        routine="log1p",
    )
    LOG2 = Operation(  # exact at powers of two
        rank=43,
        price=28,
        numpy=np.log2,
        partials=lambda x: (1 / (math.log(2) * x),),
        latex=Prefix(r"\log_{2}"),
        llvm=call("log2"),
        c="exact_log2({0})",
    )
    LOG10 = Operation(  # exact at powers of ten
        rank=44,
        price=40,
        numpy=np.log10,
        partials=lambda x: (1 / (math.log(10) * x),),
        latex=Prefix(r"\log_{10}"),
        llvm=call("log10"),
        c="exact_log10({0})",
    )
    SINH = Operation(
        rank=22,
        price=45,
        numpy=np.sinh,
        partials=lambda x: (np.cosh(x),),
        latex=Prefix(r"\sinh", raised=True),
        routine="sinh",
        traits=Trait.ODD | Trait.GROWS,
    )
    COSH = Operation(
        rank=23,
        price=45,
        numpy=np.cosh,
        partials=lambda x: (np.sinh(x),),
        latex=Prefix(r"\cosh", raised=True),
        routine="cosh",
        traits=Trait.EVEN | Trait.NOT_NEGATIVE | Trait.POSITIVE | Trait.GROWS,
    )
    TANH = Operation(
        rank=24,
        price=45,
        numpy=np.tanh,
        partials=lambda x: (1 - np.tanh(x) ** 2,),
        latex=Prefix(r"\tanh", raised=True),
        routine="tanh",
        traits=Trait.ODD | Trait.LEVELS_OFF,
    )
    ASINH = Operation(
        rank=50,
        price=70,
        numpy=np.arcsinh,
        partials=lambda x: ((1 + x**2) ** -0.5,),
        latex=Prefix(r"\operatorname{arsinh}"),
        routine="asinh",
        traits=Trait.ODD,
    )
    ACOSH = Operation(
        rank=51,
        price=70,
        numpy=np.arccosh,
        partials=lambda x: ((x - 1) ** -0.5 * (x + 1) ** -0.5,),
        singular=lambda x: x == 1,
        latex=Prefix(r"\operatorname{arcosh}"),
        routine="acosh",
        traits=Trait.NOT_NEGATIVE,
    )
    ATANH = Operation(
        rank=52,
        price=60,
        numpy=np.arctanh,
        partials=lambda x: (1 / ((1 - x) * (1 + x)),),
        latex=Prefix(r"\operatorname{artanh}"),
        routine="atanh",
        traits=Trait.ODD,
    )
