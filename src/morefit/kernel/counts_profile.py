"""Minimise a model of counts over parameters that multiply single bins, and reduce derivatives to the others, for ``counts_program.py``.

Such a parameter is measured by a constraint of its own and acts on one bin, so that the Hessian by them has a small block for
each bin. The minimiser sees the other parameters only, with the exact derivatives of the profile.
"""

from __future__ import annotations

from math import log, sqrt

from morefit.arrays import Integers
from morefit.kernel import counts_layout as at
from morefit.kernel.counts_layout import constraint_of, not_zero, triangle_place
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
    for i in parallel(words[at.INNER]):
        point[inner_parameter(words, i)] = numbers[words[at.INNER_STARTS] + i]
    for k in parallel(words[at.BLOCKS]):
        work[words[at.BLOCK_VALUES] + k] = block_value(words, numbers, point, work, k)
        work[words[at.BLOCK_SHARES] + k] = 1.0
        work[words[at.BLOCK_ACTIVE] + k] = 1.0
    steps = 0
    moving = True
    while moving and steps < MAX_STEPS:
        slope_inner(words, numbers, point, work)
        solve_inner(words, work)
        move_inner(words, numbers, point, work)
        steps += 1
        moving = False
        for k in range(words[at.BLOCKS]):
            moving = moving or work[words[at.BLOCK_ACTIVE] + k] > 0.0


def inner_parameter(words: Integers, i: int) -> int:
    """Return which parameter is eliminated."""
    return int(words[words[at.GROUP_PARAMETERS] + words[words[at.INNER_GROUPS] + i]])


def bin_sum(words: Integers, numbers: Vector, point: Vector, work: Vector, b: int, q: int, r: int) -> float:
    """Return what the samples of a bin expect, those that two groups have; all if these are -1."""
    samples = words[at.SAMPLES]
    total = 0.0
    for s in range(samples):
        part = work[words[at.CONTENT] + b * samples + s]
        part *= work[words[at.PRODUCTS] + words[words[at.BIN_CELLS] + b] + s]
        for i in range(words[words[at.BIN_GROUPS] + b], words[words[at.BIN_GROUPS] + b + 1]):
            g = words[words[at.GROUPS_OF_BINS] + i]
            used = numbers[words[at.GROUP_SAMPLES] + g * samples + s] > 0.0
            part *= not_zero(point[words[words[at.GROUP_PARAMETERS] + g]]) if used else 1.0
        one = q < 0 or numbers[words[at.GROUP_SAMPLES] + max(q, 0) * samples + s] > 0.0
        other = r < 0 or numbers[words[at.GROUP_SAMPLES] + max(r, 0) * samples + s] > 0.0
        total += part if one and other else 0.0
    return total


def block_value(words: Integers, numbers: Vector, point: Vector, work: Vector, k: int) -> float:
    """Return the terms of a bin that depend on its parameters."""
    b = words[words[at.BLOCK_BINS] + k]
    mu = bin_sum(words, numbers, point, work, b=b, q=-1, r=-1)
    n = point[words[at.PARAMETERS] + words[at.MEASURED] + b]
    total = mu
    if mu > 0.0:
        total -= n * log(mu)
    elif mu < 0.0 or n > 0.0:
        total = IMPOSSIBLE
    for i in range(words[words[at.BLOCK_FIRST] + k], words[words[at.BLOCK_FIRST] + k + 1]):
        x = point[inner_parameter(words, i)]
        total += constraint_of(words, numbers, point, t=words[words[at.INNER_TERMS] + i], x=x, what=at.VALUE)
    return total


