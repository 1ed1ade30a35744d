"""Types of the fields of records, converters that make them of any input, and frames of pandas; the only file that imports it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, frozen_copy, read_only
from morefit.errors import BackendError
from morefit.text.suggest import suggest
from morefit.validate import name_of

Interval = tuple[float, float]
V = TypeVar("V")


class ByName(Mapping[Any, V], Generic[V]):
    """A read-only mapping by name; a parameter or anything else with a name stands for its name."""

    __slots__ = ("_items",)
    hint: ClassVar[str] = ""  # added to the message of a name that is missing

    def __init__(self, items: dict[str, V]) -> None:
        """Take a mapping by name that has no other owner."""
        self._items = items

    def __getitem__(self, key: Any) -> V:
        name = name_of(key)
        if name not in self._items:
            raise KeyError(f"no {name!r}; {suggest(name, self._items)}{self.hint}")
        return self._items[name]

    def __call__(self, *_: Any) -> NoReturn:
        raise TypeError(
            f"numbers by name are no function, got (); write [name], as in ['{next(iter(self), 'mu')}']"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return what is there in its order, without the names."""
        return np.array(list(self._items.values()), dtype)

    def __contains__(self, key: object) -> bool:
        name = name_of(key)
        return isinstance(name, str) and name in self._items

    def get(self, key: Any, default: Any = None) -> Any:
        name = name_of(key)  # without a suggestion, which takes long
        return self._items.get(name, default) if isinstance(name, str) else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class MinosErrors(ByName[V]):
    """Errors that are there only if they were requested."""

    __slots__ = ()
    hint = "; pass minos=True to mf.fit, or a list of parameters, for errors of MINOS"


NOTHING: ByName[Any] = ByName({})
NO_MINOS: MinosErrors[Any] = MinosErrors({})


def flag(value: object) -> bool:
    """Return a boolean; text such as "false" is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"true or false must be a boolean, got {value!r:.20}")
    return bool(value)


def words(items: Iterable[str]) -> tuple[str, ...]:
    """Return a tuple of text."""
    return tuple(map(str, items))


def texts(items: Mapping[str, str]) -> ByName[str]:
    """Return text by name."""
    return ByName({str(name): str(text) for name, text in items.items()})


def floats(items: Mapping[str, float]) -> ByName[float]:
    """Return numbers by name."""
    return ByName({str(name): float(x) for name, x in items.items()})


def counts(items: Mapping[str, int]) -> ByName[int]:
    """Return whole numbers by name."""
    return ByName({str(name): int(n) for name, n in items.items()})


def pairs(items: Mapping[str, Interval]) -> ByName[Interval]:
    """Return pairs of numbers by name, such as limits."""
    return ByName({str(name): (float(low), float(high)) for name, (low, high) in items.items()})


def minos_errors(items: Mapping[str, Interval]) -> MinosErrors[Interval]:
    """Return errors of MINOS by name."""
    return MinosErrors(dict(pairs(items)))


def regions(items: Mapping[str, Iterable[Interval]]) -> ByName[tuple[Interval, ...]]:
    """Return several pairs of numbers by name, such as ranges."""
    return ByName({str(name): tuple((float(a), float(b)) for a, b in some) for name, some in items.items()})


def arrays(items: Mapping[str, Any]) -> ByName[NDArray[Any]]:
    """Return read-only arrays by name."""
    return ByName({str(name): frozen_copy(array) for name, array in items.items()})


def matrix(rows: Any) -> Array:
    """Return a read-only copy of a matrix."""
    array = np.array(rows, dtype=np.float64)
    return read_only(array.reshape(0, 0) if array.size == 0 else array)


def data_frame(columns: Mapping[str, Any], index: Sequence[Any] | None = None) -> Any:
    """Return a DataFrame with these columns; ``index`` names its rows, None numbers them."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise BackendError("to_pandas: pandas is not installed; pip install pandas") from None
    return pandas.DataFrame(dict(columns), index=None if index is None else pandas.Index(index))
