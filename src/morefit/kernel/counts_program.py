"""The likelihood of counts that are sums of samples with modifiers, and its derivatives, in the language of drivers.

One program serves all models: sizes, indices and places of arrays are in a table of whole numbers (``words``), the model
itself in ``numbers``. A ``point`` has all parameters, what constraints measured, and the counts. The sums are those of a
log likelihood: value, gradient, lower triangle of the Hessian, and the number of bins without a probability.
"""

from __future__ import annotations

from math import exp, log

from morefit.arrays import Integers
from morefit.kernel.counts_hessian import (
    add_groups,
    add_pairs,
    add_shared,
    mix,
    not_zero,
    square_slopes,
    triangle_place,
    weigh_cells,
)
from morefit.kernel.counts_layout import (
    BENDS,
    BIN_BAD,
    BIN_BENDS,
    BIN_CELLS,
    BIN_CURVES,
    BIN_GROUPS,
    BIN_SLOPES,
    BIN_TERMS,
    BINS,
    CELLS,
    COEFFICIENTS,
    CONTENT,
    CURVES,
    EXPECTED,
    FACTOR_PARAMETERS,
    FACTORS,
    FLOATING_PLACES,
    GAUSSIAN,
    GROUP_BINS,
    GROUP_PARAMETERS,
    GROUP_SAMPLES,
    GROUP_SLOPES,
    GROUPS,
    GROUPS_OF_BINS,
    JACOBIAN,
    LINEAR,
    LOGS,
    MEASURED,
    MULTIPLIERS,
    NOMINAL,
    NORM_PARAMETERS,
    NORM_VALUES,
    NORMS,
    NOTHING,
    ORDER,
    OUTPUTS,
    OWN,
    OWN_GROUPS,
    OWN_PARAMETERS,
    PARAMETERS,
    PARTS,
    PRODUCTS,
    ROW_BENT,
    ROW_BINS,
    ROW_SAMPLES,
    ROW_SCALARS,
    ROW_STEADY,
    ROWS,
    SAMPLE_SHIFTS,
    SAMPLES,
    SHAPE_PARAMETERS,
    SHAPES,
    SHARED,
    SHARED_PARAMETERS,
    SHARED_SCALARS,
    SHARED_SHAPES,
    SHIFTS,
    SLOPES,
    SMOOTH_NORMS,
    SMOOTH_SHAPES,
    TERM_BAD,
    TERM_KINDS,
    TERM_NUMBERS,
    TERM_PARAMETERS,
    TERM_PARTS,
    TERM_PLACES,
    TERM_VALUES,
    TERMS,
    USED,
)
from morefit.kernel.program import Vector, parallel


