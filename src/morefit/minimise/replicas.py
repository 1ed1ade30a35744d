"""Replicas of a dataset, in which each event counts a Poisson number of times, minimised many together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.likelihood.unbinned import AnyLikelihood, Evaluation, JointLikelihood, Likelihood, unpack
from morefit.minimise.check import goal_of
from morefit.minimise.newton import Minima, minimise
from morefit.minimise.result import FitResult
from morefit.pipeline import Bound, compile_sums
from morefit.targets import Events

TOLERANCE = (
    1e-3  # a hundredth of a fit's: distances to the minimum must be small against the spread of minima
)
GOAL = goal_of(TOLERANCE)
BLOCK_BYTES = 64 << 20  # of weights at once

# Thresholds of the cumulative probabilities of a Poisson count of mean 1, for 64 random bits.
POISSON = np.array(
    [
        int(p * 2.0**64) if p < 1 else 2**64 - 1
        for p in np.exp(-1.0) * np.cumsum(1 / np.cumprod([1, *range(1, 18)]))
    ],
    np.uint64,
)

Found = tuple[Array, Array, Flags]  # values (B, P), nll (B,), valid (B,)
# (likelihood, start, fixed, best) -> a fit with the limits of the best one, or None where it cannot start
Rescue = Callable[[AnyLikelihood, dict[str, float], dict[str, float], FitResult], FitResult | None]


def poisson_weights(seed: int, replica: int, events: int) -> Array:
    """Return how often each event counts in a replica, from its own stretch of Philox numbers."""
    bits = np.random.Philox(key=seed, counter=[0, 0, 0, replica]).random_raw(events)
    return np.searchsorted(POISSON, bits, side="right").astype(np.float64)


class Replicas:
    """A likelihood, or each part of a sum, whose events can be weighted anew for each set.

    ``rescue`` fits what Newton steps cannot, and ``done`` is told how many replicas are finished.
    """

    def __init__(
        self, likelihood: AnyLikelihood, best: FitResult, seed: int, rescue: Rescue,
        done: Callable[[int], None] = lambda _: None,
    ) -> None:  # fmt: skip
        places = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        rows = {p.name: k for k, p in enumerate(likelihood.parameters)}
        self.parts = likelihood.parts
        self.places = [[places[p.name] for p in part.all_parameters] for part in self.parts]
        self.part_rows = [[rows[p.name] for p in part.parameters] for part in self.parts]
        self.count = len(rows)
        self.columns = [places[n] for n in best.floating]
        self.rows = [rows[n] for n in best.floating]
        self.likelihood, self.best, self.seed = likelihood, best, seed
        self.rescue, self.done = rescue, done
        self.base = np.array([best.values[p.name] for p in likelihood.all_parameters])
        self.limits = np.array([best.limits[n] for n in best.floating])

    @property
    def block(self) -> int:
        """How many replicas are minimised at once: as many as their weights have room for."""
        return max(1, BLOCK_BYTES // (8 * max(self.likelihood.events, 1)))

    def fit(self, count: int) -> Found:
        """Minimise the first so many replicas."""
        values, nll = np.empty((count, len(self.rows))), np.empty(count)
        valid = np.zeros(count, bool)
        for first in range(0, count, self.block):
            stop = min(first + self.block, count)
            values[first:stop], nll[first:stop], valid[first:stop] = self.minimise(first, stop)
        return values, nll, valid

    def minimise(self, first: int, stop: int) -> Found:
        """Minimise a block of replicas: from the best fit, what fails from the start values, then by Minuit."""
        weights = np.stack(
            [poisson_weights(self.seed, r, self.likelihood.events) for r in range(first, stop)]
        )
        found = self.newton(weights, self.base[self.columns], first)
        x, nll, valid = found.x, found.nll, found.valid.copy()
        failed = np.flatnonzero(~valid)
        if len(failed):
            starts = np.array([p.start for p in self.likelihood.all_parameters])[self.columns]
            again = self.newton(weights[failed], starts, stop - len(failed))
            good = failed[again.valid]
            x[good], nll[good], valid[good] = again.x[again.valid], again.nll[again.valid], True
        for k in np.flatnonzero(~valid):
            self.by_minuit(int(k), weights[k], x, nll, valid)
        return x, nll, valid

    def newton(self, weights: Array, start: Array, before: int) -> Minima:
        """Minimise replicas together; those that are done are left out, and so are their weights."""
        now: list[tuple[Integers, list[Array]]] = [(np.arange(len(weights)), self.split(weights))]

        def evaluate(sets: Integers, x: Array) -> Evaluation:
            self.done(before + len(weights) - len(sets))
            if len(sets) < len(now[0][0]):
                now[0] = (sets, self.split(weights[sets]))
            full = np.tile(self.base, (len(sets), 1))
            full[:, self.columns] = x
            return self.evaluate(full, now[0][1]).cut(self.rows)

        return minimise(evaluate, np.tile(start, (len(weights), 1)), self.limits, GOAL)

    def split(self, weights: Array) -> list[Array]:
        """Return the weights for each part, times those that its events have anyway."""
        stops = np.cumsum([part.events for part in self.parts])
        pieces = np.split(weights, stops[:-1], axis=1)
        own = [part.data.weights for part in self.parts]
        return [
            np.ascontiguousarray(piece if w is None else piece * w)
            for piece, w in zip(pieces, own, strict=True)
        ]

    def evaluate(self, full: Array, weights: Sequence[Array]) -> Evaluation:
        """Add up the parts, with the derivatives by all floating parameters."""
        sets, count = len(full), self.count
        total = Evaluation(
            np.zeros(sets), np.zeros((sets, count)), np.zeros((sets, count, count)), np.zeros(sets, np.int64)
        )
        for part, places, rows, own in zip(self.parts, self.places, self.part_rows, weights, strict=True):
            found = evaluate_weighted(part, np.ascontiguousarray(full[:, places]), own)
            total.value[:] += found.value
            total.bad[:] += found.bad
            total.gradient[:, rows] += found.gradient
            total.hessian[np.ix_(range(sets), rows, rows)] += found.hessian
        return total

    def by_minuit(self, k: int, weights: Array, x: Array, nll: Array, valid: Flags) -> None:
        """Minimise one replica with Minuit; keep what it found also if it is not valid."""
        parts = [
            reweighted(part, own[0])
            for part, own in zip(self.parts, self.split(weights[None, :]), strict=True)
        ]
        names = [p.name for p in self.likelihood.all_parameters]
        fixed = {n: self.base[i] for i, n in enumerate(names) if n not in self.best.floating}
        start = {n: self.best.values[n] for n in self.best.floating}
        found = self.rescue(parts[0] if len(parts) == 1 else JointLikelihood(parts), start, fixed, self.best)
        if found is not None:
            x[k] = [found.values[n] for n in self.best.floating]
            nll[k], valid[k] = found.nll, found.valid


def reweighted(part: Likelihood, weights: Array) -> Likelihood:
    """Return the same likelihood of the same events with other weights."""
    return Likelihood(
        part.model, part.data.with_weights(weights), constraints=part.constraints, backend=part.backend,
        precision=part.settings.precision.name.lower(), precompute=part.settings.precompute,
    )  # fmt: skip


def evaluate_weighted(part: Likelihood, full: Array, weights: Array) -> Evaluation:
    """Evaluate each set with its own row of weights; sets with bad events again, leaving those out."""
    out = bind_weights(part, weights)(full)
    wrong = ~np.isfinite(out).all(axis=1) | (out[:, -1] > 0)
    if wrong.any():
        out[wrong] = bind_weights(part, weights[wrong], careful=True)(full[wrong])
    return unpack(out, len(part.parameters), 2)


def bind_weights(part: Likelihood, weights: Array, *, careful: bool = False) -> Bound:
    request = replace(part.request(2, careful=careful), weighted=True)
    compiled = compile_sums(request, tuple(p.expr for p in part.all_parameters), part.settings)
    return compiled.bind(part.columns, Events.all_sets(part.events), weights, part.boxes)
