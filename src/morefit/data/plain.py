"""Columns of many sources of one kind, as they are: not copied, and their numbers not checked."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from morefit.arrays import Integers
from morefit.data.dataset import Dataset
from morefit.data.sources import PLAIN, AwkwardArray
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.expr import Quantity
from morefit.model.observable import Observable
from morefit.validate import follows


@dataclass(frozen=True, eq=False)
class PlainColumns:
    """Columns of some observables in many sources: a list for each observable, with what each source has."""

    columns: list[list[Any]]
    weights: list[Any]  # None for a source without; empty if none has any
    checked: bool  # whether all events are known to be in the ranges of the observables


def plain_columns(
    sources: Sequence[Any], observables: tuple[Observable, ...], weights: str | Sequence[Any] | None
) -> PlainColumns | None:
    """Return the columns of sources that are all mappings, DataFrames, datasets or arrays of one observable; None for any others.

    Weights are those of datasets, the column of a name, or what is there for each source.
    """
    kinds, names = set(map(type, sources)), [o.name for o in observables]
    named = kinds == {dict} or are_pandas(kinds, "DataFrame")
    try:
        if kinds == {Dataset}:
            return columns_of_datasets(sources, observables, weights)
        if isinstance(weights, str):
            weights = named_columns(sources, weights) if named else None
        own = [] if weights is None else list(weights)
        if named:
            return PlainColumns([named_columns(sources, name) for name in names], own, False)
    except KeyError:  # a column is missing, which the reader of one source explains
        return None
    return PlainColumns([list(sources)], own, False) if len(names) == 1 else None


def are_pandas(kinds: set[type], name: str) -> bool:
    """Return whether types are one of pandas, known by its name, since that need not be installed."""
    return all(kind.__name__ == name and kind.__module__.partition(".")[0] == "pandas" for kind in kinds)


def named_columns(sources: Sequence[Any], name: str) -> list[Any]:
    """Return the column of a name in each source, as the array that a Series has."""
    columns = [source[name] for source in sources]
    series = are_pandas(set(map(type, columns)), "Series")
    return [column.to_numpy() for column in columns] if series else columns


def as_table(datasets: Any, weights: Any) -> tuple[Any, Integers, Any] | None:
    """Return groups of pandas, or lists of awkward, as one table, with the numbers of events of each, and weights; None for others."""
    if type(datasets) in PLAIN:
        return None
    named = weights is None or isinstance(weights, str | Quantity)
    if are_pandas({type(datasets)}, "DataFrameGroupBy"):
        if not named:
            raise DataError(
                f"fit_many: weights of groups must be the name of a column, or a formula of observables, got {weights!r:.60}"
            )
        return *table_of_groups(datasets), weights
    if not follows(datasets, AwkwardArray) or datasets.layout.purelist_depth != 2:
        return None
    if not (named or follows(weights, AwkwardArray)):
        return None
    import awkward

    sizes = awkward.num(datasets, axis=1).to_numpy()
    if type(sizes) is not np.ndarray:  # lists are missing
        return None
    table = awkward.flatten(datasets, axis=1)
    if named:
        return table, sizes.astype(np.int64), weights
    if not np.array_equal(awkward.num(weights, axis=1), sizes):
        raise DataError("fit_many: weights must be lists as long as those of the events, got others")
    return table, sizes.astype(np.int64), awkward.flatten(weights, axis=1)


def table_of_groups(groups: Any) -> tuple[Any, Integers]:
    """Return the rows of a DataFrame that pandas has grouped, one group after the other, and how many each has."""
    numbers = groups.ngroup().to_numpy()
    rows = np.flatnonzero(numbers >= 0)  # others are in no group
    own = numbers[rows].astype(np.int64)
    order = rows[np.argsort(own, kind="stable")]
    return groups.obj.iloc[order], np.bincount(own, minlength=groups.ngroups).astype(np.int64)


def columns_of_datasets(
    datasets: Sequence[Dataset], observables: tuple[Observable, ...], weights: str | Sequence[Any] | None
) -> PlainColumns | None:
    """Return the columns of datasets, unless one of them has labels."""
    if any(data._labels for data in datasets):
        return None
    columns = [[data._columns[o.name] for data in datasets] for o in observables]
    own: list[Any] = [data._weights for data in datasets]
    if isinstance(weights, str):
        own = [data._columns[weights] for data in datasets]
    elif weights is not None:
        own = [known if one is None else one for one, known in zip(weights, own, strict=True)]
    checked = all(
        data._checked is observables
        or (len(data._checked) == len(observables) and all(map(is_, data._checked, observables)))
        for data in datasets
    )
    return PlainColumns(columns, own if any(one is not None for one in own) else [], checked)
