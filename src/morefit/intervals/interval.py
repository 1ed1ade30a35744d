"""The type of all intervals, levels of a Gaussian, and where a scan of tested values passes from accepted to excluded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from math import ceil, erfc, floor, hypot, inf, isfinite, nan, sqrt
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.text.rounding import round_pdg

# where the curve crosses the level, the limit of the parameter, or beyond the scanned values
End = Literal["crossing", "limit", "open"]


@dataclass(frozen=True)
class Interval(Sequence[float]):
    """An interval of a parameter; ``low, high = interval`` unpacks its two ends.

    An end of kind "limit" is the limit of the parameter. One of kind "open" lies beyond the scanned values and is
    nan: scan further. Errors are those of toys, zero where there are none. If the accepted values have gaps, the
    interval spans all of them and ``pieces`` has several intervals; it has none if no value is accepted.
    """

    low: float
    high: float
    level: float
    low_error: float = 0.0
    high_error: float = 0.0
    low_end: End = "crossing"
    high_end: End = "crossing"
    parts: tuple[Interval, ...] | None = field(default=None, repr=False)  # None: it is one piece

    @classmethod
    def spanning(cls, pieces: Sequence[Interval], level: float) -> Interval:
        """Return the interval from the lowest to the highest end of pieces in order; nan if there are none."""
        if not pieces:
            return cls(
                nan, nan, level, low_error=nan, high_error=nan, low_end="open", high_end="open", parts=()
            )
        first, last = pieces[0], pieces[-1]
        return cls(
            first.low, last.high, level, low_error=first.low_error, high_error=last.high_error,
            low_end=first.low_end, high_end=last.high_end, parts=tuple(pieces) if len(pieces) > 1 else None,
        )  # fmt: skip

    @property
    def pieces(self) -> tuple[Interval, ...]:
        """The intervals without gaps that it consists of."""
        return (self,) if self.parts is None else self.parts

    @overload
    def __getitem__(self, index: int) -> float: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[float, ...]: ...

    def __getitem__(self, index: int | slice) -> float | tuple[float, ...]:
        return (self.low, self.high)[index]

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"Interval({self}, {100 * self.level:.6g} %)"

    def __str__(self) -> str:
        if self.parts is not None:
            return " and ".join(map(str, self.parts)) or "NOTHING ACCEPTED"
        low = end_text(self.low, self.low_error, self.low_end)
        return f"[{low}, {end_text(self.high, self.high_error, self.high_end)}]"


def end_text(value: float, error: float, end: End) -> str:
    """Return one end of an interval as text."""
    if end == "open":
        return "NOT REACHED"
    if end == "limit":
        return f"{value:.8g} (limit)"
    return " +- ".join(round_pdg(value, error)) if error else f"{value:.8g}"


HALVINGS = 60


def two_sided(level: float) -> float:
    """Return the standard deviations within which a Gaussian has this probability."""
    return NormalDist().inv_cdf(0.5 * (1 + level))


def bisect(condition: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition that is true at ``low`` ceases to be so."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if condition(middle) else (low, middle)
    return 0.5 * (low + high)


def tail_probability(deviations: float) -> float:
    """Return the probability of a Gaussian beyond a number of standard deviations; NormalDist has no digits from 8 on."""
    return 0.5 * erfc(deviations / sqrt(2))


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
