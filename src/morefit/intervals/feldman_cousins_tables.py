"""The intervals of Feldman and Cousins for a count over background and for a bounded Gaussian mean, without toys."""

from __future__ import annotations

from math import erf, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.intervals.interval import HALVINGS, Interval, bisect, two_sided
from morefit.text.arguments import in_sentences
from morefit.validate import as_number, check_level, finite_number, whole_number

LENGTHEN = 2.0  # of background, in which an upper end is looked for that is higher than the own one
BACKGROUND_STEP = 0.005
ZOOMS, ZOOM = 3, 64


@in_sentences
def feldman_cousins_poisson(
    n: int, background: float, level: float = 0.9, *, non_increasing: bool = True
) -> Interval:
    """Return the interval of Feldman and Cousins for a Poisson signal over a known background.

    physics/9711021: n is accepted for a signal if the counts that come before it, ordered by their likelihood
    ratio to the best signal that is not negative, have a probability below ``level``. The interval goes from the
    lowest such signal to the highest. As counts are whole, that highest one jumps up here and there as the
    background grows; with ``non_increasing`` the interval is lengthened to what a larger background would give,
    as in the published tables.

    Example: ``mf.intervals.feldman_cousins_poisson(6, 3.0)``
    """
    check_level("feldman_cousins_poisson", level)
    n = whole_number("feldman_cousins_poisson: n", n)
    known = as_number(background)
    if known is None or not 0 <= known < inf:
        raise OptionError(f"feldman_cousins_poisson: background must be at least 0, got {background!r}")
    upper_end = longest_upper_end if non_increasing else single_upper_end
    bottom = lower_end(n, known, level)
    return Interval(bottom, upper_end(n, known, level), level, low_end="crossing" if bottom else "limit")


@in_sentences
def feldman_cousins_gaussian(x: float, level: float = 0.9, low: float = 0.0) -> Interval:
    """Return the interval of Feldman and Cousins for a mean that is at least ``low``; ``x`` has unit error.

    The likelihood ratio is to the best mean from ``low``. The values of x that come before the one observed
    lie between it and the point of equal ratio on the other side of the mean.
    """
    check_level("feldman_cousins_gaussian", level)
    x, low = (finite_number(f"feldman_cousins_gaussian: {n}", v) for n, v in (("x", x), ("low", low)))
    y = x - low
    z = two_sided(level)
    bottom = 0.0
    if y > 0 and normal_cdf(y) > level:
        bottom = bisect(lambda mu: between_below(y, mu) > level, 0.0, y)
    top = y + z if y >= 0 else bisect(lambda mu: between_above(y, mu) < level, 0.0, z + 1)
    return Interval(low + bottom, low + top, level, low_end="crossing" if bottom else "limit")


def between_below(x: float, mu: float) -> float:
    """Return the probability between x > mu and the point of equal ratio below mu."""
    other = 2 * mu - x if 2 * mu >= x else (x - x * x / (2 * mu) if mu > 0 else -inf)
    return normal_cdf(x - mu) - normal_cdf(other - mu)


def between_above(x: float, mu: float) -> float:
    """Return the probability between x < 0 and the point of equal ratio above mu."""
    return normal_cdf(sqrt(mu * mu - 2 * x * mu)) - normal_cdf(x - mu)


def normal_cdf(x: float) -> float:
    return 0.5 * (1 + erf(x / sqrt(2)))


def offsets(counts: Array, background: Array) -> Array:
    """Return c of the log ratio c + k ln(total) - total of each count k, for a total of signal and background."""
    from scipy.special import xlogy  # type: ignore[import-untyped]  # slow, and only these intervals need it

    best = np.maximum(counts, background)
    return np.asarray(best - xlogy(counts, best), np.float64)


