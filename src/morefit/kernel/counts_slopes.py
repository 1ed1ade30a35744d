"""First derivatives of a model of counts, for ``counts_program.py``."""

from __future__ import annotations

from morefit.arrays import Integers
from morefit.kernel.counts_layout import (
    BENDS,
    BIN_CELLS,
    BIN_SLOPES,
    BINS,
    FACTORS,
    FLOATING_PLACES,
    GROUP_BINS,
    GROUP_PARAMETERS,
    GROUP_SAMPLES,
    GROUP_SLOPES,
    GROUPS,
    JACOBIAN,
    MULTIPLIERS,
    NORMS,
    OUT_FIRST,
    OWN,
    OWN_GROUPS,
    OWN_PARAMETERS,
    PARTS,
    ROW_BENT,
    ROW_BINS,
    ROW_SAMPLES,
    ROW_SCALARS,
    ROW_STEADY,
    ROWS,
    SAMPLE_SHIFTS,
    SAMPLES,
    SHAPES,
    SHARED,
    SHARED_PARAMETERS,
    SHARED_SCALARS,
    SHARED_SHAPES,
    SLOPES,
)
from morefit.kernel.counts_pieces import not_zero
from morefit.kernel.program import Vector, parallel


def differentiate(words: Integers, numbers: Vector, work: Vector) -> None:
    """Compute derivatives of rows, sums over samples of a bin, by the shared parameters."""
    samples = words[SAMPLES]
    scalars = words[FACTORS] + words[NORMS]
    shapes = words[SHAPES]
    for r in parallel(words[ROWS]):
        b = words[words[ROW_BINS] + r]
        row = words[ROW_SCALARS] + r * scalars
        steady = words[ROW_STEADY] + r * shapes
        bent = words[ROW_BENT] + r * shapes
        for i in range(scalars):
            work[row + i] = 0.0
        for k in range(shapes):
            work[steady + k] = 0.0
            work[bent + k] = 0.0
        for s in range(samples):
            if numbers[words[ROW_SAMPLES] + r * samples + s] > 0.0:
                part = work[words[PARTS] + b * samples + s]
                slopes = words[SLOPES] + (words[words[BIN_CELLS] + b] + s) * scalars
                for i in range(scalars):
                    work[row + i] += part * work[slopes + i]
                factor = work[words[MULTIPLIERS] + b * samples + s]
                shifts = words[SAMPLE_SHIFTS] + (b * samples + s) * 2 * shapes
                for k in range(shapes):
                    work[steady + k] += factor * numbers[shifts + k]
                for k in range(shapes):
                    work[bent + k] += factor * numbers[shifts + shapes + k]
        for a in range(words[SHARED]):
            i = words[words[SHARED_SCALARS] + a]
            k = words[words[SHARED_SHAPES] + a]
            slope = work[row + i] if i >= 0 else 0.0
            if k >= 0:
                slope += work[steady + k] + work[words[BENDS] + shapes + k] * work[bent + k]
            work[words[JACOBIAN] + r * words[SHARED] + a] = slope


def group_slope(words: Integers, numbers: Vector, point: Vector, work: Vector, q: int) -> float:
    """Return the derivative of the bin of a group by its parameter."""
    samples = words[SAMPLES]
    total = 0.0
    for s in range(samples):
        part = work[words[PARTS] + words[words[GROUP_BINS] + q] * samples + s]
        total += part * numbers[words[GROUP_SAMPLES] + q * samples + s]
    return total / not_zero(point[words[words[GROUP_PARAMETERS] + q]])


def add_gradient(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Subtract first derivatives by shared parameters and by those of groups."""
    for a in parallel(words[SHARED]):
        place = words[words[FLOATING_PLACES] + words[words[SHARED_PARAMETERS] + a]]
        if place >= 0:
            total = 0.0
            for b in range(words[BINS]):
                total += work[words[BIN_SLOPES] + b] * work[words[JACOBIAN] + b * words[SHARED] + a]
            out[words[OUT_FIRST] + 1 + place] -= total
    for q in parallel(words[GROUPS]):
        work[words[GROUP_SLOPES] + q] = group_slope(words, numbers, point, work, q)
    for d in parallel(words[OWN]):
        place = words[words[FLOATING_PLACES] + words[words[OWN_PARAMETERS] + d]]
        if place >= 0:
            for q in range(words[words[OWN_GROUPS] + d], words[words[OWN_GROUPS] + d + 1]):
                slope = work[words[BIN_SLOPES] + words[words[GROUP_BINS] + q]]
                out[words[OUT_FIRST] + 1 + place] -= slope * work[words[GROUP_SLOPES] + q]
