"""Numbers of a model by compiled kernels: its density, its distribution, the probability of a box."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.errors import DataError, ModelError
from morefit.expr import Expr, add_all, const, substitute
from morefit.likelihood.bins import HIGH, Bins, Rows, bin_probabilities, probability_between
from morefit.model import Observable, Pdf
from morefit.model.counts import counted_in, region_in
from morefit.model.evaluation import HasValues, Values
from morefit.model.integrate import integral_over
from morefit.model.observable import Box, Ranges
from morefit.model.opaque import opaque_names
from morefit.model.parameter import check_blinding
from morefit.model.parts import check_known, check_model
from morefit.model.region import boxes, named_observable
from morefit.model.replace import for_values
from morefit.pipeline import Columns, Settings, able_backend, compile_values
from morefit.rewrite.derive import derivatives
from morefit.sampling.generate import all_values
from morefit.targets.base import Backend, Events
from morefit.targets.choose import choose_backend
from morefit.text.suggest import suggest
from morefit.validate import name_of, whole_number

LARGEST = sys.float_info.max


class CompiledEvaluator:
    """Computes numbers of a model at one set of values; what lies outside the ranges has no probability."""

    def pdf(self, model: Pdf, data: object, values: Values, backend: str | Backend) -> Array:
        """Return the normalised density of each event, in the shape of the data if they are an array."""
        model = for_values(model, values_of(model, values))
        return per_event(model, model.normalised(), data, values, backend)

    def derivative(
        self, model: Pdf, data: object, by: object, order: int, values: Values, backend: str | Backend
    ) -> Array:
        """Return a derivative of the normalised density of each event, by an observable or a parameter."""
        model = for_values(model, values_of(model, values))
        leaves = {o.name: o.expr for o in model.observables} | {p.name: p.symbol for p in model.parameters}
        name = name_of(by)
        if not isinstance(name, str) or name not in leaves:
            raise ModelError(f"derivative: {name!r} is not in the model; {suggest(str(name), leaves)}")
        formula = model.normalised()
        for _ in range(whole_number("derivative: order", order, 1)):
            (formula,) = derivatives(formula, [leaves[name]])
        return per_event(model, formula, data, values, backend)

    def cdf(
        self, model: Pdf, x: ArrayLike, values: Values, backend: str | Backend, given: object = None
    ) -> Array:
        """Return the probability of values up to each x, in the shape of x."""
        known = values_of(model, values)
        model = for_values(model, known)
        if len(model.drawn) > 1:
            names = ", ".join(f"'{o.name}'" for o in model.drawn)
            raise ModelError(f"model: a cdf is a function of one observable, got {names}; use integrate")
        (o,) = model.drawn
        points = as_numbers(o, x)
        if o.name in counted_in(model):  # a step reaches from halfway below a whole number to halfway above
            points = np.floor(points) + 0.5
        points = np.clip(points, o.low, o.high)
        if model.given:
            return conditional_cdf(
                model, points, known, conditional_columns(model, given), choose_backend(backend)
            )
        edges = np.unique(np.concatenate([[o.low, o.high], points.ravel()]))
        bins = Bins(o, edges, {})
        (parts,) = bin_probabilities([model], model.parameters, known, bins, choose_backend(backend))
        below = np.clip(np.concatenate([[0.0], np.cumsum(parts)]), 0.0, 1.0)
        probabilities: Array = below[np.searchsorted(edges, points)]
        return probabilities

    def integrate(
        self, model: Pdf, ranges: Ranges, values: Values, backend: str | Backend, given: object = None
    ) -> float:
        """Return the probability of a region, the mean of those of all rows that a conditional model is given."""
        known, region = values_of(model, values), region_in(model, ranges)
        model = for_values(model, known)
        for name in region:
            check_drawn(model, name)
        rows = None
        if model.given:
            columns = conditional_columns(model, given)
            count = len(next(iter(columns.values())))
            rows = Rows(columns, np.full(count, 1 / count))
        place = choose_backend(backend)
        return sum(box_probability(model, known, box, rows, place) for box in boxes(region))


def per_event(model: Pdf, formula: Expr, data: object, values: Values, backend: str | Backend) -> Array:
    """Return a formula of a model for each event, in the shape of the data if they are an array; zero outside the ranges."""
    known = values_of(model, values)
    check_known(model, "a density")
    columns, shape = read_columns(model, data)
    inside = np.ones(shape, bool).ravel()
    for o in model.observables:
        inside &= (columns[o.name] >= o.low) & (columns[o.name] <= o.high)
    clipped = Columns({o.name: np.clip(columns[o.name], o.low, o.high) for o in model.observables})
    place = able_backend(model, choose_backend(backend, 0 if opaque_names(model) else clipped.count))
    settings = Settings(place, precompute="none")
    leaves = tuple(p.symbol for p in model.parameters)
    bound = compile_values((formula,), leaves, settings).bind(clipped, Events.all_sets(clipped.count))
    numbers = bound(np.array([[known[p.name] for p in model.parameters]]))[0, 0]
    return np.where(inside, numbers, 0.0).reshape(shape)[()]  # a number for a number, as in NumPy


def box_probability(
    model: Pdf, values: Mapping[str, float], box: Box, rows: Rows | None, backend: Backend
) -> float:
    """Return the probability of a box."""
    if not box:
        return 1.0
    x = named_observable(model.observables, next(iter(box)))
    others = {name: ends for name, ends in box.items() if name != x.name}
    bins = Bins(x, np.array(box[x.name]), others, rows)
    return float(bin_probabilities([model], model.parameters, values, bins, backend)[0][0])


EVALUATOR = CompiledEvaluator()  # of all densities: ``model/evaluation.py`` takes it from here


def conditional_cdf(
    model: Pdf, points: Array, values: Mapping[str, float], columns: Mapping[str, Array], backend: Backend
) -> Array:
    """Return the probability of values up to each point, with what is given in the row of each point."""
    (o,) = model.drawn
    terms = []
    for weight, part in model.marginals(o, {}, values):
        formula = probability_between(part, const(o.low), HIGH)
        terms.append(weight * (probability_below(part, o) if formula is None else formula))
    count = len(next(iter(columns.values())))
    if 1 not in (count, points.size) and count != points.size:
        rule = f"given columns must have one number, or one for each of {points.size} values of '{o.name}'"
        raise DataError(f"cdf: {rule}, got {count}")
    shape = points.shape if points.size >= count else (count,)
    rows = np.broadcast_arrays(points.ravel(), *columns.values())
    data = Columns(
        {name: np.ascontiguousarray(c) for name, c in zip((HIGH.name, *columns), rows, strict=True)}
    )
    compiled = compile_values(
        (add_all(*terms),), tuple(p.symbol for p in model.parameters), Settings(backend, precompute="none")
    )
    full = np.array([[values[p.name] for p in model.parameters]])
    numbers = compiled.bind(data, Events.all_sets(data.count))(full)[0, 0]
    probabilities: Array = np.clip(numbers, 0.0, 1.0).reshape(shape)[()]
    return probabilities


def probability_below(pdf: Pdf, x: Observable) -> Expr:
    """Return the probability of values up to one that is a column, by nodes for each event."""
    end, share = (
        Observable.interned(f"{what} {x.name}", *ends, "")
        for what, ends in (("end", (x.low, x.high)), ("share", (0.0, 1.0)))
    )
    width = end.expr - x.low
    inside = width * substitute(pdf.density(), {x.expr: x.low + width * share.expr})
    area = integral_over(inside, [share], pdf.parameters, given=[end, *pdf.given])
    return substitute(area, {end.expr: HIGH}) / pdf.integral()


def conditional_columns(model: Pdf, given: object) -> dict[str, Array]:
    """Return the columns that a conditional model is given, inside their ranges; numbers are columns of one row."""
    names = ", ".join(f"'{o.name}'" for o in model.given)
    if given is None:
        raise ModelError(f"model: needs values of {names}; pass given, numbers or columns by name")
    if isinstance(given, Mapping):
        given = {name: np.atleast_1d(values) for name, values in given.items()}
    columns = Dataset(given, model.given).columns
    if not len(next(iter(columns.values()))):
        raise DataError(f"model: needs values of {names}, got none")
    return columns


def check_drawn(model: Pdf, name: str) -> None:
    """Refuse an observable that a model is given."""
    if name in {o.name for o in model.given}:
        others = ", ".join(f"'{o.name}'" for o in model.drawn)
        raise ModelError(f"observable '{name}': the model must draw it, but is given it; choose {others}")


def read_columns(model: Pdf, data: object) -> tuple[dict[str, Array], tuple[int, ...]]:
    """Return a column for each observable, and the shape that results have."""
    if len(model.observables) == 1 and isinstance(data, (int, float, list, tuple, np.ndarray, np.number)):
        (o,) = model.observables
        numbers = as_numbers(o, data)
        if not np.isfinite(numbers).all():
            raise DataError(f"observable '{o.name}': values must be finite, got {data!r}")
        return {o.name: numbers.ravel()}, numbers.shape
    rows, shape = flattened(model, data)
    open_ranges = [Observable(o.name, -LARGEST, LARGEST) for o in model.observables]
    dataset = Dataset(rows, open_ranges)
    return dataset.columns, (len(dataset),) if shape is None else shape


def flattened(model: Pdf, data: object) -> tuple[object, tuple[int, ...] | None]:
    """Return numbers and grids by name as columns, with the shape that they have together; None for columns, which they are."""
    if not isinstance(data, Mapping):
        return data, None
    grids: dict[str, Any] = {o.name: data.get(o.name) for o in model.observables}
    if any(not isinstance(g, int | float | np.number | np.ndarray) for g in grids.values()):
        return data, None
    if all(np.ndim(g) == 1 for g in grids.values()):
        return data, None
    try:
        each = np.broadcast_arrays(*grids.values())
    except ValueError:
        shapes = ", ".join(f"{np.shape(g)} of '{name}'" for name, g in grids.items())
        raise DataError(
            f"model: observables must have one shape, or shapes that broadcast, got {shapes}"
        ) from None
    return {name: g.ravel() for name, g in zip(grids, each, strict=True)}, each[0].shape


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
    # of a mapping ``values`` is a method
    if not isinstance(values, HasValues) or not isinstance(values.values, Mapping):
        return all_values(model, values, "values")
    missing = [p.name for p in model.parameters if p.name not in values.values]
    if missing:
        raise ModelError(
            f"parameter '{missing[0]}': not in the fit result, which has {', '.join(map(repr, values.values))};"
            " pass the result of a fit of this model"
        )
    check_blinding(model.parameters, values)
    return {p.name: values.values[p.name] for p in model.parameters}


def checked_ranges(model: Pdf, ranges: Ranges) -> Box:
    """Return a sub-range of each of some observables as numbers, if it lies in their range and is not empty."""
    region = region_in(model, ranges)
    for name, several in region.items():
        if len(several) > 1:
            raise DataError(
                f"observable '{name}': a sub-range must be one (low, high), got {len(several)}; plot them one by one"
            )
    return {name: ends for name, (ends,) in region.items()}
