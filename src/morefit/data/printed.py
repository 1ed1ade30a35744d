"""How a dataset looks in print, as text and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from morefit.arrays import Array
from morefit.data.report import CutReport

HEADINGS = ("column", "min", "mean", "max")


class Shown(Protocol):
    """What is shown of a dataset."""

    @property
    def columns(self) -> dict[str, Array]: ...

    @property
    def weights(self) -> Array | None: ...

    @property
    def sum_of_weights(self) -> float: ...

    @property
    def report(self) -> CutReport | None: ...

    def __len__(self) -> int: ...


def as_text(dataset: Shown) -> str:
    """Return the number of events, a table of the columns, and what was cut."""
    rows = [HEADINGS, *summary(dataset)]
    name, *numbers = (max(map(len, cells)) for cells in zip(*rows, strict=True))
    lines = [[row[0].ljust(name), *map(str.rjust, row[1:], numbers)] for row in rows]
    return "\n".join([title(dataset), *(f"  {'  '.join(line)}" for line in lines), *cut_lines(dataset)])


def as_html(dataset: Shown) -> str:
    """Return the same as a table of a notebook."""
    rows = "".join(html_row("td", row) for row in summary(dataset))
    caption = "<br>".join(map(html.escape, [title(dataset), *cut_lines(dataset)]))
    return f"<table><caption>{caption}</caption>{html_row('th', HEADINGS)}{rows}</table>"


def cut_lines(dataset: Shown) -> list[str]:
    """Say in a line what was cut, if a cut made the dataset."""
    return [] if dataset.report is None else [f"cut: {dataset.report.summary}"]


def title(dataset: Shown) -> str:
    """Say how many events there are and whether they are weighted."""
    weighted = "" if dataset.weights is None else f", sum of weights {dataset.sum_of_weights:.8g}"
    return f"Dataset: {len(dataset)} events{weighted}"


def summary(dataset: Shown) -> list[tuple[str, ...]]:
    """Return name, minimum, mean and maximum of every column and of the weights."""
    columns = dataset.columns
    if dataset.weights is not None:
        columns["(weights)"] = dataset.weights
    return [(name, *extent(column)) for name, column in columns.items()]


def extent(column: Array) -> tuple[str, str, str]:
    """Return minimum, mean and maximum as text, dashes if there are no events."""
    if not len(column):
        return "-", "-", "-"
    with np.errstate(over="ignore"):
        return f"{column.min():.6g}", f"{column.mean():.6g}", f"{column.max():.6g}"


def html_row(tag: str, cells: Iterable[str]) -> str:
    """Return one row of an HTML table."""
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
