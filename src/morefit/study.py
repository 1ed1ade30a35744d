"""Run a study of many toys: in blocks, here or on workers, saved on the way and resumed where it stopped."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
import zipfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from pickle import PicklingError
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from morefit.backend import Backend, Cpu, choose_backend
from morefit.data import Dataset
from morefit.errors import BackendError, DataError, ModelError
from morefit.expr import Expr, Symbol, Table, to_text, toposort
from morefit.fit.ensemble import SMALL, Ensemble, Fitted, Toys
from morefit.fit.result import suggest
from morefit.generate import Sizes, check_seed, expected_events, poisson_sizes
from morefit.model import Pdf
from morefit.model.pdf import check_model
from morefit.progress import Bar
from morefit.toys import ToyResults, morefit_version

MOST_EVENTS, MOST_TOYS = 2_000_000, 5_000  # of a block, unless the user says otherwise
BLOCKS_PER_WORKER = 4  # at least, so that none waits long for the last
IN_FLIGHT = 2  # blocks submitted for each worker: one to work on and one to go on with
SAVE_SECONDS, SAVE_SHARE = (
    2.0,
    0.05,
)  # the least time between two savings, and the most of all time that they take
MEMBER = "study.json"  # what a saved study has besides what ToyResults.save writes
SHOWN = 120  # characters of a model in a message

Statistic = Callable[[Dataset, Mapping[str, float]], float | Mapping[str, float]]
Block = tuple[int, int]  # the first toy, and the first that is not in it any more
Facts = dict[str, Any]
Parts = Generator[ToyResults, None, None]


@runtime_checkable
class DaskClient(Protocol):
    """What this file needs of a dask.distributed.Client."""

    def get_executor(self, **options: Any) -> Executor: ...

    def nthreads(self) -> Mapping[str, int]: ...


class BrokenStudy(BackendError):
    """The workers are gone; ``finished`` holds the toys that were done, if there are any."""

    def __init__(self, message: str, finished: ToyResults | None = None) -> None:
        super().__init__(message)
        self.finished = finished


def toy_study(
    model: Pdf,
    *,
    toys: int,
    events: int | Sequence[int] | NDArray[Any] | None = None,
    values: Mapping[str, float] | None = None,
    fit_model: Pdf | None = None,
    start: Mapping[str, float] | None = None,
    seed: int | None = None,
    statistic: Statistic | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
    block: int | None = None,
) -> ToyResults:
    """Draw toys from a model and fit each; none is left out, and the same seed gives the same bits.

    Parameters
    ----------
    events : of every toy, or one number for each; None draws Poisson numbers around what an extended model expects.
    values : the truth; start values of the parameters where it says nothing.
    fit_model : another model to fit. It starts at the truth where it has the same parameters; what it holds fixed
        stays where it says.
    statistic : called for each toy with its dataset and its fitted values; returns a number, or numbers by name.
    executor : a concurrent.futures.Executor or a dask.distributed.Client; its workers use one thread each, unless
        a backend is given.
    save : a file to keep finished toys in. The same call resumes a study that was stopped, with the same bits;
        asking for more toys extends it. Ctrl-C returns what is finished.
    block : toys that are worked on together; results do not depend on it.
    """
    toys, truth = whole("toys", toys), complete(model, values, "values")
    at_least("toys", toys, 1)
    fitted = model if fit_model is None else fit_model
    begin = starts(fitted, truth, start, keep_fixed=fit_model is not None)
    target = None if save is None else checked_path(Path(save))
    found = None if target is None or not target.exists() else read_study(target)
    chosen = pick_seed(seed, found)
    place = Cpu(threads=1) if executor is not None and backend == "auto" else choose_backend(backend)
    task = Task(model, fitted, truth, begin, chosen, place, statistic)
    task.ensemble()  # complains here, not on a worker
    study = Study(task, toy_sizes(model, truth, toys, events, chosen), target)
    if found is not None:
        study.resume(found)
    blocks = study.blocks(None if block is None else at_least("block", whole("block", block), 1), executor)
    return run(study, work(task, blocks, study.sizes, executor), progress)


def run(study: Study, parts: Parts, progress: bool) -> ToyResults:
    """Collect finished blocks until all are done, the user has seen enough or something breaks."""
    before, begin = study.done, time.monotonic()
    try:
        with closing(parts), Bar("toys", len(study.sizes), progress, unit="toys") as bar:
            for part in parts:
                study.add(part)
                speed = (study.done - before) / max(time.monotonic() - begin, 1e-9)
                bar.done(study.done, f"{speed:,.0f} toys/s")
    except KeyboardInterrupt:
        if not study.parts:
            raise
        study.write()
        print(study.interrupted(), file=sys.stderr)
    except BrokenExecutor as error:
        study.write()
        raise study.broken(error) from error
    finally:
        study.write()
    return study.longest()


# ------------------------------------------------------------------------------------ what is asked


def whole(what: str, number: Any) -> int:
    """Return a whole number, however it is written."""
    known = isinstance(number, int | float | np.integer | np.floating) and not isinstance(number, bool)
    if not known or not float(number).is_integer():
        raise ModelError(f"toy study: {what} must be a whole number, got {number!r}")
    return int(number)


def at_least(what: str, number: int, least: int) -> int:
    if number < least:
        raise ModelError(f"toy study: {what} must be at least {least}, got {number}")
    return number


def complete(model: Pdf, values: Mapping[str, float] | None, what: str) -> dict[str, float]:
    """Return values of all parameters: those given, or else where they start."""
    check_model(model)
    known = {p.name: p.start for p in model.parameters}
    strangers = [name for name in values or {} if name not in known]
    problems = [
        f"parameter '{name}': not in the model, but in {what}; {suggest(name, known)}" for name in strangers
    ]
    given = {name: float(value) for name, value in (values or {}).items()}
    problems += [
        f"parameter '{n}': {what} must be finite, got {v}" for n, v in given.items() if not np.isfinite(v)
    ]
    if problems:
        raise ModelError("; ".join(problems))
    return {name: float(value) for name, value in (known | given).items()}


def starts(
    fitted: Pdf, truth: Mapping[str, float], given: Mapping[str, float] | None, *, keep_fixed: bool
) -> dict[str, float]:
    """Return where the fits start: at the truth if it is known and inside the limits, but for what the user says."""
    begin = complete(fitted, given, "start")
    for p in fitted.parameters:
        if p.name in (given or {}):
            if not p.low <= begin[p.name] <= p.high:
                rule = f"start must lie in [{p.low}, {p.high}]"
                raise ModelError(f"parameter '{p.name}': {rule}, got {begin[p.name]}")
        elif p.name in truth and not (p.fixed and keep_fixed):
            begin[p.name] = truth[p.name] if p.fixed else min(max(truth[p.name], p.low), p.high)
    return begin


def toy_sizes(model: Pdf, truth: Mapping[str, float], toys: int, events: Any, seed: int) -> Sizes:
    """Return how many events each toy has."""
    if events is None:
        if model.expected_events() is None:
            raise ModelError(
                "toy study: events is missing; the model predicts no number, as one with yields would"
            )
        expected = expected_events(model, truth)
        if not 0 <= expected < np.inf:
            raise ModelError(f"toy study: the model must expect a finite number of events, got {expected}")
        return poisson_sizes(expected, toys, seed)
    numbers = [whole("events", number) for number in np.atleast_1d(np.asarray(events))]
    if np.ndim(events) and len(numbers) != toys:
        raise ModelError(
            f"toy study: events must be one number, or one for each of {toys} toys, got {len(numbers)}"
        )
    at_least("events", min(numbers), 0)
    return np.array(numbers if np.ndim(events) else numbers * toys, np.int64)


def pick_seed(seed: int | None, found: Saved | None) -> int:
    """Return the seed given, or else that of the study to resume, or else a new one."""
    if seed is not None:
        return check_seed(seed)
    return secrets.randbits(63) if found is None else int(found.facts["seed"])


# ------------------------------------------------------------------------------------ a block of toys


@dataclass(frozen=True, eq=False)
class Task:
    """What every worker needs to know. It pickles."""

    model: Pdf
    fit_model: Pdf
    truth: Mapping[str, float]
    start: Mapping[str, float]
    seed: int
    backend: Backend
    statistic: Statistic | None
    key: str = field(default_factory=lambda: secrets.token_hex(8))  # of this study in this process's memory

    def ensemble(self) -> Ensemble:
        return Ensemble(self.model, self.fit_model, self.truth, self.start, self.seed, self.backend)


kept = threading.local()  # the ensemble of the study that this thread works on


def kept_ensemble(task: Task) -> Ensemble:
    """Return the ensemble used for the last block, if it is of this study."""
    if getattr(kept, "key", None) != task.key:
        kept.ensemble, kept.key = task.ensemble(), task.key
    ensemble: Ensemble = kept.ensemble
    return ensemble


def work_block(task: Task, first: int, sizes: Sizes) -> ToyResults:
    """Draw and fit toys ``first``, ``first + 1``, ..."""
    return ToyResults.join(work_alike(task, kept_ensemble(task), first, sizes))


def work_alike(task: Task, ensemble: Ensemble, first: int, sizes: Sizes) -> Iterator[ToyResults]:
    """Work on toys so that none depends on its neighbours.

    A toy that exceeds the envelope makes the ensemble raise it, which changes every toy drawn with it. Halves are
    drawn again until that toy is alone, so that only its own number decides how it is drawn.
    """
    before = ensemble.sampler.margin
    piece = work_piece(task, ensemble.draw(first, sizes))
    raised = ensemble.sampler.margin != before
    if raised:
        kept.key = None  # the next block begins as the first did
    if not raised or len(sizes) == 1:
        yield piece
        return
    half = len(sizes) // 2
    for low, high in ((0, half), (half, len(sizes))):
        yield from work_alike(task, task.ensemble(), first + low, sizes[low:high])


def work_piece(task: Task, toys: Toys) -> ToyResults:
    """Fit toys, and ask the user's own function about each."""
    begin = time.perf_counter()
    names = tuple(p.name for p in toys.ensemble.floating)
    fitted = toys.fit()
    end = time.perf_counter()
    statistics = own_numbers(task, toys, names, fitted)
    seconds = {"draw and fit": end - begin}
    if task.statistic is not None:
        seconds["statistic"] = time.perf_counter() - end
    return ToyResults(
        names, task.truth, fitted.values, fitted.errors, fitted.nll, fitted.edm, fitted.valid, fitted.how,
        toys.sizes, task.seed, toys.first, statistics, seconds,
    )  # fmt: skip


