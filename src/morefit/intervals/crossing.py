"""Where a scan of tested values passes from accepted to excluded, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import hypot, isfinite, nan
from typing import NamedTuple

import numpy as np

from morefit.arrays import Array, Flags

CROSSING, LIMIT, OPEN = "", "limit", "NOT REACHED"


class Region(NamedTuple):
    """An interval of accepted values; each end with its Monte-Carlo error, and in words what kind of end it is.

    An end that the scan does not reach is nan; one at the limit of the parameter is that limit.
    """

    low: float
    high: float
    low_error: float = 0.0
    high_error: float = 0.0
    low_end: str = CROSSING
    high_end: str = CROSSING

    def __str__(self) -> str:
        low = side(self.low, self.low_error, self.low_end)
        return f"[{low}, {side(self.high, self.high_error, self.high_end)}]"


class End(NamedTuple):
    """One end of a region."""

    value: float
    error: float
    kind: str


def side(value: float, error: float, end: str) -> str:
    """Write one end of an interval."""
    if end == OPEN:
        return OPEN
    if end == LIMIT:
        return f"{value:.6g} (limit)"
    return f"{value:.6g} +- {error:.1g}"


NONE = Region(nan, nan, nan, nan, OPEN, OPEN)


def regions(
    values: Array, heights: Array, errors: Array, accepted: Flags, limits: tuple[float, float]
) -> list[Region]:
    """Return the intervals of accepted values, in order.

    ``heights`` (E, K) are E conditions at K values: negative where one is met, so that an end lies where the one
    violated most beyond it becomes zero. ``errors`` are those of the heights.
    """
    scan = Scan(values, heights, errors, limits)
    found = []
    for first, last in runs(accepted):
        low, high = scan.end(first, -1), scan.end(last, 1)
        found.append(Region(low.value, high.value, low.error, high.error, low.kind, high.kind))
    return found


def runs(accepted: Flags) -> Iterator[tuple[int, int]]:
    """Go through the first and last of those that follow each other."""
    steps = np.diff(np.concatenate([[False], accepted, [False]]).astype(np.int8))
    firsts, stops = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return zip(firsts.tolist(), (stops - 1).tolist(), strict=True)


class Scan(NamedTuple):
    """What is known at each tested value."""

    values: Array
    heights: Array
    errors: Array
    limits: tuple[float, float]

    def end(self, inner: int, step: int) -> End:
        """Return where the way from an accepted value out of its region ends."""
        outer = inner + step
        if not 0 <= outer < len(self.values):
            edge = float(self.values[inner])
            return End(edge, 0.0, LIMIT) if edge in self.limits else End(nan, nan, OPEN)
        worst = int(np.argmax(self.heights[:, outer]))
        return crossing(
            (float(self.values[inner]), min(float(self.heights[worst, inner]), 0.0), float(self.errors[worst, inner])),
            (float(self.values[outer]), max(float(self.heights[worst, outer]), 0.0), float(self.errors[worst, outer])),
        )  # fmt: skip


def crossing(inner: tuple[float, float, float], outer: tuple[float, float, float]) -> End:
    """Return where a line between two points (value, height, error) is zero, and the error of that.

    If the heights do not say, it is the outer point, which makes the region long rather than short.
    """
    (x, low, low_error), (y, high, high_error) = inner, outer
    rise = high - low
    if not (isfinite(rise) and rise > 0):
        return End(y, abs(y - x), CROSSING)
    error = abs(y - x) * hypot(high * low_error, low * high_error) / rise**2
    return End(x - (y - x) * low / rise, error, CROSSING)


def hull(found: Sequence[Region]) -> Region:
    """Return the interval from the lowest to the highest accepted value."""
    if not found:
        return NONE
    first, last = found[0], found[-1]
    return Region(
        first.low, last.high, first.low_error, last.high_error, first.low_end, last.high_end
    )  # fmt: skip
