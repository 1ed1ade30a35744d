"""Symbols: the names and tables inside expressions."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from morefit.dataclass import dataclass


@dataclass(frozen=True)
class Symbol:
    """A name inside an expression; parameters and observables are symbols that know more."""

    name: str


@dataclass(frozen=True)
class OwnSymbol(Symbol):
    """A symbol of morefit's own: never equal to a user's, whatever its name."""


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
