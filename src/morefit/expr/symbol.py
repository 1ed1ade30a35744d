"""Symbols: the names and tables inside expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Symbol:
    """A name inside an expression; parameters and observables are symbols that know more."""

    name: str


@dataclass(frozen=True)
class OwnSymbol(Symbol):
    """A symbol of morefit's own: never equal to a user's, whatever its name."""


@dataclass(frozen=True)
class Table(Symbol):
    """Numbers inside an expression, stored as the bytes of doubles."""

    numbers: bytes
    label: str = ""  # a shorter name for texts

    @property
    def array(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.frombuffer(self.numbers, np.float64)
