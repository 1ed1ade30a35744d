"""Scans of tested values as long jobs: one block for each value, with its toys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.intervals.toys_at_points import Point, Tested
from morefit.jobs.checkpoint import DIGEST, Facts, Saved, function_facts, versions
from morefit.jobs.executors import Block, DaskClient, Report, Work, share
from morefit.jobs.run import Job, run_job
from morefit.records.results import Layout, Result, concatenate
from morefit.resources import check_memory
from morefit.toys.ensemble import Ensemble
from morefit.toys.task import likelihood_facts

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
