"""What a fit found: values, errors, covariance, whether to trust them, and how it looks in print."""

from __future__ import annotations

import difflib
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError, ModelError
from morefit.records.archive import opened
from morefit.records.json import portable
from morefit.records.output import complete_file
from morefit.text.rounding import round_pdg

Interval = tuple[float, float]
V = TypeVar("V")

FORMAT = "morefit fit result"
VERSION = 1
# More floating parameters than this make a correlation matrix that nobody reads.
MOST_CORRELATED = 8
LONGEST_HEADING = 8
# Where errors can come from, and what is said of it below the tables.
ERRORS = {
    "naive": "",
    "gradients": "gradients, the inverse of the sum of squared scores, as the density has a kink that moves",
    "sumw2": "sumw2, H^-1 H2 H^-1 with the Hessian H2 of squared weights",
    "sandwich": "sandwich, H^-1 C H^-1 with the sum C of squared weighted scores",
    "bootstrap": "bootstrap, the spread of the fits of replicas",
}
GOOD, BAD = "#d9f2d9", "#f8c9c9"


class Frozen(Mapping[str, V], Generic[V]):
    """A mapping by name that cannot be changed and can be pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> V:
        if name not in self._items:
            raise KeyError(f"no {name!r}; {suggest(name, self._items)}")
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


def words(items: Iterable[str]) -> tuple[str, ...]:
    """Return a tuple of text."""
    return tuple(str(item) for item in items)


def floats(items: Mapping[str, float]) -> Frozen[float]:
    """Return a frozen mapping to numbers."""
    return Frozen({name: float(x) for name, x in items.items()})


def counts(items: Mapping[str, int]) -> Frozen[int]:
    """Return a frozen mapping to whole numbers."""
    return Frozen({name: int(n) for name, n in items.items()})


def intervals(items: Mapping[str, Interval]) -> Frozen[Interval]:
    """Return a frozen mapping to pairs of numbers."""
    return Frozen({name: (float(low), float(high)) for name, (low, high) in items.items()})


def directions(items: Iterable[Mapping[str, float]]) -> tuple[Frozen[float], ...]:
    """Return a tuple of frozen mappings to numbers."""
    return tuple(map(floats, items))


def matrix(rows: Any) -> Array:
    """Return a read-only copy of a matrix."""
    array = np.array(rows, dtype=np.float64)
    array = array.reshape(0, 0) if array.size == 0 else array
    array.flags.writeable = False
    return array


# What each field is made of, whether it comes from a minimiser or from JSON text.
CONVERT: dict[str, Callable[[Any], Any]] = {
    "names": words,
    "values": floats,
    "errors": floats,
    "floating": words,
    "covariance": matrix,
    "nll": float,
    "edm": float,
    "valid": bool,
    "reasons": words,
    "at_limit": words,
    "limits": intervals,
    "calls": counts,
    "seconds": floats,
    "minos": intervals,
    "events": int,
    "backend": str,
    "minimiser": str,
    "errors_from": str,
    "flat_directions": directions,
    "integral_errors": floats,
}


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """The outcome of one fit; an unconverged one has ``valid`` False and says why in ``reasons``.

    ``names`` are all parameters in the order of the model, ``floating`` those that were fitted, in the order
    of the rows of ``covariance``. Errors are 0 for fixed parameters and NaN without a covariance. ``nll`` is
    minus the logarithm of the likelihood. ``minos`` holds (lower, upper) (lower < 0), where asked for.
    ``errors_from`` says what errors and covariance are: "naive", "gradients", "sumw2", "sandwich" or "bootstrap".
    ``flat_directions`` are those along which the likelihood does not change, each as changes of parameters by name;
    such parameters are ``undetermined`` and have no errors, those of the others are right. ``integral_errors`` says,
    where the model is integrated numerically, by how much "nll" and, relatively, "errors" may be off for that.
    """

    names: tuple[str, ...]
    values: Mapping[str, float]
    errors: Mapping[str, float]
    floating: tuple[str, ...]
    covariance: Array
    nll: float
    edm: float
    valid: bool
    reasons: tuple[str, ...]
    at_limit: tuple[str, ...]
    limits: Mapping[str, Interval]
    calls: Mapping[str, int]
    seconds: Mapping[str, float]
    minos: Mapping[str, Interval]
    events: int
    backend: str
    minimiser: str
    errors_from: str = "naive"
    flat_directions: tuple[Mapping[str, float], ...] = ()
    integral_errors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, convert in CONVERT.items():
            object.__setattr__(self, name, convert(getattr(self, name)))
        size = len(self.floating)
        if self.covariance.shape != (size, size):
            raise DataError(
                f"fit result: covariance must have shape {(size, size)}, got {self.covariance.shape}"
            )
        if self.errors_from not in ERRORS:
            raise DataError(
                f"fit result: errors_from must be one of {', '.join(map(repr, ERRORS))}, got {self.errors_from!r}"
            )
        if not set(self.floating) <= set(self.names) == set(self.values) == set(self.errors):
            raise DataError("fit result: names, floating, values and errors must name the same parameters")

    def __reduce__(self) -> tuple[Any, ...]:
        return FitResult, tuple(getattr(self, entry.name) for entry in fields(self))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """The parameters that the data do not determine, in the order of ``floating``."""
        return tuple(n for n in self.floating if any(n in direction for direction in self.flat_directions))

    @property
    def correlation(self) -> Array:
        """The correlation matrix of the floating parameters, NaN where a variance is not positive."""
        variances = self.covariance.diagonal()
        deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled: Array = self.covariance / deviations / deviations[:, None]
        np.fill_diagonal(scaled, np.where(np.isnan(deviations), np.nan, 1.0))
        return scaled

    def covariance_of(self, *names: str) -> Array:
        """Return the covariance matrix of the floating parameters named, in that order."""
        wrong = [f"'{n}': {self._why_no_covariance(n)}" for n in names if n not in self.floating]
        if wrong:
            raise ModelError(f"parameter {'; parameter '.join(wrong)}")
        rows = [self.floating.index(n) for n in names]
        return np.asarray(self.covariance[np.ix_(rows, rows)], np.float64)

    def _why_no_covariance(self, name: str) -> str:
        if name in self.names:
            return "was fixed and has no covariance"
        return f"not in the model; {suggest(name, self.floating)}"

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON text, and write it to a file if a path is given.

        Numbers keep every bit; those that JSON cannot hold are the strings "nan", "inf" and "-inf".
        """
        content = {"format": FORMAT, "version": VERSION}
        content |= {entry.name: portable(getattr(self, entry.name)) for entry in fields(self)}
        text = json.dumps(content, indent=1, allow_nan=False)
        if path is not None:
            with complete_file(path, "fit result") as part:
                part.write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> FitResult:
        """Read a result back from JSON text, or from the file at a path."""
        if isinstance(source, str) and source.lstrip().startswith("{"):
            return cls._from_text("fit result", source)
        with opened("fit result", source) as file:
            return cls._from_text(f"fit result '{source}'", file.read())

    @classmethod
    def _from_text(cls, what: str, text: str | bytes) -> FitResult:
        """Read a result back from JSON text; ``what`` begins the message if it is none."""
        content = {
            "flat_directions": (),
            "integral_errors": {},
            **parsed(what, text),
        }  # which version 0.1 did not know
        absent = [entry.name for entry in fields(cls) if entry.name not in content]
        if absent:
            raise DataError(f"{what}: the JSON text lacks {', '.join(map(repr, absent))}")
        try:
            return cls(**{entry.name: content[entry.name] for entry in fields(cls)})
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{what}: the JSON text is damaged, {error}") from error

    def __str__(self) -> str:
        head = "\n".join([headline(self), *(f"  {reason}" for reason in self.reasons)])
        return "\n\n".join([head, *map(text_table, tables(self)), "\n".join(footlines(self))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        style = f"background:{GOOD if self.valid else BAD};padding:4px"
        reasons = "".join(f"<br>{html.escape(reason)}" for reason in self.reasons)
        head = f'<p style="{style}"><b>{html.escape(headline(self))}</b>{reasons}</p>'
        foot = "<br>".join(map(html.escape, footlines(self)))
        return f"{head}{''.join(map(html_table, tables(self)))}<p>{foot}</p>"


@dataclass(frozen=True)
class Column:
    """One column of a printed table."""

    heading: str
    cells: Sequence[str]
    numeric: bool = True


def suggest(name: object, known: Iterable[str]) -> str:
    """Propose the known name nearest to a wrong one, or list what there is."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(map(repr, names)) or 'none'}"


def parsed(what: str, text: str | bytes) -> dict[str, Any]:
    """Return what JSON text holds, if it is a fit result of this version."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what}: not JSON text, {error}; it may be cut short or of another kind") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{what}: the JSON text was not written by FitResult.to_json()")
    if content.get("version") != VERSION:
        got = content.get("version")
        raise DataError(
            f"{what}: format version must be {VERSION}, got {got!r}; use the morefit that wrote it"
        )
    return content


def headline(result: FitResult) -> str:
    """Return the one line to read first."""
    verdict = "fit valid" if result.valid else "fit NOT VALID"
    calls = ", ".join(f"{count} {kind}" for kind, count in result.calls.items())
    numbers = f"nll {steady(result.nll)}, edm {result.edm:.2g}, {result.events} events"
    return f"{verdict}: {numbers}{f', calls: {calls}' if calls else ''}"


def footlines(result: FitResult) -> list[str]:
    """Say where errors come from if they are not naive, who did the work and how long each stage took."""
    times = ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in result.seconds.items())
    work = f"{result.minimiser} on {result.backend}{f': {times}' if times else ''}"
    errors = ERRORS[result.errors_from]
    return [f"errors: {errors}", work] if errors else [work]


