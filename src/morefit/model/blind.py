"""Hidden offsets of blinded parameters: computed from a phrase where the graph is built, a number in no text."""

from __future__ import annotations

import hashlib
import math

import numpy as np

from morefit.expr import HIDDEN, Expr, Op, Table, const, evaluate, lookup

SHARE = 0.1  # of the range of a parameter: the largest offset
MAX_ANGLE = 1000.0
Numbers = tuple[float, float, float]  # start, low and high of a parameter


def hidden_offset(phrase: str, numbers: Numbers) -> Expr:
    """Return the offset as an expression that nothing folds into a number: a size times the sine of a hidden angle.

    The angle is that of the first draw with which the true start lies inside the limits. Every number that is visible
    in code enters the hash, so that two offsets of one phrase are independent of each other.
    """
    start, low, high = numbers
    size = largest_offset(numbers)
    draw, offset = 0, math.nan
    while not low <= start + offset <= high:
        text = f"{phrase} {size.hex()} {draw}".encode()
        angle = int.from_bytes(hashlib.sha256(text).digest()[:6], "big") / 2**48 * MAX_ANGLE
        draw, offset = draw + 1, size * math.sin(angle)
    return const(size) * Op.SIN(lookup(Table(f"{HIDDEN} angle", np.array([angle]).tobytes()), 0))


def offset_of(phrase: str, numbers: Numbers) -> float:
    """Return the offset as a number."""
    return float(evaluate(hidden_offset(phrase, numbers), {}))


def largest_offset(numbers: Numbers) -> float:
    """Return a tenth of the range between limits; without them the power of ten below the start value, or one."""
    start, low, high = numbers
    if math.isfinite(high - low):
        return SHARE * (high - low)
    return 10.0 ** math.floor(math.log10(abs(start)) - 1) if start else 1.0


def phrase_digest(phrase: str) -> str:
    """Return what tells whether a phrase is the right one."""
    return hashlib.sha256(f"morefit blind {phrase}".encode()).hexdigest()[:16]
