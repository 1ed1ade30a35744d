"""Toys of tested values and of hypotheses as long jobs: one block for each value, and the ratio of likelihoods of each toy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.digests import sha256
from morefit.intervals.toys_at_points import Point, Side, Tested
from morefit.jobs.checkpoint import DIGEST, Facts, Saved, choose_seed, function_facts, read_saved, versions
from morefit.jobs.run import Block, DaskClient, Job, Report, Work, choose_place, run_job, share
from morefit.likelihood import Term
from morefit.records.fields import floats
from morefit.records.results import Layout, Result, concatenate
from morefit.resources import check_memory
from morefit.targets.base import Backend
from morefit.toys.arguments import events_of_toys, without_events
from morefit.toys.ensemble import Ensemble
from morefit.toys.task import likelihood_facts

Values = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class RatioToys(Frozen):
    """Toys at K tested values: t = 2 (nll with the parameter fixed - nll), nan if a fit failed, and the fitted values."""

    values: Array  # (K,)
    t: NDArray[np.float32]  # (K, T)
    estimates: Array  # (K, T)
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    backend: str = ""

    converted = {"seconds": floats}

    def __len__(self) -> int:
        return len(self.values)

    @property
    def below(self) -> Array:
        """The t of toys that fit less than the tested value, 0 of the others, (K, T): what limits test."""
        return self.one_sided(self.estimates <= self.values[:, None])

    @property
    def above(self) -> Array:
        """The t of toys that fit more than the tested value, 0 of the others, (K, T): what discoveries test."""
        return self.one_sided(self.estimates >= self.values[:, None])

    def one_sided(self, side: NDArray[np.bool_]) -> Array:
        return np.where(side | np.isnan(self.t), self.t, 0.0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Where toys are drawn and what they test: ``truths[k]`` and the value ``values[k]`` of the parameter ``name``."""

    name: str
    values: Array
    truths: tuple[Values, ...]
    starts: tuple[Values, ...]  # of free fits
    idle: tuple[tuple[str, ...], ...]  # fixed as well, at the truth
    bound: float | None = None  # as in ``Tested``
    shared_from: int | None = None  # as in ``Tested``
    side: Side = "both"  # as in ``Tested``


def draw_ratios(
    what: str,
    term: Term,
    hypotheses: Hypotheses,
    *,
    toys: int,
    seed: int | None,
    t_data: Array,
    backend: str | Backend,
    executor: Executor | DaskClient | None,
    save: str | Path | None,
    progress: bool,
) -> RatioToys:
    """Draw toys at each hypothesis and fit each twice; ``save`` holds finished hypotheses, and resumes."""
    layout = Layout(f"morefit {what} toys", ("seed", "seconds", "backend"), ("values", "t", "estimates"))
    saved, points = read_saved(what, save, layout, RatioToys), hypotheses.values
    tested = Tested(
        term=without_events(term), name=hypotheses.name, truths=tuple(map(dict, hypotheses.truths)),
        starts=hypotheses.starts, idle=hypotheses.idle, seed=choose_seed(seed, saved), purpose=layout.format, toys=toys,
        events=events_of_toys(what, term), values=tuple(points.tolist()), bound=hypotheses.bound,
        shared_from=hypotheses.shared_from, side=hypotheses.side, backend=choose_place(backend, executor, 2 * term.events * toys * len(points)),
    )  # fmt: skip

    def work(first: int, stop: int, report: Report) -> Work[RatioToys]:
        return partial(compute_points, tested, first, stop, report)

    return run_scan(
        tested, what=what, layout=layout, points=points, t_data=t_data, work=work,
        fitted=Point.free_and_conditional, save=save, saved=saved, executor=executor, progress=progress,
    )  # fmt: skip


