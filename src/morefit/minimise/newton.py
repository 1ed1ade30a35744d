"""Damped Newton steps for many fits at once: the same rules for one fit, a scan, or thousands of toys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags, Integers
from morefit.likelihood import Evaluation
from morefit.minimise.newton_rules import (
    CONVERGED,
    NOT_YET,
    UNKNOWN,
    Algebra,
    State,
    advance,
    root_of_covariance,
)

Evaluate = Callable[
    [Integers, Array], Evaluation
]  # (sets, x of shape (len(sets), P)) -> value, gradient, Hessian

MAX_STEPS = 60
NUMBERS = Algebra(
    where=np.where,
    maximum=np.maximum,
    minimum=np.minimum,
    sqrt=np.sqrt,
    less=np.less,
    less_equal=np.less_equal,
    both=np.logical_and,
    either=np.logical_or,
)


@dataclass(frozen=True, eq=False)
class Minima:
    """Where many minimisations ended: B sets, P parameters."""

    x: Array  # (B, P)
    covariance: Array  # (B, P, P), nan where there is none
    nll: Array  # (B,)
    edm: Array  # (B,)
    valid: Flags  # (B,) converged, with a positive-definite Hessian of the free parameters and no bad events
    steps: NDArray[np.int64]  # (B,) evaluations

    @property
    def errors(self) -> Array:
        """Return the square roots of the diagonals."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))


@np.errstate(all="ignore")
def minimise(evaluate: Evaluate, start: Array, limits: Array, goal: float) -> Minima:
    """Minimise B functions of P parameters from ``start`` (B, P) within ``limits`` (P, 2) or (B, P, 2).

    A fit ends when its EDM, half of g H^-1 g, is below ``goal`` with H positive definite: Minuit's rule. What is done
    is left out of the next evaluation.
    """
    limits = np.broadcast_to(limits, (*start.shape, 2))
    low, high = limits[..., 0], limits[..., 1]
    state = first_state(np.clip(start, low, high))
    final = first_state(state.x)
    steps = np.zeros(len(start), np.int64)
    active = np.arange(len(start))
    for _ in range(MAX_STEPS):
        evaluation = evaluate(active, state.trial)
        steps[active] += 1
        state = advance(NUMBERS, state, evaluation, low[active], high[active], goal)
        moving = state.status == NOT_YET
        if not moving.all():
            put(final, active[~moving], pick(state, ~moving))
            state, active = pick(state, moving), active[moving]
        if not len(active):
            break
    put(final, active, state)
    root, known = root_of_covariance(NUMBERS, final, low, high)
    covariance = np.einsum("bki,bkj->bij", root, root)
    covariance[~(known & (final.value < UNKNOWN))] = np.nan
    nll, edm = (np.where(a < UNKNOWN, a, np.inf) for a in (final.value, final.edm))
    return Minima(final.x, covariance, nll, edm, final.status == CONVERGED, steps)


def first_state(x: Array) -> State:
    """Return the state of fits that start at x: nothing is known yet."""
    sets, count = x.shape
    unknown, zeros = np.full(sets, UNKNOWN), np.zeros(sets)
    hessian = np.tile(np.eye(count), (sets, 1, 1))
    return State(x, zeros, x.copy(), unknown, unknown.copy(), np.zeros_like(x), hessian, zeros.copy())


def pick(state: State, chosen: Flags) -> State:
    return State(*(getattr(state, f.name)[chosen] for f in fields(State)))


def put(into: State, sets: Integers, state: State) -> None:
    for f in fields(State):
        getattr(into, f.name)[sets] = getattr(state, f.name)
