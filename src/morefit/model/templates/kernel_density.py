"""Kernel density estimates: a sum of Gaussians around events, computed once on a fine grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.expr.interpolate import checked_numbers, short
from morefit.model.arguments import check_observables
from morefit.model.observable import Observable
from morefit.model.templates.grid import Grid, GridDensity

STEPS = 24  # cells of the grid in the width of the narrowest kernel, if the grid may have that many
MIN_STEPS = 2  # fewer would be no kernels any more
MAX_CELLS = {1: 1 << 15, 2: 1 << 9, 3: 96}  # along each axis
MIN_CELLS = 64
MAX_FACTOR = 8.0  # by which an adaptive kernel may be wider or narrower than the others
LEVELS = 1.04  # ratio of neighbouring widths; kernels in between are sums of both, with the right variance
TAIL = 6.0  # widths of a kernel beyond a range that are part of the grid, if nothing is reflected


@dataclass(frozen=True, init=False, eq=False, repr=False)
class KernelDensity(GridDensity):
    r"""$\sum_kw_k\prod_dN(x_d;x_{kd},h_{kd})$: a Gaussian around each event, in one to three observables.

    Parameters
    ----------
    observables : an observable, or a list of them
    data : a dataset, columns by name, or an array of shape (events,) or (events, observables)
    weights : one per event; those of a dataset by default
    bandwidth : the width of the kernels, a number per observable; by default that of Scott, the standard deviation times
        the effective number of events to the power -1 / (dimensions + 4)
    adaptive : whether kernels are wider where events are few: by the square root of the density of a first estimate
        with kernels of one width, as in RooKeysPdf (I. Abramson, Ann. Stat. 10 (1982) 1217)
    reflect : whether what kernels have beyond the ends of a range is reflected there, so that the estimate does not fall
        towards them

    It is computed on a grid and interpolated linearly: to 1e-3 of its value, where it is not small, if kernels are
    wider than a thousandth of the range (two dimensions: a twentieth, three: a fifth).

    Example: ``mf.KernelDensity(m, data)``
    """

    domain: tuple[Observable, ...]
    events: int
    bandwidth: tuple[float, ...]
    adaptive: bool
    reflect: bool

    def __init__(
        self,
        observables: Observable | Sequence[Observable],
        data: Any,
        *,
        weights: Any = None,
        bandwidth: float | Sequence[float] | None = None,
        adaptive: bool = True,
        reflect: bool = True,
    ) -> None:
        domain = check_observables("kernel density: observables", observables)
        if len(domain) > len(MAX_CELLS):
            raise ModelError(f"kernel density: takes 1 to {len(MAX_CELLS)} observables, got {len(domain)}")
        columns, own = read_events(domain, data)
        shares = check_weights(own if weights is None else weights, len(columns[0]))
        widths = check_bandwidth(bandwidth, domain) if bandwidth is not None else scott(columns, shares)
        for name, value in (("events", len(shares)), ("bandwidth", tuple(map(float, widths))), ("adaptive", adaptive),
                            ("reflect", reflect)):  # fmt: skip
            object.__setattr__(self, name, value)
        estimate = Estimate.of(domain, self.bandwidth, reflect, adaptive)
        counts = estimate.binned(columns, shares)
        values = estimate.smooth(counts, np.ones(counts.shape) if not adaptive else estimate.factors(counts))
        self.take(domain, estimate.grid(values))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Equal cells that cover the ranges, or reach beyond them, and the widths of kernels along each axis."""

    edges: tuple[Array, ...]
    widths: tuple[float, ...]

    @classmethod
    def of(
        cls, domain: Sequence[Observable], widths: Sequence[float], reflect: bool, adaptive: bool
    ) -> Estimate:
        edges: list[Array] = []
        for o, width in zip(domain, widths, strict=True):
            narrowest = width / 2 if adaptive else width
            most = MAX_CELLS[len(domain)]
            cells = int(np.clip(np.ceil(STEPS * (o.high - o.low) / narrowest), MIN_CELLS, most))
            step = (o.high - o.low) / cells
            if narrowest < MIN_STEPS * step:
                rule = f"kernels must be wider than {MIN_STEPS * step * width / narrowest:.3g} in '{o.name}'"
                raise ModelError(
                    f"kernel density: {rule}, a few of {cells} cells, got a bandwidth of {width:.3g}; narrow the"
                    " range, or give a wider bandwidth"
                )
            reach = 2 * TAIL * width if adaptive else TAIL * width
            beyond = 0 if reflect else int(min(np.ceil(reach / step), 2 * most))
            axis = np.asarray(o.low + step * np.arange(-beyond, cells + beyond + 1), np.float64)
            axis[beyond + cells] = o.high  # of which the sum is a rounding away
            edges.append(axis)
        return cls(tuple(edges), tuple(widths))

    def binned(self, columns: Sequence[Array], weights: Array) -> Array:
        """Return the weights of events, each divided between the two nearest centres along each axis."""
        shape = tuple(len(e) - 1 for e in self.edges)
        places = [
            np.clip((c - e[0]) / (e[1] - e[0]) - 0.5, 0, len(e) - 2)
            for c, e in zip(columns, self.edges, strict=True)
        ]
        firsts = [np.minimum(place.astype(np.int64), n - 2) for place, n in zip(places, shape, strict=True)]
        counts = np.zeros(int(np.prod(shape)))
        for corner in np.ndindex((2,) * len(shape)):
            share, index = weights, np.zeros(len(weights), np.int64)
            for place, first, side, n in zip(places, firsts, corner, shape, strict=True):
                distance = place - first
                share = share * (distance if side else 1 - distance)
                index = index * n + first + side
            counts += np.bincount(index, share, len(counts))
        return counts.reshape(shape)

    def smooth(self, counts: Array, factors: Array) -> Array:
        """Add a kernel around each cell, its width times a factor; reflected at the ends of the grid.

        A reflected Gaussian multiplies the terms of a cosine series by a Gaussian (Z. Botev et al., Ann. Stat. 38 (2010)).
        """
        from scipy.fft import dctn, idctn  # type: ignore[import-untyped]  # slow, and only this needs it

        levels = (
            np.maximum(np.ceil(np.log(factors.max() / factors.min()) / np.log(LEVELS)), 0).astype(int) + 1
        )
        known = np.geomspace(factors.min(), factors.max(), levels)
        below = np.clip(np.searchsorted(known, factors, "right") - 1, 0, max(levels - 2, 0))
        series = np.zeros(counts.shape)
        for k, factor in enumerate(known):
            share = np.where(below == k, 1.0, 0.0)
            if levels > 1:
                variances = known**2
                gap = variances[below + 1] - variances[below]
                upper = np.clip((factors**2 - variances[below]) / gap, 0, 1)
                share = np.where(below == k, 1 - upper, np.where(below + 1 == k, upper, 0.0))
            series += dctn(counts * share, type=2) * self.damping(factor)
        return np.asarray(np.maximum(idctn(series, type=2), 0.0))

    def damping(self, factor: float) -> Array:
        """Return what a kernel multiplies each term of the cosine series by; the binning has widened events already."""
        damping = np.ones(())
        for e, width in zip(self.edges, self.widths, strict=True):
            variance = max((factor * width) ** 2 - (e[1] - e[0]) ** 2 / 6, 0.0)
            waves = np.pi * np.arange(len(e) - 1) / (e[-1] - e[0])
            damping = np.multiply.outer(damping, np.exp(-0.5 * variance * waves**2))
        return np.asarray(damping)

    def factors(self, counts: Array) -> Array:
        """Return how much wider the kernel of each cell is, by a first estimate; its geometric mean over events is one."""
        first = self.smooth(counts, np.ones(counts.shape))
        positive = np.maximum(first, first.max() * 1e-12)
        mean = np.exp(np.sum(counts * np.log(positive)) / np.sum(counts))
        return np.asarray(np.clip(np.sqrt(mean / positive), 1 / MAX_FACTOR, MAX_FACTOR))

    def grid(self, values: Array) -> Grid:
        return Grid.of_bins(self.edges, values, "linear")


