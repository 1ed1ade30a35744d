"""Names, numbers and limits of observables and parameters: what is refused, and what becomes a double."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from morefit.errors import ModelError, MorefitError
from morefit.expr import Expr, Operation, Symbol, as_double, symbols


def check_name(kind: str, name: object) -> None:
    """Refuse what is no word; spaces are reserved for the library's own names."""
    if not isinstance(name, str) or not name or not name.isprintable() or " " in name:
        raise ModelError(f"{kind} {name!r}: name must be a word without spaces and control signs")


def check_number(
    kind: str, name: str, what: str, value: Any, error: type[MorefitError] = ModelError
) -> float:
    """Return a real number of any kind as a double; a truth value is none."""
    number = None if isinstance(value, (bool, np.bool_)) else as_double(value)
    if number is None:
        raise error(f"{kind} '{name}': {what} must be a number, got {value!r}")
    return number


def check_limits(name: str, limits: Any, error: type[MorefitError] = ModelError) -> tuple[float, float]:
    """Return the limits of a parameter as doubles; None stands for no limit."""
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise error(f"parameter '{name}': limits must be (low, high), got {limits!r}") from None
    ends = (
        -math.inf if low is None else check_number("parameter", name, "low", low, error),
        math.inf if high is None else check_number("parameter", name, "high", high, error),
    )
    if not ends[0] < ends[1]:
        raise error(f"parameter '{name}': low must be below high, got {low} and {high}")
    return ends


def by_name(op: Operation, formula: Expr) -> list[Symbol]:
    """List the symbols of a formula, whose terms have no order, by their names; a2 comes before a10."""

    def key(symbol: Symbol) -> list[tuple[int, str]]:
        return [
            (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", symbol.name)
        ]

    return sorted(symbols(op, formula), key=key)
