"""Results of toys in print: moments, pulls, biases and coverages, as text and HTML with headline, tables and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.text.rounding import duration, round_pdg
from morefit.text.tables import Column, html_page, text_table


class PullSummary(NamedTuple):
    """Mean and width of pulls, each with its error: 0 and 1 for correct errors without bias."""

    mean: float
    mean_error: float
    width: float
    width_error: float


class Bias(NamedTuple):
    """Mean of the fitted values minus the truth, with its error."""

    value: float
    error: float


class Coverage(NamedTuple):
    """The fraction of toys whose interval contains the truth, and the Clopper-Pearson interval of it (68.27 %)."""

    fraction: float
    low: float
    high: float


def moments(numbers: Array) -> tuple[float, float, int]:
    """Return mean, standard deviation and count; nan where there are too few numbers."""
    count = len(numbers)
    with np.errstate(invalid="ignore"):
        mean = float(np.mean(numbers)) if count else nan
        return mean, float(np.std(numbers, ddof=1)) if count > 1 else nan, count


def clopper_pearson(hits: int, total: int) -> Coverage:
    """Return a fraction with its exact central interval of 68.27 %; all of [0, 1] if there was no trial."""
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # slow, and only coverages need it

    if not total:
        return Coverage(nan, 0.0, 1.0)
    tail = (1 - LEVELS[0]) / 2
    low = float(betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, total - hits, 1 - tail)) if hits < total else 1.0
    return Coverage(hits / total, low, high)


LEVELS = (0.6827, 0.9545)  # of the coverages printed
LOOKED_AT = 2_000  # toys of a study whose densities are looked at between events, the first ones
SUSPICIOUS = 4.0  # standard deviations from which a remark is printed


class Compared(NamedTuple):
    """How a parameter compares with its truth."""

    truth: float
    bias: Bias
    pulls: PullSummary
    coverages: tuple[Coverage, ...]  # at LEVELS


class Row(NamedTuple):
    """What is printed of one parameter."""

    name: str
    mean: float
    error: float  # of the mean
    spread: float
    compared: Compared | None = None  # None: it was not generated
    undetermined: int = 0  # valid toys in which it is


class Report(NamedTuple):
    """What is printed of a study."""

    toys: int
    valid: int
    ways: Mapping[str, int]  # how many toys were obtained in which way
    events: NDArray[np.int64]
    seed: int
    first: int
    rows: Sequence[Row]
    statistics: Mapping[str, NDArray[Any]]
    seconds: Mapping[str, float]
    backend: str
    unit: str
    drawn: bool  # False: datasets of the user, with neither truth nor seed

    @property
    def bad(self) -> int:
        return self.toys - self.valid


def as_text(report: Report) -> str:
    """Return a report as text for a terminal."""
    head = "\n".join([headline(report), *(f"  {line}" for line in details(report))])
    return "\n\n".join([head, *map(text_table, tables(report)), *footlines(report)])


def as_html(report: Report) -> str:
    """Return a report as HTML for a notebook."""
    good = not (report.bad or negative_note(report) or (report.drawn and any(map(remark, report.rows))))
    return html_page(headline(report), details(report), tables(report), footlines(report), good=good)


def headline(report: Report) -> str:
    """Return number of toys and how many are not valid, in one line."""
    bad, toys = report.bad, report.toys
    verdict = "all valid" if not bad else f"{bad} NOT VALID ({100 * bad / toys:.3g} %)"
    if not report.drawn:
        return f"fit_many: {toys} dataset{'s' * (toys != 1)}, {verdict}"
    return f"toy study: {toys} toys, {verdict}" if toys else "toy study: no toys"


def details(report: Report) -> list[str]:
    """Return how the results were obtained, from how many events, and the seed."""
    ways = "; ".join(f"{way}: {count}" for way, count in report.ways.items() if count)
    numbers = f"toys {report.first} to {report.first + report.toys - 1}" if report.toys else "none"
    lines = [f"obtained by {ways}", event_counts(report.events, report.unit)] if report.toys else []
    return [*lines, f"seed {report.seed}, {numbers}"] if report.drawn else lines


def event_counts(events: NDArray[np.int64], unit: str) -> str:
    """Return the smallest, largest and mean number of events, bins or points of a toy."""
    low, high = int(events.min()), int(events.max())
    if low == high:
        return f"{low} {unit} each"
    return f"{low} to {high} {unit}, {events.mean():.6g} on average"


def tables(report: Report) -> list[list[Column]]:
    """Return the table of the parameters, and that of the user's own numbers if there are any."""
    own = {
        name: column for name, column in report.statistics.items()
        if column.ndim == 1 and column.dtype.kind in "biuf"
    }  # fmt: skip
    own_table = parameter_table if report.drawn else values_table
    return [own_table(report.rows), *([statistics_table(own)] if own and report.toys else [])]