def read_events(domain: Sequence[Observable], data: Any) -> tuple[list[Array], Any]:
    """Return a column for each observable, and the weights that the data have."""
    table, own = (data, None) if is_plain(data) else named_columns(domain, data)
    if isinstance(table, Mapping):
        if missing := [o.name for o in domain if o.name not in table]:
            raise ModelError(
                f"kernel density: observable '{missing[0]}' is not in the data, which have {sorted(table)}"
            )
        columns = [checked_numbers(f"kernel density: column '{o.name}'", table[o.name]) for o in domain]
    else:
        array = checked_numbers("kernel density: data", data)
        columns = list(array[:, None].T if array.ndim == 1 else array.T) if array.ndim in (1, 2) else []
    if len(columns) != len(domain) or any(c.shape != columns[0].shape or c.ndim != 1 for c in columns):
        raise ModelError(
            f"kernel density: needs a column for each of {len(domain)} observables, got {short(data)}"
        )
    if len(columns[0]) < 2:
        raise ModelError(f"kernel density: needs at least two events, got {len(columns[0])}")
    for o, column in zip(domain, columns, strict=True):
        if outside := int(np.sum((column < o.low) | (column > o.high))):
            raise ModelError(
                f"kernel density: observable '{o.name}': {outside} of {len(column)} events lie outside [{o.low:g},"
                f" {o.high:g}]; cut the data or widen the range"
            )
    return columns, own


def is_plain(data: Any) -> bool:
    """Return whether data are columns by name, or an array without names; frames, tables and records have names."""
    unnamed = isinstance(data, np.ndarray) and data.dtype.names is None
    return unnamed or isinstance(data, Mapping | Sequence)


def named_columns(domain: Sequence[Observable], data: Any) -> tuple[dict[str, Array], Any]:
    """Return the columns of some observables, and the weights, of whatever a dataset can be made of.

    Datasets lie above this room, and are imported when first used.
    """
    try:
        dataset = import_module("morefit.data.dataset").Dataset(data, domain)
    except DataError as error:
        raise ModelError(f"kernel density: {error}") from None
    return dataset.columns, dataset.weights


def check_weights(weights: Any, events: int) -> Array:
    if weights is None:
        return np.ones(events)
    shares = checked_numbers("kernel density: weights", weights)
    if shares.shape != (events,) or np.any(shares < 0) or not shares.sum() > 0:
        raise ModelError(
            f"kernel density: weights must be {events} numbers, zero or positive, got {short(weights)}"
        )
    return shares


def check_bandwidth(bandwidth: Any, domain: Sequence[Observable]) -> Array:
    widths = checked_numbers("kernel density: bandwidth", bandwidth).ravel()
    if len(widths) != len(domain) or not np.all(widths > 0):
        raise ModelError(
            f"kernel density: bandwidth must be a positive number for each of {len(domain)} observables, got"
            f" {short(bandwidth)}"
        )
    return widths


def scott(columns: Sequence[Array], weights: Array) -> Array:
    """Return the widths of Scott's rule, with the effective number of events."""
    effective = weights.sum() ** 2 / np.sum(weights**2)
    sizes = np.sqrt([np.cov(column, aweights=weights) for column in columns])
    if not np.all(sizes > 0):
        raise ModelError("kernel density: all events are the same in one observable; give a bandwidth")
    return np.asarray(sizes * effective ** (-1 / (len(columns) + 4)))
