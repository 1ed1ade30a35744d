"""Real numbers of any kind, converted to doubles once, where they enter morefit."""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any

import numpy as np

KINDS = (Real, np.bool_)


def as_double(value: Any) -> float | None:
    """Return a real number as a double, infinite if it is too large for one; None for what is no real number.

    Integers of NumPy are among them: their own arithmetic would wrap around.
    """
    if type(value) is float:  # most are, and the other tests take longer than the making of a node
        return value
    number: Any = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, KINDS) or is_decimal(number):
        return rounded(number)
    return None


def is_decimal(number: Any) -> bool:
    """Return whether a number is a Decimal; there is none before that module is imported."""
    decimal = sys.modules.get("decimal")
    return decimal is not None and isinstance(number, decimal.Decimal)


def rounded(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # of an integer or a fraction
        return math.inf if number > 0 else -math.inf
    except ValueError:  # of a NaN that signals
        return math.nan
