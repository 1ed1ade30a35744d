"""Pieces of files in the memory of the workers of Dask: each is read once, and again by another worker if one is lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from concurrent.futures import BrokenExecutor
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from morefit.data.pieces import Pieces
from morefit.errors import BackendError
from morefit.text.progress import Bar
from morefit.workers import DaskClient, explained, on_worker, origin

R = TypeVar("R")
GROUPS_PER_THREAD = 4  # of a worker, so that none waits long for the last


class Group:
    """Consecutive pieces in the memory of a worker; where Dask moves or stores them, they are read again."""

    def __init__(self, pieces: Pieces, first: int, stop: int) -> None:
        self.source = pieces, first, stop
        self.datasets = list(pieces.read(first, stop))
        # what others made of the pieces, such as kernels bound to them
        self.computed: dict[Hashable, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Group, self.source

    def __sizeof__(self) -> int:
        """Return how much memory the numbers need, and their copies for kernels."""
        pieces, *_ = self.source
        return 16 * len(pieces.wanted.columns) * sum(map(len, self.datasets))


def apply(group: Group, function: Callable[[Group], R]) -> R:
    """Call a function with a group, on the worker that has it."""
    return function(group)


class Spread:
    """All pieces, in groups on the workers of a client."""

    def __init__(self, pieces: Pieces, client: Any, progress: bool) -> None:
        if not isinstance(client, DaskClient):
            rule = "executor must be a dask.distributed.Client, whose workers hold the events"
            raise BackendError(f"files: {rule}, got {type(client).__name__}")
        groups = min(len(pieces), GROUPS_PER_THREAD * max(sum(client.nthreads().values()), 1))
        edges = [len(pieces) * k // groups for k in range(groups + 1)] if groups else [0]
        versions = origin()
        self.client, self.progress = client, progress
        self.groups = [
            client.submit(on_worker, versions, partial(Group, pieces, first, stop), pure=False)
            for first, stop in pairwise(edges)
        ]

    def results(self, what: str, function: Callable[[Group], R]) -> Generator[R, None, None]:
        """Yield what a function returns for each group, in their order."""
        pending = [self.client.submit(apply, group, function, pure=False) for group in self.groups]
        try:
            with Bar(what, len(pending), self.progress, unit="groups") as bar:
                for k, future in enumerate(pending):
                    yield result_of(future)
                    bar.done(k + 1)
        finally:
            for future in pending:
                if not future.done():
                    future.cancel()


def result_of(future: Any) -> Any:
    """Wait for a result, or raise an error that says what to do."""
    try:
        return future.result()
    except Exception as error:
        failure = explained("files", error)
        if isinstance(failure, BrokenExecutor):
            raise BackendError(
                f"files: workers were lost while they worked on the events ({failure}); give them more memory or start more"
                " of them, and make the mf.FileDataset anew"
            ) from error
        raise failure from None
