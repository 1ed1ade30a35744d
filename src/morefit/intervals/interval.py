"""The type of all intervals: two ends that unpack, with their level, errors and kinds; and levels of a Gaussian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import erfc, nan, sqrt
from statistics import NormalDist
from typing import Literal, overload

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
