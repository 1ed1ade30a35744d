"""Cut the toys of a study into blocks that are computed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from morefit.jobs.executors import Block, DaskClient, share
from morefit.sampling.generate import Sizes
from morefit.toys.batch import SMALL

MAX_EVENTS, MAX_TOYS = 32_000_000, 5_000  # of a block, unless the user chooses the number of toys
WANTED, MAX_GROWTH = (
    0.3,
    8,
)  # seconds of a block: those that are done sooner become larger, up to so many times
GROWN_EVENTS = 8 * MAX_EVENTS  # of a block that grew, if no statistic looks at them


@dataclass
class Pace:
    """How many toys a block has; more and more while they take no time, unless the number is fixed."""

    toys: int = MAX_TOYS
    fixed: bool = False
    events: int = MAX_EVENTS
    max_events: int = GROWN_EVENTS

    def update(self, seconds: float) -> None:
        """Adapt the number of toys to the time that the last block took."""
        growth = int(min(WANTED / max(seconds, 1e-9), MAX_GROWTH))
        if growth > 1 and not self.fixed:
            self.toys *= growth
            self.events = min(growth * self.events, self.max_events)


def cut_all(
    missing: Sequence[Block], sizes: Sizes, pace: Pace, executor: Executor | DaskClient | None
) -> Iterator[Block]:
    """Cut all toys that are missing into blocks."""
    if not pace.fixed:
        pace.toys = share(missing, executor, pace.toys)
    for first, stop in missing:
        yield from cut(first, stop, sizes, pace)


def events_of(sizes: Sizes) -> Sizes:
    """Return how many events each toy has, all parts together."""
    return np.asarray(np.reshape(sizes, (len(sizes), -1)).sum(axis=1), np.int64)


def cut(first: int, stop: int, sizes: Sizes, pace: Pace) -> Iterator[Block]:
    """Cut toys into blocks of not too many toys and events each; small and large ones do not mix."""
    sizes = events_of(sizes)
    ends = np.cumsum(sizes)
    turns = np.flatnonzero(np.diff(sizes <= SMALL)) + 1
    while first < stop:
        full = int(np.searchsorted(ends, ends[first] - sizes[first] + pace.events, "right"))
        turn = next(iter(turns[turns > first].tolist()), stop)
        end = min(first + pace.toys, max(full, first + 1), turn, stop)
        yield first, end
        first = end
