"""Columns of many datasets that lie apart in memory: found, checked and copied by compiled code, without Python for each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, Integers, address
from morefit.dataclass import dataclass
from morefit.kernel.program import Kind, Stage, integers_at, vector_at
from morefit.resources import available_cores, on_all_cores, padded
from morefit.targets.cache import source_version
from morefit.targets.cpu.abi import Code
from morefit.targets.cpu.compile import build_object, find_by_key
from morefit.targets.cpu.fit_driver import COPY, TAKE
from morefit.targets.cpu.fit_stages import copy_numbers, take_toy
from morefit.targets.cpu.threads import WORKERS

BLOCK = 1 << 16  # numbers that a thread looks at
PART = 1 << 18  # numbers that a thread copies
WORTH_THREADS = 1 << 17  # numbers; below it to meet other threads costs more than it brings

# ``__array_struct__``, numpy's C interface of an array, in words of eight bytes: two and the number of dimensions, the kind of its
# numbers and their size, flags, and the addresses of shape, strides and data. The first half of a word is its lower one, as on
# every processor that fits run on; on others no array would be taken.
DIMENSIONS, KIND, FLAGS, SHAPE, STRIDES, DATA = range(6)
HALF, BYTE = 1 << 32, 1 << 8  # what a half of a word, and a byte, count up to
FLOAT = ord("f")
ALIGNED_NATIVE = 3  # both flags of the second byte, that of alignment and that of the order of bytes
STRUCT = """\
define internal i64 @struct_of(i64 %get, i64 %capsule) alwaysinline {
  %g = inttoptr i64 %get to ptr
  %c = inttoptr i64 %capsule to ptr
  %s = call ptr %g(ptr %c, ptr null)
  %address = ptrtoint ptr %s to i64
  ret i64 %address
}"""

struct_of = Stage("struct_of", Kind.INT)  # of a capsule, by the address of the function that opens it


def locate(job: Integers) -> None:
    """Store of each array its size, and its address in units of eight bytes; -1 if it is not plain."""
    objects, places, sizes = integers_at(job[0]), integers_at(job[3]), integers_at(job[4])
    for k in range(job[1]):
        address = struct_of(job[2], objects[k])
        places[k], sizes[k] = 0, -1
        if address != 0:
            array = integers_at(address)
            places[k], sizes[k] = array[DATA] // 8, plain_size(array)


def plain_size(array: Integers) -> int:
    """Return the size of an array of doubles that follow one another from a multiple of eight bytes on; -1 for others."""
    if array[DIMENSIONS] // HALF != 1:
        return -1
    shape, strides = integers_at(array[SHAPE]), integers_at(array[STRIDES])
    doubles = array[KIND] % BYTE == FLOAT and array[KIND] // HALF == 8
    native = array[FLAGS] // BYTE % 4 == ALIGNED_NATIVE and array[DATA] % 8 == 0
    joined = strides[0] == 8 or shape[0] <= 1
    return shape[0] if doubles and native and joined else -1


def check(job: Integers) -> None:
    """Store how many numbers of each block are outside a range, or none, until no block is left."""
    places, sizes = integers_at(job[2]), integers_at(job[3])
    out, ends = vector_at(job[4]), vector_at(job[5])
    low, high = ends[0], ends[1]
    block = take_toy(job[0])
    while block < job[1]:
        x = vector_at(8 * places[block])
        outside = 0
        for i in range(sizes[block]):
            outside += 0 if low <= x[i] <= high else 1
        out[block] = float(outside)
        block = take_toy(job[0])


def add_up(job: Integers) -> None:
    """Store the sums of the numbers of each block, and of their magnitudes, until no block is left."""
    places, sizes, out = integers_at(job[2]), integers_at(job[3]), vector_at(job[4])
    block = take_toy(job[0])
    while block < job[1]:
        x = vector_at(8 * places[block])
        # four sums of each: an addition waits for the one before it
        whole = sizes[block] - sizes[block] % 4
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        e, f, g, h = 0.0, 0.0, 0.0, 0.0
        for i in range(0, whole, 4):
            a, b, c, d = a + x[i], b + x[i + 1], c + x[i + 2], d + x[i + 3]
            e, f, g, h = e + abs(x[i]), f + abs(x[i + 1]), g + abs(x[i + 2]), h + abs(x[i + 3])
        for i in range(whole, sizes[block]):
            a, e = a + x[i], e + abs(x[i])
        out[2 * block], out[2 * block + 1] = a + b + c + d, e + f + g + h
        block = take_toy(job[0])


def copy_run(job: Integers) -> None:
    """Copy numbers from one place within a piece on, over as many pieces as it takes."""
    places, sizes = integers_at(job[0]), integers_at(job[1])
    piece, skip, done = job[2], job[3], 0
    while done < job[4]:
        some = min(sizes[piece] - skip, job[4] - done)
        copy_numbers(8 * (places[piece] + skip), job[5] + 8 * done, some)
        piece, skip, done = piece + 1, 0, done + some


def pieces_text() -> str:
    """Write the program."""
    from morefit.targets.cpu.program import drivers_text  # which code on disk does not need

    return drivers_text(locate, check, add_up, copy_run, provided=[STRUCT, TAKE, COPY])


@cache
def pieces_code() -> Code:
    """Return the machine code, which is the same for all columns."""
    names = ("locate", "check", "add_up", "copy_run")
    return find_by_key(
        ("pieces", source_version()), lambda: build_object(pieces_text(), driver=True, loops=True), names
    )


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

    def are_inside(self, low: float, high: float) -> Flags:
        """Return of each piece whether all numbers are from ``low`` to ``high``."""
        (outside,) = self.by_block("check", 1, np.array([low, high], np.float64))
        return np.asarray(outside == 0)

    def sums(self) -> Array:
        """Return the sums of the numbers of each piece, and of their magnitudes."""
        return self.by_block("add_up", 2)

    def by_block(self, function: str, outputs: int, *others: Array) -> Array:
        """Return numbers of each piece, (outputs, pieces), which a function stores of blocks of it, to be added up."""
        counts = np.maximum(-(-self.sizes // BLOCK), 1)
        first = np.cumsum(counts) - counts
        begin = BLOCK * (np.arange(int(counts.sum())) - np.repeat(first, counts))
        places = np.repeat(self.places, counts) + begin
        sizes = np.minimum(np.repeat(self.sizes, counts) - begin, BLOCK)
        out, counter = np.empty((len(sizes), outputs)), np.zeros(1, np.int64)
        job = words(counter, len(sizes), places, sizes, out, *others)
        threads = min(available_cores(), len(sizes)) if self.count > WORTH_THREADS else 1
        WORKERS.run(pieces_code(), function, [address(job)] * max(threads, 1))
        each = np.add.reduceat(out, first, axis=0) if len(first) < len(out) else out
        return np.asarray(each.T, np.float64)

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
