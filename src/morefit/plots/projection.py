"""A model and data in bins of one observable, whatever the others do inside their ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array, freeze, rebuilt
from morefit.data import Dataset
from morefit.data.histogram import Histogram, choose_edges, count_events, divide, poisson_errors
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import Expr, evaluate
from morefit.likelihood import BinnedLikelihood, HistFactoryLikelihood, TemplateLikelihood
from morefit.likelihood.bins import Bins, Rows, bin_probabilities
from morefit.likelihood.evaluate import check_drawn, checked_ranges, values_of
from morefit.likelihood.table import TableColumn
from morefit.minimise import FitResult
from morefit.model import Observable, Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.counts import counted_in
from morefit.model.evaluation import Values
from morefit.model.observable import Box, Ranges
from morefit.model.region import Range, check_range, listed_ranges, named_observable, probability_of
from morefit.records.fields import arrays, pairs
from morefit.resources import check_memory
from morefit.targets import Backend, choose_backend

SAME_WIDTH = 1e-9  # relative: bins that differ less in width are equal
TAKEN = ("data", "model", "extrapolation", "pulls", "legend")  # names of artists that are no components
OVERSAMPLING = 10  # bins of a curve in each bin of the data


@dataclass(frozen=True, eq=False)
class Projection:
    """Data and a model in N bins of one observable, of events whose other observables lie in ``ranges``.

    Everything is a number of events in a bin: ``counts`` (or sums of weights) with ``errors`` below and above,
    ``expected`` as the integral of the density over the bin, ``pulls`` as (counts - expected) / error, with the error
    on the side of the model; nan where no error is known. In blind bins counts, errors and pulls are nan. The curve has
    its own, finer bins: ``curve`` of the whole model, ``components`` of its parts, and whether they were ``fitted``.
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
    fitted: NDArray[
        np.bool_
    ]  # (N * oversampling,) whether the middle of the bin lies in the ranges of the fit
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
    blind: Any = (),
    backend: str | Backend = "auto",
) -> Projection:
    """Count events and integrate a model in bins of one observable; the arguments are those of ``plot``."""
    model = as_fitted(model, values)
    known = values_of(model, values)
    x = named_observable(model.observables, observable)
    check_drawn(model, x.name)
    box = checked_ranges(model, ranges or {})
    dataset = Dataset(data, model.observables, weights=weights)
    region = model.region()
    whole, fitted = model.beyond(x), region.get(x.name, ((x.low, x.high),))
    inside = dataset.inside(region) if region else dataset
    sample = dataset.inside(others) if (others := whole.region()) else dataset
    chosen = cut(sample, box)
    low, high = box.get(x.name, (x.low, x.high))
    if bins is None and x.name in counted_in(model):
        bins = round(high - low)  # one for each whole number
    edges = choose_edges(f"observable '{x.name}'", bins, low, high, len(chosen))
    hidden = check_blind(x, blind) + (gaps(x, fitted) if len(inside) == len(sample) else [])
    histogram = blinded(count_events(chosen[x.name], chosen.weights, edges), hidden)
    rest = {name: ends for name, ends in box.items() if name != x.name}
    scale = total(model, known, inside)
    rows = given_rows(model, inside if x.name in region else sample, box)
    if x.name in region:
        chance = probability_of(whole, {x.name: fitted}, known)
        if rows:  # each event in the ranges stands for those outside of them as well
            rows = replace(rows, weights=rows.weights / evaluate(chance, {**rows.columns, **known}))
        else:
            scale /= float(evaluate(chance, known))
    coarse = Bins(x, edges, rest, rows)
    components, fine = curves(whole, known, coarse, labels, oversampling, backend)
    scaled = {name: scale * curve for name, curve in components.items()}
    return assemble(fine, histogram, scaled, fitted, chosen.weights is not None)


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
    model, x = part.model.source, named_observable(part.model.source.observables, observable)
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
    return assemble(fine, histogram, scaled, ((x.low, x.high),), part.model.weighted)


def project_channel(
    part: HistFactoryLikelihood | TemplateLikelihood,
    channel: str | None,
    *,
    values: Values = None,
    oversampling: int = OVERSAMPLING,
) -> Projection:
    """Return the counts of a channel, and what its samples expect, in bins of width one."""
    if channel is None and len(part.channels) > 1:
        raise OptionError(f"plot: channel is missing; the model has {', '.join(map(repr, part.channels))}")
    name = channel or part.channels[0]
    counts, samples = part.channel(name, values_of(part.model, values))
    x = TableColumn(f"bin of {name}", 0.0, float(len(counts)))
    histogram = Histogram(np.arange(len(counts) + 1.0), counts, *poisson_errors(counts))
    fine = Bins(x, divide(histogram.edges, oversampling), {})
    steps = {label: np.repeat(each / oversampling, oversampling) for label, each in samples.items()}
    return assemble(fine, histogram, steps, ((x.low, x.high),), False)


