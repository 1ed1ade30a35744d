"""Run whole fits on a device that speaks OpenCL: many toys go through the phases of each step together."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.targets.base import ToyBatch, WholeFit
from morefit.targets.opencl.columns import DeviceColumn
from morefit.targets.opencl.device import Device
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_driver import FitSource
from morefit.targets.opencl.fit_part import PartText
from morefit.targets.opencl.fit_phase import name_of
from morefit.targets.opencl.fit_shape import FitShape, shape_of
from morefit.targets.opencl.fit_space import FEW_EVENTS, FitSpace, columns_of
from morefit.targets.opencl.sums import words_of
from morefit.targets.show import show_source

MAX_TOYS = 1 << 17  # in a launch: short enough for Ctrl-C and for displays that watch the device
MAX_BYTES = 1 << 33  # of the events and records of a launch, if that is not more than a share of the memory
SHARE = 1 / 16
MAX_TEXTS = 64  # cached in this process
MAX_SPACES = 4  # whose buffers stay on the device for the next fits
WIDE_FROM = 13  # parameters: work items take a step together; with fewer, one per toy wastes less
SMALL_GROUP, LARGE_GROUP = 64, 128  # work items that sum over a block of a toy with few events, and with more


def run_whole_fits(
    device: Device, group: int | None, job: WholeFit, toys: ToyBatch, width: int
) -> Array | None:
    """Fit toys; return the first numbers of the record of each, None if events are not on the device or models of counts."""
    if len(job.event_parts) < len(job.parts):
        return None
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
                space = runner.take_space(part, toys, width)
                space.start(runner.constants, toys)
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
    """Wait for some toys and put their results where they belong; the next fits may take their buffers."""
    space.finish(rows)
    space.device.fit_spaces.insert(0, space)
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

    def __post_init__(self) -> None:
        self.job = replace(self.job, spare=[])  # the job refers to this runner, which must not refer to it
        parts = tuple(shape_of(part, self.device.max_numbers) for part in self.job.event_parts)
        layout = self.job.layout
        wide = layout.count >= WIDE_FROM and self.device.info.kind != "CPU"
        shape = FitShape(group=self.group, wide=wide, layout=layout, parts=parts)
        self.source = find_source(self.job, shape, self.device.dialect)
        show_source(self.source.text)
        show_source(self.source.driver.text)
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
        for i, one in enumerate(self.job.event_parts[text.number].integrals):
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

    def parts(self, some: Integers, sizes: Integers) -> list[Integers]:
        """Cut toys into parts for which there is memory."""
        columns = np.array([columns_of(part) for part in self.job.event_parts])
        own = self.job.layout.size + sum(
            len(p.sums.kernel.per_call.results) + 2 * words_of(p.sums.kernel) for p in self.job.event_parts
        )
        each = min(MAX_BYTES, int(SHARE * self.device.info.memory)) // 8
        alike = max(min(int(each // (sizes.max(axis=0) @ columns + own)), MAX_TOYS), 1)
        if len(some) <= alike or (sizes == sizes[0]).all():
            return [some[k : k + alike] for k in range(0, len(some), alike)]
        part = np.arange(len(some)) // MAX_TOYS + np.cumsum(sizes[some] @ columns + own) // each
        return np.split(some, np.flatnonzero(np.diff(part)) + 1)

    def take_space(self, part: Integers, toys: ToyBatch, width: int) -> FitSpace:
        """Return buffers and kernels for some toys: those of earlier ones of the same sizes, or new ones."""
        spaces: list[FitSpace] = self.device.fit_spaces
        with self.device.lock:
            for place, space in enumerate(spaces):
                if space.serves(self.source, part, toys, width):
                    return spaces.pop(place)
            del spaces[MAX_SPACES - 1 :]  # lets go of its memory first
        return FitSpace(self.device, self.source, self.job, part, toys, width)
