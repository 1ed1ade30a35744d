"""Run whole fits on a device that speaks OpenCL: many toys go through the phases of each step together."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers, row_maxima
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.program import Driver
from morefit.targets.ahead import compile_ahead
from morefit.targets.base import CountsPart, ToyBatch, WholeFit, WholePart
from morefit.targets.opencl.columns import DeviceColumn
from morefit.targets.opencl.device import Device
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_driver import FitSource
from morefit.targets.opencl.fit_shape import (
    WIDE_FROM,
    CountsShape,
    FitShape,
    PartShape,
    StepShape,
    name_of,
    shape_of,
)
from morefit.targets.opencl.fit_space import (
    FEW_EVENTS,
    FitSpace,
    JoinedToys,
    Place,
    can_join,
    columns_of,
    counts_room,
)
from morefit.targets.opencl.fit_steps import step_source
from morefit.targets.opencl.fit_sums import SumText
from morefit.targets.opencl.host_steps import build_steps, host_takes_steps
from morefit.targets.opencl.sums import words_of

MAX_TOYS = 1 << 19  # in a launch: short enough for Ctrl-C and for displays that watch the device
MAX_BYTES = 1 << 34  # of the events and records of a launch, if that is not more than a share of the memory
SHARE = 1 / 8
MAX_TEXTS = 64  # cached in this process
MAX_SPACES = 4  # whose buffers stay on the device for the next fits
SMALL_GROUP, LARGE_GROUP = 64, 128  # work items that sum over a block of a toy with few events, and with more


def run_whole_fits(
    device: Device, group: int | None, fits: Sequence[tuple[WholeFit, ToyBatch]], width: int
) -> list[Array | None]:
    """Fit the toys of each job; return the first numbers of the record of each, None where that cannot be done here.

    Jobs that have the same kernels run together: a launch of few toys leaves a large device idle.
    """
    results: list[Array | None] = [None] * len(fits)
    runners = {k: take_runner(device, job) for k, (job, toys) in enumerate(fits) if can_run(toys)}
    for some in alike({k: (runner, fits[k][1]) for k, runner in runners.items()}):
        toys = JoinedToys.of(
            [fits[k][1] for k in some],
            [runners[k].numbers for k in some],
            [runners[k].measured_numbers for k in some],
        )
        rows = np.empty((len(toys), width))
        run_joined(runners[some[0]], group, toys, rows)
        ends = np.cumsum([len(fits[k][1]) for k in some])
        for k, part in zip(some, np.split(rows, ends[:-1]), strict=True):
            results[k] = part
    for k, runner in runners.items():
        fits[k][0].spare.append(runner)
    return results


def can_run(toys: ToyBatch) -> bool:
    """Return whether all events and counts are drawn or on the device."""
    columns = [column for part in toys.parts for column in part.events]
    return all(isinstance(column, DeviceColumn) and column.first == 0 for column in columns)


def alike(fits: Mapping[int, tuple[FitRunner, ToyBatch]]) -> list[list[int]]:
    """List the fits that can run together, by their numbers."""
    groups: list[list[int]] = []
    for k, (runner, toys) in fits.items():
        for group in groups:
            first, batch = fits[group[0]]
            if len(group) < first.max_rows and runner.key == first.key and can_join(batch, toys):
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def run_joined(runner: FitRunner, group: int | None, toys: JoinedToys, results: Array) -> None:
    """Fit toys, and put the first numbers of the record of each into a row."""
    # a toy's size alone decides how it is fitted: bitwise independent of which toys are in the batch
    small = row_maxima(toys.sizes) < FEW_EVENTS  # in each part, whose blocks a group sums
    for items, some in ((SMALL_GROUP, np.flatnonzero(small)), (LARGE_GROUP, np.flatnonzero(~small))):
        if not len(some):
            continue
        source = runner.source(group or min(runner.device.group, items))
        started, reads = deque[Launch](), list[Future[None]]()
        with ThreadPoolExecutor(1) as reader:  # copies results while the device goes on
            for place in runner.places(some, toys.sizes):
                space = runner.take_space(source, toys.sizes[place], results.shape[1])
                space.start(runner.job, runner.constants, toys, place)
                started.append(Launch.of(space, place, results))
                if len(started) > 1:  # the next one has begun while this one is looked at
                    started[0].space.run_to_end()
                    reads.append(reader.submit(started.popleft().read))
            (last,) = started
            last.space.run_to_end()
        last.read()
        for read in reads:
            read.result()  # which raises what went wrong


@dataclass(eq=False)
class Launch:
    """Toys that a device fits, and where their results go."""

    space: FitSpace
    place: Place
    results: Array
    rows: Array

    @classmethod
    def of(cls, space: FitSpace, place: Place, results: Array) -> Launch:
        """Have memory for the results fetched while the device works."""
        rows = results[place] if isinstance(place, slice) else np.empty((space.count, results.shape[1]))
        rows.fill(np.nan)
        return cls(space, place, results, rows)

    def read(self) -> None:
        """Copy the results of toys that have ended; the next fits may take their buffers."""
        self.space.read(self.rows)
        if not isinstance(self.place, slice):
            self.results[self.place] = self.rows
        device = self.space.device
        with device.lock:
            device.fit_spaces.insert(0, self.space)


def take_runner(device: Device, job: WholeFit) -> FitRunner:
    """Take what was built for a job before and is not in use, or build it."""
    for place, known in enumerate(job.spare):
        if isinstance(known, FitRunner) and known.device is device:
            del job.spare[place]
            return known
    return FitRunner(device, job)


_sources: OrderedDict[tuple[Any, ...], FitSource] = OrderedDict()


def find_source(job: WholeFit, shape: FitShape, dialect: Dialect) -> FitSource:
    """Return the text of whole fits; it is cached, since writing it takes longer than fitting a thousand toys."""
    key = (job.driver, dialect, shape.group, shape.wide, shape.layout, *(part.key for part in shape.parts))
    if key not in _sources:
        # it has the kernels, so that no others can have their addresses
        _sources[key] = FitSource(job.driver, shape, dialect)
        if len(_sources) > MAX_TEXTS:
            _sources.popitem(last=False)
    return _sources[key]


def is_wide(device: Device, layout: FitLayout) -> bool:
    """Return whether work items take a step together on a device."""
    return layout.count >= WIDE_FROM and device.info.kind != "CPU"


def expect_driver(device: Device, driver: Driver, layout: FitLayout, toys: int) -> bool:
    """Begin to build the step of the minimiser, once, or return True if the host takes those of so many toys in less time."""
    source = step_source(driver, StepShape(wide=is_wide(device, layout), layout=layout), device.dialect)
    if host_takes_steps(device, source, toys):
        return True
    if device.host_seconds.get(source) != np.inf:
        device.host_seconds[source] = np.inf
        compile_ahead(lambda: build_steps(device, source))
    return False


@dataclass(eq=False)
class FitRunner:
    """A job built for one device."""

    device: Device
    job: WholeFit
    shapes: tuple[PartShape | CountsShape, ...] = field(init=False)
    # arguments by name, the same for all toys
    constants: dict[str, Any] = field(init=False, default_factory=dict)
    sources: dict[int, FitSource] = field(init=False, default_factory=dict)  # by the items of a group

    def __post_init__(self) -> None:
        self.job = replace(self.job, spare=[])  # the job refers to this runner, which must not refer to it
        self.shapes = tuple(shape_of(part) for part in self.job.parts)

    @cached_property
    def numbers(self) -> list[Array]:
        """The numbers to draw each part with."""
        return [part.numbers for part in self.shapes]

    @cached_property
    def measured_numbers(self) -> list[Array]:
        """The numbers to draw what constraints measured with, in each part."""
        return [part.measuring.numbers if part.measuring else np.empty(0) for part in self.shapes]

    @property
    def max_rows(self) -> int:
        """How many batches may run together: the numbers to draw their events with are in constant memory."""
        most = max((len(part.numbers) for part in self.shapes if part.rows is None), default=0)
        return int(self.device.device.max_constant_buffer_size) // (8 * max(most, 1))

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What fits that run together have in common."""
        if any(sums.integrals for part in self.shapes for sums in part.all_sums):  # whose nodes may differ
            return (id(self),)
        own = [(part.key, part.draw_key) for part in self.shapes]
        return (self.job.driver, self.job.layout, *own)

    def source(self, group: int) -> FitSource:
        """Return the text for work-groups of a size."""
        if group not in self.sources:
            layout = self.job.layout
            shape = FitShape(group=group, wide=is_wide(self.device, layout), layout=layout, parts=self.shapes)
            self.sources[group] = source = find_source(self.job, shape, self.device.dialect)
            if not self.constants:
                self.send_constants(source)
        return self.sources[group]

    def send_constants(self, source: FitSource) -> None:
        """Send tables and nodes; their names are the same in all texts."""
        for k, shape in enumerate(self.shapes):
            self.constants |= draw_constants(k, shape, self.device)
        for k, own in enumerate(self.job.parts):
            if isinstance(own, CountsPart):
                self.constants |= counts_constants(k, own, self.job.layout, self.device)
        for text in source.event_parts:
            part = self.shapes[text.number]
            assert isinstance(part, PartShape)
            self.constants[f"places{text.number}"] = self.device.send(np.array(part.places, np.int32))
            if part.sampler and text.sampling:
                self.send_tables(text.sampling.table_arguments(), part.sampler.tables)
            if part.derive and text.deriving:
                self.send_tables(text.deriving.table_arguments(), part.derive.tables)
            for sums in text.texts:
                self.send_tables(sums.source.table_arguments(), sums.kernel.tables)
                self.send_integrals(sums)

    def send_tables(self, declarations: Sequence[str], tables: Sequence[Any]) -> None:
        for declaration, table in zip(declarations, tables, strict=True):
            self.constants[name_of(declaration)] = self.device.send(np.array(table.array))

    def send_integrals(self, text: SumText) -> None:
        """Send the nodes of integrals, and what tells whether they are accurate."""
        send, part = self.device.send, self.job.parts[text.number]
        assert isinstance(part, WholePart)
        integrals = part.scores.integrals if text.ends and part.scores else part.integrals
        for i, one in enumerate(integrals):
            label = f"{text.label}_{i}"
            self.send_tables(text.integral_sources[i].table_arguments(), one.program.kernel.tables)
            self.constants |= {
                f"nodes{label}": np.int32(len(one.nodes[0])),
                f"limits{label}": send(one.limits),
                f"edges{label}": send(one.edges),
                f"boxes{label}": np.int32(len(one.edges)),
            }
            for k, column in enumerate(one.nodes):
                self.constants[f"node{label}_{k}"] = send(np.asarray(column, np.float64))

    def places(self, some: Integers, sizes: Integers) -> list[Place]:
        """Cut toys into launches for which there is memory."""
        columns = np.array([columns_of(part) for part in self.job.parts])
        own = self.job.layout.size + sum(
            len(sums.kernel.per_call.results) + 2 * words_of(sums.kernel)
            for p in self.shapes
            for sums in p.all_sums
        )
        own += sum(counts_room(part.table) for part in self.job.parts if isinstance(part, CountsPart))
        each = min(MAX_BYTES, int(SHARE * self.device.info.memory)) // 8
        most = np.array([counts.max() for counts in sizes.T])
        alike = max(min(int(each // (most @ columns + own)), MAX_TOYS), 1)
        if len(some) <= alike or all(counts.min() == counts.max() for counts in sizes.T):
            return [place_of(some[k : k + alike]) for k in range(0, len(some), alike)]
        part = np.arange(len(some)) // MAX_TOYS + np.cumsum(sizes[some] @ columns + own) // each
        return [place_of(one) for one in np.split(some, np.flatnonzero(np.diff(part)) + 1)]

    def take_space(self, source: FitSource, sizes: Integers, width: int) -> FitSpace:
        """Return buffers and kernels for toys of some sizes: those of earlier ones, or new ones."""
        spaces: list[FitSpace] = self.device.fit_spaces
        with self.device.lock:
            for place, space in enumerate(spaces):
                if space.serves(source, self.job, sizes, width):
                    return spaces.pop(place)
            del spaces[MAX_SPACES - 1 :]  # lets go of its memory first
        return FitSpace(self.device, source, self.job, sizes, width)


def draw_constants(k: int, part: PartShape | CountsShape, device: Device) -> dict[str, Any]:
    """Return the arguments that tell how rows and measured values of a part are drawn, but for their numbers."""
    constants: dict[str, Any] = {}
    for name, table in (("row", part.rows), ("measure", part.measuring)):
        if table is not None:
            constants[f"{name}_words{k}"] = device.send(table.words.astype(np.int32))
            constants[f"{name}_size{k}"] = np.int32(len(table.numbers))
    return constants


def counts_constants(k: int, part: CountsPart, layout: FitLayout, device: Device) -> dict[str, Any]:
    """Return the arguments that describe a model of counts."""
    table, n, record = part.table, layout.count, layout.record
    places = np.array(part.places, np.int64)
    row, column = (np.maximum.outer(places, places), np.minimum.outer(places, places))
    lower = np.tril_indices(len(places))
    hessian = np.where(column >= 0, record.first("new_hessian") + row * n + column, -1)[lower]
    slopes = np.where(places >= 0, record.first("new_gradient") + places, -1)
    goals = np.concatenate([[record.first("new_value")], slopes, hessian])
    sizes = {
        "floating_count": len(places), "parameter_count": part.parameters,
        "bins": table.point_size - part.parameters, "measured_first": part.measured,
        "measured_count": part.fluctuating, "point_size": table.point_size, "work_size": table.work_size,
        "output_size": table.outputs,
    }  # fmt: skip
    return {f"{name}{k}": np.int32(size) for name, size in sizes.items()} | {
        f"counts_words{k}": device.send(table.words.astype(np.int32)),
        f"counts_numbers{k}": device.send(np.append(table.numbers, 0.0)),
        f"floating{k}": device.send(np.stack([part.floating, part.places], axis=-1).astype(np.int32)),
        f"goals{k}": device.send(goals.astype(np.int32)),
    }


def place_of(part: Integers) -> Place:
    """Return where some toys are among all: a slice of toys that follow one another."""
    first, last = int(part[0]), int(part[-1]) + 1
    return slice(first, last) if last - first == len(part) else part
