"""Models of counts on a device that speaks OpenCL: a work item sums at one point."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.counts_program import sum_counts
from morefit.kernel.read_program import read_program
from morefit.targets.base import show_source
from morefit.targets.opencl.device import Device, set_arguments
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.program import PREFIX, Writer, function_lines

NAME = "sum_all"
GROUP = 32  # work items of a device that is no CPU
MAX_BYTES = 1 << 29  # of what is computed on the way, at all points of a launch


@cache
def counts_source(dialect: Dialect) -> str:
    """Write the program, which is the same for all models."""
    d, m = dialect, dialect.memory
    functions = read_program(sum_counts, {}).functions
    arrays = [f"{m}double *{name}" for name in ("numbers", "points", "work", "out")]
    numbers = [f"const int {name}" for name in ("sets", "point_size", "work_size", "out_size")]
    places = ("points + k * point_size", "work + k * work_size", "out + k * out_size")
    return "\n".join([
        "// models of counts",
        d.prologue,
        *(line for f in functions for line in function_lines(f, m, Writer())),
        f"{d.free_kernel} {NAME}({', '.join([f'{m}const int *words', *arrays, *numbers])})",
        "{",
        f"    const long k = {d.place};",
        f"    if (k < sets) {PREFIX}{functions[-1].name}(words, numbers, {', '.join(places)});",
        "}",
    ])  # fmt: skip


@dataclass(eq=False)
class SentTable:
    """A table in the memory of a device, and the kernel that reads it."""

    device: Device
    words: Any
    numbers: Any
    kernel: Any = None

    @classmethod
    def of(cls, device: Device, table: CountsTable) -> SentTable:
        """Return the table that was sent before, or send it."""
        for known in table.spare:
            if isinstance(known, SentTable) and known.device is device:
                return known
        source = counts_source(device.dialect)
        show_source(source)
        words, numbers = table.words.astype(np.int32), np.append(table.numbers, 0.0)
        sent = cls(device, device.send(words), device.send(numbers))
        sent.kernel = device.programs.kernels(sent, source, {NAME: NAME})[NAME]
        table.spare.append(sent)
        return sent


def run_counts(device: Device, group: int | None, table: CountsTable, points: Array) -> Array:
    """Sum at points (sets, numbers of a point); return (sets, outputs)."""
    sent, sets = SentTable.of(device, table), len(points)
    items = device.group_for(group or (1 if device.info.kind == "CPU" else GROUP), False)
    out = np.empty((sets, table.outputs))
    together = max(1, min(sets, MAX_BYTES // (8 * table.work_size)))
    work = device.allocate(8 * together * table.work_size)
    results = device.allocate(8 * together * table.outputs)
    for first in range(0, sets, together):
        some = np.ascontiguousarray(points[first : first + together])
        sizes = np.array([len(some), points.shape[1], table.work_size, table.outputs], np.int32)
        alive = set_arguments(sent.kernel, sent.words, sent.numbers, device.send(some), work, results, *sizes)
        device.run(sent.kernel, -(-len(some) // items) * items, items)
        device.read(results, out[first : first + together])
        del alive
    return out
