"""The rules of a damped Newton step, written once: for numbers of many fits, and for expressions to be compiled.

Arrays have one row a fit. Their elements are floats, or expressions: operators work on both, and what else the rules
need is an ``Algebra``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.likelihood import Evaluation

Numbers = NDArray[Any]  # floats, or expressions as objects
Function = Callable[..., Numbers]

NOT_YET, CONVERGED, GIVEN_UP = 0.0, 1.0, 2.0  # the status of a fit
UNKNOWN = 1e300  # the value before the first evaluation
ROUNDING = 1e-12  # of the value: so small a step upwards is none
DAMPING = 1e-3  # where damping starts when a step fails
MAX_DAMPING = 1e12
SAFE_PIVOT = 1e-13  # of a Hessian scaled to a unit diagonal: below, it does not count as positive definite
SUSPECT = (
    3.0  # times the distance to the minimum, in errors: smaller eigenvalues may come from that distance alone
)
STEEP = 1e-6  # per error: a slope at a limit below this is rounding, and does not hold a parameter there
WIDEST = 1e3  # times the way between its limits: a parameter with a larger error is undetermined
OPEN = 1e2  # times its value, or one: what stands for the way between limits where there are none


@dataclass(frozen=True)
class Algebra:
    """What the rules need besides operators; a condition is true or false, or an expression that is 1 or 0."""

    where: Function
    maximum: np.ufunc
    minimum: Function
    sqrt: Function
    less: Function
    less_equal: Function
    both: Function
    either: Function


@dataclass(frozen=True, eq=False)
class State:
    """Where fits stand: B of them, P parameters."""

    trial: Numbers  # (B, P) the point to be evaluated next
    status: Numbers  # (B,)
    x: Numbers  # (B, P) the best point so far, and what is known there:
    value: Numbers  # (B,)
    edm: Numbers  # (B,) half of g H^-1 g
    gradient: Numbers  # (B, P)
    hessian: Numbers  # (B, P, P)
    damping: Numbers  # (B,)


@dataclass(frozen=True, eq=False)
class Scaled:
    """The quadratic form at a point, with parameters in units that give it a unit diagonal."""

    fixed: Numbers  # (B, P) whether a parameter is at a limit that the gradient points out of
    scale: Numbers  # (B, P) the units
    whole: Numbers  # (B, P, P) the Hessian
    free: Numbers  # (B, P, P) that of the free parameters, with rows of the unit matrix for those fixed
    slopes: Numbers  # (B, P) the gradient of the free parameters


@dataclass(frozen=True, eq=False)
class Factor:
    """Cholesky's factor of symmetric matrices, some of which had to be mended."""

    lower: Numbers  # (B, P, P)
    definite: Numbers  # (B,) whether a matrix is positive definite as it is
    least: Numbers  # (B,) its smallest pivot: what is left of a parameter's information when others float
    change: Numbers  # (B,) a shift of the diagonal that makes it so


