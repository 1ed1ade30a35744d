"""Damped Newton steps for many fits at once: the same rules for one fit, a scan, or thousands of toys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morefit.backend import Array
from morefit.likelihood import Evaluation

Sets = NDArray[np.int64]  # which sets
Flags = NDArray[np.bool_]
Evaluate = Callable[
    [Sets, Array], Evaluation
]  # (sets, x of shape (len(sets), P)) -> value, gradient, Hessian

MOST_STEPS = 60
DAMPING = 1e-3  # where damping starts when a step fails
MOST_DAMPING = 1e12
SAFE_PIVOT = 1e-13  # of a Hessian scaled to a unit diagonal: below, it does not count as positive definite
FRACTION = 0.995  # how far a step may go towards a limit that it would cross


@dataclass(frozen=True, eq=False)
class Minima:
    """Where many minimisations ended: B sets, P parameters."""

    x: Array  # (B, P)
    covariance: Array  # (B, P, P), nan where there is none
    nll: Array  # (B,)
    edm: Array  # (B,)
    valid: Flags  # (B,) converged, with a positive-definite Hessian and no bad events
    at_limit: Flags  # (B, P)
    steps: NDArray[np.int64]  # (B,) evaluations

    @property
    def errors(self) -> Array:
        """Return the square roots of the diagonals."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))


def minimise(evaluate: Evaluate, start: Array, limits: Array, goal: float) -> Minima:
    """Minimise B functions of P parameters from ``start`` (B, P) within ``limits`` (P, 2) or (B, P, 2).

    A step solves (H + damping * diag(H)) step = -g over the parameters that are not held at a limit; it is taken
    if the value does not grow, else the damping does. A fit ends when half of g H^-1 g is below ``goal`` with H
    positive definite: Minuit's rule.
    """
    state = State(start, np.broadcast_to(limits, (*start.shape, 2)), goal)
    trial = np.clip(start, state.low, state.high)
    active = np.arange(len(start))
    for _ in range(MOST_STEPS):
        found = evaluate(active, trial)
        active, trial = state.advance(active, trial, found)
        if not len(active):
            break
    return state.result()


