"""Histograms as densities, and as functions in formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array, bin_edges
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Expr, Operand, Quantity, as_double, to_expr
from morefit.expr.interpolate import Interpolation, checked_axis, checked_values
from morefit.model.arguments import check_observables, described
from morefit.model.observable import Observable
from morefit.model.templates.grid import Grid, GridDensity
from morefit.text.arguments import in_sentences

SAME = 1e-9  # of a range: how far rounding may carry its end beyond the last edge
MAX_AXES = 3
KINDS = ("steps", "linear", "cubic")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Histogram(GridDensity):
    """A histogram as a density in one to three observables: contents divided by the volumes of bins, normalised.

    Parameters
    ----------
    observables : an observable, or a list with one per axis
    histogram : one of the UHI protocol (hist, boost-histogram, uproot), or what ``np.histogram``, ``np.histogram2d`` and
        ``np.histogramdd`` return: (contents, edges), (contents, edges, edges) or (contents, [edges, ...])
    interpolation : "steps", "linear" between the centres of bins, or "cubic" (monotone, one observable); constant
        between the outermost centres and the ends

    The ranges of observables must lie inside the axes; what is beyond a range does not count, nor do underflow and
    overflow.

    Example: ``mf.Histogram(m, np.histogram(data["m"], 50, (5.0, 7.0)))``
    """

    domain: tuple[Observable, ...]
    interpolation: Interpolation
    cells: tuple[int, ...]

    def __init__(
        self,
        observables: Observable | Sequence[Observable],
        histogram: Any,
        interpolation: Interpolation = "steps",
    ) -> None:
        domain = check_observables("histogram: observables", observables)
        contents, edges = read_histogram(histogram, len(domain), [o.name for o in domain])
        check_kind(interpolation, len(domain))
        if "MEAN" in str(getattr(histogram, "kind", "")):
            raise ModelError(f"histogram: a density needs counts, got one of kind {histogram.kind}")
        if np.any(contents < 0):
            bad = tuple(int(k) for k in np.argwhere(contents < 0)[0])
            raise ModelError(
                f"histogram: contents of a density must be zero or positive, got {contents[bad]:g} in bin"
                f" {bad if len(bad) > 1 else bad[0]}; merge bins, or set it to zero"
            )
        edges = [covering(o, e) for o, e in zip(domain, edges, strict=True)]
        volumes = np.ones(())
        for e in edges:
            volumes = np.multiply.outer(volumes, np.diff(e))
        object.__setattr__(self, "interpolation", interpolation)
        object.__setattr__(self, "cells", contents.shape)
        self.take(domain, Grid.of_bins(edges, contents / volumes, interpolation))


@in_sentences
def histogram_function(
    points: Operand | Sequence[Operand], histogram: Any, interpolation: Interpolation = "steps"
) -> Expr:
    """Return the contents of a histogram as a function of one to three expressions, such as an efficiency or a weight.

    ``histogram`` and ``interpolation`` are those of ``Histogram``; contents are taken as they are, and beyond an axis
    the function is constant. A histogram of means, such as a profile, will do.

    Example: ``mf.histogram_function(m, ([0.5, 0.9], [5.0, 6.0, 7.0]))``
    """
    several = isinstance(points, Iterable) and not isinstance(points, Quantity)
    places = list(points) if several and as_double(points) is None else [points]
    names = [one.name if isinstance(one, Observable) else "" for one in places]
    contents, edges = read_histogram(histogram, len(places), names)
    check_kind(interpolation, len(places))
    return Grid.of_bins(edges, contents, interpolation).function([to_expr(point) for point in places])


def check_kind(interpolation: str, axes: int) -> None:
    if interpolation not in KINDS:
        raise ModelError(
            f"histogram: interpolation must be one of {', '.join(map(repr, KINDS))}, got {interpolation!r}"
        )
    if interpolation == "cubic" and axes > 1:
        raise ModelError(f"histogram: 'cubic' is for one observable, got {axes}; use 'linear'")


def read_histogram(histogram: Any, axes: int, names: Sequence[str]) -> tuple[Array, list[Array]]:
    """Return the contents and edges of a histogram with as many axes as are wanted, in the order of names."""
    if isinstance(histogram, tuple) and len(histogram) > 1:
        contents, *edges = histogram
        if len(edges) == 1 and isinstance(edges[0], (list, tuple)) and edges[0] and np.ndim(edges[0][0]):
            edges = list(edges[0])  # of np.histogramdd
    elif hasattr(histogram, "axes") and callable(getattr(histogram, "values", None)):
        contents, edges = histogram.values(), [bin_edges(axis) for axis in histogram.axes]
        if any(e is None for e in edges):
            raise ModelError(f"histogram: axes must have bins of numbers, got {list(histogram.axes)!r}")
        check_order([getattr(axis, "name", "") for axis in histogram.axes], names)
    else:
        raise ModelError(
            "histogram: must be one of hist, boost-histogram or uproot, or (contents, edges) of NumPy, got"
            f" {described(histogram)}"
        )
    if not len(edges) == axes <= MAX_AXES:
        raise ModelError(
            f"histogram: needs one observable for each of 1 to {MAX_AXES} axes, got {axes} for {len(edges)}"
        )
    checked = [checked_axis(f"histogram: edges of axis {k}", e) for k, e in enumerate(edges)]
    return checked_values("histogram: contents", contents, [len(e) - 1 for e in checked]), checked


def check_order(axes: Sequence[str], names: Sequence[str]) -> None:
    """Refuse axes that are called like observables in another order."""
    for k, (axis, name) in enumerate(zip(axes, names, strict=False)):
        if axis != name and axis in names:
            raise ModelError(
                f"histogram: axis {k} is called '{axis}', got '{name}' for it; list observables in the order of axes"
            )


def covering(o: Observable, edges: Array) -> Array:
    """Return edges that cover the range of an observable; ends that only rounding sets apart become the same."""
    slack = SAME * (o.high - o.low)
    if edges[0] > o.low + slack or edges[-1] < o.high - slack:
        raise ModelError(
            f"histogram: must cover the range [{o.low:g}, {o.high:g}] of observable '{o.name}', got edges from"
            f" {edges[0]:g} to {edges[-1]:g}; narrow the range of the observable"
        )
    edges = edges.copy()
    edges[0], edges[-1] = min(edges[0], o.low), max(edges[-1], o.high)
    return edges
