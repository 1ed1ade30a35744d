"""What a Feldman-Cousins construction with toys found: p-values, critical values, intervals, and how it looks in print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags, freeze, rebuilt
from morefit.intervals.crossing import Region, hull, regions
from morefit.intervals.feldman_cousins_tables import two_sided
from morefit.intervals.order import ROUNDING, Unknown, order_statistic
from morefit.intervals.record import Layout, load_record, pair, save_record
from morefit.intervals.toys_at_points import TIE
from morefit.jobs.facts import Facts
from morefit.records.fields import floats, words
from morefit.text.rounding import duration
from morefit.text.tables import Column, text_table
from morefit.validate import check_level

KIND = "morefit feldman-cousins"
LAYOUT = Layout(
    KIND,
    ("name", "names", "best", "limits", "level", "seed", "seconds", "backend"),
    ("values", "t_data", "t", "truths", "clipped"),
)
NEAR = 1e-6  # of the spacing: a tested value so close to the best fit is the best fit
MOST_ROWS = 60  # of a table that somebody reads
Failed = Literal["above", "below"]  # where t of toys whose fits failed is taken to be


@dataclass(frozen=True, eq=False, repr=False)
class FeldmanCousins:
    """Tested values of a parameter, each with the t of the data and of T toys drawn there.

    t = 2 (nll with the parameter held - nll) is at least 0. A value is in the interval if its p-value, the fraction
    of toys with a t at least that of the data, is at least 1 - level. Toys whose fits failed are never left out:
    their t is nan, and as nobody knows it, it counts as above that of the data (``p_values``, which makes intervals
    long rather than short) and below it (``least_p_values``); the truth lies in between.
    """

    name: str
    values: Array  # (K,), ascending: those that are finished
    t_data: Array  # (K,)
    t: NDArray[np.float32]  # (K, T), nan where a fit failed
    names: tuple[str, ...]  # all parameters of the model
    truths: Array  # (K, parameters), where the toys were drawn
    clipped: NDArray[np.int64]  # (K,) toys with a t below 0 by less than fits can tell, set to 0
    best: float
    limits: tuple[float, float]
    level: float
    seed: int
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage, added up over workers
    backend: str = ""  # where the toys were fitted

    def __post_init__(self) -> None:
        freeze(self, names=words, seconds=floats, limits=pair)

    __reduce__ = rebuilt

    def __len__(self) -> int:
        return len(self.values)

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
        found, errors = order_statistic(self.ordered, self.toys - above, level, unknown)
        return np.maximum(found, 0.0), errors

    def accepted(self, level: float | None = None, failed: Failed = "above") -> Flags:
        """Say which values have a p-value of at least 1 - level, (K,)."""
        p = self.p_values if failed == "above" else self.least_p_values
        return np.asarray(p >= 1 - self.checked(level) - ROUNDING, np.bool_)

    def regions(self, level: float | None = None, *, failed: Failed = "above") -> list[Region]:
        """Return all intervals of accepted values, in order.

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
        return regions(values, (z - two_sided(level))[None], errors[None], accepted, self.limits)

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

    def interval(self, level: float | None = None, *, failed: Failed = "above") -> Region:
        """Return the interval from the lowest to the highest accepted value; ``regions`` may have gaps in it."""
        return hull(self.regions(level, failed=failed))

    def checked(self, level: float | None) -> float:
        return self.level if level is None else check_level("feldman_cousins", level)

    def save(self, path: str | Path, facts: Facts | None = None) -> None:
        """Write everything to one npz file with a header in JSON; it appears complete or not at all."""
        save_record(self, path, LAYOUT, facts)

    @classmethod
    def load(cls, path: str | Path) -> FeldmanCousins:
        """Read back what ``save`` wrote, to the last bit; also what ``feldman_cousins(save=...)`` left."""
        return load_record(cls, path, LAYOUT)

    def __str__(self) -> str:
        parts = [headline(self), text_table(table(self)) if len(self) <= MOST_ROWS else "", footline(self)]
        return "\n\n".join(part for part in parts if part)

    __repr__ = __str__


# ------------------------------------------------------------------------------------ print


def headline(found: FeldmanCousins) -> str:
    """Return what was done, the interval, and what is wrong with it."""
    bad = int(found.invalid.sum())
    verdict = "all fits valid" if not bad else f"FITS OF {bad} TOYS FAILED"
    lines = [f"feldman-cousins of {found.name}: {len(found)} values of {found.toys} toys, {verdict}"]
    lines.append(f"  {100 * found.level:g} %: {written(found.regions())}")
    if bad:
        lines.append(f"  if t of failed toys is small: {written(found.regions(failed='below'))}")
    clipped = int(found.clipped.sum())
    note = f", t of {clipped} toys below 0 by less than {TIE:.1g} set to 0" if clipped else ""
    return "\n".join([*lines, f"  best fit {found.best:.6g}, seed {found.seed}{note}"])


def written(found: Sequence[Region]) -> str:
    """Write regions one after the other."""
    return " and ".join(map(str, found)) if found else "NOTHING ACCEPTED"


def table(found: FeldmanCousins) -> list[Column]:
    """Return one row for each tested value."""
    bad = found.invalid
    failed = [
        Column("least p", [f"{p:.4f}" for p in found.least_p_values]),
        Column("failed", [str(n) for n in bad]),
    ]
    return [
        Column(found.name, [f"{x:.6g}" for x in found.values]),
        Column("t data", [f"{t:.3f}" for t in found.t_data]),
        Column("critical", [f"{t:.3f}" for t in found.critical]),
        Column("+-", [f"{e:.3f}" for e in found.critical_errors]),
        Column("p", [f"{p:.4f}" for p in found.p_values]),
        Column("+-", [f"{e:.4f}" for e in found.p_errors]),
        *(failed if bad.any() else []),
        Column("", ["" if a else "excluded" for a in found.accepted()], numeric=False),
    ]


def footline(found: FeldmanCousins) -> str:
    times = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in found.seconds.items())
    return f"on {found.backend}: {times}" if found.backend and times else times