def advance(
    do: Algebra, state: State, evaluation: Evaluation, low: Numbers, high: Numbers, goal: Numbers | float
) -> State:
    """Accept or reject the trial points after their evaluation, and choose the next ones.

    A trial point is accepted if the value does not grow; otherwise the damping grows. A step solves
    (H + damping * diag|H|) step = -g over the parameters that are not fixed at a limit, and is cut at the limits. A
    fit ends when half of g H^-1 g is below the goal with H positive definite, both for the free parameters. Where
    only a * b is measured, H is positive definite by chance next to the minimum, by as much as that is away: an
    eigenvalue as small as this (the smallest is about a pivot divided by their number) is not believed before the
    fit comes closer, nor is a slope that small at a limit.
    """
    total = evaluation.value + evaluation.gradient.sum(axis=1) + evaluation.hessian.sum(axis=(1, 2))
    good = do.both(do.less_equal(evaluation.bad, 0), do.less(abs(total), UNKNOWN))  # false for nan
    taken = do.both(good, do.less_equal(evaluation.value, state.value + ROUNDING * (1 + abs(state.value))))
    x = do.where(taken[:, None], state.trial, state.x)
    value = do.where(taken, evaluation.value, state.value)
    gradient = do.where(taken[:, None], evaluation.gradient, state.gradient)
    hessian = do.where(taken[:, None, None], evaluation.hessian, state.hessian)
    less = do.where(do.less(DAMPING, state.damping), 0.1 * state.damping, 0.0)
    damping = do.where(taken, less, do.maximum(10 * state.damping, DAMPING))

    form = scaled(do, x, gradient, hessian, low, high)
    factor = factorise_free(do, form)
    definite = factor.definite
    edm = 0.5 * (forward(factor.lower, form.slopes) ** 2).sum(axis=1)
    shift = do.where(definite, damping, do.maximum(damping, factor.change + DAMPING))
    damped = cholesky(do, add_to_diagonal(form.free, shift)).lower
    move = backward(damped, forward(damped, form.slopes)) * form.scale
    trial = do.minimum(do.maximum(x - move, low), high)
    doubt = 2 * (SUSPECT * x.shape[1]) ** 2
    steepness = reduce(do.minimum, do.where(form.fixed, (gradient * form.scale) ** 2, UNKNOWN).T)
    sure = do.both(do.less(doubt * edm, factor.least**2), do.less(doubt * edm, steepness))
    close = do.both(do.less_equal(edm, goal), sure)
    done = do.both(do.both(taken, definite), close)
    lost = do.either(do.less_equal(UNKNOWN, value), do.less(MAX_DAMPING, shift))
    status = do.where(done, CONVERGED, do.where(lost, GIVEN_UP, NOT_YET))
    return State(trial, status, x, value, do.where(definite, edm, UNKNOWN), gradient, hessian, shift)


def scaled(
    do: Algebra, x: Numbers, gradient: Numbers, hessian: Numbers, low: Numbers, high: Numbers
) -> Scaled:
    """Bring a quadratic form to a unit diagonal and leave out the parameters that are fixed at a limit.

    The diagonal is zero for a parameter without curvature: what there is of it comes from rounding.
    """
    size, least = abs(np.diagonal(hessian, axis1=1, axis2=2)), least_curvature(do, x, low, high)
    scale = do.maximum(size, least) ** -0.5
    fixed = do.either(
        do.both(do.less_equal(x, low), do.less(STEEP, gradient * scale)),
        do.both(do.less_equal(high, x), do.less(gradient * scale, -STEEP)),
    )
    whole = hessian * scale[:, :, None] * scale[:, None, :]
    diagonal = do.where(do.less(size, least), 0.0, np.diagonal(whole, axis1=1, axis2=2))
    whole = np.where(np.eye(x.shape[1], dtype=bool), diagonal[:, None, :], whole)
    apart = do.either(fixed[:, :, None], fixed[:, None, :])
    free = do.where(apart, np.eye(x.shape[1]), whole)
    return Scaled(fixed, scale, whole, free, do.where(fixed, 0.0, gradient * scale))


