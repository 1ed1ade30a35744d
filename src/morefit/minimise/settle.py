"""Minima of densities with kinks that parameters move, of many sets together: every event makes one, at which slopes jump.

Second derivatives miss the jumps, so that Newton's steps with them do not end there. Steps with products of scores lead close to the
minimum. Then, in turns, the parameters that move no kink are minimised by Newton's method, those that do are searched along
their valley, and some steps to all sides are tried; the fit has ended where none of these leads lower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from morefit.arrays import Array, Integers
from morefit.kernel.fit_layout import MAX_STEPS
from morefit.likelihood import Evaluation
from morefit.minimise.check import invert as invert_one
from morefit.minimise.kinks import steps_aside
from morefit.minimise.newton import minimise
from morefit.minimise.quadratic_model import WEAK_PIVOT

# of steps with products of scores, which do not end at a kink: how close they lead, and how many there are
CLOSE, FEW_STEPS = 100.0, 20
ROUNDS = 12
# errors along a valley, at first and later
FAR, NEAR = np.linspace(-3.0, 3.0, 61), np.linspace(-0.3, 0.3, 21)
ZOOM = np.linspace(-1.0, 1.0, 21)  # of the distance between two places, around the lowest
ZOOMS = 3
TOGETHER = 1000  # sets: with all their steps to the sides they need some memory


class Settled(NamedTuple):
    """Where the fits of B sets ended."""

    x: Array  # (B, P)
    value: Array  # (B,)
    edm: Array  # (B,) how much lower a step to the side leads, nan where there are no errors
    covariance: Array  # (B, P, P) the inverse of the sum of products of scores


class Kinked(NamedTuple):
    """Functions of P parameters with kinks, one for each set: values and derivatives, and sums of products of scores."""

    evaluate: Callable[[Integers, Array, int], Evaluation]  # sets, points (len(sets), P), order
    scores: Callable[[Integers, Array], Array]  # (len(sets), P, P)
    limits: Array  # (P, 2)
    goal: float
    kinks: Sequence[int]  # the parameters that move kinks
    thorough: bool = False  # steps begin at many places
    starts: int = 0  # other places that may be tried first

    def with_scores(self, sets: Integers, x: Array) -> Evaluation:
        there = self.evaluate(sets, x, 2)
        return Evaluation(there.value, there.gradient, self.scores(sets, x), there.bad)

    def values(self, sets: Integers, points: Array) -> Array:
        """Return the values at several points of each set, (B, M), from (B, M, P); inf where there is no density."""
        there = self.evaluate(np.repeat(sets, points.shape[1]), points.reshape(-1, points.shape[2]), 0)
        known = (there.bad == 0) & np.isfinite(there.value)
        return np.asarray(np.where(known, there.value, np.inf).reshape(points.shape[:2]), np.float64)

    def clip(self, points: Array) -> Array:
        return np.asarray(np.clip(points, *self.limits.T), np.float64)


def settle(kinked: Kinked, sets: Integers, start: Array) -> Settled:
    """Minimise functions with kinks from ``start`` (B, P)."""
    cuts = range(TOGETHER, len(sets), TOGETHER)
    some = zip(np.split(sets, cuts), np.split(start, cuts), strict=True)
    return Settled(*map(np.concatenate, zip(*(settle_some(kinked, *each) for each in some), strict=True)))


@np.errstate(all="ignore")
def settle_some(kinked: Kinked, sets: Integers, start: Array) -> Settled:
    # the ends of other starts are compared, so that these must be close
    goal, max_steps = (kinked.goal, MAX_STEPS) if kinked.starts else (CLOSE * kinked.goal, FEW_STEPS)
    first = minimise(
        lambda k, x: kinked.with_scores(sets[k], x),
        start,
        kinked.limits,
        goal,
        thorough=kinked.thorough,
        starts=kinked.starts,
        max_steps=max_steps,
    )
    x, value = first.x.copy(), first.nll.copy()
    edm, covariance = np.full(len(sets), np.nan), np.full((*x.shape, x.shape[1]), np.nan)
    active = np.flatnonzero(np.isfinite(value))
    for turn in range(ROUNDS):
        if not len(active):
            break
        own, there = sets[active], x[active]
        lower(there, value, active, *minimise_rest(kinked, own, there))
        covariance[active], x[active] = invert(kinked.scores(own, there)), there
        known = np.isfinite(covariance[active]).all(axis=(1, 2))
        edm[active[~known]] = np.nan  # there are no errors to search within
        active, own, there = active[known], own[known], there[known]
        if not len(active):
            break
        for k in kinked.kinks:
            valley = covariance[active, :, k] / np.sqrt(covariance[active, k, k])[:, None]
            lower(there, value, active, *search(kinked, own, there, valley, FAR if turn == 0 else NEAR))
        before = value[active]
        around = there[:, None] + np.array([steps_aside(c) for c in covariance[active]])
        lower(there, value, active, *lowest(kinked, own, kinked.clip(around)))
        x[active] = there
        edm[active] = before - value[active]
        active = active[edm[active] > kinked.goal]
    return Settled(x, value, edm, covariance)


def lower(x: Array, value: Array, active: Integers, points: Array, values: Array) -> None:
    """Go where other points are lower; ``x`` are those of the active sets, ``value`` those of all."""
    better = values < value[active]
    x[better], value[active[better]] = points[better], values[better]


def minimise_rest(kinked: Kinked, sets: Integers, x: Array) -> tuple[Array, Array]:
    """Minimise over the parameters that move no kink, by Newton's method."""
    rest = [i for i in range(x.shape[1]) if i not in kinked.kinks]
    if not rest:
        return x, np.full(len(x), np.inf)

    def at(rows: Integers, own: Array) -> Array:
        points = x[rows]
        points[:, rest] = own
        return points

    minima = minimise(
        lambda k, own: kinked.evaluate(sets[k], at(k, own), 2).cut(rest),
        x[:, rest],
        kinked.limits[rest],
        kinked.goal,
        starts=0,
    )
    return at(np.arange(len(x)), minima.x), np.asarray(np.where(minima.valid, minima.nll, np.inf))


