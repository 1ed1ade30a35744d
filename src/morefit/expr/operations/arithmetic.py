"""Sums, products, powers and roots; steps, comparisons and choices.

A kink takes the slope of its right side, so that |x|, which the library uses for symmetric formulas, has its right
second derivatives at 0 too.
"""

from __future__ import annotations

import sys
from functools import reduce
from typing import Any

import numpy as np

from morefit.expr.operations.record import (
    STANDS_ALONE,
    Around,
    Infix,
    Llvm,
    LlvmKind,
    Operation,
    Prefix,
    Trait,
    call,
    instruction,
    intrinsic,
)


def comparison(
    rank: int, how: np.ufunc, sign: str, latex: str, predicate: str, more: Trait = Trait.NONE
) -> Operation:
    """Return a comparison as numbers, by the sign that Python and C write; ``predicate`` is that of LLVM."""
    return Operation(
        rank=rank,
        arity=2,
        price=1,
        numpy=lambda x, y: how(x, y) * 1.0,
        ufuncs=(how.__name__,),
        partials=lambda x, y: (0, 0),
        sign=sign,
        latex=Infix(latex),
        llvm=Llvm(LlvmKind.COMPARISON, predicate),
        c=f"({{0}} {sign} {{1}}) ? 1.0 : 0.0",
        traits=Trait.COMPARISON | Trait.NOT_NEGATIVE | more,
    )


class Choices:
    """Operations with steps or kinks; a comparison is 1.0 where it holds and 0.0 elsewhere."""

    ABS = Operation(
        rank=32,
        price=1,
        numpy=np.abs,
        ufuncs=("absolute", "fabs"),
        partials=lambda x: (Choices.WHERE(x < 0, -1, 1),),
        latex=Around(STANDS_ALONE, r"\left|", r"\right|"),
        llvm=intrinsic("fabs"),
        c="fabs({0})",
        traits=Trait.EVEN | Trait.NOT_NEGATIVE,
    )
    FLOOR = Operation(
        rank=33,
        price=1,
        numpy=np.floor,
        partials=lambda x: (0,),
        latex=Around(STANDS_ALONE, r"\lfloor ", r" \rfloor"),
        llvm=intrinsic("floor"),
        c="floor({0})",
    )
    SIGN = Operation(
        rank=53,
        price=2,
        numpy=np.sign,
        partials=lambda x: (0,),
        latex=Prefix(r"\operatorname{sgn}"),
        llvm=call("sign"),
        c="({0} > 0) ? 1.0 : ({0} < 0) ? -1.0 : {0}",
        traits=Trait.ODD,
    )
    FIXED = Operation(  # a number as it is, in what does not depend on it: a point between two parts of an integral
        rank=150,
        price=1,
        numpy=lambda x: x,
        partials=lambda x: (0,),
        latex=Prefix(r"\operatorname{fixed}"),
        spelled=lambda x: x,
    )
    MIN = Operation(  # a NaN wins, as in numpy
        rank=34,
        arity=2,
        price=1,
        numpy=np.minimum,
        ufuncs=("minimum", "fmin"),
        latex=Prefix(r"\min"),
        llvm=Llvm(LlvmKind.CHOICE, "olt"),
        c="({0} < {1} || isnan({0})) ? {0} : {1}",
        traits=Trait.SYMMETRIC | Trait.KEEPS_SIGN | Trait.OWN_SLOPE,
    )
    MAX = Operation(
        rank=35,
        arity=2,
        price=1,
        numpy=np.maximum,
        ufuncs=("maximum", "fmax"),
        latex=Prefix(r"\max"),
        llvm=Llvm(LlvmKind.CHOICE, "ogt"),
        c="({0} > {1} || isnan({0})) ? {0} : {1}",
        traits=Trait.SYMMETRIC | Trait.KEEPS_SIGN | Trait.OWN_SLOPE,
    )
    LESS = comparison(36, np.less, "<", " < ", "olt")
    LESS_EQUAL = comparison(37, np.less_equal, "<=", r" \leq ", "ole")
    EQUAL = comparison(38, np.equal, "==", " = ", "oeq", more=Trait.SYMMETRIC)
    NOT_EQUAL = comparison(42, np.not_equal, "!=", r" \neq ", "une", more=Trait.SYMMETRIC)
    WHERE: Operation = Operation(
        rank=39,
        arity=3,
        price=1,
        numpy=lambda c, x, y: np.where(np.not_equal(c, 0.0), x, y),
        llvm=Llvm(LlvmKind.SELECT),
        c="({0} != 0) ? {1} : {2}",
        traits=Trait.OWN_SLOPE,
    )


SMALLEST = sys.float_info.min  # of the normal numbers


def ratio(x: Any, y: Any) -> Any:
    return np.where(np.abs(np.divide(1.0, y)) <= SMALLEST, 0.0, np.divide(x, y))[()]


class Arithmetic:
    """Operations that are written with signs; ADD and MUL take any number of arguments."""

    ADD = Operation(
        rank=6,
        arity=0,
        price=1,
        numpy=lambda *x: reduce(np.add, x),
        ufuncs=("add",),
        sign="+",
        llvm=instruction("fadd contract"),
        c="{0} + {1}",
        traits=Trait.NARY | Trait.SYMMETRIC | Trait.KEEPS_SIGN | Trait.OWN_SLOPE,
    )
    MUL = Operation(
        rank=7,
        arity=0,
        price=1,
        numpy=lambda *x: reduce(np.multiply, x),
        ufuncs=("multiply",),
        sign="*",
        llvm=instruction("fmul contract"),
        c="{0} * {1}",
        traits=Trait.NARY | Trait.SYMMETRIC | Trait.KEEPS_SIGN | Trait.OWN_SLOPE,
    )
    # the power of zero does not depend on a positive exponent, and has no derivative at zero to the power zero
    POW = Operation(
        rank=8,
        arity=2,
        price=120,
        numpy=np.power,
        ufuncs=("power", "float_power"),
        partials=lambda x, y: (y * x ** (y - 1), Choices.WHERE(x == 0, x**y / y, x**y * np.log(x))),
        singular=lambda x, y: (x == 0) & (y < 1),
        sign="**",
        routine="pow",
        traits=Trait.KEEPS_SIGN,
    )
    SQRT = Operation(
        rank=14,
        price=16,
        numpy=np.sqrt,
        partials=lambda x: (0.5 * x**-0.5,),
        singular=lambda x: x == 0,
        latex=Around(STANDS_ALONE, r"\sqrt{", "}"),
        llvm=intrinsic("sqrt"),
        c="sqrt({0})",
        traits=Trait.NOT_NEGATIVE,
    )
    # of a slope to what has it: zero where both have overflowed; powers of it are not those of its arguments
    RATIO = Operation(
        rank=83,
        arity=2,
        price=13,
        numpy=ratio,
        spelled=lambda x, y: Choices.WHERE(abs(y**-1) <= SMALLEST, 0, x * y**-1),
        latex=Prefix(r"\operatorname{ratio}"),
        traits=Trait.OWN_SLOPE,
    )
