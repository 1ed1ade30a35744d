"""Run kernels on any device that speaks OpenCL 1.2 with double precision; the only file that imports pyopencl."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morefit.backend.base import Array, Buffer, Drawn, Events, Integers, WholeFit
from morefit.backend.cache import key_of, load, store
from morefit.backend.opencl_fit import run_whole_fits
from morefit.errors import BackendError, CompileError
from morefit.kernel import Frame, Kernel, Precision
from morefit.render.opencl import MOST_EVENTS, Shape, functions_of, least_block, render, words_of

MOST_PROGRAMS = 256  # kept built in this process
MOST_KEPT = 1 << 25  # bytes; larger workspaces are not kept between calls
MOST_ITEMS = 512  # in a work-group
CPU_BLOCK = 4096  # events that a group takes on a CPU
FEWEST_EVENTS = 8  # for an item of a GPU
GROUPS_WANTED = 4096  # at least, to keep a large GPU busy
Kind = type[np.float64] | type[np.float32]
KINDS: dict[Precision, Kind] = {Precision.DOUBLE: np.float64, Precision.SINGLE: np.float32}


def pyopencl() -> Any:
    """Import pyopencl, the first time it is needed."""
    try:
        import pyopencl as cl
    except ImportError as error:
        raise BackendError(
            "backend 'opencl': pyopencl is not installed; pip install morefit[opencl]"
        ) from error
    return cl


@dataclass(frozen=True)
class DeviceInfo:
    """A device as its driver describes it; ``platform`` and ``device`` choose it: OpenCL(platform, device)."""

    platform: int
    device: int
    name: str
    platform_name: str
    kind: str  # "GPU", "CPU", ...
    memory: int  # bytes
    double: bool  # whether it computes in double precision

    def __str__(self) -> str:
        digits = "double precision" if self.double else "no double precision"
        return (
            f"{self.platform}:{self.device} {self.name} ({self.platform_name}), {self.kind},"
            f" {self.memory / 2**30:.1f} GB, {digits}"
        )


def devices() -> tuple[DeviceInfo, ...]:
    """List the devices of every platform; none if there is no platform."""
    return tuple(info for info, _ in found_devices())


def found_devices() -> list[tuple[DeviceInfo, Any]]:
    cl = pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # a loader without any driver calls it an error
        return []
    found = []
    for p, platform in enumerate(platforms):
        with contextlib.suppress(cl.Error):  # a platform without devices
            found += [(describe(p, d, device), device) for d, device in enumerate(platform.get_devices())]
    return found


def describe(platform: int, number: int, device: Any) -> DeviceInfo:
    cl = pyopencl()
    kinds = {"GPU": cl.device_type.GPU, "CPU": cl.device_type.CPU, "ACCELERATOR": cl.device_type.ACCELERATOR}
    kind = next((name for name, bit in kinds.items() if device.type & bit), "OTHER")
    return DeviceInfo(
        platform, number, device.name.strip(), device.platform.name.strip(), kind, int(device.global_mem_size),
        "cl_khr_fp64" in device.extensions.split(),
    )  # fmt: skip


PREFERRED = ("GPU", "ACCELERATOR", "CPU", "OTHER")


def choose_device(platform: int | str | None, device: int | str | None) -> tuple[DeviceInfo, Any]:
    """Find the device a user means: by number or part of its name; any with double precision, GPUs first."""
    every = found_devices()
    if not every:
        raise BackendError("backend 'opencl': no platform found; install a driver, or use backend='cpu'")

    def meant(wish: int | str | None, number: int, name: str) -> bool:
        return wish is None or (wish == number if isinstance(wish, int) else wish.lower() in name.lower())

    some = [
        pair
        for pair in every
        if meant(platform, pair[0].platform, pair[0].platform_name)
        and meant(device, pair[0].device, pair[0].name)
    ]
    if not some:
        there = "; ".join(str(info) for info, _ in every)
        raise BackendError(
            f"backend 'opencl': no device found for platform={platform!r}, device={device!r}; there are: {there}"
        )
    good = [pair for pair in some if pair[0].double]
    if not good:
        names = ", ".join(info.name for info, _ in some)
        raise BackendError(
            f"backend 'opencl': no double precision (cl_khr_fp64) on {names}; choose another device, or use"
            " backend='cpu'"
        )
    return min(good, key=lambda pair: PREFERRED.index(pair[0].kind))


class Device:
    """A device with its context and queue, in one process."""

    def __init__(self, info: DeviceInfo, device: Any) -> None:
        cl = pyopencl()
        self.cl, self.info, self.device = cl, info, device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.process = os.getpid()
        self.programs: OrderedDict[str, Any] = OrderedDict()
        self.lock = threading.Lock()
        self.identity = (device.name, device.driver_version, device.platform.version, device.version)

    @property
    def group(self) -> int:
        """How many items a work-group has unless the user says so; a CPU runs them one after the other."""
        wish = 16 if self.info.kind == "CPU" else 128
        return min(wish, 1 << (int(self.device.max_work_group_size).bit_length() - 1))

    def shape(self, group: int | None) -> Shape:
        """Divide the work into groups of the items wished for, or of what suits the device."""
        items = group or self.group
        if items > self.device.max_work_group_size:
            raise BackendError(
                f"backend 'opencl': work_group must be at most {self.device.max_work_group_size} on"
                f" {self.info.name}, got {items}"
            )
        return Shape(items)

    def block(self, group: int, events: Events) -> int:
        """Return how many events a group takes; it depends on the events alone, so results have the same bits.

        Adding up the items of a group costs about as much as a few events each; so many events make large blocks,
        but never so large that part of the device is idle.
        """
        if self.info.kind == "CPU":
            return min(CPU_BLOCK, MOST_EVENTS * group)
        each = events.count // (group * GROUPS_WANTED) if events.shared else FEWEST_EVENTS
        return group * min(max(each, FEWEST_EVENTS), MOST_EVENTS)

    @contextlib.contextmanager
    def watched(self, doing: str) -> Iterator[None]:
        """Turn what the driver says into errors of ours."""
        try:
            yield
        except self.cl.MemoryError as error:
            raise BackendError(
                f"backend 'opencl': {self.info.name} ran out of memory while {doing}; it has"
                f" {self.info.memory / 2**30:.1f} GB: use fewer events or sets at a time, or backend='cpu'"
            ) from error
        except self.cl.Error as error:
            raise BackendError(f"backend 'opencl': {self.info.name} failed while {doing}: {error}") from error

    def allocate(self, size: int) -> Any:
        """Make room for so many bytes."""
        most = int(self.device.max_mem_alloc_size)
        if size > most:
            raise BackendError(
                f"backend 'opencl': {self.info.name} ran out of memory: {size / 2**30:.1f} GB wanted in one piece,"
                f" at most {most / 2**30:.1f} GB possible; use fewer events or sets at a time, or backend='cpu'"
            )
        with self.watched(f"allocating {size} bytes"):
            return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(size, 8))

    def send(self, numbers: np.ndarray[Any, Any]) -> Any:
        """Copy an array to the device."""
        buffer = self.allocate(numbers.nbytes)
        if numbers.size:
            self.write(buffer, np.ascontiguousarray(numbers))
        return buffer

    def write(self, buffer: Any, numbers: np.ndarray[Any, Any], *, wait: bool = True) -> Any:
        """Copy a contiguous array; without waiting, it and what is returned must be kept until a later read."""
        with self.watched("copying to it"):
            return self.cl.enqueue_copy(self.queue, buffer, numbers, is_blocking=wait)

    def read(self, buffer: Any, numbers: np.ndarray[Any, Any]) -> None:
        """Wait for all that was asked for, and copy a buffer into an array."""
        if numbers.size:
            with self.watched("running a kernel"):
                self.cl.enqueue_copy(self.queue, numbers, buffer)

    def run(self, kernel: Any, size: int, group: int) -> None:
        """Start a kernel on so many items, whose arguments are set."""
        with self.watched("starting a kernel"):
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, (size,), (group,))

    def build(self, source: str) -> Any:
        """Return a program for a text: from this process, from disk, or built now."""
        key = key_of("opencl", source, *self.identity)
        with self.lock:
            if key not in self.programs:
                self.programs[key] = self.from_disk(key) or self.from_source(key, source)
                if len(self.programs) > MOST_PROGRAMS:
                    self.programs.popitem(last=False)
            self.programs.move_to_end(key)
            return self.programs[key]

    def from_disk(self, key: str) -> Any | None:
        """Build what another process has kept; None if there is nothing, or the driver does not take it."""
        binary = load(key)
        if binary is None:
            return None
        try:
            return build_program(self.cl, self.cl.Program(self.context, [self.device], [binary]))
        except self.cl.Error:
            return None

    def from_source(self, key: str, source: str) -> Any:
        try:
            program = build_program(self.cl, self.cl.Program(self.context, source))
        except self.cl.Error as error:
            raise CompileError(f"kernel: {self.info.name} refused the text: {error}", source) from error
        with contextlib.suppress(self.cl.Error):  # a driver may have no binaries to give
            store(key, program.get_info(self.cl.program_info.BINARIES)[0])
        return program


def build_program(cl: Any, program: Any) -> Any:
    """Build without pyopencl's own cache and without its remarks on what compilers print."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(options=[], cache_dir=False)


