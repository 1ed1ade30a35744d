"""Raise an envelope above a conditional density at more and more rows of what it is given, until none exceeds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import numpy as np

from morefit.arrays import Array
from morefit.expr import Expr, evaluate
from morefit.model.observable import Observable
from morefit.sampling.envelope import Envelope, heights_of, over_all, probe_axes

FIRST_ROWS = 16  # looked at; then twice as many, as long as one of them is above the envelope
MAX_NUMBERS = 1 << 21  # of densities of some rows on the grid of an envelope


def above_rows(
    envelope: Envelope,
    density: Expr,
    observables: tuple[Observable, ...],
    rows: Mapping[str, Array],
    margin: float,
) -> Envelope:
    """Raise an envelope until some rows by chance do not exceed it.

    It was made for a few rows. Where a density begins at what is given, as a truncated one does, rows between these are higher; each
    candidate above its envelope has toys drawn and fitted again.
    """
    axes = probe_axes(envelope.edges)
    shape = tuple(map(len, axes))
    grids = [np.expand_dims(grid, 0) for grid in np.meshgrid(*axes, indexing="ij", sparse=True)]
    known = {o.name: grid for o, grid in zip(observables, grids, strict=True)}
    total, start = len(next(iter(rows.values()))), 0
    heights = envelope.heights.reshape(envelope.shape)
    for k in count():
        end = min(start + FIRST_ROWS * 2**k, total)
        if start == end or (end - start) * int(np.prod(shape)) > MAX_NUMBERS:
            break
        some = {name: v[start:end].reshape(-1, *(1 for _ in shape)) for name, v in rows.items()}
        with np.errstate(all="ignore"):
            values = np.broadcast_to(evaluate(density, {**known, **some}), (end - start, *shape))
            highest = np.maximum(np.nan_to_num(values, nan=0.0, posinf=0.0).max(axis=0), 0.0)
        if np.all(over_all(highest, np.maximum) <= heights):
            break
        heights = np.maximum(heights, heights_of((1 + margin) * highest, margin))
        start = end
    return replace(envelope, heights=heights.ravel())
