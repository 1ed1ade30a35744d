"""An expression as a graph for Graphviz."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from typing import Literal

from morefit.dataclass import dataclass
from morefit.expr.operations import Op
from morefit.expr.quadrature import axes_of
from morefit.expr.show.spell import Node
from morefit.expr.show.text import number_text
from morefit.expr.symbol import Symbol

Kind = Literal["nothing", "parameters", "event", "both"]

COLOURS: dict[Kind, str] = {
    "nothing": "#e0e0e0",
    "parameters": "#ffc8c8",
    "event": "#c8dcff",
    "both": "#ffffff",
}
KINDS: tuple[Kind, ...] = ("nothing", "parameters", "event", "both")
OF_LEAF = {Op.SCALAR: 1, Op.COLUMN: 2}  # bits of the place in KINDS


@dataclass(frozen=True)
class Box:
    """A node as it is drawn: what is written in it, its colour, and arrows to others by number."""

    text: str
    kind: Kind
    arrows: tuple[tuple[int, str], ...]  # to which box, and what stands beside the arrow
    hidden: int = 0  # arguments that are not drawn
    framed: bool = False


def dot_text(boxes: Iterable[Box], title: str) -> str:
    """Write boxes and arrows as Graphviz text."""
    lines = ["digraph expression {", "  ordering=out; rankdir=TB;"]
    lines += [f"  label={quote(title)}; labelloc=t;"] * bool(title)
    lines.append('  node [shape=box, style="rounded,filled", fontname="Helvetica"];')
    for i, box in enumerate(boxes):
        frame = ", peripheries=2" * box.framed
        lines.append(f"  n{i} [label={quote(box.text)}, fillcolor={quote(COLOURS[box.kind])}{frame}];")
        lines += [f"  n{i} -> n{k}{f' [label={quote(beside)}]' * bool(beside)};" for k, beside in box.arrows]
        if box.hidden:
            lines.append(f'  n{i} -> cut{i}; cut{i} [label="...", shape=plaintext, style=""];')
        if box.hidden > 1:
            lines.append(f"  // and {box.hidden - 1} more arguments")
    return "\n".join([*lines, "}"]) + "\n"


def to_dot(*exprs: Node, limit: int = 1000) -> str:
    """Draw graphs as Graphviz text, each shared node once.

    What depends on parameters only is light red, on the event only light blue, on neither grey. At most ``limit`` nodes
    are drawn, those nearest to the expressions; the rest is dots.
    """
    kinds = {node: KINDS[bits] for node, bits in dependence(exprs).items()}
    number = {node: i for i, node in enumerate(nearest(exprs, limit))}
    boxes = []
    for node in number:
        drawn = [*takewhile(number.__contains__, node.args)]
        arrows = tuple((number[arg], "") for arg in drawn)
        boxes.append(Box(label(node), kinds[node], arrows, len(node.args) - len(drawn)))
    return dot_text(boxes, "")


def label(node: Node) -> str:
    if node.op is Op.CONST:
        return number_text(node.number, 6)
    if node.op in (Op.INTEGRAL, Op.NODE_SUM):
        return "integral over " + ", ".join(axis.name for axis in axes_of(node.value))
    if not node.args or isinstance(node.value, Symbol):
        return node.name
    return node.op.sign or node.op.name.lower()


def quote(text: str) -> str:
    return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'


def nearest(roots: Iterable[Node], limit: int) -> list[Node]:
    """Return the nodes nearest to the roots, breadth first."""
    near = dict.fromkeys(roots)
    queue = deque(near)
    while queue:
        for arg in queue.popleft().args:
            if len(near) >= limit:
                return list(near)
            if arg not in near:
                near[arg] = None
                queue.append(arg)
    return list(near)


def dependence(roots: Iterable[Node]) -> dict[Node, int]:
    """Return for every node whether parameters (1) and events (2) enter; an integral binds its columns."""
    bits: dict[Node, int] = {}
    stack = list(roots)
    while stack:
        node = stack[-1]
        missing = [] if node in bits else [arg for arg in node.args if arg not in bits]
        if missing:
            stack += missing
            continue
        stack.pop()
        mask = OF_LEAF.get(node.op, 0)
        for arg in node.args:
            mask |= bits[arg]
        bits[node] = mask & 1 if node.op is Op.INTEGRAL else mask
    return bits
