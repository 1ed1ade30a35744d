"""Do one job for each of many tested values: here or on workers, saved on the way, resumed where it stopped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morefit.errors import BackendError, DataError
from morefit.intervals.toys_at_points import Outcome, Tell
from morefit.jobs.checkpoint import BrokenStudy, Keeper
from morefit.jobs.executors import IN_FLIGHT, DaskClient, explained, failure_of, on_worker, origin, workers
from morefit.jobs.facts import Facts, differences
from morefit.resources import check_memory
from morefit.text.progress import Bar, tell

Numbered = tuple[int, Outcome]


class Work(Protocol):
    """The job of one point."""

    def __call__(self, point: int, tell: Tell) -> Outcome: ...


class Record(Protocol):
    """A result that can be written."""

    def save(self, path: str | Path, facts: Facts | None = None) -> None: ...


@dataclass(eq=False)
class Job:
    """The points that are asked for and those that are finished; it keeps its file up to date."""

    what: str
    work: Work
    points: int
    toys: int  # of each
    facts: Facts  # what makes this job this one
    collect: Callable[[Mapping[int, Outcome]], Record]
    path: Path | None
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what = f"{self.what}: {self.toys:.6g} toys at each of {self.points:.6g} values"
        check_memory(what, 8.0 * self.toys * self.points)
        self.keeper = Keeper(self.path, self.save)

    def add(self, point: int, outcome: Outcome) -> None:
        """Take a finished point, and write the file if that is due."""
        self.outcomes[point] = outcome
        self.keeper.note()

    def save(self, path: Path) -> None:
        """Write what is finished."""
        self.collect(dict(sorted(self.outcomes.items()))).save(path, self.facts)

    def resume(self, facts: Facts, outcomes: Mapping[int, Outcome]) -> None:
        """Take over finished points from a file, if it is of the same job."""
        problems = list(differences(facts, self.facts))
        if problems:
            remedy = "name another file, or remove this one"
            raise DataError(
                f"{self.what} '{self.path}': the file is of another: {'; '.join(problems)}; {remedy}"
            )
        self.outcomes = dict(outcomes)

    def run(self, executor: Executor | DaskClient | None, progress: bool) -> Mapping[int, Outcome]:
        """Work until all points are done or the user has seen enough; return those that are finished, in order."""
        try:
            with Bar(self.what, self.points * self.toys, progress, unit="toys") as bar:
                self.collect_from(self.start(executor, bar), bar)
        except KeyboardInterrupt:
            if not self.outcomes:
                raise
            tell(f"{self.what}: interrupted; returning {self.state()}")
        except BrokenExecutor as error:
            raise self.broken(f"the workers are gone ({error})") from error
        except BackendError as error:
            raise self.broken(str(error)) from error
        finally:
            self.keep()
        return dict(sorted(self.outcomes.items()))

    def keep(self) -> None:
        """Write what is finished; if that fails, it is in the error."""
        try:
            self.keeper.write()
        except DataError as error:
            raise self.broken(str(error)) from error

    def broken(self, why: str) -> BrokenStudy:
        finished = self.collect(dict(sorted(self.outcomes.items()))) if self.outcomes else None
        return BrokenStudy(f"{self.what}: {why}; finished: {self.state()}", finished)

    def collect_from(self, source: Generator[Numbered, None, None], bar: Bar) -> None:
        with closing(source):
            for point, outcome in source:
                self.add(point, outcome)
                self.show(bar, 0)

    def show(self, bar: Bar, more: int) -> None:
        """Move the bar: so many toys of the point at work are done besides those of the finished ones."""
        done = len(self.outcomes)
        bar.done(done * self.toys + more, f"{self.what}, {done} of {self.points} points")

    def start(self, executor: Executor | DaskClient | None, bar: Bar) -> Generator[Numbered, None, None]:
        queue = deque(k for k in range(self.points) if k not in self.outcomes)
        if executor is None:
            return self.here(queue, bar)
        if isinstance(executor, Executor | DaskClient):
            return elsewhere(self.work, queue, executor)
        rule = "executor must be a concurrent.futures.Executor or a dask.distributed.Client"
        raise BackendError(f"{self.what}: {rule}, got {type(executor).__name__}")

    def here(self, queue: deque[int], bar: Bar) -> Generator[Numbered, None, None]:
        for point in queue:
            yield point, self.work(point, lambda done: self.show(bar, done))

    def state(self) -> str:
        """Say how much is done, and how to go on."""
        kept = (
            f"kept in '{self.path}', call again to resume" if self.path else "use save= to be able to resume"
        )
        return f"{len(self.outcomes)} of {self.points} points; {kept}"


def elsewhere(
    work: Work, queue: deque[int], executor: Executor | DaskClient
) -> Generator[Numbered, None, None]:
    """Submit points, a few for each worker at a time; what is finished comes out even if another one failed."""
    pool = executor if isinstance(executor, Executor) else executor.get_executor(pure=False)
    pending: dict[Future[Any], int] = {}
    try:
        while queue or pending:
            while queue and len(pending) < IN_FLIGHT * workers(executor):
                pending[pool.submit(on_worker, origin(), work, queue[0], untold)] = queue[0]
                queue.popleft()
            finished, _ = wait(pending, return_when=FIRST_COMPLETED)
            failures = [failure_of(future) for future in finished]
            yield from ((pending.pop(f), f.result()) for f in finished if failure_of(f) is None)
            for failure in filter(None, failures):
                raise explained(failure)
    finally:
        for future in pending:
            future.cancel()


def untold(done: int) -> None:
    """Keep it to oneself: on a worker there is nobody to tell."""


def total_seconds(outcomes: Mapping[int, Outcome]) -> dict[str, float]:
    """Add up the time of each stage over all points."""
    stages = dict.fromkeys(stage for outcome in outcomes.values() for stage in outcome.seconds)
    return {stage: sum(outcome.seconds.get(stage, 0.0) for outcome in outcomes.values()) for stage in stages}


def saved_outcomes(
    header: Facts, arrays: Mapping[str, NDArray[Any]], column: str, values: NDArray[np.float64]
) -> dict[int, Outcome]:
    """Return what a file holds, by the places of its values among those asked for."""
    places = {value: k for k, value in enumerate(values.tolist())}
    clipped = arrays.get("clipped", np.zeros(len(arrays["values"]), np.int64))
    found = {
        places[value]: Outcome(numbers, int(count))
        for value, numbers, count in zip(arrays["values"].tolist(), arrays[column], clipped, strict=True)
        if value in places
    }
    for point, outcome in list(found.items())[:1]:  # only the sums over all points are in the file
        found[point] = replace(outcome, seconds=header["seconds"])
    return found