def parameter_table(rows: Sequence[Row]) -> list[Column]:
    """Return one row per parameter; what concerns the truth is left empty where there is none."""
    headings = (
        "truth", "mean value", "bias", "+-", "pull mean", "+-", "pull width", "+-",
        *(f"coverage {100 * level:g} %" for level in LEVELS),
    )  # fmt: skip
    first = Column("parameter", [row.name for row in rows], numeric=False)
    if not rows:
        return [first]
    *cells, remarks = zip(*map(row_cells, rows), strict=True)
    numeric = [Column(heading, column) for heading, column in zip(headings, cells, strict=True)]
    return [first, *numeric, *([Column("", remarks, numeric=False)] if any(remarks) else [])]


def values_table(rows: Sequence[Row]) -> list[Column]:
    """Return one row per parameter of datasets without a truth."""
    means = [round_pdg(row.mean, row.error) for row in rows]
    lost = [f"UNDETERMINED IN {row.undetermined}" * bool(row.undetermined) for row in rows]
    return [
        Column("parameter", [row.name for row in rows], numeric=False),
        Column("mean value", [mean for mean, _ in means]),
        Column("+-", [error for _, error in means]),
        Column("deviation", [f"{row.spread:.4g}" for row in rows]),
        *([Column("", lost, numeric=False)] if any(lost) else []),
    ]


def row_cells(row: Row) -> list[str]:
    """Return the cells of one parameter, the last of them a remark."""
    value, _ = round_pdg(row.mean, row.error)
    if row.compared is None:
        return ["", value, *[""] * 6, *[""] * len(LEVELS), remark(row)]
    truth, bias, pulls, coverages = row.compared
    pull_cells = [*round_pdg(pulls.mean, pulls.mean_error), *round_pdg(pulls.width, pulls.width_error)]
    covered = map(coverage_cell, coverages)
    return [f"{truth:.8g}", value, *round_pdg(bias.value, bias.error), *pull_cells, *covered, remark(row)]


def coverage_cell(coverage: Coverage) -> str:
    """Return a coverage with digits enough for its interval."""
    digits = 3 if coverage.high - coverage.low > 0.003 else 4
    fraction, low, high = (f"{x:.{digits}f}" for x in coverage)
    return f"{fraction} [{low}, {high}]"


def remark(row: Row) -> str:
    """Return a warning where the pulls of a parameter are off, empty if they are not."""
    if row.compared is None:
        return "not generated"
    mean, mean_error, width, width_error = row.compared.pulls
    remarks = [f"UNDETERMINED IN {row.undetermined}"] if row.undetermined else []
    for what, off, error in (("PULL MEAN", mean, mean_error), ("PULL WIDTH", width - 1, width_error)):
        if not isfinite(off) or not isfinite(error):
            remarks.append(f"{what} UNKNOWN")
        elif abs(off) > SUSPICIOUS * error:
            remarks.append(f"{what} OFF" + (f" BY {abs(off) / error:.1f} SIGMA" if error else ""))
    return ", ".join(remarks)


def statistics_table(statistics: Mapping[str, NDArray[Any]]) -> list[Column]:
    """Return mean, standard deviation and range of the user's own numbers, over all toys."""
    columns = [column.astype(np.float64) for column in statistics.values()]
    return [
        Column("statistic", list(statistics), numeric=False),
        Column("mean", [f"{moments(column)[0]:.6g}" for column in columns]),
        Column("deviation", [f"{moments(column)[1]:.6g}" for column in columns]),
        Column("minimum", [f"{column.min():.6g}" for column in columns]),
        Column("maximum", [f"{column.max():.6g}" for column in columns]),
    ]


def footlines(report: Report) -> list[str]:
    """Return which toys the table covers, and the times of all stages."""
    times = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in report.seconds.items())
    note = (
        [f"the table is of the {report.valid} valid {'toys' if report.drawn else 'fits'}"]
        if report.bad
        else []
    )
    where = f"on {report.backend}: " if report.backend and times else ""
    return [*note, *negative_note(report), *([where + times] if times else [])]


def negative_note(report: Report) -> list[str]:
    """Return in how many toys the density is negative, if it is in some."""
    looked_at = min(report.first + report.toys, LOOKED_AT) - report.first
    if not (count := report.ways.get("negative density", 0)):
        return []
    what = "TOYS" if report.drawn else "DATASETS"
    return [
        f"IN {count} OF {looked_at} {what} the fitted density is negative between events or inside of a bin; mf.fit calls"
        " such a fit not valid: change limits or the model"
    ]
