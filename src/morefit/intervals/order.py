"""Order statistics of toys, some of which may have no number."""

from __future__ import annotations

from math import ceil, floor, inf, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array

Unknown = Literal["lowest", "highest"]  # where toys without a number are taken to be
ROUNDING = 1e-9  # of fractions and of products with them


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
