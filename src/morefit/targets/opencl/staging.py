"""Large copies between a host and a device, through memory that the device reads and writes without the driver's help.

From ordinary memory a driver copies pieces into such memory itself, with one thread: 6 GB/s where the bus has 50.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.resources import available_cores
from morefit.targets.base import Pieces

if TYPE_CHECKING:
    from morefit.targets.opencl.device import Device

PIECE = 1 << 22  # bytes of a slot
SLOTS = 4  # each has a thread
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Staging:
    """Some slots of such memory, one for each thread; one copy at a time."""

    def __init__(self, device: Device) -> None:
        self.device, self.lock = device, Lock()

    @cached_property
    def slots(self) -> list[Bytes]:
        cl, device = self.device.cl, self.device
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        access = cl.map_flags.READ | cl.map_flags.WRITE
        self.buffers = [cl.Buffer(device.context, flags, PIECE) for _ in range(min(SLOTS, available_cores()))]
        maps = [cl.enqueue_map_buffer(device.queue, b, access, 0, PIECE, np.uint8) for b in self.buffers]
        return [slot for slot, _ in maps]

    def write(self, buffer: Any, numbers: np.ndarray[Any, Any]) -> None:
        """Copy an array to a buffer; the array may change afterwards."""
        data = as_bytes(numbers)

        def fill(part: Bytes, first: int) -> None:
            part[:] = data[first : first + len(part)]

        self.send(buffer, len(data), fill)

    def write_pieces(self, buffer: Any, pieces: Pieces) -> None:
        """Copy the doubles of many arrays to a buffer, one array after the other."""

        def fill(part: Bytes, first: int) -> None:
            pieces.copy(first // 8, part.view(np.float64))

        self.send(buffer, 8 * pieces.count, fill)

    def send(self, buffer: Any, count: int, fill: Callable[[Bytes, int], None]) -> None:
        """Copy bytes to a buffer while the device goes on; ``fill`` puts those from one of them on into a part of a slot."""
        device, copy = self.device, self.device.cl.enqueue_copy
        # a buffer may have been another's, which kernels that were started before still read
        before = [device.cl.enqueue_marker(device.queue)]
        device.queue.flush()

        def write(slot: Bytes, first: int, size: int) -> None:
            part = slot[:size]
            fill(part, first)
            copy(device.writes, buffer, part, dst_offset=first, is_blocking=False, wait_for=before).wait()

        self.in_pieces(count, write)

    def read(self, buffer: Any, numbers: np.ndarray[Any, Any], begin: int = 0) -> None:
        """Copy a buffer, from some byte on, into an array; what is copied must be there already."""
        data, copy = as_bytes(numbers), self.device.cl.enqueue_copy

        def take(slot: Bytes, first: int, size: int) -> None:
            copy(self.device.reads, slot[:size], buffer, src_offset=begin + first, is_blocking=False).wait()
            data[first : first + size] = slot[:size]

        self.in_pieces(len(data), take)

    def in_pieces(self, count: int, copy: Callable[[Bytes, int, int], None]) -> None:
        """Copy pieces of some bytes, each thread through its own slot."""
        with self.lock:
            slots = self.slots
            stride = len(slots) * PIECE

            def run(k: int) -> None:
                for first in range(k * PIECE, count, stride):
                    copy(slots[k], first, min(PIECE, count - first))

            with ThreadPoolExecutor(len(slots)) as pool:
                list(pool.map(run, range(len(slots))))


def as_bytes(numbers: np.ndarray[Any, Any]) -> Bytes:
    """Return a view of a contiguous array."""
    return numbers.reshape(-1).view(np.uint8)
