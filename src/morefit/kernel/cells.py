"""The cell of a table that a value lies in, as lines of kernels can compute it: a guess, and one comparison with an edge."""

from __future__ import annotations

import numpy as np

from morefit.arrays import Array
from morefit.expr import Expr, Op, Table, apply, lookup, make, remake, to_expr, where

EQUAL_STEPS = 1e-9  # relative: edges closer than this to a regular grid are guessed by it
FINER = 1.1  # buckets are so much narrower than the narrowest cell that at most one edge lies in each, or next to it
REACH = 0.01  # of a bucket: how far rounding may carry a value into the next one
MAX_BUCKETS = 1 << 14


def spell_cells(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """Write the search for a cell as lookups; every target finds the same cell, whatever it rounds."""
    if node.op is not Op.CELL:
        return spell_functions(node, args)
    table, x = args
    assert isinstance(table.value, Table)
    edges = table.value.array
    last = len(edges) - 2
    number = make(Op.EQUAL, (x, x))
    inside = clipped(where(number, x, edges[0]), edges[0], edges[-1])
    guess = guess_of(inside, edges)
    if guess is None:
        cell = bisected(inside, edges)
    else:
        cell = apply(Op.MIN, guess + (lookup(table.value, guess + 1) <= x), last)
    return where(number, cell, last + 1)


def spell_functions(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """Write an operation that targets have no function for by others."""
    return remake(node, args) if node.op.spelled is None else node.op.spelled(*args)


def guess_of(x: Expr, edges: Array) -> Expr | None:
    """Return a cell that is the right one or the one before it; None if the widths of cells are too different."""
    low, span, cells = float(edges[0]), float(edges[-1] - edges[0]), len(edges) - 1
    widths = np.diff(edges)
    if np.abs(edges - np.linspace(low, low + span, cells + 1)).max() < REACH * widths.min() and np.allclose(
        widths, span / cells, rtol=EQUAL_STEPS, atol=0
    ):
        return clipped(apply(Op.FLOOR, (x - low) * (cells / span) - 0.5), 0, cells - 1)
    buckets = int(min(np.ceil(FINER * span / widths.min()), MAX_BUCKETS + 1))
    if buckets > MAX_BUCKETS:
        return None
    starts = low + span / buckets * (np.arange(buckets) - REACH)
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, cells - 1)
    bucket = clipped(apply(Op.FLOOR, (x - low) * (buckets / span)), 0, buckets - 1)
    return lookup(Table.of(first.astype(np.float64)), bucket)


def bisected(x: Expr, edges: Array) -> Expr:
    """Return the cell by bisection."""
    cells = len(edges) - 1
    size = 1 << (cells - 1).bit_length()
    padded = Table.of(np.concatenate([edges[:-1], np.full(size - cells, np.finfo(np.float64).max)]))
    cell, half = to_expr(0), size // 2
    while half:
        cell = where(lookup(padded, cell + half) <= x, cell + half, cell)
        half //= 2
    return cell


def clipped(x: Expr, low: float, high: float) -> Expr:
    return apply(Op.MIN, apply(Op.MAX, x, low), high)
