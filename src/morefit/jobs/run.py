"""Run a long job block by block, here or on the workers of any executor: progress, checkpoints, resuming, and what is finished if it stops."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from morefit.dataclass import dataclass
from morefit.errors import BackendError, BrokenJob, DataError, MorefitError
from morefit.jobs.checkpoint import Checkpoint, Facts, Saved, differences
from morefit.records.results import Layout, Part, Result, concatenate, save_result
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.targets.cpu.run import Cpu
from morefit.text.progress import Bar, tell
from morefit.workers import DaskClient as DaskClient  # for all who take executors
from morefit.workers import explained, on_worker, origin

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

T = TypeVar("T")
Block = tuple[int, int]  # its first item, and the first that is no longer in it
Work = Callable[[], T]
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
    name: str, tasks: Iterator[tuple[Block, Work[T]]], executor: Executor | DaskClient
) -> Generator[tuple[Block, T], None, None]:
    """Submit blocks, a few for each worker at a time; finished ones are returned even if another one failed."""
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait

    pool = executor if isinstance(executor, Executor) else executor.get_executor(pure=False)
    pending: dict[Future[T], Block] = {}
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


R = TypeVar("R", bound=Result)


def all_parts(layout: Layout, parts: Sequence[Part[R]]) -> R:
    """Return the rows of all finished parts, in order."""
    return concatenate(layout, [part.result for part in parts])


@dataclass(frozen=True, eq=False, kw_only=True)
class Job(Generic[R]):
    """What a long job is: numbered items, how they are cut into blocks, computed, put together and written.

    ``work(first, stop, report)`` returns a function without arguments that computes a block; it must pickle for
    workers. ``report`` takes how many steps of the block are done.
    """

    name: str  # begins every message
    noun: str  # what it is: "study", "scan", "bootstrap"
    items: str  # what is counted: "toys", "points", "replicas"
    size: int
    layout: Layout
    facts: Facts  # what the results depend on; empty without a file
    cut: Callable[[Sequence[Block]], Iterator[Block]]  # missing items into blocks
    work: Callable[[int, int, Report], Work[R]]
    collect: Callable[[Layout, Sequence[Part[R]]], R] = all_parts
    # raises if they do not belong together
    check: Callable[[Part[R], Part[R]], None] = lambda first, new: None
    check_saved: Callable[[Part[R]], Iterable[str]] = lambda part: ()  # differences from the requested items
    timed: Callable[[float], None] = lambda seconds: None  # called after each block computed here
    steps: int = 1  # of an item, for the progress bar
    step: str = "toys"


def run_job(
    job: Job[R],
    *,
    save: str | Path | None,
    saved: Saved[R] | None,
    executor: Executor | DaskClient | None,
    progress: bool,
) -> R:
    """Compute all items that are not saved yet; Ctrl-C returns what is finished, errors carry it."""
    check_executor(job.name, executor)
    state = State(job, None if save is None else Path(save))
    if saved is not None:
        state.resume(saved)
    try:
        try:
            compute(state, executor, progress)
        finally:
            state.checkpoint.write()
    except KeyboardInterrupt:
        if not state.parts:
            raise
        some = len(state.result())
        gaps = "" if some == state.done else f"; returning {some} {job.items} without gaps"
        tell(f"{job.name}: interrupted; {state.summary()}{gaps}")
    except Exception as error:
        from concurrent.futures import BrokenExecutor  # which jobs without workers do not need

        if isinstance(error, BrokenExecutor):
            raise state.broken(f"the workers are gone ({error})") from error
        if not state.parts:
            raise
        text = str(error) if isinstance(error, MorefitError) else f"{type(error).__name__}: {error}"
        raise state.broken(text) from error
    return state.result()


def compute(state: State[R], executor: Executor | DaskClient | None, progress: bool) -> None:
    """Compute what is missing, and add each block to the state as soon as it is finished."""
    job, before, begin = state.job, state.done, time.monotonic()
    with Bar(job.name, job.size * job.steps, progress, unit=job.step) as bar:

        def show(more: int) -> None:
            steps = (state.done - before) * job.steps + more
            speed = f"{steps / max(time.monotonic() - begin, 1e-9):,.0f} {job.step}/s"
            count = "" if job.steps == 1 else f", {state.done} of {job.size} {job.items}"
            bar.done(state.done * job.steps + more, f"{job.name}{count}, {speed}")

        blocks = job.cut(state.missing())
        parts = here(job, blocks, show) if executor is None else elsewhere(job, blocks, executor)
        with closing(parts):
            for part in parts:
                state.add(part)
                show(0)


def here(job: Job[R], blocks: Iterator[Block], report: Report) -> Generator[Part[R], None, None]:
    """Compute blocks in this process, one after the other."""
    for first, stop in blocks:
        begin = time.monotonic()
        result = job.work(first, stop, report)()
        job.timed(time.monotonic() - begin)
        yield Part(first, stop, result)


def elsewhere(
    job: Job[R], blocks: Iterator[Block], executor: Executor | DaskClient
) -> Generator[Part[R], None, None]:
    """Compute blocks on workers, in any order."""
    tasks = ((block, partial(on_worker, origin(), job.work(*block, no_report))) for block in blocks)
    with closing(on_workers(job.name, tasks, executor)) as results:
        for (first, stop), result in results:
            yield Part(first, stop, result)


class State(Generic[R]):
    """The finished parts of a job, and how many of its items are in its file."""

    def __init__(self, job: Job[R], path: Path | None) -> None:
        self.job, self.path = job, path
        self.parts: list[Part[R]] = []
        self.done = self.saved = 0
        self.elsewhere: Path | None = None  # where parts are that the file has no room for
        self.checkpoint = Checkpoint(self.save)

    def resume(self, saved: Saved[R]) -> None:
        """Take over the parts of a file, if it belongs to the same job."""
        job, last = self.job, max((part.stop for part in saved.parts), default=0)
        problems = list(differences(saved.facts, job.facts))
        if last > job.size:
            problems.append(f"{job.items} are up to {last} in the file, {job.size} requested")
        problems += [problem for part in saved.parts for problem in job.check_saved(part)]
        if problems:
            raise DataError(
                f"{job.name} '{self.path}': the file belongs to a different {job.noun}: {'; '.join(problems)};"
                " name another file, or remove this one"
            )
        self.parts = list(saved.parts)
        self.done = self.saved = sum(part.stop - part.first for part in self.parts)

    def missing(self) -> list[Block]:
        """Return the ranges of items that are not finished yet."""
        edges = [(part.first, part.stop) for part in sorted(self.parts, key=by_number)]
        stops, firsts = [0, *(stop for _, stop in edges)], [*(first for first, _ in edges), self.job.size]
        return [(low, high) for low, high in zip(stops, firsts, strict=True) if low < high]

    def add(self, part: Part[R]) -> None:
        """Take a finished block, and write the file if that is due."""
        self.job.check((self.parts or [part])[0], part)
        self.parts.append(part)
        self.done += part.stop - part.first
        if self.path is not None:
            self.checkpoint.update()

    def save(self) -> None:
        """Write all finished parts to the file."""
        assert self.path is not None
        self.write(self.path)
        self.saved = self.done

    def write(self, path: Path) -> None:
        self.parts = contiguous(self.job.layout, self.parts)
        runs = [[part.first, part.stop] for part in self.parts]
        everything = all_parts(self.job.layout, self.parts)
        more = {"facts": self.job.facts, "runs": runs}
        save_result(self.job.name, path, self.job.layout, everything, more)

    def save_elsewhere(self, path: Path) -> Path | None:
        """Write all finished parts to another folder than their file; return where, None if that fails as well."""
        from tempfile import gettempdir  # few jobs need it, and it needs many modules

        name = f"{path.stem}-{os.urandom(4).hex()}{path.suffix}"
        for folder in (Path.cwd, Path.home, gettempdir):
            with suppress(DataError, OSError, RuntimeError):  # no such folder, or it cannot be written either
                place = Path(folder()) / name
                self.write(place)
                return place
        return None

    def result(self) -> R:
        """Return what is finished, in order."""
        return self.job.collect(self.job.layout, contiguous(self.job.layout, self.parts))

    def broken(self, why: str) -> BrokenJob:
        """Return an error that carries what is finished."""
        if self.path is not None and self.saved < self.done:
            self.elsewhere = self.save_elsewhere(self.path)
        text = why if why.startswith(self.job.name) else f"{self.job.name}: {why}"
        return BrokenJob(f"{text}; {self.summary()}", self.result() if self.parts else None)

    def summary(self) -> str:
        """Return how many items are finished, how many of them are in the file, and what to do."""
        count = f"{self.done} of {self.job.size} {self.job.items} are finished"
        if not self.done:
            return count
        if self.path is None:
            return f"{count}; use save= to be able to resume"
        if self.saved == self.done:
            return f"{count} and saved in '{self.path}'; call again to resume"
        if self.elsewhere is not None:
            return f"{count} and saved in '{self.elsewhere}'; move that to '{self.path}' and call again to resume"
        some = f"{self.saved} of them are" if self.saved else "they are NOT"
        return f"{count}; {some} saved in '{self.path}'; finished.save('elsewhere.npz') writes them to another file"


def by_number(part: Part[Any]) -> int:
    return part.first


def contiguous(layout: Layout, parts: Iterable[Part[R]]) -> list[Part[R]]:
    """Return parts in order, those joined that follow each other."""
    groups: list[list[Part[R]]] = []
    for part in sorted(parts, key=by_number):
        if groups and groups[-1][-1].stop == part.first:
            groups[-1].append(part)
        else:
            groups.append([part])
    return [Part(group[0].first, group[-1].stop, all_parts(layout, group)) for group in groups]
