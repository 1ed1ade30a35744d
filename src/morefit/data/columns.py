"""Columns of any source as arrays of doubles, and a list of all problems with them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array
from morefit.data.labels import Category, category_of, is_text
from morefit.data.sources import described, raw_columns, to_array
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.model.region import Range, check_order, listed_ranges
from morefit.resources import LARGE, on_all_cores, padded
from morefit.text.suggest import suggest

if TYPE_CHECKING:
    from morefit.data.io.table import Ranged
    from morefit.data.report import CutReport

Mask = NDArray[np.bool_]
MAX_DOUBLE = sys.float_info.max
PIECE = 1 << 20  # numbers of a column that a thread takes
FEW = 1 << 14  # numbers, of which argmin finds the least in a quarter of the time of min; of many in more
# What to do with columns that are not real numbers, by the kind of their dtype.
CONVERSIONS = {
    "c": "take its real part or its absolute value",
    "M": "subtract a point in time and divide by a unit, as in (t - t[0]) / np.timedelta64(1, 's')",
    "m": "divide it by a unit, as in t / np.timedelta64(1, 's')",
    "V": "choose one of its fields",
}


@dataclass
class Draft:
    """Columns and weights of a future dataset, with a list of all problems."""

    columns: dict[str, Array]
    kind: str
    masked: dict[str, int] = field(default_factory=dict)
    weights: Array | None = None
    masked_weights: int = 0
    problems: list[str] = field(default_factory=list)
    copies: bool = True  # of the columns; not needed if the source never changes
    categories: dict[str, Category] = field(default_factory=dict)  # of the columns of labels

    def label(self, name: str) -> str:
        """Return how messages name a column."""
        return f"{'category' if name in self.categories else self.kind} '{name}'"

    def add(self, name: str, raw: object) -> None:
        """Read one column, or add the problem to the list."""
        try:
            if name not in self.categories and self.kind == "column" and is_text(raw):
                self.categories[name] = category_of(name, raw)
            if name in self.categories:
                self.columns[name], self.masked[name] = self.categories[name].encode(raw), 0
            else:
                self.columns[name], self.masked[name] = to_column(raw, copy=self.copies)
        except DataError as error:
            self.problems.append(f"{self.label(name)}: {error}")

    def add_weights(self, raw: object) -> None:
        """Read the weights, or add the problem to the list."""
        try:
            self.weights, self.masked_weights = to_column(raw)
        except DataError as error:
            self.problems.append(f"weights: {error}")

    def check_lengths(self) -> None:
        """Add columns and weights that are not as long as the first column to the problems."""
        if not self.columns:
            return
        first = next(iter(self.columns))
        length = len(self.columns[first])
        wrong = {self.label(name): len(c) for name, c in self.columns.items() if len(c) != length}
        if self.weights is not None and len(self.weights) != length:
            wrong["weights"] = len(self.weights)
        self.problems += [
            f"{label}: length must be {length} as for '{first}', got {got}" for label, got in wrong.items()
        ]

    def select(self, keep: Mask) -> Draft:
        """Return the draft of the events where a mask is true."""
        columns = {name: column[keep] for name, column in self.columns.items()}
        weights = None if self.weights is None else self.weights[keep]
        return Draft(columns, self.kind, self.masked, weights, categories=self.categories)

    def drop(self, observables: Iterable[Ranged]) -> None:
        """Leave out columns."""
        for o in observables:
            del self.columns[o.name]

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of the columns of labels."""
        return {name: category.labels for name, category in self.categories.items()}


def is_ranged(thing: object) -> TypeGuard[Ranged]:
    """Return whether something has a name and a range, as an observable has."""
    # formulas have a name only
    return hasattr(thing, "low") and hasattr(thing, "high") and hasattr(thing, "name")


def listed(observables: Ranged | Iterable[Ranged]) -> list[Ranged]:
    """Return observables as a list, or raise an error for one without a name or range, or given twice."""
    one = isinstance(observables, str) or is_ranged(observables) or not isinstance(observables, Iterable)
    ranges: list[Any] = [observables] if one else list(cast("Iterable[Ranged]", observables))
    if not ranges:
        raise_if(["needs at least one observable, got none"])
    for o in ranges:
        if not is_ranged(o):
            advice = f"; write mf.Observable({o!r}, low, high)" if isinstance(o, str) else ""
            raise_if([f"an observable needs a name and a range, got {o!r}{advice}"])
    names = [o.name for o in ranges]
    if len({*names}) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise_if([f"observable '{name}': given twice" for name in twice])
    return ranges


