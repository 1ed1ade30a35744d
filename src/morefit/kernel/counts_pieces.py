"""Functions that several steps of ``counts_program.py`` need: places, factors, and constraints of single parameters."""

from __future__ import annotations

from math import log

from morefit.arrays import Integers
from morefit.kernel.counts_layout import (
    FLOATING,
    GAUSSIAN,
    OUT_FIRST,
    PARAMETERS,
    TERM_KINDS,
    TERM_NUMBERS,
    TERM_PARTS,
    TERM_PLACES,
    TINY,
)
from morefit.kernel.program import Vector

VALUE, SLOPE, CURVE, BAD = range(4)  # what is computed of a constraint


def not_zero(x: float) -> float:
    """Return a factor that can be divided by."""
    return TINY if abs(x) < TINY else x


def triangle_place(words: Integers, i: int, j: int) -> int:
    """Return the place of a second derivative among the outputs."""
    high = max(i, j)
    return int(words[OUT_FIRST] + 1 + words[FLOATING] + high * (high + 1) // 2 + min(i, j))


def constraint_of(words: Integers, numbers: Vector, point: Vector, t: int, x: float, what: int) -> float:
    """Return what the constraints of a parameter add, or one of the first two derivatives, or how many are impossible."""
    total = 0.0
    for i in range(words[words[TERM_PARTS] + t], words[words[TERM_PARTS] + t + 1]):
        measured = point[words[PARAMETERS] + words[words[TERM_PLACES] + i]]
        number = numbers[words[TERM_NUMBERS] + i]
        if words[words[TERM_KINDS] + i] == GAUSSIAN:
            total += gaussian_term(x - measured, number, what)
        elif x > 0.0:
            total += count_term(x, measured, number, what)
        elif what == SLOPE:
            total += number
        elif what == BAD and (x < 0.0 or measured > 0.0):
            total += 1.0
    return total


def gaussian_term(away: float, precision: float, what: int) -> float:
    """Return half the square of a distance in errors, or a derivative."""
    if what == VALUE:
        return 0.5 * away * away * precision
    return away * precision if what == SLOPE else precision if what == CURVE else 0.0


def count_term(x: float, n: float, factor: float, what: int) -> float:
    """Return minus the logarithm of the probability of a count, relative to expecting it, or a derivative."""
    if what == VALUE:
        return factor * x - n - (n * log(factor * x / n) if n > 0.0 else 0.0)
    return factor - n / x if what == SLOPE else n / (x * x) if what == CURVE else 0.0
