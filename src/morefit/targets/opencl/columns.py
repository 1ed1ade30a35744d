"""Events on a device or with the host, and how they are cut into blocks for groups and pieces for the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers, read_only
from morefit.dataclass import dataclass
from morefit.targets.base import Events
from morefit.targets.opencl.device import Device
from morefit.targets.opencl.sums import MAX_EVENTS

CPU_BLOCK = 4096  # events that a group takes on a CPU
MIN_EVENTS = 8  # for an item of a GPU
GROUPS_WANTED = 2048  # at least, to keep a large GPU busy

BLOCK = np.dtype(
    [("begin", "i8"), ("event", "i8"), ("set", "i4"), ("count", "i4"), ("place", "i4"), ("unused", "i4")]
)


@dataclass(frozen=True, eq=False)
class DeviceColumn:
    """A column in the memory of a device."""

    device: Device
    buffer: Any
    count: int
    kind: np.dtype[Any]
    first: int = 0  # its place in the buffer

    @classmethod
    def of(cls, device: Device, buffer: Any, count: int, kind: np.dtype[Any]) -> DeviceColumn:
        """Take a buffer that no one else needs, and count its memory."""
        column = cls(device, buffer, count, kind)
        device.hold(column, count * kind.itemsize)
        return column

    @property
    def values(self) -> Array:
        """The numbers, read-only: an upload of them finds this column again."""
        numbers = np.empty(self.count, self.kind)
        self.device.read(self.buffer, numbers, self.first * self.kind.itemsize)
        values = read_only(numbers.astype(np.float64, copy=False))
        if values is numbers and self.first == 0:
            self.device.copies.add(values, self)
        return values


@dataclass(frozen=True)
class Piece:
    """Some blocks, and the events they are made of."""

    first: int
    last: int
    low: int
    high: int


def block_sizes(kind: str, group: int, sizes: Integers, each: int | None = None) -> Integers:
    """Return how many events a group takes of each set; its own size alone decides, so results have the same bits.

    Adding up the items of a group costs about as much as a few events each; many events make large blocks,
    but never so large that part of the device is idle. ``each`` is what a user wants for an item.
    """
    if each is not None:
        return np.full(len(sizes), group * each)
    if kind == "CPU":
        return np.full(len(sizes), min(CPU_BLOCK, MAX_EVENTS * group))
    return group * np.clip(sizes // (group * GROUPS_WANTED), MIN_EVENTS, MAX_EVENTS)


def list_blocks(
    events: Events, sets: int, *, kind: str, group: int, multiple: int, each: int | None = None
) -> tuple[np.ndarray[Any, Any], Integers]:
    """List the blocks of all sets in the order of their events; also the first block of each set, by its place.

    The events of a block are a multiple of ``multiple``; ``each`` is what a user wants for an item.
    """
    sizes = events.sizes(sets)
    starts = np.broadcast_to(events.starts, (sets,))
    lengths = -(-block_sizes(kind, group, sizes, each) // multiple) * multiple
    blocks, first = cut_blocks(sizes, lengths, starts)
    return blocks[np.argsort(blocks["begin"], kind="stable")], first


def cut_blocks(
    sizes: Integers, each: Integers, starts: Integers, *, empty: bool = False
) -> tuple[np.ndarray[Any, Any], Integers]:
    """Cut the events of each set into blocks, set after set; ``empty`` gives a set without events one, too."""
    # most toys have one block each: divisions of whole numbers take longer than all else
    one_each = bool(np.all(sizes <= each)) and (empty or bool(np.all(sizes > 0)))
    counts = np.ones(len(sizes), np.int64) if one_each else np.maximum(-(-sizes // each), int(empty))
    first = np.concatenate([[0], np.cumsum(counts)])
    blocks = np.zeros(int(first[-1]), BLOCK)
    blocks["place"] = np.arange(len(blocks))
    of_set = slice(None) if one_each else np.repeat(np.arange(len(sizes)), counts)
    blocks["set"] = blocks["place"] if one_each else of_set
    blocks["event"] = (blocks["place"] - first[:-1][of_set]) * each[of_set]
    blocks["begin"] = blocks["event"] + starts[of_set]
    blocks["count"] = np.minimum(sizes[of_set] - blocks["event"], each[of_set])
    return blocks, first


def cut_pieces(blocks: np.ndarray[Any, Any], max_events: int) -> Iterator[Piece]:
    """Cut blocks into pieces that span at most ``max_events`` events, but at least one block."""
    ends = blocks["begin"] + blocks["count"]
    first = 0
    while first < len(blocks):
        low = int(blocks["begin"][first])
        last = max(int(np.searchsorted(ends, low + max_events, "right")), first + 1)
        yield Piece(first, last, low, int(ends[first:last].max()))
        first = last