def own_numbers(
    task: Task, toys: Toys, names: Sequence[str], fitted: Fitted
) -> dict[str, NDArray[np.float64]]:
    """Call the user's function for each toy."""
    if task.statistic is None:
        return {}
    rows = []
    for toy, found in enumerate(fitted.values.tolist()):
        try:
            answer = task.statistic(toys.dataset(toy), {**task.start, **dict(zip(names, found, strict=True))})
            rows.append(as_row(answer))
        except Exception as error:
            error.add_note(f"toy study: this came from the statistic of toy {toys.first + toy}")
            raise
        if rows[-1].keys() != rows[0].keys():
            rule = f"the statistic must return the same names for every toy, {', '.join(rows[0])}"
            raise ModelError(f"toy study: {rule}, got {', '.join(rows[-1])} for toy {toys.first + toy}")
    return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}


def as_row(answer: float | Mapping[str, float]) -> dict[str, float]:
    """Return what a statistic says, by name; a number alone is called 'statistic'."""
    named = answer if isinstance(answer, Mapping) else {"statistic": answer}
    return {str(name): float(number) for name, number in named.items()}


# ------------------------------------------------------------------------------------ many blocks


def cut(first: int, stop: int, sizes: Sizes, most: int) -> Iterator[Block]:
    """Cut toys into blocks of so many toys, and not too many events, each; small and large ones do not mix."""
    ends = np.cumsum(sizes)
    turns = np.flatnonzero(np.diff(sizes <= SMALL)) + 1
    while first < stop:
        full = int(np.searchsorted(ends, ends[first] - sizes[first] + MOST_EVENTS, "right"))
        turn = next(iter(turns[turns > first].tolist()), stop)
        end = min(first + most, max(full, first + 1), turn, stop)
        yield first, end
        first = end


