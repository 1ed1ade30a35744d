"""Tables and headlines of results as HTML, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from morefit.text.tables import Column

GOOD, BAD = "#d9f2d9", "#f8c9c9"
WARNINGS = ("AT LIMIT", "UNDETERMINED")  # cells with a coloured background


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


def html_page(
    headline: str,
    details: Iterable[str],
    tables: Iterable[Sequence[Column]],
    notes: Iterable[str],
    *,
    good: bool,
) -> str:
    """Return a coloured headline with details, then tables, then notes line by line."""
    lines = "<br>".join([f"<b>{html.escape(headline)}</b>", *map(html.escape, details)])
    head = f'<p style="background:{GOOD if good else BAD};padding:4px">{lines}</p>'
    foot = "<br>".join(map(html.escape, notes))
    return f"{head}{''.join(map(html_table, tables))}{f'<p>{foot}</p>' if foot else ''}"


def html_table(columns: Sequence[Column], caption: str = "") -> str:
    """Return a table; the lines of a caption stand above it."""
    above = f"<caption>{'<br>'.join(map(html.escape, caption.splitlines()))}</caption>" if caption else ""
    head = "".join(f'<th style="{side_of(c)}">{html.escape(c.heading)}</th>' for c in columns)
    rows = zip(*([html_cell(column, cell) for cell in column.cells] for column in columns), strict=True)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table>{above}<tr>{head}</tr>{body}</table>"


def html_text(text: str) -> str:
    """Return text with its spaces and line breaks, in a font in which columns stay aligned."""
    return f'<pre style="font-family:monospace;white-space:pre;overflow-x:auto">{html.escape(text)}</pre>'


def html_cell(column: Column, cell: str) -> str:
    """Return one cell of a table; warnings have a coloured background."""
    colour = f";background:{BAD}" if cell in WARNINGS else ""
    text = cell if isinstance(cell, Markup) else html.escape(cell)
    return f'<td style="{side_of(column)};white-space:nowrap{colour}">{text}</td>'


def side_of(column: Column) -> str:
    """Return the style that aligns a column and its heading."""
    return f"text-align:{'right' if column.numeric else 'left'}"
