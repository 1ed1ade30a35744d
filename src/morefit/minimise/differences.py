"""Derivatives of a likelihood as differences of its values, which are computed together."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import value_unit
from morefit.likelihood import Evaluation
from morefit.minimise.objective import Objective
from morefit.minimise.quadratic_model import OPEN

STEP = 0.02  # errors: what is left out of a gradient moves the minimum by less than 1e-4 of one
LONGEST = 0.02  # of the distance between limits: the first step
SHORTEST = 1e-16  # of that
DIGITS = 1e-12  # of the value of a parameter: a shorter step is rounded
FAR = 30.0  # times longer or shorter than it should be: a first step is chosen again
ROUNDS = 16  # of choosing the first steps
CHANGED = 1.5  # times the curvature: correlations may have changed as well
MOST_PARAMETERS = 100  # pairs of more take longer than Minuit, which needs none
LASTING = 4  # evaluations, after which correlations are computed again in any case


@dataclass(eq=False)
class Differences:
    """Derivatives of an objective by central differences, next to a limit by those to one side.

    Steps are parts of the errors that the curvature at the point before gave. Mixed derivatives need most of the points;
    correlations change little from one evaluation to the next, and are kept for some.
    """

    objective: Objective
    longest: Array  # (P,) steps,
    steps: Array  # and those of the next evaluation
    curvature: Array  # (P,) where correlations were computed
    correlations: Array  # (P, P)
    age: int = LASTING  # evaluations since then

    @classmethod
    def around(cls, objective: Objective, start: Array) -> Differences:
        """Choose steps for the surroundings of a point."""
        low, high = objective.problem.floating_limits.T
        longest = LONGEST * np.minimum(high - low, OPEN * np.maximum(np.abs(start), 1.0))
        found = cls(objective, longest, longest, np.ones(len(start)), np.eye(len(start)))
        for _ in range(ROUNDS):
            before = found.steps
            found.follow(start, found.differences(start, mixed=False)[1])
            ratios = found.steps / before
            if ((ratios < FAR) & (ratios > 1 / FAR)).all():
                break
        return found

    def at(self, x: Array) -> Evaluation:
        """Return value, gradient and Hessian at a point, and choose the steps of the next one."""
        renewed = self.age >= LASTING
        evaluation, curvature = self.differences(x, mixed=renewed)
        hessian, sizes = evaluation.hessian[0], np.sqrt(np.abs(curvature))
        if renewed:
            positive = np.where(sizes > 0, sizes, 1.0)
            self.correlations, self.curvature, self.age = hessian / np.outer(positive, positive), curvature, 0
        else:
            hessian += self.correlations * np.outer(sizes, sizes)
        np.fill_diagonal(hessian, curvature)
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = curvature / self.curvature
        alike = ((changes < CHANGED) & (changes > 1 / CHANGED)).all()
        self.age = self.age + 1 if alike else LASTING
        self.follow(x, curvature)
        return evaluation

    def differences(self, x: Array, *, mixed: bool) -> tuple[Evaluation, Array]:
        """Return derivatives at a point, the second ones of two parameters where they are wanted, and the others apart."""
        first, second = self.offsets(x)
        count = len(x)
        moves = moves_of(count, mixed=mixed)
        values, bad = self.objective.values(x + moves.first * first + moves.second * second)
        rises = values - values[0]
        one, two, both = rises[1 : 1 + count], rises[1 + count : 1 + 2 * count], rises[1 + 2 * count :]
        curvature = 2 * (two / second - one / first) / (second - first)
        slopes = one / first - curvature * first / 2
        hessian = np.zeros((1, count, count))
        if mixed:
            i, j = moves.pairs
            hessian[0, i, j] = hessian[0, j, i] = (both - one[i] - one[j]) / (first[i] * first[j])
        return Evaluation(values[:1], slopes[None], hessian, bad[:1]), curvature

    def offsets(self, x: Array) -> tuple[Array, Array]:
        """Return two steps of each parameter that end inside its limits, as they are when rounded."""
        low, high = self.limits
        below, above = x - self.steps < low, x + self.steps > high
        first = np.where(below, self.steps, -self.steps)
        second = np.where(below, 2 * self.steps, np.where(above, -2 * self.steps, self.steps))
        return (x + first) - x, (x + second) - x

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        low, high = self.objective.problem.floating_limits.T
        return low, high

    def follow(self, x: Array, curvature: Array) -> None:
        """Choose the next steps: a part of the errors, if there is any curvature."""
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = STEP * np.sqrt(value_unit(self.objective.weight) / np.abs(curvature))
        wanted = np.where(np.isnan(wanted), self.steps / FAR, wanted)
        self.steps = np.clip(wanted, np.maximum(SHORTEST * self.longest, DIGITS * np.abs(x)), self.longest)


class Moves(NamedTuple):
    """Which steps lead from a point to those where the values are: none, one for each parameter, the others, pairs of the first ones."""

    first: Array
    second: Array
    pairs: tuple[Integers, Integers]


@lru_cache(maxsize=16)
def moves_of(count: int, *, mixed: bool) -> Moves:
    """Return the points for a number of parameters, with or without pairs of them."""
    i, j = np.triu_indices(count if mixed else 0, 1)
    nowhere, each = np.zeros((1, count)), np.eye(count)
    second = np.concatenate([nowhere, 0 * each, each, np.zeros((len(i), count))])
    return Moves(np.concatenate([nowhere, each, 0 * each, each[i] + each[j]]), second, (i, j))
