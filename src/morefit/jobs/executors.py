"""Executors of any kind: how many workers they have, and what their failures mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
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
IN_FLIGHT = 2  # blocks submitted for each worker: one to work on and one to go on with


@runtime_checkable
class DaskClient(Protocol):
    """What this file needs of a dask.distributed.Client."""

    def get_executor(self, **options: Any) -> Executor: ...

    def nthreads(self) -> Mapping[str, int]: ...


def choose_place(backend: str | Backend, executor: object, events: int) -> Backend:
    """Return where kernels run: on one thread of each worker if there are workers, unless the user says."""
    return Cpu(threads=1) if executor is not None and backend == "auto" else choose_backend(backend, events)


def workers(executor: Executor | DaskClient) -> int:
    """Return how many blocks an executor can work on at once."""
    if isinstance(executor, DaskClient):
        return max(sum(executor.nthreads().values()), 1)
    known = (getattr(executor, name, None) for name in ("num_workers", "_max_workers"))  # mpi4py, the library
    return next((n for n in known if isinstance(n, int) and n > 0), os.cpu_count() or 1)


@cache
def origin() -> dict[str, str]:
    """Return what the results of a process depend on: versions, and a digest of morefit's own source."""
    root, digest = Path(__file__).parents[1], sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return versions() | {"source of morefit": digest.hexdigest()[:12]}


def on_worker(asked: Mapping[str, str], work: Callable[..., R], *args: Any) -> R:
    """Work on a worker, if it has the versions of who asked: results of others could differ, and nobody would know."""
    found = origin()
    others = [
        f"{name} {found.get(name)} instead of {version}"
        for name, version in asked.items()
        if found.get(name) != version
    ]
    if others:
        raise BackendError(
            f"worker on '{node()}': must have the versions of the process that asks, got {', '.join(others)};"
            " install the same on all, and start the workers anew"
        )
    return work(*args)


def failure_of(future: Future[Any]) -> BaseException | None:
    """Return what went wrong in a block that is finished, if anything did."""
    return CancelledError("cancelled") if future.cancelled() else future.exception()


def explained(failure: BaseException) -> BaseException:
    """Return an error that says what to do about a failure of the workers; others stay as they are."""
    gone = (
        isinstance(failure, CancelledError) or type(failure).__name__ == "KilledWorker"
    )  # dask gave a block up
    if gone:
        return BrokenExecutor(f"{type(failure).__name__}: {failure}")
    if isinstance(failure, PicklingError | AttributeError | TypeError) and "pickle" in str(failure):
        rule = "what workers get must pickle; define models and statistics in a module, not in a function"
        return BackendError(f"toy study: {rule} ({failure})")
    if isinstance(failure, AttributeError | ImportError) and "morefit" in str(failure):
        rule = "a worker must have the morefit of the process that asks; install the same on all"
        return BackendError(f"toy study: {rule} ({failure})")
    return failure
