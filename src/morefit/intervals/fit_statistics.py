"""Statistics of how well a fitted model describes data: chi-square of bins, Kolmogorov-Smirnov, Anderson-Darling, energy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError
from morefit.expr import Op, add_all, column, scalar
from morefit.kernel.sums import Request
from morefit.likelihood import BinnedLikelihood, Likelihood
from morefit.likelihood.table import CountsLikelihood, TableLikelihood
from morefit.model import Pdf
from morefit.model.counts import counted_in
from morefit.pipeline import Columns, Settings, compile_sums
from morefit.random.host import stream_key
from morefit.sampling.generate import expected_events, generate_events
from morefit.targets.base import Backend, Events

MIN_EXPECTED = 5.0  # counts of a bin; neighbours with fewer are merged
REFERENCE = 1000  # events of the model that the energy test compares data with
NEAR = 1e-3  # of the spread of an observable: closer events repel no more
Values = Mapping[str, float]
# of the data of one part at fitted values; larger is worse
PartStatistic = Callable[[Dataset, Values], float]


@dataclass(frozen=True, eq=False)
class BinnedChiSquare:
    """Pearson's chi-square of the bins of a binned likelihood, merged where few are expected."""

    part: CountsLikelihood
    starts: Integers  # of the merged bins among the bins

    @classmethod
    def of(cls, part: CountsLikelihood, values: Values) -> BinnedChiSquare:
        if isinstance(part, BinnedLikelihood) and part.model.weighted:
            raise DataError("goodness_of_fit: chi2 takes counts of events, so the data must have no weights")
        return cls(part, merged(part.expected_at(values)))

    def __call__(self, data: Dataset, values: Values) -> float:
        own = self.part.replaced(data=data)
        counts, expected = own.counts.ravel(), own.expected_at(values)
        return pearson(*(np.add.reduceat(n, self.starts) for n in (counts, expected)))


@dataclass(frozen=True, eq=False)
class ChiSquare:
    """Pearson's chi-square of events in bins of one observable."""

    model: Pdf
    edges: Array

    @classmethod
    def of(cls, part: Likelihood, values: Values, bins: int) -> ChiSquare:
        (x,) = part.model.observables
        if x.name in counted_in(part.model):
            bins = round(x.high - x.low)  # one for each whole number
        whole = cls(part.model, np.linspace(x.low, x.high, bins + 1))
        starts = merged(whole.expected(values, part.entries))
        return cls(part.model, np.append(whole.edges[starts], x.high))

    def expected(self, values: Values, events: float) -> Array:
        """Return how many events are expected in each bin; without yields, of as many as there are."""
        total = events if self.model.expected_events() is None else expected_events(self.model, values)
        return total * np.diff(self.model.cdf(self.edges, own_values(self.model, values)))

    def __call__(self, data: Dataset, values: Values) -> float:
        (x,) = self.model.observables
        counts = sum(np.histogram(piece[x.name], self.edges)[0] for piece in data.pieces())
        return pearson(np.asarray(counts, np.float64), self.expected(values, len(data)))


def merged(expected: Array) -> Integers:
    """Return where bins begin of which each is expected to have enough, the last with what is left over."""
    starts, total, rest = [0], 0.0, float(expected.sum())
    for k, count in enumerate(expected.tolist()):
        if total >= MIN_EXPECTED and rest >= MIN_EXPECTED:
            starts.append(k)
            total = 0.0
        total, rest = total + count, rest - count
    return np.array(starts, np.int64)


def pearson(counts: Array, expected: Array) -> float:
    return float(np.sum((counts - expected) ** 2 / expected))


@dataclass(frozen=True, eq=False)
class Distance:
    """A distance between the distribution of events of one observable and that of the model."""

    model: Pdf
    measure: Callable[[Array], float]  # of the cdf of the events in ascending order

    def __call__(self, data: Dataset, values: Values) -> float:
        (x,) = self.model.observables
        below = self.model.cdf(np.sort(data[x.name]), own_values(self.model, values))
        return self.measure(below) if len(below) else 0.0


def kolmogorov_smirnov(below: Array) -> float:
    """Return the largest difference of two distributions."""
    steps = np.arange(len(below) + 1) / len(below)
    return float(max(np.max(steps[1:] - below), np.max(below - steps[:-1])))


