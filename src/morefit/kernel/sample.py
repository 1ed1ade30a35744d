"""Kernels that draw events: their columns are random numbers of a generator."""

from __future__ import annotations

from collections.abc import Iterable

from morefit.expr import Table
from morefit.kernel.ir import Kernel
from morefit.random.xoshiro import jump_table

MAX_DRAWS = 10_000  # candidates for one event; more means that the envelope is useless
UNIFORM = "uniform "  # the columns of a sampling kernel are random numbers, "uniform 0", "uniform 1", ...
XOSHIRO = "xoshiro "  # ... or these, from another generator


def place_of(name: str) -> int:
    """Return which random number of a candidate a column is."""
    return int(name.rpartition(" ")[2])


def calls_needed(kernel: Kernel) -> int:
    """Count the calls of the generator for one candidate: each gives two numbers."""
    return max((place_of(name) // 2 + 1 for name in kernel.columns), default=0)


def takes_streams(columns: Iterable[str]) -> bool:
    """Say whether the columns are random numbers of streams, which items and lanes go along, or counted ones."""
    return any(name.startswith(XOSHIRO) for name in columns)


def tables_needed(columns: Iterable[str]) -> tuple[Table, ...]:
    """Return the tables that a sampling kernel needs besides those of its lines."""
    return (jump_table(),) if takes_streams(columns) else ()
