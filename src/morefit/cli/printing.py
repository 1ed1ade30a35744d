"""How results look on a terminal: tables that fit its width, and what is wrong in red."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from morefit.text.tables import Column, aligned

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2  # between columns of a table
GOOD, BAD, MINOR = "bold green", "bold red", "dim"


def open_console(options: Namespace) -> Console:
    """Return where tables go: standard output, or standard error if that is taken by JSON."""
    from morefit.cli.screen import Screen  # a slow import, and help does without

    return Screen(options, stderr=options.json == "-", quiet=options.quiet, highlight=False, markup=False)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Write text as it is; the terminal breaks long lines, a file keeps them."""
    console.print(text, style=style, soft_wrap=True)


def headline(console: Console, text: str, *, good: bool) -> None:
    """Write the lines to read first, of which the first begins with the verdict; all are red if it is bad."""
    from rich.text import Text

    first, *others = text.split("\n")
    verdict, colon, rest = first.partition(":")
    shown = Text.assemble((verdict, GOOD), colon, rest) if good else Text(first, BAD)
    console.print(shown, soft_wrap=True)
    for line in others:
        say(console, line, None if good else BAD)


def show_tables(console: Console, *tables: Sequence[Column]) -> None:
    """Show tables with an empty line around each; those that are too wide in pieces, their remarks below."""
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
    """Write each remark of a table on a line of its own."""
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
    """Cut a table into pieces no wider than the terminal, as few and as alike in width as can be."""
    pieces = cut(columns, width)
    while width > 1 and len(narrower := cut(columns, width - 1)) == len(pieces):
        pieces, width = narrower, width - 1
    return pieces


def cut(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Fill one piece after the other, each beginning with the first column; a column that is too wide stands alone."""
    first, *rest = columns
    pieces: list[list[Column]] = [[first]]
    for group in groups(rest):
        if len(pieces[-1]) > 1 and width_of([*pieces[-1], *group]) > width:
            pieces.append([first])
        pieces[-1] += group
    return pieces


def groups(columns: Sequence[Column]) -> list[list[Column]]:
    """Keep errors beside what they are the errors of."""
    found: list[list[Column]] = []
    for column in columns:
        if found and column.heading in ("+-", "error"):
            found[-1].append(column)
        else:
            found.append([column])
    return found


def width_of(columns: Sequence[Column]) -> int:
    return sum(len(aligned(column)[0]) + GAP for column in columns) - GAP


def make_table(columns: Sequence[Column]) -> Table:
    """Return a table of rich: numbers with their points below each other, remarks dim, or red if in capitals."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    # cells are padded already: rich would move numbers to the right, and their points apart
    heads, *rows = zip(*map(aligned, columns), strict=True)
    for head in heads:
        table.add_column(Text(head), no_wrap=True)
    for row in rows:
        looks = (
            "" if column.heading else remark_style(cell) for column, cell in zip(columns, row, strict=True)
        )
        table.add_row(*map(Text, row, looks))
    return table


def remark_style(remark: str) -> str:
    """Return how a remark looks: in capitals it is a warning."""
    return BAD if remark.isupper() else MINOR
