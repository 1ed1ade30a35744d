"""What this process may use: cores and memory; and memory of columns, which starts on a cache line, may be read past its end, and is used again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import ceil, inf
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from morefit.arrays import Array, Integers, address
from morefit.errors import BackendError, DataError

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
THREADS = "MOREFIT_NUM_THREADS"
T = TypeVar("T")
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


# ------------------------------------------------------------------------------------ cores


def available_cores() -> int:
    """Count the cores this process may use: as many as MOREFIT_NUM_THREADS says, or else those that are allowed.

    Allowed is what the affinity of the process, the quota of its control group and OMP_NUM_THREADS leave.
    """
    chosen = os.environ.get(THREADS, "")
    if chosen:
        if not (chosen.isascii() and chosen.isdigit() and int(chosen) >= 1):
            raise BackendError(
                f"environment variable '{THREADS}': must be a whole number from 1 on, got '{chosen}'"
            )
        return int(chosen)
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(min(known, openmp_threads() or known, core_quota() or known), 1)


def on_all_cores(work: Callable[[slice], T], length: int, piece: int) -> list[T]:
    """Return what some work gives for pieces of an array, in order; they are shared among threads of all cores."""
    if length <= piece:
        return [work(slice(0, length))]
    cuts = [slice(first, first + piece) for first in range(0, length, piece)]
    threads = min(available_cores(), len(cuts))
    if threads < 2:
        return [work(slice(0, length))]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts))


def openmp_threads() -> int | None:
    """Return what OMP_NUM_THREADS says, of a list the first number; None if it says nothing that OpenMP understands."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) >= 1 else None


@cache
def core_quota() -> int | None:
    """Return how many cores the control groups of this process leave it, None if as many as there are."""
    quotas = [*new_quotas(), *old_quotas()]
    return ceil(min(quotas)) if quotas else None


def new_quotas() -> Iterator[float]:
    """Go through the quotas of version 2: "200000 100000" are two cores."""
    for text in group_texts("", "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def old_quotas() -> Iterator[float]:
    """Go through the quotas of version 1, where -1 means none."""
    pairs = zip(group_texts("cpu", "cpu.cfs_quota_us"), group_texts("cpu", "cpu.cfs_period_us"), strict=False)
    for quota, period in pairs:
        if quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def group_texts(controller: str, name: str) -> Iterator[str]:
    """Read a file of the control group of this process, and of those above it; none where there are no groups.

    Inside a container the groups may be mounted from its own on, so that the path of the group is not there.
    """
    try:
        lines = [line.split(":", 2) for line in OWN_GROUPS.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return
    for _, names, path in (line for line in lines if len(line) == 3):
        if controller not in names.split(",") and controller != names:
            continue
        group = Path(names) / path.lstrip("/")
        for place in (group, *group.parents):
            try:
                yield (GROUPS / place / name).read_text().strip()
            except (OSError, UnicodeDecodeError):
                continue


# ------------------------------------------------------------------------------------ memory


@cache
def available_memory() -> float:
    """Return how many bytes this process can have at most, 2**62 where that is not known."""
    limits = [inf]
    if hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        limits.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    texts = [*group_texts("", "memory.max"), *group_texts("memory", "memory.limit_in_bytes")]
    return min(*limits, *(float(text) for text in texts if text.isdigit()), 2.0**62)


def check_memory(what: str, needed: float) -> None:
    """Refuse what needs more bytes than there can be, before any work is done."""
    available = available_memory()
    if needed > available:
        raise DataError(
            f"{what} need about {in_words(needed)} of memory, this machine has {in_words(available)}; ask for fewer"
        )


def in_words(size: float) -> str:
    """Return a number of bytes as "64 GB"."""
    power = min(max(len(f"{size:.0f}") - 1, 0) // 3, len(UNITS) - 1)
    return f"{size / 1000**power:.3g} {UNITS[power]}"


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
    start = -address(block) % LINE
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
    start = address(column)
    return start % LINE == 0 and start + 8 * (len(column) + PADDING) <= address(block) + block.size
