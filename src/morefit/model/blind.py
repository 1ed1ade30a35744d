"""Hidden offsets and scales of blinded parameters: computed from a phrase where the graph is built, a number in no text."""

from __future__ import annotations

import hashlib
import math

import numpy as np

from morefit.expr import HIDDEN, Expr, Op, Table, const, evaluate, lookup

SHARE = 0.1  # of the range of a parameter: the largest offset
MAX_CHANGE = 0.5  # of a scale from one
MAX_ANGLE = 1000.0
WAYS = ("offset", "scale")  # to hide a value
Numbers = tuple[float, float, float]  # start, low and high of a parameter


def true_value(shown: Expr, phrase: str, by: str, numbers: Numbers) -> Expr:
    """Return the true value that belongs to a shown one: plus a hidden offset, or times a hidden scale.

    Nothing folds these into numbers: they are a size times the sine of a hidden angle, plus one for a scale. The angle is that
    of the first draw with which the true start lies inside the limits. Every number that is visible in code enters the
    hash, so that two offsets of one phrase are independent of each other.
    """
    start, low, high = numbers
    size = largest_offset(numbers) if by == "offset" else largest_change(numbers)
    draw, true_start = 0, math.nan
    while not low <= true_start <= high:
        text = f"{phrase} {size.hex()} {draw}{' scale' * (by == 'scale')}".encode()
        angle = int.from_bytes(hashlib.sha256(text).digest()[:6], "big") / 2**48 * MAX_ANGLE
        change = size * math.sin(angle)
        draw, true_start = draw + 1, start + change if by == "offset" else start * (1 + change)
    hidden = const(size) * Op.SIN(lookup(Table(f"{HIDDEN} angle", np.array([angle]).tobytes()), 0))
    return shown + hidden if by == "offset" else shown * (1 + hidden)


def unblinded_value(shown: float, phrase: str, by: str, numbers: Numbers) -> float:
    """Return the true value that belongs to a shown one as a number."""
    return float(evaluate(true_value(const(shown), phrase, by, numbers), {}))


def largest_offset(numbers: Numbers) -> float:
    """Return a tenth of the range between limits; without them the power of ten below the start value, or one."""
    start, low, high = numbers
    if math.isfinite(high - low):
        return SHARE * (high - low)
    return 10.0 ** math.floor(math.log10(abs(start)) - 1) if start else 1.0


def largest_change(numbers: Numbers) -> float:
    """Return a half, or less where that would change the start value by more than a tenth of the range between limits."""
    start, low, high = numbers
    return min(MAX_CHANGE, SHARE * (high - low) / abs(start)) if start else MAX_CHANGE


def phrase_digest(phrase: str) -> str:
    """Return what tells whether a phrase is the right one."""
    return hashlib.sha256(f"morefit blind {phrase}".encode()).hexdigest()[:16]
