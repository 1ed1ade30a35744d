"""Read datasets from files: only the columns needed, in chunks, with a report of the cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.data.columns import (
    MAX_DOUBLE,
    Mask,
    all_between,
    is_outside,
    listed,
    raise_if,
    suggest_column,
    to_column,
)
from morefit.data.cut import Condition, condition
from morefit.data.dataset import Dataset, build
from morefit.data.io.formats import check_tree, open_table
from morefit.data.io.table import Columns, Ranged, Source, find_files
from morefit.data.labels import Category
from morefit.data.report import CutReport, add_reports
from morefit.data.weights import observables_of, values_of, weight_formula
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.expr import Expr, Quantity
from morefit.text.arguments import in_sentences
from morefit.text.progress import Bar

WEIGHTS = "weight by its formula"  # the name of their column where they are no column of a file
MAX_FILES = 5  # that one message lists
ROWS_TRIED = 100  # of a column of objects, to find their type


@dataclass(frozen=True)
class Wanted:
    """What is read of every file."""

    ranges: tuple[Ranged, ...]
    condition: Condition | None
    weight: str | None
    formula: Expr | None = None  # of the weights, of observables among the ranges

    @property
    def names(self) -> tuple[str, ...]:
        """The columns to read."""
        more = self.condition.names if self.condition else ()
        own = self.columns if self.formula is None else self.columns[:-1]
        return tuple(dict.fromkeys((*own, *more)))

    def with_weights(self, weights: str | Quantity | None) -> Wanted:
        """Return the same with weights: a column, or a formula, whose observables are read and selected by as well."""
        formula = weight_formula(weights)
        if formula is None:
            assert weights is None or isinstance(weights, str)
            return replace(self, weight=weights, formula=None)
        names = {o.name for o in self.ranges}
        others = (o for o in observables_of(formula) if o.name not in names)
        return replace(self, ranges=(*self.ranges, *others), weight=WEIGHTS, formula=formula)

    def with_formula(self, raw: Columns) -> Columns:
        """Return columns of a file with those weights that are a formula of others."""
        if self.formula is None:
            return raw
        known = {o.name: to_column(raw[o.name])[0] for o in observables_of(self.formula)}
        return {**raw, WEIGHTS: values_of(self.formula, known)}

    @property
    def categories(self) -> dict[str, Category]:
        """The columns that have labels."""
        return {o.name: o for o in self.ranges if isinstance(o, Category)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the dataset, the weight last."""
        return (*(o.name for o in self.ranges), *([] if self.weight is None else [self.weight]))


@in_sentences
def read(
    path: Source | Iterable[Source],
    observables: Ranged | Iterable[Ranged],
    *,
    cut: str | Callable[..., Any] | None = None,
    weights: str | Quantity | None = None,
    tree: str | None = None,
    progress: bool = True,
) -> Dataset:
    """Read the events of ROOT, parquet, CSV or npz files that pass a cut and lie in the ranges of the observables.

    Parameters
    ----------
    path : a file, a pattern such as "data/*.root", or several of them
    observables : columns of the dataset, each named as its column in the file
    cut : condition on any columns, as a text ("pt > 2 & abs(eta) < 2.5") or as a function whose arguments are named
        as columns (lambda pt, eta: ...); None keeps all events
    weights : the column of the weights, or a formula of observables, which are read as well; None for none
    tree : the tree of a ROOT file; None where there is only one

    The dataset's ``report`` has the numbers of events that were left out, file by file.
    """
    wanted = wanted_of(observables, cut, weights)
    files = find_files(path)
    check_tree(files, tree)
    check_names(files, wanted, tree)
    pieces: dict[str, list[Array]] = {name: [] for name in wanted.columns}
    reports: dict[str, CutReport] = {}
    sizes = [file.stat().st_size for file in files]
    with Bar("reading", max(sum(sizes), 1), progress) as bar:
        for i, file in enumerate(files):
            bar.done(sum(sizes[:i]))
            reader = Reader(file, wanted, pieces)
            with open_table(file, tree) as table:
                for chunk in table.chunks(wanted.names if table.rows != 0 else ()):
                    reader.add(chunk.columns)
                    bar.done(sum(sizes[:i]) + int(chunk.done * sizes[i]))
            reports[str(file)] = reader.report()
    return finish(wanted, pieces, add_reports(reports))


def wanted_of(
    observables: Ranged | Iterable[Ranged],
    cut: str | Callable[..., Any] | None,
    weight: str | Quantity | None,
) -> Wanted:
    """Return what is read of every file, of arguments that are checked."""
    if not (weight is None or isinstance(weight, str | Quantity)):
        raise DataError(f"weights: must be the name of a column, or a formula of observables, got {weight!r}")
    wanted = Wanted(tuple(listed(observables)), None if cut is None else condition(cut), None)
    wanted = wanted.with_weights(weight)
    raise_if(
        [f"weights: column '{weight}' is an observable; name another column"]
        * (wanted.weight in wanted.columns[:-1])
    )
    return wanted


