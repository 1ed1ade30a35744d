"""Small arrays of a launch in one block of memory, and machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from morefit.arrays import Integers

Function = Callable[[int], None]


class Arena:
    """A block of 64-bit words cut into named parts: one allocation, and addresses by arithmetic."""

    def __init__(self, **sizes: int) -> None:
        self.bounds: dict[str, tuple[int, int]] = {}
        end = 0
        for name, size in sizes.items():
            self.bounds[name] = end, end + size
            end += size
        self.words = np.empty(end, np.int64)
        self.start = int(self.words.ctypes.data)

    def part(self, name: str) -> Integers:
        """Return the words of a part."""
        begin, end = self.bounds[name]
        return self.words[begin:end]

    def address(self, name: str) -> int:
        """Return the address of a part."""
        return self.start + 8 * self.bounds[name][0]


@dataclass(frozen=True, eq=False)
class Code:
    """Machine code in memory; ``engine`` owns it."""

    engine: Any
    addresses: Mapping[str, int]
    functions: Mapping[str, Function]
