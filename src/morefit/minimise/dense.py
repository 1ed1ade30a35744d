"""Linear algebra of small symmetric matrices in plain loops over scalars, so that it can be compiled as it stands.

Every function works on the leading ``size`` rows and columns and writes its result into the last arrays it is passed.
"""

from __future__ import annotations

from math import inf, sqrt

from morefit.kernel.program import Vector, parallel

EPSILON = 2.0**-52  # the relative distance of neighbouring doubles
MAX_ROTATIONS = 60  # of QL for one eigenvalue; about two are needed


def cholesky(matrix: Vector, shift: float, size: int, safe: float, lower: Vector) -> float:
    """Factorise a matrix, with ``shift`` added to its diagonal, into L L^T and return its smallest pivot.

    It stops at one that is not above ``safe``, whose place in L is zero.
    """
    least = inf
    for j in range(size):
        pivot = matrix[j * size + j] + shift
        for k in range(j):
            pivot -= lower[j * size + k] * lower[j * size + k]
        if not pivot > safe:  # nor nan
            lower[j * size + j] = 0.0
            return float(min(pivot, safe))
        least = min(least, pivot)
        root = sqrt(pivot)
        lower[j * size + j] = root
        for i in parallel(j + 1, size):
            rest = matrix[i * size + j]
            for k in range(j):
                rest -= lower[i * size + k] * lower[j * size + k]
            lower[i * size + j] = rest / root
    return least


def forward(lower: Vector, size: int, right: Vector, out: Vector) -> None:
    """Solve L y = right."""
    for i in parallel(size):
        out[i] = right[i]
    for k in range(size):
        out[k] /= lower[k * size + k]
        for i in parallel(k + 1, size):
            out[i] -= lower[i * size + k] * out[k]


def backward(lower: Vector, size: int, right: Vector, out: Vector) -> None:
    """Solve L^T x = right; ``out`` may be ``right`` itself."""
    for i in parallel(size):
        out[i] = right[i]
    for k in range(size - 1, -1, -1):
        out[k] /= lower[k * size + k]
        for i in parallel(k):
            out[i] -= lower[k * size + i] * out[k]


def failed_direction(lower: Vector, size: int, out: Vector) -> float:
    """Return the squared length of the direction along which the pivot where a factorisation stopped is the curvature.

    It is one along the row of that pivot, and ``-out`` along those before.
    """
    row = 0
    while lower[row * size + row] > 0.0:
        row += 1
    for k in parallel(row):
        out[k] = lower[row * size + k]
    total = 1.0
    for k in range(row - 1, -1, -1):
        out[k] /= lower[k * size + k]
        total += out[k] * out[k]
        for i in parallel(k):
            out[i] -= lower[k * size + i] * out[k]
    return total


def invert_factor(lower: Vector, size: int, out: Vector) -> float:
    """Compute the inverse of L; return the sum of its squares, the trace of the inverse of L L^T."""
    for k in parallel(size):
        for i in parallel(k):
            out[i * size + k] = 0.0
        out[k * size + k] = 1.0 / lower[k * size + k]
        for i in range(k + 1, size):
            rest = 0.0
            for j in range(k, i):
                rest -= lower[i * size + j] * out[j * size + k]
            out[i * size + k] = rest / lower[i * size + i]
    trace = 0.0
    for k in range(size):
        for i in range(k, size):
            trace += out[i * size + k] * out[i * size + k]
    return trace


def eigen(matrix: Vector, size: int, beside: Vector, values: Vector, vectors: Vector) -> bool:
    """Compute eigenvalues, in no order, and eigenvectors (the columns); return whether the iteration ended.

    Householder's tridiagonal form and implicit QL (EISPACK's tred2 and tql2; Numerische Mathematik 11, 181 and 293).
    ``beside`` is space for the elements beside the diagonal.
    """
    for i in parallel(size):
        for j in parallel(size):
            vectors[i * size + j] = matrix[i * size + j]
    tridiagonalise(vectors, size, values, beside)
    return diagonalise(vectors, size, values, beside)


