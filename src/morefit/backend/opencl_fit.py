"""Run whole fits on a device that speaks OpenCL: a work-group a toy, some thousands of toys a launch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from morefit.backend.base import Array, Integers, WholeFit
from morefit.kernel import Kernel
from morefit.render.opencl_fit import FitShape, render_fit

MOST_TOYS = 1 << 16  # in a launch: short enough for Ctrl-C and for displays that watch the device
MOST_BYTES = 1 << 30  # of events kept in the memory of the device at a time
FEW_ITEMS, MANY_ITEMS, MANY_EVENTS = 64, 128, 4096  # a small group wastes less while one of its items steps
STEP = 256  # room for events is a multiple of it, so that few texts are built


class Place(Protocol):
    """What this file needs of a device."""

    cl: Any

    @property
    def group(self) -> int: ...

    def build(self, source: str) -> Any: ...

    def send(self, numbers: np.ndarray[Any, Any]) -> Any: ...

    def allocate(self, size: int) -> Any: ...

    def read(self, buffer: Any, numbers: np.ndarray[Any, Any]) -> None: ...

    def run(self, kernel: Any, size: int, group: int) -> None: ...


def run_whole_fits(
    device: Place,
    group: int | None,
    sampler: Kernel,
    job: WholeFit,
    sizes: Integers,
    seed: int,
    first_toy: int,
) -> Array:
    """Draw and fit a toy for each size; return the rows that the last step wrote, and three words of report."""
    most_events = int(sizes.max(initial=0))
    group = group or min(device.group, FEW_ITEMS if most_events < MANY_EVENTS else MANY_ITEMS)
    shape = shape_of(job, group, most_events)
    derive = job.derive.kernel if job.derive else None
    source = render_fit(sampler, derive, job.sums.kernel, job.step.kernel, shape)
    kernel = device.cl.Kernel(device.build(source), "fit")
    columns = len(shape.observables) + len(shape.derived)
    each = 8 * columns * shape.room
    most = min(max(min(MOST_TOYS, MOST_BYTES // each), 1), len(sizes))
    memory = device.allocate(each * most)
    fixed = [device.send(np.asarray(a, np.float64)) for a in (job.parameters, job.start)]
    tables = [device.send(np.array(t.array)) for t in sampler.tables]
    results = np.empty((len(sizes), job.told + 3))
    out = device.allocate(8 * most * (job.told + 3))
    for first in range(0, len(sizes), most):
        part = np.ascontiguousarray(sizes[first : first + most], np.int32)
        here = device.send(part)
        kernel.set_args(here, np.uint64(seed), np.uint64(first_toy + first), memory, *fixed, out, *tables)
        device.run(kernel, len(part) * group, group)
        device.read(out, results[first : first + len(part)])
    return results


def shape_of(job: WholeFit, group: int, most_events: int) -> FitShape:
    room = -(-max(most_events, 1) // STEP) * STEP
    return FitShape(
        group, room, job.observables, job.derived, job.row_names, job.kept, job.told, job.first_sum, job.status,
        job.places, job.most_steps,
    )  # fmt: skip
