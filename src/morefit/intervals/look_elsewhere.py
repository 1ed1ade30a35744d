"""The look-elsewhere effect: how often the largest of the local significances of a scan is so large by chance."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import field
from functools import partial
from math import exp, nan, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array, Frozen
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.intervals.data_fits import minimised, start_test, without_effect
from morefit.intervals.free_fits import ToyPValue
from morefit.intervals.interval import tail_probability
from morefit.intervals.scan import Hypotheses, run_scan
from morefit.intervals.toys_at_points import Point, Tested
from morefit.jobs.checkpoint import choose_seed, locks_file, read_saved
from morefit.jobs.run import DaskClient, Report, Work, choose_place
from morefit.likelihood import Simultaneous, Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import check_floating, check_points
from morefit.model import Parameter, Pdf
from morefit.records.fields import floats
from morefit.records.results import Layout
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.toys.arguments import events_of_toys, without_events
from morefit.validate import finite_number, name_of, number_list, whole_number

NAME = "look_elsewhere"
BLOCK = 2000  # toys that are saved together
LEVEL = 1.0  # of q, at which upcrossings are counted


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class LookElsewhere(ToyPValue):
    """The test of a parameter being ``value`` at K points of another one, such as a signal at K masses.

    ``q`` is that of ``discovery`` at each point. ``toy_p_value`` is the global p-value: the fraction of toys without a
    signal whose largest q is at least that of the data. ``p_value`` is that of Gross and Vitells (arXiv:1005.1891): the
    local one, and how often toys cross a low level upwards, which also few toys tell, scaled to the level of the data.
    """

    name: str
    scanned: str
    value: float
    points: Array  # (K,)
    q: Array  # (K,)
    best: Array  # (K,) fitted values of the parameter
    toy_q: NDArray[np.float32]  # (T, K), nan where a fit failed

    @property
    def observed(self) -> float:
        return float(self.q.max())

    @property
    def toys(self) -> Array:  # type: ignore[override]
        """The largest q of each toy, (T,)."""
        return np.asarray(self.toy_q.max(axis=1, initial=0.0), np.float64) if len(self.toy_q) else np.empty(0)

    @property
    def point(self) -> float:
        """Where q is largest."""
        return float(self.points[int(np.argmax(self.q))])

    @property
    def local_significance(self) -> float:
        """The largest local significance, in standard deviations."""
        return sqrt(self.observed)

    @property
    def local_p_value(self) -> float:
        """The probability of so large a q at one point, for many events."""
        return tail_probability(self.local_significance)

    @property
    def upcrossings(self) -> float:
        """How often the q of a toy crosses the level 1 upwards along the points, on average; nan without toys."""
        above = np.nan_to_num(self.toy_q, nan=np.inf) > LEVEL
        return float(np.mean(np.sum(~above[:, :-1] & above[:, 1:], axis=1))) if len(above) else nan

    @property
    def p_value(self) -> float:
        """The global p-value from the local one and the upcrossings of toys; nan without toys."""
        return min(self.local_p_value + self.upcrossings * exp(0.5 * (LEVEL - self.observed)), 1.0)

    @property
    def significance(self) -> float:
        """The global significance, that of ``p_value``, in standard deviations; 0 if it is not below a half."""
        return (
            -NormalDist().inv_cdf(self.p_value)
            if 0 < self.p_value < 0.5
            else nan
            if len(self.toy_q) == 0
            else 0.0
        )

    def __str__(self) -> str:
        lines = [
            f"look elsewhere: {self.name} = {self.value:g} against larger values at {len(self.points)} values of {self.scanned}",
            f"  largest q {self.observed:.4f} at {self.scanned} = {self.point:.6g}: local significance"
            f" {self.local_significance:.3f}, p-value {self.local_p_value:.4g}",
        ]
        if len(self.toy_q):
            lines.append(
                f"  global significance {self.significance:.3f}, p-value {self.p_value:.4g} by upcrossings"
            )
        return "\n".join([*lines, *self.toy_lines()])


@dataclass(frozen=True, eq=False)
class ScannedToys(Frozen):
    """The q of B blocks of T toys at K points."""

    values: Array  # (B,), numbers of blocks
    q: NDArray[np.float32]  # (B, T, K)
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    backend: str = ""

    converted = {"seconds": floats}

    def __len__(self) -> int:
        return len(self.values)


@locks_file(NAME)
@in_sentences
def look_elsewhere(
    likelihood: Term | Pdf | Simultaneous,
    parameter: str | Parameter,
    scanned: str | Parameter,
    points: ArrayLike,
    value: float = 0.0,
    *,
    data: Any = None,
    toys: int = 1000,
    seed: int | None = None,
    best: FitResult | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> LookElsewhere:
    """Test that a parameter has a value and not a larger one at every point of another one, and how often toys look as bad.

    A model needs its ``data``. ``toys`` are drawn once with the parameter at its value, and fitted without a signal and at each of the ``points``; close
    points are needed, closer than the resolution, for upcrossings. Where the scanned parameter has an effect without a
    signal as well, such as in a constraint, both fits are made at each point. ``best``, ``executor`` and ``save`` are as for
    ``feldman_cousins``.
    """
    name, other, value = name_of(parameter), name_of(scanned), finite_number(f"{NAME}: value", value)
    count, values = whole_number(f"{NAME}: toys", toys, 0), number_list(f"{NAME}: points", points)
    likelihood, best = start_test(NAME, likelihood, data, best, name)
    check_floating(NAME, best, name, other)
    check_points(NAME, best, other, values)
    check_points(NAME, best, name, np.array([value]))
    if len(values) < 2:
        raise OptionError(f"{NAME}: points must be two or more values of '{other}', got {len(values)}")
    (still,) = without_effect(likelihood, best, name, np.array([value]))
    idle = tuple(n for n in still if n in best.floating)
    where = np.array([[value, *(best.values[n] for n in idle)]])
    full, null = minimised(NAME, likelihood, best, (name, *idle), where)
    # it is in another part, a constraint or a signal that stays: one null hypothesis for each point
    if other not in idle:
        each = np.column_stack([np.tile(where, (len(values), 1)), values])
        _, null = minimised(NAME, likelihood, best, (name, *idle, other), each)
    names = [p.name for p in likelihood.all_parameters]
    truth = dict(zip(names, full[0].tolist(), strict=True))
    signal, lowest = minimised(NAME, likelihood, best, (other,), values[:, None])
    fitted = signal[:, names.index(name)]
    q = np.where(fitted > value, np.maximum(2 * (null - lowest), 0.0), 0.0)
    drawn = np.empty((0, len(values)), np.float32)
    if count:
        hypotheses = Hypotheses(name, np.array([value]), (truth,), (dict(best.values),), (idle,))
        drawn = draw_curves(
            likelihood, hypotheses, other, values, q, toys=count, seed=seed, backend=backend, executor=executor, save=save,
            progress=progress,
        )  # fmt: skip
    return LookElsewhere(name=name, scanned=other, value=value, points=values, q=q, best=fitted, toy_q=drawn)


def draw_curves(
    likelihood: Term,
    null: Hypotheses,
    scanned: str,
    points: Array,
    q: Array,
    *,
    toys: int,
    seed: int | None,
    backend: str | Backend,
    executor: Executor | DaskClient | None,
    save: str | Path | None,
    progress: bool,
) -> NDArray[np.float32]:
    """Draw toys without a signal, in blocks, and return the q of each at all points, (T, K); ``q`` is that of the data."""
    blocks = -(-toys // BLOCK)
    layout = Layout(f"morefit {NAME} toys", ("seed", "seconds", "backend"), ("values", "q"))
    saved = read_saved(NAME, save, layout, ScannedToys)
    tested = Tested(
        term=without_events(likelihood), name=null.name, truths=tuple(map(dict, null.truths)) * blocks,
        starts=null.starts * blocks, idle=null.idle * blocks, seed=choose_seed(seed, saved), purpose=layout.format,
        toys=-(-toys // blocks), events=events_of_toys(NAME, likelihood), values=tuple(null.values.tolist()) * blocks,
        backend=choose_place(backend, executor, (len(points) + 1) * likelihood.events * toys),
    )  # fmt: skip

    def work(k: int, _: int, report: Report) -> Work[ScannedToys]:
        return partial(compute_block, tested, scanned, points, k, report)

    result = run_scan(
        tested, what=NAME, layout=layout, points=np.arange(blocks, dtype=np.float64), work=work, save=save, saved=saved,
        t_data=np.concatenate([points, q]), executor=executor, progress=progress,
    )  # fmt: skip
    return result.q.reshape(-1, len(points))[:toys]


def compute_block(tested: Tested, scanned: str, points: Array, block: int, report: Report) -> ScannedToys:
    """Draw the toys of one block and fit each without a signal and at all points, on any worker."""
    assert tested.values is not None
    at, value = Point(tested, block), tested.values[block]
    q = np.empty((tested.toys, len(points)), np.float32)
    column = at.free.floating.index(tested.name)
    for first, drawn in at.blocks():
        toys = drawn.stored()
        nulls = (
            [at.fixed] if scanned in at.fixed else [{**at.fixed, scanned: point} for point in points.tolist()]
        )
        without = [at.timed("fits without a signal", at.conditional, toys, fixed) for fixed in nulls]
        rows = slice(first, first + len(toys))
        for k, point in enumerate(points.tolist()):
            null, _, null_known = without[k if len(without) > 1 else 0]
            nll, x, known = at.timed("fits at points", at.conditional, toys, {scanned: point})
            rise = np.where(x[:, column] > value, np.maximum(2 * (null - nll), 0.0), 0.0)
            q[rows, k] = np.where(known & null_known, rise, np.nan)
        report(first + len(toys))
    return ScannedToys(np.array([float(block)]), q[None], tested.seed, at.seconds, tested.backend.label)
