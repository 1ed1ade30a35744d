"""Trigonometric functions and their inverses."""

from __future__ import annotations

import numpy as np

from morefit.expr.operations.record import Operation, Prefix, Trait


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
        partials=lambda x: ((1 - x**2) ** -0.5,),
        singular=lambda x: abs(x) == 1,
        latex=Prefix(r"\arcsin"),
        routine="asin",
        traits=Trait.ODD,
    )
    ACOS = Operation(
        rank=19,
        price=45,
        numpy=np.arccos,
        partials=lambda x: (-((1 - x**2) ** -0.5),),
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
