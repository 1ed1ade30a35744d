"""Where a scan of tested values passes from accepted to excluded, and order statistics of toys, with their errors."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, hypot, inf, isfinite, nan, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags
from morefit.intervals.interval import End, Interval

ROUNDING = 1e-9  # heights that differ by less are equal


class Crossing(NamedTuple):
    """One end of an interval."""

    value: float
    error: float
    kind: End


class Scan(NamedTuple):
    """E conditions at K tested values.

    ``heights`` (E, K) are negative where a condition is met, so that an end lies where the one violated most beyond
    it becomes zero. ``errors`` are those of the heights.
    """

    values: Array
    heights: Array
    errors: Array
    limits: tuple[float, float]  # of the parameter

    def interval(self, accepted: Flags, level: float) -> Interval:
        """Return the interval of accepted values, with its pieces."""
        pieces = []
        for first, last in runs(accepted):
            low, high = self.end(first, -1), self.end(last, 1)
            pieces.append(
                Interval(
                    low.value, high.value, level, low_error=low.error, high_error=high.error,
                    low_end=low.kind, high_end=high.kind,
                )
            )  # fmt: skip
        return Interval.spanning(pieces, level)

    def end(self, inner: int, step: int) -> Crossing:
        """Return where the interval that contains an accepted value ends, in the direction of a step."""
        outer = inner + step
        if not 0 <= outer < len(self.values):
            edge = float(self.values[inner])
            return Crossing(edge, 0.0, "limit") if edge in self.limits else Crossing(nan, nan, "open")
        worst = int(np.argmax(self.heights[:, outer]))
        return crossing(
            (float(self.values[inner]), min(float(self.heights[worst, inner]), 0.0), float(self.errors[worst, inner])),
            (float(self.values[outer]), max(float(self.heights[worst, outer]), 0.0), float(self.errors[worst, outer])),
        )  # fmt: skip


def runs(accepted: Flags) -> Iterator[tuple[int, int]]:
    """Yield the first and last index of each run of accepted values."""
    steps = np.diff(np.concatenate([[False], accepted, [False]]).astype(np.int8))
    firsts, stops = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return zip(firsts.tolist(), (stops - 1).tolist(), strict=True)


def crossing(inner: tuple[float, float, float], outer: tuple[float, float, float]) -> Crossing:
    """Return where a line between two points (value, height, error) is zero, and the error of that.

    If the heights do not determine it, it is the outer point, which makes the interval long rather than short.
    """
    (x, low, low_error), (y, high, high_error) = inner, outer
    rise = high - low
    if not (isfinite(rise) and rise > ROUNDING):
        return Crossing(y, abs(y - x), "crossing")
    error = abs(y - x) * hypot(high * low_error, low * high_error) / rise**2
    return Crossing(x - (y - x) * low / rise, error, "crossing")


Unknown = Literal["lowest", "highest"]  # where toys without a number are taken to be


def order_statistic(
    ordered: NDArray[Any], index: int, fraction: float, unknown: Unknown
) -> tuple[Array, Array]:
    """Return the number at an index of each row and its error, from how a count of this fraction spreads.

    Rows are ascending with nan last, as NumPy sorts.
    """
    count = ordered.shape[1]
    spread = sqrt(count * fraction * (1 - fraction))
    few, many = max(floor(index - spread), 0), min(ceil(index + spread), count - 1)
    with np.errstate(invalid="ignore"):
        width = pick(ordered, many, unknown) - pick(ordered, few, unknown)
        errors = width * spread / max(many - few, 1)
    return pick(ordered, index, unknown), np.where(np.isfinite(errors), errors, inf)


def pick(ordered: NDArray[Any], index: int, unknown: Unknown) -> Array:
    """Return the number at an index of each row; infinite if that toy has none."""
    bad = np.count_nonzero(np.isnan(ordered), axis=1)
    indices = index - bad if unknown == "lowest" else np.full(len(ordered), index)
    picked = np.take_along_axis(ordered, np.maximum(indices, 0)[:, None], axis=1)[:, 0].astype(np.float64)
    return np.where(indices < 0, -inf, np.where(np.isnan(picked), inf, picked))
