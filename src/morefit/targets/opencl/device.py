"""A device that speaks OpenCL 1.2 with double precision: open it, build, copy and run."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from morefit.arrays import read_only
from morefit.errors import BackendError
from morefit.targets.base import Pieces
from morefit.targets.opencl.dialect import OPENCL, OPENCL_GPU, Dialect
from morefit.targets.opencl.discover import DeviceInfo, choose_device, devices, pick, pyopencl
from morefit.targets.opencl.programs import Programs
from morefit.targets.opencl.staging import Staging

MAX_SENT = 1 << 26  # bytes that are sent without waiting
# bytes that are copied in pieces by several threads, to and from a device with memory of its own
MIN_STAGED = 1 << 23
MIN_COPY = 1 << 20  # bytes of an array that is not sent twice
OTHER_ARGUMENTS = 256  # bytes of addresses and sizes among a kernel's arguments, besides numbers to draw with


class Copies:
    """Columns on a device that are copies of large arrays which cannot change, found again for as long as these live."""

    def __init__(self) -> None:
        self.columns: dict[int, Any] = {}

    def add(self, array: np.ndarray[Any, Any], column: Any) -> None:
        """Note that a column is a copy of an array, if this owns its numbers and is read-only."""
        if array.nbytes >= MIN_COPY and array.flags.owndata and not array.flags.writeable:
            self.columns[id(array)] = column
            weakref.finalize(array, self.columns.pop, id(array), None)

    def find(self, array: np.ndarray[Any, Any]) -> Any | None:
        """Return the copy of an array, unless that could have been changed since."""
        return None if array.flags.writeable else self.columns.get(id(array))

    def clear(self) -> None:
        self.columns.clear()


class Device:
    """A device with its context and queue, in one process."""

    def __init__(self, info: DeviceInfo, device: Any) -> None:
        cl = pyopencl()
        self.cl, self.info, self.device = cl, info, device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        # of what is done, and to where nothing reads, while the other queue goes on
        self.reads, self.writes = cl.CommandQueue(self.context), cl.CommandQueue(self.context)
        # buffers that are let go are used again: a driver takes longer to make one than a small fit takes
        self.pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(self.queue))
        self.column_bytes = 0
        self.copies = Copies()
        self.staging = Staging(self)
        self.on_their_way: deque[Any] = deque(maxlen=64)
        # buffers and kernels of whole fits that are done, the last ones first
        self.fit_spaces: list[Any] = []
        # what the host took for steps of whole fits, by their texts; infinite once the device takes them
        self.host_seconds: dict[Any, float] = {}
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.programs = Programs(self)

    @property
    def group(self) -> int:
        """How many items a work-group has unless the user says so; a CPU runs them one after the other."""
        wish = 16 if self.info.kind == "CPU" else 128
        return min(wish, 1 << (int(self.device.max_work_group_size).bit_length() - 1))

    @property
    def dialect(self) -> Dialect:
        """How kernels are written for it."""
        return OPENCL if self.info.kind == "CPU" else OPENCL_GPU

    @property
    def max_numbers(self) -> int:
        """The maximum number of numeric arguments by value, besides the other arguments of a kernel."""
        return (int(self.device.max_parameter_size) - OTHER_ARGUMENTS) // 8

    def group_for(self, group: int | None, tiles: bool) -> int:
        """Return the work-items of a work-group: those wished for, or what suits the device and sums in tiles."""
        items = group or self.group
        if tiles and group is None and self.info.kind != "CPU":
            items = min(2 * items, int(self.device.max_work_group_size))
        if items > self.device.max_work_group_size:
            raise BackendError(
                f"backend 'opencl': work_group must be at most {self.device.max_work_group_size} on"
                f" {self.info.name}, got {items}"
            )
        return items

    def room_for(self, size: int, limit: int | None) -> bool:
        """Whether ``size`` more bytes may be allocated for columns, in one piece and within a limit (default: 80 %)."""
        room = 0.8 * self.info.memory if limit is None else limit
        return size <= int(self.device.max_mem_alloc_size) and self.column_bytes + size <= room

    def hold(self, owner: object, size: int) -> None:
        """Count the bytes of a column for as long as it lives."""
        self.column_bytes += size
        weakref.finalize(owner, self.release, size)

    def release(self, size: int) -> None:
        self.column_bytes -= size

    @contextlib.contextmanager
    def watched(self, doing: str) -> Iterator[None]:
        """Turn errors of the driver into those of morefit."""
        try:
            yield
        except self.cl.Error as error:
            raise self.failed(doing, error) from error

    def failed(self, doing: str, error: Exception) -> BackendError:
        """Return the error with what the driver says and what to do."""
        if isinstance(error, self.cl.MemoryError):
            return BackendError(
                f"backend 'opencl': {self.info.name} ran out of memory while {doing}; it has"
                f" {self.info.memory / 2**30:.1f} GB: use fewer events or sets at a time, or backend='cpu'"
            )
        forget(self)  # its context may be lost; the next user opens a new one
        return BackendError(
            f"backend 'opencl': {self.info.name} failed while {doing}: {error}; try again, or use backend='cpu'"
        )

    def allocate(self, size: int) -> Any:
        """Allocate ``size`` bytes."""
        limit = int(self.device.max_mem_alloc_size)
        if size > limit:
            raise BackendError(
                f"backend 'opencl': {self.info.name} ran out of memory: {size / 2**30:.1f} GB wanted in one piece,"
                f" at most {limit / 2**30:.1f} GB possible; use fewer events or sets at a time, or backend='cpu'"
            )
        with self.watched(f"allocating {size} bytes"):
            try:
                return self.pool.allocate(max(size, 8))
            except self.cl.MemoryError:
                self.fit_spaces.clear()  # what may be used again is less urgent
                self.pool.free_held()
                return self.pool.allocate(max(size, 8))

    def send(self, numbers: np.ndarray[Any, Any]) -> Any:
        """Copy an array to the device."""
        buffer = self.allocate(numbers.nbytes)
        self.overwrite(buffer, numbers)
        return buffer

    def send_pieces(self, pieces: Pieces) -> Any:
        """Copy the doubles of many arrays to the device, one array after the other; other threads may use it meanwhile."""
        if not self.is_staged(8 * pieces.count):
            return self.send(read_only(pieces.joined()))
        buffer = self.allocate(8 * pieces.count)
        with self.watched("copying to it"):
            self.staging.write_pieces(buffer, pieces)
        return buffer

    def overwrite(self, buffer: Any, numbers: np.ndarray[Any, Any]) -> None:
        """Copy an array to a buffer, after what was started before."""
        if self.is_staged(numbers.nbytes):
            with self.watched("copying to it"):
                self.staging.write(buffer, np.ascontiguousarray(numbers))
        elif 0 < numbers.nbytes <= MAX_SENT:
            # not waited for: what is started later comes later, and the event keeps what is sent until it is read
            fixed = np.array(numbers, order="C") if numbers.flags.writeable else np.ascontiguousarray(numbers)
            self.on_their_way.append(self.write(buffer, fixed, wait=False))
        elif numbers.size:
            self.write(buffer, np.ascontiguousarray(numbers))

    def zeros(self, size: int) -> Any:
        """Allocate ``size`` bytes, and clear them."""
        buffer = self.allocate(size)
        self.clear(buffer, max(size, 4))
        return buffer

    def clear(self, buffer: Any, size: int) -> None:
        """Set the first bytes of a buffer to zero."""
        with self.watched("clearing its memory"):
            self.cl.enqueue_fill_buffer(self.queue, buffer, np.zeros(1, np.int32), 0, size)

    def write(self, buffer: Any, numbers: np.ndarray[Any, Any], *, wait: bool = True) -> Any:
        """Copy a contiguous array; without waiting, it and what is returned must stay alive until a later read."""
        with self.watched("copying to it"):
            return self.cl.enqueue_copy(self.queue, buffer, numbers, is_blocking=wait)

    def read(self, buffer: Any, numbers: np.ndarray[Any, Any], first: int = 0) -> None:
        """Wait for all commands, and copy a buffer, from some byte on, into an array."""
        if self.is_staged(numbers.nbytes):
            self.finish()
            with self.watched("copying from it"):
                self.staging.read(buffer, numbers, first)
        elif numbers.size:
            try:  # not ``watched``, which takes longer than the rest of a small evaluation's Python
                self.cl.enqueue_copy(self.queue, numbers, buffer, src_offset=first)
            except self.cl.Error as error:
                raise self.failed("running a kernel", error) from error
            self.on_their_way.clear()

    def read_done(self, buffer: Any, numbers: np.ndarray[Any, Any], done: Any) -> None:
        """Wait for what was started as ``done``, and copy a buffer into an array, whatever was started since."""
        with self.watched("running a kernel"):
            self.queue.flush()
            if self.is_staged(numbers.nbytes):
                done.wait()
                self.staging.read(buffer, numbers)
            else:
                self.cl.enqueue_copy(self.reads, numbers, buffer, wait_for=[done])

    def is_staged(self, size: int) -> bool:
        """Return whether copies of so many bytes go through memory that the device reads and writes itself."""
        return size >= MIN_STAGED and self.info.kind != "CPU"

    def finish(self) -> None:
        """Wait for all commands."""
        with self.watched("running a kernel"):
            self.queue.finish()

    def run(self, kernel: Any, size: int, group: int) -> Any:
        """Start a kernel whose arguments are set; return the event of its completion."""
        try:
            return self.cl.enqueue_nd_range_kernel(self.queue, kernel, (size,), (group,))
        except self.cl.Error as error:
            raise self.failed("starting a kernel", error) from error


def set_arguments(kernel: Any, *arguments: Any) -> tuple[Any, ...]:
    """Set the arguments of a kernel, and return them: the caller must keep them alive, for the kernel does not.

    One by one, because pyopencl's own ``set_args`` writes and compiles a function first.
    """
    for place, argument in enumerate(arguments):
        kernel.set_arg(place, argument)
    return arguments


_devices: dict[tuple[int, object, object], Device] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child must not inherit a lock that no thread of it can release
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def forget(device: Device) -> None:
    """Open a device anew when it is wanted again."""
    device.programs.builders.end()
    with _lock:
        for key in [k for k, known in _devices.items() if known is device]:
            del _devices[key]


def picked_device() -> DeviceInfo | None:
    """Return the device that "auto" uses for large work; None without OpenCL, and in a child that was forked."""
    if any(process != os.getpid() for process, _, _ in _devices):
        return None
    try:
        return pick(devices())
    except BackendError:
        return None


def open_device(platform: int | str | None, device: int | str | None) -> Device:
    """Return a device with its context, made once in each process."""
    key = (os.getpid(), platform, device)
    with _lock:
        if key not in _devices:
            if any(process != key[0] for process, _, _ in _devices):
                # drivers keep threads and locks that a forked child does not have: it would wait forever
                raise BackendError(
                    "backend 'opencl': used before this process was forked, and drivers do not survive that; start"
                    " processes with the method 'spawn'"
                )
            _devices[key] = Device(*choose_device(platform, device))
        return _devices[key]
