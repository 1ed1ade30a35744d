"""Run whole fits on a device that speaks OpenCL: a work-group a toy, or many groups for the events of a large one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from morefit.backend.base import Array, Integers, WholeFit
from morefit.backend.opencl_device import Device
from morefit.backend.opencl_launch import DeviceColumn, cut_blocks
from morefit.backend.show import show_source
from morefit.kernel import Kernel
from morefit.render.opencl import least_block
from morefit.render.opencl_fit import FitShape, FitSource, Lifted, fit_functions, lift_numbers
from morefit.render.opencl_sums import MOST_EVENTS, words_of

MOST_TOYS = 1 << 17  # in a launch: short enough for Ctrl-C and for displays that watch the device
MOST_BYTES = 1 << 30  # of events kept in the memory of the device at a time
EACH, GROUPS = 16, 2048  # events of an item at least, and groups of a toy at most (for so few events)
MOST_TEXTS = 64  # kept in this process
FIRST_STEPS, MORE_STEPS = 4, 2  # taken before looking whether toys have converged


class Kind(NamedTuple):
    """How toys of at least so many events are fitted."""

    events: int
    items: int  # of a work-group: a small one wastes less while one of its items steps
    large: bool  # whether many groups share the events of a toy


KINDS = (Kind(0, 32, False), Kind(2048, 64, False), Kind(1 << 15, 128, True))


def run_whole_fits(
    device: Device, group: int | None, job: WholeFit, sizes: Integers, seed: int, first_toy: int
) -> Array | None:
    """Fit a toy for each size; return the rows that the last step wrote, and three words of report.

    None if the events are given, but not on the device.
    """
    if not all(isinstance(column, DeviceColumn) and column.first == 0 for column in job.given):
        return None
    results = np.empty((len(sizes), job.told + 3))
    # its size alone decides how a toy is fitted, so that it has the same bits in any company
    kinds = np.searchsorted([kind.events for kind in KINDS], sizes, "right") - 1
    for number, kind in enumerate(KINDS):
        some = np.flatnonzero(kinds == number)
        if len(some):
            runner = take_runner(device, group or min(device.group, kind.items), job, kind.large)
            for part in runner.parts(some, sizes):
                found = runner.run(part, sizes, seed, first_toy)
                if len(part) == len(sizes):
                    results = found  # a million toys are not copied
                else:
                    results[part] = found
            job.spare.append(runner)
    return results


def take_runner(device: Device, items: int, job: WholeFit, large: bool) -> FitRunner:
    """Take what was built for a job before and is not in use, or build it."""
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
        """Cut toys into parts for which there is memory."""
        room = np.maximum(sizes[some], 1) if self.large else np.full(len(some), sizes[some].max(initial=1))
        places = np.cumsum(8 * self.columns * room) // MOST_BYTES + np.arange(len(some)) // MOST_TOYS
        return np.split(some, np.flatnonzero(np.diff(places)) + 1)

    def run(self, part: Integers, sizes: Integers, seed: int, first_toy: int) -> Array:
        """Fit some toys."""
        toys = self.device.send(part.astype(np.int32))
        draw: list[Any] = [np.uint64(seed), np.uint64(first_toy), toys, *self.draw_with]
        if self.job.sampler is None:
            assert self.job.starts is not None
            starts = self.device.send(np.ascontiguousarray(self.job.starts[part], np.int64))
            draw = [starts, *(c.buffer for c in self.job.given if isinstance(c, DeviceColumn))]
        counts = np.ascontiguousarray(sizes[part], np.int32)
        results = np.empty((len(part), self.job.told + 3))
        (self.run_large if self.large else self.run_small)(counts, draw, results)
        return results

    def run_small(self, counts: np.ndarray[Any, Any], draw: list[Any], results: Array) -> None:
        device, room = self.device, max(int(counts.max(initial=1)), 1)
        here = device.send(counts)
        memory = device.allocate(8 * self.columns * room * len(counts))
        out = device.allocate(results.nbytes)
        kernel = self.kernels["fit"]
        kernel.set_args(here, memory, np.int32(room), self.start, out, *draw, *self.sum_with)
        device.run(kernel, len(counts) * self.group, self.group)
        device.read(out, results)

    def run_large(self, counts: np.ndarray[Any, Any], draw: list[Any], results: Array) -> None:
        device, job, group = self.device, self.job, self.group
        least = 1 if job.sampler is None else least_block(job.sampler.kernel, group)
        each = -(-group * np.clip(counts // (group * GROUPS), EACH, MOST_EVENTS) // least) * least
        blocks, first = cut_blocks(counts.astype(np.int64), each, np.cumsum(counts) - counts, empty=True)
        where, firsts, here = device.send(blocks), device.send(first.astype(np.int32)), device.send(counts)
        room = int(counts.sum())
        memory, rows = (
            device.allocate(8 * self.columns * room),
            device.allocate(8 * len(counts) * len(job.row_names)),
        )
        wrong = np.zeros((len(counts), 2), np.int32)
        out, report = device.allocate(results.nbytes), device.send(wrong)
        partials = device.allocate(8 * len(blocks) * max(self.words, 1))
        common = (where, memory, np.int64(room), rows)
        self.kernels["draw"].set_args(*common, self.start, out, report, *draw)
        self.kernels["sums"].set_args(*common, partials, *self.sum_with)
        self.kernels["advance"].set_args(firsts, here, rows, out, partials, *self.sum_with)
        device.run(self.kernels["draw"], len(blocks) * group, group)
        steps, more = 0, FIRST_STEPS
        while steps < job.most_steps:
            for _ in range(min(more, job.most_steps - steps)):
                device.run(self.kernels["sums"], len(blocks) * group, group)
                device.run(self.kernels["advance"], len(counts) * group, group)
            steps, more = steps + more, MORE_STEPS
            device.read(out, results)
            if (results[:, 0] != 0.0).all():
                break
        device.read(report, wrong)
        results[:, -2:] = wrong
