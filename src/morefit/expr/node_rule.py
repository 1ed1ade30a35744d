"""Fixed quadrature inside a loop over events: the nodes and weights of a rule on the unit interval."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property, lru_cache

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.digests import sha256
from morefit.expr.quadrature import Axis, Domain
from morefit.expr.symbol import LoopSymbol, Table

POINTS = 16  # Gauss-Legendre nodes in a panel
TEMPLATE_POINTS = 8  # in a part of a template
MANY_CELLS = 512  # of a template, such as a kernel estimate, whose steps from cell to cell are small
ROUNDING = 1e-9
Pieces = tuple[Array, Array]  # edges of cells, and rows of coefficients, one for each power


@dataclass(frozen=True)
class NodeSymbol(LoopSymbol):
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
    def coarser(self) -> NodeRule:
        """The rule with half as many panels, one at least."""
        return NodeRule.of(max(1, self.panels // 2), self.depth)

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
    def coarser(self) -> TermRule:
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


@dataclass(frozen=True)
class TemplateRule(NodeRule):
    """Points and weights of integrals over a template: a sum over them of a function is its mean.

    The template is cut into at least so many ``panels``, none of which reaches over an edge unless there are many; the points of each integrate any
    polynomial with it.
    """

    digest: str = ""
    pieces: Pieces = field(default=(np.zeros(0), np.zeros((0, 0))), compare=False, repr=False)

    @classmethod
    def of_pieces(cls, pieces: Pieces, panels: int) -> TemplateRule:
        """Return a rule for a piecewise polynomial: edges of cells, and rows of coefficients for each power."""
        digest = sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in pieces)).hexdigest()[:12]
        axis = Axis(f"template {digest} in {panels} panels")
        return cls((axis,), panels=panels, digest=digest, pieces=pieces)

    @property
    def finer(self) -> TemplateRule:
        return TemplateRule.of_pieces(self.pieces, 2 * self.panels)

    @property
    def coarser(self) -> TemplateRule:
        return TemplateRule.of_pieces(self.pieces, max(1, self.panels // 2))

    @property
    def joins(self) -> bool:
        """Whether parts may reach over edges."""
        return len(self.pieces[0]) > MANY_CELLS

    @cached_property
    def parts(self) -> Array:
        """The ends of the parts that the template is cut into."""
        edges, _ = self.pieces
        if self.joins:
            equal = np.searchsorted(edges, np.linspace(edges[0], edges[-1], self.panels + 1))
            return np.asarray(edges[np.unique(equal)])
        counts = np.ceil(np.diff(edges) * self.panels / (edges[-1] - edges[0]) - ROUNDING).astype(int)
        cut = [np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]
        return np.append(np.concatenate(cut), edges[-1])

    @cached_property
    def nodes_and_weights(self) -> tuple[Array, Array]:
        """The points, those of each part together, and weights that add up to one."""
        x, _ = np.polynomial.legendre.leggauss(TEMPLATE_POINTS)
        low, high = self.parts[:-1, None], self.parts[1:, None]
        weights = self.moments @ np.linalg.inv(np.polynomial.legendre.legvander(x, TEMPLATE_POINTS - 1))
        return np.asarray(low + (high - low) / 2 * (1 + x)).ravel(), (weights / self.total).ravel()

    @property
    def total(self) -> float:
        """The integral of the template."""
        return float(self.moments[:, 0].sum())

    @cached_property
    def moments(self) -> Array:
        """The integrals of the template times Legendre polynomials of each part, (parts, polynomials)."""
        edges, rows = self.pieces
        fine = np.union1d(self.parts, edges)
        x, w = np.polynomial.legendre.leggauss(TEMPLATE_POINTS)
        half = np.diff(fine)[:, None] / 2
        t = fine[:-1, None] + half * (1 + x)
        middle = (fine[:-1] + fine[1:]) / 2
        cells = np.searchsorted(edges, middle) - 1
        distance = t - edges[cells, None]
        heights = sum(row[cells, None] * distance**k for k, row in enumerate(rows))
        part = np.searchsorted(self.parts, middle) - 1
        low, high = self.parts[part, None], self.parts[part + 1, None]
        basis = np.polynomial.legendre.legvander((2 * t - low - high) / (high - low), TEMPLATE_POINTS - 1)
        own = np.einsum("ij,ijk->ik", half * w * heights, basis)
        moments = np.zeros((len(self.parts) - 1, TEMPLATE_POINTS))
        np.add.at(moments, part, own)
        return moments

    @property
    def count(self) -> int:
        return TEMPLATE_POINTS * (len(self.parts) - 1)

    @property
    def tables(self) -> tuple[Table, Table]:
        nodes, weights = self.nodes_and_weights
        name = f"template {self.digest} in {self.panels} panels"
        return (
            Table(f"nodes of {name}", nodes.tobytes(), "nodes"),
            Table(f"weights of {name}", weights.tobytes(), "weights"),
        )


@lru_cache(maxsize=64)
def panel_nodes(panels: int) -> tuple[Array, Array]:
    """Return the nodes of equal panels of the unit interval, and their weights."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    starts = np.arange(panels)[:, None]
    return ((starts + (1 + x) / 2) / panels).ravel(), np.tile(w / (2 * panels), panels)
