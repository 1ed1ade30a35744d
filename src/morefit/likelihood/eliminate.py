"""Minimise a HistFactory likelihood over the parameters that multiply single bins, at any values of the others.

These parameters, often most of all, are measured by constraints of their own and act on one bin each. So their Hessian has a
small block for each bin, and the minimiser sees the other parameters only, with the exact derivatives of the profile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.dataclass import dataclass
from morefit.kernel.counts_layout import TINY, CountsTable
from morefit.likelihood.evaluation import Evaluation, PartData
from morefit.likelihood.expected_counts import Blocks, profile_table
from morefit.likelihood.sums import unpack

if TYPE_CHECKING:
    from morefit.likelihood.histfactory import HistFactoryLikelihood

T = TypeVar("T")
MAX_REMEMBERED = 16  # tables of a likelihood, each of which may be megabytes
MIN_PARAMETERS = 30  # floating: with fewer, steps of all cost less


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

    # --------------------------------------------------------------------- what the minimiser sees

    @cached_property
    def table(self) -> CountsTable:
        """What compiled code reads to minimise over the parameters that are eliminated."""
        nll, first = self.likelihood, self.starts
        key = ("profile", *self.columns.tolist(), *self.rest.tolist(), self.limits.tobytes())
        blocks = Blocks(
            groups=self.groups, parameters=self.columns, first=np.append(first, len(self.groups)),
            bins=nll.model.counts.group_bins[self.groups[first]], overlap=bool(self.pairs[2].any()),
        )  # fmt: skip
        begin = np.clip([nll.all_parameters[c].start for c in self.columns.tolist()], *self.limits.T)
        return remembered(
            nll.tables, key, lambda: profile_table(nll.table, self.rest, blocks, self.limits, begin)
        )

    def profile(self, data: Sequence[PartData], sets: Integers, full: Array) -> tuple[Evaluation, Array]:
        """Evaluate the profile at rows of all parameters; return it, and all parameters with the minimum in each row."""
        counts, measured = self.likelihood.observed(data, sets)
        points = np.concatenate([full, measured, counts], axis=1)
        sums = self.likelihood.backend.sum_counts(self.table, points)
        count, last = len(self.rest), sums.shape[1] - len(self.columns)
        profile = unpack(sums[:, :last], count, 2)
        self.likelihood.auxiliary.add_others(full, measured, profile, self.rest.tolist())
        full = full.copy()
        full[:, self.columns] = sums[:, last:]
        return profile, full

    def evaluate(self, data: Sequence[PartData], sets: Integers, full: Array) -> Evaluation:
        """Evaluate the profile with its derivatives by the parameters that are not eliminated."""
        return self.profile(data, sets, full)[0]

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
        _, full = self.profile(data, sets, full)
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


def remembered(known: dict[Hashable, T], key: Hashable, make: Callable[[], T]) -> T:
    """Return what a key stands for, made when it is first needed; with too many, all others are forgotten."""
    try:
        return known[key]
    except KeyError:
        if len(known) >= MAX_REMEMBERED:
            known.clear()
        made = known[key] = make()
        return made
