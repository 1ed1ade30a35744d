"""Spell an expression breadth first into text that folds where it grows too long."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from morefit.expr.operations import SYMMETRIC, Op, Operation
from morefit.expr.operations.record import ADDS, COMPARES, MULTIPLIES

MANY = 1 << 30  # arguments: all of them


class Node(Protocol):
    """What these files need of an expression; node.py imports them, so they cannot import Expr itself."""

    @property
    def op(self) -> Operation: ...
    @property
    def args(self) -> Sequence[Node]: ...
    @property
    def value(self) -> object: ...
    @property
    def name(self) -> str: ...
    @property
    def number(self) -> float: ...


class Slot:
    """A place in the text where a node will stand; it is dots until ``pieces`` is filled."""

    __slots__ = ("floor", "minus", "node", "pieces")

    def __init__(self, node: Node, floor: int = COMPARES, minus: bool = False) -> None:
        self.node = node
        self.floor = floor  # the least binding that needs no parentheses
        self.minus = minus  # write the negative of the node, whose sign stands in front already
        self.pieces: list[Piece] | None = None


Piece = str | Slot
Spelling = tuple[int, list[Piece]]  # how tightly the text binds, and its pieces
# slot, arguments to show, what follows them
Spell = Callable[[Slot, Sequence[Node], Sequence[str]], Spelling]


def write(node: Node, spell: Spell, brackets: tuple[str, str], dots: str, limit: float) -> str:
    """Spell a node breadth first until the text is full: what does not fit any more is left as dots."""

    def pieces_of(slot: Slot, shown: int) -> list[Piece]:
        """Spell a slot and the leaves right below it, showing a number of arguments of a sum or product."""
        args = slot.node.args
        binding, pieces = spell(slot, args[:shown], () if shown >= len(args) else (dots,))
        for i, piece in enumerate(pieces):
            if isinstance(piece, Slot) and not piece.node.args:
                pieces[i] = "".join(map(str, pieces_of(piece, 0)))
        return [brackets[0], *pieces, brackets[1]] if binding < slot.floor else pieces

    root = Slot(node)
    queue, length = deque([root]), len(dots)
    while queue:
        slot = queue.popleft()
        room = limit - length + len(dots)
        count = len(slot.node.args) if slot.node.op in (Op.ADD, Op.MUL) else 0
        for shown in sizes(count, room):
            pieces = pieces_of(slot, shown)
            cost = sum(len(p) if isinstance(p, str) else len(dots) for p in pieces)
            if cost <= room:
                break
        if cost <= room or slot is root:
            slot.pieces = pieces
            length += cost - len(dots)
            queue.extend(p for p in pieces if isinstance(p, Slot))
    return join(root, dots)


def sizes(count: int, room: float) -> Iterator[int]:
    """Yield how many of the arguments to try to show: all where they may fit, then fewer and fewer."""
    if 4 * count <= room or count < 2:  # a name and a sign take four characters
        yield count or MANY
    shown = int(min(count, room // 12))  # a small product, a sign
    while shown > 0:
        yield shown
        shown //= 2
    if count > 1:
        yield 1


def join(root: Slot, dots: str) -> str:
    texts: list[str] = []
    stack: list[Piece] = [root]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            texts.append(piece)
        elif piece.pieces is None:
            texts.append(dots)
        else:
            stack += reversed(piece.pieces)
    return "".join(texts)


def is_negative(node: Node) -> bool:
    """Return whether the text of a node starts with a minus sign that can be taken off."""
    first = node.args[0] if node.op is Op.MUL and node.args else node
    return first.op is Op.CONST and math.copysign(1.0, first.number) < 0


def as_term(node: Node, floor: int) -> int:
    """Return how tightly a part of a sum or product must bind: one that starts with a minus sign, more."""
    signed = node.args if node.op is Op.ADD else (node,)
    return floor + 1 if all(map(is_negative, signed)) else floor


def sum_pieces(args: Iterable[Node], more: Sequence[str]) -> Spelling:
    """Write ``a + b - c``, what is added before what is taken away."""
    pieces: list[Piece] = []
    for node in sorted(args, key=is_negative):
        minus = is_negative(node)
        pieces.append((" - " if minus else " + ") if pieces else ("-" if minus else ""))
        pieces.append(
            Slot(node, MULTIPLIES if minus else as_term(node, ADDS) if len(pieces) > 1 else ADDS, minus)
        )
    return ADDS, pieces + [f" + {dots}" for dots in more]


class Fraction:
    """A product taken apart: sign, number, factors above and (base, power) below the line."""

    def __init__(self, slot: Slot, args: Sequence[Node]) -> None:
        factors = list(args)
        self.number = factors.pop(0).number if factors and factors[0].op is Op.CONST else 1.0
        self.number = -self.number if slot.minus else self.number
        self.sign = "-" if math.copysign(1.0, self.number) < 0 else ""
        self.number = abs(self.number)
        self.above = sorted(
            (f for f in factors if not is_inverse(f)), key=lambda f: not starts_with_number(f)
        )
        self.below = [(f.args[0], -f.args[1].number) for f in factors if is_inverse(f)]

    @property
    def is_factor(self) -> bool:
        """Return whether only one factor is left, as of -1 * x without its sign."""
        return not (self.below or self.sign or self.number != 1.0) and len(self.above) == 1

    def shows_number(self, more: Sequence[str]) -> bool:
        return self.number != 1.0 or not (self.above or more)


def starts_with_number(node: Node) -> bool:
    return (node.args[0] if node.op in (Op.POW, Op.MUL) and node.args else node).op is Op.CONST


def is_inverse(node: Node) -> bool:
    return node.op is Op.POW and node.args[1].op is Op.CONST and node.args[1].number < 0


def product_or_power(slot: Slot, args: Sequence[Node]) -> Fraction | None:
    """Take a product or a negative power apart; None for any other operation."""
    if slot.node.op is Op.MUL:
        return Fraction(slot, args)
    return Fraction(Slot(slot.node), (slot.node,)) if is_inverse(slot.node) else None


def sides(node: Node) -> Sequence[Node]:
    """Return the two sides of a comparison; where their order means nothing, a number stands on the right."""
    turned = node.op in SYMMETRIC and node.args[0].op is Op.CONST
    return tuple(reversed(node.args)) if turned else node.args


def commas(args: Iterable[Node]) -> list[Piece]:
    pieces: list[Piece] = []
    for arg in args:
        pieces += [", ", Slot(arg)] if pieces else [Slot(arg)]
    return pieces
