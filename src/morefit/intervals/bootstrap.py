"""Fit replicas of a dataset, in which each event counts a Poisson number of times, many together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt

import numpy as np

from morefit.backend import Array, Events
from morefit.errors import DataError, FitError
from morefit.fit import FitResult
from morefit.fit.newton import Flags, Minima, Sets, minimise
from morefit.fit.result import Column, suggest, text_table
from morefit.fit.rounding import round_pdg
from morefit.frozen import freeze, rebuilt
from morefit.intervals.classic import check_level
from morefit.intervals.held import GOAL, best_fit, cut, try_minuit
from morefit.likelihood import AnyLikelihood, Evaluation, JointLikelihood, Likelihood, unpack
from morefit.pipeline import Bound, compile_sums
from morefit.progress import Bar

BLOCK_BYTES = 64 << 20  # of weights at once

# Thresholds of the cumulative probabilities of a Poisson count of mean 1, for 64 random bits.
POISSON = np.array(
    [
        int(p * 2.0**64) if p < 1 else 2**64 - 1
        for p in np.exp(-1.0) * np.cumsum(1 / np.cumprod([1, *range(1, 18)]))
    ],
    np.uint64,
)


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """The minima of B replicas of a dataset, each event of which counts a Poisson number of times (mean 1).

    ``errors`` and ``covariance`` are those of the valid replicas; nan if there are fewer than two. Weights of the
    dataset are kept, constraints stay where they are.
    """

    names: tuple[str, ...]
    best: Array  # (P,), of the data themselves
    values: Array  # (B, P)
    nll: Array  # (B,)
    valid: Flags  # (B,)
    seed: int

    def __post_init__(self) -> None:
        freeze(self)

    __reduce__ = rebuilt

    def __len__(self) -> int:
        return len(self.values)

    @property
    def covariance(self) -> Array:
        """The covariance of the values, (P, P)."""
        good = self.values[self.valid]
        if len(good) < 2:
            return np.full((len(self.names), len(self.names)), nan)
        return np.cov(good, rowvar=False).reshape(len(self.names), len(self.names))

    @property
    def errors(self) -> Array:
        """The standard deviations of the values, (P,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), np.float64)

    @property
    def bias(self) -> Array:
        """How far the mean of the values is from the fit of the data, (P,)."""
        good = self.values[self.valid]
        return (
            np.asarray(good.mean(axis=0) - self.best, np.float64)
            if len(good)
            else np.full_like(self.best, nan)
        )

    def interval(self, name: str, level: float = 0.6827) -> tuple[float, float]:
        """Return the central interval that holds this fraction of the valid replicas."""
        check_level("bootstrap", level)
        if name not in self.names:
            raise FitError(f"bootstrap: parameter '{name}': was not fitted; {suggest(name, self.names)}")
        good = self.values[self.valid, self.names.index(name)]
        if not len(good):
            return nan, nan
        low, high = np.quantile(good, [0.5 * (1 - level), 0.5 * (1 + level)])
        return float(low), float(high)

    def __str__(self) -> str:
        bad = int(np.sum(~self.valid))
        verdict = "all valid" if not bad else f"{bad} NOT VALID"
        means = self.errors / sqrt(max(len(self) - bad, 1))  # their errors
        rows = zip(self.best, self.errors, self.bias, means, strict=True)
        cells = [(*round_pdg(value, error), round_pdg(bias, mean)[0]) for value, error, bias, mean in rows]
        value, error, bias = zip(*cells, strict=True)
        columns = [Column("parameter", self.names, numeric=False), Column("value", value)]
        table = text_table([*columns, Column("error", error), Column("bias", bias)])
        return f"bootstrap: {len(self)} replicas, {verdict}, seed {self.seed}\n\n{table}"

    __repr__ = __str__


