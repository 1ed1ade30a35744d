"""A number to be fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from morefit.errors import ModelError
from morefit.expr import Expr, Quantity, Symbol, scalar
from morefit.model.observable import check_name


@dataclass(frozen=True)
class Parameter(Symbol, Quantity):
    """A number to be fitted: where to start, how far it may go, whether it is held fixed.

    It never changes; fitted values live in results. In formulas it stands for its value.
    """

    start: float
    low: float = -math.inf
    high: float = math.inf
    fixed: bool = False
    label: str = ""  # for tables and plots; the name if empty

    def __post_init__(self) -> None:
        check_name("parameter", self.name)
        if not math.isfinite(self.start):
            raise ModelError(f"parameter '{self.name}': start must be finite, got {self.start}")
        if math.isnan(self.low) or math.isnan(self.high) or not self.low < self.high:
            raise ModelError(
                f"parameter '{self.name}': low must be below high, got {self.low} and {self.high}"
            )
        if not self.low <= self.start <= self.high:
            raise ModelError(
                f"parameter '{self.name}': start must lie in [{self.low}, {self.high}], got {self.start}"
            )

    @property
    def expr(self) -> Expr:
        return scalar(self)
