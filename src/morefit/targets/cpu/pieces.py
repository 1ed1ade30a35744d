"""Columns of many datasets that lie apart in memory: found, checked and copied by compiled code, without Python for each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, Integers, address
from morefit.dataclass import dataclass
from morefit.resources import available_cores, on_all_cores, padded
from morefit.targets.cpu.abi import Code
from morefit.targets.cpu.compile import find_code
from morefit.targets.cpu.pieces_text import COPY, EXAMINE, LOCATE
from morefit.targets.cpu.threads import WORKERS

BLOCK = 1 << 16  # numbers that a thread looks at
PART = 1 << 18  # numbers that a thread copies
WORTH_THREADS = 1 << 17  # numbers; below it to meet other threads costs more than it brings
BAD, TOTAL, MAGNITUDE = range(3)  # what is known of a block


@cache
def pieces_code() -> Code:
    """Return the machine code, which is the same for all columns."""
    return find_code("\n".join([LOCATE, EXAMINE, COPY]), ("locate", "examine", "copy_run"))


@cache
def find_arrays() -> tuple[Any, int]:
    """Return the function that looks at numpy's arrays, called with the lock of the interpreter, and the one that it calls."""
    locate = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(pieces_code().addresses["locate"])
    return locate, ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, ctypes.c_void_p).value or 0


class Cuts(Sequence[Array]):
    """Parts of one array, each of which is made when it is wanted."""

    def __init__(self, column: Array, stops: Integers, sizes: Integers) -> None:
        self.column, self.stops, self.sizes = column, stops, sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return Cuts(self.column, self.stops[which], self.sizes[which])
        stop = int(self.stops[which])
        return self.column[stop - int(self.sizes[which]) : stop]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Doubles of many arrays, one after the other as those of one column; they are where the arrays have them."""

    arrays: Sequence[Array] | Array  # of a table, its rows
    places: Integers  # of the first number of each: its address in units of eight bytes
    sizes: Integers

    @classmethod
    def of(cls, arrays: Sequence[Any]) -> Pieces | None:
        """Find arrays of one dimension whose doubles follow one another; None if there is anything else."""
        if set(map(type, arrays)) - {np.ndarray}:
            return None
        locate, get = find_arrays()
        capsules = np.fromiter((array.__array_struct__ for array in arrays), object, len(arrays))
        places, sizes = np.empty((2, len(arrays)), np.int64)
        job = words(capsules, len(arrays), get, places, sizes)
        locate(address(job))
        return None if sizes.min(initial=0) < 0 else cls(arrays, places, sizes)

    @classmethod
    def rows(cls, table: Array) -> Pieces | None:
        """Find the rows of a table of doubles; None if the numbers of a row do not follow one another."""
        if type(table) is not np.ndarray or table.dtype != np.float64 or not table.flags.aligned:
            return None
        count, size = table.shape
        if table.strides[0] % 8 or (size > 1 and table.strides[1] != 8):
            return None
        first, step = address(table) >> 3, table.strides[0] >> 3
        return cls(table, first + step * np.arange(count, dtype=np.int64), np.full(count, size, np.int64))

    @classmethod
    def cut(cls, column: Array, sizes: Integers) -> Pieces | None:
        """Cut one array into pieces of some sizes; None if its numbers do not follow one another."""
        whole = cls.of([column])
        if whole is None:
            return None
        stops = np.cumsum(sizes)
        return cls(Cuts(column, stops, sizes), whole.places[0] + stops - sizes, sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return int(self.sizes.sum())

    def some(self, chosen: Integers) -> Pieces:
        """Return some of the pieces."""
        arrays = [self.arrays[k] for k in chosen.tolist()]
        return Pieces(arrays, self.places[chosen], self.sizes[chosen])

    def between(self, cut: slice) -> Pieces:
        """Return pieces that follow one another."""
        return Pieces(self.arrays[cut], self.places[cut], self.sizes[cut])

    def examine(self, low: float, high: float) -> tuple[Flags, Array, Array]:
        """Return of each piece whether all numbers are from ``low`` to ``high``, their sum, and that of their magnitudes."""
        counts = np.maximum(-(-self.sizes // BLOCK), 1)
        first = np.cumsum(counts) - counts
        begin = BLOCK * (np.arange(int(counts.sum())) - np.repeat(first, counts))
        places = np.repeat(self.places, counts) + begin
        sizes = np.minimum(np.repeat(self.sizes, counts) - begin, BLOCK)
        out, counter, ends = (
            np.empty((len(sizes), 3)),
            np.zeros(1, np.int64),
            np.array([low, high], np.float64),
        )
        job = words(counter, len(sizes), places, sizes, ends, out)
        threads = min(available_cores(), len(sizes)) if self.count > WORTH_THREADS else 1
        WORKERS.run(pieces_code(), "examine", [address(job)] * max(threads, 1))
        each = np.add.reduceat(out, first, axis=0) if len(first) < len(out) else out
        return each[:, BAD] == 0, each[:, TOTAL], each[:, MAGNITUDE]

    def copy(self, first: int, target: Array) -> None:
        """Copy as many numbers as there is room for, from one of them on; other threads may run."""
        stops = self.stops
        piece = int(np.searchsorted(stops, first, "right"))
        begin = first - int(stops[piece] - self.sizes[piece]) if len(target) else 0
        job = words(self.places, self.sizes, piece, begin, len(target), target)
        pieces_code().functions["copy_run"](address(job))

    @cached_property
    def stops(self) -> Integers:
        """How many numbers there are up to the end of each piece."""
        return np.cumsum(self.sizes)

    def joined(self) -> Array:
        """Return the numbers in one array, where vectors can read past its end."""

        def fill(numbers: Array) -> None:
            on_all_cores(lambda cut: self.copy(cut.start, numbers[cut]), len(numbers), PART)

        return padded(self.count, fill)


def words(*content: int | np.ndarray[Any, Any]) -> Integers:
    """Return the words of a job: numbers, and addresses of arrays."""
    return np.array([one if isinstance(one, int) else address(one) for one in content], np.int64)
