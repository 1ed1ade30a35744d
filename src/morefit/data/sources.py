"""Columns of all objects that data can be passed as, or an error that says what to pass instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morefit.errors import DataError
from morefit.validate import follows, name_of, single_names

if TYPE_CHECKING:
    from morefit.data.io.table import Ranged

KINDS = "named columns, an array with 1 or 2 dimensions or a Dataset"
NO_EVENTS = (
    "fit its bins with mf.BinnedLikelihood(model, histogram), give the events that were filled, or put events at the"
    " centres of narrow bins with mf.Dataset.from_hist"
)

PLAIN = (dict, list, np.ndarray)  # types that are no histograms, as usual data have


class Frame(Protocol):
    """Anything with named columns: a DataFrame, a dataset."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


class Query(Protocol):
    """A query, such as one of Spark, that has not been run."""

    def collect(self) -> Any: ...

    def select(self, *columns: Any) -> Any: ...


class LazyFrame(Query, Protocol):
    """A query of polars, which says what its columns are before it is run."""

    def collect_schema(self) -> Any: ...

    def head(self, rows: int, /) -> Any: ...


class ArrowTable(Protocol):
    """A table or a batch of pyarrow, whose ``columns`` are not names."""

    @property
    def column_names(self) -> Sequence[str]: ...

    def column(self, name: str, /) -> Any: ...


class AwkwardArray(Protocol):
    """An array of awkward; one of records has fields."""

    @property
    def fields(self) -> Sequence[str]: ...

    @property
    def layout(self) -> Any: ...

    def to_numpy(self) -> NDArray[Any]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


class RootHistogram(Protocol):
    """A histogram of PyROOT."""

    def GetNbinsX(self) -> int: ...

    def GetBinContent(self, number: int, /) -> float: ...


def raw_columns(source: Any, ranges: Sequence[Ranged] | None, weights: str | None) -> dict[Any, object]:
    """Return the columns of any source, not yet converted; of a query those of observables and weights alone."""
    wanted = None if ranges is None else [*(o.name for o in ranges), *([weights] if weights else [])]
    plain = isinstance(source, (dict, Mapping, np.ndarray))
    if not plain and follows(source, LazyFrame):
        source = collected(source, wanted)
    try:
        if not plain and isinstance(source, str | bytes | PathLike):
            raise DataError(f"must be {KINDS}, got {source!r}; read files with mf.read(path, observables)")
        if not plain:
            refuse(source)
        named = named_columns(source, wanted)
        return array_columns(to_array(source), ranges) if named is None else named
    except DataError as error:
        raise DataError(f"dataset: source: {error}") from None


def collected(query: LazyFrame, names: Sequence[Any] | None) -> Any:
    """Run a query for some columns, or all; where it lacks one, return no rows, as the names say what is wrong."""
    if names is None:
        return query.collect()
    known = query.collect_schema().names()
    return (query.select(names) if set(names) <= set(known) else query.head(0)).collect()


def named_columns(source: Any, wanted: Sequence[Any] | None) -> dict[Any, object] | None:
    """Return columns by name, of which some are wanted, or all; None if the source has no names."""
    if isinstance(source, Mapping):
        return {name_of(key): column for key, column in source.items()}
    if isinstance(source, np.ndarray):
        return {name: source[name] for name in source.dtype.names} if source.dtype.names else None
    if follows(source, ArrowTable):
        return {name: source.column(name) for name in single_names(source.column_names, wanted)}
    if follows(source, AwkwardArray):
        return {name: source[name] for name in source.fields} or None
    if follows(source, Frame):
        return {name: source[name] for name in single_names(source.columns, wanted)}
    return None


def refuse(source: Any) -> None:
    """Raise an error for histograms, queries and iterators, which would be read as something else."""
    kind = type(source).__name__
    if is_histogram(source) or follows(source, RootHistogram):
        raise DataError(f"a histogram has no events, got one of type {kind}; {NO_EVENTS}")
    if isinstance(source, tuple) and len(source) == 2 and is_numpy_histogram(source[::-1]):
        raise DataError("a histogram is (counts, edges), got the edges first")
    first = source[0] if isinstance(source, list | tuple) and source else None
    if isinstance(first, Mapping) or follows(first, Frame):
        raise DataError(
            f"got {len(source)} tables; join them, as mf.Dataset.concatenate does, or fit each with mf.fit_many(model, tables)"
        )
    if follows(source, Query):
        raise DataError(f"got a query of type {kind} that has not been run; pass what its collect() returns")
    if isinstance(source, Iterator | Set):
        raise DataError(f"must have an order and a length, got one of type {kind}; make a list of it")


def is_histogram(source: object) -> bool:
    """Return whether something is a histogram of the UHI protocol, or of numpy."""
    if type(source) in PLAIN:
        return False
    from morefit.data.io.histogram import Histogram

    return follows(source, Histogram) or is_numpy_histogram(source)


def is_numpy_histogram(source: object) -> bool:
    """Return whether something is what numpy.histogram, its siblings or matplotlib return: counts and their edges."""
    if not isinstance(source, tuple) or len(source) < 2:
        return False
    if len(source) == 2 and all(isinstance(part, list) for part in source):  # never columns: one is longer
        return len(source[1]) == len(source[0]) + 1 and not any(map(np.ndim, source[0] + source[1]))
    if not isinstance(source[0], np.ndarray):
        return False
    shape = source[0].shape
    several = isinstance(source[1], list | tuple) and all(isinstance(e, np.ndarray) for e in source[1])
    edges = source[1] if several else source[1 : 1 + len(shape)]
    return bool(shape) and [np.shape(e) for e in edges] == [(count + 1,) for count in shape]


def array_columns(array: NDArray[Any], ranges: Sequence[Ranged] | None) -> dict[Any, object]:
    """Name the columns of an array of shape (events,) or (events, observables)."""
    if array.ndim not in (1, 2):
        raise DataError(f"must be {KINDS}, got {described(array)}")
    if ranges is None:
        raise DataError("an array has no names for its columns; pass its observables")
    table = array[:, None] if array.ndim == 1 else array
    if table.shape[1] != len(ranges):
        hint = "; transpose it" if array.ndim == 2 and array.shape[0] == len(ranges) else ""
        if array.ndim == 2 and array.shape[0] == 2 and len(ranges) == 1:
            hint = "; a histogram is (counts, edges) with one edge more than bins, not their centres"
        rule = f"an array must have one column per observable, here {len(ranges)}"
        raise DataError(f"{rule}, got shape {array.shape}{hint}")
    return {o.name: table[:, i] for i, o in enumerate(ranges)}


def to_array(raw: Any) -> NDArray[Any]:
    """Return anything as an array; masks stay."""
    if isinstance(raw, np.ndarray):
        return raw
    refuse(raw)
    try:
        return raw.to_numpy() if follows(raw, AwkwardArray) else np.asarray(raw)
    except ValueError:
        raise DataError("must be rectangular, got rows of different lengths") from None
    except Exception as error:  # objects refuse to become arrays in their own ways
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DataError(f"must be numbers, got one of type {type(raw).__name__} ({reason})") from error


def described(array: NDArray[Any]) -> str:
    """Return how messages describe an array that should be a column: shape and dtype, or the type of a single object."""
    if array.ndim == 0:
        thing = array.item()
        return (
            repr(thing) if thing is None or array.dtype != object else f"one of type {type(thing).__name__}"
        )
    return f"shape {array.shape} of dtype {array.dtype}"
