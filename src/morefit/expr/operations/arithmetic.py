"""Sums, products, powers and roots."""

from __future__ import annotations

import sys
from functools import reduce
from typing import Any

import numpy as np

from morefit.expr.operations.choices import Choices
from morefit.expr.operations.record import (
    STANDS_ALONE,
    Around,
    Operation,
    Prefix,
    Trait,
    instruction,
    intrinsic,
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
