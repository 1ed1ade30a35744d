"""An expression as a line of text, as Python would write it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.expr.operations import COMPARISONS, Op
from morefit.expr.operations.record import (
    ADDS,
    COMPARES,
    MULTIPLIES,
    RAISES,
    STANDS_ALONE,
)
from morefit.expr.quadrature import axes_of
from morefit.expr.show.spell import (
    Fraction,
    Node,
    Piece,
    Slot,
    Spelling,
    as_term,
    commas,
    product_or_power,
    sides,
    sum_pieces,
    write,
)
from morefit.expr.symbol import Symbol


def to_text(expr: Node, limit: int | None = 2000, digits: int = 6) -> str:
    """Write an expression as Python would, with few parentheses.

    The text has about ``limit`` characters at most (None: as many as it takes, which for shared
    subexpressions can be exponentially many); inner parts that do not fit are written ``...``.
    Numbers have ``digits`` digits; 17 keep every bit.
    """

    def spell(slot: Slot, args: Sequence[Node], more: Sequence[str]) -> Spelling:
        return text_pieces(slot, args, more, digits)

    return write(expr, spell, ("(", ")"), "...", math.inf if limit is None else limit)


def number_text(number: float, digits: int) -> str:
    exact = repr(number).removesuffix(".0")
    return min(exact, f"{number:.{digits}g}", key=len)


def text_pieces(slot: Slot, args: Sequence[Node], more: Sequence[str], digits: int) -> Spelling:
    node = slot.node
    if node.op is Op.CONST:
        number = -node.number if slot.minus else node.number
        return MULTIPLIES if math.copysign(1.0, number) < 0 else STANDS_ALONE, [number_text(number, digits)]
    if not node.args or isinstance(node.value, Symbol):
        return STANDS_ALONE, [node.name]
    if node.op is Op.ADD:
        return sum_pieces(args, more)
    fraction = product_or_power(slot, args)
    if fraction:
        return text_fraction(slot, fraction, more, digits)
    if node.op is Op.POW:
        return RAISES, [Slot(node.args[0], STANDS_ALONE), "**", Slot(node.args[1], RAISES)]
    if node.op in COMPARISONS:
        left, right = sides(node)
        return COMPARES, [Slot(left, ADDS), f" {node.op.sign} ", Slot(right, ADDS)]
    inside = commas(node.args)
    if node.op in (Op.INTEGRAL, Op.NODE_SUM):
        inside = [Slot(node.args[0])]
        for axis in axes_of(node.value):
            inside.append(f", {axis.name}, {number_text(axis.low, digits)}, {number_text(axis.high, digits)}")
    return STANDS_ALONE, [f"{node.op.name.lower()}(", *inside, ")"]


def text_fraction(slot: Slot, fraction: Fraction, more: Sequence[str], digits: int) -> Spelling:
    """Write ``-2*a*b/(c*d**2)``."""
    if fraction.is_factor and not more:
        return STANDS_ALONE, [Slot(fraction.above[0], slot.floor)]
    pieces: list[Piece] = [fraction.sign]
    if fraction.shows_number(more):
        pieces.append(number_text(fraction.number, digits))
    for factor in fraction.above:
        pieces += ["*"] * (len(pieces) > 1)
        pieces.append(Slot(factor, as_term(factor, MULTIPLIES)))
    pieces += [f"*{dots}" if len(pieces) > 1 else dots for dots in more]
    if fraction.below:
        below: list[Piece] = []
        for base, power in fraction.below:
            below += ["*"] * bool(below)
            if power == 1.0:
                below.append(Slot(base, RAISES))
            else:
                below += [Slot(base, STANDS_ALONE), f"**{number_text(power, digits)}"]
        pieces += ["/(", *below, ")"] if len(fraction.below) > 1 else ["/", *below]
    return MULTIPLIES, pieces
