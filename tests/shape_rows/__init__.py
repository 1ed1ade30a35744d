"""Rows of the table that every density is tested by: one file per family, as in morefit.model.shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

import morefit as mf


@dataclass(frozen=True)
class Point:
    """A range, parameter values and where to look; ``scale`` is how large the terms of log P are in these units."""

    label: str
    low: float
    high: float
    values: dict[str, float]
    at: float
    units: tuple[float, ...]  # a natural step of each parameter
    scale: float = 1.0
    second: bool = True  # whether second derivatives are promised
    peaks: tuple[float, ...] = ()  # where an integrator should look


@dataclass(frozen=True)
class Row:
    """How to make a density, how to judge it, and where."""

    make: Callable[..., mf.Pdf]
    judge: Callable[..., object]
    points: list[Point]
    scipy: Callable[..., object] = field(default=lambda *_: None)


def all_rows() -> dict[str, Row]:
    """Return the rows of all files of this folder, by the name of the density."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    return {name: row for module in modules for name, row in module.ROWS.items()}
