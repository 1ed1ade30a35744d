"""The parameters of a likelihood: which float, where they start, that no two share a name, and points as users pass them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, read_only
from morefit.errors import ModelError, OptionError
from morefit.expr import Expr
from morefit.model import Parameter
from morefit.model.parameter import check_blinding
from morefit.validate import by_name


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


def full_points(x: Any, parameters: tuple[Parameter, ...], floating: list[int]) -> tuple[Array, bool]:
    """Complete the floating ones among parameters to all, in shape (sets, parameters); also whether it is one point."""
    if x is None:
        example = ", ".join(f"'{parameters[k].name}': {parameters[k].start:g}" for k in floating)
        raise OptionError(f"likelihood: needs values of its parameters; write nll.value({{{example}}})")
    named = None if type(x) is np.ndarray else by_name(x)
    if named is not None:
        check_blinding(parameters, x)
        points, columns = in_order(named, parameters, floating)
    else:
        columns = floating
        try:
            points = np.asarray(x, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"likelihood: x must be numbers, got {x!r:.60}") from None
    if points.ndim not in (1, 2) or points.shape[-1] != len(columns):
        names = ", ".join(parameters[k].name for k in floating)
        raise ModelError(
            f"likelihood: x must have shape ({len(floating)},) or (sets, {len(floating)}) for {names},"
            f" got {points.shape}"
        )
    full = np.empty((len(points) if points.ndim == 2 else 1, len(parameters)))
    full[:] = start_row(parameters)
    full[:, columns] = points
    return full, points.ndim == 1


def in_order(
    values: Mapping[str, ArrayLike], parameters: Sequence[Parameter], floating: Sequence[int]
) -> tuple[Array, list[int]]:
    """Return values by name and their columns; where one is an array, there are many points.

    Every floating parameter must have one; those of fixed parameters take the place of what they are fixed at.
    """
    columns = {p.name: k for k, p in enumerate(parameters)}
    if missing := [parameters[k].name for k in floating if parameters[k].name not in values]:
        raise ModelError(f"likelihood: x has no value for {', '.join(missing)}")
    if unknown := [n for n in values if n not in columns]:
        raise ModelError(
            f"likelihood: x has {', '.join(map(repr, unknown))}; the parameters are {', '.join(columns)}"
        )
    if not values:
        return np.empty(0), []
    try:
        arrays = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in values.values()))
    except ValueError:
        shapes = ", ".join(f"{n} {np.shape(v)}" for n, v in values.items() if np.ndim(v))
        raise ModelError(f"likelihood: x must have as many values of each parameter, got {shapes}") from None
    return np.stack(arrays, axis=-1), [columns[n] for n in values]
