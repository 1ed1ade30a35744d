"""Results on a terminal: tables that fit its width, problems in red; streams that may be absent or closed."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING

from morefit.text.tables import Column, aligned

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2  # between columns of a table
GOOD, BAD, MINOR = "bold green", "bold red", "dim"


def open_console(options: Namespace) -> Console:
    """Return the console for tables: standard output, or standard error if JSON goes to standard output."""
    from morefit.cli.screen import Screen  # a slow import that help does not need

    return Screen(options, stderr=options.json == "-", quiet=options.quiet, highlight=False, markup=False)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Write text as it is; a terminal breaks long lines, a file keeps them."""
    console.print(text, style=style, soft_wrap=True)


def headline(console: Console, text: str, *, good: bool) -> None:
    """Write the first lines of a result, which begin with the verdict; all are red if it is bad."""
    from rich.text import Text

    first, *others = text.split("\n")
    verdict, colon, rest = first.partition(":")
    shown = Text.assemble((verdict, GOOD), colon, rest) if good else Text(first, BAD)
    console.print(shown, soft_wrap=True)
    for line in others:
        say(console, line, None if good else BAD)


def show_tables(console: Console, *tables: Sequence[Column]) -> None:
    """Show tables with an empty line around each; those that are too wide in parts, with their remarks below."""
    for columns in tables:
        wide = width_of(columns) > console.width
        shown = [column for column in columns if column.heading] if wide else columns
        for piece in fold(shown, console.width):
            console.print()
            console.print(make_table(piece))
        if wide:
            show_remarks(console, columns)
    console.print()


def show_remarks(console: Console, columns: Sequence[Column]) -> None:
    """Write each remark of a table on its own line."""
    remarks = [column.cells for column in columns if not column.heading]
    lines = [
        (f"{subject}: {text}", remark_style(text))
        for cells in remarks
        for subject, text in zip(columns[0].cells, cells, strict=True)
        if text
    ]
    for line, style in lines:
        say(console, line, style)


def fold(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Split a table into parts no wider than the terminal: as few as possible, of similar widths."""
    pieces = cut(columns, width)
    while width > 1 and len(narrower := cut(columns, width - 1)) == len(pieces):
        pieces, width = narrower, width - 1
    return pieces


def cut(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Fill one part after the other, each beginning with the first column; a column that is too wide gets its own part."""
    first, *rest = columns
    pieces: list[list[Column]] = [[first]]
    for group in groups(rest):
        if len(pieces[-1]) > 1 and width_of([*pieces[-1], *group]) > width:
            pieces.append([first])
        pieces[-1] += group
    return pieces


def groups(columns: Sequence[Column]) -> list[list[Column]]:
    """Return columns in groups that stay together: values with their errors."""
    together: list[list[Column]] = []
    for column in columns:
        if together and column.heading in ("+-", "error"):
            together[-1].append(column)
        else:
            together.append([column])
    return together


def width_of(columns: Sequence[Column]) -> int:
    """Return the number of characters of a line of a table."""
    return sum(len(aligned(column)[0]) + GAP for column in columns) - GAP


def make_table(columns: Sequence[Column]) -> Table:
    """Return a table of rich: numbers aligned at their decimal points, remarks dim, or red if in capitals."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    # cells are padded already: rich would align numbers at their right ends
    heads, *rows = zip(*map(aligned, columns), strict=True)
    for head in heads:
        table.add_column(Text(head), no_wrap=True)
    for row in rows:
        styles = (
            "" if column.heading else remark_style(cell) for column, cell in zip(columns, row, strict=True)
        )
        table.add_row(*map(Text, row, styles))
    return table


def remark_style(remark: str) -> str:
    """Return the style of a remark: in capitals it is a warning."""
    return BAD if remark.isupper() else MINOR


def prepare_streams() -> None:
    """Open missing standard streams, and escape characters that a terminal cannot show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # as long as the process
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: IO[str]) -> None:
    """Discard what is still written to a stream, also what Python writes when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
