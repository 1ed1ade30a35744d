"""File formats, one row each: suffixes, how they are read and written; npz and ROOT files, the only file that imports uproot."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from morefit.data.io.arrow import open_csv, open_parquet, write_csv, write_parquet
from morefit.data.io.table import ROWS, Chunk, Columns, Table, not_installed
from morefit.dataclass import dataclass
from morefit.errors import DataError, MorefitError
from morefit.records.archive import verify
from morefit.records.output import complete_file

TREES = ("TTree", "TNtuple", "TNtupleD", "ROOT::RNTuple")


def import_uproot() -> Any:
    """Return the package, or raise an error that says how to install it."""
    try:
        import uproot
    except ImportError as error:
        raise not_installed("uproot") from error
    return uproot


@contextmanager
def open_root(path: Path, tree: str | None) -> Iterator[Table]:
    """Open a tree of a file by name, or the only one."""
    with import_uproot().open(path) as file:
        name = choose_tree(path, list(file.classnames(cycle=False, filter_classname=TREES)), tree)
        entries = file[name]
        # a branch has its own name, and a path where it is inside another
        branches = dict(entries.items(full_paths=False)) | dict(entries.items(full_paths=True))
        rows = int(entries.num_entries)

        def chunks_from(names: Sequence[str], first: int) -> Iterator[Chunk]:
            for start in range(first, rows, ROWS):
                stop = min(start + ROWS, rows)
                read = {n: branches[n].array(entry_start=start, entry_stop=stop, library="np") for n in names}
                yield Chunk(read, stop / rows)

        yield Table(f"tree '{name}'", tuple(branches), rows, lambda names: chunks_from(names, 0), chunks_from)


def choose_tree(path: Path, names: Sequence[str], tree: str | None) -> str:
    """Return the name of a tree, or of the only one; the error lists all trees."""
    listed = ", ".join(map(repr, names))
    if not names:
        raise DataError(f"file '{path}': must have a tree, got none; histograms go into Dataset.from_hist")
    if tree is None and len(names) > 1:
        raise DataError(f"file '{path}': has {len(names)} trees, {listed}; choose one with tree=")
    if tree is not None and tree not in names:
        raise DataError(f"file '{path}': has no tree '{tree}'; its trees are {listed}")
    return names[0] if tree is None else tree


def write_root(path: Path, columns: Columns, tree: str) -> None:
    """Write columns as a tree, with every bit of every number."""
    if labels := [name for name, column in columns.items() if column.dtype.kind == "U"]:
        raise DataError(
            f"dataset: column '{labels[0]}': labels cannot be written to a tree of ROOT; write a .parquet, .csv or .npz file"
        )
    with import_uproot().recreate(path) as file:
        table = file.mktree(tree, {name: column.dtype for name, column in columns.items()})
        length = len(next(iter(columns.values())))
        for start in range(0, length, ROWS):
            table.extend({name: column[start : start + ROWS] for name, column in columns.items()})


@contextmanager
def open_npz(path: Path, tree: str | None) -> Iterator[Table]:
    """Open a file; its columns are read as a whole, as numpy offers no other way."""
    with path.open("rb") as handle:  # np.load leaves files open that it cannot read
        verify(handle)
        with np.load(handle, allow_pickle=False) as file:

            def chunks(names: Sequence[str]) -> Iterator[Chunk]:
                yield Chunk({name: file[name] for name in names}, 1.0)

            yield Table("table", tuple(file.files), None, chunks)


def write_npz(path: Path, columns: Columns, tree: str) -> None:
    """Write columns of any name; ``np.savez`` accepts no column called 'file'."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(column), allow_pickle=False)


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
