"""A belt of Neyman: for each true value of a parameter, in which interval an estimate of it falls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, inf, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, freeze, rebuilt
from morefit.intervals.crossing import Region, hull, regions
from morefit.intervals.order import ROUNDING, order_statistic
from morefit.intervals.record import Layout, load_record, pair, save_record
from morefit.jobs.facts import Facts
from morefit.records.fields import floats
from morefit.text.tables import Column, text_table
from morefit.toys.ensemble import GOAL
from morefit.validate import check_level, finite_number

KIND = "morefit neyman belt"
SAME = 2 * sqrt(2 * GOAL)  # errors: two fits of the same events may stop so far from each other
LAYOUT = Layout(KIND, ("name", "limits", "level", "seed", "seconds", "backend"), ("values", "estimates"))


@dataclass(frozen=True, eq=False, repr=False)
class NeymanBelt:
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

    def __post_init__(self) -> None:
        freeze(self, seconds=floats, limits=pair)

    __reduce__ = rebuilt

    def __len__(self) -> int:
        return len(self.values)

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

    def regions(self, observed: float, level: float | None = None) -> list[Region]:
        """Return all intervals of true values whose belt holds an estimate; there may be none."""
        observed = finite_number("neyman_belt: the estimate observed", observed)
        from scipy.special import ndtri  # type: ignore[import-untyped]  # slow, and only intervals need it

        tail, toys = 0.5 * (1 - self.checked(level)), self.toys
        counts = self.beyond(observed)
        accepted = np.all(counts >= tail * toys - ROUNDING, axis=0)
        # as quantiles of a Gaussian, fractions are nearly straight lines between true values, unless all toys are
        # the same, as at a yield of zero: then nothing is known of what lies between
        fractions = np.clip(counts, 0.5, toys - 0.5) / toys
        z = np.where(counts + np.ptp(self.ordered, axis=1) == 0, -inf, ndtri(fractions))
        errors = np.sqrt(2 * np.pi * fractions * (1 - fractions) / toys) * np.exp(0.5 * ndtri(fractions) ** 2)
        return regions(self.values, ndtri(tail) - z, errors, accepted, self.limits)

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

    def interval(self, observed: float, level: float | None = None) -> Region:
        """Return the interval from the lowest to the highest true value whose belt holds an estimate.

        Both ends are nan if there is none: the estimate is too far off, or the values too far apart.
        """
        return hull(self.regions(observed, level))

    def checked(self, level: float | None) -> float:
        return self.level if level is None else check_level("neyman_belt", level)

    def save(self, path: str | Path, facts: Facts | None = None) -> None:
        """Write everything to one npz file with a header in JSON; it appears complete or not at all."""
        save_record(self, path, LAYOUT, facts)

    @classmethod
    def load(cls, path: str | Path) -> NeymanBelt:
        """Read back what ``save`` wrote, to the last bit."""
        return load_record(cls, path, LAYOUT)

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

    __repr__ = __str__
