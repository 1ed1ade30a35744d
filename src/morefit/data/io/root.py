"""Trees and RNTuples in ROOT files; the only file that imports uproot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from morefit.data.io.table import ROWS, Chunk, Columns, Table, not_installed
from morefit.errors import DataError

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
