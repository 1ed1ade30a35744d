"""Tables of results: their columns, and plain text with decimal points below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column of a table; numeric ones are aligned at their decimal points."""

    heading: str
    cells: Sequence[str]
    numeric: bool = True


def text_table(columns: Sequence[Column]) -> str:
    """Return a table as aligned plain text."""
    rows = zip(*map(aligned, columns), strict=True)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def aligned(column: Column) -> list[str]:
    """Return heading and cells padded to one width."""
    cells = align_points(column.cells) if column.numeric else column.cells
    width = max(map(len, [column.heading, *cells]))
    pad = str.rjust if column.numeric else str.ljust
    return [pad(cell, width) for cell in (column.heading, *cells)]


def align_points(cells: Sequence[str]) -> list[str]:
    """Pad numbers so that their decimal points are below each other; cells without digits are right-aligned."""
    before = max(map(digits_before, cells), default=0)
    lines = [" " * (before - digits_before(cell)) + cell if has_digits(cell) else cell for cell in cells]
    width = max(map(len, lines), default=0)
    return [(str.ljust if has_digits(line) else str.rjust)(line, width) for line in lines]


def digits_before(cell: str) -> int:
    """Return the number of characters before the decimal point, 0 for a cell without digits."""
    return len(cell.partition(".")[0]) if has_digits(cell) else 0


def has_digits(cell: str) -> bool:
    """Return whether a cell contains a finite number."""
    return any(map(str.isdigit, cell))
