"""Count events in bins, with the errors of the counts, and compare them with what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.resources import check_memory

NUMBERS = (10, 20, 25, 40, 50, 100)  # of bins by default: their edges are round for round ranges
TAIL = NormalDist().cdf(-1.0)  # on each side of a central interval of 68.27 %

BYTES_OF_BIN = 1000.0  # of a bin that is drawn: numbers of the data, of a finer curve, and its artists
MAX_BINS = 1 << 62  # more are as many: too many


@dataclass(frozen=True, eq=False)
class Histogram(Frozen):
    """Counts in bins, or sums of weights, with the sizes of their errors below and above."""

    edges: Array  # (bins + 1,)
    counts: Array  # (bins,)
    low: Array  # (bins,)
    high: Array  # (bins,)

    def pulls(self, expected: Array) -> Array:
        """Return (count - expected) / error, with the error on the side of what is expected; nan without an error."""
        difference = self.counts - expected
        error = np.where((difference > 0) & (self.low > 0), self.low, self.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(error > 0, difference / error, np.nan)


def count_events(dataset: Dataset, name: str, edges: Array) -> Histogram:
    """Count events with central Poisson intervals (Garwood), or add weights, with the root of the sum of their squares."""
    counts, squares = np.zeros((2, len(edges) - 1))
    for piece in dataset.pieces():
        column, weights = piece[name], piece.weights
        counts += np.histogram(column, edges, weights=weights)[0]
        if weights is not None:
            squares += np.histogram(column, edges, weights=weights**2)[0]
    low, high = (np.sqrt(squares),) * 2 if dataset.weighted else poisson_errors(counts)
    return Histogram(edges, counts, low, high)


def poisson_errors(counts: Array) -> tuple[Array, Array]:
    """Return the errors of counts below and above."""
    low, high = poisson_interval(counts)
    return counts - low, high - counts


def poisson_interval(counts: Array) -> tuple[Array, Array]:
    """Return the central 68.27 % intervals of Poisson means (F. Garwood, Biometrika 28 (1936) 437)."""
    from scipy.special import gammaincinv  # type: ignore[import-untyped]  # slow, and only plots need it

    low = np.where(counts > 0, gammaincinv(np.maximum(counts, 1.0), TAIL), 0.0)
    return low, np.asarray(gammaincinv(counts + 1.0, 1 - TAIL), np.float64)


def choose_edges(
    what: str, bins: int | Sequence[float] | Array | None, low: float, high: float, events: int
) -> Array:
    """Return the edges of bins: those passed, or a number of bins of equal width, chosen by the number of events by default."""
    if bins is None:
        wanted = 2 * events ** (1 / 3)  # the rule of Rice
        bins = min(NUMBERS, key=lambda n: abs(n - wanted))
    number: object = bins
    if isinstance(number, float) and number.is_integer():  # 1e2 is a number of bins
        bins = int(number)
    if isinstance(bins, (int, np.integer)):
        if bins < 1:
            raise OptionError(f"{what}: needs at least one bin, got {bins}")
        count = float(min(bins, MAX_BINS))
        check_memory(f"{what}: {count:.6g} bins", BYTES_OF_BIN * count)
        return np.linspace(low, high, int(bins) + 1)
    try:
        edges = np.asarray(bins, np.float64)
    except (TypeError, ValueError, OverflowError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise OptionError(f"{what}: bins must be a number or edges that ascend, got {bins!r}")
    if edges[0] < low or edges[-1] > high:
        raise OptionError(
            f"{what}: bins must lie in [{low}, {high}], got edges from {edges[0]} to {edges[-1]}"
        )
    return edges


def divide(edges: Array, parts: int) -> Array:
    """Cut every bin into ``parts`` of equal width."""
    steps = np.arange(parts) / parts
    return np.append((edges[:-1, None] + np.diff(edges)[:, None] * steps).ravel(), edges[-1])
