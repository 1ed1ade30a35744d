"""Lists, mappings and arrays of a model in use, which refuse changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import numpy as np

from morefit.arrays import frozen_copy
from morefit.errors import ModelError

CHECKED = "checked"
FACTS = ("its choices", "its counts", "its derived quantities", "its functions of python")
# attributes of a density that it computed itself
CACHED = frozenset({"observables", "parameters", "summed", CHECKED, *FACTS})
Model = TypeVar("Model")
Fact = TypeVar("Fact")


def once_per_model(name: str) -> Callable[[Callable[[Model], Fact]], Callable[[Model], Fact]]:
    """Return a decorator that stores what a function returns for a model with the model, under one of ``FACTS``."""
    assert name in FACTS

    def decorate(function: Callable[[Model], Fact]) -> Callable[[Model], Fact]:
        @wraps(function)
        def known(model: Model) -> Fact:
            facts: dict[str, Any] = vars(model)
            if name not in facts:
                facts[name] = function(model)
            fact: Fact = facts[name]
            return fact

        return known

    return decorate


def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise ModelError("model: its lists cannot be changed once it has been used; make a new one")


class FrozenList(list[Any]):
    """A list of a model in use, which refuses changes."""

    append = extend = insert = remove = pop = clear = sort = reverse = refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A mapping of a model in use, which refuses changes."""

    update = setdefault = pop = popitem = clear = refuse
    __setitem__ = __delitem__ = __ior__ = refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def frozen_content(value: Any) -> Any:
    """Return a copy of lists, mappings, sets and arrays that refuses changes; anything else as it is."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts = [frozen_content(one) for one in value]
        return FrozenList(parts) if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return FrozenDict({key: frozen_content(one) for key, one in value.items()})
    if isinstance(value, np.ndarray):
        return frozen_copy(value)
    return frozenset(value) if isinstance(value, set) else value


def freeze_attributes(pdf: object) -> None:
    """Make the lists, mappings and arrays of a density its own, and refuse changes to them; it is in use now."""
    for name, value in vars(pdf).items():
        if name not in CACHED and not name.startswith("_"):
            vars(pdf)[name] = frozen_content(value)
