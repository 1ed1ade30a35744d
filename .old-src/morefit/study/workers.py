"""Executors of any kind: how many workers they have, and what their failures mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from pickle import PicklingError
from typing import Any, Protocol, runtime_checkable

from morefit.backend import Backend, Cpu, choose_backend
from morefit.errors import BackendError

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
    return failure
