"""Files that paths and patterns stand for, and the interface of all formats: names of columns, and their numbers in chunks."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.text.suggest import nearest

Source = str | PathLike[str]


def find_files(source: Source | Iterable[Source]) -> list[Path]:
    """Return the files that a path, a pattern, or several of them stand for, those of a pattern sorted by name."""
    several = isinstance(source, Iterable) and not isinstance(source, str | bytes | PathLike | Mapping)
    sources: list[Any] = list(source) if several else [source]  # type: ignore[arg-type]
    if wrong := [one for one in sources if not isinstance(one, str | PathLike)]:
        raise DataError(f"files: must be named by paths or patterns, got {wrong[0]!r}")
    if not sources:
        raise DataError("files: needs at least one path, got none")
    files = [file for one in sources for file in matching(fspath(one))]
    twice = sorted({str(file) for file in files if files.count(file) > 1})
    if twice:
        raise DataError(f"file '{twice[0]}': given twice; its events would count twice")
    return files


def matching(text: str) -> list[Path]:
    """Return the file of this name, or the files that match it as a pattern."""
    path = Path(text).expanduser()
    if path.is_dir():
        raise DataError(f"file '{text}': is a folder; choose files in it, such as '{path / '*.root'}'")
    if path.exists():
        if not path.is_file():
            raise DataError(
                f"file '{text}': is not a plain file but a pipe or a device; write its content to a file first"
            )
        return [path]
    matches = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
    files = [file for file in matches if file.is_file()]
    if files:
        return files
    if glob.has_magic(text):
        raise DataError(f"file '{text}': no file matches this pattern in '{Path.cwd()}'")
    raise DataError(f"file '{text}': does not exist; {nearby(path)}")


def nearby(path: Path) -> str:
    """Return a suggestion of a file in the same folder, or the folder that was searched."""
    folder = path.parent
    file, _, tree = str(path).rpartition(":")
    if tree and Path(file).is_file():  # as uproot names a tree
        return f"pass {file!r} and tree={tree!r}"
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    match = nearest(path.name, names)
    return f"looked in '{folder.absolute()}'" if match is None else f"did you mean '{folder / match}'?"


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
    # None: only from the first row on
    chunks_from: Callable[[Sequence[str], int], Iterator[Chunk]] | None = None


def not_installed(package: str) -> DataError:
    """Return the error for a package that a file format needs, with how to install it."""
    return DataError(f'files: {package} is not installed; pip install "morefit[io]"')