def slope_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Compute gradients and Hessians of blocks: without second derivatives of expected counts, and exact ones."""
    width = words[at.WIDEST]
    for k in parallel(words[at.BLOCKS]):
        if work[words[at.BLOCK_ACTIVE] + k] > 0.0:
            b = words[words[at.BLOCK_BINS] + k]
            first = words[words[at.BLOCK_FIRST] + k]
            mu = bin_sum(words, numbers, point, work, b=b, q=-1, r=-1)
            n = point[words[at.PARAMETERS] + words[at.MEASURED] + b]
            slope = 1.0 - n / mu if mu > 0.0 else 1.0
            curve = n / (mu * mu) if mu > 0.0 else 0.0
            for i in range(first, words[words[at.BLOCK_FIRST] + k + 1]):
                q = words[words[at.INNER_GROUPS] + i]
                t = words[words[at.INNER_TERMS] + i]
                x = point[inner_parameter(words, i)]
                own = bin_sum(words, numbers, point, work, b=b, q=q, r=-1) / not_zero(x)
                gradient = slope * own + constraint_of(words, numbers, point, t=t, x=x, what=at.SLOPE)
                low = x <= numbers[words[at.INNER_LIMITS] + 2 * i] and gradient > 0.0
                high = x >= numbers[words[at.INNER_LIMITS] + 2 * i + 1] and gradient < 0.0
                pinned = low or high
                work[words[at.INNER_SLOPES] + i] = own
                work[words[at.INNER_PINNED] + i] = 1.0 if pinned else 0.0
                work[words[at.INNER_GRADIENT] + i] = 0.0 if pinned else gradient
                for j in range(first, i):
                    free = not pinned and work[words[at.INNER_PINNED] + j] == 0.0
                    term = curve * own * work[words[at.INNER_SLOPES] + j] if free else 0.0
                    common = 0.0
                    if words[at.OVERLAPS] > 0 and free:
                        r = words[words[at.INNER_GROUPS] + j]
                        common = bin_sum(words, numbers, point, work, b=b, q=q, r=r) / not_zero(x)
                        common *= slope / not_zero(point[inner_parameter(words, j)])
                    work[words[at.BLOCK_MATRICES] + i * width + j - first] = term
                    work[words[at.BLOCK_EXACT] + i * width + j - first] = term + common
                bent = curve * own * own + constraint_of(words, numbers, point, t=t, x=x, what=at.CURVE)
                bent = max(bent, at.TINY)
                work[words[at.INNER_ERRORS] + i] = 1.0 / sqrt(bent)
                work[words[at.BLOCK_MATRICES] + i * width + i - first] = 1.0 if pinned else bent
                work[words[at.BLOCK_EXACT] + i * width + i - first] = 1.0 if pinned else bent


def solve_inner(words: Integers, work: Vector) -> None:
    """Compute Newton's step of each block, with the exact Hessian where it is positive definite."""
    width = words[at.WIDEST]
    for k in parallel(words[at.BLOCKS]):
        first = words[words[at.BLOCK_FIRST] + k]
        last = words[words[at.BLOCK_FIRST] + k + 1]
        matrix = words[at.BLOCK_MATRICES]
        definite = False
        for attempt in range(2):
            if not definite and (attempt == 1 or words[at.OVERLAPS] > 0):
                matrix = words[at.BLOCK_EXACT] if attempt == 0 else words[at.BLOCK_MATRICES]
                definite = True
                for i in range(first, last):  # a Cholesky decomposition in place, and half of the solution
                    right = work[words[at.INNER_GRADIENT] + i]
                    for j in range(first, i + 1):
                        total = work[matrix + i * width + j - first]
                        for m in range(first, j):
                            factor = work[matrix + j * width + m - first]
                            total -= work[matrix + i * width + m - first] * factor
                        if j < i:
                            total /= work[matrix + j * width + j - first]
                            right -= total * work[words[at.INNER_STEPS] + j]
                        else:
                            definite = definite and total > 0.0
                            total = sqrt(max(total, at.TINY))
                        work[matrix + i * width + j - first] = total
                    work[words[at.INNER_STEPS] + i] = right / work[matrix + i * width + i - first]
        for i in range(last - 1, first - 1, -1):
            step = work[words[at.INNER_STEPS] + i]
            for m in range(i + 1, last):
                step -= work[matrix + m * width + i - first] * work[words[at.INNER_STEPS] + m]
            work[words[at.INNER_STEPS] + i] = step / work[matrix + i * width + i - first]


