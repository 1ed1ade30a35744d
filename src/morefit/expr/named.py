"""Named quantities: the symbols that stand in formulas, such as parameters and observables."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self
from weakref import WeakValueDictionary

from morefit.expr.node import Quantity
from morefit.expr.symbol import Symbol


class NamedQuantity(Quantity, Symbol):
    """A symbol that stands in formulas. Equal ones are the same object, since == makes a condition."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Do nothing: all is done by ``__new__``."""

    @classmethod
    def interned(cls, *values: object) -> Self:
        """Return the one object with these fields, making it if needed."""
        key = (cls, *values)
        known: Self | None = _named.get(key)
        if known is None:
            new = object.__new__(cls)
            for field, value in zip(fields(cls), values, strict=True):
                object.__setattr__(new, field.name, value)
            known = _named.setdefault(key, new)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


_named: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
