"""Replicas of a dataset, in which each event counts a Poisson number of times, minimised many together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.evaluation import PartData
from morefit.minimise.batch import Batch, Fits
from morefit.minimise.check import edm_goal
from morefit.minimise.finer_nodes import minimise_with_finer_nodes
from morefit.minimise.result import FitResult
from morefit.random.host import stream_key
from morefit.random.philox import Sequence64
from morefit.resources import aligned_rows

# a hundredth of a fit's: distances to the minimum must be small against the spread of minima
TOLERANCE = 1e-3
GOAL = edm_goal(TOLERANCE)
BLOCK_BYTES = 64 << 20  # of weights at once

# Thresholds of the cumulative probabilities of a Poisson count of mean 1, for 64 random bits.
POISSON = np.array(
    [
        int(p * 2.0**64) if p < 1 else 2**64 - 1
        for p in np.exp(-1.0) * np.cumsum(1 / np.cumprod([1, *range(1, 18)]))
    ],
    np.uint64,
)


def poisson_weights(seed: int, replicas: Integers, events: int) -> Array:
    """Return how often each event counts in each replica, (replicas, events), from its own stretch of Philox numbers."""
    weights, words = aligned_rows(len(replicas), events), Sequence64(seed)
    for row, replica in zip(weights, replicas.tolist(), strict=True):
        row[:] = np.searchsorted(POISSON, words.after((0, 0, 0, replica), events), side="right")
    return weights


@dataclass(frozen=True, eq=False)
class Replicas:
    """A likelihood whose events are weighted anew, and whose constraints measure anew, in each replica.

    ``done`` is called with the number of replicas that are finished.
    """

    likelihood: Term
    best: FitResult
    seed: int
    fluctuate: bool = True  # constraints measure anew
    done: Callable[[int], None] = lambda _: None

    def __post_init__(self) -> None:
        for constraint in (c for part in self.likelihood.parts for c in part.constraints if self.fluctuate):
            constraint.check_drawable()

    @property
    def block(self) -> int:
        """How many replicas are minimised at once: as many as their weights have room for."""
        return max(1, BLOCK_BYTES // (8 * max(self.likelihood.events, 1)))

    def fit(self, count: int) -> Fits:
        """Minimise the first ``count`` replicas."""
        blocks = [
            self.fit_block(first, min(first + self.block, count)) for first in range(0, count, self.block)
        ]
        return Fits.joined(blocks)

    def fit_block(self, first: int, stop: int) -> Fits:
        """Minimise replicas together: from the best fit, and what fails from the start values and elsewhere."""
        term, replicas = self.likelihood, np.arange(first, stop)
        data = tuple(self.part_data(k, part, replicas) for k, part in enumerate(term.parts))
        begin = {p.name: p.start for p in term.all_parameters}
        batch = Batch(
            likelihood=term,
            data=data,
            base=np.tile([self.best.values[p.name] for p in term.all_parameters], (len(replicas), 1)),
            floating=self.best.floating,
            limits=np.array([self.best.limits[n] for n in self.best.floating]),
            goal=GOAL * term.weight_scale,
            weight=term.weight_scale,
            alone=lambda k: self.alone(data, k),
            strategy=0,
            tolerance=TOLERANCE,
            done=lambda finished: self.done(first + finished),
        )
        start = np.array([begin[n] for n in self.best.floating])
        fits = batch.fit([lambda _, sets: np.tile(start, (len(sets), 1))])
        minimise_with_finer_nodes(batch, fits, fits.valid)
        return fits

    def part_data(self, k: int, part: Likelihood, replicas: Integers) -> PartData:
        """Return the weights of a part's events in each replica, times those they have anyway, and what is measured."""
        before, total = sum(p.events for p in self.likelihood.parts[:k]), self.likelihood.events

        def weights() -> Array:
            return poisson_weights(self.seed, replicas, total)[:, before : before + part.events]

        data = part.replicas(weights, stream_key(self.seed, f"replicas of part {k}"), replicas)
        return replace(data, measured=self.measured(k, part, replicas))

    def measured(self, k: int, part: Likelihood, replicas: Integers) -> Array | None:
        """Return what constraints measure in each replica, around what they measured in the data."""
        if not (self.fluctuate and part.constraints):
            return None
        draws = [
            c.draw(self.best.values, stream_key(self.seed, f"constraint {k} {i}"), replicas, around_data=True)
            for i, c in enumerate(part.constraints)
        ]
        return np.concatenate(draws, axis=1)

    def alone(self, data: tuple[PartData, ...], k: int) -> Term:
        """Return the likelihood of one replica."""
        parts = []
        for part, own in zip(self.likelihood.parts, data, strict=True):
            measured = part.constraints_at(own.rows(np.array([k])))
            parts.append(part.replaced(data=part.replica(own, k), constraints=measured))
        return self.likelihood.with_parts(parts)
