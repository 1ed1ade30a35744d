"""Fixed quadrature inside a loop over events: the nodes and weights of a rule on the unit interval."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr.quadrature import Axis, Domain
from morefit.expr.symbol import OwnSymbol, Table

POINTS = 16  # Gauss-Legendre nodes in a panel


@dataclass(frozen=True)
class NodeSymbol(OwnSymbol):
    """The column of the nodes of a rule."""


@dataclass(frozen=True)
class NodeRule(Domain):
    """Gauss-Legendre nodes in equal panels of the unit interval, over which the body of a sum depends on ``symbol``."""

    panels: int = 1
    depth: int = 0  # keeps the columns of nested sums apart

    @classmethod
    def of(cls, panels: int, depth: int) -> NodeRule:
        """Return a rule."""
        return cls((Axis(f"node {depth} in {panels} panels"),), panels=panels, depth=depth)

    @property
    def finer(self) -> NodeRule:
        """The rule with twice as many panels."""
        return NodeRule.of(2 * self.panels, self.depth)

    @property
    def symbol(self) -> NodeSymbol:
        """The column that a sum binds."""
        return NodeSymbol(self.axes[0].name)

    @property
    def count(self) -> int:
        """The number of nodes."""
        return POINTS * self.panels

    @property
    def tables(self) -> tuple[Table, Table]:
        """The nodes and their weights."""
        nodes, weights = panel_nodes(self.panels)
        return (
            Table(f"{self.panels} panels of nodes", nodes.tobytes(), "nodes"),
            Table(f"{self.panels} panels of weights", weights.tobytes(), "weights"),
        )


@dataclass(frozen=True)
class TermRule(NodeRule):
    """The numbers of the terms of a sum, from zero on, all with the same weight; ``panels`` is how many there are."""

    @classmethod
    def of(cls, panels: int, depth: int) -> TermRule:
        return cls((Axis(f"term {depth} of {panels}"),), panels=panels, depth=depth)

    @property
    def finer(self) -> TermRule:
        return self

    @property
    def count(self) -> int:
        return self.panels

    @property
    def tables(self) -> tuple[Table, Table]:
        numbers, weights = np.arange(float(self.panels)), np.full(self.panels, 1 / self.panels)
        return (
            Table(f"{self.panels} terms", numbers.tobytes(), "nodes"),
            Table(f"{self.panels} weights of terms", weights.tobytes(), "weights"),
        )


@lru_cache(maxsize=64)
def panel_nodes(panels: int) -> tuple[Array, Array]:
    """Return the nodes of equal panels of the unit interval, and their weights."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    starts = np.arange(panels)[:, None]
    return ((starts + (1 + x) / 2) / panels).ravel(), np.tile(w / (2 * panels), panels)
