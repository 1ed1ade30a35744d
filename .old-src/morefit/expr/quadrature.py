"""Quadrature rules over boxes: a rule is a text, so that it can be part of an expression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
POINTS = 16  # Gauss-Legendre points in each panel
Axis = tuple[str, tuple[float, ...]]  # a name and the edges of its panels


def rule_text(axes: Sequence[Axis]) -> str:
    """Name a rule: Gauss-Legendre in each panel of each axis."""
    return ";".join(f"{name}={','.join(float(e).hex() for e in edges)}" for name, edges in axes)


def rule_axes(rule: str) -> list[Axis]:
    """Read a rule's text back."""
    axes = []
    for part in rule.split(";"):
        name, _, edges = part.rpartition("=")
        axes.append((name, tuple(float.fromhex(e) for e in edges.split(","))))
    return axes


@lru_cache(maxsize=64)
def rule_nodes(rule: str) -> tuple[dict[str, Array], Array]:
    """Return the nodes, a column for each axis, and their weights."""
    return box_nodes(rule_axes(rule))


def box_nodes(axes: Sequence[Axis]) -> tuple[dict[str, Array], Array]:
    """Return the nodes of a product of axes, a column for each, and their weights."""
    lines = [axis_nodes(np.array(edges)) for _, edges in axes]
    grids = np.meshgrid(*(x for x, _ in lines), indexing="ij")
    weights = np.ones(1)
    for _, w in lines:
        weights = np.multiply.outer(weights, w).ravel()
    return {name: np.ascontiguousarray(g.ravel()) for (name, _), g in zip(axes, grids, strict=True)}, weights


def axis_nodes(edges: Array) -> tuple[Array, Array]:
    """Return the nodes and weights of one axis."""
    x, w = legendre()
    half = np.diff(edges) / 2
    nodes = (edges[:-1] + half)[:, None] + half[:, None] * x
    return nodes.ravel(), (half[:, None] * w).ravel()


@lru_cache(maxsize=1)
def legendre() -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(POINTS)
    return x, w


def halve(edges: Array) -> Array:
    """Cut every panel in two."""
    middles = (edges[:-1] + edges[1:]) / 2
    return np.sort(np.concatenate([edges, middles]))


def refined(rule: str) -> str:
    """Return the rule with every panel cut in two."""
    return rule_text([(name, tuple(halve(np.array(edges)))) for name, edges in rule_axes(rule)])
