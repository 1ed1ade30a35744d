"""Run whole fits on a device that speaks OpenCL: one work-group per toy, or many for the events of a large one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from morefit.arrays import Array, Integers
from morefit.kernel import Kernel
from morefit.kernel.fit_layout import FitRows
from morefit.targets.base import WholeFit
from morefit.targets.opencl.columns import DeviceColumn, cut_blocks
from morefit.targets.opencl.device import Device, set_arguments
from morefit.targets.opencl.fit_driver import FitShape, FitSource, Home, fit_functions
from morefit.targets.opencl.lift import Lifted, lift_numbers
from morefit.targets.opencl.source import block_multiple
from morefit.targets.opencl.sums import MAX_EVENTS, words_of
from morefit.targets.show import show_source

MAX_TOYS = 1 << 17  # in a launch: short enough for Ctrl-C and for displays that watch the device
MAX_SHARED = (
    12 << 10
)  # bytes of events in the shared memory of a group; with more, fewer groups run at a time
MAX_BYTES = 1 << 32  # of the events of a launch, if that is not more than a share of the memory
SHARE = 1 / 16
EACH, GROUPS = 16, 2048  # minimum of events per item, and maximum of groups per toy
MAX_TEXTS = 64  # cached in this process
FIRST_STEPS, MORE_STEPS = 4, 2  # taken before looking whether toys have converged


class Kind(NamedTuple):
    """How toys of at most ``events`` events are fitted."""

    events: int
    items: int  # of a work-group: a small one wastes less while one of its items steps
    home: Home  # of the events


KINDS = (Kind(2047, 32, Home.GLOBAL), Kind((1 << 15) - 1, 64, Home.GLOBAL), Kind(1 << 62, 128, Home.SPREAD))


def kinds_of(device: Device, job: WholeFit) -> tuple[Kind, ...]:
    """Return how toys are fitted; the events of the smallest fit into the shared memory of a group."""
    smallest = KINDS[0]
    fit = min(MAX_SHARED, int(device.device.local_mem_size) // 2) // (8 * columns_of(job))
    return (smallest._replace(events=min(fit, smallest.events), home=Home.LOCAL), *KINDS)


def columns_of(job: WholeFit) -> int:
    return len(job.observables) + len(job.derived)


def run_whole_fits(
    device: Device, group: int | None, job: WholeFit, sizes: Integers, seed: int, first_toy: int
) -> Array | None:
    """Fit a toy for each size; return a row for each, laid out as in ``job.layout``.

    None if the events are not drawn, nor on the device, or if the sums are made in tiles.
    """
    if job.sums.kernel.pairs or not all(
        isinstance(column, DeviceColumn) and column.first == 0 for column in job.events
    ):
        return None
    results = np.empty((len(sizes), job.layout.width))
    # a toy's size alone decides how it is fitted: bitwise independent of which toys are in the batch
    kinds = kinds_of(device, job)
    numbers = np.searchsorted([kind.events for kind in kinds], sizes)
    for number, kind in enumerate(kinds):
        some = np.flatnonzero(numbers == number)
        if len(some):
            runner = take_runner(device, group or min(device.group, kind.items), job, kind.home)
            ahead = 0 if kind.home is Home.SPREAD else 1  # started while the results of others are copied
            started: deque[tuple[Integers, FitSpace]] = deque()
            for part in runner.parts(some, sizes):
                started.append((part, runner.start(part, sizes, seed, first_toy)))
                if len(started) > ahead:
                    finish(*started.popleft(), results)
            for part, space in started:
                finish(part, space, results)
            job.spare.append(runner)
    return results


def finish(part: Integers, space: FitSpace, results: Array) -> None:
    """Wait for some toys and put their results where they belong."""
    first, last = int(part[0]), int(part[-1]) + 1
    if last - first == len(part):
        space.finish(results[first:last])
        return
    rows = np.empty((len(part), results.shape[1]))
    space.finish(rows)
    results[part] = rows


def take_runner(device: Device, items: int, job: WholeFit, home: Home) -> FitRunner:
    """Take what was built for a job before and is not in use, or build it."""
    for place, known in enumerate(job.spare):
        wanted = (device, items, home)
        if isinstance(known, FitRunner) and (known.device, known.group, known.home) == wanted:
            del job.spare[place]
            return known
    return FitRunner(device, items, home, job)


_texts: OrderedDict[tuple[Any, ...], tuple[str, tuple[Any, ...]]] = OrderedDict()


def find_text(
    sampler: Lifted | None, derive: Kernel | None, sums: Kernel, step: Kernel, shape: FitShape
) -> str:
    """Return the text of a whole fit; it is cached, since writing it takes longer than fitting a thousand toys."""
    others = (derive, sums, step)
    key = (sampler and (sampler.kernel, len(sampler.numbers)), *map(id, others), shape)
    if key not in _texts:
        # the kernels are stored with their text, so that no other can have their address
        _texts[key] = FitSource(sampler, derive, sums, step, shape).text(), others
        if len(_texts) > MAX_TEXTS:
            _texts.popitem(last=False)
    return _texts[key][0]


@dataclass(eq=False)
class FitRunner:
    """A job built for one device and one size of work-group."""

    device: Device
    group: int
    home: Home
    job: WholeFit
    kernels: dict[str, Any] = field(init=False)
    columns: int = field(init=False)
    words: int = field(init=False)
    begin_with: Any = field(init=False)  # rows
    draw_with: list[Any] = field(init=False)  # numbers and tables
    sum_with: list[Any] = field(init=False)  # parameters and tables
    space: tuple[tuple[bytes, bytes], FitSpace] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.job = replace(self.job, spare=[])  # the job refers to this runner, which must not refer to it
        job, send = self.job, self.device.send
        shape = FitShape(
            group=self.group,
            home=self.home,
            observables=job.observables,
            derived=job.derived,
            layout=job.layout,
            floating=job.floating,
            max_steps=job.max_steps,
        )
        sampler = lift_numbers(job.sampler.kernel, self.device.max_numbers) if job.sampler else None
        derive = job.derive.kernel if job.derive else None
        source = find_text(sampler, derive, job.sums.kernel, job.step.kernel, shape)
        show_source(source)
        self.kernels = self.device.kernels(self, source, fit_functions(shape))
        self.columns = columns_of(job)
        self.words = words_of(job.sums.kernel)
        self.begin_with = send(np.asarray(job.start, np.float64))
        self.sum_with = [send(np.asarray(job.parameters, np.float64))]
        self.sum_with += [send(np.array(t.array)) for t in job.sums.kernel.tables]
        self.draw_with = []
        if sampler:
            numbers = [np.array(sampler.numbers)] if sampler.numbers else []
            self.draw_with = [*numbers, *(send(np.array(t.array)) for t in sampler.tables)]

    def parts(self, some: Integers, sizes: Integers) -> list[Integers]:
        """Cut toys into parts for which there is memory."""
        part = np.arange(len(some)) // MAX_TOYS
        if self.home is not Home.LOCAL:
            large = self.home is Home.SPREAD
            room = np.maximum(sizes[some], 1) if large else np.full(len(some), sizes[some].max(initial=1))
            limit = min(MAX_BYTES, int(SHARE * self.device.info.memory))
            part += np.cumsum(8 * self.columns * room) // limit
        return np.split(some, np.flatnonzero(np.diff(part)) + 1)

    def start(self, part: Integers, sizes: Integers, seed: int, first_toy: int) -> FitSpace:
        """Start to fit some toys; the buffers of the last ones are used again where the sizes are the same."""
        counts = np.ascontiguousarray(sizes[part], np.int32)
        key = (part.tobytes(), counts.tobytes())
        if self.space is None or self.space[0] != key:
            self.space = None  # lets go of its memory first
            kind = LargeSpace if self.home is Home.SPREAD else SmallSpace
            self.space = key, kind(self, part, counts)
        space = self.space[1]
        space.start(seed, first_toy)
        return space

    def draw_arguments(self, part: Integers) -> list[Any]:
        """Return the arguments of the function that draws; the first two are the seed and the first toy."""
        if self.job.sampler is None:
            assert self.job.starts is not None
            starts = self.device.send(np.ascontiguousarray(self.job.starts[part], np.int64))
            return [starts, *(c.buffer for c in self.job.events if isinstance(c, DeviceColumn))]
        toys = self.device.send(part.astype(np.int32))
        return [np.uint64(0), np.uint64(0), toys, *self.draw_with]


class FitSpace(ABC):
    """Buffers for some toys, and functions with their arguments set. It does not refer to its runner, which refers to it."""

    def __init__(self, runner: FitRunner, counts: np.ndarray[Any, Any]) -> None:
        self.device, self.group, self.count = runner.device, runner.group, len(counts)
        self.draws, self.max_steps = runner.job.sampler is not None, runner.job.max_steps
        self.layout = runner.job.layout
        self.out = self.device.allocate(8 * self.count * self.layout.width)

    def set_seed(self, kernel: Any, place: int, seed: int, first_toy: int) -> None:
        """Set which toys a function draws, if it draws."""
        if self.draws:
            kernel.set_arg(place, np.uint64(seed))
            kernel.set_arg(place + 1, np.uint64(first_toy))

    @abstractmethod
    def start(self, seed: int, first_toy: int) -> None:
        """Start to draw and fit the toys."""

    @abstractmethod
    def finish(self, results: Array) -> None:
        """Wait for them, and copy their results."""


class SmallSpace(FitSpace):
    """Toys with one work-group each."""

    def __init__(self, runner: FitRunner, part: Integers, counts: np.ndarray[Any, Any]) -> None:
        super().__init__(runner, counts)
        device, room = self.device, max(int(counts.max(initial=1)), 1)
        self.kernel = runner.kernels["fit"]
        size = 8 * runner.columns * room
        local = runner.home is Home.LOCAL
        memory = device.cl.LocalMemory(size) if local else device.allocate(size * self.count)
        arguments = (device.send(counts), memory, np.int32(room), runner.begin_with, self.out)
        self.seed = len(arguments)  # the place of the seed among the arguments
        self.arguments = set_arguments(
            self.kernel, *arguments, *runner.draw_arguments(part), *runner.sum_with
        )

    def start(self, seed: int, first_toy: int) -> None:
        self.set_seed(self.kernel, self.seed, seed, first_toy)
        self.done = self.device.run(self.kernel, self.count * self.group, self.group)

    def finish(self, results: Array) -> None:
        self.device.read_done(self.out, results, self.done)


class LargeSpace(FitSpace):
    """Toys whose events are shared by many groups."""

    def __init__(self, runner: FitRunner, part: Integers, counts: np.ndarray[Any, Any]) -> None:
        super().__init__(runner, counts)
        device, job, group = self.device, runner.job, self.group
        multiple = 1 if job.sampler is None else block_multiple(job.sampler.kernel, group)
        each = -(-group * np.clip(counts // (group * GROUPS), EACH, MAX_EVENTS) // multiple) * multiple
        blocks, first = cut_blocks(counts.astype(np.int64), each, np.cumsum(counts) - counts, empty=True)
        self.blocks, room = len(blocks), int(counts.sum())
        rows = device.allocate(8 * self.count * len(job.layout.rows))
        partials = device.allocate(8 * self.blocks * max(runner.words, 1))
        self.report = device.send(np.zeros((self.count, 2), np.int32))
        common = (device.send(blocks), device.allocate(8 * runner.columns * room), np.int64(room), rows)
        arguments = (*common, runner.begin_with, self.out, self.report)
        self.seed = len(arguments)  # the place of the seed among the arguments
        last = (
            device.send(first.astype(np.int32)),
            device.send(counts),
            rows,
            self.out,
            self.report,
            partials,
        )
        self.draw, self.sums, self.advance = (runner.kernels[name] for name in ("draw", "sums", "advance"))
        self.arguments = (
            set_arguments(self.draw, *arguments, *runner.draw_arguments(part)),
            set_arguments(self.sums, *common, partials, *runner.sum_with),
            set_arguments(self.advance, *last, *runner.sum_with),
        )

    def start(self, seed: int, first_toy: int) -> None:
        self.set_seed(self.draw, self.seed, seed, first_toy)
        self.device.run(self.draw, self.blocks * self.group, self.group)
        self.steps = 0
        self.take_steps(FIRST_STEPS)

    def take_steps(self, count: int) -> None:
        for _ in range(min(count, self.max_steps - self.steps)):
            self.device.run(self.sums, self.blocks * self.group, self.group)
            self.done = self.device.run(self.advance, self.count * self.group, self.group)
            self.steps += 1

    def finish(self, results: Array) -> None:
        self.device.read_done(self.out, results, self.done)
        while self.steps < self.max_steps and not FitRows(self.layout, results).status.all():
            self.take_steps(MORE_STEPS)
            self.device.read_done(self.out, results, self.done)
        report = FitRows(self.layout, results)
        if report.above or report.given_up:  # the next toys begin with a clean report
            self.device.write(self.report, np.zeros((self.count, 2), np.int32))
