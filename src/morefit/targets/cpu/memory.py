"""Memory for vectors, and machine code that lives in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[[int], None]
PADDING = 16  # numbers; the last vector of a column may read so far past its end


def aligned(count: int, kind: type[np.floating[Any]] = np.float64) -> np.ndarray[Any, Any]:
    """Return an array of ``count`` numbers that starts on a cache line."""
    size = np.dtype(kind).itemsize
    raw = np.empty(count * size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * size].view(kind)


@dataclass(frozen=True, eq=False)
class Code:
    """Machine code in memory; ``engine`` owns it."""

    engine: Any
    addresses: Mapping[str, int]
    functions: Mapping[str, Function]