def move_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Take the step of each block, as far as limits let it, and take it back where it leads up."""
    for k in parallel(words[at.BLOCKS]):
        if work[words[at.BLOCK_ACTIVE] + k] > 0.0:
            first = words[words[at.BLOCK_FIRST] + k]
            last = words[words[at.BLOCK_FIRST] + k + 1]
            room = 1.0
            for i in range(first, last):
                x = point[inner_parameter(words, i)]
                step = work[words[at.INNER_STEPS] + i]
                low = numbers[words[at.INNER_LIMITS] + 2 * i]
                end = numbers[words[at.INNER_LIMITS] + 2 * i + 1]
                if step > 0.0:
                    end = max(low, SHORTEST * x) if x > SMALL else low
                if step != 0.0 and x != end:
                    room = min(room, (x - end) / step)
                work[words[at.INNER_OLD] + i] = x
            done = True
            for i in range(first, last):
                x = work[words[at.INNER_OLD] + i]
                moved = x - work[words[at.BLOCK_SHARES] + k] * room * work[words[at.INNER_STEPS] + i]
                moved = max(moved, numbers[words[at.INNER_LIMITS] + 2 * i])
                moved = min(moved, numbers[words[at.INNER_LIMITS] + 2 * i + 1])
                point[inner_parameter(words, i)] = moved
                done = done and abs(moved - x) < CLOSE * work[words[at.INNER_ERRORS] + i]
            before = work[words[at.BLOCK_VALUES] + k]
            there = block_value(words, numbers, point, work, k)
            if there <= before + ROUNDING * (1.0 + abs(before)):
                work[words[at.BLOCK_VALUES] + k] = there
                work[words[at.BLOCK_SHARES] + k] = 1.0
            else:
                work[words[at.BLOCK_SHARES] + k] *= SHORTER
                for i in range(first, last):
                    point[inner_parameter(words, i)] = work[words[at.INNER_OLD] + i]
            work[words[at.BLOCK_ACTIVE] + k] = 0.0 if done else 1.0


def reduce_inner(
    words: Integers, numbers: Vector, point: Vector, work: Vector, goal: Vector, first: int
) -> None:
    """Write the value of the profile, its gradient and the lower triangle of its Hessian, from ``first`` on."""
    outer = words[at.OUTER]
    sums = words[at.OUT_FIRST]
    pin_inner(words, numbers, point, work)
    divide_blocks(words, work)
    for a in parallel(outer):
        goal[first + 1 + a] = work[sums + 1 + a]
        total = words[at.CHOLESKY] + a * outer
        for c in range(a + 1):
            work[total + c] = 0.0
        for half in range((words[at.INNER] + 1) // 2):  # two at a time, so that half as much is stored
            i = 2 * half
            other = min(i + 1, words[at.INNER] - 1)
            one = words[at.INNER_ROWS] + i * outer
            two = words[at.INNER_ROWS] + other * outer
            weight = work[one + a]
            second = work[two + a] if i < other else 0.0
            if weight != 0.0 or second != 0.0:
                for c in range(a + 1):
                    work[total + c] += weight * work[one + c] + second * work[two + c]
        row = first + 1 + outer + a * (a + 1) // 2
        own = triangle_place(words, a, 0)
        for c in range(a + 1):
            goal[row + c] = work[own + c] + work[total + c]
    goal[first] = work[sums]
    goal[first + 1 + outer + outer * (outer + 1) // 2] = work[sums + words[at.OUTPUTS] - 1]


def pin_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Note which eliminated parameters are at a limit that they would pass."""
    for i in parallel(words[at.INNER]):
        x = point[inner_parameter(words, i)]
        gradient = -work[words[at.OUT_FIRST] + 1 + words[at.OUTER] + i]
        low = x <= numbers[words[at.INNER_LIMITS] + 2 * i] and gradient > 0.0
        high = x >= numbers[words[at.INNER_LIMITS] + 2 * i + 1] and gradient < 0.0
        work[words[at.INNER_PINNED] + i] = 1.0 if low or high else 0.0


def divide_blocks(words: Integers, work: Vector) -> None:
    """Decompose the Hessian of each block, and divide the mixed derivatives of its parameters by the triangle."""
    outer = words[at.OUTER]
    width = words[at.WIDEST]
    for k in parallel(words[at.BLOCKS]):
        first = words[words[at.BLOCK_FIRST] + k]
        for i in range(first, words[words[at.BLOCK_FIRST] + k + 1]):
            own = triangle_place(words, outer + i, 0)
            pinned = work[words[at.INNER_PINNED] + i] > 0.0
            row = words[at.INNER_ROWS] + i * outer
            matrix = words[at.BLOCK_MATRICES] + i * width - first
            for a in range(outer):
                work[row + a] = 0.0 if pinned else -work[own + a]
            for j in range(first, i + 1):
                still = pinned or work[words[at.INNER_PINNED] + j] > 0.0
                total = 0.0 if still else -work[own + outer + j]
                if j == i and still:
                    total = 1.0
                other = words[at.BLOCK_MATRICES] + j * width - first
                for m in range(first, j):
                    total -= work[matrix + m] * work[other + m]
                if j < i:
                    total /= work[other + j]
                    for a in range(outer):
                        work[row + a] -= total * work[words[at.INNER_ROWS] + j * outer + a]
                else:
                    total = sqrt(max(total, at.TINY))
                    for a in range(outer):
                        work[row + a] /= total
                work[matrix + j] = total


def newton_edm(words: Integers, work: Vector, goal: Vector, first: int) -> float:
    """Return half of g H^-1 g of a profile that was written from ``first`` on, -1 if its Hessian is not positive definite."""
    outer = words[at.OUTER]
    rows = words[at.CHOLESKY]
    for i in parallel(outer):
        for j in range(i, outer):
            work[rows + i * outer + j] = -goal[first + 1 + outer + j * (j + 1) // 2 + i]
    edm = 0.0
    for j in range(outer):
        pivot = work[rows + j * outer + j]
        if not pivot > 0.0:
            return -1.0
        right = goal[first + 1 + j]
        for m in range(j):
            right -= work[rows + m * outer + j] * work[rows + outer * outer + m]
        right /= sqrt(pivot)
        work[rows + outer * outer + j] = right
        edm += 0.5 * right * right
        for i in parallel(j + 1, outer):
            work[rows + j * outer + i] /= sqrt(pivot)
        for i in parallel(j + 1, outer):
            weight = work[rows + j * outer + i]
            for m in range(i, outer):
                work[rows + i * outer + m] -= weight * work[rows + j * outer + m]
    return edm
