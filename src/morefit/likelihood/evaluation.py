"""What an evaluation of a likelihood returns, and the events that have no density."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.dataclass import dataclass

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
