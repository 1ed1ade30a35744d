"""Columns in parquet and CSV files; the only file that imports pyarrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.data.io.table import ROWS, Chunk, Columns, Table, not_installed
from morefit.errors import DataError
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