class State:
    """The best point of every set so far, and what is known there."""

    def __init__(self, start: Array, limits: Array, goal: float) -> None:
        sets, count = start.shape
        self.low, self.high, self.goal = limits[..., 0], limits[..., 1], goal
        self.x = start.copy()
        self.value = np.full(sets, np.inf)
        self.gradient = np.zeros((sets, count))
        self.hessian = np.full((sets, count, count), np.nan)
        self.damping = np.zeros(sets)
        self.edm = np.full(sets, np.inf)
        self.done = np.zeros(sets, bool)
        self.held = np.zeros((sets, count), bool)
        self.steps = np.zeros(sets, np.int64)

    def advance(self, active: Sets, trial: Array, found: Evaluation) -> tuple[Sets, Array]:
        """Take or refuse the trial points; return the sets still under way and their next trial points."""
        self.steps[active] += 1
        good = (found.bad == 0) & np.isfinite(found.value) & np.isfinite(found.hessian).all(axis=(1, 2))
        slack = 1e-12 * (1 + np.abs(self.value[active]))  # rounding must not look like a step upwards
        taken = good & ~(found.value > self.value[active] + slack)
        self.take(active[taken], trial[taken], found, taken)
        self.damp(active, taken)
        moving = active[~self.done[active] & (self.damping[active] < MOST_DAMPING)]
        moving = moving[np.isfinite(self.value[moving])]
        return self.next_points(moving)

    def take(self, sets: Sets, x: Array, found: Evaluation, taken: Flags) -> None:
        self.x[sets], self.value[sets] = x, found.value[taken]
        self.gradient[sets], self.hessian[sets] = found.gradient[taken], found.hessian[taken]
        outward = ((x <= self.low[sets]) & (self.gradient[sets] >= 0)) | (
            (x >= self.high[sets]) & (self.gradient[sets] <= 0)
        )
        self.held[sets] = outward
        _, definite, edm = self.solve(sets, np.zeros(len(sets)))
        self.edm[sets] = np.where(definite, edm, np.inf)
        self.done[sets] = definite & (edm <= self.goal)

    def damp(self, active: Sets, taken: Flags) -> None:
        """Trust the quadratic form more after a success, less after a failure."""
        now = self.damping[active]
        less = np.where(now > DAMPING, now / 10, 0.0)
        self.damping[active] = np.where(taken, less, np.maximum(now * 10, DAMPING))

    def next_points(self, sets: Sets) -> tuple[Sets, Array]:
        """Step from the best points; where the damped Hessian is not positive definite, damp more."""
        trial = self.x[sets].copy()
        waiting = np.arange(len(sets))
        while len(waiting):
            these = sets[waiting]
            step, definite, _ = self.solve(these, self.damping[these])
            ready = waiting[definite]
            trial[ready] = self.inside(sets[ready], step[definite])
            waiting = waiting[~definite]
            self.damping[sets[waiting]] = np.maximum(self.damping[sets[waiting]] * 10, DAMPING)
            waiting = waiting[self.damping[sets[waiting]] < MOST_DAMPING]
        keep = self.damping[sets] < MOST_DAMPING
        return sets[keep], trial[keep]

    def inside(self, sets: Sets, step: Array) -> Array:
        """Cut a step at the limits: a parameter that would cross one goes to it."""
        return np.clip(self.x[sets] + step, self.low[sets], self.high[sets])

    def solve(self, sets: Sets, damping: Array) -> tuple[Array, Flags, Array]:
        """Return the step, whether its matrix is positive definite, and half of g H^-1 g."""
        matrix, scale = self.scaled(sets)
        gradient = np.where(self.held[sets], 0.0, self.gradient[sets]) * scale
        count = gradient.shape[1]
        matrix = matrix + np.eye(count) * damping[:, None, None]
        factor, definite = cholesky(matrix)
        half = forward(factor, gradient)
        step = -backward(factor, half) * scale
        return step, definite, 0.5 * np.sum(half**2, axis=1)

    def scaled(self, sets: Sets) -> tuple[Array, Array]:
        """Return the Hessians with a unit diagonal, held parameters cut out, and the scales."""
        hessian, held = self.hessian[sets], self.held[sets]
        size = np.abs(np.diagonal(hessian, axis1=1, axis2=2))
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where((size > 0) & np.isfinite(size), 1 / np.sqrt(size), 1.0)
        matrix = hessian * scale[:, :, None] * scale[:, None, :]
        apart = held[:, :, None] | held[:, None, :]
        return np.where(apart, np.eye(held.shape[1]), np.nan_to_num(matrix)), scale

    def result(self) -> Minima:
        everyone = np.arange(len(self.x))
        held, self.held = self.held, np.zeros_like(self.held)
        matrix, scale = self.scaled(everyone)
        self.held = held
        factor, definite = cholesky(matrix)
        inverse = invert_factor(factor)
        covariance = np.einsum("bki,bkj->bij", inverse, inverse) * scale[:, :, None] * scale[:, None, :]
        covariance[~(definite & np.isfinite(self.value))] = np.nan
        return Minima(self.x, covariance, self.value, self.edm, self.done & definite, held, self.steps)


def cholesky(matrix: Array) -> tuple[Array, Flags]:
    """Factorise many symmetric matrices of unit diagonal; where one is not positive definite, say so."""
    sets, count, _ = matrix.shape
    factor = np.zeros_like(matrix)
    definite = np.ones(sets, bool)
    for j in range(count):
        pivot = matrix[:, j, j] - np.sum(factor[:, j, :j] ** 2, axis=1)
        fine = pivot > SAFE_PIVOT
        definite &= fine
        root = np.sqrt(np.where(fine, pivot, 1.0))
        factor[:, j, j] = root
        below = matrix[:, j + 1 :, j] - np.einsum("bik,bk->bi", factor[:, j + 1 :, :j], factor[:, j, :j])
        factor[:, j + 1 :, j] = below / root[:, None]
    return factor, definite


def forward(factor: Array, right: Array) -> Array:
    """Solve L y = right for many lower triangles."""
    y = np.zeros_like(right)
    for i in range(right.shape[1]):
        y[:, i] = (right[:, i] - np.einsum("bk,bk->b", factor[:, i, :i], y[:, :i])) / factor[:, i, i]
    return y


def backward(factor: Array, right: Array) -> Array:
    """Solve L^T x = right for many lower triangles."""
    x = np.zeros_like(right)
    for i in reversed(range(right.shape[1])):
        x[:, i] = (right[:, i] - np.einsum("bk,bk->b", factor[:, i + 1 :, i], x[:, i + 1 :])) / factor[
            :, i, i
        ]
    return x


def invert_factor(factor: Array) -> Array:
    """Invert many lower triangles."""
    sets, count, _ = factor.shape
    columns = [forward(factor, np.broadcast_to(np.eye(count)[k], (sets, count)).copy()) for k in range(count)]
    return np.stack(columns, axis=2)
