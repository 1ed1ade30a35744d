"""A dataset: named columns with one number or label per event and optional weights, checked and read-only."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from operator import is_
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array, read_only
from morefit.data.columns import (
    Draft,
    all_between,
    bad_columns,
    bad_weights,
    check_events,
    is_outside,
    is_ranged,
    listed,
    raise_if,
    ranges_of_columns,
    without_other_labels,
)
from morefit.data.labels import Category, Labelled, without_categories
from morefit.data.weights import Weights, bad_observables, read_events
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.expr import Quantity
from morefit.model.observable import Ranges
from morefit.text import elsewhere
from morefit.text.arguments import in_sentences, methods_in_sentences, no_attribute
from morefit.text.suggest import suggest

if TYPE_CHECKING:
    from morefit.data.io.histogram import Bins
    from morefit.data.io.table import Ranged
    from morefit.data.report import CutReport

NOT_BINNED = (
    "dataset: a fit of the events of from_hist is not a binned fit, as all events are at centres of bins; where the density"
    " changes much within a bin, values are off by more than their errors: use mf.BinnedLikelihood(model, histogram),"
    " fit the events that were filled, or pass at_centres=True if bins are narrow enough"
)


@methods_in_sentences
@dataclass(frozen=True, eq=False, init=False, repr=False)
class Dataset:
    """Events as named columns of numbers or labels, with optional weights; a read-only copy.

    The source is a mapping from names to columns, a DataFrame, a table of Arrow, an awkward or structured array of
    records, an array of shape (events, observables), an array of shape (events,) for one observable, or another
    dataset, whose weights are used unless others are passed. With observables, other columns are ignored and every event
    must lie in the ranges; without, all columns are used. Weights are an array, the name of a column, or a formula of
    observables, also of others, such as ``1 / efficiency``. Labels are declared with ``mf.Category`` among the
    observables; without observables, columns of text are labels.

    Example: ``mf.Dataset({"m": [5.1, 5.8]}, m, weights=[1.0, 0.5])``
    """

    _columns: dict[str, Array]
    _weights: Array | None
    _report: CutReport | None
    # observables in whose ranges all events lie, if these are all columns; else empty
    _checked: tuple[Ranged, ...]
    _labels: dict[str, tuple[str, ...]]  # of the columns that have the numbers of labels
    _length: int

    __iter__: ClassVar[None] = None
    in_memory: ClassVar[bool] = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            columns = vars(self).get("_columns", ())
            return no_attribute(self, name, elsewhere.DATASET, elsewhere.COLUMN_OF, columns)

        def __array__(self, *_: object, **named: object) -> Any:
            raise TypeError(f"dataset: is no array; {elsewhere.ARRAY}")

    @in_sentences
    def __init__(
        self,
        source: object,
        observables: Ranged | Iterable[Ranged] | None = None,
        *,
        weights: Weights = None,
    ) -> None:
        ranges = None if observables is None else listed(observables)
        columns = source._raw(ranges) if isinstance(source, Dataset) else source
        copies = columns is source  # a dataset never changes
        draft, others = read_events(columns, ranges, own_weights(source, weights), copies=copies)
        draft, report = without_other_labels(draft)
        draft.problems += bad_columns(draft, [*(ranges or ()), *others])
        draft.problems += bad_observables(draft.columns, weights) if not draft.problems else []
        raise_if(draft.problems + bad_weights(draft))
        draft.drop(others)
        checked = () if draft.labels else tuple(ranges or ())
        self._set_columns(draft.columns, draft.weights, report, draft.labels, checked)

    def _set_columns(
        self,
        columns: Mapping[str, Array],
        weights: Array | None,
        report: CutReport | None,
        labels: Mapping[str, tuple[str, ...]],
        checked: tuple[Ranged, ...],
    ) -> None:
        """Set the columns and weights of a new dataset, read-only."""
        own = {name: read_only(np.ascontiguousarray(column)) for name, column in columns.items()}
        vars(self).update(
            _columns=own,
            _length=len(next(iter(own.values()))),
            _weights=None if weights is None else read_only(np.ascontiguousarray(weights)),
            _report=report,
            _labels=dict(labels),
            _checked=checked,
        )

    @classmethod
    @in_sentences
    def cut(
        cls,
        source: object,
        observables: Ranged | Iterable[Ranged],
        *,
        weights: Weights = None,
    ) -> Dataset:
        """Return the events in the ranges of all observables (NaN is outside), with their numbers in ``report``."""
        from morefit.data.report import CutReport

        draft, others = read_events(source, listed(observables), own_weights(source, weights))
        raise_if(draft.problems)
        ranges = [*listed(observables), *others]
        outside = {o.name: is_outside(draft.columns[o.name], o) for o in ranges}
        keep = ~np.logical_or.reduce(list(outside.values()))
        counts = {name: int(mask.sum()) for name, mask in outside.items()}
        selected = draft.select(keep)
        raise_if(bad_weights(selected))
        nan = {o.name: int(np.isnan(draft.columns[o.name]).sum()) for o in ranges if counts[o.name]}
        report = CutReport(
            len(keep), int(keep.sum()), counts, not_numbers={name: n for name, n in nan.items() if n}
        )
        selected.drop(others)
        return build(selected.columns, selected.weights, report, draft.labels)

    def inside(self, region: Ranges) -> Dataset:
        """Return the events in one or several ranges of each of some columns, with their numbers in ``report``."""
        from morefit.data.report import CutReport

        inside = {
            name: np.logical_or.reduce([(self[name] >= low) & (self[name] <= high) for low, high in ranges])
            for name, ranges in ranges_of_columns(region, self.names, self._labels).items()
        }
        keep = np.logical_and.reduce(list(inside.values()))
        counts = {name: int((~mask).sum()) for name, mask in inside.items()}
        report = CutReport(len(self), int(keep.sum()), counts)
        return self._select(keep, report, self._checked)

    def _select(
        self, events: Any, report: CutReport | None = None, checked: tuple[Ranged, ...] = ()
    ) -> Dataset:
        """Return some of the events, by a slice, a mask or indices that are checked already."""
        weights = None if self._weights is None else self._weights[events]
        columns = {name: column[events] for name, column in self._columns.items()}
        return build(columns, weights, report, self._labels, checked)

    @classmethod
    def from_hist(
        cls, histogram: object, observables: Ranged | Iterable[Ranged], *, at_centres: bool = False
    ) -> Dataset:
        """Return events of a histogram with one axis per observable: all events of a bin are at its centre.

        The likelihood of such events is not that of the bins; a warning says so unless ``at_centres`` is True. The two
        are close where the density hardly changes within a bin: a Gaussian of width s in bins of width h is fitted
        with the width sqrt(s**2 + h**2 / 12), and a steep slope is biased. A bin of n counts becomes n events; other
        bins become few events whose weights add up to the content of the bin and their squares to its variance, so
        that errors are right too. Any histogram of the UHI protocol works: of hist, boost-histogram, uproot. It must
        span the ranges of the observables; flow bins are ignored.
        """
        import warnings

        from morefit.data.io.histogram import events_of

        ranges = without_categories(listed(observables))
        columns, weights = events_of(histogram, ranges)
        if not at_centres:
            warnings.warn(NOT_BINNED, UserWarning, stacklevel=2)
        return build(columns, weights, None)

    def to_hist(self, observables: Ranged | Iterable[Ranged], bins: Bins = 100) -> Any:
        """Count the events in bins over the ranges of observables; return a hist.Hist with one axis per observable.

        ``bins`` is the number of bins of every axis, or a number or edges for each axis, by name or in the order of the
        observables; a list for a single observable is its edges. With weights the storage is Weight, which also
        sums their squares. Events outside are in the flow bins.
        """
        from morefit.data.io.histogram import fill_histogram

        ranges = without_categories(listed(observables))
        return fill_histogram({o.name: self[o.name] for o in ranges}, self._weights, ranges, bins)

    def write(self, path: str | PathLike[str], *, weight: str = "weight", tree: str | None = None) -> None:
        """Write to a .root, .parquet, .csv or .npz file, from which ``mf.read`` reads the same bits.

        Weights become a column named ``weight``; ``tree`` names the tree of a ROOT file, "events" if None. An
        existing file is replaced.
        """
        from morefit.data.io.formats import write_table

        write_table(Path(path).expanduser(), self._with_weights_as(weight), tree)

    def to_pandas(self, *, weight: str = "weight") -> Any:
        """Return a DataFrame with one row per event; weights become a column named ``weight``."""
        from morefit.records.fields import data_frame

        return data_frame(self._with_weights_as(weight))

    def _raw(self, ranges: Sequence[Ranged] | None) -> dict[str, object]:
        """Return the columns to read a dataset of; labels as text where numbers are wanted, which is an error then."""
        numeric = {o.name for o in ranges or () if not isinstance(o, Category)}
        return {
            name: self[name] if name in numeric or name not in self._labels else self._labelled(name)
            for name in self._columns
        }

    def _labelled(self, name: str) -> Labelled:
        """Return a column of labels with what they are."""
        return Labelled(self._columns[name], self._labels[name])

    def _with_weights_as(self, weight: str) -> dict[str, NDArray[Any]]:
        """Return the columns, with the weights, if there are any, as another column."""
        columns = self.columns
        if self._weights is not None:
            if weight in columns:
                raise DataError(
                    f"dataset: a column is called '{weight}' already; name that of the weights otherwise"
                )
            columns[weight] = self._weights
        return columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    @property
    def columns(self) -> dict[str, Array]:
        """The columns by name; labels as text."""
        return dict(self._columns) if not self._labels else {name: self[name] for name in self._columns}

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels that each column of labels can have, by its name."""
        return dict(self._labels)

    @property
    def weights(self) -> Array | None:
        """The weight of each event, or None if every event counts once."""
        return self._weights

    @property
    def weighted(self) -> bool:
        """Whether events have weights."""
        return self._weights is not None

    @property
    def sample(self) -> Dataset:
        """Events for checks of a model: all of them, or some of data that stay in files."""
        return self

    def pieces(self) -> Generator[Dataset, None, None]:
        """Yield all events in pieces that fit into memory; there is one piece, unless the data stay in files."""
        yield self

    @property
    def report(self) -> CutReport | None:
        """The numbers of events before and after the cut that made this dataset, or None if there was none."""
        return self._report

    @property
    def sum_of_weights(self) -> float:
        """The sum of the weights, or the number of events if there are none."""
        return float(len(self)) if self._weights is None else float(self._weights.sum())

    def by_label(self, category: str | Category) -> dict[str, Dataset]:
        """Return the events of each label of a column of labels."""
        name = category if isinstance(category, str) else category.name
        if name not in self._labels:
            raise DataError(f"dataset: no column of labels {name!r}; {suggest(name, tuple(self._labels))}")
        codes = self._columns[name]
        return {label: self[codes == k] for k, label in enumerate(self._labels[name])}

    def _for_observables(self, observables: tuple[Ranged, ...], weights: Weights = None) -> Dataset:
        """Return a dataset of observables: this one itself if it has been checked for the same ones."""
        known = self._checked
        same = known is observables or (len(known) == len(observables) and all(map(is_, known, observables)))
        if known and same and weights is None:
            return self
        if weights is None and (columns := self._inside(observables)) is not None:
            if list(columns) != list(self._columns):
                return build(columns, self._weights, self._report, checked=observables)
            vars(self)["_checked"] = observables
            return self
        dataset = Dataset(self, observables, weights=weights)
        if dataset._report is None:
            object.__setattr__(dataset, "_report", self._report)  # of what it was cut from
        return dataset

    def _inside(self, observables: tuple[Ranged, ...]) -> dict[str, Array] | None:
        """Return the columns of observables, if there are such, without labels, and all events are in their ranges."""
        columns = {o.name: self._columns[o.name] for o in observables if o.name in self._columns}
        if self._labels or len(columns) < len(observables) or not observables:
            return None
        return columns if are_inside(columns, observables) else None

    def with_weights(self, weights: ArrayLike | Quantity | None) -> Dataset:
        """Return the same events with other weights, numbers or a formula of observables, or with none."""
        draft = Draft(dict(self._columns), "column", dict.fromkeys(self._columns, 0))
        if isinstance(weights, Quantity):
            draft, _ = read_events(self._columns, None, weights, copies=False)
            draft.problems += [] if draft.problems else bad_observables(draft.columns, weights)
        elif weights is not None:
            draft.add_weights(weights)
        draft.check_lengths()
        raise_if(draft.problems + bad_weights(draft))
        return build(draft.columns, draft.weights, self._report, self._labels)

    def with_column(self, name: str, values: Callable[..., ArrayLike] | ArrayLike) -> Dataset:
        """Return the same events with one more column: numbers or labels, one for all events, or a function of columns.

        The arguments of a function are named as columns: ``data.with_column("pt", lambda px, py: np.hypot(px, py))``;
        it is called once. An existing column is replaced.
        """
        from morefit.data.cut import arguments_of

        if callable(values):
            label = getattr(values, "__name__", type(values).__name__)
            column = np.asarray(
                values(*(self[argument] for argument in arguments_of(values, label, "column")))
            )
        else:
            column = np.full(len(self), values) if np.ndim(values) == 0 else np.asarray(values)
        with_it = Dataset({**self._columns, name: column}, weights=self._weights)
        labels = {other: own for other, own in self._labels.items() if other != name} | with_it._labels
        return build(with_it._columns, with_it.weights, self._report, labels)

    @classmethod
    def concatenate(cls, datasets: Dataset | Iterable[Dataset]) -> Dataset:
        """Return the events of several datasets with the same columns, one dataset after the other.

        Weights are kept; where only some of the datasets have weights, events of the others have the weight 1.
        """
        from morefit.data.concatenate import concatenated

        return concatenated(list(datasets) if isinstance(datasets, Iterable) else [datasets])

    @overload
    def __getitem__(self, which: str | Ranged) -> Array: ...

    @overload
    def __getitem__(self, which: slice | Sequence[int] | NDArray[Any]) -> Dataset: ...

    def __getitem__(self, which: Any) -> NDArray[Any] | Dataset:
        """Return a column by its name or observable, labels as text; or the events of a slice, a mask or indices as a dataset."""
        name = which.name if is_ranged(which) else which
        if isinstance(name, str):
            if name not in self._columns:
                raise DataError(f"dataset: no column {name!r}; {suggest(name, self.names)}")
            column: NDArray[Any] = self._columns[name]
            return self._labelled(name).decoded() if name in self._labels else column
        return self._select(check_events(which, len(self)))

    def __len__(self) -> int:
        return self._length

    def __reduce__(self) -> tuple[Any, ...]:
        return build, (self._columns, self._weights, self._report, self._labels)

    def __str__(self) -> str:
        from morefit.data.report import as_text

        return as_text(self)

    def __repr__(self) -> str:
        from morefit.data.report import short

        return short(self)

    def _repr_html_(self) -> str:
        from morefit.data.report import as_html

        return as_html(self)


