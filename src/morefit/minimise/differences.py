"""Derivatives of a likelihood as differences of its values, which are computed together."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from morefit.arrays import Array, Integers, all_finite
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import value_unit
from morefit.likelihood import Evaluation
from morefit.minimise.objective import Objective
from morefit.minimise.quadratic_model import OPEN

STEP = 0.02  # errors: what is left out of a gradient moves the minimum by less than 1e-4 of one
LONGEST = 0.02  # of the distance between limits: the longest step, and the first where no curvature is known
SHORTEST = 1e-16  # of that
DIGITS = 1e-12  # of the value of a parameter: a shorter step is rounded
FAR = 30.0  # times longer or shorter than it should be: a first step is chosen again
ROUNDS = 16  # of choosing the first steps
CHANGED = 1.5  # times the curvature: correlations may have changed as well
MOST_PARAMETERS = 100  # pairs of more take longer than Minuit, which needs none
CHEAP = 1e5  # pairs times events: fewer are computed every time, correlations of more are kept
LASTING = 4  # for so many evaluations


@dataclass(eq=False)
class Differences:
    """Derivatives of an objective by central differences, next to a limit by those to one side.

    Steps are parts of the errors that the curvature at the point before gave. Mixed derivatives need most of the points;
    correlations change little from one evaluation to the next.
    """

    objective: Objective
    limits: tuple[Array, Array]
    longest: Array  # (P,) steps
    shortest: Array
    steps: Array  # of the next evaluation
    lasting: int  # evaluations, after which correlations are computed again
    age: int  # evaluations since they were
    part: float  # of an error: a step
    correlations: Array | None = None  # (P, P),
    curvature: Array | None = None  # (P,) where they were computed

    @classmethod
    @np.errstate(all="ignore")
    def around(cls, objective: Objective, start: Array) -> Differences:
        """Choose steps for the surroundings of a point: from the exact curvature there, if it is known, or by trying."""
        low, high = objective.problem.floating_limits.T
        longest = LONGEST * np.minimum(high - low, OPEN * np.maximum(np.abs(start), 1.0))
        pairs = len(start) * (len(start) - 1) // 2
        lasting = 0 if pairs * objective.likelihood.entries < CHEAP else LASTING
        found = cls(
            objective=objective,
            limits=(low, high),
            longest=longest,
            shortest=SHORTEST * longest,
            steps=longest,
            lasting=lasting,
            age=lasting,
            part=STEP * math.sqrt(value_unit(objective.weight)),
        )
        known = np.diagonal(objective.at(start, 2).hessian[0])
        if np.isfinite(known).all() and known.all():
            found.follow(start, known)
            return found
        for _ in range(ROUNDS):
            before = found.steps
            found.follow(start, found.differences(start, mixed=False)[1])
            ratios = found.steps / before
            if ((ratios < FAR) & (ratios > 1 / FAR)).all():
                break
        return found

    def at(self, x: Array) -> Evaluation:
        """Return value, gradient and Hessian at a point, and choose the steps of the next one."""
        evaluation, curvature = self.differences(x, mixed=self.age >= self.lasting)
        if self.lasting:
            self.keep_correlations(evaluation.hessian[0], curvature)
        self.follow(x, curvature)
        return evaluation

    def keep_correlations(self, hessian: Array, curvature: Array) -> None:
        """Remember the correlations of a Hessian, or fill it with those that are remembered."""
        sizes = np.sqrt(np.abs(curvature))
        if self.correlations is None or self.curvature is None or self.age >= self.lasting:
            positive = np.where(sizes > 0, sizes, 1.0)
            self.correlations, self.curvature, self.age = hessian / np.outer(positive, positive), curvature, 0
        else:
            hessian[:] = self.correlations * np.outer(sizes, sizes)
            np.fill_diagonal(hessian, curvature)
        changes = curvature / self.curvature
        alike = ((changes < CHANGED) & (changes > 1 / CHANGED)).all()
        self.age = self.age + 1 if alike else self.lasting

    def differences(self, x: Array, *, mixed: bool) -> tuple[Evaluation, Array]:
        """Return derivatives at a point, second ones of two parameters where they are wanted, and its curvature apart."""
        first, second = self.offsets(x)
        count, moves = len(x), moves_of(len(x), mixed=mixed)
        values, bad = self.objective.values(x + (moves.first * first + moves.second * second))
        rises = values - values[0]
        one, two = rises[1 : 1 + count], rises[1 + count : 1 + 2 * count]
        to_one, to_two = one / first, two / second
        curvature = 2 * (to_two - to_one) / (second - first)
        hessian = np.zeros(count * count)
        hessian[:: count + 1] = curvature
        if mixed:
            mixed_ones = (rises[1 + 2 * count :] - moves.pairs @ one) / (
                first[moves.row] * first[moves.column]
            )
            hessian[moves.lower] = hessian[moves.upper] = mixed_ones
        slopes = to_one - 0.5 * curvature * first
        return Evaluation(values[:1], slopes[None], hessian.reshape(1, count, count), bad[:1]), curvature

    def offsets(self, x: Array) -> tuple[Array, Array]:
        """Return two steps of each parameter that end inside its limits, as they are when rounded."""
        low, high = self.limits
        below, above = x - self.steps, x + self.steps
        if (below >= low).all() and (above <= high).all():
            return below - x, above - x
        at_low, at_high = below < low, above > high
        first = np.where(at_low, self.steps, -self.steps)
        second = np.where(at_low, 2 * self.steps, np.where(at_high, -2 * self.steps, self.steps))
        return (x + first) - x, (x + second) - x

    def follow(self, x: Array, curvature: Array) -> None:
        """Choose the next steps: a part of the errors, if there is any curvature."""
        wanted = self.part / np.sqrt(np.abs(curvature))
        shortest = np.maximum(self.shortest, DIGITS * np.abs(x))
        wanted = np.minimum(np.maximum(wanted, shortest), self.longest)
        self.steps = wanted if all_finite(wanted) else np.where(np.isnan(wanted), self.steps / FAR, wanted)


class Moves(NamedTuple):
    """Which steps lead from a point to others: none, the first one of each parameter, the second one, first ones of two."""

    first: Array
    second: Array
    pairs: Array  # (pairs, P) 1 for the two that move,
    row: Integers  # which they are,
    column: Integers
    lower: Integers  # and where they are in a matrix
    upper: Integers


@lru_cache(maxsize=16)
def moves_of(count: int, *, mixed: bool) -> Moves:
    """Return the moves of a number of parameters, with or without pairs of them."""
    i, j = np.tril_indices(count if mixed else 0, -1)
    nowhere, each = np.zeros((1, count)), np.eye(count)
    pairs = each[i] + each[j]
    first = np.concatenate([nowhere, each, 0 * each, pairs])
    second = np.concatenate([nowhere, 0 * each, each, 0 * pairs])
    return Moves(first, second, pairs, i, j, i * count + j, j * count + i)
