"""Pieces of files: the same rows at every pass, selected as ``mf.read`` selects them, one piece read ahead."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import numpy as np

from morefit.arrays import Array
from morefit.data.columns import to_column
from morefit.data.dataset import Dataset, build
from morefit.data.io.formats import open_table
from morefit.data.io.table import Chunk, Columns
from morefit.data.reading import Reader, Wanted
from morefit.data.report import CutReport
from morefit.dataclass import dataclass
from morefit.errors import DataError

Region = Mapping[str, Sequence[tuple[float, float]]]
T = TypeVar("T")
MAX_ROWS = 1 << 20  # of a piece, fewer with many columns:
MAX_NUMBERS = 1 << 23  # 64 MB
SAMPLED = 2048  # events of a piece that stay in memory, for checks of models


@dataclass(frozen=True)
class StoredFile:
    """A file as it was when it was first read."""

    path: Path
    size: int
    modified: int  # ns
    rows: int

    @classmethod
    def of(cls, path: Path, tree: str | None) -> StoredFile:
        """Return what is known of a file without reading its columns."""
        state = path.stat()
        with open_table(path, tree) as table:
            if table.rows is None or table.chunks_from is None:
                raise DataError(
                    f"file '{path}': only parquet and ROOT files can be read in pieces, got '{path.suffix}'; write it as"
                    " parquet, or read it as a whole with mf.read"
                )
            return cls(path, state.st_size, state.st_mtime_ns, table.rows)

    def check(self) -> None:
        """Raise an error if the file is no longer what it was."""
        try:
            state = self.path.stat()
        except OSError as error:
            raise DataError(
                f"file '{self.path}': must be there at every pass over the data, got {error.strerror}; put it back, on"
                " a cluster where all workers can read it"
            ) from None
        if (state.st_size, state.st_mtime_ns) != (self.size, self.modified):
            raise self.changed()

    def changed(self) -> DataError:
        """Return the error for a file that is not what it was."""
        return DataError(
            f"file '{self.path}': must not change between two passes over the data, but has been written since it was"
            " first read; make the mf.FileDataset anew"
        )


@dataclass(frozen=True)
class Summary:
    """What is known of the events of a piece, or of all, after the first pass."""

    report: CutReport
    low: Mapping[str, float]  # the smallest number of each column, inf if there is none
    high: Mapping[str, float]
    sum_of_weights: float
    sample: Dataset

    @classmethod
    def of(cls, piece: Dataset) -> Summary:
        """Summarise a piece."""
        assert piece.report is not None
        columns = piece.columns
        return cls(
            piece.report,
            {name: float(column.min(initial=np.inf)) for name, column in columns.items()},
            {name: float(column.max(initial=-np.inf)) for name, column in columns.items()},
            piece.sum_of_weights,
            piece[:: max(1, len(piece) // SAMPLED)],
        )


@dataclass(frozen=True)
class Pieces:
    """The rows of files in pieces of a fixed number of rows, the last one of a file being shorter; what workers are sent."""

    files: tuple[StoredFile, ...]
    wanted: Wanted
    tree: str | None
    rows: int  # of a piece
    regions: tuple[Region, ...] = ()  # in which events lie besides the ranges of the observables

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of the first piece of each file, and of all pieces."""
        return (0, *accumulate(-(-file.rows // self.rows) for file in self.files))

    def __len__(self) -> int:
        return self.starts[-1]

    def read(self, first: int, stop: int, selected: Sequence[int] = ()) -> Generator[Dataset, None, None]:
        """Read some pieces; ``selected`` has the number of selected events of every piece after the first pass."""
        number = first
        while number < stop:
            k = bisect_right(self.starts, number) - 1  # the file
            file, start, last = self.files[k], self.starts[k], min(stop, self.starts[k + 1])
            file.check()
            with open_table(file.path, self.tree) as table:
                assert table.chunks_from is not None
                chunks = table.chunks_from(self.wanted.names, (number - start) * self.rows)
                for raw in in_pieces(chunks, self.rows):
                    piece = self.select(
                        file, (number - start) * self.rows, raw, selected[number] if selected else -1
                    )
                    number += 1
                    yield piece
                    if number == last:
                        break
            file.check()
            if number < last:
                raise file.changed()

    def select(self, file: StoredFile, row: int, raw: Columns, selected: int) -> Dataset:
        """Return the events of a piece that pass the cut and lie in the ranges; ``selected`` of them, if that is known."""
        columns: dict[str, Array]
        raw = self.wanted.with_formula(raw)
        if selected == len(next(iter(raw.values()))):  # all of them
            columns, report = {name: to_column(raw[name])[0] for name in self.wanted.columns}, None
        else:
            lists: dict[str, list[Array]] = {name: [] for name in self.wanted.columns}
            reader = Reader(file.path, self.wanted, lists, row)
            reader.add(raw)
            columns, report = {name: column for name, (column,) in lists.items()}, reader.report()
        weights = None if self.wanted.weight is None else columns.pop(self.wanted.weight)
        piece = build(columns, weights, report)
        for region in self.regions if report else ():
            piece = piece.inside(region)
        if selected not in (-1, len(piece)):
            raise file.changed()
        return piece


def in_pieces(chunks: Iterable[Chunk], rows: int) -> Iterator[Columns]:
    """Join and cut chunks of any size into pieces of a fixed number of rows; the last one may be shorter."""
    waiting: list[Columns] = []
    missing = rows
    for chunk in chunks:
        columns = chunk.columns
        length = len(next(iter(columns.values())))
        while length >= missing:
            yield join([*waiting, {name: column[:missing] for name, column in columns.items()}])
            columns = {name: column[missing:] for name, column in columns.items()}
            length -= missing
            waiting, missing = [], rows
        if length:
            waiting.append(columns)
            missing -= length
    if waiting:
        yield join(waiting)


def join(parts: Sequence[Columns]) -> Columns:
    """Return columns one after the other."""
    first, *others = parts
    return {name: np.concatenate([part[name] for part in parts]) for name in first} if others else first


def read_ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield what a generator yields, which another thread computes one item ahead."""
    with ThreadPoolExecutor(1, thread_name_prefix="morefit-reader") as pool:
        try:
            following = pool.submit(next, items, None)
            while (item := following.result()) is not None:
                following = pool.submit(next, items, None)
                yield item
        finally:
            pool.submit(items.close)
