"""Toys whose fitted density is negative between events, where no sum over them shows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morefit.minimise.batch import Fits
from morefit.toys.ensemble import Ensemble
from morefit.toys.results import HOW
from morefit.toys.text import LOOKED_AT

NEGATIVE = HOW.index("negative density")


def how_obtained(ensemble: Ensemble, fits: Fits, first: int = 0) -> NDArray[np.uint8]:
    """Return how toys from number ``first`` on were obtained; the first of a study are looked at between their events."""
    count = min(LOOKED_AT - first, len(fits.nll))
    if count <= 0:
        return fits.method
    columns = fits.values[:count].T
    values = {**ensemble.start, **dict(zip(ensemble.floating, columns, strict=True))}
    below = fits.valid[:count].copy()
    below &= np.any(
        [np.broadcast_to(part.negative_rows(values), count) for part in ensemble.fitted.parts], axis=0
    )
    if not below.any():
        return fits.method
    how = fits.method.copy()
    how[:count][below] = NEGATIVE
    return how