_devices: dict[tuple[int, object, object], Device] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child must not inherit a lock that nobody is left to open
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def open_device(platform: int | str | None, device: int | str | None) -> Device:
    """Return a device with its context, made once in each process."""
    key = (os.getpid(), platform, device)
    with _lock:
        if key not in _devices:
            if any(process != key[0] for process, _, _ in _devices):
                # drivers keep threads and locks that a forked child does not have: it would wait for ever
                raise BackendError(
                    "backend 'opencl': used before this process was forked, and drivers do not survive that; start"
                    " processes with the method 'spawn'"
                )
            _devices[key] = Device(*choose_device(platform, device))
        return _devices[key]


@dataclass(frozen=True, eq=False)
class DeviceColumn:
    """A column in the memory of a device."""

    device: Device
    buffer: Any
    count: int
    kind: Kind

    @property
    def values(self) -> Array:
        numbers = np.empty(self.count, self.kind)
        self.device.read(self.buffer, numbers)
        return numbers.astype(np.float64, copy=False)


@dataclass(frozen=True)
class OpenCL:
    """A device that speaks OpenCL, by number or part of its name (default: the first GPU, else any device).

    ``work_group`` is the number of work items in a group, a power of two (default: what suits the device).
    """

    platform: int | str | None = None
    device: int | str | None = None
    work_group: int | None = None

    def __post_init__(self) -> None:
        group = self.work_group
        if group is not None and (not 1 <= group <= MOST_ITEMS or group & (group - 1)):
            raise BackendError(
                f"backend 'opencl': work_group must be a power of two up to {MOST_ITEMS}, got {group}"
            )

    @property
    def name(self) -> str:
        return "opencl"

    def open(self) -> Device:
        """Return the device with its context in this process."""
        return open_device(self.platform, self.device)

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """Build a kernel, or find it built before by this or another process."""
        begin = time.perf_counter()
        device = self.open()
        shape = device.shape(self.work_group)
        source = render(kernel, shape)
        device.build(source)
        return OpenCLProgram(kernel, source, shape, self, time.perf_counter() - begin)

    def fit_whole(self, job: WholeFit, sizes: Integers, seed: int, first_toy: int) -> Array | None:
        """Draw and fit a toy for each size, a work-group each."""
        if job.sampler is None:  # given events are on the device already: batches read them where they are
            return None
        device = self.open()
        return run_whole_fits(device, self.work_group, job.sampler.kernel, job, sizes, seed, first_toy)

    def upload(self, column: Array, precision: Precision = Precision.DOUBLE) -> DeviceColumn:
        """Copy a column to the device."""
        device = self.open()
        with np.errstate(over="ignore"):  # beyond single precision a term is infinite, and seen to be
            numbers = np.ascontiguousarray(column, KINDS[precision])
        return DeviceColumn(device, device.send(numbers), len(column), KINDS[precision])


