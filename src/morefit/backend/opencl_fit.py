"""Run whole fits on a device that speaks OpenCL: a work-group a toy, or many groups for the events of a large one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from morefit.backend.base import Array, Integers, WholeFit
from morefit.backend.opencl_device import Device
from morefit.backend.opencl_launch import DeviceColumn, cut_blocks
from morefit.backend.show import show_source
from morefit.kernel import Kernel
from morefit.render.opencl_fit import FitShape, FitSource, Lifted, fit_functions, lift_numbers
from morefit.render.opencl_sums import words_of

MOST_TOYS = 1 << 16  # in a launch: short enough for Ctrl-C and for displays that watch the device
MOST_BYTES = 1 << 30  # of events kept in the memory of the device at a time
FEW_ITEMS, MANY_ITEMS, MANY_EVENTS = 64, 128, 4096  # a small group wastes less while one of its items steps
LARGE = 1 << 15  # events of a toy that many groups share
EACH, GROUPS = 16, 2048  # events of an item at least, and groups of a toy at most (for so few events)
MOST_TEXTS = 64  # kept in this process
FIRST_STEPS, MORE_STEPS = 4, 2  # taken before looking whether toys have converged


def run_whole_fits(
    device: Device, group: int | None, job: WholeFit, sizes: Integers, seed: int, first_toy: int
) -> Array | None:
    """Fit a toy for each size; return the rows that the last step wrote, and three words of report.

    None if the events are given, but not on the device.
    """
    if not all(isinstance(column, DeviceColumn) and column.first == 0 for column in job.given):
        return None
    results = np.zeros((len(sizes), job.told + 3))
    large = sizes >= LARGE  # its size alone decides, so that a toy has the same bits in any company
    for some in (np.flatnonzero(~large), np.flatnonzero(large)):
        if len(some):
            runner = take_runner(device, group, job, int(sizes[some].max()), bool(large[some[0]]))
            for part in runner.parts(some, sizes):
                results[part] = runner.run(part, sizes, seed, first_toy)
            job.spare.append(runner)
    return results


def take_runner(device: Device, group: int | None, job: WholeFit, most_events: int, large: bool) -> FitRunner:
    """Take what was built for a job before and is not in use, or build it."""
    few = not large and most_events < MANY_EVENTS
    items = group or min(device.group, FEW_ITEMS if few else MANY_ITEMS)
    for place, known in enumerate(job.spare):
        if isinstance(known, FitRunner) and (known.device, known.group, known.large) == (
            device,
            items,
            large,
        ):
            del job.spare[place]
            return known
    return FitRunner(device, items, large, job)


_texts: OrderedDict[tuple[Any, ...], tuple[str, tuple[Any, ...]]] = OrderedDict()


def find_text(
    sampler: Lifted | None, derive: Kernel | None, sums: Kernel, step: Kernel, shape: FitShape
) -> str:
    """Return the text of a whole fit; to write it takes longer than to fit a thousand toys, so it is kept."""
    others = (derive, sums, step)
    key = (sampler and (sampler.kernel, len(sampler.numbers)), *map(id, others), shape)
    if key not in _texts:
        # the kernels are kept with their text, so that no other can have their address
        _texts[key] = FitSource(sampler, derive, sums, step, shape).text(), others
        if len(_texts) > MOST_TEXTS:
            _texts.popitem(last=False)
    return _texts[key][0]


@dataclass(eq=False)
class FitRunner:
    """A job built for one device and one size of work-group."""

    device: Device
    group: int
    large: bool
    job: WholeFit
    kernels: dict[str, Any] = field(init=False)
    columns: int = field(init=False)
    words: int = field(init=False)
    start: Any = field(init=False)
    draw_with: list[Any] = field(init=False)  # numbers and tables
    sum_with: list[Any] = field(init=False)  # parameters and tables

    def __post_init__(self) -> None:
        job, send = self.job, self.device.send
        shape = FitShape(
            self.group, self.large, job.observables, job.derived, job.row_names, job.told, job.first_sum, job.status,
            job.places, job.most_steps,
        )  # fmt: skip
        sampler = lift_numbers(job.sampler.kernel) if job.sampler else None
        derive = job.derive.kernel if job.derive else None
        source = find_text(sampler, derive, job.sums.kernel, job.step.kernel, shape)
        show_source(source)
        built = self.device.build(source)
        self.kernels = {name: self.device.cl.Kernel(built, name) for name in fit_functions(shape)}
        self.columns = len(job.observables) + len(job.derived)
        self.words = words_of(job.sums.kernel)
        self.start = send(np.asarray(job.start, np.float64))
        self.sum_with = [send(np.asarray(job.parameters, np.float64))]
        self.sum_with += [send(np.array(t.array)) for t in job.sums.kernel.tables]
        self.draw_with = []
        if sampler:
            numbers = [np.array(sampler.numbers)] if sampler.numbers else []
            self.draw_with = [*numbers, *(send(np.array(t.array)) for t in sampler.tables)]

    def parts(self, some: Integers, sizes: Integers) -> list[Integers]:
        """Cut toys into parts for which there is memory, of neighbours."""
        room = np.maximum(sizes[some], 1) if self.large else np.full(len(some), sizes[some].max(initial=1))
        places = np.cumsum(8 * self.columns * room) // MOST_BYTES + np.arange(len(some)) // MOST_TOYS
        breaks = np.flatnonzero((np.diff(places) > 0) | (np.diff(some) > 1)) + 1
        return np.split(some, breaks)

    def run(self, part: Integers, sizes: Integers, seed: int, first_toy: int) -> Array:
        """Fit some toys that are neighbours."""
        draw: list[Any] = [np.uint64(seed), np.uint64(first_toy + int(part[0])), *self.draw_with]
        if self.job.sampler is None:
            assert self.job.starts is not None
            starts = self.device.send(np.ascontiguousarray(self.job.starts[part], np.int64))
            draw = [starts, *(c.buffer for c in self.job.given if isinstance(c, DeviceColumn))]
        counts = np.ascontiguousarray(sizes[part], np.int32)
        return (self.run_large if self.large else self.run_small)(part, counts, draw)

    def run_small(self, part: Integers, counts: np.ndarray[Any, Any], draw: list[Any]) -> Array:
        device, room = self.device, max(int(counts.max(initial=1)), 1)
        results = np.empty((len(part), self.job.told + 3))
        here = device.send(counts)
        memory = device.allocate(8 * self.columns * room * len(part))
        out = device.allocate(results.nbytes)
        kernel = self.kernels["fit"]
        kernel.set_args(here, memory, np.int32(room), self.start, out, *draw, *self.sum_with)
        device.run(kernel, len(part) * self.group, self.group)
        device.read(out, results)
        return results

    def run_large(self, part: Integers, counts: np.ndarray[Any, Any], draw: list[Any]) -> Array:
        device, job, group = self.device, self.job, self.group
        each = group * np.clip(counts // (group * GROUPS), EACH, None)
        blocks, first = cut_blocks(counts.astype(np.int64), each, np.cumsum(counts) - counts, empty=True)
        words = len(part) * (job.told + 3)
        where, firsts, here = device.send(blocks), device.send(first.astype(np.int32)), device.send(counts)
        room = int(counts.sum())
        memory, rows = (
            device.allocate(8 * self.columns * room),
            device.allocate(8 * len(part) * len(job.row_names)),
        )
        out, report = device.allocate(8 * words), device.send(np.zeros((len(part), 2), np.int32))
        partials = device.allocate(8 * len(blocks) * max(self.words, 1))
        common = (where, memory, np.int64(room), rows)
        self.kernels["draw"].set_args(*common, self.start, out, report, *draw)
        self.kernels["sums"].set_args(*common, partials, *self.sum_with)
        self.kernels["advance"].set_args(firsts, here, rows, out, partials, *self.sum_with)
        device.run(self.kernels["draw"], len(blocks) * group, group)
        results, wrong = np.empty((len(part), job.told + 3)), np.empty((len(part), 2), np.int32)
        steps, more = 0, FIRST_STEPS
        while steps < job.most_steps:
            for _ in range(min(more, job.most_steps - steps)):
                device.run(self.kernels["sums"], len(blocks) * group, group)
                device.run(self.kernels["advance"], len(part) * group, group)
            steps, more = steps + more, MORE_STEPS
            device.read(out, results)
            if (results[:, job.status] != 0.0).all():
                break
        device.read(report, wrong)
        results[:, -2:] = wrong
        return results
