"""Argument validation that several packages share: names, numbers, whole numbers, levels, numbers by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.errors import DataError, ModelError, MorefitError, OptionError

OF_PROTOCOLS = {"__init__", "__subclasshook__"}  # which Python adds to each
MAX_INTEGER = 10**308  # below it, whole numbers are finite doubles


def name_of(thing: Any) -> Any:
    """Return the name of a parameter or an observable; text is a name already, and other things are returned as they are."""
    try:
        return thing if isinstance(thing, str) else thing.name
    except (AttributeError, AssertionError):  # an expression has a name only if it is a single symbol
        return thing


def follows(thing: object, protocol: Any) -> bool:
    """Return whether a thing has all members of a protocol; not where a table has columns of their names, which it shows as attributes.

    What its type has is looked up once: ``isinstance`` takes as long as a part of a fit.
    """
    kind: Any = type(thing)
    missing = missing_members(kind, protocol)
    return not missing or missing <= getattr(thing, "__dict__", {}).keys()


@lru_cache(maxsize=512)
def missing_members(kind: Any, protocol: Any) -> frozenset[str]:
    """Return the members of a protocol that a type does not have."""
    own = {name: member for base in protocol.__mro__[:-1] for name, member in vars(base).items()}
    names = {name for name, member in own.items() if isinstance(member, FunctionType | property)}
    return frozenset(name for name in names - OF_PROTOCOLS if not hasattr(kind, name))


def as_number(value: Any) -> float | None:
    """Return a real number as a float, None for anything else, such as text and booleans."""
    if type(value) is float:
        return value
    if isinstance(value, int) and not isinstance(value, bool):  # of any size
        return float(value) if abs(value) < MAX_INTEGER else inf
    if isinstance(value, list | tuple):  # which numpy may refuse
        return None
    try:
        array = np.asarray(value, object) if isinstance(value, str | bytes | bool) else np.asarray(value)
    except TypeError:  # a table, of which numpy makes no array
        return None
    if array.ndim or array.dtype.kind not in "iuf":
        return None
    return float(array)


def finite_number(what: str, value: Any, error: type[MorefitError] = OptionError) -> float:
    """Return a finite number."""
    number = as_number(value)
    if number is None or not isfinite(number):
        raise error(f"{what} must be a finite number, got {value!r}")
    return number


def whole_number(what: str, value: Any, minimum: int = 0, error: type[MorefitError] = OptionError) -> int:
    """Return a whole number of any type; 1e5 is one too."""
    number = as_number(value)
    if number is None or not number.is_integer():
        raise error(f"{what} must be a whole number, got {value!r}")
    if number < minimum:
        raise error(f"{what} must be at least {minimum}, got {int(number)}")
    return int(value)


def check_level(what: str, level: Any) -> float:
    """Return a confidence level."""
    number = as_number(level)
    if number is None or not 0 < number < 1:
        percent = (
            f"; write {number / 100:g} for {number:g} %" if number is not None and 50 <= number < 100 else ""
        )
        raise OptionError(f"{what}: level must lie between 0 and 1, got {level!r}{percent}")
    return number


def by_name(values: Any) -> dict[Any, Any] | None:
    """Return a mapping, a labelled series, or the values of the result of a fit, by the names of parameters; None if it is neither."""
    source = values if isinstance(values, Mapping) else labelled(values) or getattr(values, "values", None)
    if not isinstance(source, Mapping):
        return None
    named = {name_of(key): value for key, value in source.items()}
    if len(named) < len(source):
        names = [name_of(key) for key in source]
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"parameter '{twice}': is listed twice, by name and as a parameter; leave one out")
    return named


def labelled(values: Any) -> dict[str, Any] | None:
    """Return a series of pandas by its labels, such as a column of ``result.to_pandas()``; None if it has no names."""
    if (
        isinstance(values, np.ndarray | list | tuple)
        or not hasattr(values, "to_dict")
        or np.ndim(values) != 1
    ):
        return None
    by_label: dict[str, Any] = values.to_dict()
    if len(by_label) < len(values) or not all(isinstance(label, str) for label in by_label):
        return None
    return by_label


def numbers_by_name(what: str, values: Any) -> dict[str, float]:
    """Return numbers by name; None has none of them."""
    if values is None:
        return {}
    named = by_name(values)
    if named is None:
        raise ModelError(f"{what} must be numbers by name, as in {{'mu': 1.0}}, got {values!r}")
    if wrong := [name for name in named if not isinstance(name, str)]:
        raise ModelError(f"{what} must be numbers by name, as in {{'mu': 1.0}}, got the name {wrong[0]!r}")
    return {
        name: finite_number(f"parameter '{name}': {what}", value, ModelError) for name, value in named.items()
    }


def number_list(what: str, values: Any) -> NDArray[np.float64]:
    """Return numbers in ascending order, each once."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.size and array.dtype.kind not in "iuf":
        raise OptionError(f"{what} must be a list of numbers, got {values!r}")
    return np.unique(array.astype(np.float64))


def single_names(names: Iterable[Any], wanted: Sequence[Any] | None) -> list[Any]:
    """Return the names that one column has; refuse those of several, if they are wanted."""
    counts = Counter(list(names))  # a mapping would be taken for counts
    for name, count in counts.items():
        if count > 1 and (wanted is None or name in wanted):
            raise DataError(f"{count} columns are named '{name}'; rename or drop all but one")
    return [name for name, count in counts.items() if count == 1]
