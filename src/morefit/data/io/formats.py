"""File formats, one row each: suffixes, how they are read and written; npz, ROOT, parquet and CSV files; the only file that imports uproot and pyarrow."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.data.io.table import ROWS, Chunk, Columns, Table, not_installed
from morefit.dataclass import dataclass
from morefit.errors import DataError, MorefitError
from morefit.records.archive import verify
from morefit.records.output import complete_file
from morefit.validate import single_names

EXACT = 2.0**53  # whole numbers up to here are doubles; above, some are not
BYTES = 1 << 22  # that are read at once; of CSV files pyarrow reads several such blocks ahead


def import_pyarrow() -> Any:
    """Return the package with its modules for files, or raise an error that says how to install it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise not_installed("pyarrow") from error
    return pyarrow


@contextmanager
def open_parquet(path: Path, tree: str | None) -> Iterator[Table]:
    """Open a parquet file, to be read in chunks."""
    # with pre_buffer the columns of the whole file would be in memory
    parquet = import_pyarrow().parquet
    with parquet.ParquetFile(
        path, pre_buffer=False, buffer_size=BYTES, page_checksum_verification=True
    ) as file:
        rows = int(file.metadata.num_rows)

        def chunks_from(names: Sequence[str], first: int) -> Iterator[Chunk]:
            check_names(path, file.schema_arrow.names, names)
            read, groups = 0, list(range(file.num_row_groups))
            while groups and read + (size := file.metadata.row_group(groups[0]).num_rows) <= first:
                read += size
                del groups[0]
            for batch in file.iter_batches(batch_size=ROWS, row_groups=groups, columns=list(names)):
                before, read = read, read + batch.num_rows
                if read > first:
                    yield Chunk(arrays(batch.slice(max(first - before, 0)), names), read / rows)

        yield Table(
            "table", tuple(file.schema_arrow.names), rows, lambda names: chunks_from(names, 0), chunks_from
        )


def check_names(path: Path, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse to read columns whose name another one has as well."""
    try:
        single_names(known, wanted)
    except DataError as error:
        raise DataError(f"file '{path}': {error}") from None


def arrays(batch: Any, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return columns as arrays, with NaN where numbers are missing."""
    return {name: batch.column(name).to_numpy(zero_copy_only=False) for name in names}


def write_parquet(path: Path, columns: Columns, tree: str) -> None:
    """Write a parquet file, with every bit of every number, and checksums of its pages."""
    pyarrow = import_pyarrow()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), path, write_page_checksum=True)


@contextmanager
def open_csv(path: Path, tree: str | None) -> Iterator[Table]:
    """Open a CSV file with the names of columns in its first line, to be read in chunks.

    Numbers are rounded correctly, so that those that were written come back exactly.
    """
    pyarrow = import_pyarrow()
    with pyarrow.csv.open_csv(path) as reader:
        header = [field.name.strip() for field in reader.schema]
        kinds = dict(zip(header, (field.type for field in reader.schema), strict=True))
    known = [name if header.count(name) == 1 else f"{name} ({k})" for k, name in enumerate(header)]

    def chunks(names: Sequence[str]) -> Iterator[Chunk]:
        check_names(path, header, names)
        # numbers after the first lines may have fractions
        whole = {n for n in names if pyarrow.types.is_integer(kinds[n])}
        other = (pyarrow.types.is_boolean, pyarrow.types.is_string)
        types = {
            n: kinds[n] if any(is_kind(kinds[n]) for is_kind in other) else pyarrow.float64() for n in names
        }
        types |= dict.fromkeys(whole, pyarrow.string())
        layout = pyarrow.csv.ReadOptions(column_names=known, skip_rows=1, block_size=BYTES)
        wanted = pyarrow.csv.ConvertOptions(
            include_columns=list(names), column_types=types, strings_can_be_null=True
        )
        size = path.stat().st_size
        with (
            pyarrow.OSFile(str(path)) as file,
            pyarrow.csv.open_csv(file, read_options=layout, convert_options=wanted) as reader,
        ):
            for batch in reader:
                columns = {n: whole_numbers(batch.column(n)) for n in whole} | arrays(
                    batch, set(names) - whole
                )
                yield Chunk(columns, file.tell() / size)

    yield Table("table", tuple(kinds), None, chunks)


def whole_numbers(texts: Any) -> NDArray[Any]:
    """Return a column whose first entries are whole numbers: in double precision, unless that is not exact.

    Later entries may have fractions, and the sign of a zero must be preserved.
    """
    numbers: NDArray[Any] = texts.cast("float64").to_numpy(zero_copy_only=False)
    if np.all(np.abs(numbers) <= EXACT) or np.any((numbers == 0) & np.signbit(numbers)):
        return numbers
    try:
        exact: NDArray[Any] = texts.cast("int64").to_numpy(zero_copy_only=False)
        return exact
    except ValueError:  # of pyarrow: some have fractions
        return numbers


def write_csv(path: Path, columns: Columns, tree: str) -> None:
    """Write a CSV file, with as many digits as every bit of every number needs."""
    pyarrow = import_pyarrow()
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(columns)
    with path.open("wb") as file:
        file.write(header.getvalue().encode())
        options = pyarrow.csv.WriteOptions(include_header=False)
        pyarrow.csv.write_csv(pyarrow.table(dict(columns)), file, options)


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
