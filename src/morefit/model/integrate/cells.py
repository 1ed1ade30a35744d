"""Integrals of products with tables of several observables: Gauss nodes in every cell, and one sum for each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from morefit.arrays import Array
from morefit.expr import ONE, Expr, Op, Table, evaluate, leaves, multiply_all, toposort
from morefit.model.observable import Observable

PLACES = (2, 3)  # in a cell and direction, between which tables are polynomials: two are enough for lines
POINTS = (20, 32)  # in a cell, of integrals along one axis
WORST = 1e-12  # of the size of an integral, by which those with more places and points may differ
MAX_PLACES = 1 << 24

Whole = Callable[
    [Expr, tuple[Observable, ...]], tuple[float, float] | None
]  # an integral, and that of the size


def integrate_cells(
    factors: Sequence[Expr], box: Sequence[Observable], whole: Whole
) -> tuple[float, float] | None:
    """Integrate a product of event-only factors, some of them tables of several observables, and its size.

    Tables are polynomials in each cell, so that the integral is a sum over places in cells of numbers of the tables times an
    integral along each axis. Return None if there is no table, or if it or the other factors are not smooth in cells;
    ``whole`` integrates a function of one axis by other means, which look for narrow peaks.
    """
    alone: dict[str, list[Expr]] = {o.name: [] for o in box}
    joint: list[Expr] = []
    for factor in factors:
        names = {leaf.name for leaf in leaves(Op.COLUMN, factor)}
        (joint if len(names) > 1 else alone[names.pop()]).append(factor)
    edges = None if not joint else cell_edges(multiply_all(*factors), tuple(box))
    if edges is None or np.prod([PLACES[-1] * (len(each) - 1.0) for each in edges]) > MAX_PLACES:
        return None
    totals = []
    for places, points in zip(PLACES, POINTS, strict=True):
        signed = on_grid(multiply_all(*joint), tuple(box), edges, places)
        sizes = np.abs(signed)
        for o, own in reversed(list(zip(box, edges, strict=True))):
            product = multiply_all(*alone[o.name]) if alone[o.name] else ONE
            weights = axis_weights(product, o, own, places, points)
            exact = whole(product, (o,))
            if exact is None or not abs(weights.sum() - exact[0]) <= WORST * np.abs(weights).sum():
                return None
            signed, sizes = signed @ weights, sizes @ np.abs(weights)
        totals.append(float(signed))
    return (totals[-1], float(sizes)) if abs(totals[1] - totals[0]) <= WORST * sizes else None


@lru_cache(maxsize=1024)
def axis_weights(function: Expr, x: Observable, edges: tuple[float, ...], places: int, points: int) -> Array:
    """Return the integrals of a function of one axis times the polynomials that are one at a place of a cell and zero at others."""
    from numpy.polynomial.legendre import leggauss, legvander

    u, w = leggauss(points)
    inside, slope = (3 * u - u**3) / 2, 1.5 * (1 - u**2)  # roots at the ends of a cell are smooth in u
    basis = np.linalg.solve(legvander(leggauss(places)[0], places - 1).T, legvander(inside, places - 1).T)
    nodes = in_cells(edges, inside)
    values = np.broadcast_to(evaluate(function, {x.name: nodes}), nodes.shape)
    return np.asarray(np.diff(edges)[:, None] / 2 * ((values * slope * w) @ basis.T)).ravel()


@lru_cache(maxsize=256)
def cell_edges(product: Expr, box: tuple[Observable, ...]) -> tuple[tuple[float, ...], ...] | None:
    """Return the edges of all tables on each axis; None if there is none, or the place in one is not an observable."""
    edges = {o.name: {o.low, o.high} for o in box}
    cells = [node for node in toposort(product) if node.op is Op.CELL]
    for table, place in (node.args for node in cells):
        assert isinstance(table.value, Table)
        if place.op is not Op.COLUMN:
            return None
        edges[place.name] |= set(table.value.array.tolist())
    inside = (sorted(e for e in edges[o.name] if o.low <= e <= o.high) for o in box)
    return tuple(map(tuple, inside)) if cells else None


def in_cells(edges: Sequence[float], inside: Array) -> Array:
    """Return places of all cells between edges, (cells, places); ``inside`` are those of a cell in [-1, 1]."""
    return np.asarray(edges)[:-1, None] + np.diff(edges)[:, None] / 2 * (1 + inside)


@lru_cache(maxsize=4)  # all terms of a density share it
def on_grid(
    joint: Expr, box: tuple[Observable, ...], edges: tuple[tuple[float, ...], ...], places: int
) -> Array:
    """Return a function of all axes at every combination of places in their cells."""
    from numpy.polynomial.legendre import leggauss

    shape = np.ones(len(box), int) - 2 * np.eye(len(box), dtype=int)  # -1: the axis itself
    grid = {
        o.name: in_cells(e, leggauss(places)[0]).reshape(s) for o, e, s in zip(box, edges, shape, strict=True)
    }
    return np.broadcast_to(evaluate(joint, grid), [x.size for x in grid.values()])
