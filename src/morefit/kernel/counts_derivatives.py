"""First and second derivatives of the likelihood of counts by shared parameters and by those of single bins, for ``counts_program.py``."""

from __future__ import annotations

from morefit.arrays import Integers
from morefit.kernel.counts_layout import (
    BENDS,
    BIN_BENDS,
    BIN_CELLS,
    BIN_CURVES,
    BIN_SLOPES,
    BINS,
    CELL_BINS,
    CELL_SHIFTS,
    CELL_WEIGHTS,
    CELLS,
    CROSSED,
    CURVES,
    FACTORS,
    FLOATING_PLACES,
    GROUP_BINS,
    GROUP_PARAMETERS,
    GROUP_ROWS,
    GROUP_SAMPLES,
    GROUP_SLOPES,
    GROUPS,
    HESSIAN,
    JACOBIAN,
    MIXED,
    MULTIPLIERS,
    NORMS,
    OUT_FIRST,
    OWN,
    OWN_GROUPS,
    OWN_PARAMETERS,
    PAIR_GROUPS,
    PAIR_MEMBERS,
    PAIRS,
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
    not_zero,
    triangle_place,
)
from morefit.kernel.program import Vector, parallel


def square_slopes(words: Integers, work: Vector) -> None:
    """Sum products of first derivatives by shared parameters over bins, the lower triangle."""
    shared = words[SHARED]
    bins = words[BINS]
    for a in parallel(shared):
        row = words[HESSIAN] + a * shared
        for i in range(a + 1):
            work[row + i] = 0.0
        for half in range((bins + 1) // 2):  # two bins at a time, so that half as much is stored
            b = 2 * half
            other = min(b + 1, bins - 1)
            one = words[JACOBIAN] + b * shared
            two = words[JACOBIAN] + other * shared
            weight = work[words[BIN_CURVES] + b] * work[one + a]
            second = work[words[BIN_CURVES] + other] * work[two + a] if b < other else 0.0
            for i in range(a + 1):
                work[row + i] += weight * work[one + i] + second * work[two + i]


def weigh_cells(words: Integers, numbers: Vector, work: Vector) -> None:
    """Sum over the bins of each cell what second derivatives of expected counts multiply."""
    samples = words[SAMPLES]
    shapes = words[SHAPES]
    for cell in parallel(words[CELLS]):
        s = cell % samples
        goal = words[CELL_SHIFTS] + cell * shapes
        total = 0.0
        for k in range(shapes):
            work[goal + k] = 0.0
        for b in range(words[words[CELL_BINS] + 2 * cell], words[words[CELL_BINS] + 2 * cell + 1]):
            weight = work[words[BIN_BENDS] + b]
            total += weight * work[words[PARTS] + b * samples + s]
            weight *= work[words[MULTIPLIERS] + b * samples + s]
            shifts = words[SAMPLE_SHIFTS] + (b * samples + s) * 2 * shapes
            if weight != 0.0:
                for k in range(shapes):
                    bend = work[words[BENDS] + shapes + k]
                    work[goal + k] += weight * (numbers[shifts + k] + bend * numbers[shifts + shapes + k])
        work[words[CELL_WEIGHTS] + cell] = total


def mix(words: Integers, work: Vector) -> None:
    """Sum second derivatives of expected counts: by two factors, and by a shape and a factor."""
    scalars = words[FACTORS] + words[NORMS]
    for i in parallel(scalars):
        row = words[MIXED] + i * scalars
        for j in range(i + 1):
            work[row + j] = 0.0
        for cell in range(words[CELLS]):
            slopes = words[SLOPES] + cell * scalars
            weight = work[words[CELL_WEIGHTS] + cell] * work[slopes + i]
            if weight != 0.0:
                for j in range(i):
                    work[row + j] += weight * work[slopes + j]
            work[row + i] += work[words[CELL_WEIGHTS] + cell] * work[words[CURVES] + cell * scalars + i]
    for k in parallel(words[SHAPES]):
        row = words[CROSSED] + k * scalars
        for i in range(scalars):
            work[row + i] = 0.0
        for cell in range(words[CELLS]):
            slopes = words[SLOPES] + cell * scalars
            weight = work[words[CELL_SHIFTS] + cell * words[SHAPES] + k]
            if weight != 0.0:
                for i in range(scalars):
                    work[row + i] += weight * work[slopes + i]


def add_shared(words: Integers, work: Vector, out: Vector) -> None:
    """Subtract second derivatives by shared parameters, each of which may be a factor, a shape, or both."""
    scalars = words[FACTORS] + words[NORMS]
    shapes = words[SHAPES]
    for a in parallel(words[SHARED]):
        place = words[words[FLOATING_PLACES] + words[words[SHARED_PARAMETERS] + a]]
        i = words[words[SHARED_SCALARS] + a]
        k = words[words[SHARED_SHAPES] + a]
        for c in range(a + 1):
            other = words[words[FLOATING_PLACES] + words[words[SHARED_PARAMETERS] + c]]
            j = words[words[SHARED_SCALARS] + c]
            m = words[words[SHARED_SHAPES] + c]
            total = work[words[HESSIAN] + a * words[SHARED] + c]
            if i >= 0 and j >= 0:
                total += work[words[MIXED] + max(i, j) * scalars + min(i, j)]
            if k >= 0 and j >= 0:
                total += work[words[CROSSED] + k * scalars + j]
            if m >= 0 and i >= 0:
                total += work[words[CROSSED] + m * scalars + i]
            if k >= 0 and k == m:
                bent = 0.0
                for b in range(words[BINS]):
                    bent += work[words[BIN_BENDS] + b] * work[words[ROW_BENT] + b * shapes + k]
                total += work[words[BENDS] + 2 * shapes + k] * bent
            if place >= 0 and other >= 0:
                out[triangle_place(words, place, other)] -= total


def add_groups(words: Integers, point: Vector, work: Vector, out: Vector) -> None:
    """Subtract second derivatives by a parameter of groups and a shared one."""
    shared = words[SHARED]
    for d in parallel(words[OWN]):
        place = words[words[FLOATING_PLACES] + words[words[OWN_PARAMETERS] + d]]
        first = words[words[OWN_GROUPS] + d] if place >= 0 else words[words[OWN_GROUPS] + d + 1]
        for q in range(first, words[words[OWN_GROUPS] + d + 1]):
            b = words[words[GROUP_BINS] + q]
            steep = work[words[BIN_BENDS] + b] / not_zero(point[words[words[GROUP_PARAMETERS] + q]])
            weight = work[words[BIN_CURVES] + b] * work[words[GROUP_SLOPES] + q]
            row = words[JACOBIAN] + words[words[GROUP_ROWS] + q] * shared
            for a in range(shared):
                other = words[words[FLOATING_PLACES] + words[words[SHARED_PARAMETERS] + a]]
                total = steep * work[row + a] + weight * work[words[JACOBIAN] + b * shared + a]
                if other >= 0:
                    out[triangle_place(words, place, other)] -= total


def add_pairs(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Subtract second derivatives by parameters of groups of one bin."""
    samples = words[SAMPLES]
    for e in parallel(words[PAIRS]):
        for i in range(words[words[PAIR_GROUPS] + e], words[words[PAIR_GROUPS] + e + 1]):
            q = words[words[PAIR_MEMBERS] + 3 * i]
            r = words[words[PAIR_MEMBERS] + 3 * i + 1]
            b = words[words[GROUP_BINS] + q]
            slopes = work[words[GROUP_SLOPES] + q] * work[words[GROUP_SLOPES] + r]
            total = work[words[BIN_CURVES] + b] * slopes
            one = words[words[GROUP_PARAMETERS] + q]
            other = words[words[GROUP_PARAMETERS] + r]
            if words[words[PAIR_MEMBERS] + 3 * i + 2] > 0:
                common = 0.0
                for s in range(samples):
                    both = numbers[words[GROUP_SAMPLES] + q * samples + s]
                    both *= numbers[words[GROUP_SAMPLES] + r * samples + s]
                    common += both * work[words[PARTS] + b * samples + s]
                common /= not_zero(point[one]) * not_zero(point[other])
                total += work[words[BIN_BENDS] + b] * common
            place = words[words[FLOATING_PLACES] + one]
            place_of_other = words[words[FLOATING_PLACES] + other]
            if place >= 0 and place_of_other >= 0:
                out[triangle_place(words, place, place_of_other)] -= total


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
