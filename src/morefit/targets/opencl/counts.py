"""Models of counts on a device that speaks OpenCL: a work-group sums at one point, or on a CPU one work item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.counts_program import sum_counts
from morefit.kernel.read_program import read_program
from morefit.targets.opencl.device import Device, set_arguments
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.program import PREFIX, GroupWriter, Writer, function_lines
from morefit.targets.show import show_source

NAME = "sum_all"
GROUP = 64  # work items that sum at one point together
MAX_BYTES = 1 << 29  # of what is computed on the way, at all points of a launch


@cache
def counts_source(dialect: Dialect, together: bool) -> str:
    """Write the program for all models; ``together``, the items of a work-group share its loops."""
    d, m = dialect, dialect.memory
    writer = GroupWriter(1, d) if together else Writer()
    functions = read_program(sum_counts, {}).functions
    place = d.group if together else d.place
    arguments = ", ".join([
        f"{m}const int *words", f"{m}double *numbers", f"{m}double *points", f"{m}double *work", f"{m}double *out",
        "const int sizes0, const int sizes1, const int sizes2",
    ])  # fmt: skip
    call = ", ".join([
        "words", "numbers", "points + k * sizes0", "work + k * sizes1", "out + k * sizes2",
    ])  # fmt: skip
    return "\n".join([
        "// models of counts",
        d.prologue,
        *(line for f in functions for line in function_lines(f, m, writer)),
        f"{d.free_kernel} {NAME}({arguments})",
        "{",
        f"    const long k = {place};",
        f"    {PREFIX}{functions[-1].name}({call});",
        "}",
    ])  # fmt: skip


@dataclass(eq=False)
class SentTable:
    """A table in the memory of a device."""

    device: Device
    kernel: Any
    words: Any
    numbers: Any

    @classmethod
    def of(cls, device: Device, table: CountsTable) -> SentTable:
        """Return the table that was sent before, or send it."""
        for known in table.spare:
            if isinstance(known, SentTable) and known.device is device:
                return known
        source = counts_source(device.dialect, device.info.kind != "CPU")
        show_source(source)
        words, numbers = table.words.astype(np.int32), np.append(table.numbers, 0.0)
        sent = cls(device, None, device.send(words), device.send(numbers))
        sent.kernel = device.kernels(sent, source, [NAME])[NAME]
        table.spare.append(sent)
        return sent


def run_counts(device: Device, group: int | None, table: CountsTable, points: Array) -> Array:
    """Sum at points (sets, numbers of a point); return (sets, outputs)."""
    sent, sets = SentTable.of(device, table), len(points)
    items = 1 if device.info.kind == "CPU" else device.group_for(group or min(GROUP, device.group), False)
    out = np.empty((sets, table.outputs))
    together = min(sets, max(1, MAX_BYTES // (8 * table.work_size)))
    work = device.allocate(8 * together * table.work_size)
    results = device.allocate(8 * together * table.outputs)
    sizes = np.array([points.shape[1], table.work_size, table.outputs], np.int32)
    for first in range(0, sets, together):
        some = np.ascontiguousarray(points[first : first + together])
        alive = set_arguments(sent.kernel, sent.words, sent.numbers, device.send(some), work, results, *sizes)
        device.run(sent.kernel, len(some) * items, items)
        device.read(results, out[first : first + together])
        del alive
    return out