@dataclass(frozen=True, eq=False)
class OpenCLProgram:
    """A kernel built for a device."""

    kernel: Kernel
    source: str
    shape: Shape
    backend: OpenCL
    compile_seconds: float

    def bind(self, columns: Sequence[Buffer], events: Events, steps: Sequence[int] = ()) -> OpenCLLaunch:
        assert all(isinstance(c, DeviceColumn) for c in columns)
        return OpenCLLaunch(self, tuple(columns), events, tuple(steps) or (0,) * len(columns))  # type: ignore[arg-type]

    def sample(self, parameters: Array, events: Events, seed: int, first_toy: int) -> Drawn:
        """Draw the events of each set, a toy each, from random numbers that the seed and its number determine."""
        return Sampler(OpenCLLaunch(self, (), events, ()), len(parameters)).draw(parameters, seed, first_toy)


class OpenCLLaunch:
    """A program bound to columns. Any number of threads may call it at once."""

    def __init__(
        self,
        program: OpenCLProgram,
        columns: tuple[DeviceColumn, ...],
        events: Events,
        steps: tuple[int, ...],
    ) -> None:
        self.program, self.columns, self.events, self.steps = program, columns, events, steps
        self.device = program.backend.open()
        if any(column.device is not self.device for column in columns):
            raise BackendError(
                "backend 'opencl': a column lies on another device; upload it with the same backend"
            )
        self.tables = [self.device.send(table.array) for table in program.kernel.tables]
        self.starts, self.stops = (
            self.device.send(b.astype(np.int64)) for b in (events.starts, events.stops)
        )
        self.free: dict[int, list[SumSpace | StoreSpace]] = {}

    def __call__(self, parameters: Array) -> Array:
        """Evaluate at parameters of shape (sets, parameters)."""
        sets = len(parameters)
        if not sets:
            return np.empty(self.program.kernel.shape(0, self.events.count))
        self.program.backend.open()  # refuses to go on in a forked child
        spare = self.free.setdefault(sets, [])
        try:
            space = spare.pop()
        except IndexError:
            space = SPACES[self.program.kernel.frame](self, sets)
        out = space.launch(parameters)
        if len(spare) < 4 and space.size < MOST_KEPT:
            spare.append(space)
        if len(self.free) > 8:
            self.free.clear()
        return out


