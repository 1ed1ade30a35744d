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
from morefit.jobs.checkpoint import Saved
from morefit.jobs.executors import Block, DaskClient, Report, Work
from morefit.jobs.facts import DIGEST, Facts, function_facts, versions
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
    work: Callable[[int, Report], Work[R]],
    fitted: Callable[[Point], Sequence[Ensemble]] | None = None,
    save: str | Path | None,
    saved: Saved[R] | None,
    executor: Executor | DaskClient | None,
    progress: bool,
) -> R:
    """Compute the toys at each point; ``work(k, report)`` returns the function that does it for point k.

    ``fitted`` returns what is fitted to the toys of a point, for those of several points to be fitted together.
    """
    name, size = f"{what} of {tested.name}", len(tested.truths)
    check_memory(f"{name}: {tested.toys:.6g} toys at each of {size:.6g} values", 8.0 * tested.toys * size)
    facts = {} if save is None else facts_of(tested, points, t_data)
    together = 1 if fitted is None or executor is not None else tested.backend.toys_together // tested.toys
    many = max(together, 1)

    def compute(first: int, stop: int, report: Report) -> Work[R]:
        if fitted is None or many == 1:
            return work(first, report)
        done = [partial(add_to, report, k * tested.toys) for k in range(stop - first)]
        points = range(first, stop)
        works = [work(k, count) for k, count in zip(points, done, strict=True)]
        return partial(compute_together, tested, points, fitted, works, layout)

    job = Job(
        name=name, noun="scan", items="points", size=size, layout=layout, facts=facts,
        cut=partial(cut_points, many), work=compute, steps=tested.toys,
    )  # fmt: skip
    return run_job(job, save=save, saved=saved, executor=executor, progress=progress)


def cut_points(many: int, missing: Sequence[Block]) -> Iterator[Block]:
    """Cut points into blocks of some each."""
    return ((k, min(k + many, stop)) for first, stop in missing for k in range(first, stop, many))


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
        "toys": tested.toys,
        "seed": tested.seed,
        "versions": versions(),
    }
