"""Types of arrays, and records whose arrays are read-only and their own, after pickling as well."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from ctypes import c_size_t
from dataclasses import MISSING, fields
from functools import cache, reduce
from math import isfinite
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
A = TypeVar("A", bound=NDArray[Any])
HEADER = object.__basicsize__  # bytes of any object before its own fields


def read_only(array: A) -> A:
    """Refuse changes to an array from now on."""
    array.flags.writeable = False
    return array


def address(array: NDArray[Any]) -> int:
    """Return where the numbers of an array begin: the first field of its object, on which every extension of NumPy relies.

    ``array.ctypes.data`` takes four to eight times as long, and a fit needs several.
    """
    return c_size_t.from_address(id(array) + HEADER).value


def frozen_copy(items: Any, kind: type[np.generic] | None = None) -> NDArray[Any]:
    """Return a read-only copy of one kind, or of whatever kind it is.

    An array that owns its numbers and is read-only is not shared with the caller: it is not copied.
    """
    owned = type(items) is np.ndarray and items.flags.owndata and not items.flags.writeable
    if owned and (kind is None or items.dtype == kind):
        return items  # type: ignore[no-any-return]
    return read_only(np.array(items, kind))


def all_finite(array: Array) -> bool:
    """Return whether all numbers are finite; of few that takes a third of the time of asking each."""
    # the sum of squares is finite, unless some are not or are very large
    return isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def row_sums(table: Integers) -> Integers:
    """Add up the numbers of each row, or return those of a single column."""
    return along_rows(np.add, table)


def row_maxima(table: Integers) -> Integers:
    """Return the largest number of each row, or those of a single column."""
    return along_rows(np.maximum, table)


def along_rows(operation: np.ufunc, table: Integers) -> Integers:
    """Join the numbers of each row column by column; numpy's own way takes ten times as long for short rows."""
    columns = table.reshape(len(table), -1).T
    return np.asarray(reduce(operation, columns[1:], columns[0]), np.int64)


def bin_edges(axis: Any) -> Array | None:
    """Return the edges of an axis of a histogram of the UHI protocol, or None if it has categories.

    Bins of whole numbers that follow one another reach from halfway below a number to halfway above.
    """
    bins = [axis[k] for k in range(len(axis))]
    if axis.traits.discrete and bins and getattr(axis.traits, "ordered", True):
        whole = all(isinstance(n, numbers.Integral) and n == bins[0] + k for k, n in enumerate(bins))
        return np.arange(len(bins) + 1, dtype=np.float64) + (int(bins[0]) - 0.5) if whole else None
    if axis.traits.discrete or not bins:
        return None
    return np.array([bins[0][0], *(high for _, high in bins)], np.float64)


class Frozen:
    """A record, a dataclass, whose arrays are read-only and its own, after pickling as well."""

    converted: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}  # what fields are made with, by their names

    @classmethod
    def converted_from(cls, **content: Any) -> Self:
        """Return a record of fields that need no conversion, as they are; those left out have their defaults."""
        kind: Any = cls
        record = object.__new__(cls)
        vars(record).update(defaults_of(kind))
        vars(record).update(content)
        return record

    def updated(self, **content: Any) -> Self:
        """Return the record with other fields, which need no conversion."""
        kind: Any = type(self)
        own = {name: getattr(self, name) for name in field_names(kind)}
        return self.converted_from(**own | content)

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name in field_names(kind):
            content = getattr(self, name)
            if name in self.converted:
                object.__setattr__(self, name, self.converted[name](content))
            elif isinstance(content, np.ndarray):
                object.__setattr__(self, name, frozen_copy(content))

    def __repr__(self) -> str:
        """Return the text of a record that has one; else all fields, of arrays the number of their elements."""
        kind: Any = type(self)
        if kind.__str__ is not object.__str__:
            return str(self)
        parts = ", ".join(f"{name}={in_short(getattr(self, name))}" for name in field_names(kind))
        return f"{type(self).__name__}({parts})"

    def __reduce__(self) -> tuple[Any, ...]:
        kind: Any = type(self)
        return kind, tuple(getattr(self, name) for name in field_names(kind))


def in_short(content: object) -> str:
    """Return the text of a field, with the shapes of arrays in the place of their numbers."""
    if isinstance(content, np.ndarray):
        return f"<{' x '.join(map(str, content.shape))} numbers>"
    if isinstance(content, Mapping):
        return f"{{{', '.join(f'{key!r}: {in_short(one)}' for key, one in content.items())}}}"
    return repr(content)


@cache
def field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a kind of record."""
    return tuple(one.name for one in fields(kind))


@cache
def defaults_of(kind: Any) -> dict[str, Any]:
    """Return the defaults of the fields of a kind of record, converted; what factories make is shared, so it must not change."""
    made = {one.name: one.default_factory() for one in fields(kind) if one.default_factory is not MISSING}
    made |= {one.name: one.default for one in fields(kind) if one.default is not MISSING}
    return {
        name: kind.converted[name](value) if name in kind.converted else value for name, value in made.items()
    }
