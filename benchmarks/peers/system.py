"""What a worker says about a system: how it makes toys, how many at once, and how it fits a given dataset."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from peers.problem import Problem

CHECK_EDM = 1e-8  # where fits of the common dataset stop: a ten-thousandth of an error from the minimum
Columns = dict[str, Any]  # numpy arrays by the observable's name


@dataclass(frozen=True)
class Task:
    """What the runner asks of a worker's process."""

    problem: Problem
    model: str
    variant: str
    threads: int
    strategy: int  # Minuit's
    edm: float  # the estimated distance to the minimum where fits stop


@dataclass(frozen=True)
class Found:
    """What one fit found, in the problem's order of parameters."""

    values: Sequence[float]
    errors: Sequence[float]
    valid: bool


@dataclass(frozen=True)
class Toys:
    """Toys drawn and fitted together, and how much of the time was spent on drawing, if that can be told."""

    found: Sequence[Found]
    draw_s: float | None


@dataclass(frozen=True)
class System:
    """``toys(events, seed, count)``, the count to ask for, and a fit of given columns, as close as can be.

    ``about`` is what versions of packages do not tell.
    """

    toys: Callable[[int, int, int], Toys]
    count: Callable[[int], int]
    check: Callable[[Columns], Found]
    about: str = ""


def tolerance(edm: float) -> float:
    """Return Minuit's tolerance for an edm: with errordef 0.5 it stops at 0.002 * tolerance * 0.5."""
    return edm / 0.001


def one_by_one(
    draw: Callable[[int, int], Any],
    fit: Callable[[Any, float], Found],
    take: Callable[[Columns], Any],
    edm: float,
    about: str = "",
) -> System:
    """Make a system of a function that draws data and one that fits them down to an edm."""

    def toys(events: int, seed: int, count: int) -> Toys:
        found, spent = [], 0.0
        for k in range(count):
            begin = time.perf_counter()
            data = draw(events, seed + k)
            spent += time.perf_counter() - begin
            found.append(fit(data, edm))
        return Toys(found, spent)

    return System(toys, lambda events: 1, lambda columns: fit(take(columns), CHECK_EDM), about)
