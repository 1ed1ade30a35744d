"""Rows of the table that every density is tested by: one file per family, as in morefit.model.shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

import mpmath as mp
import numpy as np

import morefit as mf
from tolerances import SHAPE

EXACT_DIGITS = 60
QUADRATURE_DIGITS = 34


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
    scipy: Callable[..., object] | None = None
    digits: int = EXACT_DIGITS
    integrated: bool = False  # whether the reference is an integral itself
    lengths: tuple[str, ...] | None = (
        None  # parameters in units of x, if the shape does not depend on the unit
    )
    tolerance: float = SHAPE  # of log P and its derivatives
    part: bool = True  # whether the reference works for any part of the range
    fit: bool = True  # whether the first point is one at which all parameters can be fitted
    whole: bool = False  # whether events are whole numbers
    smooth: bool = True  # whether second derivatives at events tell the errors of a fit


def by_quadrature(
    log_density: Callable[..., object], breaks: Callable[..., tuple[object, ...]] = lambda *_: ()
) -> Callable[..., object]:
    """Return a reference that integrates exp(log_density(x, *parameters)) by mpmath, in pieces between ``breaks(*parameters)``."""

    def judge(x, low, high, *values):
        inside = sorted(mp.mpf(b) for b in breaks(*values) if low < b < high)
        area = mp.quad(lambda u: mp.exp(log_density(u, *values)), [low, *inside, high])
        return log_density(x, *values) - mp.log(area)

    return judge


def quadrature_row(
    make, log_density, points, breaks=lambda *_: (), digits=QUADRATURE_DIGITS, **options
) -> Row:
    """Return a row whose reference is a density that mpmath integrates."""
    return Row(make, by_quadrature(log_density, breaks), points, digits=digits, integrated=True, **options)


def around(mu, *widths):
    """Return points at which a quadrature of a peak should be cut."""
    return (mu, *(mu + k * w for w in widths for k in (-8, -3, 3, 8)))


def truncated(distribution: Callable[..., object]) -> Callable[..., object]:
    """Return the density of one of scipy's distributions on a range; None where scipy loses its digits."""

    def density(x, low, high, *values):
        frozen = distribution(*values)
        if frozen is None:
            return None
        below = frozen.cdf(high) - frozen.cdf(low)
        inside = below if frozen.cdf(low) < 0.5 else frozen.sf(low) - frozen.sf(high)
        with np.errstate(divide="ignore"):  # some are infinite at zero
            return frozen.pdf(x) / inside if inside > 1e-3 else None

    return density


def families() -> dict[str, dict[str, Row]]:
    """Return the rows of each file of this folder, by the name of its module and of the density."""
    names = [f"{__name__}.{found.name}" for found in iter_modules(__path__)]
    return {name: import_module(name).ROWS for name in names}


def all_rows() -> dict[str, Row]:
    """Return the rows of all files of this folder, by the name of the density."""
    return {name: row for rows in families().values() for name, row in rows.items()}
