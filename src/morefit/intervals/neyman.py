"""Neyman's construction with toys: for each true value of a parameter, in which interval its estimates fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from functools import cached_property, partial
from math import floor, inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import FitError, ModelError, OptionError
from morefit.intervals.interval import ROUNDING, Interval, Scan, order_statistic
from morefit.intervals.scan import run_scan
from morefit.intervals.toys_at_points import Estimator, Point, Tested
from morefit.jobs.checkpoint import choose_seed, locks_file, read_saved
from morefit.jobs.run import DaskClient, Report, Work, choose_place
from morefit.likelihood import Term
from morefit.likelihood.sums import check_constrained
from morefit.model import Parameter, Pdf
from morefit.records.fields import floats
from morefit.records.results import Layout, SavedResult, pair
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table
from morefit.toys.arguments import complete, events_of_toys, expected_total, template_of, without_events
from morefit.toys.batch import GOAL
from morefit.toys.ensemble import Ensemble
from morefit.validate import check_level, finite_number, name_of, number_list, numbers_by_name, whole_number

NAME = "neyman_belt"
FORMAT = "morefit neyman belt"
LAYOUT = Layout(FORMAT, ("name", "limits", "level", "seed", "seconds", "backend"), ("values", "estimates"))
SAME = 2 * sqrt(2 * GOAL)  # errors: two fits of the same events may stop so far from each other


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class NeymanBelt(SavedResult):
    """True values of a parameter, each with the estimates of T toys drawn there.

    The belt at a true value is the central interval of its estimates: as many toys are below as above, together
    1 - level. A true value is in the interval of an observed estimate if at least (1 - level) / 2 of its toys are
    not above that estimate, and as many not below it. Toys with the same estimate, as counts have, are neither, so
    that intervals cover: those of fractions are Clopper and Pearson's, those of counts Garwood's. Toys whose fits
    failed are nan, and count as below and as above, which makes the belt wide and intervals long.
    """

    name: str
    values: Array  # (K,), ascending: those that are finished
    estimates: Array  # (K, T), nan where a fit failed
    limits: tuple[float, float]
    level: float
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    backend: str = ""  # where the toys were fitted

    job, layout = NAME, LAYOUT
    converted = {"seconds": floats, "limits": pair}

    @property
    def toys(self) -> int:
        """How many toys were drawn at each value."""
        return int(self.estimates.shape[1])

    @property
    def invalid(self) -> NDArray[np.int64]:
        """How many toys have no estimate at each value, (K,)."""
        return np.asarray(np.count_nonzero(np.isnan(self.estimates), axis=1), np.int64)

    @property
    def low(self) -> Array:
        """The lower edge of the belt at the level, (K,)."""
        return self.edges(self.level)[0]

    @property
    def high(self) -> Array:
        """The upper edge of the belt at the level, (K,)."""
        return self.edges(self.level)[1]

    @cached_property
    def ordered(self) -> Array:
        """The estimates in ascending order, nan last, (K, T)."""
        return np.sort(self.estimates, axis=1)

    def edges(self, level: float) -> tuple[Array, Array, Array, Array]:
        """Return lower and upper edge of the belt at any level, and their Monte-Carlo errors."""
        tail = 0.5 * (1 - level)
        below = min(floor(tail * self.toys + ROUNDING), self.toys - 1)
        low, low_error = order_statistic(self.ordered, below, tail, "lowest")
        high, high_error = order_statistic(self.ordered, self.toys - 1 - below, tail, "highest")
        return low, high, low_error, high_error

    def interval(self, observed: float, level: float | None = None) -> Interval:
        """Return the interval of true values whose belt holds an estimate; it may have several ``pieces``.

        Both ends are nan if there is none: the estimate is too far off, or the values too far apart.
        """
        observed = finite_number(f"{NAME}: the estimate observed", observed)
        from scipy.special import ndtri  # type: ignore[import-untyped]  # slow, and only intervals need it

        level = self.level if level is None else check_level(NAME, level)
        tail, toys = 0.5 * (1 - level), self.toys
        counts = self.beyond(observed)
        accepted = np.all(counts >= tail * toys - ROUNDING, axis=0)
        # as quantiles of a Gaussian, fractions are nearly straight lines between true values, unless all toys are
        # the same, as at a yield of zero: then nothing is known of what lies between
        fractions = np.clip(counts, 0.5, toys - 0.5) / toys
        z = np.where(counts + np.ptp(self.ordered, axis=1) == 0, -inf, ndtri(fractions))
        errors = np.sqrt(2 * np.pi * fractions * (1 - fractions) / toys) * np.exp(0.5 * ndtri(fractions) ** 2)
        return Scan(self.values, ndtri(tail) - z, errors, self.limits).interval(accepted, level)

    def beyond(self, observed: float) -> NDArray[np.int64]:
        """Return how many toys are not above an estimate, and how many not below, (2, K); failed ones are in both.

        Fits stop a little way from their minima, so that estimates that should be the same are not quite. Those
        close to the one observed are the same if there are no others around them, as for counts.
        """
        away = self.estimates - observed
        unknown = np.isnan(away)
        spread = np.std(np.where(unknown, 0.0, away), axis=1, keepdims=True)
        near = SAME * spread + ROUNDING * abs(observed)
        lonely = ~np.any((np.abs(away) > near) & (np.abs(away) < 3 * near), axis=1, keepdims=True)
        same = lonely & (np.abs(away) <= near)
        sides = [(away <= 0) | same | unknown, (away >= 0) | same | unknown]
        return np.stack([np.count_nonzero(side, axis=1) for side in sides])

    def __str__(self) -> str:
        bad = int(self.invalid.sum())
        verdict = "all fits valid" if not bad else f"{bad} FITS FAILED"
        head = (
            f"neyman belt of {self.name}: {len(self)} values of {self.toys} toys, {verdict}, seed {self.seed}"
        )
        low, high, low_error, high_error = self.edges(self.level)
        rows = {"low": low, "+-": low_error, "high": high, "+- ": high_error}
        columns = [Column(n.strip(), [f"{x:.6g}" for x in column]) for n, column in rows.items()]
        table = text_table([Column(self.name, [f"{x:.6g}" for x in self.values]), *columns])
        return f"{head}\n  belt at {100 * self.level:g} %\n\n{table}"


# ------------------------------------------------------------------------------------ construction


@locks_file(NAME)
@in_sentences
def neyman_belt(
    likelihood: Term | Pdf,
    parameter: str | Parameter,
    points: ArrayLike,
    *,
    events: int | None = None,
    truth: Any = None,
    constraints: Sequence[Any] | Any = (),
    fluctuate: bool = True,
    estimator: Estimator | None = None,
    toys: int = 5000,
    level: float = 0.9,
    seed: int | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> NeymanBelt:
    """Draw toys at true values of a parameter and estimate it with each: Neyman's construction.

    ``NeymanBelt.interval`` then turns an estimate observed into an interval. Seeds, executors and files are as for
    ``feldman_cousins``.

    Parameters
    ----------
    likelihood : or a model.
    events : of every toy, as for ``toy_study``.
    points : true values of the parameter.
    truth : those of the other parameters, by name or of the result of a fit; by default their start values.
    constraints : of a model; they measure another value in each toy, unless ``fluctuate`` is False.
    estimator : called with the dataset of each toy; None is the fitted value of the parameter.
    """
    level, toys = check_level(NAME, level), whole_number(f"{NAME}: toys", toys, 1)
    events = None if events is None else whole_number("neyman_belt: events", events)
    if not (estimator is None or callable(estimator)):
        raise OptionError(f"neyman_belt: the estimator must be a function of a dataset, got {estimator!r}")
    term, name = template_of(NAME, likelihood, constraints), name_of(parameter)
    check_constrained(term.parts)
    points = number_list(f"{NAME}: points", points)
    tested_one = tested_parameter(term, name, points)
    if isinstance(truth, Mapping) and name in numbers_by_name("truth", truth):
        raise ModelError(f"{NAME}: truth must be of other parameters than '{name}', whose values are tested")
    values, numbers = complete(term, truth, "truth"), events_of_toys(NAME, term, events)
    truths = tuple(values | {name: x} for x in points.tolist())
    saved = read_saved(NAME, save, LAYOUT, NeymanBelt)
    each = expected_total(term, values, numbers)
    tested = Tested(
        term=without_events(term), name=name, truths=truths, starts=truths, idle=((),) * len(truths),
        seed=choose_seed(seed, saved), purpose=FORMAT, toys=toys, events=numbers, fluctuate=fluctuate,
        backend=choose_place(backend, executor, int(each * toys * len(points))), estimator=estimator,
    )  # fmt: skip
    common = {"limits": (tested_one.low, tested_one.high), "level": level}

    def work(k: int, _: int, report: Report) -> Work[NeymanBelt]:
        return partial(compute_point, tested, k, common | {"values": points[k : k + 1]}, report)

    return run_scan(
        tested, what=NAME, layout=LAYOUT, points=points, work=work, save=save, saved=saved, fitted=free_fits if estimator is None else None, executor=executor,
        progress=progress,
    )  # fmt: skip


def free_fits(point: Point) -> list[Ensemble]:
    """Return what is fitted to the toys of a point."""
    return [point.free]


def compute_point(tested: Tested, point: int, row: Mapping[str, Any], report: Report) -> NeymanBelt:
    """Draw the toys of one true value and estimate the parameter with each, on any worker."""
    toys = tested.estimates(point, report)
    return NeymanBelt(
        **row, name=tested.name, seed=tested.seed, backend=tested.backend.label, estimates=toys.numbers[None],
        seconds=toys.seconds,
    )  # fmt: skip


def tested_parameter(term: Term, name: object, points: Array) -> Parameter:
    """Return the parameter of this name, if it floats and may have these values."""
    floating = {p.name: p for p in term.parameters}
    if not isinstance(name, str) or name not in floating:
        raise FitError(f"neyman_belt: needs a floating parameter, got {name!r}: {suggest(name, floating)}")
    parameter = floating[name]
    if (
        points.ndim != 1
        or not len(points)
        or not np.all((points >= parameter.low) & (points <= parameter.high))
    ):
        rule = f"points of '{name}' must be numbers in [{parameter.low}, {parameter.high}]"
        raise FitError(f"neyman_belt: {rule}, got {points.tolist()[:5]}")
    return parameter
