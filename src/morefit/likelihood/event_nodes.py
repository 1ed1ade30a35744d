"""Events of one observable as weights of nodes: a sum over events of an interpolated log density is one over its nodes.

A log density that takes long to compute, as a numerical convolution does, is computed in every call at the nodes of a grid
and interpolated at the events by the polynomials of its cells. Interpolation is linear in the numbers at the nodes, so that
the events enter by one weight for each node, which are summed once for all calls: a call costs the table and nothing for an
event, and derivatives are those of what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.expr import ZERO, Expr, Op, add_all, leaves, toposort
from morefit.kernel.sums import Request
from morefit.pipeline import Columns

DEGREE = 8  # of the polynomial of a cell
FIRST_CELLS = 8
MAX_CELLS = 1 << 12
# equally spaced points, and as many events, at which a log density is compared: no peak may hide
CHECKS = 2048
# of a log density there, when a grid is made; that of single data then gets twice as many cells
TOLERANCE = 1e-9
WORST = 1e-8  # that it may become when parameters move
FEWER = 2  # times: nodes that are not fewer than events by that are not worth it
MAX_CHECKED = 8  # rows of parameters at which nodes are known to be good
NEAR = 0.05  # relative: rows that are closer are not checked again

Logs = Callable[[Array, Array], Array]  # of points and rows of parameters: log densities, (rows, points)

NOWHERE = np.empty(0)
NODES = -np.cos(np.pi / (DEGREE + 1) * (np.arange(DEGREE + 1) + 0.5))  # Chebyshev's, in [-1, 1]
# some of the extremes of the next polynomial, which is zero at the nodes: where that is the error, it is largest there
FARTHEST = -np.cos(np.pi / (DEGREE + 1) * np.array([0, 2, 5, DEGREE + 1]))


@cache
def to_coefficients() -> Array:
    """Return the matrix that makes coefficients of Chebyshev polynomials of numbers at nodes."""
    from numpy.polynomial.chebyshev import chebvander

    return np.linalg.inv(chebvander(NODES, DEGREE))


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells between the first and the last event of one observable; nothing is computed in those without events."""

    edges: Array
    events: Integers  # the cell of each event
    filled: Integers  # the cells that have events

    @classmethod
    def of(cls, x: Array, edges: Array) -> Cells:
        events = cells_of(x, edges)
        return cls(edges, events, np.flatnonzero(np.bincount(events, minlength=len(edges) - 1)))

    @classmethod
    def over(cls, edges: Array) -> Cells:
        """Return cells over a range, whose nodes serve any events in it."""
        return cls(edges, np.empty(0, np.int64), np.arange(len(edges) - 1))

    @cached_property
    def nodes(self) -> Array:
        """The nodes of the filled cells, cell by cell."""
        return self.at(NODES)

    @property
    def farthest(self) -> Array:
        """Points of the filled cells at which interpolated log densities are farthest from computed ones."""
        return self.at(FARTHEST)

    def at(self, places: Array) -> Array:
        """Return places between -1 and 1 of the filled cells, cell by cell."""
        low, high = self.edges[self.filled, None], self.edges[self.filled + 1, None]
        return np.asarray(low + (high - low) / 2 * (1 + places)).ravel()

    def polynomials(self, x: Array, cells: Integers) -> Iterator[Array]:
        """Return the Chebyshev polynomials of the cells of some points there, one after the other."""
        low, high = self.edges[cells], self.edges[cells + 1]
        inside = (2 * x - low - high) / (high - low)
        before, now = np.ones_like(inside), inside
        for _ in range(DEGREE + 1):
            yield before
            before, now = now, 2 * inside * now - before

    def weights(self, x: Array, weights: Array | None) -> Array:
        """Return sums over events of the polynomials that are one at a node of a cell and zero at its others."""
        each = (t if weights is None else t * weights for t in self.polynomials(x, self.events))
        moments = [np.bincount(self.events, one, len(self.edges) - 1)[self.filled] for one in each]
        return np.asarray(np.stack(moments, axis=1) @ to_coefficients()).ravel()

    def weights_of_sets(self, x: Array, sizes: Integers) -> Array:
        """Return such sums over the events of each of many sets, which follow one another, (sets, nodes)."""
        cells, count = cells_of(x, self.edges), len(self.edges) - 1
        places = cells + np.repeat(count * np.arange(len(sizes)), sizes)
        each = self.polynomials(x, cells)
        moments = [np.bincount(places, one, count * len(sizes)) for one in each]
        return np.asarray(np.stack(moments, axis=1) @ to_coefficients()).reshape(len(sizes), -1)

    def error(self, x: Array, logs: Logs, full: Array) -> float:
        """Return how far interpolated log densities are from computed ones, at points all over filled cells and at events."""
        return float(self.errors(points_between(x), logs, full).max())

    def errors(self, checks: Array, logs: Logs, full: Array) -> Array:
        """Return the largest such error at points in filled cells, for each row of parameters; inf if one is not a number."""
        return np.asarray(self.errors_in_cells(checks, logs, full).max(axis=1, initial=0.0))

    @np.errstate(all="ignore")
    def errors_in_cells(self, checks: Array, logs: Logs, full: Array) -> Array:
        """Return the largest such error in each filled cell, (rows, cells)."""
        places = np.full(len(self.edges) - 1, -1)
        places[self.filled] = np.arange(len(self.filled))
        cells = cells_of(checks, self.edges)
        checks, cells = checks[places[cells] >= 0], cells[places[cells] >= 0]
        nodes = self.nodes
        computed = logs(np.concatenate([nodes, checks]), full)
        at_nodes = computed[:, : len(nodes)].reshape(len(full), -1, DEGREE + 1)
        coefficients = (at_nodes @ to_coefficients().T)[:, places[cells]]
        between = sum(coefficients[..., k] * t for k, t in enumerate(self.polynomials(checks, cells)))
        worst = np.zeros((len(full), len(self.filled)))
        off = np.abs(between - computed[:, len(nodes) :])
        for row, own in zip(worst, np.where(np.isfinite(off), off, np.inf), strict=True):
            np.maximum.at(row, places[cells], own)
        return worst


