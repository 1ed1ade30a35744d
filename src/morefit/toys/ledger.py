"""The toys that are asked for and those that are finished, and what to say when a study stops early."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from morefit.errors import DataError, ModelError
from morefit.jobs.checkpoint import BrokenStudy, Keeper
from morefit.jobs.executors import DaskClient, workers
from morefit.jobs.facts import Facts, differences
from morefit.sampling.generate import Sizes
from morefit.toys.blocks import BLOCKS_PER_WORKER, GROWN_EVENTS, MOST_EVENTS, Block, Pace, cut, events_of
from morefit.toys.results import ToyResults
from morefit.toys.saved import Saved, write_study
from morefit.toys.task import Task, facts_of


@dataclass(eq=False)
class Study:
    """The toys that are asked for and those that are finished; it keeps its file up to date."""

    task: Task
    sizes: Sizes
    path: Path | None
    parts: list[ToyResults] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keeper = Keeper(self.path, self.save)

    @cached_property
    def facts(self) -> Facts:
        return facts_of(self.task)

    @property
    def done(self) -> int:
        return sum(map(len, self.parts))

    def resume(self, found: Saved) -> None:
        """Take over finished toys from a file, if it holds the same study."""
        problems = [*differences(found.facts, self.facts), *other_events(found.runs, self.sizes)]
        if problems:
            remedy = "name another file, remove this one, or look at it with ToyResults.load"
            raise DataError(
                f"toy study '{self.path}': the file holds another study: {'; '.join(problems)}; {remedy}"
            )
        self.parts = list(found.runs)

    def missing(self) -> Iterator[Block]:
        """Go through the toys that are not finished yet, in one piece where they follow each other."""
        next_toy = 0
        for part in sorted(self.parts, key=lambda part: part.first):
            if part.first > next_toy:
                yield next_toy, part.first
            next_toy = part.first + len(part)
        if next_toy < len(self.sizes):
            yield next_toy, len(self.sizes)

    def pace(self, executor: Executor | DaskClient | None) -> Pace:
        """Return how many toys a block has, few enough for all workers to have some."""
        pace = Pace(most_events=GROWN_EVENTS if self.task.statistic is None else MOST_EVENTS)
        if isinstance(executor, Executor | DaskClient):
            left = len(self.sizes) - self.done
            pace.toys = min(pace.toys, max(-(-left // (BLOCKS_PER_WORKER * workers(executor))), 1))
        return pace

    def blocks(self, pace: Pace) -> Iterator[Block]:
        """Cut what is missing into blocks."""
        for first, stop in list(self.missing()):
            yield from cut(first, stop, self.sizes, pace)

    def add(self, part: ToyResults) -> None:
        """Take a finished block, and write the file if that is due."""
        names = list((self.parts or [part])[0].statistics)
        if list(part.statistics) != names:
            rule = f"the statistic must return the same names for every toy, {', '.join(names)}"
            raise ModelError(f"toy study: {rule}, got {', '.join(part.statistics)} from toy {part.first} on")
        self.parts.append(part)
        self.keeper.note()

    def save(self, path: Path) -> None:
        """Write what is finished, with few runs."""
        self.parts = contiguous(self.parts)
        write_study(path, Saved(self.facts, self.parts))

    def longest(self) -> ToyResults:
        """Return what is finished, the longest stretch if toys in between are missing."""
        return max(contiguous(self.parts), key=len)

    def interrupted(self) -> str:
        here = self.longest()
        text = f"toy study: interrupted; returning toys {here.first} to {here.first + len(here) - 1} of {len(self.sizes)}"
        return f"{text}; {self.kept()}"

    def broken(self, why: str) -> BrokenStudy:
        what = why if why.startswith("toy study") else f"toy study: {why}"
        text = f"{what}; {self.done} of {len(self.sizes)} toys are finished"
        return BrokenStudy(f"{text}; {self.kept()}", self.longest() if self.parts else None)

    def keep(self) -> None:
        """Write what is finished; if that fails, it is in the error."""
        try:
            self.keeper.write()
        except DataError as error:
            raise self.broken(str(error)) from error

    def kept(self) -> str:
        """Say how to go on."""
        if self.path is None:
            return "use save= to be able to resume"
        if self.keeper.changed:
            return "they are not in the file, but in what this error carries: error.finished.save('elsewhere.npz')"
        return f"finished ones are kept in '{self.path}', call again to resume, with any backend"


def contiguous(parts: Iterable[ToyResults]) -> list[ToyResults]:
    """Join parts that follow each other."""
    groups: list[list[ToyResults]] = []
    for part in sorted(parts, key=lambda part: part.first):
        if groups and groups[-1][-1].first + len(groups[-1][-1]) == part.first:
            groups[-1].append(part)
        else:
            groups.append([part])
    return [group[0] if len(group) == 1 else ToyResults.join(group) for group in groups]


def other_events(runs: Sequence[ToyResults], sizes: Sizes) -> Iterator[str]:
    """Say which toys have another number of events in a file, or should not be there."""
    last = max(run.first + len(run) for run in runs)
    if last > len(sizes):
        yield f"toys: up to {last} in the file, {len(sizes)} asked for"
    for run in runs:
        asked = events_of(sizes)[run.first : run.first + len(run)]
        wrong = np.flatnonzero(asked != run.events[: len(asked)])
        if len(wrong):
            toy = int(wrong[0])
            yield f"events: {run.events[toy]} in toy {run.first + toy} of the file, {asked[toy]} asked for"
            return