def read_source(
    source: object, ranges: Sequence[Ranged] | None, weights: ArrayLike | str | None, *, copies: bool
) -> Draft:
    """Read columns and weights, with a list of all problems."""
    named = weights if isinstance(weights, str) else None
    raw = raw_columns(source, ranges, named)
    draft = Draft({}, "column" if ranges is None else "observable", copies=copies)
    draft.categories |= {o.name: o for o in ranges or () if isinstance(o, Category)}
    names = [n for n in raw if n != named] if ranges is None else [o.name for o in ranges]
    read_columns(draft, raw, names)
    if named is not None:
        read_named_weights(draft, raw, names, named)
    elif weights is not None:
        draft.add_weights(weights)
    draft.check_lengths()
    return draft


def without_other_labels(draft: Draft) -> tuple[Draft, CutReport | None]:
    """Leave out events that have another label than their category, and count them; None if there are none."""
    masks = {name: draft.columns[name] < 0 for name in draft.categories if name in draft.columns}
    others = {name: mask for name, mask in masks.items() if mask.any()}
    if draft.problems or not others:
        return draft, None
    from morefit.data.report import CutReport

    keep = ~np.logical_or.reduce(list(others.values()))
    counts = {name: int(mask.sum()) for name, mask in others.items()}
    return draft.select(keep), CutReport(len(keep), int(keep.sum()), counts)


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
            draft.problems.append(f"{draft.label(name)}: missing; {suggest_column(name, raw)}")


def read_named_weights(draft: Draft, raw: Mapping[Any, object], names: Sequence[str], named: str) -> None:
    """Read the weights from a column of the source."""
    if named in names:
        draft.problems.append(f"weights: column '{named}' is an observable; name another column")
    elif named in raw:
        draft.add_weights(raw[named])
    else:
        draft.problems.append(f"weights: no column '{named}'; {suggest_column(named, raw)}")


def to_column(raw: object, *, copy: bool = True) -> tuple[Array, int]:
    """Return a column of doubles with NaN where the input is masked, and the number of masked entries."""
    array = to_array(raw)
    if type(array) is np.ndarray and array.dtype == np.float64 and array.ndim == 1:  # the usual case
        return copied(array) if copy else np.ascontiguousarray(array), 0
    if array.ndim != 1:
        raise DataError(f"must have one dimension, got {described(array)}")
    if array.dtype.kind not in "iuf":
        remedy = CONVERSIONS.get(array.dtype.kind, "convert it with astype(float)")
        raise DataError(f"must be real numbers, got dtype {array.dtype}; {remedy}")
    with np.errstate(over="ignore"):
        # numpy.ma is imported when used
        if type(array) is np.ndarray or not isinstance(array, np.ma.MaskedArray):
            return copied(array) if copy else np.asarray(array, np.float64, order="C"), 0
        column = np.ma.filled(array.astype(np.float64), np.nan)
    return np.ascontiguousarray(column), int(np.ma.getmaskarray(array).sum())


def check_events(which: Any, length: int) -> slice | NDArray[Any]:
    """Return a slice, a mask with one entry per event, or indices of events, as numpy takes them."""
    if isinstance(which, slice):
        return check_slice(which, length)
    try:
        array = to_array(which)
    except DataError as error:
        raise DataError(f"dataset: indices of events {error}") from None
    if array.ndim == 1 and not array.size and array.dtype.kind == "f":  # an empty list has no kind
        array = array.astype(np.int64)
    if (
        array.dtype.kind in "iu"
        and array.shape == (length,)
        and length > 2
        and np.all((array == 0) | (array == 1))
    ):
        raise DataError(
            "dataset: the mask must be of booleans, got one of the numbers 0 and 1, which would be indices of events;"
            " convert it with astype(bool)"
        )
    if array.dtype.kind not in "biu" or not array.ndim or np.ma.is_masked(array):
        raise DataError(
            f"dataset: takes the name of a column, an observable, a slice, a mask or indices of events, got"
            f" {described(array)}{'; write data[data[x] > 5]' * (array.dtype == object)}"
        )
    if array.dtype == np.bool_ and array.shape != (length,):
        raise DataError(f"dataset: the mask must have shape ({length},), got {array.shape}")
    if array.ndim != 1:
        raise DataError(f"dataset: indices must have one dimension, got shape {array.shape}")
    outside = array[(array < -length) | (array >= length)] if array.dtype != np.bool_ else array[:0]
    if outside.size:
        raise DataError(f"dataset: indices must lie from {-length} to {length - 1}, got {outside[0]}")
    return np.asarray(array)


