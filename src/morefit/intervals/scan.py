"""Scans of tested values as long jobs: one block for each value, with its toys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.intervals.toys_at_points import Tested
from morefit.jobs.checkpoint import Saved
from morefit.jobs.executors import Block, DaskClient, Report, Work
from morefit.jobs.facts import DIGEST, Facts, function_facts, versions
from morefit.jobs.run import Job, run_job
from morefit.records.results import Layout, Result
from morefit.resources import check_memory
from morefit.toys.task import likelihood_facts

R = TypeVar("R", bound=Result)
Cut = Callable[[Sequence[Block]], Iterator[Block]]


def run_scan(
    tested: Tested,
    *,
    what: str,
    layout: Layout,
    points: Array,
    t_data: ArrayLike = (),
    work: Callable[[int, int, Report], Work[R]],
    cut: Cut | None = None,
    save: str | Path | None,
    saved: Saved[R] | None,
    executor: Executor | DaskClient | None,
    progress: bool,
) -> R:
    """Compute the toys at each point; ``work(first, stop, report)`` returns the function that does it for some of them.

    By default points are computed one by one.
    """
    name, size = f"{what} of {tested.name}", len(tested.truths)
    check_memory(f"{name}: {tested.toys:.6g} toys at each of {size:.6g} values", 8.0 * tested.toys * size)
    facts = {} if save is None else facts_of(tested, points, t_data)
    job = Job(
        name=name, noun="scan", items="points", size=size, layout=layout, facts=facts, cut=cut or one_by_one,
        work=work, steps=tested.toys,
    )  # fmt: skip
    return run_job(job, save=save, saved=saved, executor=executor, progress=progress)


def one_by_one(missing: Sequence[Block]) -> Iterator[Block]:
    """Cut points into blocks of one each."""
    return ((k, k + 1) for first, stop in missing for k in range(first, stop))


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
