"""What stands in the leaves of expressions: real numbers of any kind as doubles, names, and tables."""

from __future__ import annotations

import math
import sys
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from morefit.dataclass import dataclass
from morefit.digests import sha256

KINDS = (Real, np.bool_)


def as_double(value: Any) -> float | None:
    """Return a real number as a double, infinite if it is too large for one; None for what is no real number.

    Integers of NumPy are among them: their own arithmetic would wrap around.
    """
    if type(value) is float:  # most are, and the other tests take longer than the making of a node
        return value
    number: Any = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, KINDS) or is_decimal(number):
        return rounded(number)
    return None


def is_decimal(number: Any) -> bool:
    """Return whether a number is a Decimal; there is none before that module is imported."""
    decimal = sys.modules.get("decimal")
    return decimal is not None and isinstance(number, decimal.Decimal)


def rounded(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # of an integer or a fraction
        return math.inf if number > 0 else -math.inf
    except ValueError:  # of a NaN that signals
        return math.nan


@dataclass(frozen=True)
class Symbol:
    """A name inside an expression; parameters and observables are symbols that know more."""

    name: str


@dataclass(frozen=True)
class OwnSymbol(Symbol):
    """A symbol of morefit's own: never equal to a user's, whatever its name."""


@dataclass(frozen=True)
class LoopSymbol(OwnSymbol):
    """What stands for something that a loop computes, so that it depends on parameters and on the event."""


HIDDEN = "hidden"  # what the names of such tables begin with


@dataclass(frozen=True)
class Table(Symbol):
    """Numbers inside an expression, stored as the bytes of doubles."""

    numbers: bytes
    label: str = ""  # a shorter name for texts

    @classmethod
    def of(cls, numbers: np.ndarray[Any, np.dtype[np.float64]]) -> Table:
        """Return a table, named by its contents."""
        data = np.ascontiguousarray(numbers, "<f8").tobytes()
        return cls(f"numbers {sha256(data).hexdigest()[:12]}", data, f"{numbers.size} numbers")

    @property
    def array(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.frombuffer(self.numbers, np.float64)

    @property
    def hidden(self) -> bool:
        """Whether a lookup stays one, so that what is found is a number in no text."""
        return self.name.startswith(HIDDEN)

    @cached_property
    def digest(self) -> str:
        """The hash of the contents."""
        return sha256(self.numbers).hexdigest()

    def renamed(self, name: str) -> Table:
        """Return the same numbers under another name."""
        return Table(name, self.numbers, self.label)