def ranges_of_columns(
    region: Any, names: Sequence[str], labels: Collection[str] = ()
) -> dict[str, list[Range]]:
    """Return the ranges of some columns, by name, as lists of pairs of numbers."""
    if not isinstance(region, Mapping) or not region:
        raise DataError(f"dataset: ranges must be (low, high) by name, as in {{'x': (0, 1)}}, got {region!r}")
    known = {key if isinstance(key, str) else key.name: value for key, value in region.items()}
    for name in known:
        if name not in names:
            raise DataError(f"dataset: no column {name!r}; {suggest(str(name), names)}")
        if name in labels:
            raise DataError(f"dataset: column '{name}': has labels, and labels no ranges; use by_label")
    return {
        name: [check_order(name, ends) for ends in listed_ranges(name, value)]
        for name, value in known.items()
    }


def check_slice(which: slice, length: int) -> slice:
    """Return a slice if its ends and its step are whole numbers."""
    try:
        which.indices(length)
    except (TypeError, ValueError) as error:
        raise DataError(f"dataset: {which!r} is not a slice of events, {error}") from None
    return which


def is_outside(column: Array, observable: Ranged) -> Mask:
    """Return for each event whether it is outside the range; NaN is."""
    return ~((column >= observable.low) & (column <= observable.high))


def all_between(column: Array, low: float, high: float) -> bool:
    """Return whether all numbers lie between two others; NaN does not."""
    if len(column) < FEW:
        return not len(column) or bool(column[column.argmin()] >= low and column[column.argmax()] <= high)

    def between(cut: slice) -> bool:
        piece = column[cut]
        return bool(piece.min() >= low and piece.max() <= high)

    return all(on_all_cores(between, len(column), PIECE))


def copied(array: NDArray[Any]) -> Array:
    """Return a copy as doubles; a large one where backends can read it, so that they need none."""
    count = len(array)
    if 8 * count < LARGE:
        return np.array(array, np.float64)

    def fill(copy: Array) -> None:
        on_all_cores(lambda c: np.copyto(copy[c], array[c], casting="unsafe"), count, PIECE)

    return padded(count, fill)


def bad_columns(draft: Draft, ranges: Iterable[Ranged]) -> Iterator[str]:
    """Yield a message for each column with events that are masked, not finite, or outside the range of its observable."""
    unchecked = draft.columns.copy()
    suspicious: list[Ranged] = []
    for name, o in {o.name: o for o in ranges}.items():
        column = unchecked.get(name)
        if column is None or draft.masked[name] or not all_between(column, o.low, o.high):
            suspicious.append(o)
        else:  # the usual case
            del unchecked[name]
    for name, column in unchecked.items():
        yield from not_finite(draft.label(name), column, draft.masked[name], "events")
    yield from outside_ranges(draft.columns, suspicious)


def outside_ranges(columns: Mapping[str, Array], ranges: Iterable[Ranged]) -> Iterator[str]:
    """Yield a message for each observable with finite events outside its range."""
    remedy = "use cut() to keep the events in range, or widen the range"
    for o in ranges:
        column = columns.get(o.name, np.empty(0))
        count = int((is_outside(column, o) & np.isfinite(column)).sum())
        if count:
            rule = f"{count} of {len(column)} events lie outside [{float(o.low)}, {float(o.high)}]"
            yield f"observable '{o.name}': {rule}; {remedy}"


def not_finite(label: str, column: Array, masked: int, noun: str) -> Iterator[str]:
    """Yield messages with the number of masked entries, and of others that are not finite."""
    if not masked and all_between(column, -MAX_DOUBLE, MAX_DOUBLE):
        return
    bad = int((~np.isfinite(column)).sum()) - masked
    for count, what in ((masked, "masked"), (bad, "not finite")):
        if count:
            yield f"{label}: {count} of {len(column)} {noun} are {what}"


def bad_weights(draft: Draft) -> list[str]:
    """Return messages with the number of weights that are masked or not finite."""
    if draft.weights is None:
        return []
    return [*not_finite("weights", draft.weights, draft.masked_weights, "weights")]


def raise_if(problems: Sequence[str]) -> None:
    """Raise one error that lists every problem, if there is any."""
    if problems:
        raise DataError(f"dataset: {'; '.join(problems)}")


def suggest_column(name: object, known: Iterable[Any]) -> str:
    """Return a suggestion for the name of a column that is missing; names of columns may be anything."""
    known = list(known)
    names = [n for n in known if isinstance(n, str)]
    if known and not names:
        return f"the names of columns must be text, got {known[0]!r}; rename them"
    return suggest(name, names)
