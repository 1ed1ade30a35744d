"""Trigonometric functions and their inverses."""

from __future__ import annotations

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait, call


class Trigonometric:
    """Functions of angles, in radians."""

    SIN = Operation(
        rank=15,
        arity=1,
        price=26,
        numpy=np.sin,
        ufuncs=("sin",),
        partials=lambda x: (np.cos(x),),
        latex=Prefix(r"\sin", raised=True),
        llvm=call("sin"),
        c="sin({0})",
        traits=Trait.ODD,
    )
    COS = Operation(
        rank=16,
        arity=1,
        price=26,
        numpy=np.cos,
        ufuncs=("cos",),
        partials=lambda x: (-np.sin(x),),
        latex=Prefix(r"\cos", raised=True),
        llvm=call("cos"),
        c="cos({0})",
        traits=Trait.EVEN,
    )
    TAN = Operation(
        rank=17,
        arity=1,
        price=60,
        numpy=np.tan,
        ufuncs=("tan",),
        partials=lambda x: (1 + np.tan(x) ** 2,),
        latex=Prefix(r"\tan", raised=True),
        llvm=call("tan"),
        c="tan({0})",
        traits=Trait.ODD,
    )
    ASIN = Operation(
        rank=18,
        arity=1,
        price=45,
        numpy=np.arcsin,
        ufuncs=("arcsin",),
        partials=lambda x: ((1 - x**2) ** -0.5,),
        singular=lambda x: abs(x) == 1,
        latex=Prefix(r"\arcsin"),
        llvm=call("asin"),
        c="asin({0})",
        traits=Trait.ODD,
    )
    ACOS = Operation(
        rank=19,
        arity=1,
        price=45,
        numpy=np.arccos,
        ufuncs=("arccos",),
        partials=lambda x: (-((1 - x**2) ** -0.5),),
        singular=lambda x: abs(x) == 1,
        latex=Prefix(r"\arccos"),
        llvm=call("acos"),
        c="acos({0})",
        traits=Trait.NOT_NEGATIVE,
    )
    ATAN = Operation(
        rank=20,
        arity=1,
        price=35,
        numpy=np.arctan,
        ufuncs=("arctan",),
        partials=lambda x: (1 / (1 + x**2),),
        latex=Prefix(r"\arctan"),
        llvm=call("atan"),
        c="atan({0})",
        traits=Trait.ODD | Trait.LEVELS_OFF,
    )
    ATAN2 = Operation(
        rank=21,
        arity=2,
        price=60,
        numpy=np.arctan2,
        ufuncs=("arctan2",),
        partials=lambda x, y: (y / (x**2 + y**2), -x / (x**2 + y**2)),
        singular=lambda x, y: (x == 0) & (y == 0),
        latex=Prefix(r"\operatorname{atan2}"),
        llvm=call("atan2"),
        c="atan2({0}, {1})",
    )
