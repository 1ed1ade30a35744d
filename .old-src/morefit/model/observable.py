"""A measured quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.errors import ModelError
from morefit.expr import Expr, Quantity, Symbol, column


@dataclass(frozen=True)
class Observable(Symbol, Quantity):
    """A measured quantity and the range it is fitted in; in formulas it stands for its value in each event."""

    low: float
    high: float
    label: str = ""  # for axes; the name if empty

    def __post_init__(self) -> None:
        check_name("observable", self.name)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ModelError(f"observable '{self.name}': range must be finite, got [{self.low}, {self.high}]")
        if not self.low < self.high:
            raise ModelError(
                f"observable '{self.name}': low must be below high, got {self.low} and {self.high}"
            )

    @property
    def expr(self) -> Expr:
        return column(self)


def check_name(kind: str, name: str) -> None:
    """A name is any word; spaces are kept for the library's own names."""
    if not isinstance(name, str) or not name or any(c.isspace() for c in name):
        raise ModelError(f"{kind} {name!r}: name must be a word without spaces")
