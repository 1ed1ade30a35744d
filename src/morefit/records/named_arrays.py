"""Arrays of which some axes are parameters: ``covariance["mu", "sigma"]`` and ``values[mu]`` take the place of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from morefit.arrays import Array, Frozen
from morefit.errors import ModelError
from morefit.text.suggest import suggest
from morefit.validate import name_of


class ArrayByName(np.ndarray[Any, np.dtype[np.float64]]):
    """An array that is also indexed by parameters or their names along some axes; what is computed with it is a plain one.

    A single name, or a list of them, is of the first of these axes: a column of a table, a row of a matrix, which is
    indexed by the other names.
    """

    names: tuple[str, ...]
    first: int  # of the axes that are parameters,
    count: int  # and how many they are; none where names were lost

    def __array_finalize__(self, source: Any) -> None:
        self.names, self.first, self.count = (), 0, 0

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        plain = self.view(np.ndarray)
        if not self.count:
            return plain[key]
        part = plain[self._places(key)]
        row = self.count == 2 and not isinstance(key, list | tuple) and is_named(key)
        return by_names(part, self.names, 1) if row else part

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce__(self) -> tuple[Any, ...]:
        return by_names, (np.array(self), self.names, self.count, self.first)

    def __copy__(self) -> ArrayByName:
        return by_names(np.array(self), self.names, self.count, self.first)

    def __deepcopy__(self, memo: Any) -> ArrayByName:
        return self.__copy__()

    def _places(self, key: Any) -> Any:
        """Return an index of numbers."""
        several = isinstance(key, tuple)
        keys = list(key) if several else [key]
        if not any(map(is_named, keys)):
            return key
        if not several:
            return (*(slice(None),) * self.first, self._place(key))
        if any(one is Ellipsis for one in keys):
            k = next(k for k, one in enumerate(keys) if one is Ellipsis)
            keys[k : k + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        known = range(self.first, self.first + self.count)
        if any(is_named(one) and k not in known for k, one in enumerate(keys)):
            what = "values[mu]" if self.count == 1 else "covariance[mu, sigma]"
            raise ModelError(
                f"array of shape {self.shape}: takes names at {' and '.join(f'place {k}' for k in known)},"
                f" got {key!r:.60}; write {what}"
            )
        places = [self._place(one) if is_named(one) else one for one in keys]
        lists = [k for k, one in enumerate(places) if isinstance(one, list)]
        if len(lists) > 1 and len(lists) == len(places):
            return np.ix_(*places)  # a part of the matrix, not a list of elements
        return tuple(places)

    def _place(self, key: Any) -> int | list[int]:
        if isinstance(key, list):
            return [self.names.index(self._known(one)) for one in key]
        return self.names.index(self._known(key))

    def _known(self, key: Any) -> str:
        name = name_of(key)
        if name not in self.names:
            raise ModelError(f"parameter {name!r}: not fitted; {suggest(name, self.names)}")
        return str(name)


def is_named(key: Any) -> bool:
    """Return whether an index is a parameter, a name, or a list of these."""
    if isinstance(key, list):
        return bool(key) and all(map(is_named, key))
    return isinstance(name_of(key), str)


def by_names(array: Array, names: Sequence[str], count: int = 1, first: int | None = None) -> ArrayByName:
    """Return a view of an array of which some axes are parameters of these names: from ``first`` on, or the last ones."""
    view: ArrayByName = array.view(ArrayByName)
    view.names, view.count = tuple(names), count
    view.first = array.ndim - count if first is None else first
    return view


class FrozenByName(Frozen):
    """A record with arrays by parameters: for each the field that has their names, how many axes they are, and the first."""

    named: ClassVar[Mapping[str, tuple[str, int] | tuple[str, int, int]]] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (names, *axes) in self.named.items():
            object.__setattr__(self, name, by_names(getattr(self, name), getattr(self, names), *axes))
