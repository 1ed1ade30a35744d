"""Named columns of numbers, one number per event, with optional weights: read, checked and kept unchanged."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.errors import DataError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@runtime_checkable
class Ranged(Protocol):
    """Anything with a name and a range: an observable."""

    @property
    def name(self) -> str: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@runtime_checkable
class Frame(Protocol):
    """Anything with named columns: a DataFrame."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


@dataclass(frozen=True)
class CutReport:
    """How many events a cut met, kept, and found outside the range of each observable.

    An event outside the ranges of two observables counts for both.
    """

    total: int
    kept: int
    outside: dict[str, int]

    def __str__(self) -> str:
        if self.kept == self.total:
            return f"kept all {self.total} events"
        causes = [f"{count} outside the range of '{name}'" for name, count in self.outside.items() if count]
        return f"kept {self.kept} of {self.total} events: {', '.join(causes)}"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Dataset:
    """Events as named columns of numbers, with optional weights; a copy that nothing changes later.

    The source is a mapping from names to columns, a DataFrame, a structured array, an array of shape
    (events, observables), an array of shape (events,) for one observable, or another dataset, whose weights
    are kept unless others are given. With observables, other columns are ignored and every event must lie in
    the ranges; without, every column is kept as it is. Weights are an array or the name of a column.
    """

    _columns: dict[str, Array]
    _weights: Array | None
    _report: CutReport | None

    __iter__: ClassVar[None] = None

    def __init__(
        self,
        source: object,
        observables: Ranged | Iterable[Ranged] | None = None,
        *,
        weights: ArrayLike | str | None = None,
    ) -> None:
        ranges = None if observables is None else listed(observables)
        draft = read(source, ranges, weights)
        for name in draft.columns:
            draft.problems += not_finite(draft.label(name), draft.columns[name], draft.masked[name], "events")
        if ranges is not None:
            draft.problems += outside_ranges(draft.columns, ranges)
        complain(draft.problems + odd_weights(draft))
        fill(self, draft.columns, draft.weights, None)

    @classmethod
    def cut(
        cls,
        source: object,
        observables: Ranged | Iterable[Ranged],
        *,
        weights: ArrayLike | str | None = None,
    ) -> Dataset:
        """Keep the events in the range of every observable (NaN is not) and say in ``report`` how many."""
        ranges = listed(observables)
        draft = read(source, ranges, weights)
        complain(draft.problems)
        outside = {o.name: is_outside(draft.columns[o.name], o) for o in ranges}
        keep = ~np.logical_or.reduce(list(outside.values()))
        counts = {name: int(mask.sum()) for name, mask in outside.items()}
        kept = draft.select(keep)
        complain(odd_weights(kept))
        return build(kept.columns, kept.weights, CutReport(len(keep), int(keep.sum()), counts))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    @property
    def columns(self) -> dict[str, Array]:
        """The columns by name."""
        return dict(self._columns)

    @property
    def weights(self) -> Array | None:
        """The weight of each event, or None if every event counts once."""
        return self._weights

    @property
    def report(self) -> CutReport | None:
        """What the cut that made this dataset did, or None if there was none."""
        return self._report

    @property
    def sum_of_weights(self) -> float:
        """The sum of the weights, or the number of events if there are none."""
        return float(len(self)) if self._weights is None else float(self._weights.sum())

    def with_weights(self, weights: ArrayLike | None) -> Dataset:
        """Return the same events with other weights, or with none."""
        draft = Draft(self.columns, "column", dict.fromkeys(self._columns, 0))
        if weights is not None:
            draft.add_weights(weights)
        draft.check_lengths()
        complain(draft.problems + odd_weights(draft))
        return build(draft.columns, draft.weights, self._report)

    def select(self, which: slice | ArrayLike) -> Dataset:
        """Return the events where a boolean mask is true, or those of a slice."""
        chosen = which if isinstance(which, slice) else checked_mask(which, len(self))
        weights = None if self._weights is None else self._weights[chosen]
        return build({name: column[chosen] for name, column in self._columns.items()}, weights, None)

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise DataError(f"dataset: no column {name!r}; {suggest(name, self.names)}")
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __reduce__(self) -> tuple[Any, ...]:
        return build, (self._columns, self._weights, self._report)

    def __repr__(self) -> str:
        rows = [("column", "min", "mean", "max"), *summary(self)]
        name, *numbers = (max(map(len, cells)) for cells in zip(*rows, strict=True))
        lines = [[row[0].ljust(name), *map(str.rjust, row[1:], numbers)] for row in rows]
        return "\n".join([title(self), *(f"  {'  '.join(line)}" for line in lines)])

    def _repr_html_(self) -> str:
        rows = "".join(html_row("td", row) for row in summary(self))
        head = html_row("th", ("column", "min", "mean", "max"))
        return f"<table><caption>{html.escape(title(self))}</caption>{head}{rows}</table>"


