"""Minimise a HistFactory likelihood over the parameters that multiply single bins, at any values of the others.

These parameters, often most of all, are measured by constraints of their own and act on one bin each. So their Hessian has a
small block for each bin, and the minimiser sees the other parameters only, with the exact derivatives of the profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.kernel.counts_layout import LINEAR, TINY
from morefit.likelihood.base import Evaluation
from morefit.likelihood.datasets import PartData
from morefit.likelihood.expected_counts import Point, not_zero

if TYPE_CHECKING:
    from morefit.likelihood.histfactory import HistFactoryLikelihood

MIN_PARAMETERS = 30  # floating: with fewer, steps of all cost less
MAX_STEPS = 60  # of Newton's method in a bin, which needs about four
CLOSE = 1e-11  # errors: steps so short end it
SHORTEST = 0.2  # of its value: a factor is not made smaller in one step, unless it is
SMALL = 0.01  # and may be zero
SHORTER = 0.25  # of a step that leads up
ROUNDING = 1e-14  # of a value: so small a rise is none
FAR = 0.01  # EDM: farther away, a Hessian with negative curvature is replaced by one without


@dataclass(frozen=True, eq=False)
class Elimination:
    """Q parameters that are eliminated, and the others.

    ``inner`` and ``outer`` are their places among the floating parameters of a fit, ``columns`` and ``rest`` among all.
    """

    likelihood: HistFactoryLikelihood
    inner: Integers  # (Q,)
    outer: Integers
    columns: Integers  # (Q,)
    rest: Integers
    groups: Integers  # (Q,) of expected counts
    limits: Array  # (Q, 2)

    @classmethod
    def of(
        cls, likelihood: HistFactoryLikelihood, floating: Sequence[str], limits: Array
    ) -> Elimination | None:
        """Return the elimination of parameters that float, act on one bin and have a constraint of their own."""
        counts, auxiliary = likelihood.model.counts, likelihood.auxiliary
        places = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        columns = np.array([places[name] for name in floating], np.int64)
        known, first, uses = np.unique(counts.group_parameters, return_index=True, return_counts=True)
        group = dict(zip(known[uses == 1].tolist(), first[uses == 1].tolist(), strict=True))
        measured = set(auxiliary.gaussian[:, 0].tolist()) | set(auxiliary.counted[:, 0].tolist())
        able = measured & set(group) - set(auxiliary.elsewhere)
        chosen = np.array([column in able for column in columns.tolist()], np.bool_)
        if len(floating) < MIN_PARAMETERS or not chosen.any() or chosen.all():
            return None
        inner, outer = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        bins = counts.group_bins[[group[c] for c in columns[inner].tolist()]]
        inner = inner[np.argsort(bins, kind="stable")]
        groups = np.array([group[c] for c in columns[inner].tolist()], np.int64)
        return cls(
            likelihood=likelihood, inner=inner, outer=outer, columns=columns[inner], rest=columns[outer],
            groups=groups, limits=limits[inner],
        )  # fmt: skip

    @cached_property
    def blocks(self) -> tuple[Integers, Integers, int]:
        """Which block each parameter is in, its place there, and the size of the largest: one block for each bin."""
        bins = self.likelihood.model.counts.group_bins[self.groups]
        block = np.cumsum(np.diff(bins, prepend=-1) > 0) - 1
        place = np.arange(len(bins)) - self.starts[block]
        return block, place, int(place.max()) + 1

    @cached_property
    def starts(self) -> Integers:
        """The first parameter of each block."""
        bins = self.likelihood.model.counts.group_bins[self.groups]
        return np.flatnonzero(np.diff(bins, prepend=-1))

    @cached_property
    def pairs(self) -> tuple[Integers, Integers, Flags]:
        """Parameters of one bin, each with itself as well, and which pairs have samples in common."""
        block, _, _ = self.blocks
        one, other = np.nonzero(block[:, None] == block[None, :])
        samples = self.likelihood.model.counts.group_samples[self.groups]
        return one, other, (one != other) & (samples[one] & samples[other]).any(axis=1)

    def in_blocks(self, terms: Array, pinned: Flags) -> Array:
        """Write terms of pairs as matrices of blocks, (sets, blocks, size, size), those of the identity where nothing moves."""
        (block, place, size), (one, other, _) = self.blocks, self.pairs
        total = np.zeros((len(terms), int(block[-1]) + 1, size, size))
        total[:] = np.eye(size)
        still = pinned[:, one] | pinned[:, other]
        known = np.where((one == other) & (terms == 0), TINY, terms)
        total[:, block[one], place[one], place[other]] = np.where(still, one == other, known)
        return total

    def pinned(self, x: Array, gradient: Array) -> Flags:
        """Return which parameters are at a limit that they would pass."""
        low, high = self.limits.T
        return np.asarray(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)), np.bool_)

    def solve(self, matrices: Array, right: Array) -> Array:
        """Solve for right sides of parameters, (sets, Q, ...), with the matrices of their blocks."""
        block, place, size = self.blocks
        if size == 1:
            return np.asarray(
                right / matrices[:, :, 0, 0].reshape(*right.shape[:2], *(1,) * (right.ndim - 2))
            )
        each = np.zeros((len(right), int(block[-1]) + 1, size, int(np.prod(right.shape[2:]))))
        each[:, block, place] = right.reshape(*right.shape[:2], -1)
        return np.asarray(np.linalg.solve(matrices, each)[:, block, place].reshape(right.shape))

    # --------------------------------------------------------------------- the minimum in every bin

    def minimise(self, full: Array, counts: Array, measured: Array) -> Array:
        """Return all parameters with the eliminated ones at their minimum: by Newton's method, with shorter steps if they rise."""
        model, own, full = self.likelihood.model.counts, len(self.likelihood.model.parameters), full.copy()
        point, block = Point(model, full[:, :own]), self.blocks[0]
        share = np.ones((len(full), int(block[-1]) + 1))
        values = self.block_values(point, full, counts, measured)
        for _ in range(MAX_STEPS):
            x = full[:, self.columns]
            step, errors = self.step(point, full, counts, measured)
            moved = np.clip(x - (share * self.room(x, step))[:, block] * step, *self.limits.T)
            full[:, self.columns] = moved
            point.multiply_groups(not_zero(full[:, :own]))
            there = self.block_values(point, full, counts, measured)
            worse = ~(there <= values + ROUNDING * (1 + np.abs(values)))
            done = np.all(np.abs(moved - x) < CLOSE * errors)
            if worse.any():
                full[:, self.columns] = np.where(worse[:, block], x, moved)
                point.multiply_groups(not_zero(full[:, :own]))
            share, values = np.where(worse, SHORTER * share, 1.0), np.where(worse, values, there)
            if done:
                break
        return full

    def room(self, x: Array, step: Array) -> Array:
        """Return which part of its step each block can take: to the first limit, and no factor much smaller, (sets, blocks)."""
        low, high = self.limits.T
        end = np.where(step > 0, np.where(x > SMALL, np.maximum(low, SHORTEST * x), low), high)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where((step != 0) & (x != end), (x - end) / step, 1.0)
        return np.minimum(1.0, np.minimum.reduceat(part, self.starts, axis=1))

    def block_values(self, point: Point, full: Array, counts: Array, measured: Array) -> Array:
        """Return the terms of the bin of each block that depend on its parameters, (sets, blocks)."""
        bins = self.likelihood.model.counts.group_bins[self.groups[self.starts]]
        mu, n = point.total[:, bins], counts[:, bins]
        terms = mu - np.where(n > 0, n * np.log(np.where(mu > 0, mu, 1.0)), 0.0)
        terms = np.where((mu > 0) | ((mu == 0) & (n == 0)), terms, np.inf)
        single = self.likelihood.auxiliary.single(full, measured)[0][:, self.columns]
        return np.asarray(terms + np.add.reduceat(single, self.starts, axis=1), np.float64)

    def step(self, point: Point, full: Array, counts: Array, measured: Array) -> tuple[Array, Array]:
        """Return Newton's step of each parameter, to be subtracted, and its error if all others were fixed."""
        bins = point.model.group_bins[self.groups]
        one, other, overlap = self.pairs
        itself = one == other
        safe = np.where(point.total > 0, point.total, np.inf)
        slope, curvature = 1 - counts / safe, counts / safe**2
        slopes = point.slopes_of_groups(self.groups)
        _, first, second = (
            some[:, self.columns] for some in self.likelihood.auxiliary.single(full, measured)
        )
        gradient = slope[:, bins] * slopes + first
        pinned = self.pinned(full[:, self.columns], gradient)
        gradient[pinned] = 0.0
        terms = curvature[:, bins[one]] * slopes[:, one] * slopes[:, other]
        terms[:, itself] = np.maximum(terms[:, itself] + second, TINY)
        errors = 1 / np.sqrt(terms[:, itself])
        step = self.solve(self.in_blocks(terms, pinned), gradient)
        if overlap.any():  # the exact Hessian, where it leads down
            a, b = self.groups[one[overlap]], self.groups[other[overlap]]
            terms[:, overlap] += slope[:, point.model.group_bins[a]] * point.overlaps(a, b)
            exact = self.solve(self.in_blocks(terms, pinned), gradient)
            step = np.where(self.by_block(gradient * exact) > 0, exact, step)
        return step, errors

    def by_block(self, terms: Array) -> Array:
        """Return for each parameter the sum of the terms of its block."""
        return np.asarray(np.add.reduceat(terms, self.starts, axis=1)[:, self.blocks[0]], np.float64)

    # --------------------------------------------------------------------- what the minimiser sees

    def evaluate(self, data: Sequence[PartData], sets: Integers, full: Array) -> Evaluation:
        """Evaluate the profile with its derivatives by the parameters that are not eliminated."""
        counts, measured = self.likelihood.observed(data, sets)
        full = self.minimise(full, counts, measured)
        exact, *_ = self.reduced(full, self.likelihood.evaluate_all(full, counts, measured, 2))
        bent = np.flatnonzero([not is_definite(h) for h in exact.hessian])
        if len(bent):
            linear = self.likelihood.evaluate_all(full[bent], counts[bent], measured[bent], LINEAR)
            straight, *_ = self.reduced(full[bent], linear)
            for k, hessian, gradient in zip(bent, straight.hessian, straight.gradient, strict=True):
                if is_definite(hessian) and 0.5 * gradient @ np.linalg.solve(hessian, gradient) > FAR:
                    exact.hessian[k] = hessian
        return exact

    def reduced(self, full: Array, whole: Evaluation) -> tuple[Evaluation, Array, Array, Flags]:
        """Return derivatives of the profile; H_ii^-1 H_io and H_ii in blocks; and which parameters limits stop."""
        one, other, _ = self.pairs
        pinned = self.pinned(full[:, self.columns], whole.gradient[:, self.columns])
        blocks = self.in_blocks(whole.hessian[:, self.columns[one], self.columns[other]], pinned)
        mixed = whole.hessian[:, self.columns[:, None], self.rest]
        mixed[pinned] = 0.0
        solved = self.solve(blocks, mixed)
        hessian = whole.hessian[:, self.rest[:, None], self.rest] - mixed.transpose(0, 2, 1) @ solved
        profile = Evaluation(whole.value, whole.gradient[:, self.rest], hessian, whole.bad)
        return profile, solved, blocks, pinned

    def complete(
        self, data: Sequence[PartData], sets: Integers, full: Array, covariance: Array
    ) -> tuple[Array, Array]:
        """Return floating parameters and their covariance, from those that are not eliminated and theirs."""
        counts, measured = self.likelihood.observed(data, sets)
        full = self.minimise(full, counts, measured)
        whole = self.likelihood.evaluate_all(full, counts, measured, 2)
        _, solved, blocks, pinned = self.reduced(full, whole)
        count = len(self.inner) + len(self.outer)
        values, matrix = np.empty((len(full), count)), np.zeros((len(full), count, count))
        values[:, self.inner], values[:, self.outer] = full[:, self.columns], full[:, self.rest]
        mixed = -solved @ covariance
        own = -mixed @ solved.transpose(0, 2, 1)
        (block, place, _), (one, other, _) = self.blocks, self.pairs
        own[:, one, other] += np.linalg.inv(blocks)[:, block[one], place[one], place[other]]
        itself = np.arange(len(self.inner))
        alone = 1 / whole.hessian[:, self.columns, self.columns]
        own[:, itself, itself] = np.where(pinned, alone, own[:, itself, itself])
        matrix[:, self.outer[:, None], self.outer] = covariance
        matrix[:, self.inner[:, None], self.outer] = mixed
        matrix[:, self.outer[:, None], self.inner] = mixed.transpose(0, 2, 1)
        matrix[:, self.inner[:, None], self.inner] = own
        return values, matrix


def is_definite(hessian: Array) -> bool:
    """Return whether a matrix is positive definite."""
    try:
        np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        return False
    return True
