"""Minimise a model of counts over parameters that multiply single bins, for ``counts_program.py``.

Such a parameter is measured by a constraint of its own and acts on one bin, so that the Hessian by them has a small block for
each bin. The minimiser sees the other parameters only, with the exact derivatives of the profile.
"""

from __future__ import annotations

from math import log, sqrt

from morefit.arrays import Integers
from morefit.kernel.counts_layout import (
    BIN_CELLS,
    BIN_GROUPS,
    BLOCK_ACTIVE,
    BLOCK_BINS,
    BLOCK_EXACT,
    BLOCK_FIRST,
    BLOCK_MATRICES,
    BLOCK_SHARES,
    BLOCK_VALUES,
    BLOCKS,
    CONTENT,
    CURVE,
    GROUP_PARAMETERS,
    GROUP_SAMPLES,
    GROUPS_OF_BINS,
    INNER,
    INNER_ERRORS,
    INNER_GRADIENT,
    INNER_GROUPS,
    INNER_LIMITS,
    INNER_OLD,
    INNER_PINNED,
    INNER_SLOPES,
    INNER_STARTS,
    INNER_STEPS,
    INNER_TERMS,
    MEASURED,
    OVERLAPS,
    PARAMETERS,
    PRODUCTS,
    SAMPLES,
    SLOPE,
    TINY,
    VALUE,
    WIDEST,
    constraint_of,
    not_zero,
)
from morefit.kernel.program import Vector, parallel

MAX_STEPS = 60  # of Newton's method in a bin, which needs about four
CLOSE = 1e-11  # errors: steps so short end it
SHORTEST = 0.2  # of its value: a factor is not made smaller in one step, unless it is
SMALL = 0.01  # and may be zero
SHORTER = 0.25  # of a step that leads up
ROUNDING = 1e-14  # of a value: so small a rise is none
IMPOSSIBLE = 1e300  # the value of a bin whose count has no probability


def minimise_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Minimise over the parameters of all blocks from their starts: Newton's method, with shorter steps where they lead up."""
    for i in parallel(words[INNER]):
        point[inner_parameter(words, i)] = numbers[words[INNER_STARTS] + i]
    for k in parallel(words[BLOCKS]):
        work[words[BLOCK_VALUES] + k] = block_value(words, numbers, point, work, k)
        work[words[BLOCK_SHARES] + k] = 1.0
        work[words[BLOCK_ACTIVE] + k] = 1.0
    steps = 0
    moving = True
    while moving and steps < MAX_STEPS:
        slope_inner(words, numbers, point, work)
        solve_inner(words, work)
        move_inner(words, numbers, point, work)
        steps += 1
        moving = False
        for k in range(words[BLOCKS]):
            moving = moving or work[words[BLOCK_ACTIVE] + k] > 0.0


def inner_parameter(words: Integers, i: int) -> int:
    """Return which parameter is eliminated."""
    return int(words[words[GROUP_PARAMETERS] + words[words[INNER_GROUPS] + i]])


def bin_sum(words: Integers, numbers: Vector, point: Vector, work: Vector, b: int, q: int, r: int) -> float:
    """Return what the samples of a bin expect, those that two groups have; all if these are -1."""
    samples = words[SAMPLES]
    total = 0.0
    for s in range(samples):
        part = work[words[CONTENT] + b * samples + s]
        part *= work[words[PRODUCTS] + words[words[BIN_CELLS] + b] + s]
        for i in range(words[words[BIN_GROUPS] + b], words[words[BIN_GROUPS] + b + 1]):
            g = words[words[GROUPS_OF_BINS] + i]
            used = numbers[words[GROUP_SAMPLES] + g * samples + s] > 0.0
            part *= not_zero(point[words[words[GROUP_PARAMETERS] + g]]) if used else 1.0
        one = q < 0 or numbers[words[GROUP_SAMPLES] + max(q, 0) * samples + s] > 0.0
        other = r < 0 or numbers[words[GROUP_SAMPLES] + max(r, 0) * samples + s] > 0.0
        total += part if one and other else 0.0
    return total


def block_value(words: Integers, numbers: Vector, point: Vector, work: Vector, k: int) -> float:
    """Return the terms of a bin that depend on its parameters."""
    b = words[words[BLOCK_BINS] + k]
    mu = bin_sum(words, numbers, point, work, b=b, q=-1, r=-1)
    n = point[words[PARAMETERS] + words[MEASURED] + b]
    total = mu
    if mu > 0.0:
        total -= n * log(mu)
    elif mu < 0.0 or n > 0.0:
        total = IMPOSSIBLE
    for i in range(words[words[BLOCK_FIRST] + k], words[words[BLOCK_FIRST] + k + 1]):
        x = point[inner_parameter(words, i)]
        total += constraint_of(words, numbers, point, t=words[words[INNER_TERMS] + i], x=x, what=VALUE)
    return total


