"""What is printed of a dataset: the report of a cut, and the dataset as text, as HTML, and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.text.tables import Column, html_table, text_table


@dataclass(frozen=True)
class CutReport:
    """Numbers of events before and after a cut, and of those outside the range of each observable.

    An event outside the ranges of two observables counts for both. With a condition, ``failed`` events did not pass
    it, and only those that did are tested for ranges. For events read from files, ``files`` has a report for each.
    """

    total: int
    kept: int
    outside: dict[str, int]
    failed: int = 0
    condition: str = ""
    files: dict[str, CutReport] = field(default_factory=dict)
    not_numbers: dict[str, int] = field(default_factory=dict)  # of those outside

    @property
    def summary(self) -> str:
        """The numbers of all events together, in one line."""
        if self.kept == self.total:
            return f"kept all {self.total} events"
        causes = [f"{self.failed} did not pass {self.condition!r}"] if self.failed else []
        for name, count in self.outside.items():
            nan = self.not_numbers.get(name)
            none = f" ({nan} of them not a number)" if nan else ""
            causes += [f"{count} outside the range of '{name}'{none}"] if count else []
        return f"kept {self.kept} of {self.total} events: {', '.join(causes)}"

    def __str__(self) -> str:
        each = [f"  {name}: {report}" for name, report in self.files.items()]
        return "\n".join([self.summary, *(each if len(each) > 1 else [])])


def add_reports(files: Mapping[str, CutReport]) -> CutReport:
    """Return the sum of the reports of several files with the same cut."""
    first, *_ = files.values()
    outside = {name: sum(r.outside[name] for r in files.values()) for name in first.outside}
    total, kept, failed = (
        sum(numbers) for numbers in zip(*((r.total, r.kept, r.failed) for r in files.values()), strict=True)
    )
    return CutReport(
        total=total, kept=kept, outside=outside, failed=failed, condition=first.condition, files=dict(files)
    )


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
