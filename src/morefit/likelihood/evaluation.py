"""What a likelihood is evaluated for, which may be many datasets, and what it returns, with the events that have no density."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags, Integers
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.integrals.boxes import SharedBoxes
from morefit.kernel.fit_layout import FAR_FROM_ONE
from morefit.pipeline import Bound, Columns, Compiled
from morefit.resources import take_rows
from morefit.targets.base import Buffer, Events

PENALTY = 708.0  # minus the logarithm of the smallest density a double can hold, for each event that has none


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Minus log likelihood and derivatives for B sets; with bad events, the sums over the good ones."""

    value: Array  # (B,)
    gradient: Array  # (B, P)
    hessian: Array  # (B, P, P)
    bad: NDArray[np.int64]  # (B,) events without a positive density

    @classmethod
    def zero(cls, sets: int, count: int, order: int = 2) -> Evaluation:
        """Return an evaluation that others can be added to; its Hessian is empty below the second order."""
        width = count if order > 1 else 0
        gradient, hessian = np.zeros((sets, count)), np.zeros((sets, width, width))
        return cls(np.zeros(sets), gradient, hessian, np.zeros(sets, np.int64))

    def add(self, other: Evaluation, rows: Sequence[int], order: int) -> None:
        """Add an evaluation whose parameters are ``rows`` of this one's."""
        self.value[:] += other.value
        self.bad[:] += other.bad
        if order > 0:
            self.gradient[:, rows] += other.gradient
        if order > 1:
            self.hessian[np.ix_(range(len(self.value)), rows, rows)] += other.hessian

    def cut(self, rows: Sequence[int]) -> Evaluation:
        """Keep the derivatives by some of the parameters."""
        rows = list(rows)
        return Evaluation(self.value, self.gradient[:, rows], self.hessian[:, rows][:, :, rows], self.bad)


@dataclass(frozen=True, eq=False)
class BadEvents:
    """The events whose density is not a positive number."""

    indices: NDArray[np.int64]
    densities: Array
    total: int

    def __len__(self) -> int:
        return len(self.indices)

    def __str__(self) -> str:
        if not len(self):
            return f"all {self.total} events have a positive density"
        shown = ", ".join(f"{i} ({d:g})" for i, d in zip(self.indices[:5], self.densities[:5], strict=True))
        more = ", ..." if len(self) > 5 else ""
        return f"{len(self)} of {self.total} events have no positive density: event {shown}{more}"


@dataclass(frozen=True, eq=False)
class BadBins(BadEvents):
    """Bins whose counts have no probability: ``densities`` are the expected numbers."""

    counts: Array
    names: Sequence[str]

    def __str__(self) -> str:
        if not len(self):
            return f"all {self.total} bins have a probability"
        first = f"{self.names[0]} has {self.counts[0]:g} counts where {self.densities[0]:g} are expected"
        return f"{len(self)} of {self.total} bins have no probability: the bin {first}"


@dataclass(eq=False)
class PartData:
    """The data of one part of a likelihood in each of many datasets.

    Events are shared by all datasets, or each has a slice of the columns. Weights are one for each event, or a row of
    them for each dataset; a backend may have them already. Constraints may have measured another value in each.
    """

    columns: Columns
    events: Events
    weights: Array | Buffer | None = None  # (events,) or (datasets, events)
    measured: Array | None = None  # (datasets, values); None: those of the likelihood
    boxes: SharedBoxes = field(default_factory=SharedBoxes)
    apart: tuple[PartData, ...] = ()  # nodes at which slow terms are summed in the place of the events
    last: tuple[bytes, Compiled, Bound] | None = field(default=None, repr=False)

    def bind(self, compiled: Compiled, sets: Integers) -> Bound:
        """Bind a program to some of the datasets; the same ones as in the last call are not bound again."""
        key = b"" if self.same_for_all else sets.tobytes()
        if self.last is None or self.last[0] != key or self.last[1] is not compiled:
            events, weights = self.events, self.weights
            if not events.shared:
                events = Events(events.starts[sets], events.stops[sets], False)
            if isinstance(weights, np.ndarray) and weights.ndim > 1:
                weights = take_rows(weights, sets)
            self.last = key, compiled, compiled.bind(self.columns, events, weights, self.boxes)
        return self.last[2]

    @property
    def same_for_all(self) -> bool:
        """Whether all datasets have the same events with the same weights."""
        return self.events.shared and not (isinstance(self.weights, np.ndarray) and self.weights.ndim > 1)

    def empty(self, sets: Integers) -> Flags:
        """Return which of some datasets have no events."""
        sizes = self.events.sizes(len(sets)) if self.events.shared else self.events.sizes(1)[sets]
        return np.asarray(sizes == 0)

    def rows(self, sets: Integers) -> Array | None:
        """Return what constraints measured in some of the datasets."""
        return None if self.measured is None else self.measured[sets]


def least_mean_weight(datasets: Iterable[Dataset], *, alone: bool) -> float:
    """Return the least mean weight of some datasets, one without weights: as weights scale, so do rises of an nll.

    It is above one only where that is by orders of magnitude, and there is nothing else in the nll (``alone``).
    """
    means = (one.sum_of_weights / len(one) if one.weighted else 1.0 for one in datasets if len(one))
    least = min((mean for mean in means if mean > 0), default=1.0)
    return least if least < 1 or (alone and least > FAR_FROM_ONE) else 1.0


def check_whole_numbers(dataset: Dataset, names: Collection[str]) -> None:
    """Refuse columns of counts that have other numbers."""
    if not names:
        return
    for piece in dataset.pieces():
        for name in names:
            numbers = piece[name]
            if len(wrong := numbers[numbers != np.floor(numbers)]):
                raise DataError(
                    f"dataset: observable '{name}': {len(wrong)} of {len(numbers)} events are not whole numbers, such as"
                    f" {wrong[0]:g}; the model counts"
                )
