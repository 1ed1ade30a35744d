"""Types of arrays, and records whose arrays are read-only and their own, after pickling as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
A = TypeVar("A", bound=NDArray[Any])


def read_only(array: A) -> A:
    """Refuse changes to an array from now on."""
    array.flags.writeable = False
    return array


def frozen_copy(items: Any, kind: type[np.generic] | None = None) -> NDArray[Any]:
    """Return a read-only copy of one kind, or of whatever kind it is.

    An array that owns its numbers and is read-only is not shared with the caller: it is not copied.
    """
    owned = type(items) is np.ndarray and items.flags.owndata and not items.flags.writeable
    if owned and (kind is None or items.dtype == kind):
        return items  # type: ignore[no-any-return]
    return read_only(np.array(items, kind))


def bin_edges(axis: Any) -> Array | None:
    """Return the edges of an axis of a histogram of the UHI protocol, or None if it has categories."""
    bins = [axis[k] for k in range(len(axis))]
    if axis.traits.discrete or not bins:
        return None
    return np.array([bins[0][0], *(high for _, high in bins)], np.float64)


def freeze(record: Any, **convert: Callable[[Any], Any]) -> None:
    """Convert the fields of a record that are named, and make every other array read-only and its own."""
    for name in field_names(record.__class__):
        content = getattr(record, name)
        if name in convert:
            object.__setattr__(record, name, convert[name](content))
        elif isinstance(content, np.ndarray):
            object.__setattr__(record, name, frozen_copy(content))


@cache
def field_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of a kind of record."""
    return tuple(one.name for one in fields(kind))


def rebuilt(record: Any) -> tuple[Any, ...]:
    """Return how to pickle a record, so that its arrays are read-only afterwards as well."""
    return type(record), tuple(getattr(record, name) for name in field_names(record.__class__))