def compute_points(tested: Tested, first: int, stop: int, report: Report) -> RatioToys:
    """Draw and fit the toys of one hypothesis, or of some that share their toys, on any worker."""
    assert tested.values is not None
    toys = (
        tested.shared_ratios(range(first, stop), report)
        if tested.are_shared(first)
        else tested.ratios(first, report)
    )
    assert toys.estimates is not None
    rows = stop - first
    return RatioToys(
        values=np.array(tested.values[first:stop]), t=toys.numbers.reshape(rows, -1), seed=tested.seed,
        estimates=toys.estimates.reshape(rows, -1), seconds=toys.seconds, backend=tested.backend.label,
    )  # fmt: skip


R = TypeVar("R", bound=Result)


def run_scan(
    tested: Tested,
    *,
    what: str,
    layout: Layout,
    points: Array,
    t_data: ArrayLike = (),
    work: Callable[[int, int, Report], Work[R]],
    fitted: Callable[[Point], Sequence[Ensemble]] | None = None,
    save: str | Path | None,
    saved: Saved[R] | None,
    executor: Executor | DaskClient | None,
    progress: bool,
) -> R:
    """Compute the toys at each point; ``work(first, stop, report)`` returns the function that does it for some of them.

    ``fitted`` returns what is fitted to the toys of a point, for those of several points to be fitted together.
    """
    name, size = f"{what} of {tested.name}", len(tested.truths)
    check_memory(f"{name}: {tested.toys:.6g} toys at each of {size:.6g} values", 8.0 * tested.toys * size)
    facts = {} if save is None else facts_of(tested, points, t_data)
    together = 1 if fitted is None or executor is not None else tested.backend.toys_together // tested.toys

    def compute(first: int, stop: int, report: Report) -> Work[R]:
        if fitted is None or stop - first == 1 or tested.are_shared(first):
            return work(first, stop, report)
        works = [
            work(k, k + 1, partial(add_to, report, (k - first) * tested.toys)) for k in range(first, stop)
        ]
        return partial(compute_together, tested, range(first, stop), fitted, works, layout)

    job = Job(
        name=name, noun="scan", items="points", size=size, layout=layout, facts=facts,
        cut=partial(cut_points, tested, max(together, 1), executor), work=compute, steps=tested.toys,
    )  # fmt: skip
    return run_job(job, save=save, saved=saved, executor=executor, progress=progress)


def cut_points(
    tested: Tested, together: int, executor: Executor | DaskClient | None, missing: Sequence[Block]
) -> Iterator[Block]:
    """Cut points into blocks of some each; of those that share their toys each worker computes some."""
    alone = len(tested.truths) if tested.shared_from is None else tested.shared_from
    for first, stop in missing:
        low, last = max(first, alone), min(stop, alone)
        yield from ((k, min(k + together, last)) for k in range(first, last, together))
        block = share([(low, stop)], executor, max(stop - alone, 1))
        yield from ((k, min(k + block, stop)) for k in range(low, stop, block))


def add_to(report: Report, before: int, done: int) -> None:
    report(before + done)


def compute_together(
    tested: Tested,
    points: Sequence[int],
    fitted: Callable[[Point], Sequence[Ensemble]],
    works: Sequence[Work[R]],
    layout: Layout,
) -> R:
    """Fit the toys of several points together, then compute each."""
    tested.begin(points, fitted)
    return concatenate(layout, [work() for work in works])


def facts_of(tested: Tested, points: Array, t_data: ArrayLike) -> Facts:
    """Return what the results of a scan depend on; truths, starts and data as a digest."""
    values = (*tested.truths, *tested.starts)
    numbers = np.concatenate([t_data, *([*known.values()] for known in values)])
    return {
        "model": likelihood_facts(tested.term),
        "fluctuate": tested.fluctuate,
        "parameter": tested.name,
        "values": points.tolist(),
        "events": list(tested.events),
        "data": {DIGEST: sha256(numbers.tobytes() + repr(tested.idle).encode()).hexdigest()},
        "estimator": function_facts("neyman_belt: estimator", tested.estimator),
        **({} if tested.bound is None else {"bound": tested.bound}),
        **({} if tested.shared_from is None else {"shared from": tested.shared_from}),
        "toys": tested.toys,
        "seed": tested.seed,
        "versions": versions(),
    }