def tridiagonalise(vectors: Vector, size: int, values: Vector, beside: Vector) -> None:
    """Bring a matrix to tridiagonal form by reflections, which replace it."""
    for i in range(size - 1, 0, -1):
        scale = 0.0
        for k in range(i):
            scale += abs(vectors[i * size + k])
        if i == 1 or scale == 0.0:
            beside[i] = vectors[i * size + i - 1]
            values[i] = 0.0
            continue
        square = 0.0
        for k in range(i):
            vectors[i * size + k] /= scale
            square += vectors[i * size + k] * vectors[i * size + k]
        last = vectors[i * size + i - 1]
        root = -sqrt(square) if last > 0 else sqrt(square)
        beside[i] = scale * root
        square -= last * root
        vectors[i * size + i - 1] = last - root
        for j in parallel(i):
            vectors[j * size + i] = vectors[i * size + j] / square
            total = 0.0
            for k in range(j + 1):
                total += vectors[j * size + k] * vectors[i * size + k]
            for k in range(j + 1, i):
                total += vectors[k * size + j] * vectors[i * size + k]
            beside[j] = total / square
        along = 0.0
        for j in range(i):
            along += beside[j] * vectors[i * size + j]
        half = along / (square + square)
        for j in parallel(i):
            beside[j] -= half * vectors[i * size + j]
        for j in parallel(i):
            for k in parallel(j + 1):
                vectors[j * size + k] -= vectors[i * size + j] * beside[k] + beside[j] * vectors[i * size + k]
        values[i] = square
    values[0] = 0.0
    beside[0] = 0.0
    for i in range(size):
        if values[i] != 0.0:
            for j in parallel(i):
                total = 0.0
                for k in range(i):
                    total += vectors[i * size + k] * vectors[k * size + j]
                for k in parallel(i):
                    vectors[k * size + j] -= total * vectors[k * size + i]
        values[i] = vectors[i * size + i]
        vectors[i * size + i] = 1.0
        for j in parallel(i):
            vectors[j * size + i] = 0.0
            vectors[i * size + j] = 0.0


def diagonalise(vectors: Vector, size: int, values: Vector, beside: Vector) -> bool:
    """Bring a tridiagonal matrix to diagonal form by QL steps with implicit shifts."""
    for i in range(1, size):
        beside[i - 1] = beside[i]
    beside[size - 1] = 0.0
    ended = True
    for first in range(size):
        for rotation in range(MAX_ROTATIONS + 1):
            last = first
            while last < size - 1 and abs(beside[last]) > EPSILON * (
                abs(values[last]) + abs(values[last + 1])
            ):
                last += 1
            if last == first:
                break
            if rotation == MAX_ROTATIONS:
                ended = False
                break
            ql_step(vectors, size, values, beside, first, last)
    return ended


def ql_step(vectors: Vector, size: int, values: Vector, beside: Vector, first: int, last: int) -> None:
    """Take one QL step with implicit shift from row ``last`` up to row ``first``."""
    g = (values[first + 1] - values[first]) / (2.0 * beside[first])
    r = sqrt(g * g + 1.0)
    g = values[last] - values[first] + beside[first] / (g + (r if g >= 0 else -r))
    sine, cosine, shift = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f = sine * beside[i]
        b = cosine * beside[i]
        r = sqrt(f * f + g * g)
        beside[i + 1] = r
        if r == 0.0:  # the matrix splits
            values[i + 1] -= shift
            beside[last] = 0.0
            return
        sine = f / r
        cosine = g / r
        g = values[i + 1] - shift
        r = (values[i] - g) * sine + 2.0 * cosine * b
        shift = sine * r
        values[i + 1] = g + shift
        g = cosine * r - b
        for k in parallel(size):
            one = vectors[k * size + i]
            next_one = vectors[k * size + i + 1]
            vectors[k * size + i] = cosine * one - sine * next_one
            vectors[k * size + i + 1] = sine * one + cosine * next_one
    values[first] -= shift
    beside[first] = g
    beside[last] = 0.0
