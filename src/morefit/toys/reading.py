"""Many datasets as users pass them: read and checked together where they are plain arrays, else one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data.columns import MAX_DOUBLE
from morefit.data.dataset import Dataset, dataset_of
from morefit.data.plain import PlainColumns, plain_columns
from morefit.dataclass import dataclass
from morefit.errors import DataError, OptionError, errors_of
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.evaluation import least_mean_weight
from morefit.minimise.problem import check_data
from morefit.model.counts import counted_in
from morefit.targets.cpu.pieces import Pieces
from morefit.toys.stored import StoredPart, completed
from morefit.validate import whole_number

ROUNDING = 1e-9  # of sums of weights, relative to those of their magnitudes


@dataclass(frozen=True, eq=False)
class ManyDatasets:
    """Datasets that are checked: the events of each part, and their least mean weight."""

    parts: tuple[StoredPart, ...]
    mean_weight: float

    @property
    def sizes(self) -> Integers:
        """How many events each dataset has."""
        return np.asarray(sum(part.sizes for part in self.parts), np.int64)

    @property
    def weighted(self) -> Any:
        """Which datasets have weights."""
        return np.any([part.weighted for part in self.parts], axis=0)

    def datasets(self, number: int) -> tuple[Dataset, ...]:
        """Return one dataset, part by part."""
        return tuple(part.dataset(number) for part in self.parts)


def read_many(template: Term, each: Sequence[Any] | Array, weights: Any) -> ManyDatasets:
    """Read and check datasets, with weights of theirs, of a column, or one array for each; an error is that of the first that is wrong."""
    check_weights(template, weights, len(each))
    return read_plain(template, each, weights) or read_each(template, each, weights)


def check_weights(template: Term, weights: Any, count: int) -> None:
    """Refuse weights that are not one array for each of some datasets of one model, or the name of a column."""
    if weights is None:
        return
    if template.parts[0].weight is not None:
        raise OptionError("fit_many: a likelihood has its weights already; leave weights out")
    check_events("weights are those of events", template)
    several = isinstance(weights, Sequence) or (isinstance(weights, np.ndarray) and weights.ndim > 0)
    if not isinstance(weights, str) and not (several and len(weights) == count):
        got = f"{len(weights)}" if several else f"one of type {type(weights).__name__}"
        raise DataError(
            f"fit_many: weights must be the name of a column, a formula of observables, or an array for each of the {count}"
            f" datasets, got {got}"
        )


def check_events(rule: str, template: Term) -> None:
    """Refuse a likelihood that is not one of events of one model."""
    if len(template.parts) > 1 or type(template.parts[0]).read is not Likelihood.read:
        raise DataError(
            f"fit_many: {rule} of one model; for bins, and for several parts, give a list of datasets"
        )


def read_each(template: Term, each: Sequence[Any] | Array, weights: Any = None) -> ManyDatasets:
    """Read and check datasets one by one."""
    own = [weights] * len(each) if weights is None or isinstance(weights, str) else weights
    plain = template.with_parts([part.without_formula() for part in template.parts])
    checked = []
    for k, (data, one) in enumerate(zip(each, own, strict=True)):
        with errors_of(f"fit_many: datasets[{k}]"):
            checked.append(datasets_of(template, data, one))
            check_data(plain, checked[-1])
    names = [[o.name for o in part.model.observables] for part in template.parts]
    parts = [StoredPart.of_datasets(own, [data[k] for data in checked]) for k, own in enumerate(names)]
    mean = least_mean_weight((d for data in checked for d in data), alone=is_alone(template))
    return ManyDatasets(tuple(parts), mean)


def datasets_of(template: Term, data: Any, weights: Any) -> tuple[Dataset, ...]:
    """Return what is fitted together, a dataset for each part; only that of a single part may have weights."""
    parts = template.parts
    if len(parts) == 1:
        own = data if weights is None else dataset_of(data, parts[0].model.observables, weights)
        return (parts[0].read(own),)
    each = by_part(template, data)
    if each is None:
        raise DataError(f"must be a list of {len(parts)}, one for each part, got {data!r:.60}")
    labels = [f"category '{label}'" for label in template.labels or ()]
    return tuple(map(read_part, labels or [f"part {k}" for k in range(len(parts))], parts, each))


def read_part(name: str, part: Likelihood, data: Any) -> Dataset:
    """Return the dataset of one of several parts."""
    with errors_of(name):
        return part.read(data)


def by_part(template: Term, data: Any) -> Sequence[Any] | None:
    """Return the data of each part of a sum of likelihoods; None if there are not as many."""
    if isinstance(data, Mapping) and template.labels and set(data) == set(template.labels):
        return [data[label] for label in template.labels]
    several = isinstance(data, Sequence) and not isinstance(data, str | Mapping | Dataset)
    return data if several and len(data) == len(template.parts) else None


def is_alone(template: Term) -> bool:
    """Return whether there is nothing but data in a likelihood."""
    return not any(part.constraints for part in template.parts)


def read_table(template: Term, table: Any, sizes: Any, weights: Any) -> ManyDatasets:
    """Read a table that has the events of all datasets, one after the other, and check them."""
    check_events("sizes cut the events", template)
    check_weights(template, weights if weights is None or isinstance(weights, str) else [weights], 1)
    (part,) = template.parts
    observables, plain = part.model.observables, takes_plain(part)
    own = weights if weights is None or isinstance(weights, str) else [weights]
    whole = plain_part(part, [table], own) if plain else None
    if whole is None:  # also to explain what is wrong
        data = dataset_of(table, observables, weights) if plain else with_all_columns(part, table, weights)
        whole = StoredPart.of_datasets(data.names, [data])
    counts = numbers_of_events(sizes, int(whole.sizes[0]))
    stored = whole.cut(counts)
    many = checked_parts(template, [stored]) if plain else None
    if many is None and plain:
        dataset_of(table, observables, weights)  # which explains weights that are no numbers
    return many or read_each(template, [stored.dataset(k) for k in range(len(stored))])


def with_all_columns(part: Likelihood, table: Any, weights: Any) -> Dataset:
    """Return a table as a dataset, with columns that only a formula of its weights may need."""
    if isinstance(table, Dataset) and weights is None:
        return table
    return Dataset(table, part.model.observables if isinstance(table, np.ndarray) else None, weights=weights)


def numbers_of_events(sizes: Any, events: int) -> Integers:
    """Return how many events each dataset of a table has."""
    if np.ndim(sizes) == 0:
        each = whole_number("fit_many: sizes", sizes, 1)
        if events % each:
            raise DataError(
                f"fit_many: datasets of {each} events must make up the table, got {events} events"
            )
        return np.full(events // each, each, np.int64)
    known = np.asarray(sizes)
    if known.ndim != 1 or known.dtype.kind not in "iu" or known.min(initial=0) < 0:
        known = np.array([whole_number("fit_many: sizes", size) for size in sizes])
    counts = known.astype(np.int64)
    if not len(counts):
        raise DataError("fit_many: needs at least one dataset, got none")
    if counts.sum() != events:
        raise DataError(
            f"fit_many: sizes must add up to the {events} events of the table, got {counts.sum()}"
        )
    return counts


# ------------------------------------------------------------------------------------ plain arrays


def read_plain(template: Term, each: Sequence[Any] | Array, weights: Any) -> ManyDatasets | None:
    """Read datasets that are plain arrays, in compiled code; None for others, and where something is or may be wrong."""
    if not all(map(takes_plain, template.parts)):
        return None
    if len(template.parts) == 1:
        rows: list[Any] = [each]
    else:
        by_parts = [by_part(template, data) for data in each]
        if any(own is None for own in by_parts):
            return None
        rows = list(map(list, zip(*by_parts, strict=True)))
    parts = []
    for part, own in zip(template.parts, rows, strict=True):
        stored = plain_part(part, own, weights)
        if stored is None:
            return None
        parts.append(stored)
    return checked_parts(template, parts)


def takes_plain(part: Likelihood) -> bool:
    """Return whether events of a part are columns of numbers, each of which need only be in its range."""
    own = type(part).read is Likelihood.read and type(part).entries_of is Likelihood.entries_of
    return own and part.weight is None and not part.model.region() and not counted_in(part.model)


def plain_part(part: Likelihood, sources: Sequence[Any] | Array, weights: Any) -> StoredPart | None:
    """Return the events of sources that are plain arrays, if they are in range, with weights that are plain arrays as well."""
    observables = part.model.observables
    if isinstance(sources, np.ndarray):
        own = [] if weights is None or isinstance(weights, str) else list(weights)
        plain = None if isinstance(weights, str) else PlainColumns([], own, checked=False)
        columns = columns_of_table(sources, len(observables))
    else:
        plain = plain_columns(sources, observables, weights)
        columns = [] if plain is None else [Pieces.of(own) for own in plain.columns]
    if plain is None or len(columns) < len(observables):
        return None
    weighted = np.array([own is not None for own in plain.weights] or [False] * len(sources))
    if weighted.any() and columns[0] is not None:
        columns.append(Pieces.of(completed(plain.weights, columns[0].sizes)))
    pieces = [own for own in columns if own is not None]
    if len(pieces) < len(columns) or any(not np.array_equal(own.sizes, pieces[0].sizes) for own in pieces):
        return None
    ranges = zip(observables, pieces, strict=False)
    if not (plain.checked or all(own.are_inside(o.low, o.high).all() for o, own in ranges)):
        return None
    names = tuple(o.name for o in observables)
    return StoredPart(names, tuple(pieces[: len(names)]), pieces[-1] if weighted.any() else None, weighted)


def columns_of_table(table: Array, observables: int) -> list[Pieces | None]:
    """Return the columns of an array of shape (datasets, events), or (datasets, events, observables)."""
    if type(table) is not np.ndarray or table.dtype != np.float64:  # it may have a mask
        return []
    if table.ndim == 2 and observables == 1:
        return [Pieces.rows(table)]
    if table.ndim != 3 or table.shape[2] != observables:
        return []
    if observables == 1:
        return [Pieces.rows(table[:, :, 0])]
    return [Pieces.rows(np.ascontiguousarray(table[:, :, k])) for k in range(observables)]


def checked_parts(template: Term, parts: Sequence[StoredPart]) -> ManyDatasets | None:
    """Check what datasets have together; None if something is wrong, or so close to it that its sums must be exact."""
    sizes = sum(part.sizes for part in parts)
    if not (np.all(sizes) or any(part.extended for part in template.parts)):
        return None
    least: list[Dataset] = []  # those whose mean weight may be the least
    for part in parts:
        if part.weights is None:
            least += [part.dataset(int(k)) for k in np.flatnonzero(part.sizes)[:1]]
            continue
        finite, (totals, magnitudes) = part.weights.are_inside(-MAX_DOUBLE, MAX_DOUBLE), part.weights.sums()
        full = part.sizes > 0
        positive = (totals > ROUNDING * magnitudes) & np.isfinite(magnitudes)
        if not (finite & (positive | ~(part.weighted & full))).all():
            return None
        if full.any():
            means = np.where(full, totals, np.inf) / np.maximum(part.sizes, 1)
            least.append(part.dataset(int(np.argmin(means))))
    return ManyDatasets(tuple(parts), least_mean_weight(least, alone=is_alone(template)))
