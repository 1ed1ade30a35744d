"""Toys of tests of hypotheses as long jobs: the ratio of likelihoods of each, and the value that it fits."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.intervals.scan import run_scan
from morefit.intervals.toys_at_points import Point, Side, Tested
from morefit.jobs.checkpoint import choose_seed, read_saved
from morefit.jobs.executors import DaskClient, Report, Work, choose_place
from morefit.likelihood import Simultaneous, Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import best_fit, unseen
from morefit.minimise.problem import as_likelihood
from morefit.model import Pdf
from morefit.records.fields import floats
from morefit.records.results import Layout
from morefit.targets.base import Backend
from morefit.toys.arguments import events_of_toys, without_events

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


def start_test(
    what: str, model: Term | Pdf | Simultaneous, data: Any, best: FitResult | None, signal: str | None = None
) -> tuple[Term, FitResult]:
    """Return the likelihood and its best fit, if its ratios have the distributions that tests assume.

    What is fixed in the best fit is fixed in the likelihood, and so in toys, but for parameters that data without events do
    not determine. ``signal`` is the parameter that is 0 where there is none.
    """
    likelihood = as_likelihood(what, model, data)
    if likelihood.weighted:
        raise DataError(
            f"{what}: events with weights have ratios of likelihoods of another distribution, so the data must not have any;"
            " take the value and the error of mf.fit, or the spread of mf.intervals.bootstrap"
        )
    if any(p.name == signal and p.blind and p.blind_by != "scale" for p in likelihood.all_parameters):
        raise DataError(
            f"{what}: parameter '{signal}': is blinded, so that it is not known where it is 0; unblind it"
        )
    best = best_fit(what, likelihood, best)
    free = {*best.floating, *unseen(likelihood)}
    fixed = [p.name for p in likelihood.parameters if p.name not in free]
    return (likelihood.fixing(fixed) if fixed else likelihood), best
