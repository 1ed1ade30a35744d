"""The file of a long job: locked, written now and then, read back to resume, with what its results depend on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.records.output import only_writer, writable_place
from morefit.records.results import Layout, Part, Result, built, read_result, split_result
from morefit.sampling.generate import check_seed, new_seed
from morefit.text.progress import tell
from morefit.workers import versions as versions  # one of the facts

DIGEST = "digest"
Facts = dict[str, Any]


def function_facts(what: str, function: Callable[..., Any] | None) -> Facts | None:
    """Return name and digest of a function; other versions of Python compile it to another code."""
    if function is None:
        return None
    from morefit.jobs.digest import function_digest  # only jobs with files need it

    name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    return {
        "name": name,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        DIGEST: function_digest(what, function),
    }


def differences(old: Facts, new: Facts) -> Iterator[str]:
    """Return in what a file and a job differ, one sentence each."""
    for name in dict.fromkeys([*new, *old]):
        saved, requested = old.get(name), new.get(name)
        if saved == requested:
            continue
        if isinstance(saved, Mapping) and isinstance(requested, Mapping):
            inside = list(differences(inner(name, saved), inner(name, requested)))
            why = "numbers in it, its code, or values that it uses or fills in, are different"
            yield from inside or [f"{name} looks like that of the file but is not the same: {why}"]
        elif not name.endswith(DIGEST):
            yield f"{name} is {printed(saved)} in the file, {printed(requested)} requested"


def inner(name: str, facts: Mapping[str, Any]) -> Facts:
    """Return the entries inside an entry, by their full names."""
    return {f"{name} {n}": value for n, value in facts.items()}


def printed(fact: Any) -> str:
    """Return a fact as text; of a model or a function only its formula or name."""
    shown = (
        next((fact[n] for n in ("formula", "name") if n in fact), fact) if isinstance(fact, Mapping) else fact
    )
    return repr(shown)


SAVE_SECONDS = 2.0  # the least time between two savings
SAVE_SHARE = 0.05  # the largest share of all time that they take
P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Result)


class Saved(NamedTuple, Generic[R]):
    """What a file holds of a job: what its results depend on, and the finished parts."""

    facts: Facts
    parts: Sequence[Part[R]]


def locks_file(what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Lock the file ``save=`` while a function runs; one that cannot be written is refused before the work begins."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def locked(*args: P.args, **options: P.kwargs) -> T:
            save = options.get("save")
            if save is None:
                return function(*args, **options)
            place = writable_place(what, save)  # type: ignore[arg-type]
            options["save"] = place
            with only_writer(what, place):
                return function(*args, **options)

        return locked

    return decorate


def read_saved(what: str, save: str | Path | None, layout: Layout, kind: type[R]) -> Saved[R] | None:
    """Return what the file of a job holds, None if there is no file yet."""
    if save is None or not Path(save).exists():
        return None
    content = read_result(what, save, layout)
    facts, runs = content.header.get("facts"), content.header.get("runs")
    if not isinstance(facts, Mapping) or not isinstance(runs, list):
        rule = "the file holds results, but not what they were computed from, so it cannot be resumed"
        raise DataError(f"{what} '{save}': {rule}; name another file")
    result = built(what, save, kind, content)
    return Saved(dict(facts), split_result(what, save, layout, result, runs))


def choose_seed(seed: int | None, saved: Saved[Any] | None) -> int:
    """Return the seed, by default that of the file to resume, or else a new one."""
    if seed is not None:
        return check_seed(seed)
    return new_seed() if saved is None else int(saved.facts["seed"])


@dataclass(eq=False)
class Checkpoint:
    """Writes a file now and then, without spending much time on it."""

    save: Callable[[], None]
    changed: bool = False  # since it was written
    next_write: float = 0.0
    failed: bool = False  # the last time

    def update(self) -> None:
        """Write new results if that is due; if it fails, it is tried again later."""
        self.changed = True
        if time.monotonic() < self.next_write:
            return
        try:
            self.write()
        except DataError as error:
            if not self.failed:
                tell(f"{error}; the work goes on, and writing is tried again")
            self.failed = True

    def write(self) -> None:
        """Write new results, if there are any."""
        if not self.changed:
            return
        begin = time.monotonic()
        try:
            self.save()
            self.changed = self.failed = False
        finally:
            end = time.monotonic()
            self.next_write = end + max(SAVE_SECONDS, (end - begin) / SAVE_SHARE)