def anderson_darling(below: Array) -> float:
    """Return the mean squared difference of two distributions, large where the tails differ."""
    tiny, n = np.finfo(np.float64).tiny, len(below)
    logs = np.log(np.maximum(below, tiny)) + np.log(np.maximum(1 - below[::-1], tiny))
    return float(-n - np.sum((2 * np.arange(1, n + 1) - 1) * logs) / n)


@dataclass(frozen=True, eq=False)
class Energy:
    """The energy of charges at events and opposite ones at events of the model (Aslan and Zech, hep-ex/0203010).

    Pairs have the potential -ln r, r being in units of the spread of each observable. The events of the model are drawn
    once and have weights at other values of the parameters. Pairs are summed by compiled code.
    """

    model: Pdf
    backend: Backend
    reference: Dataset
    density: Array  # of the reference, where it was drawn
    scales: Array

    @classmethod
    def of(cls, part: Likelihood, values: Values, seed: int) -> Energy:
        known = own_values(part.model, values)
        reference = generate_events(part.model, REFERENCE, truth=known, seed=stream_key(seed, "energy"))
        assert isinstance(reference, Dataset)
        density = part.model.pdf(reference, known)
        return cls(
            part.model, part.backend, reference, density, coordinates(part.model, reference).std(axis=0)
        )

    def __call__(self, data: Dataset, values: Values) -> float:
        if (count := len(data)) < 2:
            return 0.0
        weights = self.model.pdf(self.reference, own_values(self.model, values)) / self.density
        weights /= weights.sum()
        events, others = (coordinates(self.model, d) / self.scales for d in (data, self.reference))
        own = self.potentials(events, events).sum() + count * log(NEAR)  # without those of each with itself
        across = self.potentials(events, others, weights).sum()
        model = weights @ self.potentials(others, others, weights)
        return float(own / (2 * count * (count - 1)) - across / count + 0.5 * model)

    def potentials(self, points: Array, others: Array, weights: Array | None = None) -> Array:
        """Return the sum of w (-ln r) over all other points, for each point."""
        here = tuple(scalar(f"here {k}") for k in range(points.shape[1]))
        there = [column(f"there {k}") for k in range(points.shape[1])]
        squares = add_all(*((a - b) ** 2 for a, b in zip(here, there, strict=True)), NEAR**2)
        request = Request(-0.5 * Op.LOG(squares), (), 0, weighted=weights is not None)
        columns = Columns({c.name: np.ascontiguousarray(x) for c, x in zip(there, others.T, strict=True)})
        sums = compile_sums(request, here, Settings(self.backend))
        return sums.bind(columns, Events.all_sets(len(others)), weights)(np.ascontiguousarray(points))[:, 0]


def coordinates(model: Pdf, data: Dataset) -> Array:
    """Return the observables of events, (events, observables)."""
    return np.column_stack([data[o.name] for o in model.observables])


def own_values(model: Pdf, values: Values) -> dict[str, float]:
    return {p.name: values[p.name] for p in model.parameters}


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of the statistics of all parts, as toy studies call it."""

    parts: tuple[PartStatistic, ...]

    def __call__(self, data: Any, values: Values) -> float:
        each = (data,) if isinstance(data, Dataset) else data
        return sum(part(one, values) for part, one in zip(self.parts, each, strict=True))


def part_statistic(test: str, part: Likelihood, values: Values, bins: int, seed: int) -> PartStatistic:
    """Return the statistic of a test for one part."""
    if test == "chi2" and isinstance(part, CountsLikelihood):
        return BinnedChiSquare.of(part, values)
    if isinstance(part, TableLikelihood):
        raise DataError(
            f"goodness_of_fit: '{test}' takes events{' or counts' * (test == 'chi2')}, got "
            f"{'bins' if isinstance(part, CountsLikelihood) else 'points'}; use 'saturated'"
        )
    if part.model.given:
        raise ModelError(
            f"goodness_of_fit: '{test}' takes densities that are given nothing, got '{part.model.given[0].name}'"
        )
    if test == "energy":
        return Energy.of(part, values, seed)
    if len(part.model.observables) > 1:
        raise ModelError(
            f"goodness_of_fit: '{test}' takes events of one observable, got {len(part.model.observables)}; use 'energy'"
        )
    if test == "chi2":
        return ChiSquare.of(part, values, bins)
    return Distance(part.model, kolmogorov_smirnov if test == "ks" else anderson_darling)
