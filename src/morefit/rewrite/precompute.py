"""Choose which event-only terms to read as columns and which to compute again in the loop, at least total price: a minimum cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal

from morefit.expr import Expr, Op, node_price, toposort


class Network:
    """A directed graph with capacities; source is 0, sink is 1. Its minimum cut is found by Dinic's method.

    scipy has one, but importing it costs 0.2 s, half of what a first fit may take.
    """

    def __init__(self, edges: Mapping[tuple[int, int], int], size: int) -> None:
        self.target: list[int] = []
        self.room: list[int] = []  # capacity left; the edge and its reverse are neighbours, 2k and 2k + 1
        self.out: list[list[int]] = [[] for _ in range(size)]
        for (a, b), capacity in edges.items():
            for start, end, room in ((a, b, capacity), (b, a, 0)):
                self.out[start].append(len(self.target))
                self.target.append(end)
                self.room.append(room)

    def levels(self) -> list[int]:
        """Return how many edges each node is from the source; -1 if it cannot be reached."""
        level = [-1] * len(self.out)
        level[0] = 0
        queue = deque([0])
        while queue:
            node = queue.popleft()
            for edge in self.out[node]:
                if self.room[edge] > 0 and level[self.target[edge]] < 0:
                    level[self.target[edge]] = level[node] + 1
                    queue.append(self.target[edge])
        return level

    def saturate(self, level: list[int]) -> None:
        """Push flow along shortest paths until none is left."""
        following = [0] * len(self.out)
        path: list[int] = []
        node = 0
        while True:
            if node == 1:
                pushed = min(self.room[e] for e in path)
                for e in path:
                    self.room[e] -= pushed
                    self.room[e ^ 1] += pushed
                path, node = [], 0
            elif following[node] < len(self.out[node]):
                edge = self.out[node][following[node]]
                if self.room[edge] > 0 and level[self.target[edge]] == level[node] + 1:
                    path.append(edge)
                    node = self.target[edge]
                else:
                    following[node] += 1
            elif path:
                node = self.target[path.pop() ^ 1]
                following[node] += 1
            else:
                return


def source_side(edges: Mapping[tuple[int, int], int], size: int) -> set[int]:
    """Return the nodes on the source's side of a minimum cut."""
    network = Network(edges, size)
    while (level := network.levels())[1] >= 0:
        network.saturate(level)
    return {node for node, distance in enumerate(level) if distance >= 0}


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
