"""Columns of many sources of one kind, as they are: not copied, and their numbers not checked."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.model.observable import Observable


@dataclass(frozen=True, eq=False)
class PlainColumns:
    """Columns of some observables in many sources: a list for each observable, with what each source has."""

    columns: list[list[Any]]
    weights: list[Any]  # None for a source without; empty if none has any
    checked: bool  # whether all events are known to be in the ranges of the observables


def plain_columns(
    sources: Sequence[Any], observables: tuple[Observable, ...], weights: str | Sequence[Any] | None = None
) -> PlainColumns | None:
    """Return the columns of sources that are all mappings, datasets or arrays of one observable; None for any others.

    Weights are those of datasets, the column of a name, or what is there for each source.
    """
    kinds, names = set(map(type, sources)), [o.name for o in observables]
    try:
        if kinds == {Dataset}:
            return columns_of_datasets(sources, observables, weights)
        if isinstance(weights, str):
            weights = [source[weights] for source in sources] if kinds == {dict} else None
        own = [] if weights is None else list(weights)
        if kinds == {dict}:
            return PlainColumns([[source[name] for source in sources] for name in names], own, False)
    except KeyError:  # a column is missing, which the reader of one source explains
        return None
    return PlainColumns([list(sources)], own, False) if len(names) == 1 else None


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
