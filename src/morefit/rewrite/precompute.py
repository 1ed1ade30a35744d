"""Choose which event-only terms to read as columns and which to compute again in the loop, at least total price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from morefit.expr import Expr, Op, node_price, toposort
from morefit.rewrite.mincut import source_side

Precompute = Literal["auto", "all", "none"]

# Reading eight bytes an event from memory costs one core about 0.5 ns; an addition on vectors of eight
# doubles about 0.05 ns (docs/decisions/0002-columns-by-minimum-cut.md).
READ_PRICE = 8


def choose_columns(needed: Sequence[Expr], precompute: Precompute = "auto") -> list[Expr]:
    """Return the event-only nodes to precompute for the nodes that the loop needs.

    Each node is read (at ``READ_PRICE``), computed (at its own price, from arguments that are then needed
    too) or left alone. With y = "is there" and x = "is computed" the price is linear and every condition
    has the form "x implies y": a closure problem, which a minimum cut solves exactly.
    """
    if precompute == "none" or not needed:
        return []
    if precompute == "all":
        return [n for n in needed if node_price(n) > 0]
    nodes = [n for n in toposort(*needed) if n.op is not Op.CONST]
    index, wanted = {n: i for i, n in enumerate(nodes)}, set(needed)
    there = {n: 2 + 2 * i for n, i in index.items()}
    computed = {n: 3 + 2 * i for n, i in index.items()}
    source, sink, size = 0, 1, 2 + 2 * len(nodes)
    endless = 1 + sum(READ_PRICE + node_price(n) for n in nodes)
    edges: dict[tuple[int, int], int] = {}
    for node in nodes:
        gain = READ_PRICE - node_price(node) if node.args else 0
        edges[there[node], sink] = READ_PRICE
        if gain > 0:
            edges[source, computed[node]] = gain
        elif gain < 0:
            edges[computed[node], sink] = -gain
        if node.args:
            for implied in (node, *(a for a in node.args if a in index)):
                edges[computed[node], there[implied]] = endless
        if node in wanted:
            edges[source, there[node]] = endless
    chosen = source_side(edges, size)
    return [n for n in nodes if n.args and there[n] in chosen and computed[n] not in chosen]
