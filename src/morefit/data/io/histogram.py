"""Histograms that follow the UHI protocol: events at the centres of their bins, and events counted in bins."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, bin_edges
from morefit.data.io.table import Ranged, not_installed
from morefit.errors import DataError, OptionError
from morefit.resources import check_memory
from morefit.validate import follows

# A number of bins for every axis; or for each, by name or in order, a number or edges; or the edges of the only one.
Bins = int | Sequence[Any] | NDArray[Any] | Mapping[str, Any]
MAX_EVENTS = 10**9  # of a histogram: 8 GB per column
UNKNOWN_VARIANCES = (
    "histogram: does not know its variances, as after sums, scaling or a fill with weights; its contents are taken as"
    " counts of events; fill it with storage=hist.storage.Weight() if they are not, or pass (counts, edges) if they are"
)
SAME = 1e-9  # relative difference of edges that rounding can cause


class Histogram(Protocol):
    """A histogram of the UHI protocol, such as those of hist, boost-histogram and uproot."""

    @property
    def axes(self) -> Sequence[Any]: ...

    @property
    def kind(self) -> Any: ...

    def values(self) -> Any: ...

    def variances(self) -> Any: ...


def events_of(histogram: object, ranges: Sequence[Ranged]) -> tuple[dict[str, Array], Array | None]:
    """Return events at the centres of the bins, and their weights, or None if all are one.

    In every bin the weights add up to its content and their squares to its variance.
    """
    checked = check_histogram(histogram, len(ranges))
    edges = [spanning(o, edges_of(axis, o)) for axis, o in zip(checked.axes, ranges, strict=True)]
    values, variances = contents(checked.values(), checked.variances())
    counts, weights = split_bins(values.ravel(), variances.ravel())
    centres = np.meshgrid(*((e[1:] + e[:-1]) / 2 for e in edges), indexing="ij")
    columns = {o.name: np.repeat(c.ravel(), counts) for o, c in zip(ranges, centres, strict=True)}
    return columns, None if np.all(weights == 1.0) else weights


def is_histogram(source: Any) -> bool:
    """Return whether something follows the UHI protocol."""
    return follows(source, Histogram)


def check_same_bins(what: str, template: Any, histogram: Any) -> None:
    """Refuse a template with other edges than the counts, where both have edges."""
    if not (is_histogram(template) and is_histogram(histogram)):
        return
    for one, other in zip(template.axes, histogram.axes, strict=True):
        edges, wanted = bin_edges(one), bin_edges(other)
        if edges is None or wanted is None:
            same = list(one) == list(other)
        else:
            same = bool(np.all(np.abs(edges - wanted) <= SAME * (wanted[-1] - wanted[0])))
        if not same:
            raise DataError(f"{what} must have the bins of the counts, {other}, got {one}")


def check_histogram(histogram: Any, axes: int) -> Any:
    """Return a histogram that counts events and has this many axes."""
    if not is_histogram(histogram):
        raise DataError(
            f"histogram: must have axes, kind, values() and variances() as one of hist does, got"
            f" {type(histogram).__name__}"
        )
    if str(getattr(histogram.kind, "value", histogram.kind)) != "COUNT":
        raise DataError(
            f"histogram: must count events, got one of kind {histogram.kind}; its bins contain means"
        )
    if len(histogram.axes) != axes:
        raise DataError(f"histogram: needs one observable per axis, here {len(histogram.axes)}, got {axes}")
    return histogram


def edges_of(axis: Any, observable: Ranged) -> Array:
    """Return the edges of an axis."""
    edges = bin_edges(axis)
    if edges is None:
        raise DataError(
            f"histogram: the axis of '{observable.name}' must have bins of numbers, got categories; pass (counts, edges)"
        )
    return edges


def spanning(observable: Ranged, edges: Array) -> Array:
    """Return edges if they span the range of their observable."""
    span = observable.high - observable.low
    if abs(edges[0] - observable.low) > SAME * span or abs(edges[-1] - observable.high) > SAME * span:
        raise DataError(
            f"histogram: the axis of '{observable.name}' must span its range [{float(observable.low)},"
            f" {float(observable.high)}], got [{edges[0]}, {edges[-1]}]; slice the histogram or change the range"
        )
    return edges


def contents(counts: Any, known: Any, *, arrays: bool = False) -> tuple[Array, Array]:
    """Return content and variance of every bin, of a histogram or of arrays; contents without variances must be counts."""
    values = np.asarray(counts, np.float64)
    if known is None and arrays and ((values >= 0) & (values == np.floor(values)) & (values < np.inf)).all():
        return values, values  # counts, as a rule
    remedy = "pass variances= of these contents" if arrays else "fill it with storage=hist.storage.Weight()"
    if known is None and np.any(np.isfinite(values) & ((values < 0) | (values != np.floor(values)))):
        what = f"negative, such as {values.min():g}" if values.min() < 0 else "not integer counts"
        raise DataError(f"histogram: bin contents are {what}, so variances are required; {remedy}")
    if known is None and not arrays:
        warnings.warn(UNKNOWN_VARIANCES, UserWarning, stacklevel=2)
    variances = values if known is None else np.asarray(known, np.float64)
    bad = int(np.sum(~(np.isfinite(values) & np.isfinite(variances))))
    if bad:
        raise DataError(f"histogram: {bad} of {values.size} bins are not finite; leave them out")
    wrong = int(np.sum((variances < 0) | ((variances == 0) & (values != 0))))
    if wrong:
        raise DataError(
            f"histogram: {wrong} of {values.size} bins have a content without a variance, which no events can have;"
            f" {remedy}"
        )
    return values, variances


def split_bins(values: Array, variances: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the number of events of each bin, and the weights of all events.

    With k events of weights a, ..., a, b, where (k - 1) a + b is the content and (k - 1) a**2 + b**2 the variance,
    both are preserved; k is the smallest number that allows it, for counts the content.
    """
    filled = variances > 0
    effective = np.zeros_like(values)
    effective[filled] = values[filled] ** 2 / variances[filled]
    whole = np.round(effective)
    # all weights are the same, as for counts
    exact = (whole > 0) & (np.abs(effective - whole) <= SAME * whole)
    counts = np.where(exact, whole, np.where(filled, np.maximum(np.ceil(effective), 2), 0))
    if counts.sum() > MAX_EVENTS:
        raise DataError(
            f"histogram: represents {counts.sum():.3g} events, more than {MAX_EVENTS:.0e}; scale it down or make"
            " the dataset from the events"
        )
    numbers = counts.astype(np.int64)
    k = np.maximum(counts, 1)
    mean = values / k
    with np.errstate(invalid="ignore"):
        spread = np.where(exact, 0.0, np.sqrt(np.maximum(variances / k - mean**2, 0.0)))
    common = mean - spread / np.sqrt(np.maximum(k - 1, 1))
    weights = np.repeat(common, numbers)
    last = np.cumsum(numbers)[numbers > 0] - 1
    weights[last] = (mean + spread * np.sqrt(np.maximum(k - 1, 1)))[numbers > 0]
    return numbers, weights


