"""A number to be fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from morefit.errors import ModelError
from morefit.expr import Expr, NamedQuantity, scalar
from morefit.model.naming import check_limits, check_name, check_number


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Parameter(NamedQuantity):
    """A number to be fitted: where to start, its limits (None: no limit), whether it is fixed.

    It never changes; fitted values live in results. In formulas it stands for its value.
    """

    start: float
    low: float = -math.inf
    high: float = math.inf
    fixed: bool = False
    label: str = ""  # for tables and plots; the name if empty

    def __new__(
        cls, name: str, start: Any, low: Any = None, high: Any = None, fixed: bool = False, label: str = ""
    ) -> Parameter:
        check_name("parameter", name)
        begin = check_number("parameter", name, "start", start)
        if not math.isfinite(begin):
            raise ModelError(f"parameter '{name}': start must be finite, got {start}")
        ends = check_limits(name, (low, high))
        if not ends[0] <= begin <= ends[1]:
            raise ModelError(f"parameter '{name}': start must lie in [{ends[0]}, {ends[1]}], got {start}")
        if not isinstance(fixed, (bool, np.bool_)):
            raise ModelError(f"parameter '{name}': fixed must be True or False, got {fixed!r}")
        return cls.interned(name, begin, *ends, bool(fixed), label)

    @property
    def expr(self) -> Expr:
        return scalar(self)

    def __repr__(self) -> str:
        limits = [None if math.isinf(end) else end for end in (self.low, self.high)]
        numbers = ", ".join(map(repr, [self.start, *limits * (limits != [None, None])]))
        label = f", label={self.label!r}" * bool(self.label)
        return f"Parameter({self.name!r}, {numbers}{', fixed=True' * self.fixed}{label})"
