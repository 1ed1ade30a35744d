"""Quadrature rules over boxes: a rule is a short text, so that it can be part of an expression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
POINTS = 16  # Gauss-Legendre points in each panel


def rule_text(axes: Sequence[tuple[str, float, float, int]]) -> str:
    """Name a rule: Gauss-Legendre in ``panels`` equal panels for each (name, low, high, panels)."""
    return ";".join(f"{name}={low.hex()}:{high.hex()}:{panels}" for name, low, high, panels in axes)


def rule_axes(rule: str) -> list[tuple[str, float, float, int]]:
    """Read a rule's text back."""
    axes = []
    for part in rule.split(";"):
        name, _, rest = part.rpartition("=")
        low, high, panels = rest.split(":")
        axes.append((name, float.fromhex(low), float.fromhex(high), int(panels)))
    return axes


@lru_cache(maxsize=64)
def rule_nodes(rule: str) -> tuple[dict[str, Array], Array]:
    """Return the nodes, a column for each axis, and their weights."""
    axes = [axis_nodes(low, high, panels) for _, low, high, panels in rule_axes(rule)]
    grids = np.meshgrid(*(x for x, _ in axes), indexing="ij")
    weights = np.ones_like(grids[0])
    for i, (_, w) in enumerate(axes):
        weights = weights * w.reshape([-1 if k == i else 1 for k in range(len(axes))])
    names = [name for name, *_ in rule_axes(rule)]
    return {n: np.ascontiguousarray(g.ravel()) for n, g in zip(names, grids, strict=True)}, weights.ravel()


def axis_nodes(low: float, high: float, panels: int) -> tuple[Array, Array]:
    """Return the nodes and weights of one axis."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    edges = np.linspace(low, high, panels + 1)
    half = np.diff(edges) / 2
    nodes = (edges[:-1] + half)[:, None] + half[:, None] * x
    return nodes.ravel(), (half[:, None] * w).ravel()
