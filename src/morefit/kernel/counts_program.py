"""The likelihood of counts that are sums of samples with modifiers, and its derivatives, in the language of drivers.

One program serves all models: sizes, indices and places of arrays are in a table of whole numbers (``words``), the model
itself in ``numbers``. A ``point`` has all parameters, what constraints measured, and the counts. The sums are those of a
log likelihood: value, gradient, lower triangle of the Hessian, and the number of bins without a probability.
"""

from __future__ import annotations

from math import exp, log

from morefit.arrays import Integers
from morefit.kernel import counts_layout as at
from morefit.kernel.counts_derivatives import (
    add_gradient,
    add_groups,
    add_pairs,
    add_shared,
    differentiate,
    mix,
    square_slopes,
    weigh_cells,
)
from morefit.kernel.counts_layout import constraint_of, not_zero, triangle_place
from morefit.kernel.counts_profile import inner_parameter, minimise_inner, newton_edm, reduce_inner
from morefit.kernel.program import Vector, parallel


def sum_counts(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Sum over bins and constraints at one point, or at the minimum over the parameters that are eliminated."""
    if words[at.INNER] > 0:
        multiply(words, numbers, point, work)
        shift(words, numbers, point, work)
        profile(words, numbers, point, work, out)
    else:
        sum_at_point(words, numbers, point, work, out)


def sum_at_point(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Sum over bins and constraints at one point, where no parameter is eliminated."""
    multiply(words, numbers, point, work)
    shift(words, numbers, point, work)
    add_all(words, numbers, point, work, out, order=words[at.ORDER])


def profile(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector) -> None:
    """Minimise over some parameters; write the profile in the others, and where the minimum is.

    Far from its minimum, a Hessian with negative curvature is replaced by one without.
    """
    outer = words[at.OUTER]
    minimise_inner(words, numbers, point, work)
    add_all(words, numbers, point, work, work, order=2)
    reduce_inner(words, numbers, point, work, goal=out, first=0)
    if newton_edm(words, work, out, 0) < 0.0:
        add_all(words, numbers, point, work, work, order=at.LINEAR)
        reduce_inner(words, numbers, point, work, goal=work, first=words[at.STRAIGHT])
        if newton_edm(words, work, work, words[at.STRAIGHT]) > at.FAR:
            for i in parallel(outer * (outer + 1) // 2):
                out[1 + outer + i] = work[words[at.STRAIGHT] + 1 + outer + i]
    last = 2 + outer + outer * (outer + 1) // 2
    for i in parallel(words[at.INNER]):
        out[last + i] = point[inner_parameter(words, i)]


def add_all(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector, order: int) -> None:
    """Add up all terms and their derivatives, once it is known what multiplies and shifts each sample."""
    first = words[at.OUT_FIRST]
    for i in parallel(words[at.OUTPUTS]):
        out[first + i] = 0.0
    expect(words, numbers, point, work)
    weigh(words, point, work, order)
    if 0 < order < at.LINEAR:  # which comes after the exact one
        differentiate(words, numbers, work)
    if order == 2:
        square_slopes(words, work)
    if order > 0:
        add_gradient(words, numbers, point, work, out)
    if order > 1:
        weigh_cells(words, numbers, work)
        mix(words, work)
        add_shared(words, work, out)
        add_groups(words, point, work, out)
        add_pairs(words, numbers, point, work, out)
    constrain(words, numbers, point, work, out, order=order)
    value = 0.0
    bad = 0.0
    for b in range(words[at.BINS]):
        value += work[words[at.BIN_TERMS] + b]
        bad += work[words[at.BIN_BAD] + b]
    for t in range(words[at.TERMS]):
        value += work[words[at.TERM_VALUES] + t]
        bad += work[words[at.TERM_BAD] + t]
    out[first] = -value
    out[first + words[at.OUTPUTS] - 1] = bad


# ------------------------------------------------------------------------------------ expected counts


def multiply(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute what multiplies each cell, f, as the product of all, and of each f'/f and f''/f."""
    factors = words[at.FACTORS]
    norms = words[at.NORMS]
    for cell in parallel(words[at.CELLS]):
        slopes = words[at.SLOPES] + cell * (factors + norms)
        product = 1.0
        for i in range(factors):
            x = not_zero(point[words[words[at.FACTOR_PARAMETERS] + i]])
            used = numbers[words[at.USED] + cell * factors + i]
            product *= x if used > 0.0 else 1.0
            work[slopes + i] = used / x
            work[words[at.CURVES] + cell * (factors + norms) + i] = 0.0
        values = words[at.NORM_VALUES] + cell * norms
        first = words[at.COEFFICIENTS] + cell * 6 * norms
        curves = words[at.CURVES] + cell * (factors + norms) + factors
        for g in range(norms):
            a = point[words[words[at.NORM_PARAMETERS] + g]]
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
        logs = words[at.LOGS] + cell * 2 * norms
        for g in range(norms):
            a = point[words[words[at.NORM_PARAMETERS] + g]]
            if abs(a) >= 1.0 or words[at.SMOOTH_NORMS] == 0:
                rate = numbers[logs + g] if a >= 0.0 else -numbers[logs + norms + g]
                work[values + g] = exp(a * rate)
                work[slopes + factors + g] = rate
                work[curves + g] = rate * rate
            product *= work[values + g]
        work[words[at.PRODUCTS] + cell] = product


def bend_of(words: Integers, a: float, order: int) -> float:
    """Return what multiplies the difference of shifts, or a derivative of it.

    Outside -1 to 1 it is 8 |a|, which makes the interpolation linear; inside it is a polynomial, or the same.
    """
    square = a * a
    inside = abs(a) < 1.0 and words[at.SMOOTH_SHAPES] > 0
    if order == 0:
        return square * (15.0 + square * (-10.0 + 3.0 * square)) if inside else 8.0 * abs(a)
    if order == 1:
        return a * (30.0 + square * (-40.0 + 18.0 * square)) if inside else -8.0 if a < 0.0 else 8.0
    return 30.0 + square * (-120.0 + 90.0 * square) if inside else 0.0


def shift(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute what each sample of each bin has before it is multiplied."""
    samples = words[at.SAMPLES]
    shapes = words[at.SHAPES]
    for k in parallel(shapes):
        for order in range(3):
            a = point[words[words[at.SHAPE_PARAMETERS] + k]]
            work[words[at.BENDS] + order * shapes + k] = bend_of(words, a, order)
    for b in parallel(words[at.BINS]):
        content = words[at.CONTENT] + b * samples
        for s in range(samples):
            work[content + s] = numbers[words[at.NOMINAL] + b * samples + s]
        for k in range(shapes):
            a = point[words[words[at.SHAPE_PARAMETERS] + k]]
            bent = work[words[at.BENDS] + k]
            shifts = words[at.SHIFTS] + (b * shapes + k) * 2 * samples
            for s in range(samples):
                work[content + s] += a * numbers[shifts + s] + bent * numbers[shifts + samples + s]


def expect(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute what each sample of each bin expects, and what it is multiplied by."""
    samples = words[at.SAMPLES]
    for b in parallel(words[at.BINS]):
        multipliers = words[at.MULTIPLIERS] + b * samples
        for s in range(samples):
            work[multipliers + s] = work[words[at.PRODUCTS] + words[words[at.BIN_CELLS] + b] + s]
        for i in range(words[words[at.BIN_GROUPS] + b], words[words[at.BIN_GROUPS] + b + 1]):
            q = words[words[at.GROUPS_OF_BINS] + i]
            x = not_zero(point[words[words[at.GROUP_PARAMETERS] + q]])
            for s in range(samples):
                if numbers[words[at.GROUP_SAMPLES] + q * samples + s] > 0.0:
                    work[multipliers + s] *= x
        total = 0.0
        for s in range(samples):
            part = work[words[at.CONTENT] + b * samples + s] * work[multipliers + s]
            work[words[at.PARTS] + b * samples + s] = part
            total += part
        work[words[at.EXPECTED] + b] = 0.0 if abs(total) < at.NOTHING else total


def weigh(words: Integers, point: Vector, work: Vector, order: int) -> None:
    """Compute the term of each bin, relative to expecting its count, and its derivatives by what is expected."""
    for b in parallel(words[at.BINS]):
        mu = work[words[at.EXPECTED] + b]
        n = point[words[at.PARAMETERS] + words[at.MEASURED] + b]
        possible = mu > 0.0 or (mu == 0.0 and n == 0.0)
        safe = mu if mu > 0.0 else 1.0
        term = mu - n
        if n > 0.0:
            term -= n * log(safe / n)
        slope = 1.0 - n / safe
        work[words[at.BIN_TERMS] + b] = term if possible else 0.0
        work[words[at.BIN_BAD] + b] = 0.0 if possible else 1.0
        work[words[at.BIN_SLOPES] + b] = slope if possible else 0.0
        work[words[at.BIN_BENDS] + b] = slope if possible and order < at.LINEAR else 0.0
        work[words[at.BIN_CURVES] + b] = n / (safe * safe) if possible else 0.0


# ------------------------------------------------------------------------------------ constraints


def constrain(words: Integers, numbers: Vector, point: Vector, work: Vector, out: Vector, order: int) -> None:
    """Add the constraints of single parameters."""
    for t in parallel(words[at.TERMS]):
        p = words[words[at.TERM_PARAMETERS] + t]
        place = words[words[at.FLOATING_PLACES] + p]
        x = point[p]
        work[words[at.TERM_VALUES] + t] = constraint_of(words, numbers, point, t=t, x=x, what=at.VALUE)
        work[words[at.TERM_BAD] + t] = constraint_of(words, numbers, point, t=t, x=x, what=at.BAD)
        if place >= 0 and order > 0:
            slope = constraint_of(words, numbers, point, t=t, x=x, what=at.SLOPE)
            out[words[at.OUT_FIRST] + 1 + place] -= slope
        if place >= 0 and order > 1:
            curve = constraint_of(words, numbers, point, t=t, x=x, what=at.CURVE)
            out[triangle_place(words, place, place)] -= curve