@dataclass
class Draft:
    """Columns and weights on their way into a dataset, with everything found wrong with them."""

    columns: dict[str, Array]
    kind: str
    masked: dict[str, int] = field(default_factory=dict)
    weights: Array | None = None
    masked_weights: int = 0
    problems: list[str] = field(default_factory=list)

    def label(self, name: str) -> str:
        """Name a column in a message."""
        return f"{self.kind} '{name}'"

    def add(self, name: str, raw: object) -> None:
        """Read one column, or note why it cannot be read."""
        try:
            self.columns[name], self.masked[name] = to_column(raw)
        except DataError as error:
            self.problems.append(f"{self.label(name)}: {error}")

    def add_weights(self, raw: object) -> None:
        """Read the weights, or note why they cannot be read."""
        try:
            self.weights, self.masked_weights = to_column(raw)
        except DataError as error:
            self.problems.append(f"weights: {error}")

    def check_lengths(self) -> None:
        """Note every column and the weights that are not as long as the first column."""
        if not self.columns:
            return
        first, *others = self.columns
        length = len(self.columns[first])
        lengths = {self.label(name): len(self.columns[name]) for name in others}
        if self.weights is not None:
            lengths["weights"] = len(self.weights)
        wrong = {label: got for label, got in lengths.items() if got != length}
        self.problems += [
            f"{label}: length must be {length} as for '{first}', got {got}" for label, got in wrong.items()
        ]

    def select(self, keep: Mask) -> Draft:
        """Return the draft of the events kept."""
        columns = {name: column[keep] for name, column in self.columns.items()}
        weights = None if self.weights is None else self.weights[keep]
        return Draft(columns, self.kind, self.masked, weights)


def listed(observables: Ranged | Iterable[Ranged]) -> list[Ranged]:
    """Return the observables as a list; complain about what has no name or range, or comes twice."""
    ranges = [observables] if isinstance(observables, Ranged) else list(observables)
    complain(
        [f"an observable needs a name and a range, got {o!r}" for o in ranges if not isinstance(o, Ranged)]
    )
    names = [o.name for o in ranges]
    complain([f"observable '{name}': given twice" for name in dict.fromkeys(names) if names.count(name) > 1])
    complain([] if ranges else ["needs at least one observable, got none"])
    return ranges


def read(source: object, ranges: Sequence[Ranged] | None, weights: ArrayLike | str | None) -> Draft:
    """Read the columns asked for and the weights, noting what is wrong with them."""
    raw = raw_columns(source, ranges)
    draft = Draft({}, "column" if ranges is None else "observable")
    named = weights if isinstance(weights, str) else None
    names = [n for n in raw if n != named] if ranges is None else [o.name for o in ranges]
    read_columns(draft, raw, names)
    if named is not None:
        read_named_weights(draft, raw, names, named)
    elif weights is not None:
        draft.add_weights(weights)
    elif isinstance(source, Dataset) and source.weights is not None:
        draft.add_weights(source.weights)
    draft.check_lengths()
    return draft


def read_columns(draft: Draft, raw: Mapping[Any, object], names: Sequence[Any]) -> None:
    """Read the named columns into the draft."""
    if not names:
        draft.problems.append("needs at least one column, got none")
    for name in names:
        if not isinstance(name, str):
            draft.problems.append(f"the name of a column must be text, got {name!r}; rename it")
        elif name in raw:
            draft.add(name, raw[name])
        else:
            draft.problems.append(f"{draft.label(name)}: missing; {suggest(name, raw)}")


def read_named_weights(draft: Draft, raw: Mapping[Any, object], names: Sequence[str], named: str) -> None:
    """Read the weights from a column of the source."""
    if named in names:
        draft.problems.append(f"weights: column '{named}' is an observable; name another column")
    elif named in raw:
        draft.add_weights(raw[named])
    else:
        draft.problems.append(f"weights: no column '{named}'; {suggest(named, raw)}")


def raw_columns(source: object, ranges: Sequence[Ranged] | None) -> dict[Any, object]:
    """Return the columns of any source, not yet read."""
    if isinstance(source, Dataset):
        return dict(source.columns)
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, np.ndarray) and source.dtype.names:
        return {name: source[name] for name in source.dtype.names}
    if isinstance(source, Frame):
        return {name: source[name] for name in source.columns}
    try:
        return array_columns(to_array(source), ranges)
    except DataError as error:
        raise DataError(f"dataset: source: {error}") from None


