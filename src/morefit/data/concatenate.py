"""The events of several datasets in one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morefit.data.dataset import Dataset, build
from morefit.data.labels import Category, common_labels
from morefit.errors import DataError


def concatenated(parts: Sequence[Dataset]) -> Dataset:
    """Return the events of datasets with the same columns, one dataset after the other."""
    check_columns(parts)
    labels = common_labels([part.labels for part in parts])
    columns = {
        name: np.concatenate(
            [
                Category(name, labels[name]).encode(p._labelled(name)) if name in labels else p[name]
                for p in parts
            ]
        )
        for name in parts[0].names
    }
    if not any(part.weighted for part in parts):
        return build(columns, None, None, labels)
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in parts]
    return build(columns, np.concatenate(weights), None, labels)


def check_columns(parts: Sequence[object]) -> None:
    """Refuse to concatenate what are not datasets with the same columns."""
    if not parts:
        raise DataError("dataset: needs at least one dataset to concatenate, got none")
    for part in parts:
        if not isinstance(part, Dataset):
            raise DataError(f"dataset: concatenates datasets, got one of type {type(part).__name__}")
    names = [part.names for part in parts if isinstance(part, Dataset)]
    if other := [some for some in names if set(some) != set(names[0])]:
        first, second = (", ".join(map(repr, some)) for some in (names[0], other[0]))
        raise DataError(
            f"dataset: to concatenate datasets their columns must agree, got {first} and {second}"
        )