def work(task: Task, blocks: Sequence[Block], sizes: Sizes, executor: Executor | DaskClient | None) -> Parts:
    """Work on blocks, here one after the other or on workers in any order."""
    if executor is None:
        return (work_block(task, first, sizes[first:stop]) for first, stop in blocks)
    if isinstance(executor, Executor | DaskClient):
        return work_elsewhere(task, deque(blocks), sizes, executor)
    rule = "executor must be a concurrent.futures.Executor or a dask.distributed.Client"
    raise BackendError(f"toy study: {rule}, got {type(executor).__name__}")


def work_elsewhere(task: Task, queue: deque[Block], sizes: Sizes, executor: Executor | DaskClient) -> Parts:
    """Submit blocks, a few for each worker at a time; what is finished comes out even if another one failed."""
    pool = executor if isinstance(executor, Executor) else executor.get_executor(pure=False)
    pending: set[Future[ToyResults]] = set()
    failure: BaseException | None = None
    try:
        while queue or pending:
            failure = submit(pool, task, queue, sizes, pending, IN_FLIGHT * workers(executor))
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            if failure is None:
                failure = next(filter(None, map(failure_of, finished)), None)
            yield from (future.result() for future in finished if failure_of(future) is None)
            if failure is not None:
                raise explained(failure)
    finally:
        for future in pending:
            future.cancel()


