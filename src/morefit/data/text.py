"""A dataset as text, as HTML, and in one line."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from morefit.arrays import Array
from morefit.data.report import CutReport
from morefit.text.tables import Column, html_table, text_table

MAX_NAMES = 60  # characters of the names of columns in one line
MAX_LABELS = 10  # of a column that are printed


class Shown(Protocol):
    """What is printed of a dataset."""

    @property
    def columns(self) -> dict[str, Array]: ...

    @property
    def labels(self) -> dict[str, tuple[str, ...]]: ...

    @property
    def weights(self) -> Array | None: ...

    @property
    def sum_of_weights(self) -> float: ...

    @property
    def report(self) -> CutReport | None: ...

    def __len__(self) -> int: ...


def as_text(dataset: Shown) -> str:
    """Return the number of events, a table of the columns, and the summary of a cut."""
    rows = text_table(summary(dataset)).splitlines()
    more = [*label_lines(dataset), *cut_lines(dataset)]
    return "\n".join([title(dataset), *(f"  {row}" for row in rows), *more])


def as_html(dataset: Shown) -> str:
    """Return the same as HTML for a notebook."""
    return html_table(
        summary(dataset), caption="\n".join([title(dataset), *label_lines(dataset), *cut_lines(dataset)])
    )


def short(dataset: Shown) -> str:
    """Return number of events, names of columns, and the sum of weights, in one line."""
    names = ", ".join(dataset.columns)
    columns = names if len(names) <= MAX_NAMES else f"{len(dataset.columns)} columns"
    return f"Dataset({counts(dataset)}: {columns})"


def label_lines(dataset: Shown) -> list[str]:
    """Return how many events have each label, one line for each column of labels."""
    lines = []
    for name, labels in dataset.labels.items():
        column = dataset.columns[name]
        each = ", ".join(f"{label} ({np.count_nonzero(column == label)})" for label in labels[:MAX_LABELS])
        more = f", and {len(labels) - MAX_LABELS} more" if len(labels) > MAX_LABELS else ""
        lines.append(f"labels of '{name}': {each}{more}")
    return lines


def cut_lines(dataset: Shown) -> list[str]:
    """Return the summary of the cut that made the dataset, none if there was no cut."""
    return [] if dataset.report is None else [f"cut: {dataset.report.summary}"]


def title(dataset: Shown) -> str:
    """Return the first line: number of events and sum of weights."""
    return f"Dataset: {counts(dataset)}"


def counts(dataset: Shown) -> str:
    """Return the number of events, and the sum of weights if there are any."""
    weighted = "" if dataset.weights is None else f", sum of weights {dataset.sum_of_weights:.8g}"
    return f"{len(dataset)} events{weighted}"


def summary(dataset: Shown) -> list[Column]:
    """Return a table with minimum, mean and maximum of every column and of the weights."""
    columns = {name: column for name, column in dataset.columns.items() if name not in dataset.labels}
    if dataset.weights is not None:
        columns["(weights)"] = dataset.weights
    numbers = zip(*map(extent, columns.values()), strict=True)
    numeric = [Column(*pair) for pair in zip(("min", "mean", "max"), numbers, strict=True)]
    return [Column("column", list(columns), numeric=False), *numeric]


def extent(column: Array) -> tuple[str, str, str]:
    """Return minimum, mean and maximum as text, dashes if there are no events."""
    if not len(column):
        return "-", "-", "-"
    with np.errstate(over="ignore"):
        return f"{column.min():.6g}", f"{column.mean():.6g}", f"{column.max():.6g}"
