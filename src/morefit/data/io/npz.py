"""Columns in npz files of numpy, one array per column."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from morefit.data.io.table import Chunk, Columns, Table
from morefit.records.archive import verify


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