def steady(number: float) -> str:
    """Write a likelihood with three decimals, as differences of it matter, or shorter if it is huge."""
    return f"{number:.3f}" if abs(number) < 1e12 else f"{number:.12g}"


def duration(seconds: float) -> str:
    """Write a time in s, or in ms below one second."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def tables(result: FitResult) -> list[list[Column]]:
    """Return the tables to print: parameters, and correlations if they are known and few."""
    few = 1 < len(result.floating) <= MOST_CORRELATED
    known = bool(np.isfinite(result.covariance).any())
    return [parameter_table(result), *([correlation_table(result)] if few and known else [])]


def parameter_table(result: FitResult) -> list[Column]:
    """Return one row per parameter: value, errors, limits and what is special about it."""
    numbers = zip(*(rounded(result, name) for name in result.names), strict=True)
    headings = ("value", "error", "minos -", "minos +")
    columns = [Column(heading, cells) for heading, cells in zip(headings, numbers, strict=False)]
    columns.append(Column("limits", [limits(result, name) for name in result.names], numeric=False))
    columns.append(Column("", [flag(result, name) for name in result.names], numeric=False))
    return [Column("parameter", result.names, numeric=False), *(c for c in columns if any(c.cells))]


def rounded(result: FitResult, name: str) -> tuple[str, str, str, str]:
    """Return value, error and MINOS errors of a parameter as text, empty where there are none."""
    value, error, *minos = round_pdg(
        result.values[name],
        result.errors[name],
        *result.minos.get(name, ()),
        limits=shown_limits(result, name),
    )
    error = "UNDETERMINED" if name in result.undetermined else error
    lower, upper = minos or ("", "")
    signed = upper if upper in ("", "nan") else f"+{upper}"
    return value, error if name in result.floating else "", lower, signed


def shown_limits(result: FitResult, name: str) -> Interval:
    """Return the limits of a floating parameter; a fixed one has none."""
    return result.limits.get(name, (-inf, inf)) if name in result.floating else (-inf, inf)


def limits(result: FitResult, name: str) -> str:
    """Return the limits of a floating parameter as text, empty if there are none."""
    low, high = shown_limits(result, name)
    if (low, high) == (-inf, inf):
        return ""
    return f"{'[' if isfinite(low) else '('}{low:.6g}, {high:.6g}{']' if isfinite(high) else ')'}"


def flag(result: FitResult, name: str) -> str:
    """Return what is special about a parameter."""
    if name not in result.floating:
        return "fixed"
    return "AT LIMIT" if name in result.at_limit else ""


def correlation_table(result: FitResult) -> list[Column]:
    """Return the lower triangle of the correlation matrix; long names are numbered in the headings."""
    names = result.floating
    long = max(map(len, names)) > LONGEST_HEADING
    rows = [f"{i} {name}" for i, name in enumerate(names, 1)] if long else names
    headings = [str(i) for i, _ in enumerate(names, 1)] if long else names
    lower = [
        [f"{round(x, 3) + 0.0:.3f}" if i >= j else "" for i, x in enumerate(row)]
        for j, row in enumerate(result.correlation.tolist())
    ]
    return [Column("correlation", rows, numeric=False), *map(Column, headings, lower)]


def text_table(columns: Sequence[Column]) -> str:
    """Return a table as aligned plain text."""
    rows = zip(*map(aligned, columns), strict=True)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def aligned(column: Column) -> list[str]:
    """Return heading and cells with the same width, numbers with their points below each other."""
    cells = align_points(column.cells) if column.numeric else column.cells
    width = max(map(len, [column.heading, *cells]))
    pad = str.rjust if column.numeric else str.ljust
    return [pad(cell, width) for cell in (column.heading, *cells)]


def align_points(cells: Sequence[str]) -> list[str]:
    """Pad numbers so that their decimal points come below each other; others go to the right."""
    before = max(digits_before(cell) for cell in cells)
    lines = [" " * (before - digits_before(cell)) + cell if has_digits(cell) else cell for cell in cells]
    width = max(map(len, lines))
    return [(str.ljust if has_digits(line) else str.rjust)(line, width) for line in lines]


def digits_before(cell: str) -> int:
    """Return how many characters stand before the decimal point; none count if there are no digits."""
    return len(cell.partition(".")[0]) if has_digits(cell) else 0


def has_digits(cell: str) -> bool:
    """Say whether a cell holds a finite number."""
    return any(map(str.isdigit, cell))


def html_table(columns: Sequence[Column]) -> str:
    """Return a table as HTML."""
    head = "".join(f"<th>{html.escape(column.heading)}</th>" for column in columns)
    rows = zip(*([html_cell(column, cell) for cell in column.cells] for column in columns), strict=True)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def html_cell(column: Column, cell: str) -> str:
    """Return one cell of an HTML table; what is in capitals stands out."""
    colour = f";background:{BAD}" if cell in ("AT LIMIT", "UNDETERMINED") else ""
    return f'<td style="text-align:{"right" if column.numeric else "left"}{colour}">{html.escape(cell)}</td>'
