"""Elementary functions: exponentials, logarithms, hyperbolic and trigonometric functions and their inverses."""

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
        partials=lambda x: (Exponential.ATANH_SLOPE(x),),
        latex=Prefix(r"\operatorname{artanh}"),
        routine="atanh",
        traits=Trait.ODD,
    )
    # 1 / (1 - x^2): two factors keep their digits next to one, and the derivative of one fraction keeps its own next to zero
    ATANH_SLOPE: Operation = Operation(
        rank=138,
        price=14,
        numpy=lambda x: 1 / ((1 - x) * (1 + x)),
        partials=lambda x: (2 * x * Exponential.ATANH_SLOPE(x) ** 2,),
        latex=Prefix(r"\operatorname{artanh}'"),
        spelled=lambda x: 1 / ((1 - x) * (1 + x)),
        traits=Trait.EVEN,
    )


class Trigonometric:
    """Functions of angles, in radians."""

    SIN = Operation(
        rank=15,
        price=26,
        numpy=np.sin,
        partials=lambda x: (np.cos(x),),
        latex=Prefix(r"\sin", raised=True),
        routine="sin",
        traits=Trait.ODD,
    )
    COS = Operation(
        rank=16,
        price=26,
        numpy=np.cos,
        partials=lambda x: (-np.sin(x),),
        latex=Prefix(r"\cos", raised=True),
        routine="cos",
        traits=Trait.EVEN,
    )
    TAN = Operation(
        rank=17,
        price=60,
        numpy=np.tan,
        partials=lambda x: (1 + np.tan(x) ** 2,),
        latex=Prefix(r"\tan", raised=True),
        routine="tan",
        traits=Trait.ODD,
    )
    ASIN = Operation(
        rank=18,
        price=45,
        numpy=np.arcsin,
        partials=lambda x: (np.sqrt(Exponential.ATANH_SLOPE(x)),),
        singular=lambda x: abs(x) == 1,
        latex=Prefix(r"\arcsin"),
        routine="asin",
        traits=Trait.ODD,
    )
    ACOS = Operation(
        rank=19,
        price=45,
        numpy=np.arccos,
        partials=lambda x: (-np.sqrt(Exponential.ATANH_SLOPE(x)),),
        singular=lambda x: abs(x) == 1,
        latex=Prefix(r"\arccos"),
        routine="acos",
        traits=Trait.NOT_NEGATIVE,
    )
    ATAN = Operation(
        rank=20,
        price=35,
        numpy=np.arctan,
        partials=lambda x: (1 / (1 + x**2),),
        latex=Prefix(r"\arctan"),
        routine="atan",
        traits=Trait.ODD | Trait.LEVELS_OFF,
    )
    ATAN2 = Operation(
        rank=21,
        arity=2,
        price=60,
        numpy=np.arctan2,
        partials=lambda x, y: (y / (x**2 + y**2), -x / (x**2 + y**2)),
        singular=lambda x, y: (x == 0) & (y == 0),
        latex=Prefix(r"\operatorname{atan2}"),
        routine="atan2",
    )
