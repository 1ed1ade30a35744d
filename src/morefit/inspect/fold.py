"""Fold a graph: parts of a sum or product that differ only in numbers and numbered names are drawn once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from heapq import heappop, heappush

from morefit.expr import NARY, SYMMETRIC, Expr, Op, toposort
from morefit.expr.show.dot import KINDS, Box, Kind, dependence, label

Bundle = tuple[Expr, ...]  # corresponding nodes of equivalent parts; mostly one
Child = tuple[Bundle, int]  # and how many of them each node has
NAMED = 2  # number of equivalent nodes that are named
# The weight of a step away from the root: what parameters alone make is the first to be left out.
STEPS: dict[Kind, int] = {"nothing": 3, "parameters": 2, "event": 1, "both": 1}


class Fold(Enum):
    """What makes parts of a graph equivalent."""

    NEVER = 0  # nothing: every node is drawn
    NAMES = 1  # that they differ only in the numbers in names of parameters
    NUMBERS = 2  # that they differ only in these and in numbers, as where parameters were bound


class Graph:
    """A graph of bundles, below one root."""

    def __init__(self, root: Expr, terms: Mapping[Expr, str], fold: Fold) -> None:
        self.root, self.terms = root, terms
        self.kinds: dict[Expr, Kind] = {n: KINDS[bits] for n, bits in dependence([root]).items()}  # type: ignore[misc]
        order = toposort(root)
        self.place = {node: i for i, node in enumerate(order)}
        self.shapes = self.place if fold is Fold.NEVER else shapes(order, terms, fold)

    def children(self, bundle: Bundle) -> list[Child]:
        """List the bundles right below one, with how many nodes of each stand below every node of this one."""
        first = bundle[0]
        if first.op not in SYMMETRIC:
            positions = range(len(drawn_below(first)))
            return [(self.join(drawn_below(n)[i] for n in bundle), 1) for i in positions]
        alike = Counter(self.shapes[arg] for arg in drawn_below(first))
        return [
            (self.join(a for n in bundle for a in drawn_below(n) if self.shapes[a] == shape), times)
            for shape, times in alike.items()
        ]

    def join(self, nodes: Iterable[Expr]) -> Bundle:
        return tuple(sorted(set(nodes), key=self.place.__getitem__))

    def nearest(self, limit: int) -> list[Bundle]:
        """List the bundles nearest to the root, at most ``limit``."""
        nearest: dict[Bundle, None] = {}
        queue: list[tuple[int, int, Bundle]] = [(0, 0, (self.root,))]
        pushed = 1
        while queue and len(nearest) < limit:
            distance, _, bundle = heappop(queue)
            if bundle in nearest:
                continue
            nearest[bundle] = None
            for child, _ in self.children(bundle):
                heappush(queue, (distance + STEPS[self.kinds[child[0]]], pushed, child))
                pushed += 1
        return list(nearest)

    def size(self) -> int:
        """Count the bundles."""
        return len(self.nearest(len(self.place) + 1))

    def boxes(self, bundles: list[Bundle]) -> list[Box]:
        """Draw bundles: one box per bundle, an arrow to every one below it that is drawn too."""
        number = {bundle: i for i, bundle in enumerate(bundles)}
        boxes = []
        for bundle in bundles:
            children = self.children(bundle)
            arrows = tuple((number[c], f"x {times}" * (times > 1)) for c, times in children if c in number)
            hidden = sum(c not in number for c, _ in children)
            framed = bundle[0] in self.terms
            boxes.append(Box(self.text(bundle), self.kinds[bundle[0]], arrows, hidden, framed))
        return boxes

    def text(self, bundle: Bundle) -> str:
        """Name a box: by its operation, a term also by its number, equivalent leaves by the first and last."""
        numbers = zip(*(numbers_in(node) for node in bundle), strict=True)
        inside = [some_of(map(label, sorted(same, key=lambda n: n.number))) for same in numbers]
        name = " ".join([some_of(sorted(map(label, bundle), key=by_number)), *inside])
        terms = [self.terms[node] for node in bundle if node in self.terms]
        return f"{some_of(sorted(terms, key=by_number))} =\n{name}" if terms else name


def numbers_in(node: Expr) -> Bundle:
    """Return the numbers that a sum, product or power is written with: boxes of their own would crowd the picture."""
    if node.op is Op.POW:
        return tuple(a for a in node.args[1:] if a.op is Op.CONST)
    return tuple(a for a in node.args if a.op is Op.CONST) if node.op in NARY else ()


def drawn_below(node: Expr) -> Bundle:
    """Return the arguments that have boxes of their own."""
    inside = set(numbers_in(node))
    return tuple(a for i, a in enumerate(node.args) if a not in inside or (node.op is Op.POW and i == 0))


def readable(root: Expr, terms: Mapping[Expr, str], limit: int) -> Graph:
    """Fold a graph as little as makes it fit into ``limit`` boxes; if nothing does, as much as possible."""
    graphs = []
    for fold in Fold:
        graphs.append(Graph(root, terms, fold))
        if graphs[-1].size() <= limit:
            return graphs[-1]
    return min(graphs, key=Graph.size)


def some_of(names: Iterable[str]) -> str:
    """Name a few things, or the first and the last of many."""
    unique = list(dict.fromkeys(names))
    return ", ".join(unique) if len(unique) <= NAMED else f"{unique[0]} ... {unique[-1]}"


def by_number(name: str) -> list[tuple[bool, int, str]]:
    """Sort as a reader would: x2 before x10."""
    return [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in re.split(r"(\d+)", name) if p]


def shapes(order: Iterable[Expr], terms: Mapping[Expr, str], fold: Fold) -> dict[Expr, int]:
    """Give every node a number that it shares with equivalent nodes."""
    known: dict[object, int] = {}
    numbers: dict[Expr, int] = {}
    for node in order:
        below = [numbers[arg] for arg in node.args]
        inside = tuple(sorted(below) if node.op in SYMMETRIC else below)
        shape = (node.op, stem(node, fold), terms.get(node, "")[:1], inside)
        numbers[node] = known.setdefault(shape, len(known))
    return numbers


def stem(node: Expr, fold: Fold) -> object:
    """Return what must be the same for equivalent nodes: names without their numbers, powers, signs."""
    if node.op is Op.SCALAR:
        return re.sub(r"\d+", "#", node.name)
    if node.op is Op.CONST and fold is Fold.NUMBERS and node.number != -1:  # that is a sign
        return "number"
    if node.op is Op.POW and node.args[1].op is Op.CONST:
        return node.args[1].number
    return node.value if node.op in (Op.COLUMN, Op.INTEGRAL, Op.NODE_SUM) or not node.args else None
