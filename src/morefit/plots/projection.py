"""A model and data in bins of one observable, whatever the others do inside their ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Flags, Frozen
from morefit.data.dataset import Dataset, dataset_of
from morefit.data.histogram import Histogram, choose_edges, count_events, divide, poisson_errors
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import Expr, evaluate
from morefit.intervals import GoodnessOfFit
from morefit.intervals.fit_statistics import merged
from morefit.likelihood import BinnedLikelihood, HistFactoryLikelihood, TemplateLikelihood
from morefit.likelihood.bins import Bins, Rows, bin_probabilities
from morefit.likelihood.evaluate import check_drawn, checked_ranges, values_of
from morefit.likelihood.table import TableColumn
from morefit.minimise import FitResult
from morefit.model import Observable, Parameter, Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.counts import check_halves, counted_in
from morefit.model.evaluation import Values
from morefit.model.observable import Box, Ranges
from morefit.model.region import Range, named_observable, probability_of
from morefit.plots.components import SAME_WIDTH, blinded, check_blind, gaps, slopes, split
from morefit.plots.components import band as band_of
from morefit.records.fields import arrays, pairs
from morefit.resources import check_memory
from morefit.targets.base import Backend
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences

OVERSAMPLING = 10  # bins of a curve in each bin of the data


@dataclass(frozen=True, eq=False, repr=False)
class Projection(Frozen):
    """Data and a model in N bins of one observable, of events whose other observables lie in ``ranges``.

    Everything is a number of events in a bin: ``counts`` (or sums of weights) with ``errors`` below and above,
    ``expected`` as the integral of the density over the bin, ``pulls`` as (counts - expected) / error, with the error
    on the side of the model; nan where no error is known. In blind bins counts, errors and pulls are nan. The curve has
    its own, finer bins: ``curve`` of the whole model, ``components`` of its parts, whether they were ``fitted``, and on
    request the standard deviation ``band`` and the derivatives ``slopes`` by the floating parameters of the fit.
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
    fitted: Flags  # (N * oversampling,) whether the middle of the bin lies in the ranges of the fit
    weighted: bool
    slopes: Mapping[str, Array] = field(default_factory=dict)  # (N * oversampling,) each
    band: Array | None = None  # (N * oversampling,)
    at_start: bool = False  # whether start values are drawn, as no others are known
    floating: tuple[str, ...] = ()  # parameters of the curve that were fitted
    normalised: bool = False  # to the data, rather than to yields

    converted = {"ranges": pairs, "components": arrays, "slopes": arrays}

    @property
    def equal_bins(self) -> bool:
        """Whether all bins of the data have the same width."""
        widths = np.diff(self.edges)
        return bool(np.ptp(widths) <= SAME_WIDTH * widths[0])

    @property
    def oversampling(self) -> int:
        """How many bins of the curve are in each bin of the data."""
        return len(self.curve) // len(self.counts)

    @property
    def chi2(self) -> GoodnessOfFit:
        """Pearson's chi-square, neighbours being merged until 5 events are expected; with weights, by their variances."""
        shown = np.isfinite(self.counts) & (
            np.max(self.errors, axis=0) > 0 if self.weighted else self.expected > 0
        )
        counts, expected = self.counts[shown], self.expected[shown]
        if not len(counts):
            return GoodnessOfFit("chi2", 0.0, 0, np.empty(0))
        if self.weighted:
            each = ((counts - expected) / self.errors[0, shown]) ** 2
        else:
            starts = merged(expected)
            counts, expected = (np.add.reduceat(n, starts) for n in (counts, expected))
            each = (counts - expected) ** 2 / expected
        taken = len(self.floating) + self.normalised
        return GoodnessOfFit("chi2", float(each.sum()), max(len(each) - taken, 0), np.empty(0))


