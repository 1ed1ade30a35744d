"""Whether integrals for each event have enough nodes at values of parameters, as some of the events show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags
from morefit.expr import (
    Expr,
    Op,
    column,
    evaluate,
    leaves,
    substitute_all,
    with_coarser_rules,
    with_finer_rules,
)
from morefit.likelihood.accuracy import node_rules
from morefit.model import Pdf
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets.base import Events

NLL_ERROR = 0.01  # that numerical integrals may add to the sum over all events
# relative change with half as many nodes: their error is about the root of that of all of them
SUSPECT = 1e-4
EVENTS = 9  # of each dataset at which integrals are compared
TOGETHER = 16  # rows of parameters, whose nodes fit into a cache
MANY = 64  # rows, from which on compiling pays


def some_events(columns: Mapping[str, Array], model: Pdf) -> dict[str, Array]:
    """Return some of the events of a dataset, all over it, as often as there are too few."""
    names = [o.name for o in model.observables]
    count = len(columns[names[0]])
    chosen = np.linspace(0, count - 1, EVENTS).astype(np.int64) if count else np.empty(0, np.int64)
    return {name: np.asarray(columns[name])[chosen] for name in names}


def coarse_rows(
    model: Pdf, values: Mapping[str, Any], events: Mapping[str, Array], settings: Settings
) -> Flags:
    """Return at which rows of parameters an integral for each event changes with fewer nodes.

    ``values`` are numbers or arrays of one length, and ``events`` arrays (rows, events), or of events for all rows.
    """
    own = np.broadcast_arrays(*(np.atleast_1d(values[p.name]) for p in model.parameters)) or [np.zeros(1)]
    names, coarse = [p.name for p in model.parameters], np.zeros(len(own[0]), np.bool_)
    sums = [node for node, _ in node_rules(model)]
    if not sums:
        return coarse
    if all(c.ndim == 1 for c in events.values()) and not any(leaves(Op.SCALAR, node) for node in sums):
        own = [column[:1] for column in own]  # all rows are alike
    count = len(own[0])
    together = count if count >= MANY else TOGETHER
    for start in range(0, count, together):
        rows = slice(start, start + together)
        size = len(own[0][rows])
        points = {
            name: np.broadcast_to(column[rows] if column.ndim > 1 else column, (size, EVENTS)).ravel()
            for name, column in events.items()
        }
        points |= {name: np.repeat(c[rows], EVENTS) for name, c in zip(names, own, strict=False)}
        both = computed(sums, points, settings) if count >= MANY else evaluated(sums, points)
        for fine, rough in both:
            coarse[rows if count == len(coarse) else slice(None)] |= changes(fine, rough, size)
    return coarse


@lru_cache(maxsize=64)
def another(node: Expr) -> Expr:
    """Return a sum over half as many nodes, or over twice as many where there are so few that no half is left."""
    half = with_coarser_rules(node)
    return with_finer_rules(node) if half is node else half


@np.errstate(all="ignore")
def evaluated(sums: Sequence[Expr], points: Mapping[str, Array]) -> Iterator[tuple[Array, Array]]:
    """Yield each of some sums over nodes, and the same with half as many, at some points."""
    for node in sums:
        yield evaluate(node, points), evaluate(another(node), points)


def computed(
    sums: Sequence[Expr], points: Mapping[str, Array], settings: Settings
) -> Iterator[tuple[Array, Array]]:
    """Yield the same by compiled code, in which parameters are columns as well."""
    wanted = as_columns(tuple(one for node in sums for one in (node, another(node))))
    compiled = compile_values(wanted, (), Settings(settings.for_trials().backend, precompute="none"))
    count = len(next(iter(points.values())))
    (each,) = compiled.bind(Columns(dict(points)), Events.all_sets(count))(np.empty((1, 0)))
    yield from zip(each[::2], each[1::2], strict=True)


@lru_cache(maxsize=64)
def as_columns(sums: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return sums with columns in the place of parameters."""
    return substitute_all(sums, {leaf: column(leaf.name) for leaf in leaves(Op.SCALAR, *sums)})


@np.errstate(all="ignore")
def changes(fine: Array, rough: Array, size: int) -> Flags:
    """Return in which of some groups of points a sum over nodes changes with half as many."""
    fine, rough = (np.broadcast_to(one, size * EVENTS).reshape(size, EVENTS) for one in (fine, rough))
    scale = np.maximum(np.abs(fine), SUSPECT * np.abs(fine).max(axis=1, keepdims=True))
    return np.asarray(~(np.abs(rough - fine) <= SUSPECT * scale).all(axis=1), np.bool_)
