"""Compute blocks on the workers of any executor: how many they are, which versions they have, how they fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from functools import cache
from hashlib import sha256
from pathlib import Path
from pickle import PicklingError
from typing import Any, Protocol, TypeVar, runtime_checkable

from morefit.errors import BackendError
from morefit.jobs.facts import versions
from morefit.records.output import node
from morefit.targets import Backend, Cpu, choose_backend

R = TypeVar("R")
Block = tuple[int, int]  # its first item, and the first that is no longer in it
Work = Callable[[], R]
Report = Callable[[int], None]  # of how many steps of a block are done
BLOCKS_PER_WORKER = 4  # at least, so that no worker waits long for the last
IN_FLIGHT = 2  # blocks submitted for each worker: one to work on and one to go on with


@runtime_checkable
class DaskClient(Protocol):
    """What this file needs of a dask.distributed.Client."""

    def get_executor(self, **options: Any) -> Executor: ...

    def nthreads(self) -> Mapping[str, int]: ...


def no_report(done: int) -> None:
    """Ignore progress, on workers."""


def choose_place(backend: str | Backend, executor: object, events: int) -> Backend:
    """Return where kernels run; by default on one thread of each worker, if there are workers."""
    return Cpu(threads=1) if executor is not None and backend == "auto" else choose_backend(backend, events)


def check_executor(name: str, executor: object) -> None:
    """Refuse what cannot run blocks."""
    if not (executor is None or isinstance(executor, Executor | DaskClient)):
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


@cache
def origin() -> dict[str, str]:
    """Return what the results of a process depend on: versions, and a digest of morefit's own source."""
    root, digest = Path(__file__).parents[1], sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return versions() | {"source of morefit": digest.hexdigest()[:12]}


def on_worker(expected: Mapping[str, str], work: Work[R]) -> R:
    """Compute a block on a worker if it has the expected versions; those of others could differ unnoticed."""
    own = origin()
    others = [
        f"{name} {own.get(name)} instead of {version}"
        for name, version in expected.items()
        if own.get(name) != version
    ]
    if others:
        raise BackendError(
            f"worker on '{node()}': must have the versions of the main process, got {', '.join(others)};"
            " install the same on all, and start the workers anew"
        )
    return work()


def on_workers(
    name: str, tasks: Iterator[tuple[Block, Work[R]]], executor: Executor | DaskClient
) -> Generator[tuple[Block, R], None, None]:
    """Submit blocks, a few for each worker at a time; finished ones are returned even if another one failed."""
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
    return CancelledError("cancelled") if future.cancelled() else future.exception()


def explained(name: str, failure: BaseException) -> BaseException:
    """Return an error with a remedy for a failure of the workers; others stay as they are."""
    lost = isinstance(failure, CancelledError) or type(failure).__name__ == "KilledWorker"  # of Dask
    if lost:
        return BrokenExecutor(f"{type(failure).__name__}: {failure}")
    if isinstance(failure, PicklingError | AttributeError | TypeError) and "pickle" in str(failure):
        rule = (
            "what is sent to workers must pickle; define models and functions in a module, not in a function"
        )
        return BackendError(f"{name}: {rule} ({failure})")
    if isinstance(failure, AttributeError | ImportError) and "morefit" in str(failure):
        rule = "a worker must have the morefit of the main process; install the same on all"
        return BackendError(f"{name}: {rule} ({failure})")
    return failure
