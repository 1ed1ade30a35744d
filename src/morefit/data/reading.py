"""Read datasets from files: only the columns needed, a piece at a time, with a report of what was cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.data.columns import Mask, complain, is_outside, listed, suggest_column, to_column
from morefit.data.cut import Condition, condition
from morefit.data.dataset import Dataset, build
from morefit.data.io import Columns, Ranged, Source, check_tree, find_files, open_table
from morefit.data.report import CutReport, add_reports
from morefit.errors import DataError
from morefit.text.progress import Bar

SHOWN = 5  # files that one error complains about
ROWS_TRIED = 100  # of a column of objects, to see what they are


@dataclass(frozen=True)
class Wanted:
    """What is asked of every file."""

    ranges: tuple[Ranged, ...]
    condition: Condition | None
    weight: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns to read."""
        more = self.condition.names if self.condition else ()
        return tuple(dict.fromkeys((*self.kept, *more)))

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that stay, the weight last."""
        return (*(o.name for o in self.ranges), *([] if self.weight is None else [self.weight]))


def read(
    path: Source | Iterable[Source],
    observables: Ranged | Iterable[Ranged],
    *,
    cut: str | Callable[..., Any] | None = None,
    weight: str | None = None,
    tree: str | None = None,
    progress: bool = True,
) -> Dataset:
    """Read the events of ROOT, parquet, CSV or npz files that pass a cut and lie in the ranges of the observables.

    Parameters
    ----------
    path : a file, a pattern such as "data/*.root", or several of them
    observables : columns to keep, each named as its column
    cut : condition on any columns, as a text ("pt > 2 & abs(eta) < 2.5") or as a function whose arguments are named
        as the columns it is given (lambda pt, eta: ...); None keeps all events
    weight : the column of the weights; None for none
    tree : the tree of a ROOT file; None where there is only one

    What was left out is in the dataset's ``report``, file by file.
    """
    if not (weight is None or isinstance(weight, str)):
        raise DataError(f"weights: must be the name of a column, got {weight!r}")
    wanted = Wanted(tuple(listed(observables)), None if cut is None else condition(cut), weight)
    complain(
        [f"weights: column '{weight}' is an observable; name another column"] * (weight in wanted.kept[:-1])
    )
    files = find_files(path)
    check_tree(files, tree)
    check_names(files, wanted, tree)
    pieces: dict[str, list[Array]] = {name: [] for name in wanted.kept}
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


def finish(wanted: Wanted, pieces: dict[str, list[Array]], report: CutReport) -> Dataset:
    """Join the pieces, column by column, so that few are in memory twice."""
    if not report.total:
        named = ", ".join(map(repr, report.files))
        raise DataError(
            f"file {named}: holds no events; see whether it was filled and the tree is the right one, or pass empty"
            " columns to mf.Dataset if none was observed"
        )
    columns = {name: np.concatenate(pieces.pop(name)) for name in wanted.kept}
    weights = None if wanted.weight is None else columns.pop(wanted.weight)
    return build(columns, weights, report)


def check_names(files: Sequence[Path], wanted: Wanted, tree: str | None) -> None:
    """Look into every file before any is read, and list the columns that are missing."""
    problems: dict[Path, str] = {}
    for file in files:
        with open_table(file, tree) as table:
            missing = [name for name in wanted.names if name not in table.names]
            if missing and table.rows != 0:
                each = [f"no column '{name}', {suggest_column(name, table.names)}" for name in missing]
                problems[file] = f"file '{file}': {table.what}: {'; '.join(each)}"
    more = f"; and {len(problems) - SHOWN} more files" if len(problems) > SHOWN else ""
    if problems:
        raise DataError("; ".join([*problems.values()][:SHOWN]) + more)


class Reader:
    """Takes the events of one file that are kept, and counts the others."""

    def __init__(self, file: Path, wanted: Wanted, pieces: Mapping[str, list[Array]]) -> None:
        self.file, self.wanted, self.pieces = file, wanted, pieces
        self.total = self.passed = self.kept = 0
        self.outside = Counter({o.name: 0 for o in wanted.ranges})
        self.odd: Counter[str] = Counter()

    def add(self, raw: Columns) -> None:
        """Append what is kept of a piece of the file to the pieces of each column."""
        length = self.check_shapes(raw)
        passes: Mask | slice = slice(None)
        if self.wanted.condition is not None:
            passes = self.wanted.condition.mask(raw, length)
        columns = {name: self.column(name, raw[name][passes]) for name in self.wanted.kept}
        outside = {o.name: is_outside(columns[o.name], o) for o in self.wanted.ranges}
        keep = ~np.logical_or.reduce(list(outside.values()))
        self.total += length
        self.passed += len(keep)
        self.kept += int(keep.sum())
        self.outside.update({name: int(mask.sum()) for name, mask in outside.items()})
        for name, column in columns.items():
            # a number that is missing may be left out by the cut, but not without notice by a range
            judged = column[keep] if name == self.wanted.weight else column
            self.odd[name] += int((~np.isfinite(judged)).sum())
            self.pieces[name].append(column[keep])

    def check_shapes(self, raw: Columns) -> int:
        """Return the number of events; complain about columns without one number an event."""
        problems, lengths = [], {}
        for name, column in raw.items():
            several = column.dtype == object and any(
                isinstance(x, (np.ndarray, list)) for x in column[:ROWS_TRIED]
            )
            if column.ndim != 1 or several:
                got = "lists" if several else f"shape {column.shape}"
                problems.append(f"column '{name}': must have one number an event, got {got}")
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
        """Return a column in double precision."""
        try:
            return to_column(raw)[0]
        except DataError as error:
            raise DataError(f"file '{self.file}': column '{name}': {error}") from None

    def report(self) -> CutReport:
        """Return what was cut, or complain about numbers that are none."""
        problems = [
            f"column '{name}': {count} of {self.passed} events are not finite"
            for name, count in self.odd.items()
            if count
        ]
        if problems:
            remedy = " & ".join(f"isfinite({name})" for name, count in self.odd.items() if count)
            raise DataError(
                f"file '{self.file}': {'; '.join(problems)}; leave them out with cut=\"{remedy}\""
            )
        condition = self.wanted.condition
        failed = self.total - self.passed
        return CutReport(
            self.total, self.kept, dict(self.outside), failed, condition.text if condition else ""
        )