@in_sentences
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
    nested: bool = False,
    band: bool = False,
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
    dataset = dataset_of(data, model.observables, weights)
    region = model.region()
    whole, fitted = model.beyond(x), region.get(x.name, ((x.low, x.high),))
    inside = dataset.inside(region) if region else dataset
    sample = dataset.inside(others) if (others := whole.region()) else dataset
    chosen = cut(sample, box)
    low, high = box.get(x.name, (x.low, x.high))
    if bins is None and x.name in counted_in(model):
        bins = round(high - low)  # one for each whole number
    edges = choose_edges(f"observable '{x.name}'", bins, low, high, len(chosen))
    check_halves(model, x.name, edges.tolist())
    hidden = check_blind(x, blind) + (gaps(x, fitted) if len(inside) == len(sample) else [])
    histogram = blinded(count_events(chosen, x.name, edges), hidden)
    rest = {name: ends for name, ends in box.items() if name != x.name}
    rows = conditional_rows(model, inside if x.name in region else sample, box)
    fine = finer(Bins(x, edges, rest, rows), oversampling)

    def parts_at(known: Mapping[str, float]) -> dict[str, Array]:
        scale, bins = total(model, known, inside), fine
        if x.name in region:
            chance = probability_of(whole, {x.name: fitted}, known)
            if rows:  # each event in the ranges stands for those outside of them as well
                weights = rows.weights / evaluate(chance, {**rows.columns, **known})
                bins = replace(fine, rows=replace(rows, weights=weights))
            else:
                scale /= float(evaluate(chance, known))
        return curves(
            split(whole, labels, nested), model.parameters, known, bins, scale=scale, backend=backend
        )

    return assemble(fine, histogram, Curves(model, values, known, parts_at, band), fitted, chosen.weighted)


