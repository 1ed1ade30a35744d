"""A minimum cut by Dinic's method; scipy has one, but importing it costs 0.2 s, half of what a first fit may take."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping


class Network:
    """A directed graph with capacities; source is 0, sink is 1."""

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
