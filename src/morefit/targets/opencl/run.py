"""Run kernels on any device that speaks OpenCL 1.2 with double precision."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import BackendError
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import MAX_SHIFTS, FitLayout
from morefit.kernel.ir import Kernel, Precision, Sample
from morefit.kernel.program import Driver
from morefit.targets.base import (
    Buffer,
    Drawn,
    Events,
    HostColumn,
    Pieces,
    ToyBatch,
    WholeFit,
    check_whole_numbers,
    show_source,
)
from morefit.targets.opencl.columns import DeviceColumn
from morefit.targets.opencl.device import Device, open_device
from morefit.targets.opencl.fit import MAX_TOYS, run_whole_fits
from morefit.targets.opencl.fit_shape import WIDE_FROM, Lifted, lift_numbers
from morefit.targets.opencl.launch import OpenCLLaunch, SampleSpace, needed_functions
from morefit.targets.opencl.source import KernelSource, render
from morefit.targets.opencl.sums import MAX_EVENTS
from morefit.text.arguments import constructor_in_sentences

MAX_ITEMS = 512  # in a work-group
SENT_TOGETHER = 1 << 29  # bytes: it takes longer to send them than to start the fits of what was sent before


@constructor_in_sentences
@dataclass(frozen=True)
class OpenCL:
    """A device that speaks OpenCL, by number or part of its name (default: the first GPU, else any device).

    ``work_group`` is the number of work items in a group, a power of two (default: what suits the device).
    ``events_per_item`` is how many events an item sums before the group adds up (default: by the number of events).
    ``tiles_from`` is the number of parameters from which the products for a Hessian are added in tiles by the whole
    group instead of by each item for its events.
    ``memory`` is how many bytes of columns may lie on the device at a time (default: 80 % of what it has); columns
    beyond that stay with the host and are sent in pieces, each time they are used.
    """

    platform: int | str | None = None
    device: int | str | None = None
    work_group: int | None = None
    events_per_item: int | None = None
    tiles_from: int = 10
    memory: int | None = None

    def __post_init__(self) -> None:
        check_whole_numbers(self, "opencl", ("work_group", "events_per_item", "tiles_from", "memory"))
        group, memory = self.work_group, self.memory
        if group is not None and (not 1 <= group <= MAX_ITEMS or group & (group - 1)):
            raise BackendError(
                f"backend 'opencl': work_group must be a power of two up to {MAX_ITEMS}, got {group}"
            )
        if self.events_per_item is not None and not 1 <= self.events_per_item <= MAX_EVENTS:
            raise BackendError(
                f"backend 'opencl': events_per_item must be from 1 to {MAX_EVENTS}, got {self.events_per_item}"
            )
        if self.tiles_from < 1:
            raise BackendError(f"backend 'opencl': tiles_from must be at least 1, got {self.tiles_from}")
        if memory is not None and memory < 1:
            raise BackendError(f"backend 'opencl': memory must be a positive number of bytes, got {memory}")

    @property
    def draws_measured(self) -> bool:
        """NumPy would take longer for a few values than the device for a fit."""
        return True

    @property
    def name(self) -> str:
        return "opencl"

    def max_shifts(self, parameters: int) -> int:
        """Return none where toys take their steps side by side: one of them nearly always needs eigenvalues, and all would wait for both."""
        return MAX_SHIFTS if parameters >= WIDE_FROM else 0

    @property
    def toys_together(self) -> int:
        return MAX_TOYS

    @property
    def label(self) -> str:
        return f"opencl ({self.open().info.name})"

    def open(self) -> Device:
        """Return the device with its context in this process."""
        return open_device(self.platform, self.device)

    def expect_kernels(self) -> None:
        """Start processes that build beside this one, if that is of use."""
        self.open().programs.builders.start()

    def compile(self, kernel: Kernel, identity: str | None = None) -> OpenCLProgram:
        """Return a program; it is built when it is first used, for drivers are slow and whole fits do without it."""
        return OpenCLProgram(kernel, self.open().group_for(self.work_group, bool(kernel.pairs)), self)

    def sum_counts(self, table: CountsTable, points: Array) -> Array:
        """Sum over the bins of a model of counts at many points."""
        from morefit.targets.opencl.counts import run_counts

        return run_counts(self.open(), self.work_group, table, points)

    def expect_fits(self, driver: Driver, layout: FitLayout, toys: int = 1) -> bool:
        """Begin to build the driver of whole fits, which does not depend on the model; of few toys the host takes the steps."""
        from morefit.targets.opencl.fit import expect_driver

        return expect_driver(self.open(), driver, layout, toys)

    def prepare_fits(self, job: WholeFit, toys: ToyBatch) -> None:
        """Nothing is waited for."""

    def fit_whole(self, job: WholeFit, toys: ToyBatch, width: int) -> Array | None:
        """Draw and fit toys."""
        return self.fit_whole_together([(job, toys)], width)[0]

    def fit_whole_together(self, fits: Sequence[tuple[WholeFit, ToyBatch]], width: int) -> list[Array | None]:
        """Draw and fit the toys of several jobs; those that have the same kernels run in one launch."""
        return run_whole_fits(self.open(), self.work_group, fits, width)

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> DeviceColumn | HostColumn:
        """Copy a column to the device, if it is not there yet and there is room for it."""
        device = self.open()
        with np.errstate(over="ignore"):  # beyond single precision a term is infinite, and seen to be
            numbers = np.ascontiguousarray(column, precision.kind)
        known: DeviceColumn | None = device.copies.find(numbers)
        if known is not None:
            return known
        if not device.room_for(numbers.nbytes, self.memory):
            device.copies.clear()  # of columns that may no longer be needed
        if not device.room_for(numbers.nbytes, self.memory):
            return HostColumn(numbers)
        sent = DeviceColumn.of(device, device.send(numbers), len(column), numbers.dtype)
        if numbers is column:
            device.copies.add(numbers, sent)
        return sent

    @property
    def sent_together(self) -> int | None:
        return None if self.open().info.kind == "CPU" else SENT_TOGETHER

    def upload_pieces(self, pieces: Pieces) -> DeviceColumn | HostColumn:
        """Copy a column to the device from where its numbers are, if there is room for it."""
        device = self.open()
        if not device.room_for(8 * pieces.count, self.memory):
            return self.upload(pieces.joined())
        return DeviceColumn.of(device, device.send_pieces(pieces), pieces.count, np.dtype(np.float64))


@dataclass(eq=False)
class OpenCLProgram:
    """A kernel for a device."""

    kernel: Kernel
    group: int
    backend: OpenCL
    compile_seconds: float = 0.0

    @property
    def source(self) -> str:
        """All functions in one text."""
        return render(self.drawn_kernel, self.group, self.backend.open().dialect, self.numbers)

    @cached_property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """The names of functions by the texts that have them."""
        dialect = self.backend.open().dialect
        return KernelSource(self.drawn_kernel, self.group, dialect, numbers=self.numbers).texts

    @property
    def drawn_kernel(self) -> Kernel:
        """The kernel, without the numbers to draw with."""
        return self.lifted.kernel if isinstance(self.kernel.frame, Sample) else self.kernel

    @property
    def numbers(self) -> int:
        """How many numbers there are to draw with."""
        return len(self.lifted.numbers) if isinstance(self.kernel.frame, Sample) else 0

    @cached_property
    def lifted(self) -> Lifted:
        """What draws, without the numbers it was made for: models at other values have the same text."""
        return lift_numbers(self.kernel, self.backend.open().max_numbers)

    def texts_with(self, functions: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the texts that have some functions, and which of these."""
        named = {text: tuple(n for n in names if n in functions) for text, names in self.texts.items()}
        return {text: names for text, names in named.items() if names}

    def expect(self, events: Events | None) -> None:
        """Begin to build what these events need, or a few."""
        most = 0 if events is None else int((events.stops - events.starts).max(initial=0))
        self.backend.open().programs.build_ahead(self.texts_with(needed_functions(self, most)))

    def kernels(self, owner: object, functions: Collection[str]) -> dict[str, Any]:
        """Return functions, built now or found built before by this or another process, for as long as the owner lives."""
        begin, programs = time.perf_counter(), self.backend.open().programs
        texts, kernels = self.texts_with(functions), dict[str, Any]()
        programs.build_ahead(texts if len(texts) > 1 else ())
        for text, names in texts.items():
            show_source(text)
            kernels |= programs.kernels(owner, text, {name: name for name in names})
        self.compile_seconds += time.perf_counter() - begin
        return kernels

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> OpenCLLaunch:
        assert all(isinstance(c, DeviceColumn | HostColumn) for c in columns)
        return OpenCLLaunch(self, tuple(columns), events, tuple(steps) or (0,) * len(columns))  # type: ignore[arg-type]

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw the events of each set, one toy each, from random numbers that the seed and its number determine."""
        launch = OpenCLLaunch(self, (), events, ())
        return SampleSpace(launch, len(parameters), self.lifted.numbers, seed, first_toy).draw(parameters)
