"""Memory of columns: it starts on a cache line, may be read past its end, and is used again when nothing refers to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from morefit.arrays import Array, Integers
from morefit.resources import available_memory

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
PADDING = 16  # numbers; the last vector of a column may read so far past its end
LINE = 64  # bytes
LARGE = 1 << 20  # bytes: a process has smaller blocks already
MAX_FREE = 1 << 28  # bytes of free blocks, and at most
MAX_SHARE = 1 / 32  # of the memory of the machine
TOO_LARGE = 1.25  # times what is needed


class Block(Bytes):
    """Bytes of one column or several; arrays in them have it as their base, so that it lives as long as they do.

    Pages that are new to a process take longer than a pass over the events in them: those of large blocks are used again.
    """

    free: ClassVar[dict[int, Bytes]] = {}  # memory of blocks that are gone, that of the oldest first

    def __del__(self) -> None:
        memory = vars(self).get("memory")  # parts of a block have none
        if memory is not None:
            self.free[id(memory)] = memory
            while sum(one.size for one in list(self.free.values())) > max_free():
                self.free.pop(next(iter(self.free)), None)


def aligned(count: int, kind: type[np.floating[Any]] = np.float64) -> np.ndarray[Any, Any]:
    """Return an array of ``count`` numbers that starts on a cache line, of any content."""
    size = count * np.dtype(kind).itemsize
    block = make_block(size + LINE)
    start = -block.ctypes.data % LINE
    return block[start : start + size].view(np.ndarray).view(kind)


def make_block(size: int) -> Block:
    """Return a block of at least this number of bytes."""
    if size < LARGE:
        return np.empty(size, np.uint8).view(Block)
    memory = free_memory(size)
    if memory is None:
        max_free()  # found out here, since objects must not begin to when they are deleted
        memory = np.empty(size, np.uint8)
    block = memory.view(Block)
    vars(block)["memory"] = memory
    return block


def free_memory(size: int) -> Bytes | None:
    """Take memory of a block that is gone and was hardly larger; None if there is none."""
    fitting = [key for key, one in list(Block.free.items()) if size <= one.size <= TOO_LARGE * size]
    for key in reversed(fitting):  # what was used last may be in a cache
        if (memory := Block.free.pop(key, None)) is not None:  # another thread may have taken it
            return memory
    return None


@cache
def max_free() -> float:
    """Return how many bytes free blocks may have together."""
    return min(MAX_FREE, MAX_SHARE * available_memory())


def padded(
    count: int, fill: Callable[[Any], object], kind: type[np.floating[Any]] = np.float64
) -> np.ndarray[Any, Any]:
    """Return ``count`` numbers that ``fill`` puts into an array, where vectors can read past the end."""
    numbers = aligned(count + PADDING, kind)
    fill(numbers[:count])
    # an event that is there: nothing odd can happen to it
    numbers[count:] = numbers[count - 1] if count else 1.0
    return numbers[:count]


def concatenate(columns: Sequence[Array]) -> Array:
    """Concatenate doubles where vectors can read past the end."""
    return padded(sum(map(len, columns)), lambda numbers: np.concatenate(columns, out=numbers))


def aligned_rows(rows: int, columns: int) -> Array:
    """Return a table of doubles, to be filled, whose last row vectors can read past."""
    return padded(rows * columns, lambda numbers: numbers[-1:].fill(1.0)).reshape(rows, columns)


def take_rows(table: Array, rows: Integers) -> Array:
    """Return rows of a table of doubles where vectors can read past the end; all of them are the table itself."""
    if len(rows) == len(table) and np.array_equal(rows, np.arange(len(table))):
        return np.ascontiguousarray(table)
    taken = aligned_rows(len(rows), table.shape[1])
    return np.take(table, rows, axis=0, out=taken, mode="clip")


def can_read_past(column: Array) -> bool:
    """Return whether doubles start on a cache line, and numbers of the same kind follow as far as vectors read."""
    block = column.base
    while type(block) is np.ndarray:  # a part of the block as numbers
        block = block.base
    if type(block) is not Block or column.dtype != np.float64 or not column.flags.c_contiguous:
        return False
    start = column.ctypes.data
    return start % LINE == 0 and start + 8 * (len(column) + PADDING) <= block.ctypes.data + block.size
