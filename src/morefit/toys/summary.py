"""Summary numbers of many toys: moments, pulls, biases and coverages."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from morefit.arrays import Array


class PullSummary(NamedTuple):
    """Mean and width of pulls, each with its error: 0 and 1 for correct errors without bias."""

    mean: float
    mean_error: float
    width: float
    width_error: float


class Bias(NamedTuple):
    """Mean of the fitted values minus the truth, with its error."""

    value: float
    error: float


class Coverage(NamedTuple):
    """The fraction of toys whose interval contains the truth, and the Clopper-Pearson interval of it (68.27 %)."""

    fraction: float
    low: float
    high: float


def moments(numbers: Array) -> tuple[float, float, int]:
    """Return mean, standard deviation and count; nan where there are too few numbers."""
    count = len(numbers)
    with np.errstate(invalid="ignore"):
        mean = float(np.mean(numbers)) if count else nan
        return mean, float(np.std(numbers, ddof=1)) if count > 1 else nan, count


def clopper_pearson(hits: int, total: int, level: float = 0.6827) -> Coverage:
    """Return a fraction with its exact central interval; all of [0, 1] if there was no trial."""
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # slow, and only coverages need it

    if not total:
        return Coverage(nan, 0.0, 1.0)
    tail = (1 - level) / 2
    low = float(betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, total - hits, 1 - tail)) if hits < total else 1.0
    return Coverage(hits / total, low, high)