def probability(first: Array, last: Array, total: Array) -> Array:
    """Return the probability of the counts from ``first`` to ``last``; 0 if there are none."""
    from scipy.special import gammaincc

    below = np.where(first > 0, gammaincc(np.maximum(first, 1.0), total), 0.0)
    return np.where(last >= first, gammaincc(last + 1.0, total) - below, 0.0)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Ranges of the total in which the counts that come before n are the same: from ``first`` to ``last``."""

    low: Array
    high: Array
    first: Array
    last: Array

    def at(self, total: Array) -> Array:
        return probability(self.first, self.last, total)

    def accepting(self, level: float) -> Flags:
        """Return which pieces accept n somewhere: in a piece the probability has one maximum, so at an end."""
        some = (self.at(self.low) < level) | (self.at(self.high) < level)
        return some & (self.high > self.low)

    def pick(self, where: tuple[NDArray[np.int64], ...]) -> Pieces:
        full = np.broadcast_arrays(self.low, self.high, self.first, self.last)
        return Pieces(*(array[where] for array in full))

    def boundary(self, level: float, *, upper: bool) -> Array:
        """Return the highest (or lowest) total of each piece that accepts n."""
        inner, outer = (self.low, self.high) if upper else (self.high, self.low)
        at_end = self.at(outer) < level
        end = outer
        for _ in range(HALVINGS):
            middle = 0.5 * (inner + outer)
            accepts = self.at(middle) < level
            inner, outer = np.where(accepts, middle, inner), np.where(accepts, outer, middle)
        return np.where(at_end, end, 0.5 * (inner + outer))


def swaps(n: int, counts: Array, background: Array) -> Array:
    """Return the totals at which n and other counts have the same ratio: from there on the larger one leads."""
    mine = offsets(np.array(float(n)), background)
    return np.exp((mine - offsets(counts, background)) / (counts - n))


def upper_ends(n: int, backgrounds: Array, level: float) -> Array:
    """Return the highest signal that accepts n, for many backgrounds.

    The counts before n < total are n + 1, n + 2, ... up to one that changes at swaps only.
    """
    lowest = backgrounds[:, None]
    reach = two_sided(level) + 4  # standard deviations: beyond, n is not accepted
    top = max(float(n), float(lowest.max()))
    for _ in range(2):  # to the last total of interest, and to the last count of interest for it
        top += reach * sqrt(top) + reach**2
    counts = np.arange(n + 1.0, top + 2)[None, :]
    ends = swaps(n, counts, lowest)
    low = np.maximum(np.concatenate([np.zeros_like(lowest), ends[:, :-1]], axis=1), lowest)
    pieces = Pieces(low, np.maximum(ends, low), np.array(n + 1.0), counts - 1)
    accepting = pieces.accepting(level)
    last = accepting.shape[1] - 1 - np.argmax(accepting[:, ::-1], axis=1)
    chosen = pieces.pick((np.arange(len(last)), last))
    ends = chosen.boundary(level, upper=True) - backgrounds
    return np.where(accepting.any(axis=1), ends, 0.0)  # no signal at all accepts every count below


def single_upper_end(n: int, background: float, level: float) -> float:
    return float(upper_ends(n, np.array([background]), level)[0])


def longest_upper_end(n: int, background: float, level: float) -> float:
    """Return the largest upper end for this background or any larger one.

    It jumps up about once in each unit of background, by less and less, so that two units are enough. Between
    jumps it falls: the largest is looked for on a grid, then on finer and finer ones around it.
    """
    low, high = background, background + LENGTHEN
    grid = np.linspace(low, high, round(LENGTHEN / BACKGROUND_STEP) + 1)
    longest = 0.0
    for _ in range(ZOOMS + 1):
        ends = upper_ends(n, grid, level)
        best = int(np.argmax(ends))
        longest = max(longest, float(ends[best]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        grid = np.linspace(low, high, ZOOM)
    return longest


def lower_end(n: int, background: float, level: float) -> float:
    """Return the lowest signal that accepts n. The counts before n > total are m, ..., n - 1."""
    if n <= background:
        return 0.0  # at no signal, no count comes before n
    lowest = np.array([background])
    counts = np.arange(float(n))
    ends = swaps(n, counts, lowest)
    low = np.maximum(np.concatenate([[0.0], ends[:-1]]), lowest)
    pieces = Pieces(low, np.maximum(ends, low), counts, np.array(n - 1.0))
    accepting = np.flatnonzero(pieces.accepting(level))
    if not len(accepting):  # only from the last swap on, where no count comes before n
        return max(float(ends[-1]) - background, 0.0)
    return float(pieces.pick((accepting[:1],)).boundary(level, upper=False)[0]) - background
