"""Freeze records: their arrays are read-only copies, after pickling as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=NDArray[Any])


def read_only(array: A) -> A:
    """Refuse changes to an array from now on."""
    array.flags.writeable = False
    return array


def freeze(record: Any, **convert: Callable[[Any], Any]) -> None:
    """Convert the fields of a record that are named, and make every other array a read-only copy."""
    for one in fields(record):
        content = getattr(record, one.name)
        if one.name in convert:
            object.__setattr__(record, one.name, convert[one.name](content))
        elif isinstance(content, np.ndarray):
            object.__setattr__(record, one.name, read_only(content.copy()))


def rebuilt(record: Any) -> tuple[Any, ...]:
    """Say how to pickle a record, so that its arrays are read-only afterwards as well."""
    return type(record), tuple(getattr(record, one.name) for one in fields(record))