def submit(
    pool: Executor, task: Task, queue: deque[Block], sizes: Sizes, pending: set[Future[ToyResults]], most: int
) -> BaseException | None:
    """Keep so many blocks under way; a pool that takes no more is returned as an error."""
    while queue and len(pending) < most:
        first, stop = queue[0]
        try:
            pending.add(pool.submit(work_block, task, first, sizes[first:stop]))
        except BrokenExecutor as error:
            return error
        queue.popleft()
    return None


def failure_of(future: Future[ToyResults]) -> BaseException | None:
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


def workers(executor: Executor | DaskClient) -> int:
    """Return how many blocks an executor can work on at once."""
    if isinstance(executor, DaskClient):
        return max(sum(executor.nthreads().values()), 1)
    known = (getattr(executor, name, None) for name in ("num_workers", "_max_workers"))  # mpi4py, the library
    return next((n for n in known if isinstance(n, int) and n > 0), os.cpu_count() or 1)


# ------------------------------------------------------------------------------------ the study


@dataclass(eq=False)
class Study:
    """The toys that are asked for and those that are finished; it keeps its file up to date."""

    task: Task
    sizes: Sizes
    path: Path | None
    parts: list[ToyResults] = field(default_factory=list)
    changed: bool = False  # since it was written
    next_write: float = 0.0

    @cached_property
    def facts(self) -> Facts:
        """What makes this study this one; what follows from it, such as results, is not here."""
        task = self.task
        return {
            "model": fingerprint(task.model),
            "fitted model": fingerprint(task.fit_model),
            "truth": dict(task.truth),
            "start": dict(task.start),
            "seed": task.seed,
            "statistic": name_of(task.statistic),
            "backend": task.backend.name,
            "versions": versions(),
        }

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

    def blocks(self, most: int | None, executor: Executor | DaskClient | None) -> list[Block]:
        """Cut what is missing into blocks, enough of them for all workers."""
        if most is None:
            most = MOST_TOYS
            if isinstance(executor, Executor | DaskClient):
                left = len(self.sizes) - self.done
                most = min(most, max(-(-left // (BLOCKS_PER_WORKER * workers(executor))), 1))
        return [block for first, stop in self.missing() for block in cut(first, stop, self.sizes, most)]

    def add(self, part: ToyResults) -> None:
        """Take a finished block, and write the file if that is due."""
        names = list((self.parts or [part])[0].statistics)
        if list(part.statistics) != names:
            rule = f"the statistic must return the same names for every toy, {', '.join(names)}"
            raise ModelError(f"toy study: {rule}, got {', '.join(part.statistics)} from toy {part.first} on")
        self.parts.append(part)
        self.changed = True
        if time.monotonic() >= self.next_write:
            self.write()

    def write(self) -> None:
        """Write what is finished, if there is a file and something new."""
        if self.path is None or not self.changed:
            return
        begin = time.monotonic()
        self.parts = contiguous(self.parts)
        write_study(self.path, Saved(self.facts, self.parts))
        self.changed = False
        end = time.monotonic()
        self.next_write = end + max(SAVE_SECONDS, (end - begin) / SAVE_SHARE)

    def longest(self) -> ToyResults:
        """Return what is finished, the longest stretch if toys in between are missing."""
        return max(contiguous(self.parts), key=len)

    def interrupted(self) -> str:
        here = self.longest()
        text = f"toy study: interrupted; returning toys {here.first} to {here.first + len(here) - 1} of {len(self.sizes)}"
        return f"{text}; {self.kept()}"

    def broken(self, error: BaseException) -> BrokenStudy:
        text = (
            f"toy study: the workers are gone ({error}); {self.done} of {len(self.sizes)} toys are finished"
        )
        return BrokenStudy(f"{text}; {self.kept()}", self.longest() if self.parts else None)

    def kept(self) -> str:
        """Say how to go on."""
        if self.path is None:
            return "use save= to be able to resume"
        return f"finished ones are kept in '{self.path}', call again to resume"


def contiguous(parts: Iterable[ToyResults]) -> list[ToyResults]:
    """Join parts that follow each other."""
    groups: list[list[ToyResults]] = []
    for part in sorted(parts, key=lambda part: part.first):
        if groups and groups[-1][-1].first + len(groups[-1][-1]) == part.first:
            groups[-1].append(part)
        else:
            groups.append([part])
    return [group[0] if len(group) == 1 else ToyResults.join(group) for group in groups]


# ------------------------------------------------------------------------------------ what makes a study


def fingerprint(model: Pdf) -> dict[str, str]:
    """Return a digest of everything in a model that results depend on, and a text to recognise it by."""
    density, expected = model.density(), model.expected_events()
    roots = [density, model.log_intensity(), *([] if expected is None else [expected])]
    lines = [f"{o.name} {o.low!r} {o.high!r}" for o in model.observables]
    lines += [f"{p.name} {p.low!r} {p.high!r} {p.fixed}" for p in model.parameters]
    lines += graph_lines(roots)
    return {"text": to_text(density, SHOWN), "digest": sha256("\n".join(lines).encode()).hexdigest()}


def graph_lines(roots: Sequence[Expr]) -> Iterator[str]:
    """Write graphs a node a line, to the last bit: text in full would repeat what is shared."""
    number: dict[Expr, int] = {}
    for node in toposort(*roots):
        number[node] = len(number)
        yield f"{node.op.name} {leaf_text(node.value)} {[number[a] for a in node.args]}"
    yield str([number[root] for root in roots])


def leaf_text(value: object) -> str:
    if isinstance(value, Table):
        return f"{value.name} {sha256(value.numbers).hexdigest()}"
    if isinstance(value, Symbol):
        return value.name
    return value.hex() if isinstance(value, float) else str(value)


def name_of(statistic: Statistic | None) -> str | None:
    """Name a function; what is in it cannot be compared."""
    if statistic is None:
        return None
    return f"{statistic.__module__}.{getattr(statistic, '__qualname__', type(statistic).__qualname__)}"


def versions() -> dict[str, str]:
    """Return the versions of what the last bits depend on."""
    return {"morefit": morefit_version()} | {n: metadata.version(n) for n in ("numpy", "llvmlite", "iminuit")}


def differences(old: Facts, new: Facts) -> Iterator[str]:
    """Say in what two studies differ."""
    for name, asked in new.items():
        found = old.get(name)
        if found == asked:
            continue
        if name.endswith("model"):
            yield f"{name}: {(found or {}).get('text')!r} in the file, {asked['text']!r} asked for"
        elif isinstance(asked, dict):
            yield from differences({f"{name} {n}": v for n, v in (found or {}).items()},
                                   {f"{name} {n}": v for n, v in asked.items()})  # fmt: skip
        else:
            yield f"{name}: {found!r} in the file, {asked!r} asked for"


def other_events(runs: Sequence[ToyResults], sizes: Sizes) -> Iterator[str]:
    """Say which toys have another number of events in a file, or should not be there."""
    last = max(run.first + len(run) for run in runs)
    if last > len(sizes):
        yield f"toys: up to {last} in the file, {len(sizes)} asked for"
    for run in runs:
        asked = sizes[run.first : run.first + len(run)]
        wrong = np.flatnonzero(asked != run.events[: len(asked)])
        if len(wrong):
            toy = int(wrong[0])
            yield f"events: {run.events[toy]} in toy {run.first + toy} of the file, {asked[toy]} asked for"
            return


# ------------------------------------------------------------------------------------ files


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds: the facts of a study, and its finished toys in runs without gaps."""

    facts: Facts
    runs: Sequence[ToyResults]


def checked_path(path: Path) -> Path:
    """Refuse a place that nothing can be written to, before the work begins."""
    if not path.parent.is_dir():
        raise DataError(f"toy study '{path}': there is no folder '{path.parent}'; make it first")
    return path


def write_study(path: Path, saved: Saved) -> None:
    """Write what ToyResults.load can read, the first run, with the facts and further runs added; all or nothing."""
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        files = [Path(folder) / f"run_{k}.npz" for k in range(len(saved.runs))]
        for file, results in zip(files, saved.runs, strict=True):
            results.save(file)
        with files[0].open("r+b") as stream:
            with zipfile.ZipFile(stream, "a") as archive:
                archive.writestr(MEMBER, json.dumps(saved.facts))
                for file in files[1:]:
                    archive.write(file, file.name)
            stream.flush()
            os.fsync(stream.fileno())
        files[0].replace(path)


def read_study(path: Path) -> Saved:
    """Read back what ``write_study`` wrote."""
    try:
        with zipfile.ZipFile(path) as archive, TemporaryDirectory() as folder:
            facts = json.loads(archive.read(MEMBER))
            later = [name for name in archive.namelist() if name.startswith("run_")]
            files = [path, *(Path(archive.extract(name, folder)) for name in later)]
            return Saved(facts, [ToyResults.load(file) for file in files])
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"toy study '{path}': the file holds no study, {error}; name another file") from error
