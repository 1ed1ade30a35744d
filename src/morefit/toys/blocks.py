"""Cut toys into blocks, and work on them one after the other or on workers in any order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass

import numpy as np

from morefit.errors import BackendError
from morefit.jobs.executors import IN_FLIGHT, DaskClient, explained, failure_of, on_worker, origin, workers
from morefit.sampling.generate import Sizes
from morefit.toys.ensemble import SMALL
from morefit.toys.results import ToyResults
from morefit.toys.task import Task, work_block

MOST_EVENTS, MOST_TOYS = 32_000_000, 5_000  # of a block, unless the user says otherwise
SHORT = 0.05  # seconds; a place that is done with a block sooner gets larger ones
GROWN_EVENTS = 8 * MOST_EVENTS  # of a block that grew, if nobody wants to see them
BLOCKS_PER_WORKER = 4  # at least, so that none waits long for the last

Block = tuple[int, int]  # the first toy, and the first that is not in it any more
Parts = Generator[ToyResults, None, None]


@dataclass
class Pace:
    """How many toys a block has; unless the user says so, more and more while they take no time."""

    toys: int = MOST_TOYS
    fixed: bool = False
    events: int = MOST_EVENTS
    most_events: int = GROWN_EVENTS

    def note(self, seconds: float) -> None:
        if seconds < SHORT and not self.fixed:
            self.toys *= 2
            self.events = min(2 * self.events, self.most_events)


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


def work(
    task: Task, blocks: Iterable[Block], sizes: Sizes, executor: Executor | DaskClient | None, pace: Pace
) -> Parts:
    """Work on blocks, here one after the other or on workers in any order."""
    if executor is None:
        return work_here(task, blocks, sizes, pace)
    if isinstance(executor, Executor | DaskClient):
        return work_elsewhere(task, deque(blocks), sizes, executor)
    rule = "executor must be a concurrent.futures.Executor or a dask.distributed.Client"
    raise BackendError(f"toy study: {rule}, got {type(executor).__name__}")


def work_here(task: Task, blocks: Iterable[Block], sizes: Sizes, pace: Pace) -> Parts:
    for first, stop in blocks:
        begin = time.monotonic()
        part = work_block(task, first, sizes[first:stop])
        pace.note(time.monotonic() - begin)
        yield part


def work_elsewhere(task: Task, queue: deque[Block], sizes: Sizes, executor: Executor | DaskClient) -> Parts:
    """Submit blocks, a few for each worker at a time; what is finished comes out even if another one failed."""
    pool = executor if isinstance(executor, Executor) else executor.get_executor(pure=False)
    pending: set[Future[ToyResults]] = set()
    failure: BaseException | None = None
    try:
        while queue or pending:
            failure = submit(pool, task, queue, sizes, pending, IN_FLIGHT * workers(executor))
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            if failure is None:
                failure = next(filter(None, map(failure_of, finished)), None)
            yield from (future.result() for future in finished if failure_of(future) is None)
            if failure is not None:
                raise explained(failure)
    finally:
        for future in pending:
            future.cancel()


def submit(
    pool: Executor, task: Task, queue: deque[Block], sizes: Sizes, pending: set[Future[ToyResults]], most: int
) -> BaseException | None:
    """Keep so many blocks under way; a pool that takes no more is returned as an error."""
    while queue and len(pending) < most:
        first, stop = queue[0]
        try:
            pending.add(pool.submit(on_worker, origin(), work_block, task, first, sizes[first:stop]))
        except BrokenExecutor as error:
            return error
        queue.popleft()
    return None