class Workspace:
    """Buffers and kernels of one launch, with their arguments set; made once for a number of sets."""

    def __init__(self, launch: OpenCLLaunch, sets: int) -> None:
        program, events = launch.program, launch.events
        assert events.shared or len(events.starts) == sets
        self.device, self.sets, self.launched = launch.device, sets, launch.program
        self.kernel, self.group, self.count = program.kernel, program.shape.group, events.count
        self.keep = (launch.columns, launch.tables, launch.starts, launch.stops)  # not launch: it keeps us
        self.size = 0
        self.sent: tuple[Any, Any] | None = None  # the last parameters, on their way
        least = least_block(self.kernel, self.group)
        block = -(-self.device.block(self.group, events) // least) * least
        blocks: Integers = -(-events.sizes(sets) // block)
        self.tasks = int(blocks.sum())
        self.first_task = self.device.send(np.concatenate([[0], np.cumsum(blocks)]).astype(np.int32))
        self.task_set = self.device.send(np.repeat(np.arange(sets, dtype=np.int32), blocks))
        self.parameters = self.room(sets, len(self.kernel.parameters))
        self.scalars = self.room(sets, len(self.kernel.per_call.results))
        self.bounds = (launch.starts, launch.stops, np.int32(not events.shared))
        built = self.device.build(program.source)
        self.kernels = {name: self.device.cl.Kernel(built, name) for name in functions_of(self.kernel)}
        if "prepare" in self.kernels:
            self.kernels["prepare"].set_args(np.int32(sets), self.parameters, self.scalars)
        columns = [
            part
            for column, step in zip(launch.columns, launch.steps, strict=True)
            for part in (column.buffer, np.int64(step))
        ]
        head = (self.scalars, self.task_set, self.first_task, np.int32(block), *self.bounds)
        self.loop_arguments = (head, (*columns, *launch.tables))

    def room(self, *shape: int) -> Any:
        """Make room for doubles."""
        size = 8 * int(np.prod(shape, dtype=np.int64))
        self.size += size
        return self.device.allocate(size)

    def set_loop(self, name: str, *others: Any) -> None:
        first, last = self.loop_arguments
        self.kernels[name].set_args(*first, *others, *last)

    def start(self, parameters: Array, name: str) -> None:
        """Compute the scalars of each set, then go through the events."""
        if self.kernel.parameters:
            numbers = np.array(parameters, np.float64, order="C")
            self.sent = numbers, self.device.write(self.parameters, numbers, wait=False)
        if "prepare" in self.kernels:
            self.device.run(self.kernels["prepare"], -(-self.sets // self.group) * self.group, self.group)
        if self.tasks:
            self.device.run(self.kernels[name], self.tasks * self.group, self.group)


class SumSpace(Workspace):
    """Sums: one small array comes back."""

    def __init__(self, launch: OpenCLLaunch, sets: int) -> None:
        super().__init__(launch, sets)
        words = words_of(self.kernel)
        self.partials = self.room(self.tasks, words)
        self.totals = self.room(sets, 2 * words)
        self.out = self.room(sets, self.kernel.outputs + 1)
        self.set_loop("sums", self.partials)
        self.kernels["combine"].set_args(
            self.first_task, self.partials, self.totals, self.scalars, *self.bounds, self.out
        )

    def launch(self, parameters: Array) -> Array:
        self.start(parameters, "sums")
        self.device.run(self.kernels["combine"], self.sets * self.group, self.group)
        out = np.empty((self.sets, self.kernel.outputs + 1))
        self.device.read(self.out, out)
        return out


class StoreSpace(Workspace):
    """Values of every event."""

    def __init__(self, launch: OpenCLLaunch, sets: int) -> None:
        super().__init__(launch, sets)
        self.out = self.room(sets, self.kernel.outputs, self.count)
        self.set_loop("store", self.out, np.int64(self.count))

    def launch(self, parameters: Array) -> Array:
        self.start(parameters, "store")
        out = np.empty((self.sets, self.kernel.outputs, self.count))
        self.device.read(self.out, out)
        return out


class Sampler(Workspace):
    """Events that are drawn; used once, its buffers are what is returned."""

    def draw(self, parameters: Array, seed: int, first_toy: int) -> Drawn:
        report = np.zeros(2, np.int32)
        there = self.device.send(report)
        rows = [self.room(self.count) for _ in range(self.kernel.outputs)]
        self.set_loop("sample", np.uint64(seed), np.uint64(first_toy), there, *rows)
        self.start(parameters, "sample")
        self.device.read(there, report)
        columns = tuple(DeviceColumn(self.device, row, self.count, np.float64) for row in rows)
        return Drawn(columns, int(report[0]), int(report[1]))


SPACES: dict[Frame, type[SumSpace] | type[StoreSpace]] = {Frame.SUM: SumSpace, Frame.STORE: StoreSpace}
