"""Buffers and kernels of whole fits on a device, and which toys of several batches one launch draws and fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.rows_layout import RowsTable
from morefit.targets.base import Buffer, CountsPart, PartBatch, ToyBatch, WholeFit, WholePart, show_source
from morefit.targets.opencl.columns import DeviceColumn, cut_blocks
from morefit.targets.opencl.device import Device, set_arguments
from morefit.targets.opencl.fit_driver import FitSource, PartText
from morefit.targets.opencl.fit_shape import TILE, Phase, Runs
from morefit.targets.opencl.fit_steps import StepSource
from morefit.targets.opencl.fit_sums import SumText
from morefit.targets.opencl.host_steps import HostSteps, build_steps, host_takes_steps
from morefit.targets.opencl.source import block_multiple
from morefit.targets.opencl.sums import MAX_EVENTS, words_of

MAX_OFFSET = 1 << 30  # between the numbers of toys, so that a sum of two is an integer of 32 bits


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinedPart:
    """One part of a likelihood in all toys; K is the number of batches."""

    parameters: Array  # (K, parameters)
    numbers: Array  # (K, numbers) to draw with
    measured_numbers: Array  # (K, numbers) to draw what constraints measure with
    seed: int
    measured: Array  # (toys, values), empty where constraints do not fluctuate
    events: tuple[Buffer, ...] = ()
    starts: Integers | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinedToys:
    """Toys of K batches."""

    sizes: Integers  # (toys, parts)
    first: int  # the number of the first toy
    offsets: NDArray[np.int32]  # of the number of each toy from the first
    rows: NDArray[np.int32]  # the batch of each toy
    records: Array  # (K, size)
    parts: tuple[JoinedPart, ...]

    @classmethod
    def of(
        cls,
        batches: Sequence[ToyBatch],
        numbers: Sequence[Sequence[Array]],
        measured_numbers: Sequence[Sequence[Array]],
    ) -> JoinedToys:
        """Join batches whose parts are drawn with these numbers, and what they measure with those."""
        lengths, first = [len(toys) for toys in batches], batches[0].first
        numbered = [
            np.add(toys.own_offsets, toys.first - first, dtype=np.int32, casting="same_kind")
            for toys in batches
        ]
        return cls(
            sizes=np.concatenate([toys.sizes for toys in batches]) if len(batches) > 1 else batches[0].sizes,
            first=first,
            offsets=np.concatenate(numbered) if len(batches) > 1 else numbered[0],
            rows=np.repeat(np.arange(len(batches), dtype=np.int32), lengths),
            records=np.array([toys.record for toys in batches]),
            parts=tuple(
                join_part(
                    [toys.parts[k] for toys in batches],
                    [own[k] for own in numbers],
                    [own[k] for own in measured_numbers],
                )
                for k in range(len(batches[0].parts))
            ),
        )

    def __len__(self) -> int:
        return len(self.sizes)


def join_part(
    batches: Sequence[PartBatch], numbers: Sequence[Array], measured_numbers: Sequence[Array]
) -> JoinedPart:
    measured = [batch.measured for batch in batches if batch.measured is not None]
    return JoinedPart(
        parameters=np.array([batch.parameters for batch in batches]),
        numbers=np.array(numbers),
        measured_numbers=np.array(measured_numbers),
        seed=batches[0].seed,
        measured=np.concatenate(measured) if measured else np.empty((0, 0)),
        events=batches[0].events,
        starts=batches[0].starts,
    )


def can_join(one: ToyBatch, other: ToyBatch) -> bool:
    """Return whether toys can be drawn and fitted together, if kernels can be the same."""
    drawn = not any(part.events for toys in (one, other) for part in toys.parts)
    seeds = all(a.seed == b.seed for a, b in zip(one.parts, other.parts, strict=True))
    measured = all(
        (a.measured is None) == (b.measured is None) for a, b in zip(one.parts, other.parts, strict=True)
    )
    return (
        drawn
        and seeds
        and measured
        and 0 <= other.first - one.first <= MAX_OFFSET - int(other.own_offsets[-1])
    )


EACH, GROUPS = 16, 2048  # minimum of events per item, and maximum of groups per toy
FEW_EVENTS = 2048  # a toy with fewer has one block of them
Place = slice | Integers  # of some toys among all
MANY = 1 << 14  # toys whose step takes longer than a look at which of them have converged
FIRST_STEPS, MORE_STEPS = 3, 1  # of many toys, before a look
QUICK_FIRST_STEPS, QUICK_STEPS = 8, 4  # of fewer


def columns_of(part: WholePart | CountsPart) -> int:
    return 1 if isinstance(part, CountsPart) else len(part.observables) + len(part.derived)


def counts_room(table: CountsTable) -> int:
    """Return how many numbers a toy of a model of counts needs."""
    return table.point_size + table.work_size + table.outputs


def rooms_of(job: WholeFit) -> list[tuple[int, ...]]:
    """Return how much room each part needs for a toy, as far as neither its text nor its size tells."""
    tables = [part.table if isinstance(part, CountsPart) else None for part in job.parts]
    own = [() if t is None else (t.point_size, t.work_size, t.outputs) for t in tables]
    return [(part.fluctuating, *sizes) for part, sizes in zip(job.parts, own, strict=True)]


@dataclass(eq=False)
class Blocks:
    """The blocks of the events of a part: of all toys, and whether a toy may have several."""

    blocks: np.ndarray[Any, Any]
    first: Integers
    many: bool

    @classmethod
    def cut(cls, counts: Integers, group: int, multiple: int) -> Blocks:
        """Cut the events of each toy into blocks, in a way that depends on its own size alone."""
        items: Any = MAX_EVENTS
        if counts.max(initial=0) >= FEW_EVENTS:
            fewer = np.clip(counts // (group * GROUPS), EACH, MAX_EVENTS)
            items = np.where(counts < FEW_EVENTS, MAX_EVENTS, fewer)
        each = np.broadcast_to(-(-group * items // multiple) * multiple, counts.shape)
        blocks, first = cut_blocks(counts, each, np.cumsum(counts) - counts, empty=True)
        many = len(blocks) > len(counts)
        # the words of the only block are those of the toy: their corrections, zero, come after them
        if not many:
            blocks["place"] = 2 * blocks["set"]
        return cls(blocks, first, many)


class Lists(NamedTuple):
    """The toys that go through the next phases, and their blocks: on the device, and how many they are."""

    values: dict[str, Any]
    counts: Sequence[int]  # of toys, and of the blocks of each part


class FitSpace:
    """Buffers for toys of some sizes, and kernels: for one batch after the other, of one or several models alike."""

    def __init__(self, device: Device, source: FitSource, job: WholeFit, sizes: Integers, width: int) -> None:
        self.device, self.source, self.width, self.rooms = device, source, width, rooms_of(job)
        self.sizes, self.count, self.group = sizes.copy(), len(sizes), source.shape.group
        self.own: dict[str, Any] = {  # arguments by name
            "sizes": device.send(np.ascontiguousarray(self.sizes, np.int32)),
            "records": device.allocate(8 * -(-self.count // TILE) * TILE * source.shape.record_size),
            "results": device.allocate(8 * self.count * width),
            "width": np.int32(width),
            "running": device.allocate(4 * self.count),
            "all_toys": np.int32(self.count),
            "counts": device.allocate(4 * (1 + len(job.parts))),
        }
        self.blocks = [self.add_part(k, own, self.sizes[:, k]) for k, own in enumerate(job.parts)]
        self.add_lists()
        # what differs from batch to batch, as it is on the device
        self.sent: dict[str, np.ndarray[Any, Any]] = {}
        self.bound: dict[str, Any] = {}  # arguments of the kernels, by name
        self.host: HostSteps | None = None
        self.kernels: dict[str, Any] = {}
        self.add_kernels(source, job.expect_steps)
        values = self.own | self.chosen
        set_arguments(self.kernels[source.choose.name], *(values[name] for name in source.choose.names))

    def serves(self, source: FitSource, job: WholeFit, sizes: Integers, width: int) -> bool:
        """Return whether other toys have the same kernels and sizes."""
        alike = source is self.source and width == self.width and rooms_of(job) == self.rooms
        return alike and np.array_equal(sizes, self.sizes)

    def add_part(self, k: int, part: WholePart | CountsPart, counts: Integers) -> Blocks:
        """Make room for the events of a part, its scalars, integrals and sums."""
        device, room, sampler = self.device, int(counts.sum()), part.sampler
        multiple = 1
        if sampler is not None and not isinstance(sampler, RowsTable):
            multiple = block_multiple(sampler.kernel, self.group)
        cut = Blocks.cut(np.ascontiguousarray(counts), self.group, multiple)
        self.own |= {
            f"events{k}": device.allocate(8 * columns_of(part) * room),
            f"room{k}": np.int64(room),
            f"report{k}": device.zeros(8 * self.count),
            f"first_block{k}": device.send(cut.first.astype(np.int32)),
        }
        text = self.source.parts[k]
        if part.measuring is not None:
            self.own[f"measured{k}"] = device.allocate(8 * self.count * part.fluctuating)
        if isinstance(part, CountsPart):
            own, tiles = part.table, -(-self.count // TILE) * TILE
            sizes = {"point": own.point_size, "work": own.work_size, "output": own.outputs}
            self.own |= {f"{name}s{k}": device.allocate(8 * tiles * size) for name, size in sizes.items()}
        for sums in text.texts if isinstance(text, PartText) else ():
            self.add_sums(sums, cut)
        return cut

    def add_sums(self, text: SumText, cut: Blocks) -> None:
        """Make room for the scalars of a kernel over events, its integrals and sums."""
        device, count, words = self.device, self.count, max(words_of(text.kernel), 1)
        totals = device.zeros(16 * count * words)
        self.own |= {
            f"scalars{text.label}": device.allocate(8 * count * len(text.kernel.per_call.results)),
            f"totals{text.label}": totals,
            f"partials{text.label}": device.allocate(8 * len(cut.blocks) * words) if cut.many else totals,
        }
        for i, one in enumerate(text.own.integrals):
            label = f"{text.label}_{i}"
            self.own[f"scalars{label}"] = device.allocate(8 * count * len(one.kernel.per_call.results))
            self.own[f"integrals{label}"] = device.allocate(8 * count * one.kernel.outputs)

    def add_lists(self) -> None:
        """List all toys and blocks, and make room for lists of those that are still fitted."""
        device, blocks = self.device, [cut.blocks for cut in self.blocks]
        sent = {f"blocks{k}": device.send(rows) for k, rows in enumerate(blocks)}
        self.own |= {f"all_{name}": buffer for name, buffer in sent.items()}
        self.chosen = {f"blocks{k}": device.allocate(rows.nbytes) for k, rows in enumerate(blocks)}
        self.chosen["active"] = device.allocate(4 * self.count)
        everything = {"active": device.send(np.arange(self.count, dtype=np.int32)), **sent}
        counts = (self.count, *map(len, blocks))
        self.lists = self.everything = Lists(everything | {"active_toys": np.int32(self.count)}, counts)

    def add_kernels(
        self, source: FitSource | StepSource, meanwhile: Callable[[], object] | None = None
    ) -> None:
        """Have the kernels of some texts, which are built at the same time, with the arguments that are known."""
        programs = self.device.programs
        programs.build_ahead(source.texts)
        if meanwhile is not None:
            meanwhile()
        for text, phases in source.texts.items():
            show_source(text)
            functions = {phase.name: phase.function for phase in phases}
            self.kernels |= programs.kernels(self, text, functions)
        self.set_arguments(source.phases, self.bound)

    def bind(self, values: Mapping[str, Any]) -> None:
        """Set arguments of kernels, by name, that are not what they were."""
        changed = {name: value for name, value in values.items() if self.bound.get(name) is not value}
        self.bound |= changed
        self.set_arguments(self.source.all_phases, changed)

    def set_arguments(self, phases: Sequence[Phase], values: Mapping[str, Any]) -> None:
        for phase in phases:
            for place, name in enumerate(phase.names):
                if name in values and phase.name in self.kernels:
                    self.kernels[phase.name].set_arg(place, values[name])

    def send(self, name: str, numbers: np.ndarray[Any, Any]) -> None:
        """Copy an array to a buffer of its own, unless the same numbers are there."""
        known = self.sent.get(name)
        if known is None or known.shape != numbers.shape:
            self.own[name] = self.device.send(numbers)
        elif known is not numbers and not np.array_equal(known, numbers):
            self.device.overwrite(self.own[name], numbers)
        self.sent[name] = numbers

    def start(self, job: WholeFit, constants: Mapping[str, Any], toys: JoinedToys, place: Place) -> None:
        """Start to draw and fit some of the toys, whose sizes this has room for."""
        values = dict(constants)
        self.send("first_record", toys.records)
        self.send("toys", toys.offsets[place])
        self.send("rows", toys.rows[place])
        for k, part in enumerate(toys.parts):
            values |= {f"seed{k}": np.uint64(part.seed), f"first_toy{k}": np.uint64(toys.first)}
            self.send(f"parameters{k}", part.parameters)
            if self.source.shape.parts[k].measuring is None:
                self.send(f"measured{k}", part.measured[place] if part.measured.size else part.measured)
            else:
                self.send(f"measure_numbers{k}", part.measured_numbers)
            self.send(f"numbers_{k}", part.numbers)
            if part.starts is not None:
                self.send(f"starts{k}", np.ascontiguousarray(part.starts[place], np.int64))
            for i, column in enumerate(part.events):
                assert isinstance(column, DeviceColumn)
                values[f"given{k}_{i}"] = column.buffer
        self.bind(values | self.own)
        self.go_on_with(self.everything)
        for phase in self.source.draw:
            self.run(phase)
        driver, on_host = self.source.driver, job.begin_steps is not None
        if on_host and host_takes_steps(self.device, driver, self.count):
            self.host = HostSteps(self, job, toys, place)
            return
        self.host = None
        if driver.begin.name not in self.kernels:
            build_steps(self.device, driver)
            self.add_kernels(driver)
        self.run(driver.begin)
        self.take_steps(FIRST_STEPS if self.count > MANY else QUICK_FIRST_STEPS)

    def go_on_with(self, lists: Lists) -> None:
        """Let only the toys of some lists go through the next phases."""
        self.lists = lists
        self.bind(lists.values)

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
            self.run_all(self.source.steps)

    def run_all(self, phases: Sequence[Phase]) -> None:
        for phase in phases:
            if self.blocks[phase.part].many or not phase.many_blocks:
                self.done = self.run(phase)

    def list_running(self) -> Lists:
        """List the toys that are still fitted."""
        counts = np.empty(len(self.lists.counts), np.int32)
        self.device.clear(self.own["counts"], counts.nbytes)
        self.device.read_done(self.own["counts"], counts, self.run(self.source.choose))
        return Lists(self.chosen | {"active_toys": np.int32(counts[0])}, counts.tolist())

    def run_to_end(self) -> None:
        """Take steps until all toys have ended."""
        if self.host:
            self.host.run()
            return
        while (running := self.list_running()).counts[0]:
            self.go_on_with(running)
            self.take_steps(MORE_STEPS if running.counts[0] > MANY else QUICK_STEPS)
        if self.source.end:
            self.go_on_with(self.everything)
            self.run_all(self.source.end)

    def read(self, results: Array) -> None:
        """Wait for what runs, and copy the results."""
        if self.host:
            results[:] = self.host.ended[:, : self.width]
            self.host = None
        else:
            self.device.read_done(self.own["results"], results, self.done)
        for name in self.bound.keys() - self.own.keys() - self.lists.values.keys():
            del self.bound[name]  # events and tables, which others may let go of
