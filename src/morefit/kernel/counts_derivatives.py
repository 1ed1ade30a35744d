"""First and second derivatives of the likelihood of counts by shared parameters and by those of single bins, for ``counts_program.py``."""

from __future__ import annotations

from morefit.arrays import Integers
from morefit.kernel import counts_layout as at
from morefit.kernel.counts_layout import not_zero, triangle_place
from morefit.kernel.program import Vector, parallel


def square_slopes(words: Integers, work: Vector) -> None:
    """Sum products of first derivatives by shared parameters over bins, the lower triangle."""
    shared = words[at.SHARED]
    bins = words[at.BINS]
    for a in parallel(shared):
        row = words[at.HESSIAN] + a * shared
        for i in range(a + 1):
            work[row + i] = 0.0
        for half in range((bins + 1) // 2):  # two bins at a time, so that half as much is stored
            b = 2 * half
            other = min(b + 1, bins - 1)
            one = words[at.JACOBIAN] + b * shared
            two = words[at.JACOBIAN] + other * shared
            weight = work[words[at.BIN_CURVES] + b] * work[one + a]
            second = work[words[at.BIN_CURVES] + other] * work[two + a] if b < other else 0.0
            for i in range(a + 1):
                work[row + i] += weight * work[one + i] + second * work[two + i]


def weigh_cells(words: Integers, numbers: Vector, work: Vector) -> None:
    """Sum over the bins of each cell what second derivatives of expected counts multiply."""
    samples = words[at.SAMPLES]
    shapes = words[at.SHAPES]
    for cell in parallel(words[at.CELLS]):
        s = cell % samples
        goal = words[at.CELL_SHIFTS] + cell * shapes
        total = 0.0
        for k in range(shapes):
            work[goal + k] = 0.0
        for b in range(words[words[at.CELL_BINS] + 2 * cell], words[words[at.CELL_BINS] + 2 * cell + 1]):
            weight = work[words[at.BIN_BENDS] + b]
            total += weight * work[words[at.PARTS] + b * samples + s]
            weight *= work[words[at.MULTIPLIERS] + b * samples + s]
            shifts = words[at.SAMPLE_SHIFTS] + (b * samples + s) * 2 * shapes
            if weight != 0.0:
                for k in range(shapes):
                    bend = work[words[at.BENDS] + shapes + k]
                    work[goal + k] += weight * (numbers[shifts + k] + bend * numbers[shifts + shapes + k])
        work[words[at.CELL_WEIGHTS] + cell] = total


def mix(words: Integers, work: Vector) -> None:
    """Sum second derivatives of expected counts: by two factors, and by a shape and a factor."""
    scalars = words[at.FACTORS] + words[at.NORMS]
    for i in parallel(scalars):
        row = words[at.MIXED] + i * scalars
        for j in range(i + 1):
            work[row + j] = 0.0
        for cell in range(words[at.CELLS]):
            slopes = words[at.SLOPES] + cell * scalars
            weight = work[words[at.CELL_WEIGHTS] + cell] * work[slopes + i]
            if weight != 0.0:
                for j in range(i):
                    work[row + j] += weight * work[slopes + j]
            work[row + i] += work[words[at.CELL_WEIGHTS] + cell] * work[words[at.CURVES] + cell * scalars + i]
    for k in parallel(words[at.SHAPES]):
        row = words[at.CROSSED] + k * scalars
        for i in range(scalars):
            work[row + i] = 0.0
        for cell in range(words[at.CELLS]):
            slopes = words[at.SLOPES] + cell * scalars
            weight = work[words[at.CELL_SHIFTS] + cell * words[at.SHAPES] + k]
            if weight != 0.0:
                for i in range(scalars):
                    work[row + i] += weight * work[slopes + i]


def add_shared(words: Integers, work: Vector, out: Vector) -> None:
    """Subtract second derivatives by shared parameters, each of which may be a factor, a shape, or both."""
    scalars = words[at.FACTORS] + words[at.NORMS]
    shapes = words[at.SHAPES]
    for a in parallel(words[at.SHARED]):
        place = words[words[at.FLOATING_PLACES] + words[words[at.SHARED_PARAMETERS] + a]]
        i = words[words[at.SHARED_SCALARS] + a]
        k = words[words[at.SHARED_SHAPES] + a]
        for c in range(a + 1):
            other = words[words[at.FLOATING_PLACES] + words[words[at.SHARED_PARAMETERS] + c]]
            j = words[words[at.SHARED_SCALARS] + c]
            m = words[words[at.SHARED_SHAPES] + c]
            total = work[words[at.HESSIAN] + a * words[at.SHARED] + c]
            if i >= 0 and j >= 0:
                total += work[words[at.MIXED] + max(i, j) * scalars + min(i, j)]
            if k >= 0 and j >= 0:
                total += work[words[at.CROSSED] + k * scalars + j]
            if m >= 0 and i >= 0:
                total += work[words[at.CROSSED] + m * scalars + i]
            if k >= 0 and k == m:
                bent = 0.0
                for b in range(words[at.BINS]):
                    bent += work[words[at.BIN_BENDS] + b] * work[words[at.ROW_BENT] + b * shapes + k]
                total += work[words[at.BENDS] + 2 * shapes + k] * bent
            if place >= 0 and other >= 0:
                out[triangle_place(words, place, other)] -= total


def add_groups(words: Integers, point: Vector, work: Vector, out: Vector) -> None:
    """Subtract second derivatives by a parameter of groups and a shared one."""
    shared = words[at.SHARED]
    for d in parallel(words[at.OWN]):
        place = words[words[at.FLOATING_PLACES] + words[words[at.OWN_PARAMETERS] + d]]
        first = words[words[at.OWN_GROUPS] + d] if place >= 0 else words[words[at.OWN_GROUPS] + d + 1]
        for q in range(first, words[words[at.OWN_GROUPS] + d + 1]):
            b = words[words[at.GROUP_BINS] + q]
            steep = work[words[at.BIN_BENDS] + b] / not_zero(point[words[words[at.GROUP_PARAMETERS] + q]])
            weight = work[words[at.BIN_CURVES] + b] * work[words[at.GROUP_SLOPES] + q]
            row = words[at.JACOBIAN] + words[words[at.GROUP_ROWS] + q] * shared
            for a in range(shared):
                other = words[words[at.FLOATING_PLACES] + words[words[at.SHARED_PARAMETERS] + a]]
                total = steep * work[row + a] + weight * work[words[at.JACOBIAN] + b * shared + a]
                if other >= 0:
                    out[triangle_place(words, place, other)] -= total


def add_pairs(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Subtract second derivatives by parameters of groups of one bin."""
    samples = words[at.SAMPLES]
    for e in parallel(words[at.PAIRS]):
        for i in range(words[words[at.PAIR_GROUPS] + e], words[words[at.PAIR_GROUPS] + e + 1]):
            q = words[words[at.PAIR_MEMBERS] + 3 * i]
            r = words[words[at.PAIR_MEMBERS] + 3 * i + 1]
            b = words[words[at.GROUP_BINS] + q]
            slopes = work[words[at.GROUP_SLOPES] + q] * work[words[at.GROUP_SLOPES] + r]
            total = work[words[at.BIN_CURVES] + b] * slopes
            one = words[words[at.GROUP_PARAMETERS] + q]
            other = words[words[at.GROUP_PARAMETERS] + r]
            if words[words[at.PAIR_MEMBERS] + 3 * i + 2] > 0:
                common = 0.0
                for s in range(samples):
                    both = numbers[words[at.GROUP_SAMPLES] + q * samples + s]
                    both *= numbers[words[at.GROUP_SAMPLES] + r * samples + s]
                    common += both * work[words[at.PARTS] + b * samples + s]
                common /= not_zero(point[one]) * not_zero(point[other])
                total += work[words[at.BIN_BENDS] + b] * common
            place = words[words[at.FLOATING_PLACES] + one]
            place_of_other = words[words[at.FLOATING_PLACES] + other]
            if place >= 0 and place_of_other >= 0:
                out[triangle_place(words, place, place_of_other)] -= total


def differentiate(words: Integers, numbers: Vector, work: Vector) -> None:
    """Compute derivatives of rows, sums over samples of a bin, by the shared parameters."""
    samples = words[at.SAMPLES]
    scalars = words[at.FACTORS] + words[at.NORMS]
    shapes = words[at.SHAPES]
    for r in parallel(words[at.ROWS]):
        b = words[words[at.ROW_BINS] + r]
        row = words[at.ROW_SCALARS] + r * scalars
        steady = words[at.ROW_STEADY] + r * shapes
        bent = words[at.ROW_BENT] + r * shapes
        for i in range(scalars):
            work[row + i] = 0.0
        for k in range(shapes):
            work[steady + k] = 0.0
            work[bent + k] = 0.0
        for s in range(samples):
            if numbers[words[at.ROW_SAMPLES] + r * samples + s] > 0.0:
                part = work[words[at.PARTS] + b * samples + s]
                slopes = words[at.SLOPES] + (words[words[at.BIN_CELLS] + b] + s) * scalars
                for i in range(scalars):
                    work[row + i] += part * work[slopes + i]
                factor = work[words[at.MULTIPLIERS] + b * samples + s]
                shifts = words[at.SAMPLE_SHIFTS] + (b * samples + s) * 2 * shapes
                for k in range(shapes):
                    work[steady + k] += factor * numbers[shifts + k]
                for k in range(shapes):
                    work[bent + k] += factor * numbers[shifts + shapes + k]
        for a in range(words[at.SHARED]):
            i = words[words[at.SHARED_SCALARS] + a]
            k = words[words[at.SHARED_SHAPES] + a]
            slope = work[row + i] if i >= 0 else 0.0
            if k >= 0:
                slope += work[steady + k] + work[words[at.BENDS] + shapes + k] * work[bent + k]
            work[words[at.JACOBIAN] + r * words[at.SHARED] + a] = slope


def group_slope(words: Integers, numbers: Vector, point: Vector, work: Vector, q: int) -> float:
    """Return the derivative of the bin of a group by its parameter."""
    samples = words[at.SAMPLES]
    total = 0.0
    for s in range(samples):
        part = work[words[at.PARTS] + words[words[at.GROUP_BINS] + q] * samples + s]
        total += part * numbers[words[at.GROUP_SAMPLES] + q * samples + s]
    return total / not_zero(point[words[words[at.GROUP_PARAMETERS] + q]])


def add_gradient(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Subtract first derivatives by shared parameters and by those of groups."""
    for a in parallel(words[at.SHARED]):
        place = words[words[at.FLOATING_PLACES] + words[words[at.SHARED_PARAMETERS] + a]]
        if place >= 0:
            total = 0.0
            for b in range(words[at.BINS]):
                total += work[words[at.BIN_SLOPES] + b] * work[words[at.JACOBIAN] + b * words[at.SHARED] + a]
            out[words[at.OUT_FIRST] + 1 + place] -= total
    for q in parallel(words[at.GROUPS]):
        work[words[at.GROUP_SLOPES] + q] = group_slope(words, numbers, point, work, q)
    for d in parallel(words[at.OWN]):
        place = words[words[at.FLOATING_PLACES] + words[words[at.OWN_PARAMETERS] + d]]
        if place >= 0:
            for q in range(words[words[at.OWN_GROUPS] + d], words[words[at.OWN_GROUPS] + d + 1]):
                slope = work[words[at.BIN_SLOPES] + words[words[at.GROUP_BINS] + q]]
                out[words[at.OUT_FIRST] + 1 + place] -= slope * work[words[at.GROUP_SLOPES] + q]
