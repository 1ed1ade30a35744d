"""Columns of numbers in files and histograms; the only package that imports uproot, pyarrow and hist."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morefit.data.io.formats import FORMATS, check_tree, open_table, write_table
    from morefit.data.io.histogram import Bins, Histogram, events_of, fill_histogram, filled_histogram
    from morefit.data.io.paths import Source, find_files
    from morefit.data.io.table import Chunk, Columns, Ranged, Table
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(
        __name__,
        {
            "morefit.data.io.formats": ["FORMATS", "check_tree", "open_table", "write_table"],
            "morefit.data.io.histogram": [
                "Bins",
                "Histogram",
                "events_of",
                "fill_histogram",
                "filled_histogram",
            ],
            "morefit.data.io.paths": ["Source", "find_files"],
            "morefit.data.io.table": ["Chunk", "Columns", "Ranged", "Table"],
        },
    )

__all__ = [
    "FORMATS", "Bins", "Chunk", "Columns", "Histogram", "Ranged", "Source", "Table", "check_tree", "events_of", "fill_histogram", "filled_histogram",
    "find_files", "open_table", "write_table",
]  # fmt: skip
