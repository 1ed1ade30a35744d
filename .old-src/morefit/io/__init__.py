"""Columns of numbers in files and histograms; the only room that imports uproot, pyarrow and hist."""

from morefit.io.formats import FORMATS, check_tree, open_table, write_table
from morefit.io.histogram import Histogram, events_of, fill_histogram
from morefit.io.paths import Source, find_files
from morefit.io.table import Chunk, Columns, Ranged, Table

__all__ = [
    "FORMATS", "Chunk", "Columns", "Histogram", "Ranged", "Source", "Table", "check_tree", "events_of", "fill_histogram", "find_files",
    "open_table", "write_table",
]  # fmt: skip
