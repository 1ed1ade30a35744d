"""Compute blocks on the workers of any executor: how many they are, and what is submitted when."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from morefit.errors import BackendError
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.targets.cpu.run import Cpu
from morefit.workers import DaskClient as DaskClient  # for all who take executors
from morefit.workers import explained

if TYPE_CHECKING:  # what only jobs on workers need is imported by them
    from concurrent.futures import Executor, Future

R = TypeVar("R")
Block = tuple[int, int]  # its first item, and the first that is no longer in it
Work = Callable[[], R]
Report = Callable[[int], None]  # of how many steps of a block are done
BLOCKS_PER_WORKER = 4  # at least, so that no worker waits long for the last
IN_FLIGHT = 2  # blocks submitted for each worker: one to work on and one to go on with


def no_report(done: int) -> None:
    """Ignore progress, on workers."""


def choose_place(backend: str | Backend, executor: object, events: int) -> Backend:
    """Return where kernels run; by default on one thread of each worker, if there are workers."""
    return Cpu(threads=1) if executor is not None and backend == "auto" else choose_backend(backend, events)


def check_executor(name: str, executor: object) -> None:
    """Refuse what cannot run blocks."""
    if executor is None:
        return
    from concurrent.futures import Executor

    if not isinstance(executor, Executor | DaskClient):
        rule = "executor must be a concurrent.futures.Executor or a dask.distributed.Client"
        raise BackendError(f"{name}: {rule}, got {type(executor).__name__}")


def workers(executor: Executor | DaskClient) -> int:
    """Return how many blocks an executor can work on at once."""
    if isinstance(executor, DaskClient):
        return max(sum(executor.nthreads().values()), 1)
    known = (getattr(executor, name, None) for name in ("num_workers", "_max_workers"))  # mpi4py, the library
    return next((n for n in known if isinstance(n, int) and n > 0), os.cpu_count() or 1)


def share(missing: Sequence[Block], executor: Executor | DaskClient | None, limit: int) -> int:
    """Return how many items a block has: at most ``limit``, and few enough that every worker has some blocks."""
    if executor is None:
        return limit
    items = sum(stop - first for first, stop in missing)
    return min(limit, max(-(-items // (BLOCKS_PER_WORKER * workers(executor))), 1))


def on_workers(
    name: str, tasks: Iterator[tuple[Block, Work[R]]], executor: Executor | DaskClient
) -> Generator[tuple[Block, R], None, None]:
    """Submit blocks, a few for each worker at a time; finished ones are returned even if another one failed."""
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait

    pool = executor if isinstance(executor, Executor) else executor.get_executor(pure=False)
    pending: dict[Future[R], Block] = {}
    following = next(tasks, None)
    try:
        while following is not None or pending:
            failure: BaseException | None = None
            while following is not None and len(pending) < IN_FLIGHT * workers(executor):
                try:
                    pending[pool.submit(following[1])] = following[0]
                except BrokenExecutor as error:  # blocks that are under way may still be finished
                    failure = error
                    break
                following = next(tasks, None)
            finished, _ = wait(pending, return_when=FIRST_COMPLETED)
            failures = [failure, *map(failure_of, finished)]
            yield from [(pending.pop(f), f.result()) for f in finished if failure_of(f) is None]
            for one in filter(None, failures):
                raise explained(name, one)
    finally:
        for future in pending:
            future.cancel()


def failure_of(future: Future[Any]) -> BaseException | None:
    """Return the error of a block that is finished, if there is one."""
    from concurrent.futures import CancelledError

    return CancelledError("cancelled") if future.cancelled() else future.exception()
