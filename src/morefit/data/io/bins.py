"""Counts in bins, for binned fits: from histograms of the UHI protocol, or from counts and edges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data.io.histogram import SAME, Histogram, check_histogram, contents, edges_of, is_histogram
from morefit.data.io.table import Ranged
from morefit.dataclass import dataclass
from morefit.errors import DataError


@dataclass(frozen=True, eq=False)
class BinContents:
    """Edges of each axis, and count and variance of each bin; the variances of plain counts are the counts."""

    edges: tuple[Array, ...]
    counts: Array
    variances: Array

    @cached_property
    def weighted(self) -> bool:
        return not np.array_equal(self.counts, self.variances)


def read_bins(
    histogram: object, ranges: Sequence[Ranged], *, variances: ArrayLike | None = None, flow: bool = False
) -> BinContents:
    """Return the bins of a histogram, with an axis for each observable in the order of these.

    It is one of the UHI protocol, or (counts, edges), edges being those of the only axis or a list of edges. With
    ``flow``, under- and overflow are bins from the end of the range to the first edge, and from the last edge on.
    """
    if is_histogram(histogram):
        if variances is not None:
            raise DataError(
                "histogram: has variances of its own; leave variances out, or pass (counts, edges)"
            )
        return from_histogram(check_histogram(histogram, len(ranges)), ranges, flow)
    if flow:
        raise DataError(
            "histogram: counts and edges have no flow bins; make them bins, or pass a histogram of hist"
        )
    counts, edges = from_arrays(histogram, len(ranges))
    known = None if variances is None else as_numbers("variances", variances)
    if known is not None and known.shape != counts.shape:
        raise DataError(
            f"histogram: variances must have the shape {counts.shape} of the counts, got {known.shape}"
        )
    lines = tuple(check_edges(o, e, n) for o, e, n in zip(ranges, edges, counts.shape, strict=True))
    return BinContents(lines, *contents(counts, known, arrays=True))


def from_arrays(histogram: object, axes: int) -> tuple[Array, list[Any]]:
    """Return counts, and the edges of each axis, of what numpy.histogram and its siblings return."""
    if not isinstance(histogram, tuple | list) or len(histogram) < 2:
        raise DataError(
            "histogram: must be one of hist, boost-histogram or uproot, or (counts, edges), got"
            f" {type(histogram).__name__}"
        )
    counts, rest = as_numbers("counts", histogram[0]), list(histogram[1:])
    if counts.ndim != axes:
        raise DataError(f"histogram: needs one observable per axis, here {counts.ndim}, got {axes}")
    nested = len(rest) == 1 and isinstance(rest[0], tuple | list) and any(np.ndim(e) for e in rest[0])
    edges = list(rest[0]) if nested else rest[:axes]  # matplotlib returns more
    if len(edges) != axes:
        raise DataError(f"histogram: needs edges for each of {axes} axes, got {len(edges)}")
    return counts, edges


def as_numbers(what: str, numbers: object) -> Array:
    try:
        array = np.asarray(numbers)
    except ValueError:
        array = np.asarray(None)
    mask = getattr(numbers, "mask", None)
    if array.dtype.kind not in "iuf" or not array.ndim or (mask is not None and np.any(mask)):
        raise DataError(f"histogram: {what} must be an array of numbers, got {numbers!r:.60}")
    return array.astype(np.float64)


def check_edges(observable: Ranged, edges: object, bins: int) -> Array:
    """Return rising edges inside the range of an observable; ends that differ from those of the range by rounding are these."""
    line = as_numbers(f"edges of '{observable.name}'", edges)
    if line.shape != (bins + 1,):
        raise DataError(
            f"histogram: {bins} bins of '{observable.name}' need {bins + 1} edges, got shape {line.shape}"
        )
    # where all rise, those between finite ends are finite
    if not (bins and (line[1:] > line[:-1]).all() and isfinite(line[0]) and isfinite(line[-1])):
        raise DataError(f"histogram: edges of '{observable.name}' must be finite and rise, got {edges!r:.60}")
    low, high = float(observable.low), float(observable.high)
    for end, limit in ((0, low), (-1, high)):
        if abs(line[end] - limit) <= SAME * (high - low):
            line[end] = limit
    if line[0] < low or line[-1] > high:
        raise DataError(
            f"histogram: edges of '{observable.name}' must lie in its range [{low}, {high}], got"
            f" [{line[0]}, {line[-1]}]; slice the histogram or widen the range"
        )
    return line


def from_histogram(histogram: Histogram, ranges: Sequence[Ranged], flow: bool) -> BinContents:
    """Read a histogram of the UHI protocol; axes that are named as the observables are taken by name."""
    order = axis_order(histogram, ranges)
    axes = [histogram.axes[k] for k in order]
    edges = [check_edges(o, edges_of(a, o), len(a)) for a, o in zip(axes, ranges, strict=True)]
    if not flow:
        counts, known = histogram.values(), histogram.variances()
    else:
        try:
            counts, known = histogram.values(flow=True), histogram.variances(flow=True)  # type: ignore[call-arg]
        except TypeError:
            kind = type(histogram).__name__
            raise DataError(f"histogram: one of type {kind} has no flow bins; leave flow out") from None
    counts, known = (None if a is None else np.transpose(np.asarray(a), order) for a in (counts, known))
    values, variances = contents(counts, known)
    for k, (axis, o) in enumerate(zip(axes, ranges, strict=True) if flow else ()):
        both = values.shape[k] == len(axis) + 2
        edges[k], keep = with_flow(axis, o, edges[k], both=both)
        left_out = np.delete(values, keep, axis=k)
        if left_out.any():
            raise DataError(
                f"histogram: {left_out.sum():g} entries lie outside the range [{float(o.low)}, {float(o.high)}] of"
                f" '{o.name}', in flow bins; leave flow out, or widen the range"
            )
        values, variances = np.take(values, keep, axis=k), np.take(variances, keep, axis=k)
    return BinContents(tuple(edges), np.ascontiguousarray(values), np.ascontiguousarray(variances))


def axis_order(histogram: Histogram, ranges: Sequence[Ranged]) -> list[int]:
    """Return which axis belongs to each observable: by name if axes are named so, else in order."""
    names = [str(getattr(axis, "name", "") or "") for axis in histogram.axes]
    wanted = [o.name for o in ranges]
    if sorted(names) == sorted(wanted):
        return [names.index(name) for name in wanted]
    if len(wanted) > 1 and set(names) & set(wanted):
        raise DataError(
            f"histogram: axes must be named as the observables {wanted}, or not at all, got {names}"
        )
    return list(range(len(wanted)))


def with_flow(axis: Any, observable: Ranged, edges: Array, *, both: bool) -> tuple[Array, list[int]]:
    """Return the edges with those of flow bins that have room in the range, and which bins these and the others are.

    Axes of uproot do not say which flow bins they have: then there are ``both``, or none.
    """
    below, above = (bool(getattr(axis.traits, end, both)) for end in ("underflow", "overflow"))
    under, over = below and bool(observable.low < edges[0]), above and bool(edges[-1] < observable.high)
    first, count = int(below), len(edges) - 1
    keep = list(range(first - under, first + count + over))
    return np.array([*[observable.low] * under, *edges, *[observable.high] * over], np.float64), keep