def curves(
    model: Pdf,
    values: Mapping[str, float],
    bins: Bins,
    labels: Sequence[str] | None,
    oversampling: int,
    backend: str | Backend,
) -> tuple[dict[str, Array], Bins]:
    """Return the probability of each component in bins that are finer than those of the data, and these."""
    if oversampling < 1:
        raise OptionError(f"plot: oversampling must be at least 1, got {oversampling}")
    check_memory(
        f"plot: {oversampling:.6g} points of a curve in each bin", 8.0 * float(oversampling) * len(bins.edges)
    )
    fine = replace(bins, edges=divide(bins.edges, oversampling))
    parts = split(model, labels)
    probabilities = bin_probabilities(
        [pdf for _, pdf in parts.values()], model.parameters, values, fine, choose_backend(backend)
    )
    shares = zip(parts.items(), probabilities, strict=True)
    return {name: float(evaluate(weight, values)) * p for (name, (weight, _)), p in shares}, fine


def given_rows(model: Pdf, dataset: Dataset, box: Box) -> Rows | None:
    """Return what a conditional model is given in the data; events outside a box count as nothing."""
    if not model.given:
        return None
    inside = in_box(dataset, {o.name: box[o.name] for o in model.given if o.name in box})
    weights = np.ones(len(dataset)) if dataset.weights is None else dataset.weights
    columns = {o.name: dataset[o.name] for o in model.given}
    return Rows(columns, np.where(inside, weights, 0.0) / dataset.sum_of_weights)


def assemble(
    bins: Bins, data: Histogram, parts: Mapping[str, Array], fitted: Sequence[Range], weighted: bool
) -> Projection:
    """Put together data and curves, which have finer bins."""
    curve, middles = np.sum(list(parts.values()), axis=0), (bins.edges[:-1] + bins.edges[1:]) / 2
    expected = curve.reshape(len(data.counts), -1).sum(axis=1)
    return Projection(
        observable=bins.x,
        ranges=bins.box,
        edges=data.edges,
        counts=data.counts,
        errors=np.stack([data.low, data.high]),
        expected=expected,
        pulls=data.pulls(expected),
        curve_edges=bins.edges,
        curve=curve,
        components=parts if len(parts) > 1 else {},
        fitted=np.logical_or.reduce([(middles > low) & (middles < high) for low, high in fitted]),
        weighted=weighted,
    )


def as_fitted(model: Pdf, values: Any) -> Pdf:
    """Return a model as it was fitted: in the ranges that the result of a fit of one dataset has."""
    if not isinstance(values, FitResult) or len(values.ranges) != 1 or model.region():
        return model
    if other := values.ranges[0].keys() - {o.name for o in model.observables}:
        raise OptionError(
            f"plot: values are of a fit in ranges of '{min(other)}', which the model does not have; plot the model"
            " that was fitted, or a marginal of mf.Restricted with numbers by name"
        )
    return in_ranges(model, values.ranges[0], values.yields_in[0])


def check_blind(x: Observable, blind: Any) -> list[Range]:
    """Return the ranges of an observable in which no data are shown."""
    none = isinstance(blind, Sequence) and not len(blind)
    return [] if none else [check_range(x, ends) for ends in listed_ranges(x, blind)]


def gaps(x: Observable, ranges: Sequence[Range]) -> list[Range]:
    """Return what some ranges leave out of that of an observable: data that were cut to them show nothing there."""
    ends = [x.low, *(end for pair in ranges for end in pair), x.high]
    return list(zip(ends[::2], ends[1::2], strict=True))


def blinded(data: Histogram, ranges: Sequence[Range]) -> Histogram:
    """Return a histogram without the counts of bins that reach into some ranges."""
    near = SAME_WIDTH * (data.edges[-1] - data.edges[0])
    shown = np.ones(len(data.counts), bool)
    for low, high in ranges:
        shown &= (data.edges[1:] <= low + near) | (data.edges[:-1] >= high - near)
    return Histogram(
        data.edges, *(np.where(shown, own, np.nan) for own in (data.counts, data.low, data.high))
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
    keep = in_box(dataset, box)
    if not keep.any():
        where = ", ".join(f"'{name}' in [{low}, {high}]" for name, (low, high) in box.items())
        raise DataError(f"dataset: none of {len(dataset)} events has {where or 'a value'}; widen the ranges")
    return dataset[keep]


def in_box(dataset: Dataset, box: Box) -> NDArray[np.bool_]:
    """Return which events lie in a box."""
    keep = np.ones(len(dataset), bool)
    for name, (low, high) in box.items():
        keep &= (dataset[name] >= low) & (dataset[name] <= high)
    return keep
