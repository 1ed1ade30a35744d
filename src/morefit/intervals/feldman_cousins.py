"""Feldman-Cousins constructions with toys: p-values, critical values and intervals of a parameter of any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from functools import cached_property, partial
from math import ceil, inf
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.intervals.data_fits import fit_data
from morefit.intervals.free_fits import TIE
from morefit.intervals.interval import ROUNDING, Interval, Scan, Unknown, order_statistic, two_sided
from morefit.intervals.scan import run_scan
from morefit.intervals.toys_at_points import Point, Tested
from morefit.jobs.checkpoint import choose_seed, locks_file, read_saved
from morefit.jobs.run import DaskClient, Report, Work, choose_place
from morefit.likelihood import Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import best_fit, check_floating, check_points, unseen
from morefit.minimise.problem import as_likelihood
from morefit.model import Parameter, Pdf
from morefit.records.fields import floats, words
from morefit.records.results import Layout, SavedResult, pair
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences, methods_in_sentences
from morefit.text.rounding import duration
from morefit.text.tables import Column, text_table
from morefit.toys.arguments import check_unweighted, events_of_toys, without_events
from morefit.validate import check_level, name_of, number_list, whole_number

NAME = "feldman_cousins"
FORMAT = "morefit feldman-cousins"
LAYOUT = Layout(
    FORMAT,
    ("name", "names", "best", "limits", "level", "seed", "seconds", "backend"),
    ("values", "t_data", "t", "truths", "clipped"),
)
NEAR = 1e-6  # of the spacing: a tested value so close to the best fit is the best fit
MAX_ROWS = 60  # of a table that is printed
Failed = Literal["above", "below"]  # where t of toys whose fits failed is taken to be


@methods_in_sentences
@dataclass(frozen=True, eq=False, repr=False)
class FeldmanCousins(SavedResult):
    """Tested values of a parameter, each with the t of the data and of T toys drawn there.

    t = 2 (nll with the parameter fixed - nll) is at least 0. A value is in the interval if its p-value, the fraction
    of toys with a t at least that of the data, is at least 1 - level. Toys whose fits failed are never left out:
    their t is nan, and as it is unknown, it counts as above that of the data (``p_values``, which makes intervals
    long rather than short) and below it (``least_p_values``); the truth lies in between.
    """

    name: str
    values: Array  # (K,), ascending: those that are finished
    t_data: Array  # (K,)
    t: NDArray[np.float32]  # (K, T), nan where a fit failed
    names: tuple[str, ...]  # all parameters of the model
    truths: Array  # (K, parameters), where the toys were drawn
    clipped: NDArray[np.int64]  # (K,) toys with a t below 0 within the precision of fits, set to 0
    best: float
    limits: tuple[float, float]
    level: float
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage, added up over workers
    backend: str = ""  # where the toys were fitted

    job, layout = NAME, LAYOUT
    converted = {"names": words, "seconds": floats, "limits": pair}

    @property
    def toys(self) -> int:
        """How many toys were drawn at each value."""
        return int(self.t.shape[1])

    @property
    def invalid(self) -> NDArray[np.int64]:
        """How many toys have no t at each value, as one of their fits failed, (K,)."""
        return np.asarray(np.count_nonzero(np.isnan(self.t), axis=1), np.int64)

    @property
    def p_values(self) -> Array:
        """The fraction of toys with a t at least that of the data, (K,); failed ones count."""
        return (self.above + self.invalid) / self.toys

    @property
    def least_p_values(self) -> Array:
        """The same where failed toys do not count, (K,)."""
        return self.above / self.toys

    @property
    def above(self) -> NDArray[np.int64]:
        """How many toys are known to have a t at least that of the data, (K,)."""
        return np.asarray(np.count_nonzero(self.t >= (self.t_data - TIE)[:, None], axis=1), np.int64)

    @property
    def p_errors(self) -> Array:
        """The binomial errors of the p-values, (K,); never zero, as one toy more and one less is added."""
        fraction = (self.p_values * self.toys + 1) / (self.toys + 2)
        return np.asarray(np.sqrt(fraction * (1 - fraction) / self.toys), np.float64)

    @property
    def critical(self) -> Array:
        """The largest t that is accepted at the level, (K,); inf if too many fits failed."""
        return self.critical_at(self.level)[0]

    @property
    def critical_errors(self) -> Array:
        """The Monte-Carlo errors of the critical values, (K,)."""
        return self.critical_at(self.level)[1]

    @cached_property
    def ordered(self) -> NDArray[np.float32]:
        """The t of the toys in ascending order, nan last, (K, T)."""
        return np.sort(self.t, axis=1)

    def critical_at(self, level: float, failed: Failed = "above") -> tuple[Array, Array]:
        """Return the critical values of t at any level and their errors, from the order of the toys."""
        above = min(max(ceil((1 - level) * self.toys - ROUNDING), 1), self.toys)
        unknown: Unknown = "highest" if failed == "above" else "lowest"
        critical, errors = order_statistic(self.ordered, self.toys - above, level, unknown)
        return np.maximum(critical, 0.0), errors

    def accepted(self, level: float | None = None, failed: Failed = "above") -> Flags:
        """Return which values have a p-value of at least 1 - level, (K,)."""
        p = self.p_values if failed == "above" else self.least_p_values
        return np.asarray(p >= 1 - self.checked(level) - ROUNDING, np.bool_)

    def interval(self, level: float | None = None, *, failed: Failed = "above") -> Interval:
        """Return the interval of accepted values; its ``pieces`` are several if there are gaps.

        An end lies where the p-value, as the quantile of a Gaussian, crosses that of the level on a line between a
        value that is accepted and one that is not. The best fit always is accepted.
        """
        level = self.checked(level)
        z, errors = self.significances(level, failed)
        values, accepted = self.values, self.accepted(level, failed)
        near = NEAR * np.ptp(values) / max(len(values) - 1, 1)
        if np.min(np.abs(values - self.best)) > near:
            k = int(np.searchsorted(values, self.best))
            values, accepted = np.insert(values, k, self.best), np.insert(accepted, k, True)
            z, errors = np.insert(z, k, 0.0), np.insert(errors, k, 0.0)
        return Scan(values, (z - two_sided(level))[None], errors[None], self.limits).interval(accepted, level)

    def significances(self, level: float, failed: Failed) -> tuple[Array, Array]:
        """Return the p-values as Gaussian quantiles, and their errors; from t where no toy is above the data."""
        from scipy.special import ndtri  # type: ignore[import-untyped]  # slow, and only intervals need it

        p = self.p_values if failed == "above" else self.least_p_values
        critical, spread = self.critical_at(level, failed)
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = two_sided(level) * np.sqrt(self.t_data / critical)
            z = np.where(p > 0, -ndtri(0.5 * p), scaled)
            slope = 0.5 * np.sqrt(2 * np.pi) * np.exp(0.5 * z * z)
            errors = np.where(p > 0, slope * self.p_errors, 0.5 * scaled * spread / critical)
        return z, np.where(np.isnan(errors), inf, errors)

    def checked(self, level: float | None) -> float:
        return self.level if level is None else check_level(NAME, level)

    def __str__(self) -> str:
        parts = [headline(self), text_table(table(self)) if len(self) <= MAX_ROWS else "", footline(self)]
        return "\n\n".join(part for part in parts if part)


# ------------------------------------------------------------------------------------ construction


@locks_file(NAME)
@in_sentences
def feldman_cousins(
    likelihood: Term | Pdf,
    parameter: str | Parameter,
    points: ArrayLike,
    *,
    data: Any = None,
    constraints: Sequence[Any] | Any = (),
    fluctuate: bool = True,
    toys: int = 5000,
    level: float = 0.9,
    seed: int | None = None,
    best: FitResult | None = None,
    backend: str | Backend = "auto",
    executor: Executor | DaskClient | None = None,
    save: str | Path | None = None,
    progress: bool = True,
) -> FeldmanCousins:
    """Test values of a parameter with toys, by the ratio of likelihoods of Feldman and Cousins (physics/9711021).

    At each point the other parameters are minimised on the data, and toys drawn there: with as many events as the
    data, or a Poisson number if the model is extended; constraints measure another value in each toy, unless
    ``fluctuate`` is False. Each toy is fitted freely and with the parameter fixed at the value. The same seed gives the
    same bits; toy i of value k (in ascending order) has the number k * toys + i.

    Parameters
    ----------
    likelihood : or a model, with its ``data`` and ``constraints``.
    points : values of the parameter to test; inside its limits, which are what an interval may end at.
    level : of the interval printed; others can be read from the same toys.
    best : the fit of the data, if it is known already, with all parameters floating that float in the model.
    executor, save : as for ``toy_study``.

    Example: ``mf.intervals.feldman_cousins(nll, n_signal, [250, 300, 350], toys=20, seed=1, progress=False)``
    """
    level, toys = check_level(NAME, level), whole_number(f"{NAME}: toys", toys, 1)
    term = as_likelihood(NAME, likelihood, data, constraints=constraints, backend=backend)
    name = name_of(parameter)
    best, points = start_scan(term, best, name, points)
    fits = fit_data(NAME, term, best, name, points, progress=progress)
    saved = read_saved(NAME, save, LAYOUT, FeldmanCousins)
    tested = Tested(
        term=without_events(term), name=name, truths=fits.truths, starts=fits.starts, idle=fits.idle,
        seed=choose_seed(seed, saved), purpose=FORMAT, toys=toys, fluctuate=fluctuate, events=events_of_toys(NAME, term),
        backend=choose_place(backend, executor, 2 * term.events * toys * len(points)),
    )  # fmt: skip
    names = tuple(p.name for p in term.all_parameters)
    common = {"names": names, "best": fits.best, "limits": best.limits[name], "level": level}

    def work(k: int, _: int, report: Report) -> Work[FeldmanCousins]:
        truth = np.array([list(fits.truths[k].values())])
        row = common | {"values": points[k : k + 1], "t_data": fits.t[k : k + 1], "truths": truth}
        return partial(compute_point, tested, k, row, report)

    return run_scan(
        tested, what=NAME, layout=LAYOUT, points=points, t_data=fits.t, work=work, save=save, saved=saved,
        fitted=Point.free_and_conditional, executor=executor, progress=progress,
    )  # fmt: skip


def start_scan(
    likelihood: Term, best: FitResult | None, name: str, values: ArrayLike
) -> tuple[FitResult, Array]:
    """Return the best fit and the values to test in ascending order, if data and fit allow a scan of them."""
    check_unweighted(NAME, likelihood)
    best = best_fit(NAME, likelihood, best)
    silent = [name, *unseen(likelihood)]
    check_floating(NAME, best, name, *(p.name for p in likelihood.parameters if p.name not in silent))
    points = number_list(f"{NAME}: points", values)
    check_points(NAME, best, name, points)
    return best, points


def compute_point(tested: Tested, point: int, row: Mapping[str, Any], report: Report) -> FeldmanCousins:
    """Draw and fit the toys of one tested value, on any worker."""
    toys = tested.ratios(point, report)
    clipped = np.array([toys.clipped], np.int64)
    return FeldmanCousins(
        **row, name=tested.name, seed=tested.seed, backend=tested.backend.label, t=toys.numbers[None],
        clipped=clipped, seconds=toys.seconds,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ print


def headline(scan: FeldmanCousins) -> str:
    """Return what was done, the interval, and what is wrong with it."""
    bad = int(scan.invalid.sum())
    verdict = "all fits valid" if not bad else f"FITS OF {bad} TOYS FAILED"
    lines = [f"feldman-cousins of {scan.name}: {len(scan)} values of {scan.toys} toys, {verdict}"]
    lines.append(f"  {100 * scan.level:g} %: {scan.interval()}")
    if bad:
        lines.append(f"  if t of failed toys is small: {scan.interval(failed='below')}")
    clipped = int(scan.clipped.sum())
    note = f", t of {clipped} toys below 0 by less than {TIE:.1g} set to 0" if clipped else ""
    return "\n".join([*lines, f"  best fit {scan.best:.6g}, seed {scan.seed}{note}"])


def table(scan: FeldmanCousins) -> list[Column]:
    """Return one row for each tested value."""
    bad = scan.invalid
    failed = [
        Column("least p", [f"{p:.4f}" for p in scan.least_p_values]),
        Column("failed", [str(n) for n in bad]),
    ]
    return [
        Column(scan.name, [f"{x:.6g}" for x in scan.values]),
        Column("t data", [f"{t:.3f}" for t in scan.t_data]),
        Column("critical", [f"{t:.3f}" for t in scan.critical]),
        Column("+-", [f"{e:.3f}" for e in scan.critical_errors]),
        Column("p", [f"{p:.4f}" for p in scan.p_values]),
        Column("+-", [f"{e:.4f}" for e in scan.p_errors]),
        *(failed if bad.any() else []),
        Column("", ["" if a else "excluded" for a in scan.accepted()], numeric=False),
    ]


def footline(scan: FeldmanCousins) -> str:
    times = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in scan.seconds.items())
    return f"on {scan.backend}: {times}" if scan.backend and times else times
