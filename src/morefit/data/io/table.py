"""The interface of all file formats: names of columns, and their numbers in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from morefit.dataclass import dataclass
from morefit.errors import DataError

Columns = Mapping[str, NDArray[Any]]
ROWS = 1 << 20  # of a chunk: 8 MB per column


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
    """Some rows of a file, and the fraction of the file that is read with them."""

    columns: Columns
    done: float


@dataclass(frozen=True)
class Table:
    """An open file: its columns by name, read in chunks; of some formats from any row on."""

    what: str  # its name in messages, such as "tree 'events'"
    names: tuple[str, ...]
    rows: int | None  # None if not known before reading
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]
    chunks_from: Callable[[Sequence[str], int], Iterator[Chunk]] | None = (
        None  # None: only from the first row on
    )


def not_installed(package: str) -> DataError:
    """Return the error for a package that a file format needs, with how to install it."""
    return DataError(f'files: {package} is not installed; pip install "morefit[io]"')
