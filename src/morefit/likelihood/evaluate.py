"""Numbers of a model by compiled kernels: its density, its distribution, the probability of a box."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data import Dataset
from morefit.errors import DataError, ModelError
from morefit.likelihood.bins import Bins, bin_probabilities
from morefit.model import Observable, Pdf
from morefit.model.evaluation import HasValues, Values
from morefit.model.observable import Box, Ranges
from morefit.model.opaque import opaque_names
from morefit.model.pdf import check_model
from morefit.model.region import boxes, check_region, named_observable
from morefit.pipeline import Columns, Settings, able_backend, compile_values
from morefit.sampling.generate import all_values
from morefit.targets import Backend, Events, choose_backend

LARGEST = sys.float_info.max


class CompiledEvaluator:
    """Computes numbers of a model at one set of values; what lies outside the ranges has no probability."""

    def pdf(self, model: Pdf, data: object, values: Values, backend: str | Backend) -> Array:
        """Return the normalised density of each event, in the shape of the data if they are an array."""
        known = values_of(model, values)
        columns, shape = read_columns(model, data)
        inside = np.ones(shape, bool).ravel()
        for o in model.observables:
            inside &= (columns[o.name] >= o.low) & (columns[o.name] <= o.high)
        clipped = Columns({o.name: np.clip(columns[o.name], o.low, o.high) for o in model.observables})
        place = able_backend(model, choose_backend(backend, 0 if opaque_names(model) else clipped.count))
        settings = Settings(place, precompute="none")
        leaves = tuple(p.symbol for p in model.parameters)
        bound = compile_values((model.normalised(),), leaves, settings).bind(
            clipped, Events.all_sets(clipped.count)
        )
        density = bound(np.array([[known[p.name] for p in model.parameters]]))[0, 0]
        return np.where(inside, density, 0.0).reshape(shape)[()]  # a number for a number, as in NumPy

    def cdf(self, model: Pdf, x: ArrayLike, values: Values, backend: str | Backend) -> Array:
        """Return the probability of values up to each x, in the shape of x."""
        known = values_of(model, values)
        if len(model.observables) > 1:
            names = ", ".join(f"'{o.name}'" for o in model.observables)
            raise ModelError(f"model: a cdf is a function of one observable, got {names}; use integrate")
        (o,) = model.observables
        points = np.clip(as_numbers(o, x), o.low, o.high)
        edges = np.unique(np.concatenate([[o.low, o.high], points.ravel()]))
        bins = Bins(o, edges, {})
        (parts,) = bin_probabilities([model], model.parameters, known, bins, choose_backend(backend))
        below = np.clip(np.concatenate([[0.0], np.cumsum(parts)]), 0.0, 1.0)
        probabilities: Array = below[np.searchsorted(edges, points)]
        return probabilities

    def integrate(
        self,
        model: Pdf,
        ranges: Ranges,
        values: Values,
        backend: str | Backend,
    ) -> float:
        """Return the probability of a region."""
        known, region = values_of(model, values), check_region(model.observables, ranges)
        return sum(box_probability(model, known, box, choose_backend(backend)) for box in boxes(region))


def box_probability(model: Pdf, values: Mapping[str, float], box: Box, backend: Backend) -> float:
    """Return the probability of a box."""
    if not box:
        return 1.0
    x = named_observable(model.observables, next(iter(box)))
    bins = Bins(x, np.array(box[x.name]), {name: ends for name, ends in box.items() if name != x.name})
    return float(bin_probabilities([model], model.parameters, values, bins, backend)[0][0])


EVALUATOR = CompiledEvaluator()  # of all densities: ``model/evaluation.py`` takes it from here


def read_columns(model: Pdf, data: object) -> tuple[dict[str, Array], tuple[int, ...]]:
    """Return a column for each observable, and the shape that results have."""
    if len(model.observables) == 1 and isinstance(data, (int, float, list, tuple, np.ndarray, np.number)):
        (o,) = model.observables
        numbers = as_numbers(o, data)
        if not np.isfinite(numbers).all():
            raise DataError(f"observable '{o.name}': values must be finite, got {data!r}")
        return {o.name: numbers.ravel()}, numbers.shape
    open_ranges = [Observable(o.name, -LARGEST, LARGEST) for o in model.observables]
    dataset = Dataset(data, open_ranges)
    return dataset.columns, (len(dataset),)


def as_numbers(o: Observable, values: object) -> Array:
    """Return numbers of an observable, none of which is nan."""
    try:
        numbers = np.asarray(values)
    except ValueError:  # rows of different lengths
        numbers = np.asarray(None)
    if (numbers.size and numbers.dtype.kind not in "iuf") or np.isnan(numbers.astype(np.float64)).any():
        raise DataError(f"observable '{o.name}': values must be numbers, got {values!r}")
    return numbers.astype(np.float64)


def values_of(model: Pdf, values: Values) -> dict[str, float]:
    """Return a value for each parameter: fitted ones, numbers by name completed by start values, or start values."""
    check_model(model)
    if isinstance(values, Mapping) or not isinstance(values, HasValues):
        return all_values(model, values, "values")
    missing = [p.name for p in model.parameters if p.name not in values.values]
    if missing:
        raise ModelError(
            f"parameter '{missing[0]}': not in the fit result, which has {', '.join(map(repr, values.values))};"
            " pass the result of a fit of this model"
        )
    return {p.name: values.values[p.name] for p in model.parameters}


def checked_ranges(model: Pdf, ranges: Ranges) -> Box:
    """Return a sub-range of each of some observables as numbers, if it lies in their range and is not empty."""
    region = check_region(model.observables, ranges)
    for name, several in region.items():
        if len(several) > 1:
            raise DataError(
                f"observable '{name}': a sub-range must be one (low, high), got {len(several)}; plot them one by one"
            )
    return {name: ends for name, (ends,) in region.items()}
