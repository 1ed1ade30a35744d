"""Terms of a log density that take long for each event, computed at nodes in the place of events."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from morefit.arrays import Array, Flags
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, leaves
from morefit.integrals.boxes import SharedBoxes
from morefit.likelihood.evaluation import PartData
from morefit.likelihood.event_nodes import (
    DEGREE,
    FEWER,
    WORST,
    Cells,
    FollowedNodes,
    Logs,
    cells_over,
    resolved_edges,
    split_slow,
    varying,
)
from morefit.likelihood.parameters import symbols_of
from morefit.model import Parameter, Pdf
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets.base import Events


@dataclass(frozen=True, eq=False, kw_only=True)
class SlowTerms:
    """The terms of the log density of one likelihood that have integrals for each event."""

    model: Pdf
    data: Dataset
    settings: Settings
    parameters: tuple[Parameter, ...]  # all of the likelihood
    boxes: SharedBoxes  # of its numerical integrals

    @property
    def name(self) -> str | None:
        """The name of the only observable, if the log density depends on nothing else."""
        names = self.data.names
        if len(names) != 1:
            return None
        return names[0] if {leaf.name for leaf in leaves(Op.COLUMN, self.model.summed)} == {*names} else None

    @cached_property
    def on_nodes(self) -> FollowedNodes | None:
        """The nodes at which a log density that takes long is computed, in the place of many events of one observable."""
        name = self.name
        return None if name is None else self.nodes_for(varying(self.model.summed), name)

    def cells(self, full: Array) -> Cells | None:
        """Return cells whose nodes serve any events, if the log density takes long; they hold at rows of parameters."""
        name = self.name
        if name is None:
            return None
        (o,) = (o for o in self.model.observables if o.name == name)
        return cells_over(o.low, o.high, self.logs, full)

    def cells_hold(self, cells: Cells, full: Array) -> Flags:
        """Return at which rows of parameters cells resolve the log density."""
        return cells.errors(cells.farthest, self.logs, full) <= WORST

    def finer_cells(self, cells: Cells, row: Array, events: int) -> Cells | None:
        """Return cells with halves of those that do not resolve the log density; None if nodes are not fewer than events."""
        edges = resolved_edges(cells.edges, self.logs, row[None], events / (FEWER * (DEGREE + 1)))
        return None if edges is None else Cells.over(edges)

    @property
    def logs(self) -> Logs:
        """The log density that takes long, as a function of the only observable."""
        name = self.name
        assert name is not None
        return self.logs_of(varying(self.model.summed), name)

    @cached_property
    def apart(self) -> tuple[tuple[Expr, FollowedNodes], ...]:
        """Terms of the log density that take long and depend on one of several observables, each with nodes in its place.

        Such is the normalisation of a conditional density.
        """
        if len(self.data.names) == 1:
            return ()
        slow, _ = split_slow(self.model.summed)
        followed = ((term, self.nodes_for(term, name)) for name, term in slow.items())
        return tuple((term, nodes) for term, nodes in followed if nodes is not None)

    def nodes_for(self, term: Expr, name: str) -> FollowedNodes | None:
        """Return nodes for a term that depends on one observable; None if the events themselves are as cheap."""
        start = np.array([[p.start for p in self.parameters]])
        return FollowedNodes.of(name, self.data[name], self.data.weights, self.logs_of(term, name), start)

    def logs_of(self, term: Expr, name: str) -> Logs:
        """Return the function that computes a term at values of one observable."""

        def logs(points: Array, full: Array) -> Array:
            compiled = compile_values((term,), symbols_of(self.parameters), self.settings)
            bound = compiled.bind(Columns({name: points}), Events.all_sets(len(points)), boxes=self.boxes)
            return np.asarray(bound(full)[:, 0])

        return logs


def data_of_nodes(follow: FollowedNodes, boxes: SharedBoxes) -> PartData:
    """Return nodes in the place of events as the data of many sets."""
    nodes = follow.finer()
    return PartData(nodes.columns, Events.all_sets(len(nodes.points)), nodes.weights, boxes=boxes)
