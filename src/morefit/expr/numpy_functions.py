"""Functions of NumPy that are made of operations: choices between pieces, remainders, and some that are not its ufuncs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morefit.errors import ModelError
from morefit.expr.build import where
from morefit.expr.interpolate import clip, interp
from morefit.expr.node import ONE, ZERO, Expr, Operand, const, known_expr, to_expr
from morefit.expr.operations import Op


def choose(condition: Operand, yes: Operand | None = None, no: Operand | None = None) -> Expr:
    """Return what ``np.where`` does with three arguments."""
    if yes is None or no is None:
        raise ModelError(
            "numpy function 'where': needs a condition and two expressions, np.where(x > 1, a, b)"
        )
    return where(condition, yes, no)


def clipped(x: Operand, low: Operand | None = None, high: Operand | None = None, **bounds: Operand) -> Expr:
    """Return what ``np.clip`` does; either bound may be None."""
    low, high = bounds.get("a_min", bounds.get("min", low)), bounds.get("a_max", bounds.get("max", high))
    if low is None:
        return to_expr(x) if high is None else Op.MIN(x, high)
    return Op.MAX(x, low) if high is None else clip(x, low, high)


def select(conditions: Sequence[Operand], choices: Sequence[Operand], default: Operand = 0.0) -> Expr:
    """Return the choice of the first condition that holds, as ``np.select`` does."""
    value = to_expr(default)
    for condition, choice in reversed(pairs("select", conditions, choices)):
        value = where(condition, choice, value)
    return value


def piecewise(x: Operand, conditions: Any, functions: Sequence[Any], *args: Any, **options: Any) -> Expr:
    """Return the function of the last condition that holds, as ``np.piecewise`` does; one more is the default."""
    pieces = [conditions] if known_expr(conditions) is not None else list(conditions)
    values = [one(x, *args, **options) if callable(one) else one for one in functions]
    value = to_expr(values.pop()) if len(values) == len(pieces) + 1 else ZERO
    for condition, choice in pairs("piecewise", pieces, values):
        value = where(condition, choice, value)
    return value


def pairs(name: str, conditions: Sequence[Any], choices: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return conditions with what they choose; there must be one for each."""
    if len(conditions) != len(choices):
        raise ModelError(
            f"numpy function '{name}': needs one expression for each condition, got {len(choices)} for {len(conditions)}"
        )
    return list(zip(conditions, choices, strict=True))


def sinc(x: Operand) -> Expr:
    """Return sin(pi x) / (pi x)."""
    angle = np.pi * where(to_expr(x) == 0, 1e-20, x)
    return Op.SIN(angle) / angle


def floor_divide(a: Expr, b: Expr) -> Expr:
    return Op.FLOOR(a / b)


def fmod(a: Expr, b: Expr) -> Expr:
    """Return the remainder that has the sign of the first number."""
    ratio = a / b
    return a - b * Op.SIGN(ratio) * Op.FLOOR(abs(ratio))


# by the name of the ufunc, as those of single operations
COMPOSED: dict[str, Callable[..., Expr]] = {
    "heaviside": lambda a, b: where(a < 0, ZERO, where(a > 0, ONE, b)),
    "floor_divide": floor_divide,
    "remainder": lambda a, b: a - b * floor_divide(a, b),
    "fmod": fmod,
    "ceil": lambda a: -Op.FLOOR(-a),
    "trunc": lambda a: Op.SIGN(a) * Op.FLOOR(abs(a)),
    "cbrt": lambda a: Op.SIGN(a) * abs(a) ** const(1 / 3),
    "logaddexp": lambda a, b: Op.MAX(a, b) + Op.LOG1P(Op.EXP(-abs(a - b))),
}

# by the function of NumPy, which calls it where an argument is an expression
NUMPY_FUNCTIONS: dict[Callable[..., Any], Callable[..., Expr]] = {
    np.clip: clipped,
    np.interp: interp,
    np.piecewise: piecewise,
    np.select: select,
    np.sinc: sinc,
    np.where: choose,
}


def call(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function of NumPy with expressions: one of these, or its own code, which may take them as it takes numbers."""
    if known := NUMPY_FUNCTIONS.get(function):
        return known(*args, **options)
    try:
        return function.__wrapped__(*args, **options)
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"numpy function '{function.__name__}': does not work on expressions; write it with operators,"
            f" {', '.join(f'np.{known.__name__}' for known in NUMPY_FUNCTIONS)} and np.exp and the like, or use mf.opaque"
        ) from None
