"""Workers in other processes: which versions they must have, and how they fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from morefit.digests import sha256
from morefit.errors import BackendError
from morefit.records.archive import morefit_version
from morefit.records.output import node

if TYPE_CHECKING:
    from concurrent.futures import Executor

R = TypeVar("R")


@runtime_checkable
class DaskClient(Protocol):
    """What is needed of a dask.distributed.Client."""

    def get_executor(self, **options: Any) -> Executor: ...

    def submit(self, function: Callable[..., Any], *arguments: Any, pure: bool) -> Any: ...

    def nthreads(self) -> Mapping[str, int]: ...


def versions() -> dict[str, str]:
    """Return the versions of what the last bits depend on."""
    from importlib import metadata  # slow

    return {"morefit": morefit_version()} | {n: metadata.version(n) for n in ("numpy", "llvmlite", "iminuit")}


@cache
def origin() -> dict[str, str]:
    """Return what the results of a process depend on: versions, and a digest of morefit's own source."""
    root, digest = Path(__file__).parent, sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return versions() | {"source of morefit": digest.hexdigest()[:12]}


def on_worker(expected: Mapping[str, str], work: Callable[[], R]) -> R:
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


def explained(name: str, failure: BaseException) -> BaseException:
    """Return an error with a remedy for a failure of the workers; others stay as they are."""
    from concurrent.futures import BrokenExecutor, CancelledError

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
