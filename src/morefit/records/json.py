"""Entries of records as JSON can represent them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np


def portable(item: Any) -> Any:
    """Return an entry of a record as JSON can represent it; "nan", "inf" and "-inf" become strings."""
    if isinstance(item, Mapping):
        return {name: portable(value) for name, value in item.items()}
    if isinstance(item, tuple | np.ndarray):
        return [portable(value) for value in item]
    if isinstance(item, float):
        return float(item) if isfinite(item) else str(float(item))
    return item
