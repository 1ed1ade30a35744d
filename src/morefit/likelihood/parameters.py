"""The parameters of a likelihood: which float, where they start, and that no two share a name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from morefit.arrays import Array, read_only
from morefit.errors import ModelError
from morefit.expr import Expr
from morefit.model import Parameter


@lru_cache(maxsize=256)
def floating_among(
    parameters: tuple[Parameter, ...], fixed: frozenset[str]
) -> tuple[list[int], tuple[Parameter, ...]]:
    """Return where the floating ones are among some parameters, and these; besides ``fixed`` others are fixed anyway."""
    columns = [k for k, p in enumerate(parameters) if not p.fixed and p.name not in fixed]
    return columns, tuple(parameters[k] for k in columns)


@lru_cache(maxsize=256)
def symbols_of(parameters: tuple[Parameter, ...]) -> tuple[Expr, ...]:
    """Return parameters as expressions."""
    return tuple(p.symbol for p in parameters)


@lru_cache(maxsize=256)
def start_row(parameters: tuple[Parameter, ...]) -> Array:
    """Return where parameters start."""
    return read_only(np.array([p.start for p in parameters], np.float64))


@lru_cache(maxsize=256)
def limits_of(parameters: tuple[Parameter, ...]) -> tuple[Array, Array]:
    """Return the lower and the upper limits of parameters."""
    low, high = (np.array([getattr(p, end) for p in parameters], np.float64) for end in ("low", "high"))
    return read_only(low), read_only(high)


def one_of_each(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Join parameters by name; two different ones of one name are an error that names both."""
    known: dict[str, Parameter] = {}
    for p in parameters:
        if known.setdefault(p.name, p) is not p:
            raise ModelError(
                f"parameter '{p.name}': two different ones share this name, {known[p.name]!r} and {p!r};"
                " rename one or use the same object"
            )
    return tuple(known.values())
