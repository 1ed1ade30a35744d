"""The function that is minimised: a likelihood of the parameters that float in a fit."""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.likelihood import Evaluation, Term
from morefit.likelihood.evaluation import PENALTY
from morefit.minimise.problem import Problem
from morefit.text.progress import LateBar

TOGETHER = 64  # points that are evaluated in one call


@dataclass(eq=False)
class Objective:
    """The function Minuit sees. Value and gradient come from one pass, so the last point is remembered."""

    likelihood: Term
    problem: Problem
    by_scores: bool = False  # products of scores instead of second derivatives
    weight: float = 1.0  # the mean one of events: rises of the nll are as small
    numeric: bool = False  # steps go by differences of values
    calls: dict[str, int] = field(default_factory=lambda: {"value": 0, "gradient": 0, "hessian": 0})
    compiling: float = 0.0  # seconds spent on machine code during a minimisation
    checking: float = 0.0  # seconds spent on Hessians at the end of a minimisation
    strayed: int = 0  # evaluations where some event had no positive density
    lowest: float = math.inf  # the value at
    best: Array | None = None  # the lowest point so far
    bar: LateBar | None = None
    last_point: bytes = b""
    last: Evaluation | None = None

    def at(self, x: Array, order: int) -> Evaluation:
        """Evaluate with the derivatives of the parameters that float in this fit."""
        self.calls[("value", "gradient", "hessian")[order]] += 1
        full = self.problem.full(x)
        evaluation = self.likelihood.evaluate_full(full, order)
        if order == 2 and self.by_scores:
            evaluation = replace(
                evaluation, hessian=self.likelihood.add_up(full, lambda part, own: part.squared_scores(own))
            )
        if evaluation.bad[0]:
            self.strayed += 1
        value = evaluation.value + PENALTY * evaluation.bad
        if value[0] < self.lowest:
            self.lowest, self.best = float(value[0]), x.copy()
        self.show()
        if self.problem.every_row:
            return Evaluation(value, evaluation.gradient, evaluation.hessian, evaluation.bad)
        rows = list(self.problem.rows)
        gradient = evaluation.gradient[:, rows] if order > 0 else evaluation.gradient
        hessian = evaluation.hessian[:, rows][:, :, rows] if order > 1 else evaluation.hessian
        return Evaluation(value, gradient, hessian, evaluation.bad)

    def values(self, points: Array) -> tuple[Array, NDArray[np.int64]]:
        """Evaluate at many points: values, and how many events have no density there; some at a time, for Ctrl-C's sake."""
        self.calls["value"] += len(points)
        full = self.problem.full_rows(points)
        pieces = [full[k : k + TOGETHER] for k in range(0, len(full), TOGETHER)]
        every = [self.likelihood.evaluate_full(piece, 0) for piece in pieces]
        values, bad = every[0].value, every[0].bad
        if len(every) > 1:
            values, bad = (np.concatenate([getattr(one, name) for one in every]) for name in ("value", "bad"))
        self.show()
        if bad.any():
            self.strayed += int(np.count_nonzero(bad))
            values = values + PENALTY * bad
        return values, bad

    def show(self) -> None:
        """Show how far a long fit is."""
        if self.bar is not None:
            self.bar.show(lambda: f"fitting: {sum(self.calls.values())} evaluations, nll {self.lowest:.2f}")

    def release(self) -> None:
        """Drop the likelihood when a fit is done.

        The objects of Minuit refer to each other and to this one; until the next garbage collection they would keep the
        data, and the next fit would need new memory.
        """
        del self.likelihood
        self.last = None

    def remembered(self, x: Array) -> Evaluation:
        point = x.tobytes()
        if self.last is None or point != self.last_point:
            self.last, self.last_point = self.at(x, 1), point
        return self.last

    def value_of_pair(self, x: Array) -> float:
        return finite(self.remembered(x).value[0])

    def gradient(self, x: Array) -> Array:
        slopes: Array = self.remembered(x).gradient[0]
        return slopes

    def hessian(self, x: Array) -> Array:
        hessian: Array = self.at(x, 2).hessian[0]
        return hessian

    def value(self, x: Array) -> float:
        return finite(self.at(x, 0).value[0])


def finite(value: float) -> float:
    """Return a finite number for Minuit to compare."""
    return float(value) if math.isfinite(value) else 1e300