def least_curvature(do: Algebra, x: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """Return the curvature that a parameter needs: with less, its error is far wider than its limits."""
    return (WIDEST * do.minimum(high - low, OPEN * do.maximum(abs(x), 1.0))) ** -2


def root_of_covariance(do: Algebra, state: State, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Return R with the covariance R^T R, and whether there is one.

    It is the inverse of the Hessian. Where this is positive definite only for the free parameters, it is theirs, and
    a parameter that is fixed has an error of its own: that of Minuit for a parameter at a limit.
    """
    form = scaled(do, state.x, state.gradient, state.hessian, low, high)
    whole, free = cholesky(do, form.whole), factorise_free(do, form)
    lower = do.where(whole.definite[:, None, None], whole.lower, free.lower)
    alone = do.where(form.fixed, reach(do, state.gradient, low, high), form.scale)
    scale = do.where(whole.definite[:, None], form.scale, alone)
    return inverse(lower) * scale[:, None, :], do.either(whole.definite, free.definite)


def reach(do: Algebra, slope: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """Return how far from its limit a parameter raises the nll by one half, at most to the other limit."""
    return do.minimum(0.5 / abs(slope), high - low)


def cholesky(do: Algebra, matrix: Numbers, bound: Numbers | None = None) -> Factor:
    """Factorise symmetric matrices of unit diagonal; with a bound, mend pivots by Gill and Murray's rule."""
    count = matrix.shape[1]
    lower = np.zeros_like(matrix)
    pivots, changes = [], []
    for j in range(count):
        row = lower[:, j, :j]
        pivot = matrix[:, j, j] - dot(row, row)
        below = matrix[:, j + 1 :, j] - dot(lower[:, j + 1 :, :j], row[:, None, :])
        mended = do.maximum(abs(pivot), SAFE_PIVOT)
        if bound is not None and j + 1 < count:
            mended = do.maximum(mended, do.maximum.reduce(abs(below), axis=1) ** 2 / bound)
        lower[:, j, j] = do.sqrt(mended)
        lower[:, j + 1 :, j] = below / lower[:, j, j, None]
        pivots.append(pivot)
        changes.append(mended - pivot)
    definite = reduce(do.both, [do.less(SAFE_PIVOT, pivot) for pivot in pivots])  # false for nan
    return Factor(lower, definite, reduce(do.minimum, pivots), reduce(do.maximum, changes))


def factorise_free(do: Algebra, form: Scaled) -> Factor:
    """Factorise the Hessian of the free parameters, with a shift that makes it positive definite if it is not.

    Gill and Murray's rule (Practical Optimization, 4.4.2.2) leaves a positive-definite matrix as it is, and changes
    one that almost is by little. Gershgorin's bound is the smaller one for many parameters far from the minimum.
    """
    matrix, count = form.free, form.free.shape[1]
    largest = do.maximum.reduce(abs(matrix).reshape(len(matrix), -1), axis=1)
    factor = cholesky(do, matrix, do.maximum(largest / max(count**2 - 1, 1) ** 0.5, 1.0))
    radius = np.where(np.eye(count, dtype=bool), -matrix, abs(matrix)).sum(axis=2)
    gershgorin = do.maximum.reduce(radius, axis=1)
    return replace(factor, change=do.minimum(factor.change, gershgorin))


def forward(factor: Numbers, right: Numbers) -> Numbers:
    """Solve L y = right for lower triangles."""
    y = np.zeros_like(right)
    for i in range(right.shape[1]):
        y[:, i] = (right[:, i] - dot(factor[:, i, :i], y[:, :i])) / factor[:, i, i]
    return y


def backward(factor: Numbers, right: Numbers) -> Numbers:
    """Solve L^T x = right for lower triangles."""
    x = np.zeros_like(right)
    for i in reversed(range(right.shape[1])):
        x[:, i] = (right[:, i] - dot(factor[:, i + 1 :, i], x[:, i + 1 :])) / factor[:, i, i]
    return x


def inverse(factor: Numbers) -> Numbers:
    """Invert lower triangles."""
    result = np.zeros_like(factor)
    for k in range(factor.shape[1]):
        unit = np.zeros_like(factor[:, k:, k])
        unit[:, 0] = 1
        result[:, k:, k] = forward(factor[:, k:, k:], unit)
    return result


def dot(a: Numbers, b: Numbers) -> Numbers:
    return np.asarray(np.einsum("...k,...k->...", a, b))


def add_to_diagonal(matrix: Numbers, shift: Numbers) -> Numbers:
    return np.where(np.eye(matrix.shape[1], dtype=bool), matrix + shift[:, None, None], matrix)
