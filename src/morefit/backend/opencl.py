"""Run kernels on any device that speaks OpenCL 1.2 with double precision."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morefit.backend.base import Array, Buffer, Drawn, Events, Integers, WholeFit
from morefit.backend.opencl_device import Device, open_device
from morefit.backend.opencl_fit import run_whole_fits
from morefit.backend.opencl_launch import DeviceColumn, HostColumn, OpenCLLaunch, Sampler
from morefit.backend.show import show_source
from morefit.errors import BackendError
from morefit.kernel import Kernel, Precision
from morefit.render.opencl import Shape, render

MOST_ITEMS = 512  # in a work-group
KINDS: dict[Precision, type[np.float64] | type[np.float32]] = {
    Precision.DOUBLE: np.float64,
    Precision.SINGLE: np.float32,
}


@dataclass(frozen=True)
class OpenCL:
    """A device that speaks OpenCL, by number or part of its name (default: the first GPU, else any device).

    ``work_group`` is the number of work items in a group, a power of two (default: what suits the device).
    ``memory`` is how many bytes of columns may lie on the device at a time (default: 80 % of what it has); columns
    beyond that stay with the host and are sent in pieces, each time they are used.
    """

    platform: int | str | None = None
    device: int | str | None = None
    work_group: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        group, memory = self.work_group, self.memory
        if group is not None and (not 1 <= group <= MOST_ITEMS or group & (group - 1)):
            raise BackendError(
                f"backend 'opencl': work_group must be a power of two up to {MOST_ITEMS}, got {group}"
            )
        if memory is not None and memory < 1:
            raise BackendError(f"backend 'opencl': memory must be a positive number of bytes, got {memory}")

    @property
    def name(self) -> str:
        return "opencl"

    @property
    def label(self) -> str:
        return f"opencl ({self.open().info.name})"

    def open(self) -> Device:
        """Return the device with its context in this process."""
        return open_device(self.platform, self.device)

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """Return a program; it is built when it is first used, for drivers are slow and whole fits do without it."""
        return OpenCLProgram(kernel, self.open().shape(self.work_group), self)

    def fit_whole(self, job: WholeFit, sizes: Integers, seed: int, first_toy: int) -> Array | None:
        """Draw and fit a toy for each size."""
        return run_whole_fits(self.open(), self.work_group, job, sizes, seed, first_toy)

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> DeviceColumn | HostColumn:
        """Copy a column to the device, if there is room for it."""
        device = self.open()
        with np.errstate(over="ignore"):  # beyond single precision a term is infinite, and seen to be
            numbers = np.ascontiguousarray(column, KINDS[precision])
        if not device.room_for(numbers.nbytes, self.memory):
            return HostColumn(numbers)
        return DeviceColumn.of(device, device.send(numbers), len(column), numbers.dtype)


@dataclass(eq=False)
class OpenCLProgram:
    """A kernel for a device."""

    kernel: Kernel
    shape: Shape
    backend: OpenCL
    compile_seconds: float = 0.0

    @cached_property
    def source(self) -> str:
        return render(self.kernel, self.shape)

    def build(self) -> None:
        """Build the text, or find it built before by this or another process."""
        begin = time.perf_counter()
        show_source(self.source)
        self.backend.open().build(self.source)
        self.compile_seconds += time.perf_counter() - begin

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> OpenCLLaunch:
        assert all(isinstance(c, DeviceColumn | HostColumn) for c in columns)
        return self.launch(tuple(columns), events, tuple(steps) or (0,) * len(columns))  # type: ignore[arg-type]

    def launch(
        self, columns: tuple[DeviceColumn | HostColumn, ...], events: Events, steps: tuple[int, ...]
    ) -> OpenCLLaunch:
        backend = self.backend
        if not self.compile_seconds:
            self.build()
        return OpenCLLaunch(
            self.kernel, self.source, self.shape.group, backend.open, columns, events, steps, backend.memory
        )

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw the events of each set, a toy each, from random numbers that the seed and its number determine."""
        return Sampler(self.launch((), events, ()), len(parameters)).draw(parameters, seed, first_toy)
