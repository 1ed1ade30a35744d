"""The profile of a model of counts: derivatives by all parameters reduced to those that are not eliminated."""

from __future__ import annotations

from math import sqrt

from morefit.arrays import Integers
from morefit.kernel.counts_layout import (
    BLOCK_FIRST,
    BLOCK_MATRICES,
    BLOCKS,
    CHOLESKY,
    INNER,
    INNER_LIMITS,
    INNER_PINNED,
    INNER_ROWS,
    OUT_FIRST,
    OUTER,
    OUTPUTS,
    TINY,
    WIDEST,
    triangle_place,
)
from morefit.kernel.counts_profile import inner_parameter
from morefit.kernel.program import Vector, parallel


def reduce_inner(
    words: Integers, numbers: Vector, point: Vector, work: Vector, goal: Vector, first: int
) -> None:
    """Write the value of the profile, its gradient and the lower triangle of its Hessian, from ``first`` on."""
    outer = words[OUTER]
    sums = words[OUT_FIRST]
    pin_inner(words, numbers, point, work)
    divide_blocks(words, work)
    for a in parallel(outer):
        goal[first + 1 + a] = work[sums + 1 + a]
        total = words[CHOLESKY] + a * outer
        for c in range(a + 1):
            work[total + c] = 0.0
        for half in range((words[INNER] + 1) // 2):  # two at a time, so that half as much is stored
            i = 2 * half
            other = min(i + 1, words[INNER] - 1)
            one = words[INNER_ROWS] + i * outer
            two = words[INNER_ROWS] + other * outer
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
    goal[first + 1 + outer + outer * (outer + 1) // 2] = work[sums + words[OUTPUTS] - 1]


def pin_inner(words: Integers, numbers: Vector, point: Vector, work: Vector) -> None:
    """Note which eliminated parameters are at a limit that they would pass."""
    for i in parallel(words[INNER]):
        x = point[inner_parameter(words, i)]
        gradient = -work[words[OUT_FIRST] + 1 + words[OUTER] + i]
        low = x <= numbers[words[INNER_LIMITS] + 2 * i] and gradient > 0.0
        high = x >= numbers[words[INNER_LIMITS] + 2 * i + 1] and gradient < 0.0
        work[words[INNER_PINNED] + i] = 1.0 if low or high else 0.0


def divide_blocks(words: Integers, work: Vector) -> None:
    """Decompose the Hessian of each block, and divide the mixed derivatives of its parameters by the triangle."""
    outer = words[OUTER]
    width = words[WIDEST]
    for k in parallel(words[BLOCKS]):
        first = words[words[BLOCK_FIRST] + k]
        for i in range(first, words[words[BLOCK_FIRST] + k + 1]):
            own = triangle_place(words, outer + i, 0)
            pinned = work[words[INNER_PINNED] + i] > 0.0
            row = words[INNER_ROWS] + i * outer
            matrix = words[BLOCK_MATRICES] + i * width - first
            for a in range(outer):
                work[row + a] = 0.0 if pinned else -work[own + a]
            for j in range(first, i + 1):
                still = pinned or work[words[INNER_PINNED] + j] > 0.0
                total = 0.0 if still else -work[own + outer + j]
                if j == i and still:
                    total = 1.0
                other = words[BLOCK_MATRICES] + j * width - first
                for m in range(first, j):
                    total -= work[matrix + m] * work[other + m]
                if j < i:
                    total /= work[other + j]
                    for a in range(outer):
                        work[row + a] -= total * work[words[INNER_ROWS] + j * outer + a]
                else:
                    total = sqrt(max(total, TINY))
                    for a in range(outer):
                        work[row + a] /= total
                work[matrix + j] = total


def newton_edm(words: Integers, work: Vector, goal: Vector, first: int) -> float:
    """Return half of g H^-1 g of a profile that was written from ``first`` on, -1 if its Hessian is not positive definite."""
    outer = words[OUTER]
    rows = words[CHOLESKY]
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
