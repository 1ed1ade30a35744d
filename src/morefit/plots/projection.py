"""A model and data in bins of one observable, whatever the others do inside their ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, freeze, rebuilt
from morefit.data import Dataset
from morefit.data.histogram import Histogram, choose_edges, count_events, divide
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import ONE, Expr, evaluate
from morefit.likelihood.bins import Bins, bin_probabilities
from morefit.minimise import FitResult
from morefit.model import Observable, Pdf, Product, Sum
from morefit.model.pdf import check_model
from morefit.records.fields import arrays, pairs
from morefit.resources import check_memory
from morefit.sampling.generate import all_values
from morefit.targets import Backend, choose_backend
from morefit.text.suggest import suggest

Ranges = Mapping[str, tuple[float, float]]
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
    ranges: Ranges
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
    values: FitResult | Mapping[str, float] | None = None,
    bins: int | Sequence[float] | Array | None = None,
    ranges: Ranges | None = None,
    weights: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    oversampling: int = OVERSAMPLING,
    backend: str | Backend = "auto",
) -> Projection:
    """Count events and integrate a model in bins of one observable; the arguments are those of ``plot``."""
    check_model(model)
    x = find_observable(model, observable)
    box = checked_ranges(model, ranges or {})
    known = chosen_values(model, values)
    if oversampling < 1:
        raise OptionError(f"plot: oversampling must be at least 1, got {oversampling}")
    dataset = Dataset(data, model.observables, weights=weights)
    chosen = cut(dataset, box)
    low, high = box.get(x.name, (x.low, x.high))
    edges = choose_edges(f"observable '{x.name}'", bins, low, high, len(chosen))
    histogram = count_events(chosen[x.name], chosen.weights, edges)
    others = {name: ends for name, ends in box.items() if name != x.name}
    check_memory(
        f"plot: {oversampling:.6g} points of a curve in each bin", 8.0 * float(oversampling) * len(edges)
    )
    fine = Bins(x, divide(edges, oversampling), others)
    parts = split(model, labels)
    found = bin_probabilities(
        [pdf for _, pdf in parts.values()], model.parameters, known, fine, choose_backend(backend)
    )
    scale = total(model, known, dataset)
    components = {
        name: scale * float(evaluate(weight, known)) * p
        for (name, (weight, _)), p in zip(parts.items(), found, strict=True)
    }
    return assemble(x, others, histogram, fine.edges, components, chosen.weights is not None)


def assemble(
    x: Observable, box: Ranges, data: Histogram, fine: Array, parts: Mapping[str, Array], weighted: bool
) -> Projection:
    """Put together data and curves."""
    curve = np.sum(list(parts.values()), axis=0)
    expected = curve.reshape(len(data.counts), -1).sum(axis=1)
    return Projection(
        x, box, data.edges, data.counts, np.stack([data.low, data.high]), expected, data.pulls(expected), fine,
        curve, parts if len(parts) > 1 else {}, weighted,
    )  # fmt: skip


def split(model: Pdf, labels: Sequence[str] | None) -> dict[str, tuple[Expr, Pdf]]:
    """Return the components of a model by name, each with its share of the events; a model without any is one."""
    parts = shares(model)
    names = list(labels) if labels is not None else numbered([type(pdf).__name__ for _, pdf in parts])
    if labels is not None and (len(names) != len(parts) or len({*names, *TAKEN}) < len(names) + len(TAKEN)):
        rule = f"labels must name the {len(parts)} components of the model, each differently"
        raise ModelError(f"plot: {rule} and not {', '.join(map(repr, TAKEN))}, got {names}")
    return dict(zip(names, parts, strict=True))


def shares(model: Pdf) -> list[tuple[Expr, Pdf]]:
    """Return the densities that a model adds up, each with its share; a product has those of its first sum."""
    if isinstance(model, Sum):
        return [(w / model.integral(), pdf) for w, pdf in zip(model.weights, model.pdfs, strict=True)]
    if isinstance(model, Product):
        for k, factor in enumerate(model.pdfs):
            if isinstance(factor, Sum):
                before, after = model.pdfs[:k], model.pdfs[k + 1 :]
                return [(w, Product([*before, pdf, *after])) for w, pdf in shares(factor)]
    return [(ONE, model)]


def numbered(names: Sequence[str]) -> list[str]:
    """Number names that come more than once."""
    many = {name for name in names if names.count(name) > 1}
    return [f"{n} {names[: k + 1].count(n)}" if n in many else n for k, n in enumerate(names)]


def total(model: Pdf, values: Mapping[str, float], dataset: Dataset) -> float:
    """Return the number of events in all ranges: as an extended model predicts it, else as the data have it."""
    expected = model.expected_events()
    return dataset.sum_of_weights if expected is None else float(evaluate(expected, values))


def cut(dataset: Dataset, box: Ranges) -> Dataset:
    """Return the events in a box; complain if there are none."""
    keep = np.ones(len(dataset), bool)
    for name, (low, high) in box.items():
        keep &= (dataset[name] >= low) & (dataset[name] <= high)
    if not keep.any():
        where = ", ".join(f"'{name}' in [{low}, {high}]" for name, (low, high) in box.items())
        raise DataError(f"dataset: none of {len(dataset)} events has {where or 'a value'}; widen the ranges")
    return dataset[keep]


# ------------------------------------------------------------------------------------ at the door


def find_observable(model: Pdf, observable: Observable | str) -> Observable:
    """Return the observable of a model that is meant."""
    name = observable.name if isinstance(observable, Observable) else observable
    known = {o.name: o for o in model.observables}
    if name not in known:
        raise ModelError(f"observable {name!r}: not in the model; {suggest(str(name), known)}")
    return known[name]


def checked_ranges(model: Pdf, ranges: Ranges) -> dict[str, tuple[float, float]]:
    """Return sub-ranges as numbers, if each lies in the range of an observable and is not empty."""
    checked = {}
    for name, ends in ranges.items():
        o = find_observable(model, name)
        if np.shape(ends) != (2,):
            raise DataError(f"observable '{name}': a sub-range must be (low, high), got {ends!r}")
        low, high = (float(end) for end in ends)
        if not low < high:
            raise DataError(f"observable '{name}': a sub-range must not be empty, got {(low, high)}")
        if low < o.low or high > o.high:
            rule = f"a sub-range must lie in [{o.low}, {o.high}]"
            raise DataError(
                f"observable '{name}': {rule}, got {(low, high)}; the model is not defined outside"
            )
        checked[name] = (low, high)
    return checked


def chosen_values(model: Pdf, values: FitResult | Mapping[str, float] | None) -> dict[str, float]:
    """Return a value for each parameter: fitted ones, given ones completed by start values, or start values."""
    if not isinstance(values, FitResult):
        return all_values(model, values)
    missing = [p.name for p in model.parameters if p.name not in values.values]
    if missing:
        raise ModelError(
            f"parameter '{missing[0]}': not in the fit result, which has {', '.join(map(repr, values.names))};"
            " pass the result of a fit of this model"
        )
    return {p.name: values.values[p.name] for p in model.parameters}
