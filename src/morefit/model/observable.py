"""A measured quantity, and how quantities may be named and limited."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import ModelError, MorefitError
from morefit.expr import Expr, NamedQuantity, Operation, Symbol, as_double, column, symbols
from morefit.text.arguments import in_sentences


def check_name(kind: str, name: object) -> None:
    """Refuse what is no word; spaces are reserved for the library's own names."""
    if not isinstance(name, str) or not name or not name.isprintable() or " " in name:
        raise ModelError(f"{kind} {name!r}: name must be a word without spaces and control signs")


def check_number(
    kind: str, name: str, what: str, value: Any, error: type[MorefitError] = ModelError, *, advice: str = ""
) -> float:
    """Return a real number of any kind as a double; a truth value is none."""
    number = None if isinstance(value, (bool, np.bool_)) else as_double(value)
    if number is None:
        raise error(f"{kind} '{name}': {what} must be a number, got {value!r}{advice}")
    return number


def check_limits(name: str, limits: Any, error: type[MorefitError] = ModelError) -> tuple[float, float]:
    """Return the limits of a parameter as doubles; None stands for no limit."""
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise error(f"parameter '{name}': limits must be (low, high), got {limits!r}") from None
    ends = (
        -math.inf if low is None else check_number("parameter", name, "low", low, error),
        math.inf if high is None else check_number("parameter", name, "high", high, error),
    )
    if not ends[0] < ends[1]:
        raise error(f"parameter '{name}': low must be below high, got {low} and {high}")
    return ends


def by_name(op: Operation, formula: Expr) -> list[Symbol]:
    """List the symbols of a formula, whose terms have no order, by their names; a2 comes before a10."""

    def key(symbol: Symbol) -> list[tuple[int, str]]:
        return [
            (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", symbol.name)
        ]

    return sorted(symbols(op, formula), key=key)


Box = Mapping[str, tuple[float, float]]  # ranges of observables by name; the others have their whole range


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Observable(NamedQuantity):
    """A measured quantity and the range it is fitted in; in formulas it stands for its value in each event.

    Plots take its unit from the brackets at the end of its label; ``unit="GeV"`` appends these to the label, or to the name.

    Example: ``mf.Observable("m", 5.0, 7.0, label=r"$m$ [GeV]")``
    """

    low: float
    high: float
    label: str = ""  # for axes; the name if empty

    @in_sentences
    def __new__(cls, name: str, low: Any, high: Any, label: str = "", *, unit: str = "") -> Observable:
        check_name("observable", name)
        ends = [
            check_number(
                "observable", name, what, end, advice="; the order is name, low, high" * isinstance(end, str)
            )
            for what, end in (("low", low), ("high", high))
        ]
        if not all(map(math.isfinite, ends)):
            raise ModelError(f"observable '{name}': range must be finite, got [{low}, {high}]")
        if not ends[0] < ends[1]:
            raise ModelError(f"observable '{name}': low must be below high, got {low} and {high}")
        return cls.interned(name, *ends, with_unit(name, label, unit) if unit != "" else label)

    @property
    def expr(self) -> Expr:
        return column(self)

    def __repr__(self) -> str:
        label = f", label={self.label!r}" * bool(self.label)
        return f"Observable({self.name!r}, {self.low!r}, {self.high!r}{label})"

    def within(self, box: Box) -> Observable:
        """Return the observable on its range in a box."""
        low, high = box.get(self.name, (self.low, self.high))
        return Observable(self.name, low, high, self.label)


def with_unit(name: str, label: str, unit: object) -> str:
    """Return a label, the name if it is empty, and the unit in brackets behind it."""
    if not isinstance(unit, str) or not unit.strip() or set(unit) & set("[]"):
        raise ModelError(f"observable '{name}': unit must be text without brackets, got {unit!r}")
    if label.rstrip().endswith("]"):
        raise ModelError(
            f"observable '{name}': the label {label!r} has a unit already, got unit {unit!r}; leave one out"
        )
    return f"{label or name} [{unit.strip()}]"


# as users write them: (low, high), or a list of such pairs
Ranges = Mapping[str, Any] | Mapping[Observable, Any]
