"""What every kind of file offers: the names of its columns, and their numbers a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from morefit.errors import DataError

Columns = Mapping[str, NDArray[Any]]
ROWS = 1 << 20  # of a piece: some columns of so many doubles fit into memory anywhere


class Ranged(Protocol):
    """Anything with a name and a range: an observable."""

    @property
    def name(self) -> str: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@dataclass(frozen=True)
class Chunk:
    """A piece of a file: some columns, and which share of the file has been read with it."""

    columns: Columns
    done: float


@dataclass(frozen=True)
class Table:
    """An open file: its columns by name, read a piece at a time."""

    what: str  # how a message calls it, such as "tree 'events'"
    names: tuple[str, ...]
    rows: int | None  # None where only reading tells
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]


def not_installed(package: str) -> DataError:
    """Say how to install what a kind of file needs."""
    return DataError(f'files: {package} is not installed; pip install "morefit[io]"')
