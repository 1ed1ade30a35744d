"""File formats, one row each: the suffixes of their names, how they are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from morefit.data.io.arrow import open_csv, open_parquet, write_csv, write_parquet
from morefit.data.io.npz import open_npz, write_npz
from morefit.data.io.root import open_root, write_root
from morefit.data.io.table import Columns, Table
from morefit.errors import DataError, MorefitError
from morefit.records.output import complete_file


@dataclass(frozen=True)
class Format:
    """One file format."""

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[Path, str | None], AbstractContextManager[Table]]
    write: Callable[[Path, Columns, str], None]


FORMATS = (
    Format("ROOT", (".root",), open_root, write_root),
    Format("parquet", (".parquet", ".pq"), open_parquet, write_parquet),
    Format("CSV", (".csv",), open_csv, write_csv),
    Format("npz", (".npz",), open_npz, write_npz),
)
BY_SUFFIX = {suffix: row for row in FORMATS for suffix in row.suffixes}
TREE = "events"  # default name of a tree that is written


def format_of(path: Path) -> Format:
    """Return the format of a file by the suffix of its name."""
    row = BY_SUFFIX.get(path.suffix.lower())
    if row is None:
        rule = f"its name must end in {', '.join(BY_SUFFIX)}, got '{path.suffix}'"
        raise DataError(f"file '{path}': {rule}; convert it, or pass its columns to mf.Dataset")
    return row


def check_tree(paths: list[Path], tree: str | None) -> None:
    """Raise an error for a tree if no file is a ROOT file."""
    if tree is not None and not any(format_of(path).name == "ROOT" for path in paths):
        raise DataError(f"file '{paths[0]}': only ROOT files have trees, got tree={tree!r}; leave it out")


@contextmanager
def open_table(path: Path, tree: str | None = None) -> Iterator[Table]:
    """Open a file of any format; errors of its package become errors that name the file."""
    row = format_of(path)
    try:
        with row.open(path, tree) as table:
            yield table
    except MorefitError:
        raise
    except Exception as error:  # the packages raise whatever their decoders do
        lines = str(error).strip().splitlines() or [""]
        cause = f"{type(error).__name__}: {lines[0]}"
        raise DataError(
            f"file '{path}': cannot be read as {row.name}, got {cause}; it may be cut short or of another kind"
        ) from error


def write_table(path: Path, columns: Columns, tree: str | None = None) -> None:
    """Write columns to a file of the format of its name; it appears complete or not at all."""
    row = format_of(path)
    check_tree([path], tree)
    if not path.parent.is_dir():
        raise DataError(f"file '{path}': there is no folder '{path.parent}'; make it first")
    with complete_file(path) as part:
        row.write(part, columns, tree or TREE)