def finish(wanted: Wanted, pieces: dict[str, list[Array]], report: CutReport) -> Dataset:
    """Return the chunks as a dataset; they are joined column by column, which needs less memory."""
    check_filled(report)
    columns = {name: np.concatenate(pieces.pop(name)) for name in wanted.columns}
    weights = None if wanted.weight is None else columns.pop(wanted.weight)
    return build(columns, weights, report, {name: c.labels for name, c in wanted.categories.items()})


def check_filled(report: CutReport) -> None:
    """Raise an error if the files have no events at all."""
    if not report.total:
        named = ", ".join(map(repr, report.files))
        raise DataError(
            f"file {named}: has no events; check whether it was filled and the tree is the right one, or pass empty"
            " columns to mf.Dataset if none was observed"
        )


def check_names(files: Sequence[Path], wanted: Wanted, tree: str | None) -> None:
    """Raise an error with the missing columns of all files, before any file is read."""
    problems: dict[Path, str] = {}
    for file in files:
        with open_table(file, tree) as table:
            missing = [name for name in wanted.names if name not in table.names]
            if missing and table.rows != 0:
                each = [f"no column '{name}', {suggest_column(name, table.names)}" for name in missing]
                problems[file] = f"file '{file}': {table.what}: {'; '.join(each)}"
    more = f"; and {len(problems) - MAX_FILES} more files" if len(problems) > MAX_FILES else ""
    if problems:
        raise DataError("; ".join([*problems.values()][:MAX_FILES]) + more)


class Reader:
    """Selects the events of one file from a row on, and counts the others."""

    def __init__(
        self, file: Path, wanted: Wanted, pieces: Mapping[str, list[Array]], first_row: int = 0
    ) -> None:
        self.file, self.wanted, self.pieces, self.first_row = file, wanted, pieces, first_row
        self.total = self.passed = self.selected = 0
        self.outside = Counter({o.name: 0 for o in wanted.ranges})
        self.not_finite: Counter[str] = Counter()
        self.bad_rows: dict[str, int] = {}  # the first one with a number that is not finite, by column

    def add(self, raw: Columns) -> None:
        """Append the selected events of a chunk of the file to the chunks of each column."""
        length = self.check_shapes(raw)
        raw = self.wanted.with_formula(raw)
        passes: Mask | slice = slice(None)
        if self.wanted.condition is not None:
            passes = self.wanted.condition.mask(raw, length)
        columns = {name: self.column(name, raw[name][passes]) for name in self.wanted.columns}
        outside = {o.name: is_outside(columns[o.name], o) for o in self.wanted.ranges}
        keep = ~np.logical_or.reduce(list(outside.values()))
        rows = self.first_row + self.total
        self.total += length
        self.passed += len(keep)
        self.selected += int(keep.sum())
        self.outside.update({name: int(mask.sum()) for name, mask in outside.items()})
        for name, column in columns.items():
            # a missing number may be removed by the cut, but not silently by a range
            tested = column[keep] if name == self.wanted.weight else column
            if not all_between(tested, -MAX_DOUBLE, MAX_DOUBLE):
                wrong = ~np.isfinite(column) & (keep if name == self.wanted.weight else True)
                self.not_finite[name] += int(wrong.sum())
                self.bad_rows.setdefault(name, rows + int(np.arange(length)[passes][wrong][0]))
            self.pieces[name].append(column[keep])

    def check_shapes(self, raw: Columns) -> int:
        """Return the number of events, or raise an error for columns without one number per event."""
        problems, lengths = [], {}
        for name, column in raw.items():
            several = column.dtype == object and any(
                isinstance(x, (np.ndarray, list)) for x in column[:ROWS_TRIED]
            )
            if column.ndim != 1 or several:
                got = "lists" if several else f"shape {column.shape}"
                problems.append(f"column '{name}': must have one number per event, got {got}")
            else:
                lengths[name] = len(column)
        if problems:
            remedy = "choose one of them with awkward or numpy, and pass the columns to mf.Dataset.cut"
            raise DataError(f"file '{self.file}': {'; '.join(problems)}; {remedy}")
        if len(set(lengths.values())) > 1:
            got = ", ".join(f"{length} of '{name}'" for name, length in lengths.items())
            raise DataError(f"file '{self.file}': columns must have one length, got {got}; write it again")
        return next(iter(lengths.values()))

    def column(self, name: str, raw: NDArray[Any]) -> Array:
        """Return a column in double precision, of labels their numbers."""
        category = self.wanted.categories.get(name)
        try:
            return to_column(raw)[0] if category is None else category.encode(raw)
        except DataError as error:
            raise DataError(f"file '{self.file}': column '{name}': {error}") from None

    def report(self) -> CutReport:
        """Return the report of the cut, or raise an error for numbers that are not finite."""
        problems = [
            f"column '{name}': {count} of {self.passed} events are not finite, the first in row {self.bad_rows[name]}"
            for name, count in self.not_finite.items()
            if count
        ]
        if problems:
            remedy = " & ".join(f"isfinite({name})" for name, count in self.not_finite.items() if count)
            raise DataError(
                f"file '{self.file}': {'; '.join(problems)}; leave them out with cut=\"{remedy}\""
            )
        condition = self.wanted.condition
        failed = self.total - self.passed
        return CutReport(
            total=self.total,
            kept=self.selected,
            outside=dict(self.outside),
            failed=failed,
            condition=condition.text if condition else "",
        )
