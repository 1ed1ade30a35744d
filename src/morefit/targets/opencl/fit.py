"""Run whole fits on a device that speaks OpenCL: many toys go through the phases of each step together."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from morefit.arrays import Array, Integers
from morefit.targets.base import PartBatch, ToyBatch, WholeFit, WholePart
from morefit.targets.opencl.columns import DeviceColumn, cut_blocks
from morefit.targets.opencl.device import Device, set_arguments
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_driver import FitSource
from morefit.targets.opencl.fit_part import PartText
from morefit.targets.opencl.fit_phase import TILE, Phase, Runs, name_of
from morefit.targets.opencl.fit_shape import FitShape, shape_of
from morefit.targets.opencl.source import block_multiple
from morefit.targets.opencl.sums import MAX_EVENTS, words_of
from morefit.targets.show import show_source

MAX_TOYS = 1 << 17  # in a launch: short enough for Ctrl-C and for displays that watch the device
MAX_BYTES = 1 << 33  # of the events and records of a launch, if that is not more than a share of the memory
SHARE = 1 / 16
EACH, GROUPS = 16, 2048  # minimum of events per item, and maximum of groups per toy
MAX_TEXTS = 64  # cached in this process
MAX_SENT = 8  # arrays that stay on the device for the next call
MAX_SPACES = 4  # buffers that stay on the device for the next call
# steps taken before looking which toys have converged: at first, later, and when few are left
FIRST_STEPS, MORE_STEPS, MAX_STEPS = 3, 1, 8
FEW = 1 / 16  # of all toys
WIDE_FROM = 13  # parameters: work items take a step together; with fewer, one per toy wastes less
FEW_EVENTS = 2048  # a toy with fewer has one block of them
SMALL_GROUP, LARGE_GROUP = 64, 128  # work items that sum over a block of a toy with few events, and with more


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
    small = toys.sizes.sum(axis=1) < FEW_EVENTS
    for items, some in ((SMALL_GROUP, np.flatnonzero(small)), (LARGE_GROUP, np.flatnonzero(~small))):
        if len(some):
            runner = take_runner(device, group or min(device.group, items), job)
            started: deque[Callable[[], None]] = deque()
            for part in runner.parts(some, toys.sizes):  # the next ones begin while these are looked at
                space = runner.start(part, toys, width)
                started.append(partial(finish, part, space, results, rows_of(part, results)))
                if len(started) > 1:
                    started.popleft()()
            for finish_part in started:
                finish_part()
            job.spare.append(runner)
    return results


def rows_of(part: Integers, results: Array) -> Array:
    """Return where the results of some toys are copied to, in memory that is fetched while the device works."""
    first, last = int(part[0]), int(part[-1]) + 1
    rows = results[first:last] if last - first == len(part) else np.empty((len(part), results.shape[1]))
    rows.fill(np.nan)
    return rows


def finish(part: Integers, space: FitSpace, results: Array, rows: Array) -> None:
    """Wait for some toys and put their results where they belong."""
    space.finish(rows)
    if rows.base is not results:
        results[part] = rows


def take_runner(device: Device, items: int, job: WholeFit) -> FitRunner:
    """Take what was built for a job before and is not in use, or build it."""
    for place, known in enumerate(job.spare):
        if isinstance(known, FitRunner) and (known.device, known.group) == (device, items):
            del job.spare[place]
            return known
    return FitRunner(device, items, job)


_sources: OrderedDict[tuple[Any, ...], FitSource] = OrderedDict()


def find_source(job: WholeFit, shape: FitShape, dialect: Dialect) -> FitSource:
    """Return the text of whole fits; it is cached, since writing it takes longer than fitting a thousand toys."""
    key = (job.driver, dialect, shape.group, shape.wide, shape.layout, *(part.key for part in shape.parts))
    if key not in _sources:
        # it has the kernels, so that no others can have their addresses
        _sources[key] = FitSource(job.driver.program, shape, dialect)
        if len(_sources) > MAX_TEXTS:
            _sources.popitem(last=False)
    return _sources[key]


@dataclass(eq=False)
class FitRunner:
    """A job built for one device and one size of work-group."""

    device: Device
    group: int
    job: WholeFit
    source: FitSource = field(init=False)
    constants: dict[str, Any] = field(init=False)  # arguments that are the same for all toys, by name
    sent: dict[int, tuple[Array, Any]] = field(init=False)  # arrays on the device, by identity
    spaces: list[FitSpace] = field(init=False, default_factory=list)  # the last ones first

    def __post_init__(self) -> None:
        self.job = replace(self.job, spare=[])  # the job refers to this runner, which must not refer to it
        parts = tuple(shape_of(part, self.device.max_numbers) for part in self.job.parts)
        layout = self.job.layout
        wide = layout.count >= WIDE_FROM and self.device.info.kind != "CPU"
        shape = FitShape(group=self.group, wide=wide, layout=layout, parts=parts)
        self.source = find_source(self.job, shape, self.device.dialect)
        show_source(self.source.text)
        show_source(self.source.driver.text)
        self.sent = {}
        self.constants = {}
        for text, part in zip(self.source.parts, parts, strict=True):
            if part.sampler and text.sampling:
                if part.sampler.numbers:
                    self.constants[f"numbers_{text.number}"] = np.array(part.sampler.numbers)
                self.send_tables(text.sampling.table_arguments(), part.sampler.tables)
            if part.derive and text.deriving:
                self.send_tables(text.deriving.table_arguments(), part.derive.tables)
            self.send_tables(text.source.table_arguments(), part.sums.tables)
            self.send_integrals(text)

    def send_tables(self, declarations: Sequence[str], tables: Sequence[Any]) -> None:
        for declaration, table in zip(declarations, tables, strict=True):
            self.constants[name_of(declaration)] = self.device.send(np.array(table.array))

    def send_integrals(self, text: PartText) -> None:
        """Send the nodes of integrals, and what tells whether they are accurate."""
        send = self.device.send
        for i, one in enumerate(self.job.parts[text.number].integrals):
            label = f"{text.number}_{i}"
            self.send_tables(text.integral_sources[i].table_arguments(), one.program.kernel.tables)
            self.constants |= {
                f"nodes{label}": np.int32(len(one.nodes[0])),
                f"limits{label}": send(one.limits),
                f"edges{label}": send(one.edges),
                f"boxes{label}": np.int32(len(one.edges)),
            }
            for k, column in enumerate(one.nodes):
                self.constants[f"node{label}_{k}"] = send(np.asarray(column, np.float64))

    def send_once(self, array: Array) -> Any:
        """Copy an array to the device, unless the same one is there."""
        if id(array) not in self.sent:
            self.sent = dict(list(self.sent.items())[-MAX_SENT:])
            self.sent[id(array)] = array, self.device.send(np.asarray(array, np.float64))
        return self.sent[id(array)][1]

    def parts(self, some: Integers, sizes: Integers) -> list[Integers]:
        """Cut toys into parts for which there is memory."""
        columns = np.array([columns_of(part) for part in self.job.parts])
        own = self.job.layout.size + sum(
            len(p.sums.kernel.per_call.results) + 2 * words_of(p.sums.kernel) for p in self.job.parts
        )
        each = min(MAX_BYTES, int(SHARE * self.device.info.memory)) // 8
        alike = max(min(int(each // (sizes.max(axis=0) @ columns + own)), MAX_TOYS), 1)
        if len(some) <= alike or (sizes == sizes[0]).all():
            return [some[k : k + alike] for k in range(0, len(some), alike)]
        part = np.arange(len(some)) // MAX_TOYS + np.cumsum(sizes[some] @ columns + own) // each
        return np.split(some, np.flatnonzero(np.diff(part)) + 1)

    def start(self, part: Integers, toys: ToyBatch, width: int) -> FitSpace:
        """Start to fit some toys, in buffers of earlier ones where all is the same but the seed."""
        space = next((space for space in self.spaces if space.serves(part, toys, width)), None)
        if space is None:
            del self.spaces[MAX_SPACES - 1 :]  # lets go of its memory first
            space = FitSpace(self, part, toys, width)
        else:
            self.spaces.remove(space)
        self.spaces.insert(0, space)
        space.start(toys)
        return space


@dataclass(eq=False)
class Blocks:
    """The blocks of the events of a part: of all toys, and whether a toy may have several."""

    blocks: np.ndarray[Any, Any]
    first: Integers
    many: bool

    @classmethod
    def cut(cls, counts: Integers, group: int, multiple: int) -> Blocks:
        """Cut the events of each toy into blocks, in a way that depends on its own size alone."""
        items = np.where(
            counts < FEW_EVENTS, MAX_EVENTS, np.clip(counts // (group * GROUPS), EACH, MAX_EVENTS)
        )
        each = -(-group * items // multiple) * multiple
        blocks, first = cut_blocks(counts, each, np.cumsum(counts) - counts, empty=True)
        many = len(blocks) > len(counts)
        if (
            not many
        ):  # the words of the only block are those of the toy: their corrections, zero, come after them
            blocks["place"] = 2 * blocks["set"]
        return cls(blocks, first, many)


class Lists(NamedTuple):
    """The toys that go through the next phases, and their blocks: on the device, and how many they are."""

    values: dict[str, Any]
    counts: Sequence[int]  # of toys, and of the blocks of each part


class FitSpace:
    """Buffers for some toys, and kernels with their arguments set. It does not refer to its runner, which refers to it."""

    def __init__(self, runner: FitRunner, part: Integers, toys: ToyBatch, width: int) -> None:
        self.device, self.group, self.count = runner.device, runner.group, len(part)
        self.begin, self.steps, self.choose = runner.source.begin, runner.source.steps, runner.source.choose
        self.batch, self.part, self.width = toys, part, width
        device, job, sizes = self.device, runner.job, toys.sizes[part]
        self.out = device.allocate(8 * self.count * width)
        self.values: dict[str, Any] = runner.constants | {
            "toys": device.send(part.astype(np.int32)),
            "sizes": device.send(np.ascontiguousarray(sizes, np.int32)),
            "records": device.allocate(8 * -(-self.count // TILE) * TILE * job.layout.size),
            "first_record": runner.send_once(toys.record),
            "results": self.out,
            "width": np.int32(width),
            "running": device.allocate(4 * self.count),
            "all_toys": np.int32(self.count),
            "counts": device.allocate(4 * (1 + len(job.parts))),
        }
        self.blocks = [
            self.add_part(k, job.parts[k], toys.parts[k], sizes[:, k]) for k in range(len(job.parts))
        ]
        for k, own in enumerate(job.parts):
            given = toys.parts[k]
            self.values |= {
                f"parameters{k}": runner.send_once(given.parameters),
                f"measured{k}": device.allocate(0 if given.measured is None else given.measured[part].nbytes),
            }
            if own.sampler is None:
                assert given.starts is not None
                self.values[f"starts{k}"] = device.send(np.ascontiguousarray(given.starts[part], np.int64))
        self.add_lists()
        source = runner.source
        phases = [*source.phases, *source.driver.phases]
        self.kernels = {
            name: kernel
            for one in (source, source.driver)
            for name, kernel in device.kernels(self, one.text, [phase.name for phase in one.phases]).items()
        }
        seeds = {f"{name}{k}": np.uint64(0) for k in range(len(job.parts)) for name in ("seed", "first_toy")}
        for phase in phases:
            values = seeds | self.values | (self.chosen if phase is self.choose else self.lists.values)
            set_arguments(self.kernels[phase.name], *(values[name] for name in phase.names))

    def serves(self, part: Integers, toys: ToyBatch, width: int) -> bool:
        """Return whether other toys differ from these only in their seeds and what constraints measured."""

        def arrays(batch: ToyBatch) -> list[object]:
            own = [array for p in batch.parts for array in (p.parameters, p.starts, *p.events)]
            return [batch.record, *own]

        same = width == self.width and np.array_equal(part, self.part)
        same = same and all(a is b for a, b in zip(arrays(toys), arrays(self.batch), strict=True))
        return same and np.array_equal(toys.sizes, self.batch.sizes)

    def add_part(self, k: int, part: WholePart, given: PartBatch, counts: Integers) -> Blocks:
        """Make room for the events of a part, its scalars, integrals and sums."""
        device, kernel, count = self.device, part.sums.kernel, self.count
        multiple = 1 if part.sampler is None else block_multiple(part.sampler.kernel, self.group)
        cut = Blocks.cut(np.ascontiguousarray(counts), self.group, multiple)
        words, room = max(words_of(kernel), 1), int(counts.sum())
        totals = device.zeros(16 * count * words)
        self.values |= {
            f"events{k}": device.allocate(8 * columns_of(part) * room),
            f"room{k}": np.int64(room),
            f"report{k}": device.zeros(8 * count),
            f"scalars{k}": device.allocate(8 * count * len(kernel.per_call.results)),
            f"totals{k}": totals,
            f"partials{k}": device.allocate(8 * len(cut.blocks) * words) if cut.many else totals,
            f"first_block{k}": device.send(cut.first.astype(np.int32)),
        }
        for i, one in enumerate(part.integrals):
            own = one.program.kernel
            self.values[f"scalars{k}_{i}"] = device.allocate(8 * count * len(own.per_call.results))
            self.values[f"integrals{k}_{i}"] = device.allocate(8 * count * own.outputs)
        for i, column in enumerate(given.events):
            assert isinstance(column, DeviceColumn)
            self.values[f"given{k}_{i}"] = column.buffer
        return cut

    def add_lists(self) -> None:
        """List all toys and blocks, and make room for lists of those that are still fitted."""
        device, blocks = self.device, [cut.blocks for cut in self.blocks]
        sent = {f"blocks{k}": device.send(rows) for k, rows in enumerate(blocks)}
        self.values |= {f"all_{name}": buffer for name, buffer in sent.items()}
        self.chosen = {f"blocks{k}": device.allocate(rows.nbytes) for k, rows in enumerate(blocks)}
        self.chosen["active"] = device.allocate(4 * self.count)
        everything = {"active": device.send(np.arange(self.count, dtype=np.int32)), **sent}
        counts = (self.count, *map(len, blocks))
        self.lists = self.everything = Lists(everything | {"active_toys": np.int32(self.count)}, counts)

    def set(self, phases: Sequence[Phase], values: Mapping[str, Any]) -> None:
        """Set some arguments of kernels, by name."""
        for phase in phases:
            for place, name in enumerate(phase.names):
                if name in values:
                    self.kernels[phase.name].set_arg(place, values[name])

    def start(self, toys: ToyBatch) -> None:
        """Start to draw and fit the toys."""
        if self.lists is not self.everything:
            self.go_on_with(self.everything)
        numbers = range(len(toys.parts))
        self.set(self.begin, {f"seed{k}": np.uint64(toys.parts[k].seed) for k in numbers})
        self.set(self.begin, {f"first_toy{k}": np.uint64(toys.first) for k in numbers})
        for k, part in enumerate(toys.parts):
            if part.measured is not None:
                self.device.overwrite(self.values[f"measured{k}"], part.measured[self.part])
        for phase in self.begin:
            self.run(phase)
        self.take_steps(FIRST_STEPS)

    def go_on_with(self, lists: Lists) -> None:
        """Let only the toys of some lists go through the next phases."""
        self.lists = lists
        self.set((*self.begin, *self.steps), lists.values)

    def run(self, phase: Phase) -> Any:
        kernel, group = self.kernels[phase.name], self.group
        toys, *blocks = self.lists.counts
        if phase.runs in (Runs.ITEMS, Runs.ALL):
            each = self.count if phase.runs is Runs.ALL else toys
            return self.device.run(kernel, -(-each // TILE) * TILE, TILE)
        if phase.runs is Runs.TILES:
            return self.device.run(kernel, toys * TILE, TILE)
        groups = toys if phase.runs is Runs.GROUPS else blocks[phase.part]
        return self.device.run(kernel, groups * group, group)

    def take_steps(self, count: int) -> None:
        for _ in range(count):
            for phase in self.steps:
                if self.blocks[phase.part].many or not phase.many_blocks:
                    self.done = self.run(phase)

    def list_running(self) -> Lists:
        """List the toys that are still fitted."""
        counts = np.empty(len(self.lists.counts), np.int32)
        self.device.clear(self.values["counts"], counts.nbytes)
        self.device.read_done(self.values["counts"], counts, self.run(self.choose))
        return Lists(self.chosen | {"active_toys": np.int32(counts[0])}, counts.tolist())

    def finish(self, results: Array) -> None:
        """Wait for the toys, and copy their results."""
        while (running := self.list_running()).counts[0]:
            self.go_on_with(running)
            self.take_steps(MORE_STEPS if running.counts[0] > FEW * self.count else MAX_STEPS)
        self.device.read_done(self.out, results, self.done)