def halved(edges: Array) -> Array:
    """Return the edges of cells of half the widths."""
    return np.sort(np.concatenate([edges, (edges[:-1] + edges[1:]) / 2]))


def points_between(x: Array) -> Array:
    """Return points all over the range of some values, and some of these."""
    return np.concatenate([np.linspace(x.min(), x.max(), CHECKS), x[:: max(1, len(x) // CHECKS)]])


def cells_of(x: Array, edges: Array) -> Integers:
    """Return the cell of each of some points."""
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


@dataclass(frozen=True, eq=False)
class EventNodes:
    """Points and weights, over which sums of a smooth function are those over events."""

    name: str  # of the observable
    points: Array
    weights: Array
    cells: Cells

    @cached_property
    def columns(self) -> Columns:
        return Columns({self.name: self.points})


@dataclass(eq=False)
class FollowedNodes:
    """Nodes for the parameters of the last calls, made anew where they do not resolve the log density."""

    name: str
    x: Array
    own: Array | None  # weights of events
    logs: Logs
    nodes: EventNodes
    checked: Array  # rows of parameters

    @classmethod
    def of(cls, name: str, x: Array, weights: Array | None, logs: Logs, full: Array) -> FollowedNodes | None:
        """Return nodes for a log density; None if the events themselves are as cheap."""
        edges = None if not len(x) or np.ptp(x) == 0 else edges_for(x, logs, full)
        if edges is None:
            return None
        return cls(name, x, weights, logs, nodes=make_nodes(name, x, weights, edges), checked=full)

    def at(self, full: Array | None) -> EventNodes | None:
        """Return nodes that hold at rows of parameters, None if there are none; those of the last call without any."""
        known = (
            ()
            if full is None
            else [np.isclose(row, self.checked, NEAR, 0.0).all(axis=1).any() for row in full]
        )
        if full is None or all(known):
            return self.nodes
        new = full[~np.array(known)]
        if self.nodes.cells.error(self.x, self.logs, new) <= WORST:
            self.checked = np.concatenate([new, self.checked])[:MAX_CHECKED]
            return self.nodes
        rows = np.concatenate([new, self.checked])[:MAX_CHECKED]
        edges = edges_for(self.x, self.logs, rows)
        if edges is None:
            return None
        self.nodes, self.checked = make_nodes(self.name, self.x, self.own, edges), rows
        return self.nodes

    def finer(self) -> EventNodes:
        """Return twice as many nodes as in the last call."""
        return make_nodes(self.name, self.x, self.own, halved(self.nodes.cells.edges))


def make_nodes(name: str, x: Array, weights: Array | None, edges: Array) -> EventNodes:
    cells = Cells.of(x, edges)
    return EventNodes(name, cells.nodes, cells.weights(x, weights), cells)


def edges_for(x: Array, logs: Logs, full: Array) -> Array | None:
    """Return the edges of twice as many cells as a log density needs; None if their nodes are not much fewer than events."""
    edges = resolved_edges(first_edges(x), logs, full, len(x) / (FEWER * (DEGREE + 1) * 2), points_between(x))
    return None if edges is None else halved(edges)


def cells_over(low: float, high: float, logs: Logs, full: Array) -> Cells | None:
    """Return as many cells over a range as a log density needs; None if there is no such number."""
    ends = np.array([low, high])
    edges = resolved_edges(first_edges(ends), logs, full, MAX_CELLS, points_between(ends))
    return None if edges is None else Cells.over(edges)


def first_edges(x: Array) -> Array:
    return np.linspace(x.min(), x.max(), FIRST_CELLS + 1)


def resolved_edges(
    edges: Array, logs: Logs, full: Array, most: float, checks: Array = NOWHERE
) -> Array | None:
    """Return the edges of cells that resolve a log density: those that do not are halved; None if there are too many.

    It is compared at points all over a cell, and at further ones.
    """
    done = np.zeros(len(edges) - 1, np.bool_)
    while len(done) <= most:
        wide = Cells(edges, np.empty(0, np.int64), np.flatnonzero(~done))
        inside = np.concatenate(
            [checks, Cells(halved(edges), wide.events, np.flatnonzero(np.repeat(~done, 2))).nodes]
        )
        worst = wide.errors_in_cells(inside, logs, full).max(axis=0)
        if not np.isfinite(worst).all():
            return None
        cut = np.zeros(len(done), np.bool_)
        cut[wide.filled] = worst > TOLERANCE
        if not cut.any():
            return edges
        middle = (edges[:-1] + edges[1:])[cut] / 2
        done = np.repeat(~cut, 1 + cut)
        edges = np.sort(np.concatenate([edges, middle]))
    return None


def varying(log_density: Expr) -> Expr:
    """Return a log density without the terms that are the same for all events, such as the logarithm of an integral."""
    terms = log_density.args if log_density.op is Op.ADD else (log_density,)
    own = [term for term in terms if leaves(Op.COLUMN, term)]
    return add_all(*own) if len(own) > 1 else own[0]


def split_slow(log_density: Expr) -> tuple[dict[str, Expr], Expr]:
    """Return the terms with integrals for each event that depend on one observable, by its name, and the rest."""
    slow: dict[str, list[Expr]] = {}
    rest: list[Expr] = []
    stack = [log_density]
    while stack:
        term = stack.pop()
        if term.op is Op.ADD:
            stack += reversed(term.args)
            continue
        names = {leaf.name for leaf in leaves(Op.COLUMN, term)}
        nodes = toposort(term, enter_integrals=False, enter_sums=False)
        is_slow = len(names) == 1 and any(node.op is Op.NODE_SUM for node in nodes)
        (slow.setdefault(names.pop(), []) if is_slow else rest).append(term)
    return {name: add_all(*terms) for name, terms in slow.items()}, add_all(*rest) if rest else ZERO


def requests_apart(request: Request, apart: Sequence[tuple[Expr, FollowedNodes]]) -> list[Request]:
    """Return what to sum over events, and over the nodes of each term apart."""
    slow, rest = split_slow(request.log_density)
    moved = {follow.name for _, follow in apart}
    rest = add_all(rest, *(term for name, term in slow.items() if name not in moved))
    alone = replace(request, weighted=True, per_set=ZERO)
    return [
        replace(request, log_density=rest),
        *(replace(alone, log_density=term) for term, _ in apart),
    ]
