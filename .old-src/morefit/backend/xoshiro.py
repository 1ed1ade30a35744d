"""xoshiro128++ in numpy: all streams of a toy side by side, the judge of every other implementation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from morefit.backend.philox import joined
from morefit.render.launch import BLOCK
from morefit.render.streams import STREAMS, start, step, stream_of


class Streams:
    """The random numbers of a toy; each event goes on in its stream where the one before it stopped."""

    def __init__(self, seed: int, toy: int, size: int) -> None:
        self.size = size
        self.states = start(seed, toy, -(-size // BLOCK) * STREAMS)

    def together(self) -> Iterator[NDArray[np.int64]]:
        """Go through the events, as many at a time as there are streams."""
        events = np.arange(self.size)
        for turn in range(BLOCK // STREAMS):
            yield events[events % BLOCK // STREAMS == turn]

    def numbers(self, events: NDArray[np.int64], draw: int, calls: int) -> list[NDArray[np.float64]]:
        """Return the numbers of a candidate for each event, of 53 bits; streams know by themselves which draw it is."""
        streams = stream_of(events)
        return [self.number(streams) for _ in range(2 * calls)]

    def number(self, streams: NDArray[np.int64]) -> NDArray[np.float64]:
        high, states = step(self.states[streams])
        low, self.states[streams] = step(states)
        return joined(high.astype(np.uint64), low.astype(np.uint64))
