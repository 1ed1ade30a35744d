"""Toys of several batches that one launch draws and fits: each toy has a row of the numbers that its batch has for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.targets.base import Buffer, PartBatch, ToyBatch

MAX_OFFSET = 1 << 30  # between the numbers of toys, so that a sum of two is an integer of 32 bits


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinedPart:
    """One part of a likelihood in all toys; K is the number of batches."""

    parameters: Array  # (K, parameters)
    numbers: Array  # (K, numbers) to draw with
    seed: int
    measured: Array  # (toys, values), empty where constraints do not fluctuate
    events: tuple[Buffer, ...] = ()
    starts: Integers | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinedToys:
    """Toys of K batches."""

    sizes: Integers  # (toys, parts)
    first: int  # the number of the first toy
    offsets: NDArray[np.int32]  # of the number of each toy from the first
    rows: NDArray[np.int32]  # the batch of each toy
    records: Array  # (K, size)
    parts: tuple[JoinedPart, ...]

    @classmethod
    def of(cls, batches: Sequence[ToyBatch], numbers: Sequence[Sequence[Array]]) -> JoinedToys:
        """Join batches whose parts are drawn with these numbers."""
        lengths, first = [len(toys) for toys in batches], batches[0].first
        numbered = [toys.first - first + toys.own_offsets for toys in batches]
        return cls(
            sizes=np.concatenate([toys.sizes for toys in batches]) if len(batches) > 1 else batches[0].sizes,
            first=first,
            offsets=np.concatenate(numbered).astype(np.int32),
            rows=np.repeat(np.arange(len(batches), dtype=np.int32), lengths),
            records=np.array([toys.record for toys in batches]),
            parts=tuple(
                join_part([toys.parts[k] for toys in batches], [own[k] for own in numbers])
                for k in range(len(batches[0].parts))
            ),
        )

    def __len__(self) -> int:
        return len(self.sizes)


def join_part(batches: Sequence[PartBatch], numbers: Sequence[Array]) -> JoinedPart:
    measured = [batch.measured for batch in batches if batch.measured is not None]
    return JoinedPart(
        parameters=np.array([batch.parameters for batch in batches]),
        numbers=np.array(numbers),
        seed=batches[0].seed,
        measured=np.concatenate(measured) if measured else np.empty((0, 0)),
        events=batches[0].events,
        starts=batches[0].starts,
    )


def can_join(one: ToyBatch, other: ToyBatch) -> bool:
    """Return whether toys can be drawn and fitted together, if kernels can be the same."""
    drawn = not any(part.events for toys in (one, other) for part in toys.parts)
    seeds = all(a.seed == b.seed for a, b in zip(one.parts, other.parts, strict=True))
    measured = all(
        (a.measured is None) == (b.measured is None) for a, b in zip(one.parts, other.parts, strict=True)
    )
    return (
        drawn
        and seeds
        and measured
        and 0 <= other.first - one.first <= MAX_OFFSET - int(other.own_offsets[-1])
    )
