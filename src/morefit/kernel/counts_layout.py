"""The table of a model of counts: sizes, indices, where its arrays begin, and what several steps compute of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from hashlib import sha256
from math import log

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.kernel.program import Vector

TINY = 1e-100  # in the place of a factor of zero: products of some are not zero, so that quotients are exact
NOTHING = 1e-80  # expected counts below this are zero
GAUSSIAN, COUNTED = range(2)  # kinds of constraints
FAR = 0.01  # EDM: farther away, a Hessian with negative curvature is replaced by one without
LINEAR = 3  # an order: second derivatives of expected counts are left out of the Hessian

# sizes
(
    ORDER, FLOATING, PARAMETERS, MEASURED, BINS, SAMPLES, CELLS, FACTORS, NORMS, SHAPES, SHARED, ROWS, GROUPS,
    OWN, PAIRS, TERMS, SMOOTH_NORMS, SMOOTH_SHAPES, OUTPUTS, OUT_FIRST, RESULTS,
    INNER, OUTER, BLOCKS, WIDEST, OVERLAPS,  # eliminated parameters and others; blocks, and parameters of the largest
    # indices: where they begin among the words
    FLOATING_PLACES,  # (parameters) among those that have derivatives, or -1
    FACTOR_PARAMETERS, NORM_PARAMETERS, SHAPE_PARAMETERS, SHARED_PARAMETERS,
    SHARED_SCALARS, SHARED_SHAPES,  # (shared) which factor or norm, and which shape, a parameter is, or -1
    BIN_CELLS,  # (bins) the first cell of its channel; a cell is a sample of a channel
    CELL_BINS,  # (cells, 2) the first bin of its channel, and one past the last
    BIN_GROUPS, GROUPS_OF_BINS,  # (bins + 1), where the groups of each begin in this list
    GROUP_PARAMETERS, GROUP_BINS, GROUP_ROWS,
    ROW_BINS,
    OWN_PARAMETERS, OWN_GROUPS,  # (own), (own + 1): parameters of groups, and where the groups of each begin
    PAIR_GROUPS, PAIR_MEMBERS,  # (pairs + 1), (members, 3): two groups, and whether they have samples in common
    TERM_PARAMETERS, TERM_PARTS, TERM_KINDS, TERM_PLACES,  # (terms), (terms + 1), and for each constraint
    INNER_GROUPS, INNER_TERMS, BLOCK_FIRST, BLOCK_BINS,  # (inner), (inner), (blocks + 1), (blocks)
    # the model: where it begins among the numbers
    NOMINAL, USED, LOGS, COEFFICIENTS, SHIFTS, SAMPLE_SHIFTS, ROW_SAMPLES, GROUP_SAMPLES, TERM_NUMBERS,
    INNER_STARTS, INNER_LIMITS,
    # the work: where it begins
    BENDS, PRODUCTS, NORM_VALUES, SLOPES, CURVES, CONTENT, MULTIPLIERS, PARTS, EXPECTED, TERM_VALUES, TERM_BAD,
    BIN_TERMS, BIN_BAD, BIN_SLOPES, BIN_BENDS, BIN_CURVES, ROW_SCALARS, ROW_STEADY, ROW_BENT, JACOBIAN, GROUP_SLOPES,
    HESSIAN, CELL_WEIGHTS, CELL_SHIFTS, MIXED, CROSSED,
    INNER_SLOPES, INNER_PINNED, INNER_GRADIENT, INNER_ERRORS, INNER_STEPS, INNER_OLD, INNER_ROWS, BLOCK_VALUES, BLOCK_SHARES,
    BLOCK_ACTIVE, BLOCK_MATRICES, BLOCK_EXACT, CHOLESKY, STRAIGHT, SUMS, WORK,
) = range(106)  # fmt: skip

Arrays = Mapping[int, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]


@dataclass(frozen=True, eq=False)
class CountsTable:
    """A model of counts as the program of ``counts_program.py`` reads it."""

    words: Integers
    numbers: Array
    spare: list[object] = field(default_factory=list)  # what a backend keeps from one call to the next

    @classmethod
    def empty(cls) -> CountsTable:
        """Return the table of no model."""
        return cls(np.zeros(WORK + 1, np.int64), np.empty(0))

    def extended(
        self, sizes: Mapping[int, int], indices: Arrays, model: Arrays, work: Mapping[int, int]
    ) -> CountsTable:
        """Return the same model with more sizes and arrays, after those that it has; ``work`` are sizes as well."""
        words, numbers = [self.words.copy()], [self.numbers]
        header = words[0]
        for word, size in sizes.items():
            header[word] = size
        for word, array in indices.items():
            header[word] = sum(map(len, words))
            words.append(np.asarray(array, np.int64).ravel())
        for word, array in model.items():
            header[word] = sum(map(len, numbers))
            numbers.append(np.asarray(array, np.float64).ravel())
        for word, size in work.items():
            header[word], header[WORK] = header[WORK], header[WORK] + size
        return CountsTable(np.concatenate(words), np.concatenate(numbers))

    def changing(self, sizes: Mapping[int, int], places: Integers) -> CountsTable:
        """Return the same model with other sizes, and other places of parameters among those that have derivatives."""
        words = self.words.copy()
        for word, size in sizes.items():
            words[word] = size
        first = words[FLOATING_PLACES]
        words[first : first + len(places)] = places
        return CountsTable(words, self.numbers)

    @cached_property
    def digest(self) -> bytes:
        """A digest of all of it."""
        return sha256(self.words.tobytes() + self.numbers.tobytes()).digest()

    @property
    def integrals(self) -> tuple[()]:
        """No numerical integrals, which other sums may have."""
        return ()

    @property
    def point_size(self) -> int:
        """How many numbers a point has."""
        return int(self.words[[PARAMETERS, MEASURED, BINS]].sum())

    @property
    def outputs(self) -> int:
        return int(self.words[RESULTS])

    @property
    def work_size(self) -> int:
        return int(self.words[WORK])


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
