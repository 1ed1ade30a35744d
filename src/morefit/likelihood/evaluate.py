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
from morefit.model.pdf import check_model, simulations
from morefit.pipeline import Columns, Settings, compile_values
from morefit.sampling.generate import all_values
from morefit.targets import Backend, Events, choose_backend
from morefit.text.suggest import suggest

LARGEST = sys.float_info.max


class CompiledEvaluator:
    """Computes numbers of a model at one set of values; what lies outside the ranges has no probability."""

    def pdf(self, model: Pdf, data: object, values: Values, backend: str | Backend) -> Array:
        """Return the normalised density of each event, in the shape of the data if they are an array."""
        known = values_of(model, values)
        check_known(model, "a density")
        columns, shape = read_columns(model, data)
        inside = np.ones(shape, bool).ravel()
        for o in model.observables:
            inside &= (columns[o.name] >= o.low) & (columns[o.name] <= o.high)
        clipped = Columns({o.name: np.clip(columns[o.name], o.low, o.high) for o in model.observables})
        settings = Settings(choose_backend(backend, clipped.count), precompute="none")
        leaves = tuple(p.expr for p in model.parameters)
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
        """Return the probability of a box."""
        known, box = values_of(model, values), checked_ranges(model, ranges)
        if not box:
            return 1.0
        x = find_observable(model, next(iter(box)))
        bins = Bins(x, np.array(box[x.name]), {name: ends for name, ends in box.items() if name != x.name})
        return float(bin_probabilities([model], model.parameters, known, bins, choose_backend(backend))[0][0])


def check_known(model: Pdf, what: str) -> None:
    """Refuse the values of a density of which a factor is known by simulation only."""
    if simulations(model):
        raise ModelError(
            f"model: {what} needs the efficiency as a function, which is known by simulation only; use integrate or a plot,"
            " or make an acceptance with mf.acceptance.from_sample"
        )


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


def find_observable(model: Pdf, observable: Observable | str) -> Observable:
    """Return the observable of a model that is meant."""
    name = observable.name if isinstance(observable, Observable) else observable
    known = {o.name: o for o in model.observables}
    if name not in known:
        raise ModelError(f"observable {name!r}: not in the model; {suggest(str(name), known)}")
    return known[name]


def checked_ranges(model: Pdf, ranges: Ranges) -> Box:
    """Return sub-ranges as numbers, if each lies in the range of an observable and is not empty."""
    if not isinstance(ranges, Mapping):
        raise DataError(f"ranges: must be (low, high) by name, as in {{'x': (0, 1)}}, got {ranges!r}")
    checked = {}
    for key, ends in ranges.items():
        o = find_observable(model, key)
        if np.shape(ends) != (2,):
            raise DataError(f"observable '{o.name}': a sub-range must be (low, high), got {ends!r}")
        low, high = (float(end) for end in ends)
        if not low < high:
            raise DataError(f"observable '{o.name}': a sub-range must not be empty, got {(low, high)}")
        if low < o.low or high > o.high:
            rule = f"a sub-range must lie in [{o.low}, {o.high}]"
            raise DataError(
                f"observable '{o.name}': {rule}, got {(low, high)}; the model is not defined outside"
            )
        checked[o.name] = (low, high)
    return checked
