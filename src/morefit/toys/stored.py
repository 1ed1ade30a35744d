"""Toys whose events are stored: on a backend, one toy after the other, or with the host, each where it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.data.dataset import Dataset, build
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import FitRows
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood import Likelihood
from morefit.targets.base import Buffer, Drawn, Events, WholeFit
from morefit.targets.cpu.pieces import Pieces
from morefit.toys.batch import Toys
from morefit.toys.whole_fits import by_events

if TYPE_CHECKING:
    from morefit.toys.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class StoredPart:
    """The events of one part of a likelihood in many datasets, where these have them."""

    names: tuple[str, ...]  # of the columns
    columns: tuple[Pieces, ...]
    weights: Pieces | None  # None: events of all datasets count once
    weighted: Flags  # which datasets have weights

    @classmethod
    @classmethod
    def of_datasets(cls, names: Sequence[str], datasets: Sequence[Dataset]) -> StoredPart:
        """Take the columns of datasets that are checked."""
        tables = [data.columns for data in datasets]
        columns = [pieces_of([table[name] for table in tables]) for name in names]
        weighted = np.array([data.weighted for data in datasets], np.bool_)
        own = completed([data.weights for data in datasets], columns[0].sizes) if weighted.any() else None
        return cls(tuple(names), tuple(columns), None if own is None else pieces_of(own), weighted)

    def __len__(self) -> int:
        return len(self.weighted)

    @property
    def sizes(self) -> Integers:
        """How many events each dataset has."""
        return self.columns[0].sizes

    def some(self, chosen: Integers) -> StoredPart:
        """Return some of the datasets."""
        weights = None if self.weights is None else self.weights.some(chosen)
        columns = tuple(column.some(chosen) for column in self.columns)
        return StoredPart(self.names, columns, weights, self.weighted[chosen])

    def between(self, cut: slice) -> StoredPart:
        """Return datasets that follow one another."""
        weights = None if self.weights is None else self.weights.between(cut)
        columns = tuple(column.between(cut) for column in self.columns)
        return StoredPart(self.names, columns, weights, self.weighted[cut])

    def cut(self, sizes: Integers) -> StoredPart:
        """Cut the only dataset into several."""
        each = [Pieces.cut(own.arrays[0], sizes) for own in (*self.columns, self.weights) if own is not None]
        pieces = [own for own in each if own is not None]
        weighted = self.weights is not None
        columns, weights = (pieces[:-1], pieces[-1]) if weighted else (pieces, None)
        return StoredPart(self.names, tuple(columns), weights, np.full(len(sizes), weighted))

    def columns_of(self, number: int, weighted: bool) -> dict[str, Array]:
        """Return the columns of one dataset; weights are one of them if that is wanted."""
        columns = {name: own.arrays[number] for name, own in zip(self.names, self.columns, strict=True)}
        if weighted:
            own = self.weights
            columns[WEIGHT.name] = np.ones(self.sizes[number]) if own is None else own.arrays[number]
        return columns

    def dataset(self, number: int) -> Dataset:
        """Return one dataset, without a copy."""
        columns = {name: column[:] for name, column in self.columns_of(number, False).items()}
        weighted = self.weights is not None and self.weighted[number]
        return build(columns, self.weights.arrays[number][:] if weighted else None, None)  # type: ignore[union-attr]

    def buffers(self, weighted: bool) -> tuple[Pieces, ...]:
        """Return all columns; weights are the last if that is wanted."""
        if not weighted:
            return self.columns
        return (*self.columns, self.weights or pieces_of(completed([None] * len(self), self.sizes)))


def completed(weights: Sequence[Any], sizes: Integers) -> list[Any]:
    """Return the weights of each dataset, ones where it has none."""
    ones = np.ones(int(sizes.max(initial=0)))
    each = zip(weights, sizes.tolist(), strict=True)
    return [ones[:size] if own is None else own for own, size in each]


def pieces_of(arrays: Sequence[Any]) -> Pieces:
    """Return where arrays of numbers are; those that are no doubles one after the other are copied."""
    pieces = Pieces.of(arrays) or Pieces.of([np.array(array, np.float64) for array in arrays])
    assert pieces is not None
    return pieces


@dataclass(eq=False)
class StoredToys(Toys):
    """Toys whose events are stored."""

    # of each part: a column for each observable, weights last, where the backend can read it
    buffers: tuple[tuple[Buffer, ...], ...] = ()
    # for what constraints measure
    toy_numbers: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    parts: tuple[StoredPart, ...] = ()  # where the host has the events; empty: in the buffers alone

    @classmethod
    def of(cls, ensemble: Ensemble, toys: Sequence[Toys]) -> StoredToys:
        """Concatenate single toys where the backend can read them."""
        datasets = [toy.datasets(0) for toy in toys]
        return cls.of_datasets(ensemble, datasets, np.array([toy.numbers[0] for toy in toys], np.int64))

    @classmethod
    def of_datasets(
        cls, ensemble: Ensemble, datasets: Sequence[Sequence[Dataset]], numbers: Integers | None = None
    ) -> StoredToys:
        """Take the datasets of each toy, part by part."""
        return cls.of_parts(ensemble, stored_parts(ensemble, datasets), numbers)

    @classmethod
    def of_parts(
        cls, ensemble: Ensemble, parts: Sequence[StoredPart], numbers: Integers | None = None
    ) -> StoredToys:
        """Take the events of each part, where the backend can read them."""
        upload = ensemble.backend.upload_pieces
        buffers = tuple(tuple(map(upload, part.buffers(ensemble.weighted))) for part in parts)
        sizes = np.stack([part.sizes for part in parts], axis=1)
        known = np.arange(len(sizes)) if numbers is None else numbers
        return cls(ensemble, 0, sizes, buffers, known, tuple(parts))

    @property
    def numbers(self) -> Integers:
        return self.toy_numbers

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        return tuple(Drawn(columns, 0, 0) for columns in self.buffers)

    def columns_of(self, toy: int, part: int) -> dict[str, Array]:
        if not self.parts:
            return super().columns_of(toy, part)
        return self.parts[part].columns_of(toy, self.ensemble.weighted)

    def events_to_check(self, toys: Integers, k: int, part: Likelihood) -> dict[str, Array]:
        """Return some events of part ``k`` of each toy, (toys, events)."""
        each = [part.events_to_check(self.columns_of(toy, k)) for toy in toys.tolist()]
        return {name: np.stack([some[name] for some in each]) for name in each[0]}

    def one(self, toy: int) -> StoredToys:
        return StoredToys.of_datasets(self.ensemble, [self.datasets(toy)], self.toy_numbers[toy : toy + 1])

    def some(self, toys: Integers) -> StoredToys:
        """Return some of these toys."""
        if len(toys) == len(self):
            return self
        if self.parts:
            parts = [part.some(toys) for part in self.parts]
            return StoredToys.of_parts(self.ensemble, parts, self.toy_numbers[toys])
        upload, buffers = self.ensemble.backend.upload, []
        for columns, sizes in zip(self.buffers, self.sizes.T, strict=True):
            own, starts = sizes[toys], Events.slices(sizes).starts[toys]
            ends = np.cumsum(own)
            events = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + own, own)
            buffers.append(tuple(upload(column.values[events]) for column in columns))
        return StoredToys(self.ensemble, 0, self.sizes[toys], tuple(buffers), self.toy_numbers[toys])

    def gathered(self, toys: Integers) -> StoredToys:
        return self.some(toys)

    def in_memory(self, toys: Integers) -> Iterator[tuple[Integers, Toys]]:
        for some in by_events(toys, self.events):
            yield some, self.some(some)

    def whole_job(self, ensemble: Ensemble) -> tuple[WholeFit, int] | None:
        """Return what fits toys in compiled code; their events are copied to where a thread works on them."""
        if not ensemble.has_whole_fit:
            return None
        return ensemble.whole_fit_of(ensemble.whole_parts), ensemble.result_width

    def repair(self, ensemble: Ensemble, results: FitRows) -> bool:
        return False

    def is_stored(self, k: int) -> bool:
        return True


def stored_parts(ensemble: Ensemble, datasets: Sequence[Sequence[Dataset]]) -> list[StoredPart]:
    """Return the events of each part of datasets that are checked."""
    names = [[o.name for o in part.model.observables] for part in ensemble.drawn.parts]
    return [StoredPart.of_datasets(own, [data[k] for data in datasets]) for k, own in enumerate(names)]
