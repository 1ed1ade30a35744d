"""Real numbers of any kind, converted to doubles once, where they enter morefit."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

KINDS = (Real, Decimal, np.bool_)


def as_double(value: Any) -> float | None:
    """Return a real number as a double, infinite if it is too large for one; None for what is no real number.

    Integers of NumPy are among them: their own arithmetic would wrap around.
    """
    if type(value) is float:  # most are, and the other tests take longer than the making of a node
        return value
    number: Any = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, KINDS):
        return rounded(number)
    return None


def rounded(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # of an integer or a fraction
        return math.inf if number > 0 else -math.inf
    except ValueError:  # of a NaN that signals
        return math.nan