def own_weights(source: object, weights: Weights) -> Weights:
    """Return the weights that are passed, else those of a dataset."""
    return source.weights if weights is None and isinstance(source, Dataset) else weights


def build(
    columns: Mapping[str, Array],
    weights: Array | None,
    report: CutReport | None,
    labels: Mapping[str, tuple[str, ...]] | None = None,
    checked: tuple[Ranged, ...] = (),
) -> Dataset:
    """Return a dataset of columns that are checked already, and in the ranges of the observables ``checked``."""
    dataset = object.__new__(Dataset)
    dataset._set_columns(columns, weights, report, labels or {}, checked)
    return dataset


def build_drawn(columns: Mapping[str, Array], observables: tuple[Ranged, ...]) -> Dataset:
    """Return a dataset of columns of doubles that were drawn and have no other owner; only ranges are checked."""
    if are_inside(columns, observables):
        return build(columns, None, None, checked=observables)
    return Dataset(build(columns, None, None), observables)  # an error that lists what is wrong


def are_inside(columns: Mapping[str, Array], observables: Iterable[Ranged]) -> bool:
    """Return whether all events are in the ranges of observables."""
    return all(all_between(columns[o.name], o.low, o.high) for o in observables)


def dataset_of(source: object, observables: tuple[Ranged, ...], weights: Weights) -> Dataset:
    """Return a dataset of observables, of any source."""
    if isinstance(source, Dataset):
        return source._for_observables(observables, weights)
    return Dataset(source, observables, weights=weights)
