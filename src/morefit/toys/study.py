"""Toy studies: draw toys from a model and fit each, as a long job in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import row_sums
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.jobs.checkpoint import Facts, choose_seed, locks_file, read_saved
from morefit.jobs.run import Block, DaskClient, Job, Report, Work, choose_place, run_job, share
from morefit.likelihood import Simultaneous, Term
from morefit.likelihood.observed import observed
from morefit.likelihood.sums import check_constrained
from morefit.model import Pdf
from morefit.model.observable import Ranges
from morefit.model.region import YieldsIn
from morefit.records.results import Layout, Part
from morefit.sampling.generate import Sizes
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.toys.arguments import (
    PartNumbers,
    check_rows,
    complete,
    starts,
    template_of,
    toy_sizes,
    warn_of_truth,
    whole,
    without_events,
)
from morefit.toys.results import LAYOUT, ToyResults
from morefit.toys.task import Statistic, Task, compute_block, facts_of, last_ensemble, other_names
from morefit.toys.whole_fits import SMALL

if TYPE_CHECKING:
    from concurrent.futures import Executor

MAX_EVENTS, MAX_TOYS = 32_000_000, 5_000  # of a block, unless the user chooses the number of toys
# seconds of a block: those that are done sooner become larger, up to so many times
WANTED, MAX_GROWTH = 0.5, 8
GROWN_EVENTS = 8 * MAX_EVENTS  # of a block that grew, if no statistic looks at them


@dataclass
class Pace:
    """How many toys a block has; more and more while they take no time, unless the number is fixed."""

    toys: int = MAX_TOYS
    fixed: bool = False
    events: int = MAX_EVENTS
    max_events: int = GROWN_EVENTS

    def update(self, seconds: float) -> None:
        """Adapt the number of toys to the time that the last block took."""
        growth = int(min(WANTED / max(seconds, 1e-9), MAX_GROWTH))
        if growth > 1 and not self.fixed:
            self.toys *= growth
            self.events = min(growth * self.events, self.max_events)


def cut_all(
    missing: Sequence[Block], sizes: Sizes, pace: Pace, executor: Executor | DaskClient | None
) -> Iterator[Block]:
    """Cut all toys that are missing into blocks."""
    if not pace.fixed:
        pace.toys = share(missing, executor, pace.toys)
    for first, stop in missing:
        yield from cut(first, stop, sizes, pace)


def cut(first: int, stop: int, sizes: Sizes, pace: Pace) -> Iterator[Block]:
    """Cut toys into blocks of not too many toys and events each; small and large ones do not mix."""
    sizes = row_sums(sizes)
    ends = np.cumsum(sizes)
    turns = np.flatnonzero(np.diff(sizes <= SMALL)) + 1
    while first < stop:
        full = int(np.searchsorted(ends, ends[first] - sizes[first] + pace.events, "right"))
        turn = next(iter(turns[turns > first].tolist()), stop)
        end = min(first + pace.toys, max(full, first + 1), turn, stop)
        yield first, end
        first = end


NAME = "toy study"


@locks_file(NAME)
@in_sentences
def toy_study(
    model: Pdf | Simultaneous | Term,
    *,
    toys: int,
    events: int | Sequence[int] | NDArray[Any] | Mapping[str, int] | None = None,
    truth: Any = None,
    fit_model: Pdf | Simultaneous | Term | None = None,
    weights: Any = None,
    constraints: Sequence[Any] | Any = (),
    ranges: Ranges | None = None,
    yields_in: YieldsIn = "full",
    fluctuate: bool = True,
    given: Any = None,
    resample: bool = True,
    start: Any = None,
    thorough: bool = False,
    seed: int | None = None,
    statistic: Statistic | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
    block: int | None = None,
) -> ToyResults:
    """Draw toys of a model or a likelihood and fit each; none is left out, and the same seed gives the same bits.

    Parameters
    ----------
    events : of every toy, or one number for each; None draws Poisson numbers around what an extended model expects,
        and else takes as many as a likelihood has. Of ``mf.Simultaneous``, numbers by label.
    truth : true values by name, or the result of a fit; by default the start values of the parameters.
    constraints : of a model; each toy draws what they measure around the truth, unless ``fluctuate`` is False.
    ranges, yields_in : of a model, as in ``fit``; events are drawn and fitted in them.
    given : data with the columns that a conditional model is given; a likelihood has its own. Each toy draws rows of
        them, as many as it has events; with ``resample=False`` every toy has all rows as they are.
    fit_model : another model or likelihood to fit, from the truth where it has the same parameters; fixed ones stay.
    weights : in the fit, a formula of observables; events follow the model divided by it, unless there is a ``fit_model``.
    thorough : start every fit again elsewhere, for models with several minima, not only those that end at a limit.
    statistic : called for each toy with its dataset and its fitted values; returns a number, or numbers by name.
    executor : a concurrent.futures.Executor or a dask.distributed.Client; workers use one thread each by default.
    save : a file for finished toys. The same call resumes a study that was stopped, with the same bits; more toys
        extend it. Ctrl-C returns what is finished, and errors carry it (``BrokenJob``).
    block : toys that are computed together; results do not depend on it.

    Example: ``mf.toy_study(model, toys=100, seed=2, progress=False)``
    """
    toys, pace = whole("toys", toys, 1), choose_pace(block, statistic)
    template = partial(template_of, NAME, constraints=constraints, ranges=ranges, yields_in=yields_in)
    drawn, fitted = drawn_and_fitted(template, model, fit_model, given=given, weights=weights)
    truth = complete(drawn, truth, "truth")
    seed = choose_seed(seed, saved := read_saved(NAME, save, LAYOUT, ToyResults))
    sizes = toy_sizes(drawn, truth, toys, PartNumbers.of(model, events, given), seed)
    check_rows(drawn, sizes, resample)
    warn_of_truth(fitted, truth)
    task = Task(
        drawn=without_events(drawn), fitted=without_events(fitted), truth=truth, seed=seed, toys=toys,
        start=starts(fitted, truth, start, keep_fixed=fit_model is not None), statistic=statistic, fluctuate=fluctuate,
        thorough=bool(thorough), resample=resample, backend=choose_place(backend, executor, int(sizes.sum())),
    )  # fmt: skip
    job = study_job(task, sizes, pace, executor, {} if save is None else facts_of(task))
    return run_job(job, save=save, saved=saved, executor=executor, progress=progress)


def drawn_and_fitted(
    template: Callable[..., Term],
    model: Pdf | Simultaneous | Term,
    fit_model: Pdf | Simultaneous | Term | None,
    *,
    given: Any,
    weights: Any,
) -> tuple[Term, Term]:
    """Return what toys are drawn from, and what is fitted to them; weights belong to the latter."""
    fitted = own = template(model, given=given, weights=weights if fit_model is None else None, weighted=True)
    if fit_model is not None:
        fitted = template(ordered_as(model, fit_model), weights=weights, weighted=True)
    check_constrained((*own.parts, *fitted.parts))
    return observed(NAME, own), fitted


def ordered_as(model: Pdf | Simultaneous | Term, fit_model: Pdf | Simultaneous | Term) -> Any:
    """Return what is fitted, the categories of simultaneous models in the order in which they are drawn."""
    return fit_model.in_order_of(model) if isinstance(fit_model, Simultaneous) else fit_model


def study_job(
    task: Task, sizes: Sizes, pace: Pace, executor: Executor | DaskClient | None, facts: Facts
) -> Job[ToyResults]:
    """Return a study as a long job: blocks of toys, of which the longest stretch without gaps is the result."""
    last_ensemble(task)  # raises errors here, not on a worker

    def work(first: int, stop: int, report: Report) -> Work[ToyResults]:
        return partial(compute_block, task, first, sizes[first:stop])

    def cut(missing: Sequence[Block]) -> Iterator[Block]:
        return cut_all(missing, sizes, pace, executor)

    return Job(
        name=NAME, noun="study", items="toys", size=len(sizes), layout=LAYOUT, facts=facts, cut=cut, work=work,
        collect=longest, check=check_statistics, check_saved=partial(other_events, sizes), timed=pace.update,
    )  # fmt: skip


def choose_pace(block: int | None, statistic: Statistic | None) -> Pace:
    """Return how many toys and events blocks have; those that a statistic looks at do not grow in events."""
    if not (statistic is None or callable(statistic)):
        raise OptionError(
            f"toy study: the statistic must be a function of a dataset and fitted values, got {statistic!r}"
        )
    if block is not None:
        return Pace(whole("block", block, 1), fixed=True)
    return Pace(max_events=GROWN_EVENTS if statistic is None else MAX_EVENTS)


def longest(layout: Layout, parts: Sequence[Part[ToyResults]]) -> ToyResults:
    """Return the toys that are finished, the longest stretch if toys in between are missing."""
    part = max(parts, key=lambda part: part.stop - part.first)
    return part.result if part.result.first == part.first else replace(part.result, first=part.first)


def check_statistics(first: Part[ToyResults], new: Part[ToyResults]) -> None:
    """Refuse a block whose statistics have other names than those of the first one."""
    if list(first.result.statistics) != list(new.result.statistics):
        raise other_names(first.result.statistics, new.result.statistics, new.first)


def other_events(sizes: Sizes, part: Part[ToyResults]) -> Iterator[str]:
    """Return which toy of a file has another number of events than requested, the first of them."""
    requested = row_sums(sizes)[part.first : part.stop]
    wrong = np.flatnonzero(requested != part.result.events[: len(requested)])
    for toy in wrong[:1].tolist():
        saved = part.result.events[toy]
        yield f"events of toy {part.first + toy} are {saved} in the file, {requested[toy]} requested"