def slope_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute gradients and Hessians of blocks: without second derivatives of expected counts, and exact ones."""
    width = words[WIDEST]
    for k in parallel(words[BLOCKS]):
        if work[words[BLOCK_ACTIVE] + k] > 0.0:
            b = words[words[BLOCK_BINS] + k]
            first = words[words[BLOCK_FIRST] + k]
            mu = bin_sum(words, numbers, point, work, b=b, q=-1, r=-1)
            n = point[words[PARAMETERS] + words[MEASURED] + b]
            slope = 1.0 - n / mu if mu > 0.0 else 1.0
            curve = n / (mu * mu) if mu > 0.0 else 0.0
            for i in range(first, words[words[BLOCK_FIRST] + k + 1]):
                q = words[words[INNER_GROUPS] + i]
                t = words[words[INNER_TERMS] + i]
                x = point[inner_parameter(words, i)]
                own = bin_sum(words, numbers, point, work, b=b, q=q, r=-1) / not_zero(x)
                gradient = slope * own + constraint_of(words, numbers, point, t=t, x=x, what=SLOPE)
                low = x <= numbers[words[INNER_LIMITS] + 2 * i] and gradient > 0.0
                high = x >= numbers[words[INNER_LIMITS] + 2 * i + 1] and gradient < 0.0
                pinned = low or high
                work[words[INNER_SLOPES] + i] = own
                work[words[INNER_PINNED] + i] = 1.0 if pinned else 0.0
                work[words[INNER_GRADIENT] + i] = 0.0 if pinned else gradient
                for j in range(first, i):
                    free = not pinned and work[words[INNER_PINNED] + j] == 0.0
                    term = curve * own * work[words[INNER_SLOPES] + j] if free else 0.0
                    common = 0.0
                    if words[OVERLAPS] > 0 and free:
                        r = words[words[INNER_GROUPS] + j]
                        common = bin_sum(words, numbers, point, work, b=b, q=q, r=r) / not_zero(x)
                        common *= slope / not_zero(point[inner_parameter(words, j)])
                    work[words[BLOCK_MATRICES] + i * width + j - first] = term
                    work[words[BLOCK_EXACT] + i * width + j - first] = term + common
                bent = curve * own * own + constraint_of(words, numbers, point, t=t, x=x, what=CURVE)
                bent = max(bent, TINY)
                work[words[INNER_ERRORS] + i] = 1.0 / sqrt(bent)
                work[words[BLOCK_MATRICES] + i * width + i - first] = 1.0 if pinned else bent
                work[words[BLOCK_EXACT] + i * width + i - first] = 1.0 if pinned else bent


def solve_inner(words: Integers, work: Vector) -> None:
    """Compute Newton's step of each block, with the exact Hessian where it is positive definite."""
    width = words[WIDEST]
    for k in parallel(words[BLOCKS]):
        first = words[words[BLOCK_FIRST] + k]
        last = words[words[BLOCK_FIRST] + k + 1]
        matrix = words[BLOCK_MATRICES]
        definite = False
        for attempt in range(2):
            if not definite and (attempt == 1 or words[OVERLAPS] > 0):
                matrix = words[BLOCK_EXACT] if attempt == 0 else words[BLOCK_MATRICES]
                definite = True
                for i in range(first, last):  # a Cholesky decomposition in place, and half of the solution
                    right = work[words[INNER_GRADIENT] + i]
                    for j in range(first, i + 1):
                        total = work[matrix + i * width + j - first]
                        for m in range(first, j):
                            factor = work[matrix + j * width + m - first]
                            total -= work[matrix + i * width + m - first] * factor
                        if j < i:
                            total /= work[matrix + j * width + j - first]
                            right -= total * work[words[INNER_STEPS] + j]
                        else:
                            definite = definite and total > 0.0
                            total = sqrt(max(total, TINY))
                        work[matrix + i * width + j - first] = total
                    work[words[INNER_STEPS] + i] = right / work[matrix + i * width + i - first]
        for i in range(last - 1, first - 1, -1):
            step = work[words[INNER_STEPS] + i]
            for m in range(i + 1, last):
                step -= work[matrix + m * width + i - first] * work[words[INNER_STEPS] + m]
            work[words[INNER_STEPS] + i] = step / work[matrix + i * width + i - first]


def move_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Take the step of each block, as far as limits let it, and take it back where it leads up."""
    for k in parallel(words[BLOCKS]):
        if work[words[BLOCK_ACTIVE] + k] > 0.0:
            first = words[words[BLOCK_FIRST] + k]
            last = words[words[BLOCK_FIRST] + k + 1]
            room = 1.0
            for i in range(first, last):
                x = point[inner_parameter(words, i)]
                step = work[words[INNER_STEPS] + i]
                low = numbers[words[INNER_LIMITS] + 2 * i]
                end = numbers[words[INNER_LIMITS] + 2 * i + 1]
                if step > 0.0:
                    end = max(low, SHORTEST * x) if x > SMALL else low
                if step != 0.0 and x != end:
                    room = min(room, (x - end) / step)
                work[words[INNER_OLD] + i] = x
            done = True
            for i in range(first, last):
                x = work[words[INNER_OLD] + i]
                moved = x - work[words[BLOCK_SHARES] + k] * room * work[words[INNER_STEPS] + i]
                moved = max(moved, numbers[words[INNER_LIMITS] + 2 * i])
                moved = min(moved, numbers[words[INNER_LIMITS] + 2 * i + 1])
                point[inner_parameter(words, i)] = moved
                done = done and abs(moved - x) < CLOSE * work[words[INNER_ERRORS] + i]
            before = work[words[BLOCK_VALUES] + k]
            there = block_value(words, numbers, point, work, k)
            if there <= before + ROUNDING * (1.0 + abs(before)):
                work[words[BLOCK_VALUES] + k] = there
                work[words[BLOCK_SHARES] + k] = 1.0
            else:
                work[words[BLOCK_SHARES] + k] *= SHORTER
                for i in range(first, last):
                    point[inner_parameter(words, i)] = work[words[INNER_OLD] + i]
            work[words[BLOCK_ACTIVE] + k] = 0.0 if done else 1.0
