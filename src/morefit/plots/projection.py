"""A model and data in bins of one observable, whatever the others do inside their ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, freeze, rebuilt
from morefit.data import Dataset
from morefit.data.histogram import Histogram, choose_edges, count_events, divide, poisson_errors
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import Expr, evaluate
from morefit.likelihood import BinnedLikelihood
from morefit.likelihood.bins import Bins, bin_probabilities
from morefit.likelihood.evaluate import checked_ranges, find_observable, values_of
from morefit.model import Observable, Pdf
from morefit.model.evaluation import Values
from morefit.model.observable import Box, Ranges
from morefit.records.fields import arrays, pairs
from morefit.resources import check_memory
from morefit.targets import Backend, choose_backend

SAME_WIDTH = 1e-9  # relative: bins that differ less in width are equal
TAKEN = ("data", "model", "pulls", "legend")  # names of artists that are no components
OVERSAMPLING = 10  # bins of a curve in each bin of the data


@dataclass(frozen=True, eq=False)
class Projection:
    """Data and a model in N bins of one observable, of events whose other observables lie in ``ranges``.

    Everything is a number of events in a bin: ``counts`` (or sums of weights) with ``errors`` below and above,
    ``expected`` as the integral of the density over the bin, ``pulls`` as (counts - expected) / error, with the error
    on the side of the model; nan where no error is known. The curve has its own, finer bins: ``curve`` of the whole
    model, ``components`` of its parts.
    """

    observable: Observable
    ranges: Box
    edges: Array  # (N + 1,)
    counts: Array  # (N,)
    errors: Array  # (2, N)
    expected: Array  # (N,)
    pulls: Array  # (N,)
    curve_edges: Array  # (N * oversampling + 1,)
    curve: Array  # (N * oversampling,)
    components: Mapping[str, Array]  # (N * oversampling,) each
    weighted: bool

    def __post_init__(self) -> None:
        freeze(self, ranges=pairs, components=arrays)

    __reduce__ = rebuilt

    @property
    def equal_bins(self) -> bool:
        """Whether all bins of the data have the same width."""
        widths = np.diff(self.edges)
        return bool(np.ptp(widths) <= SAME_WIDTH * widths[0])

    @property
    def oversampling(self) -> int:
        """How many bins of the curve are in each bin of the data."""
        return len(self.curve) // len(self.counts)


def project(
    model: Pdf,
    data: Any,
    observable: Observable | str,
    *,
    values: Values = None,
    bins: int | Sequence[float] | Array | None = None,
    ranges: Ranges | None = None,
    weights: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    oversampling: int = OVERSAMPLING,
    backend: str | Backend = "auto",
) -> Projection:
    """Count events and integrate a model in bins of one observable; the arguments are those of ``plot``."""
    known = values_of(model, values)
    x = find_observable(model, observable)
    box = checked_ranges(model, ranges or {})
    dataset = Dataset(data, model.observables, weights=weights)
    chosen = cut(dataset, box)
    low, high = box.get(x.name, (x.low, x.high))
    edges = choose_edges(f"observable '{x.name}'", bins, low, high, len(chosen))
    histogram = count_events(chosen[x.name], chosen.weights, edges)
    others = {name: ends for name, ends in box.items() if name != x.name}
    components, fine = curves(model, known, Bins(x, edges, others), labels, oversampling, backend)
    scale = total(model, known, dataset)
    scaled = {name: scale * curve for name, curve in components.items()}
    return assemble(x, others, histogram, fine, scaled, chosen.weights is not None)


def project_bins(
    part: BinnedLikelihood,
    observable: Observable | str,
    *,
    values: Values = None,
    labels: Sequence[str] | None = None,
    oversampling: int = OVERSAMPLING,
    backend: str | Backend = "auto",
) -> Projection:
    """Add up the counts of a binned likelihood, and its model, in the bins of one observable."""
    model, x = part.model.source, find_observable(part.model.source, observable)
    known, names = values_of(model, values), [o.name for o in part.model.source.observables]
    box = {
        name: (float(line[0]), float(line[-1])) for name, line in zip(names, part.model.edges, strict=True)
    }
    others = {o.name: box[o.name] for o in model.observables if o is not x and o.within(box) is not o}
    axis = names.index(x.name)
    rest = tuple(k for k in range(len(names)) if k != axis)
    counts = part.counts.sum(axis=rest)
    errors = np.sqrt(part.variances.sum(axis=rest))
    low, high = (errors, errors) if part.model.weighted else poisson_errors(counts)
    histogram = Histogram(part.model.edges[axis], counts, low, high)
    components, fine = curves(model, known, Bins(x, histogram.edges, others), labels, oversampling, backend)
    expected, inside = model.expected_events(), np.sum(list(components.values()))
    scale = counts.sum() / inside if expected is None else float(evaluate(expected, known))
    scaled = {name: scale * curve for name, curve in components.items()}
    return assemble(x, others, histogram, fine, scaled, part.model.weighted)


def curves(
    model: Pdf,
    values: Mapping[str, float],
    bins: Bins,
    labels: Sequence[str] | None,
    oversampling: int,
    backend: str | Backend,
) -> tuple[dict[str, Array], Array]:
    """Return the probability of each component in bins that are finer than those of the data, and their edges."""
    if oversampling < 1:
        raise OptionError(f"plot: oversampling must be at least 1, got {oversampling}")
    check_memory(
        f"plot: {oversampling:.6g} points of a curve in each bin", 8.0 * float(oversampling) * len(bins.edges)
    )
    fine = Bins(bins.x, divide(bins.edges, oversampling), bins.box)
    parts = split(model, labels)
    probabilities = bin_probabilities(
        [pdf for _, pdf in parts.values()], model.parameters, values, fine, choose_backend(backend)
    )
    shares = zip(parts.items(), probabilities, strict=True)
    return {name: float(evaluate(weight, values)) * p for (name, (weight, _)), p in shares}, fine.edges


def assemble(
    x: Observable, box: Box, data: Histogram, fine: Array, parts: Mapping[str, Array], weighted: bool
) -> Projection:
    """Put together data and curves."""
    curve = np.sum(list(parts.values()), axis=0)
    expected = curve.reshape(len(data.counts), -1).sum(axis=1)
    return Projection(
        observable=x,
        ranges=box,
        edges=data.edges,
        counts=data.counts,
        errors=np.stack([data.low, data.high]),
        expected=expected,
        pulls=data.pulls(expected),
        curve_edges=fine,
        curve=curve,
        components=parts if len(parts) > 1 else {},
        weighted=weighted,
    )


def split(model: Pdf, labels: Sequence[str] | None) -> dict[str, tuple[Expr, Pdf]]:
    """Return the components of a model by name, each with its share of the events; a model without any is one."""
    parts = model.shares()
    names = list(model.share_names() if labels is None else labels)
    if len(names) != len(parts) or len({*names, *TAKEN}) < len(names) + len(TAKEN):
        rule = f"labels must name the {len(parts)} components of the model, each differently"
        raise ModelError(f"plot: {rule} and not {', '.join(map(repr, TAKEN))}, got {names}")
    return dict(zip(names, parts, strict=True))


def total(model: Pdf, values: Mapping[str, float], dataset: Dataset) -> float:
    """Return the number of events in all ranges: as an extended model predicts it, else as the data have it."""
    expected = model.expected_events()
    return dataset.sum_of_weights if expected is None else float(evaluate(expected, values))


def cut(dataset: Dataset, box: Box) -> Dataset:
    """Return the events in a box; complain if there are none."""
    keep = np.ones(len(dataset), bool)
    for name, (low, high) in box.items():
        keep &= (dataset[name] >= low) & (dataset[name] <= high)
    if not keep.any():
        where = ", ".join(f"'{name}' in [{low}, {high}]" for name, (low, high) in box.items())
        raise DataError(f"dataset: none of {len(dataset)} events has {where or 'a value'}; widen the ranges")
    return dataset[keep]