def project_bins(
    part: BinnedLikelihood,
    observable: Observable | str,
    *,
    values: Values,
    labels: Sequence[str] | None,
    nested: bool,
    band: bool,
    oversampling: int,
    blind: Any,
    backend: str | Backend,
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
    histogram = blinded(Histogram(part.model.edges[axis], counts, low, high), check_blind(x, blind))
    fine = finer(Bins(x, histogram.edges, others), oversampling)

    def parts_at(known: Mapping[str, float]) -> dict[str, Array]:
        components = curves(
            split(model, labels, nested), model.parameters, known, fine, scale=1.0, backend=backend
        )
        expected, inside = model.expected_events(), np.sum(list(components.values()))
        scale = counts.sum() / inside if expected is None else float(evaluate(expected, known))
        return {name: scale * curve for name, curve in components.items()}

    return assemble(
        fine, histogram, Curves(model, values, known, parts_at, band), ((x.low, x.high),), part.model.weighted
    )


def project_channel(
    part: HistFactoryLikelihood | TemplateLikelihood,
    channel: str | None,
    *,
    values: Values,
    oversampling: int,
    band: bool,
) -> Projection:
    """Return the counts of a channel, and what its samples expect, in bins of width one."""
    if channel is None and len(part.channels) > 1:
        raise OptionError(f"plot: channel is missing; the model has {', '.join(map(repr, part.channels))}")
    name = channel or part.channels[0]
    known = values_of(part.model, values)
    counts, _ = part.channel(name, known)
    x = TableColumn(f"bin of {name}", 0.0, float(len(counts)))
    histogram = Histogram(np.arange(len(counts) + 1.0), counts, *poisson_errors(counts))
    fine = finer(Bins(x, histogram.edges, {}), oversampling)

    def parts_at(known: Mapping[str, float]) -> dict[str, Array]:
        samples = part.channel(name, known)[1]
        return {label: np.repeat(each / oversampling, oversampling) for label, each in samples.items()}

    return assemble(
        fine, histogram, Curves(part.model, values, known, parts_at, band), ((x.low, x.high),), False
    )


def finer(bins: Bins, oversampling: int) -> Bins:
    """Return the bins of a curve, several in each bin of the data."""
    if oversampling < 1:
        raise OptionError(f"plot: oversampling must be at least 1, got {oversampling}")
    check_memory(
        f"plot: {oversampling:.6g} points of a curve in each bin", 8.0 * float(oversampling) * len(bins.edges)
    )
    return replace(bins, edges=divide(bins.edges, oversampling))


def curves(
    parts: Mapping[str, tuple[Expr, Pdf]],
    parameters: Sequence[Parameter],
    values: Mapping[str, float],
    bins: Bins,
    scale: float,
    backend: str | Backend,
) -> dict[str, Array]:
    """Return the number of events of each component in each bin."""
    pdfs = [pdf for _, pdf in parts.values()]
    probabilities = bin_probabilities(pdfs, parameters, values, bins, choose_backend(backend))
    shares = zip(parts.items(), probabilities, strict=True)
    return {name: scale * float(evaluate(weight, values)) * p for (name, (weight, _)), p in shares}


def conditional_rows(model: Pdf, dataset: Dataset, box: Box) -> Rows | None:
    """Return what a conditional model is given in the data; events outside a box count as nothing."""
    if not model.given:
        return None
    inside = in_box(dataset, {o.name: box[o.name] for o in model.given if o.name in box})
    weights = np.ones(len(dataset)) if dataset.weights is None else dataset.weights
    columns = {o.name: dataset[o.name] for o in model.given}
    return Rows(columns, np.where(inside, weights, 0.0) / dataset.sum_of_weights)


@dataclass(frozen=True, eq=False)
class Curves:
    """The components of a model in bins as functions of its parameters, and where they are drawn."""

    model: Pdf
    values: Any  # as the user gave them
    known: dict[str, float]
    parts_at: Callable[[Mapping[str, float]], dict[str, Array]]
    band: bool

    def whole_at(self, known: Mapping[str, float]) -> Array:
        return np.asarray(np.sum(list(self.parts_at(known).values()), axis=0), np.float64)


def assemble(
    bins: Bins, data: Histogram, curves: Curves, fitted: Sequence[Range], weighted: bool
) -> Projection:
    """Put together data and curves, which have finer bins."""
    parts, middles = curves.parts_at(curves.known), (bins.edges[:-1] + bins.edges[1:]) / 2
    curve = np.sum(list(parts.values()), axis=0)
    if not np.isfinite(curve).all():
        raise ModelError(
            f"plot: the model is not a number in bins of '{bins.x.name}' at these values; choose others"
        )
    expected = curve.reshape(len(data.counts), -1).sum(axis=1)
    fitted_names = curves.values.floating if isinstance(curves.values, FitResult) else ()
    derivatives = slopes(curves.whole_at, curves.known, curves.values) if curves.band else {}
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
        slopes=derivatives,
        band=band_of(derivatives, curves.values),
        at_start=at_start(curves.values, curves.model.parameters),
        floating=tuple(name for name in fitted_names if name in curves.known),
        normalised=curves.model.expected_events() is None,
    )


def at_start(values: Any, parameters: Sequence[Parameter]) -> bool:
    """Return whether start values are drawn as no others are known."""
    unknown = values is None or (isinstance(values, Mapping) and not values)
    return unknown and not all(p.fixed for p in parameters)


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


def total(model: Pdf, values: Mapping[str, float], dataset: Dataset) -> float:
    """Return the number of events in all ranges: as an extended model predicts it, else as the data have it."""
    expected = model.expected_events()
    return dataset.sum_of_weights if expected is None else float(evaluate(expected, values))


def cut(dataset: Dataset, box: Box) -> Dataset:
    """Return the events in a box; raise an error if there are none."""
    if not len(dataset):
        raise DataError("plot: the dataset has no events, so there is nothing to draw")
    chosen = dataset.inside({name: (ends,) for name, ends in box.items()}) if box else dataset
    if not len(chosen):
        where = ", ".join(f"'{name}' in [{low}, {high}]" for name, (low, high) in box.items())
        raise DataError(f"dataset: none of {len(dataset)} events has {where or 'a value'}; widen the ranges")
    return chosen


def in_box(dataset: Dataset, box: Box) -> Flags:
    """Return which events lie in a box."""
    keep = np.ones(len(dataset), bool)
    for name, (low, high) in box.items():
        keep &= (dataset[name] >= low) & (dataset[name] <= high)
    return keep