def fill_histogram(
    columns: Mapping[str, Array],
    weights: Array | None,
    ranges: Sequence[Ranged],
    bins: Bins,
) -> Any:
    """Return events counted in bins as a hist.Hist, which also sums squared weights where there are weights."""
    each, hist = bins_of_axes(bins, ranges), load_hist()
    axes: list[Any] = []
    filled = []
    for o in ranges:
        edges = check_edges(o, each.get(o.name))
        if isinstance(edges, int):
            axes.append(hist.axis.Regular(edges, float(o.low), float(o.high), name=o.name))
        else:
            axes.append(hist.axis.Variable(edges, name=o.name))
        # the upper end belongs to a range, but not to an axis
        column, end = columns[o.name], axes[-1].edges
        filled.append(np.where(column == end[-1], (end[-2] + end[-1]) / 2, column))
    size = prod(axis.extent for axis in axes)
    check_memory(f"histogram: {size:.6g} bins", (8.0 if weights is None else 16.0) * size)
    histogram = hist.Hist(*axes, storage=hist.storage.Double() if weights is None else hist.storage.Weight())
    histogram.fill(*filled, weight=weights)
    return histogram


def load_hist() -> Any:
    """Return the package hist, or raise an error that says how to install it."""
    try:
        import hist
    except ImportError as error:
        raise not_installed("hist") from error
    return hist


def filled_histogram(edges: Mapping[str, Array], counts: Array, variances: Array | None) -> Any:
    """Return counts of bins as a hist.Hist; with variances, those of weighted events."""
    hist = load_hist()
    axes = [
        hist.axis.Variable(line, name=name, overflow=False, underflow=False) for name, line in edges.items()
    ]
    if variances is None:
        return hist.Hist(*axes, storage=hist.storage.Double(), data=counts)
    return hist.Hist(*axes, storage=hist.storage.Weight(), data=np.stack([counts, variances], axis=-1))


def bins_of_axes(bins: Bins, ranges: Sequence[Ranged]) -> Mapping[str, Any]:
    """Return the bins of each observable by name; a list has an entry for each, but for a single one its edges."""
    names = [o.name for o in ranges]
    if isinstance(bins, Mapping):
        return bins
    if not isinstance(bins, Sequence | np.ndarray) or isinstance(bins, str):
        return dict.fromkeys(names, bins)
    entries = [bins] if len(ranges) == 1 and len(bins) > 1 else list(bins)
    if len(entries) != len(ranges):
        rule = f"bins must be a number, or a list with an entry for each of {len(ranges)} observables"
        raise OptionError(
            f"histogram: {rule}, got {bins!r}; give edges by name, as in bins={{'{names[0]}': edges}}"
        )
    return dict(zip(names, entries, strict=True))


def check_edges(observable: Ranged, bins: Any) -> int | Array:
    """Return the number of bins of one observable, or their edges, some of which must be in its range."""
    if bins is None:
        raise OptionError(
            f"histogram: bins has no entry for '{observable.name}'; give a number of bins or edges"
        )
    edges = np.asarray(bins) if not isinstance(bins, bool) else np.empty(0)
    if edges.ndim == 0 and edges.dtype.kind in "iu" and edges > 0:
        check_memory(f"histogram: {bins:.6g} bins of '{observable.name}'", 16.0 * float(edges))
        return int(edges)
    if edges.ndim == 1 and edges.dtype.kind in "iuf" and len(edges) > 1 and np.all(np.diff(edges) > 0):
        if not (edges[0] < observable.high and edges[-1] > observable.low):
            raise OptionError(
                f"histogram: edges of '{observable.name}' must overlap its range [{float(observable.low)},"
                f" {float(observable.high)}], got {bins!r}; a number of bins is one number"
            )
        return edges.astype(np.float64)
    raise OptionError(
        f"histogram: bins of '{observable.name}' must be a positive number of them or rising edges, got {bins!r}"
    )
