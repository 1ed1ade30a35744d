"""Models of counts on the CPU: the program that all of them share, for many points, or as the sums of a whole fit."""

from __future__ import annotations

from functools import cache

import numpy as np

from morefit.arrays import Array, Integers, address
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.counts_program import sum_counts
from morefit.kernel.program import integers_at, vector_at
from morefit.resources import PADDING, aligned
from morefit.targets.cache import source_version
from morefit.targets.cpu.abi import Code
from morefit.targets.cpu.compile import build_object, find_by_key
from morefit.targets.cpu.fit_driver import TAKE
from morefit.targets.cpu.fit_stages import take_toy
from morefit.targets.cpu.threads import WORKERS

# the words of one point, and after them those of many
(WORDS, NUMBERS, POINT, SPACE, OUT, COUNTER, SETS, POINT_SIZE, OUT_SIZE) = range(9)
# numbers of work of all points: with less, to meet other threads costs more than it brings
WORTH_THREADS = 100_000


def sum_one(job: Integers) -> None:
    """Sum at one point."""
    words = integers_at(job[WORDS])
    numbers = vector_at(job[NUMBERS])
    sum_counts(words, numbers, vector_at(job[POINT]), vector_at(job[SPACE]), vector_at(job[OUT]))


def sum_many(job: Integers) -> None:
    """Sum at points until none is left."""
    words = integers_at(job[WORDS])
    numbers = vector_at(job[NUMBERS])
    work = vector_at(job[SPACE])
    k = take_toy(job[COUNTER])
    while k < job[SETS]:
        point = vector_at(job[POINT] + 8 * k * job[POINT_SIZE])
        sum_counts(words, numbers, point, work, vector_at(job[OUT] + 8 * k * job[OUT_SIZE]))
        k = take_toy(job[COUNTER])


def counts_text() -> str:
    """Write the program."""
    from morefit.targets.cpu.program import drivers_text  # which code on disk does not need

    return drivers_text(sum_one, sum_many, provided=[TAKE])


@cache
def counts_code() -> Code:
    """Return the machine code, which is the same for all models."""
    identity = ("counts", source_version())
    return find_by_key(
        identity, lambda: build_object(counts_text(), driver=True, loops=True), ("sum_one", "sum_many")
    )


def run_counts(table: CountsTable, points: Array, threads: int) -> Array:
    """Sum at points (sets, numbers of a point); return (sets, outputs)."""
    sets = len(points)
    points, out = np.ascontiguousarray(points, np.float64), np.empty((sets, table.outputs))
    counter = np.zeros(1, np.int64)
    team = max(1, min(threads, sets, sets * table.work_size // WORTH_THREADS))
    spaces = [take_space(table) for _ in range(team)]
    jobs = np.array(
        [
            (*addresses(table, points, space, out), address(counter), sets, points.shape[1], table.outputs)
            for space in spaces
        ],
        np.int64,
    )
    first, step = address(jobs), 8 * jobs.shape[1]
    WORKERS.run(counts_code(), "sum_many", range(first, first + team * step, step))
    table.spare.extend(spaces)
    return out


def take_space(table: CountsTable) -> Array:
    """Return room for what is computed on the way: one that is free, or a new one."""
    try:
        space = table.spare.pop()
    except IndexError:
        return aligned(table.work_size + PADDING)
    assert isinstance(space, np.ndarray)
    return space


def addresses(table: CountsTable, *arrays: Array) -> tuple[int, ...]:
    """Return where the words of one point say that all is."""
    return tuple(address(array) for array in (table.words, table.numbers, *arrays))
