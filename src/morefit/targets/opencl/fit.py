"""Run whole fits on a device that speaks OpenCL: one work-group per toy, or many for the events of a large one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from morefit.arrays import Array, Integers
from morefit.expr import Table
from morefit.kernel.fit_layout import FitRows
from morefit.targets.base import ToyBatch, WholeFit, WholeIntegral, WholePart
from morefit.targets.opencl.columns import DeviceColumn, cut_blocks
from morefit.targets.opencl.device import Device, set_arguments
from morefit.targets.opencl.fit_driver import FitSource
from morefit.targets.opencl.fit_shape import (
    FitShape,
    Home,
    PartShape,
    fit_functions,
    part_key,
    record_is_local,
    shape_of,
)
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
MAX_SENT = 8  # arrays that stay on the device for the next call
FIRST_STEPS, MORE_STEPS = 4, 2  # taken before looking whether toys have converged


class Kind(NamedTuple):
    """How toys of at most ``events`` events are fitted."""

    events: int
    items: int  # of a work-group: a small one wastes less while one of its items steps
    home: Home  # of the events


MIDDLE = (Kind(2047, 32, Home.GLOBAL), Kind((1 << 15) - 1, 64, Home.GLOBAL))
LARGEST = {True: Kind(1 << 62, 128, Home.SPREAD), False: Kind(1 << 62, 256, Home.GLOBAL)}


def kinds_of(device: Device, job: WholeFit) -> tuple[Kind, ...]:
    """Return how toys are fitted; the events of the smallest fit into the shared memory of a group.

    The events of a large toy are spread over many groups if the likelihood has one part without numerical integrals.
    """
    smallest = MIDDLE[0]
    columns = max(columns_of(part) for part in job.parts)
    fit = min(MAX_SHARED, int(device.device.local_mem_size) // 4) // (8 * columns)
    spread = len(job.parts) == 1 and not job.parts[0].integrals
    local = smallest._replace(events=min(fit, smallest.events), home=Home.LOCAL)
    return (local, *MIDDLE, LARGEST[spread])


def columns_of(part: WholePart) -> int:
    return len(part.observables) + len(part.derived)


def run_whole_fits(
    device: Device, group: int | None, job: WholeFit, toys: ToyBatch, width: int
) -> Array | None:
    """Fit toys; return the first numbers of the record of each, None if the events are not on the device."""
    columns = [column for part in toys.parts for column in part.events]
    if not all(isinstance(column, DeviceColumn) and column.first == 0 for column in columns):
        return None
    results = np.empty((len(toys), width))
    # a toy's size alone decides how it is fitted: bitwise independent of which toys are in the batch
    kinds = kinds_of(device, job)
    numbers = np.searchsorted([kind.events for kind in kinds], toys.sizes.sum(axis=1))
    for number, kind in enumerate(kinds):
        some = np.flatnonzero(numbers == number)
        if len(some):
            runner = take_runner(device, group or min(device.group, kind.items), job, kind.home)
            ahead = 0 if kind.home is Home.SPREAD else 1  # started while the results of others are copied
            started: deque[tuple[Integers, FitSpace]] = deque()
            for part in runner.parts(some, toys.sizes):
                started.append((part, runner.start(part, toys, results.shape[1])))
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


def find_text(job: WholeFit, shape: FitShape) -> str:
    """Return the text of a whole fit; it is cached, since writing it takes longer than fitting a thousand toys."""
    key = (job.driver, shape.group, shape.home, shape.layout, *(part_key(part) for part in shape.parts))
    if key not in _texts:
        # the kernels are stored with their text, so that no other can have their address
        _texts[key] = FitSource(job.driver.program, shape).text(), shape.parts
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
    sent: dict[int, tuple[Array, Any]] = field(init=False)  # arrays on the device, by identity
    draw_with: list[list[Any]] = field(init=False)  # numbers and tables, of each part
    sum_with: list[list[Any]] = field(init=False)  # tables and nodes, of each part
    space: tuple[tuple[object, ...], FitSpace] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.job = replace(self.job, spare=[])  # the job refers to this runner, which must not refer to it
        job = self.job
        shapes = tuple(shape_of(part, part.fluctuating, self.device.max_numbers) for part in job.parts)
        shape = FitShape(group=self.group, home=self.home, layout=job.layout, parts=shapes)
        source = find_text(job, shape)
        show_source(source)
        self.kernels = self.device.kernels(self, source, fit_functions(self.home))
        self.sent = {}
        self.sum_with = [self.sum_constants(part) for part in job.parts]
        self.draw_with = [self.draw_constants(part) for part in shapes]

    def send_tables(self, tables: Sequence[Table]) -> list[Any]:
        return [self.device.send(np.array(table.array)) for table in tables]

    def draw_constants(self, part: PartShape) -> list[Any]:
        """Return the numbers and tables that events are drawn with, and the tables of what depends on them alone."""
        derive = self.send_tables(part.derive.tables if part.derive else ())
        if (sampler := part.sampler) is None:
            return derive
        numbers = [np.array(sampler.numbers)] if sampler.numbers else []
        return [*numbers, *self.send_tables(sampler.tables), *derive]

    def sum_constants(self, part: WholePart) -> list[Any]:
        """Return the tables of the sums, and the nodes of the integrals."""
        tables = self.send_tables(part.sums.kernel.tables)
        return tables + [word for one in part.integrals for word in self.integral_constants(one)]

    def integral_constants(self, one: WholeIntegral) -> list[Any]:
        send = self.device.send
        return [
            np.int32(len(one.nodes[0])), send(one.limits), send(one.edges), np.int32(len(one.edges)),
            *(send(np.asarray(column, np.float64)) for column in one.nodes), *self.send_tables(one.program.kernel.tables),
        ]  # fmt: skip

    def sum_arguments(self, k: int, part: Integers, toys: ToyBatch) -> list[Any]:
        """Return the arguments of the sums of one part for some toys."""
        measured = toys.parts[k].measured
        own = np.zeros(1) if measured is None else np.ascontiguousarray(measured[part])
        return [self.send_once(toys.parts[k].parameters), self.device.send(own), *self.sum_with[k]]

    def send_once(self, array: Array) -> Any:
        """Copy an array to the device, unless the same one is there."""
        if id(array) not in self.sent:
            self.sent = dict(list(self.sent.items())[-MAX_SENT:])
            self.sent[id(array)] = array, self.device.send(np.asarray(array, np.float64))
        return self.sent[id(array)][1]

    def draw_arguments(self, k: int, part: Integers, toys: ToyBatch) -> list[Any]:
        """Return the arguments of what draws one part; the first two are the seed and the first toy."""
        own = toys.parts[k]
        if self.job.parts[k].sampler is None:
            assert own.starts is not None
            starts = self.device.send(np.ascontiguousarray(own.starts[part], np.int64))
            return [
                starts,
                *(c.buffer for c in own.events if isinstance(c, DeviceColumn)),
                *self.draw_with[k],
            ]
        return [np.uint64(0), np.uint64(0), *self.draw_with[k]]

    def room_of(self, sizes: Integers) -> Integers:
        """Return how many numbers the events of each of some toys take, as in memory that all toys have alike."""
        columns = np.array([columns_of(part) for part in self.job.parts])
        if self.home is Home.SPREAD:
            return np.asarray(np.maximum(sizes, 1) @ columns, np.int64)
        return np.full(len(sizes), int(np.maximum(sizes.max(axis=0, initial=1), 1) @ columns))

    def parts(self, some: Integers, sizes: Integers) -> list[Integers]:
        """Cut toys into parts for which there is memory."""
        part = np.arange(len(some)) // MAX_TOYS
        if self.home is not Home.LOCAL:
            limit = min(MAX_BYTES, int(SHARE * self.device.info.memory))
            part += np.cumsum(8 * self.room_of(sizes[some])) // limit
        return np.split(some, np.flatnonzero(np.diff(part)) + 1)

    def start(self, part: Integers, toys: ToyBatch, width: int) -> FitSpace:
        """Start to fit some toys; the buffers of the last ones are used again where all is the same but the seed."""
        measured = [b"" if p.measured is None else p.measured[part].tobytes() for p in toys.parts]
        others = [id(array) for p in toys.parts for array in (p.parameters, p.starts, *p.events)]
        key = (part.tobytes(), toys.sizes[part].tobytes(), width, id(toys.record), *measured, *others)
        if self.space is None or self.space[0] != key:
            self.space = None  # lets go of its memory first
            kind = LargeSpace if self.home is Home.SPREAD else SmallSpace
            self.space = key, kind(self, part, toys, width)
        space = self.space[1]
        space.start(toys)
        return space


class FitSpace(ABC):
    """Buffers for some toys, and functions with their arguments set. It does not refer to its runner, which refers to it."""

    def __init__(self, runner: FitRunner, part: Integers, toys: ToyBatch, width: int) -> None:
        self.device, self.group, self.count = runner.device, runner.group, len(part)
        self.layout, self.width = runner.job.layout, width
        self.batch = toys  # what it was made of is told by identity, and must stay alive
        self.toys = self.device.send(part.astype(np.int32))
        self.out = self.device.allocate(8 * self.count * width)
        self.seeds: list[tuple[int, int]] = []  # the place of the seed of a part among the arguments

    def set_seeds(self, kernel: Any, toys: ToyBatch) -> None:
        """Set which toys a function draws, if it draws."""
        for place, k in self.seeds:
            kernel.set_arg(place, np.uint64(toys.parts[k].seed))
            kernel.set_arg(place + 1, np.uint64(toys.first))

    @abstractmethod
    def start(self, toys: ToyBatch) -> None:
        """Start to draw and fit the toys."""

    @abstractmethod
    def finish(self, results: Array) -> None:
        """Wait for them, and copy their results."""


class SmallSpace(FitSpace):
    """Toys with one work-group each."""

    def __init__(self, runner: FitRunner, part: Integers, toys: ToyBatch, width: int) -> None:
        super().__init__(runner, part, toys, width)
        device, job, sizes = self.device, runner.job, toys.sizes[part]
        self.kernel = runner.kernels["fit"]
        rooms = np.maximum(sizes.max(axis=0, initial=1), 1)
        columns = np.array([columns_of(own) for own in job.parts])
        ends = np.cumsum(rooms * columns)
        size = 8 * int(ends[-1])
        local = runner.home is Home.LOCAL
        memory = device.cl.LocalMemory(size) if local else device.allocate(size * self.count)
        places = np.stack([rooms, ends - rooms * columns], axis=1).astype(np.int64)
        record = [] if record_is_local(job.layout) else [device.allocate(8 * self.count * self.layout.size)]
        arguments = [
            self.toys, device.send(np.ascontiguousarray(sizes, np.int32)), memory, np.int64(ends[-1]),
            device.send(places), runner.send_once(toys.record), self.out, np.int32(width), *record,
        ]  # fmt: skip
        for k, own in enumerate(job.parts):
            if own.sampler is not None:
                self.seeds.append((len(arguments), k))
            arguments += [*runner.draw_arguments(k, part, toys), *runner.sum_arguments(k, part, toys)]
        self.arguments = set_arguments(self.kernel, *arguments)

    def start(self, toys: ToyBatch) -> None:
        self.set_seeds(self.kernel, toys)
        self.done = self.device.run(self.kernel, self.count * self.group, self.group)

    def finish(self, results: Array) -> None:
        self.device.read_done(self.out, results, self.done)


class LargeSpace(FitSpace):
    """Toys of one part whose events are shared by many groups."""

    def __init__(self, runner: FitRunner, part: Integers, toys: ToyBatch, width: int) -> None:
        super().__init__(runner, part, toys, width)
        device, job, group = self.device, runner.job, self.group
        (own,) = job.parts
        counts = np.ascontiguousarray(toys.sizes[part, 0])
        multiple = 1 if own.sampler is None else block_multiple(own.sampler.kernel, group)
        each = -(-group * np.clip(counts // (group * GROUPS), EACH, MAX_EVENTS) // multiple) * multiple
        blocks, first = cut_blocks(counts, each, np.cumsum(counts) - counts, empty=True)
        self.blocks, room = len(blocks), int(counts.sum())
        records = device.allocate(8 * self.count * job.layout.size)
        words = max(words_of(own.sums.kernel), 1)
        partials = device.allocate(8 * self.blocks * words)
        totals = device.allocate(16 * self.count * words)
        self.report = device.send(np.zeros((self.count, 2), np.int32))
        memory = device.allocate(8 * columns_of(own) * room)
        common = (self.toys, device.send(blocks), memory, np.int64(room), records)
        arguments = (*common, self.report, runner.send_once(toys.record))
        if own.sampler is not None:
            self.seeds.append((len(arguments), 0))
        sums = runner.sum_arguments(0, part, toys)
        last = (
            device.send(first.astype(np.int32)), device.send(counts.astype(np.int32)), records, self.out, np.int32(width),
            self.report, partials, totals,
        )  # fmt: skip
        self.draw, self.sums, self.advance = (runner.kernels[name] for name in ("draw", "sums", "advance"))
        self.arguments = (
            set_arguments(self.draw, *arguments, *runner.draw_arguments(0, part, toys)),
            set_arguments(self.sums, *common, partials, *sums),
            set_arguments(self.advance, *last, *sums),
        )

    def start(self, toys: ToyBatch) -> None:
        self.set_seeds(self.draw, toys)
        self.device.run(self.draw, self.blocks * self.group, self.group)
        self.take_steps(FIRST_STEPS)

    def take_steps(self, count: int) -> None:
        for _ in range(count):
            self.device.run(self.sums, self.blocks * self.group, self.group)
            self.done = self.device.run(self.advance, self.count * self.group, self.group)

    def finish(self, results: Array) -> None:
        self.device.read_done(self.out, results, self.done)
        while FitRows(self.layout, results).running.any():
            self.take_steps(MORE_STEPS)
            self.device.read_done(self.out, results, self.done)
        report = FitRows(self.layout, results)
        if any(report.above) or any(report.given_up):  # the next toys begin with a clean report
            self.device.write(self.report, np.zeros((self.count, 2), np.int32))