def sum_counts(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Sum over bins and constraints at one point."""
    for i in parallel(words[OUTPUTS]):
        out[i] = 0.0
    multiply(words, numbers, point, work)
    expect(words, numbers, point, work)
    weigh(words, point, work)
    if words[ORDER] > 0:
        differentiate(words, numbers, work)
        add_gradient(words, numbers, point, work, out)
    if words[ORDER] > 1:
        square_slopes(words, work)
        weigh_cells(words, numbers, work)
        mix(words, work)
        add_shared(words, work, out)
        add_groups(words, point, work, out)
        add_pairs(words, numbers, point, work, out)
    constrain(words, numbers, point, work, out)
    value = 0.0
    bad = 0.0
    for b in range(words[BINS]):
        value += work[words[BIN_TERMS] + b]
        bad += work[words[BIN_BAD] + b]
    for t in range(words[TERMS]):
        value += work[words[TERM_VALUES] + t]
        bad += work[words[TERM_BAD] + t]
    out[0] = -value
    out[words[OUTPUTS] - 1] = bad


# ------------------------------------------------------------------------------------ expected counts


def multiply(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute what multiplies each cell, f, as the product of all, and of each f'/f and f''/f."""
    factors = words[FACTORS]
    norms = words[NORMS]
    for cell in parallel(words[CELLS]):
        slopes = words[SLOPES] + cell * (factors + norms)
        product = 1.0
        for i in range(factors):
            x = not_zero(point[words[words[FACTOR_PARAMETERS] + i]])
            used = numbers[words[USED] + cell * factors + i]
            product *= x if used > 0.0 else 1.0
            work[slopes + i] = used / x
            work[words[CURVES] + cell * (factors + norms) + i] = 0.0
        values = words[NORM_VALUES] + cell * norms
        first = words[COEFFICIENTS] + cell * 6 * norms
        curves = words[CURVES] + cell * (factors + norms) + factors
        for g in range(norms):
            a = point[words[words[NORM_PARAMETERS] + g]]
            c1 = numbers[first + g]
            c2 = numbers[first + norms + g]
            c3 = numbers[first + 2 * norms + g]
            c4 = numbers[first + 3 * norms + g]
            c5 = numbers[first + 4 * norms + g]
            c6 = numbers[first + 5 * norms + g]
            value = 1.0 + a * (c1 + a * (c2 + a * (c3 + a * (c4 + a * (c5 + a * c6)))))
            slope = c1 + a * (2.0 * c2 + a * (3.0 * c3 + a * (4.0 * c4 + a * (5.0 * c5 + a * 6.0 * c6))))
            curve = 2.0 * c2 + a * (6.0 * c3 + a * (12.0 * c4 + a * (20.0 * c5 + a * 30.0 * c6)))
            work[values + g] = value
            work[slopes + factors + g] = slope / value
            work[curves + g] = curve / value
        logs = words[LOGS] + cell * 2 * norms
        for g in range(norms):
            a = point[words[words[NORM_PARAMETERS] + g]]
            if abs(a) >= 1.0 or words[SMOOTH_NORMS] == 0:
                rate = numbers[logs + g] if a >= 0.0 else -numbers[logs + norms + g]
                work[values + g] = exp(a * rate)
                work[slopes + factors + g] = rate
                work[curves + g] = rate * rate
            product *= work[values + g]
        work[words[PRODUCTS] + cell] = product


def bend_of(words: Integers, a: float, order: int) -> float:
    """Return what multiplies the difference of shifts, or a derivative of it.

    Outside -1 to 1 it is 8 |a|, which makes the interpolation linear; inside it is a polynomial, or the same.
    """
    square = a * a
    inside = abs(a) < 1.0 and words[SMOOTH_SHAPES] > 0
    if order == 0:
        return square * (15.0 + square * (-10.0 + 3.0 * square)) if inside else 8.0 * abs(a)
    if order == 1:
        return a * (30.0 + square * (-40.0 + 18.0 * square)) if inside else -8.0 if a < 0.0 else 8.0
    return 30.0 + square * (-120.0 + 90.0 * square) if inside else 0.0


def expect(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute what each sample of each bin expects, and what it is multiplied by."""
    samples = words[SAMPLES]
    shapes = words[SHAPES]
    for k in parallel(shapes):
        for order in range(3):
            a = point[words[words[SHAPE_PARAMETERS] + k]]
            work[words[BENDS] + order * shapes + k] = bend_of(words, a, order)
    for b in parallel(words[BINS]):
        content = words[CONTENT] + b * samples
        multipliers = words[MULTIPLIERS] + b * samples
        for s in range(samples):
            work[content + s] = numbers[words[NOMINAL] + b * samples + s]
            work[multipliers + s] = work[words[PRODUCTS] + words[words[BIN_CELLS] + b] + s]
        for k in range(shapes):
            a = point[words[words[SHAPE_PARAMETERS] + k]]
            bent = work[words[BENDS] + k]
            shifts = words[SHIFTS] + (b * shapes + k) * 2 * samples
            for s in range(samples):
                work[content + s] += a * numbers[shifts + s] + bent * numbers[shifts + samples + s]
        for i in range(words[words[BIN_GROUPS] + b], words[words[BIN_GROUPS] + b + 1]):
            q = words[words[GROUPS_OF_BINS] + i]
            x = not_zero(point[words[words[GROUP_PARAMETERS] + q]])
            for s in range(samples):
                if numbers[words[GROUP_SAMPLES] + q * samples + s] > 0.0:
                    work[multipliers + s] *= x
        total = 0.0
        for s in range(samples):
            part = work[content + s] * work[multipliers + s]
            work[words[PARTS] + b * samples + s] = part
            total += part
        work[words[EXPECTED] + b] = 0.0 if abs(total) < NOTHING else total


def weigh(words: Integers, point: Vector, work: Vector) -> None:
    """Compute the term of each bin, relative to expecting its count, and its derivatives by what is expected."""
    for b in parallel(words[BINS]):
        mu = work[words[EXPECTED] + b]
        n = point[words[PARAMETERS] + words[MEASURED] + b]
        possible = mu > 0.0 or (mu == 0.0 and n == 0.0)
        safe = mu if mu > 0.0 else 1.0
        term = mu - n
        if n > 0.0:
            term -= n * log(safe / n)
        slope = 1.0 - n / safe
        work[words[BIN_TERMS] + b] = term if possible else 0.0
        work[words[BIN_BAD] + b] = 0.0 if possible else 1.0
        work[words[BIN_SLOPES] + b] = slope if possible else 0.0
        work[words[BIN_BENDS] + b] = slope if possible and words[ORDER] < LINEAR else 0.0
        work[words[BIN_CURVES] + b] = n / (safe * safe) if possible else 0.0


# ------------------------------------------------------------------------------------ first derivatives


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
            out[1 + place] -= total
    for q in parallel(words[GROUPS]):
        work[words[GROUP_SLOPES] + q] = group_slope(words, numbers, point, work, q)
    for d in parallel(words[OWN]):
        place = words[words[FLOATING_PLACES] + words[words[OWN_PARAMETERS] + d]]
        if place >= 0:
            for q in range(words[words[OWN_GROUPS] + d], words[words[OWN_GROUPS] + d + 1]):
                slope = work[words[BIN_SLOPES] + words[words[GROUP_BINS] + q]]
                out[1 + place] -= slope * work[words[GROUP_SLOPES] + q]


# ------------------------------------------------------------------------------------ constraints


def constrain(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Add the constraints of single parameters."""
    for t in parallel(words[TERMS]):
        p = words[words[TERM_PARAMETERS] + t]
        place = words[words[FLOATING_PLACES] + p]
        x = point[p]
        value = 0.0
        slope = 0.0
        curve = 0.0
        bad = 0.0
        for i in range(words[words[TERM_PARTS] + t], words[words[TERM_PARTS] + t + 1]):
            measured = point[words[PARAMETERS] + words[words[TERM_PLACES] + i]]
            number = numbers[words[TERM_NUMBERS] + i]
            if words[words[TERM_KINDS] + i] == GAUSSIAN:
                value += 0.5 * (x - measured) * (x - measured) * number
                slope += (x - measured) * number
                curve += number
            elif x > 0.0:
                value += number * x - measured
                if measured > 0.0:
                    value -= measured * log(number * x / measured)
                slope += number - measured / x
                curve += measured / (x * x)
            else:
                slope += number
                bad += 1.0 if x < 0.0 or measured > 0.0 else 0.0
        work[words[TERM_VALUES] + t] = value
        work[words[TERM_BAD] + t] = bad
        if place >= 0 and words[ORDER] > 0:
            out[1 + place] -= slope
        if place >= 0 and words[ORDER] > 1:
            out[triangle_place(words, place, place)] -= curve