def bootstrap(
    likelihood: AnyLikelihood,
    *,
    replicas: int = 1000,
    seed: int = 0,
    best: FitResult | None = None,
    progress: bool = True,
) -> Bootstrap:
    """Fit replicas of the data, in which each event counts a Poisson number of times, many together.

    Replica r with a seed has the same weights on every machine, however many replicas there are. ``best`` is as
    for ``profile``; every replica starts from it.
    """
    if replicas < 1:
        raise DataError(f"bootstrap: replicas must be at least 1, got {replicas}")
    if not 0 <= seed < 2**64:
        raise DataError(f"bootstrap: seed must be a whole number in [0, 2**64), got {seed}")
    best = best_fit("bootstrap", likelihood, best)
    samples = Replicas(likelihood, best, seed)
    block = max(1, BLOCK_BYTES // (8 * max(likelihood.events, 1)))
    values, nll = np.empty((replicas, len(best.floating))), np.empty(replicas)
    valid = np.zeros(replicas, bool)
    with Bar("bootstrap", replicas, progress) as bar:
        for first in range(0, replicas, block):
            stop = min(first + block, replicas)
            found = samples.minimise(first, stop, bar)
            values[first:stop], nll[first:stop], valid[first:stop] = found
    centre = np.array([best.values[n] for n in best.floating])
    return Bootstrap(best.floating, centre, values, nll, valid, seed)


def poisson_weights(seed: int, replica: int, events: int) -> Array:
    """Return how often each event counts in a replica, from its own stretch of Philox numbers."""
    bits = np.random.Philox(key=seed, counter=[0, 0, 0, replica]).random_raw(events)
    return np.searchsorted(POISSON, bits, side="right").astype(np.float64)


class Replicas:
    """A likelihood, or each part of a sum, whose events can be weighted anew for each set."""

    def __init__(self, likelihood: AnyLikelihood, best: FitResult, seed: int) -> None:
        places = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        rows = {p.name: k for k, p in enumerate(likelihood.parameters)}
        self.parts = parts_of(likelihood)
        self.places = [[places[p.name] for p in part.all_parameters] for part in self.parts]
        self.part_rows = [[rows[p.name] for p in part.parameters] for part in self.parts]
        self.count = len(rows)
        self.columns = [places[n] for n in best.floating]
        self.rows = [rows[n] for n in best.floating]
        self.likelihood, self.best, self.seed = likelihood, best, seed
        self.base = np.array([best.values[p.name] for p in likelihood.all_parameters])
        self.limits = np.array([best.limits[n] for n in best.floating])

    def minimise(self, first: int, stop: int, bar: Bar) -> tuple[Array, Array, Flags]:
        """Minimise a block of replicas: from the best fit, what fails from the start values, then by Minuit."""
        weights = np.stack(
            [poisson_weights(self.seed, r, self.likelihood.events) for r in range(first, stop)]
        )
        found = self.newton(weights, self.base[self.columns], first, bar)
        x, nll, valid = found.x, found.nll, found.valid.copy()
        failed = np.flatnonzero(~valid)
        if len(failed):
            starts = np.array([p.start for p in self.likelihood.all_parameters])[self.columns]
            again = self.newton(weights[failed], starts, stop - len(failed), bar)
            good = failed[again.valid]
            x[good], nll[good], valid[good] = again.x[again.valid], again.nll[again.valid], True
        for k in np.flatnonzero(~valid):
            self.by_minuit(int(k), weights[k], x, nll, valid)
        return x, nll, valid

    def newton(self, weights: Array, start: Array, done: int, bar: Bar) -> Minima:
        """Minimise replicas together; those that are done are left out, and so are their weights."""
        now: list[tuple[Sets, list[Array]]] = [(np.arange(len(weights)), self.split(weights))]

        def evaluate(sets: Sets, x: Array) -> Evaluation:
            bar.done(done + len(weights) - len(sets))
            if len(sets) < len(now[0][0]):
                now[0] = (sets, self.split(weights[sets]))
            full = np.tile(self.base, (len(sets), 1))
            full[:, self.columns] = x
            return cut(self.evaluate(full, now[0][1]), self.rows)

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
        found = try_minuit(parts[0] if len(parts) == 1 else JointLikelihood(parts), start, fixed, self.best)
        if found is not None:
            x[k] = [found.values[n] for n in self.best.floating]
            nll[k], valid[k] = found.nll, found.valid


def parts_of(likelihood: AnyLikelihood) -> tuple[Likelihood, ...]:
    """Return the likelihoods of single datasets that a likelihood is made of."""
    parts = likelihood.parts if isinstance(likelihood, JointLikelihood) else (likelihood,)
    assert all(isinstance(part, Likelihood) for part in parts)
    return parts  # type: ignore[return-value]


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
    return compiled.bind(part.columns, Events.all_sets(part.events), weights)