def search(kinked: Kinked, sets: Integers, x: Array, valley: Array, grid: Array) -> tuple[Array, Array]:
    """Search for the lowest point along a direction of each set, in errors, closer and closer around it."""
    best = np.zeros(len(x))
    for _ in range(1 + ZOOMS):
        errors = best[:, None] + grid
        points = kinked.clip(x[:, None] + errors[:, :, None] * valley[:, None])
        values = kinked.values(sets, points)
        k = np.argmin(values, axis=1)
        rows = np.arange(len(x))
        best = errors[rows, k]
        grid = ZOOM * (grid[1] - grid[0])
    return points[rows, k], values[rows, k]


def lowest(kinked: Kinked, sets: Integers, points: Array) -> tuple[Array, Array]:
    """Return the lowest of some points of each set, and its value."""
    values = kinked.values(sets, points)
    rows, k = np.arange(len(points)), np.argmin(values, axis=1)
    return points[rows, k], values[rows, k]


def invert(matrices: Array) -> Array:
    """Invert positive-definite matrices, (B, P, P), scaled to a unit diagonal first; nan for others, and for those with a flat direction."""
    inverse = np.array([invert_one(matrix) for matrix in matrices]).reshape(matrices.shape)
    diagonals = (np.diagonal(m, axis1=1, axis2=2) for m in (inverse, matrices))
    # what is left of each parameter's information if the others float
    flat = ~(np.min(1 / np.multiply(*diagonals), axis=1) > WEAK_PIVOT)  # nor nan
    inverse[flat] = np.nan
    return np.asarray(inverse, np.float64)
