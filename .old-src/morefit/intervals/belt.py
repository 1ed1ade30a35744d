"""A belt of Neyman: for each true value of a parameter, in which interval an estimate of it falls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from morefit.backend import Array
from morefit.errors import DataError
from morefit.fit.result import Column, floats, text_table
from morefit.frozen import freeze, rebuilt
from morefit.intervals.classic import check_level
from morefit.intervals.crossing import Region, hull, regions
from morefit.intervals.order import ROUNDING, order_statistic
from morefit.intervals.record import Layout, load_record, pair, save_record
from morefit.study.facts import Facts

KIND = "morefit neyman belt"
LAYOUT = Layout(KIND, ("name", "limits", "level", "seed", "seconds", "backend"), ("values", "estimates"))


@dataclass(frozen=True, eq=False, repr=False)
class NeymanBelt:
    """True values of a parameter, each with the estimates of T toys drawn there.

    The belt at a true value is the central interval of its estimates: as many toys are below as above, together
    1 - level. Toys whose fits failed are nan, and count as below and as above, which makes the belt wide.
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
        if not isfinite(observed):
            raise DataError(f"neyman_belt: the estimate observed must be finite, got {observed}")
        low, high, low_error, high_error = self.edges(self.checked(level))
        heights = np.stack([low - observed, observed - high])
        accepted = np.all(heights <= 0, axis=0)
        return regions(self.values, heights, np.stack([low_error, high_error]), accepted, self.limits)

    def interval(self, observed: float, level: float | None = None) -> Region:
        """Return the interval from the lowest to the highest true value whose belt holds an estimate.

        Both ends are nan if there is none: the estimate is too far off, or the values too far apart.
        """
        return hull(self.regions(observed, level))

    def checked(self, level: float | None) -> float:
        if level is None:
            return self.level
        check_level("neyman_belt", level)
        return level

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