def array_columns(array: NDArray[Any], ranges: Sequence[Ranged] | None) -> dict[Any, object]:
    """Name the columns of an array of shape (events,) or (events, observables)."""
    if array.ndim not in (1, 2):
        kinds = "named columns, an array with 1 or 2 dimensions or a Dataset"
        raise DataError(f"must be {kinds}, got shape {array.shape} of dtype {array.dtype}")
    if ranges is None:
        raise DataError("an array has no names for its columns; pass its observables")
    table = array[:, None] if array.ndim == 1 else array
    if table.shape[1] != len(ranges):
        hint = "; transpose it" if array.ndim == 2 and array.shape[0] == len(ranges) else ""
        rule = f"an array must have one column per observable, here {len(ranges)}"
        raise DataError(f"{rule}, got shape {array.shape}{hint}")
    return {o.name: table[:, i] for i, o in enumerate(ranges)}


def to_array(raw: object) -> NDArray[Any]:
    """Return anything as an array; masks stay."""
    if isinstance(raw, np.ma.MaskedArray):
        return raw
    try:
        return np.asarray(raw)
    except ValueError:
        raise DataError("must be rectangular, got rows of different lengths") from None


def to_column(raw: object) -> tuple[Array, int]:
    """Copy anything to a column with NaN where it is masked; return it and how many are."""
    array = to_array(raw)
    if array.ndim != 1:
        raise DataError(f"must have one dimension, got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise DataError(f"must be real numbers, got dtype {array.dtype}")
    with np.errstate(over="ignore"):
        column = np.ma.filled(array.astype(np.float64), np.nan)
    return np.ascontiguousarray(column), int(np.ma.getmaskarray(array).sum())


def checked_mask(which: ArrayLike, length: int) -> Mask:
    """Return a mask with one entry per event, or complain."""
    mask = np.asarray(which)
    if mask.dtype != np.bool_:
        raise DataError(f"dataset: select needs a boolean mask or a slice, got dtype {mask.dtype}")
    if mask.shape != (length,):
        raise DataError(f"dataset: the mask must have shape ({length},), got {mask.shape}")
    return mask


def is_outside(column: Array, observable: Ranged) -> Mask:
    """Say of each event whether it is outside the range; NaN is."""
    return ~((column >= observable.low) & (column <= observable.high))


def outside_ranges(columns: Mapping[str, Array], ranges: Iterable[Ranged]) -> Iterator[str]:
    """Say how many finite events lie outside the range of each observable."""
    remedy = "use cut() to keep the events in range, or widen the range"
    for o in ranges:
        column = columns.get(o.name, np.empty(0))
        count = int((is_outside(column, o) & np.isfinite(column)).sum())
        if count:
            rule = f"{count} of {len(column)} events lie outside [{float(o.low)}, {float(o.high)}]"
            yield f"observable '{o.name}': {rule}; {remedy}"


def not_finite(label: str, column: Array, masked: int, noun: str) -> Iterator[str]:
    """Say how many numbers are masked and how many of the others are not finite."""
    bad = int((~np.isfinite(column)).sum()) - masked
    for count, what in ((masked, "masked"), (bad, "not finite")):
        if count:
            yield f"{label}: {count} of {len(column)} {noun} are {what}"


def odd_weights(draft: Draft) -> list[str]:
    """Say how many weights are masked or not finite."""
    return (
        []
        if draft.weights is None
        else [*not_finite("weights", draft.weights, draft.masked_weights, "weights")]
    )


def complain(problems: Sequence[str]) -> None:
    """Raise one error that lists every problem, if there is any."""
    if problems:
        raise DataError(f"dataset: {'; '.join(problems)}")


def suggest(name: object, known: Iterable[Any]) -> str:
    """Propose the known name nearest to a wrong one, whatever its case, or list what there is."""
    names = [n for n in known if isinstance(n, str)]
    folded = {n.casefold(): n for n in names}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    return f"the columns are {', '.join(map(repr, names))}" if names else "there are no columns"


def build(columns: Mapping[str, Array], weights: Array | None, report: CutReport | None) -> Dataset:
    """Return a dataset of columns that were checked before."""
    return fill(object.__new__(Dataset), columns, weights, report)


def fill(
    dataset: Dataset, columns: Mapping[str, Array], weights: Array | None, report: CutReport | None
) -> Dataset:
    """Put checked columns into a new dataset, read-only."""
    frozen = {name: freeze(column) for name, column in columns.items()}
    object.__setattr__(dataset, "_columns", frozen)
    object.__setattr__(dataset, "_weights", None if weights is None else freeze(weights))
    object.__setattr__(dataset, "_report", report)
    return dataset


def freeze(column: Array) -> Array:
    """Return the column contiguous and read-only."""
    frozen = np.ascontiguousarray(column)
    frozen.flags.writeable = False
    return frozen


def title(dataset: Dataset) -> str:
    """Say how many events there are and whether they are weighted."""
    weighted = "" if dataset.weights is None else f", sum of weights {dataset.sum_of_weights:.8g}"
    return f"Dataset: {len(dataset)} events{weighted}"


def summary(dataset: Dataset) -> list[tuple[str, ...]]:
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
