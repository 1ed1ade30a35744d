"""How results look on a terminal: tables that fit its width, and what is wrong in red."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from morefit.fit.result import Column, align_points, aligned

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PADDING = 2  # columns of a terminal between those of a table
GOOD, BAD, MINOR = "bold green", "bold red", "dim"


def open_console(options: Namespace) -> Console:
    """Return where tables go: standard output, or standard error if that is taken by JSON."""
    from rich.console import Console  # a slow import, and help does without

    return Console(stderr=options.json == "-", quiet=options.quiet, highlight=False, markup=False)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Write text as it is; the terminal breaks long lines, a file keeps them."""
    console.print(text, style=style, soft_wrap=True)


def headline(console: Console, text: str) -> None:
    """Write the lines to read first: green if all is well, red if something in the first is in capitals."""
    first, *others = text.split("\n")
    bad = any(len(word) > 2 and word.isupper() for word in first.split())
    verdict, _, rest = first.partition(": ")
    from rich.text import Text

    console.print(Text.assemble((verdict, BAD if bad else GOOD), f": {rest}" if rest else ""), soft_wrap=True)
    for line in others:
        say(console, line, BAD if bad else None)


def show_table(console: Console, columns: Sequence[Column]) -> None:
    """Show a table, in several pieces if it is too wide."""
    for piece in fold(columns, console.width):
        console.print(make_table(piece))


def fold(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Cut a table into pieces no wider than the terminal, each beginning with the first column."""
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
    return sum(len(aligned(column)[0]) + PADDING for column in columns) + PADDING


def make_table(columns: Sequence[Column]) -> Table:
    """Return a table of rich: numbers with their points below each other, remarks in red."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=True)
    for column in columns:
        table.add_column(Text(column.heading), justify="right" if column.numeric else "left", no_wrap=True)
    for cells in zip(*map(styled_cells, columns), strict=True):
        table.add_row(*(Text(text, style) for text, style in cells))
    return table


def styled_cells(column: Column) -> list[tuple[str, str]]:
    """Return the cells of a column and how they look; what has no heading is a remark."""
    if not column.cells:
        return []
    cells = align_points(column.cells) if column.numeric else column.cells
    return [(cell, remark_style(cell) if not column.heading else "") for cell in cells]


def remark_style(remark: str) -> str:
    """Return how a remark looks: in capitals it is a warning."""
    return BAD if remark.isupper() else MINOR
