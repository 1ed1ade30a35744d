"""Fit replicas of a dataset, in which each event counts a Poisson number of times, many together."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, freeze, rebuilt
from morefit.errors import FitError
from morefit.likelihood import Term
from morefit.minimise import FitResult
from morefit.minimise.conditional import best_fit
from morefit.minimise.problem import as_likelihood
from morefit.minimise.replicas import Replicas
from morefit.model import Parameter, Pdf
from morefit.random.host import stream_key
from morefit.resources import check_memory
from morefit.sampling.generate import check_seed
from morefit.text.progress import Bar
from morefit.text.rounding import round_pdg
from morefit.text.suggest import suggest
from morefit.text.tables import Column, text_table
from morefit.validate import check_level, name_of, whole_number


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """The minima of B replicas of a dataset, each event of which counts a Poisson number of times (mean 1).

    ``errors`` and ``covariance`` are those of the valid replicas; nan if there are fewer than two. Weights of the
    dataset are kept.
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

    def interval(self, parameter: str | Parameter, level: float = 0.6827) -> tuple[float, float]:
        """Return the central interval that holds this fraction of the valid replicas."""
        name = name_of(parameter)
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
    likelihood: Term | Pdf,
    *,
    data: Any = None,
    replicas: int = 1000,
    seed: int = 0,
    best: FitResult | None = None,
    fluctuate: bool = True,
    progress: bool = True,
) -> Bootstrap:
    """Fit replicas of the data, in which each event counts a Poisson number of times, many together.

    Replica r with a seed has the same weights on every machine, however many replicas there are. ``best`` is as
    for ``profile``; every replica starts from it. Constraints measure another value in each replica, around the one
    they measured, unless ``fluctuate`` is False.
    """
    replicas, seed = whole_number("bootstrap: replicas", replicas, 1), check_seed(seed)
    likelihood = as_likelihood("bootstrap", likelihood, data)
    best = best_fit("bootstrap", likelihood, best)
    check_memory(f"bootstrap: results of {replicas:.6g} replicas", 8.0 * replicas * (len(best.floating) + 2))
    with Bar("bootstrap", replicas, progress) as bar:
        stream = stream_key(seed, "bootstrap")
        fits = Replicas(likelihood, best, stream, fluctuate, bar.done).fit(replicas)
    centre = np.array([best.values[n] for n in best.floating])
    return Bootstrap(
        names=best.floating, best=centre, values=fits.values, nll=fits.nll, valid=fits.valid, seed=seed
    )
