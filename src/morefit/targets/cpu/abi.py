"""What callers of compiled kernels know: the table of numbers and addresses, machine code, and how much room results need."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Integers, address
from morefit.dataclass import dataclass
from morefit.kernel.ir import WORDS, Kernel, Sample, Sum

if TYPE_CHECKING:
    from morefit.targets.cpu.writer import Writer

# one 64-bit word each
ARGUMENTS = (
    "parameters",  # double[parameter][padded]
    "scalars",  # double[scalar][padded], scratch
    "padded",  # sets, rounded up to full vectors
    "sets",
    "columns",  # (address, step from set to set) for each column
    "starts",  # first event of a set ...
    "stops",  # ... and one past its last
    "bounds_step",  # 0: every set has the same events, 1: each its own
    "task_set",  # the set of each task
    "first_task",  # the first task of each set, and one past the last
    "tasks",
    "counter",  # the next task to be taken
    "grain",  # how many tasks to take at a time
    "partials",  # double[task][word], scratch
    "out",  # SUM: double[set][output]; STORE: double[set][output][out_step]
    "out_step",
    "seed",  # of the random numbers
    "first_toy",  # the number of the first set, for the random numbers
)
REPORT_WORDS = 2  # of a block that draws: vectors with a density above its envelope, and abandoned vectors
SIDE = 4  # a block of SIDE x SIDE sums of products stays in registers
OUT, OUT_STEP, SEED, FIRST_TOY = (ARGUMENTS.index(name) for name in ("out", "out_step", "seed", "first_toy"))


def signed(seed: int) -> int:
    """Return a seed as a word of the table, which is signed."""
    return seed - (1 << 64) if seed >> 63 else seed


@dataclass(frozen=True)
class Target:
    """What the text of a kernel depends on besides the kernel."""

    width: int  # numbers in a vector of double precision
    machine: str  # "x86", "arm" or "other": how denormals are switched off


def block_words(kernel: Kernel) -> int:
    """Return how many words the partial results of a block take."""
    if isinstance(kernel.frame, Sample):
        return REPORT_WORDS
    sums = sum(WORDS[r.reduce] for r in kernel.frame.results) if isinstance(kernel.frame, Sum) else 0
    return sums + (pair_words(kernel.pairs.count) if kernel.pairs else 0)


def pair_words(count: int) -> int:
    """Return how many words the sums of products of every pair of ``count`` numbers take, in blocks."""
    sides = -(-count // SIDE)
    return sides * (sides + 1) // 2 * SIDE * SIDE


def argument(writer: Writer, name: str, kind: str = "i64") -> str:
    """Load one word of the table."""
    address = writer.let(f"getelementptr i64, ptr %args, i64 {ARGUMENTS.index(name)}")
    return writer.let(f"load {kind}, ptr {address}")


def find_tables(kernel: Kernel, writer: Writer) -> dict[str, str]:
    """Load the address of each table; they follow those of the columns."""
    first = 0 if isinstance(kernel.frame, Sample) else len(kernel.columns)
    addresses = argument(writer, "columns", "ptr") if kernel.tables else ""
    names = {}
    for k, table in enumerate(kernel.tables):
        place = writer.let(f"getelementptr i64, ptr {addresses}, i64 {2 * (first + k)}")
        names[table.name] = writer.let(f"load ptr, ptr {place}")
    return names


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
        self.start = address(self.words)

    def part(self, name: str) -> Integers:
        """Return the words of a part."""
        begin, end = self.bounds[name]
        return self.words[begin:end]

    def address(self, name: str) -> int:
        """Return the address of a part."""
        return self.start + 8 * self.bounds[name][0]


@dataclass(frozen=True, eq=False)
class Code:
    """Machine code in memory."""

    addresses: Mapping[str, int]
    functions: Mapping[str, Function]


def code_at(addresses: Mapping[str, int]) -> Code | None:
    """Return code with functions at these addresses, None if one of them is missing."""
    if not all(addresses.values()):
        return None
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return Code(addresses, {name: kind(address) for name, address in addresses.items()})
