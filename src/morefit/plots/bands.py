"""Error bands of curves: the covariance of a fit, propagated by differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError, OptionError
from morefit.minimise import FitResult

STEP = 0.1  # standard deviations on each side of a value


def slopes(
    curve: Callable[[dict[str, float]], Array], values: dict[str, float], fit: Any
) -> dict[str, Array]:
    """Return the derivatives of a curve by the floating parameters among its values, by differences inside their limits."""
    if not isinstance(fit, FitResult):
        raise OptionError("plot: band needs the result of a fit, with its covariance; pass values=result")
    own = [name for name in fit.floating if name in values]
    if unknown := [name for name in own if not np.isfinite(fit.errors[name])]:
        raise DataError(
            f"plot: band needs the covariance of the fit, which is not known for '{unknown[0]}'; leave band out"
        )
    result = {}
    for name in own:
        (low, high), reach = fit.limits.get(name, (-inf, inf)), STEP * fit.errors[name]
        ends = max(values[name] - reach, low), min(values[name] + reach, high)
        below, above = (curve({**values, name: end}) for end in ends)
        result[name] = (above - below) / ((ends[1] - ends[0]) or 1.0)
    return result


def band(derivatives: Mapping[str, Array], fit: Any) -> Array | None:
    """Return the standard deviation of a curve by the covariance of a fit; None without derivatives."""
    if not derivatives:
        return None
    rows = np.array(list(derivatives.values()))
    squares = np.einsum("ik,ij,jk->k", rows, fit.covariance_of(*derivatives), rows)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), np.float64)
