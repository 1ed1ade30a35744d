"""The problem of a fit: its likelihood, which parameters float, start values and limits; and where derivatives do not exist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.data.dataset import Dataset
from morefit.data.weights import Weights
from morefit.dataclass import dataclass
from morefit.errors import DataError, FitError, OptionError
from morefit.expr import Expr
from morefit.likelihood import Evaluation, Likelihood, Term
from morefit.likelihood.constraint import as_constraints
from morefit.likelihood.evaluation import check_whole_numbers
from morefit.likelihood.simultaneous import Simultaneous
from morefit.likelihood.unbinned import likelihood_of
from morefit.model import Parameter, Pdf
from morefit.model.counts import counted_in
from morefit.model.observable import Ranges, check_limits, check_number
from morefit.model.region import YieldsIn, contains, region_text
from morefit.model.replace import wider_parameters
from morefit.records.fields import ByName, Interval, pairs, texts
from morefit.rewrite.derive import gradient
from morefit.rewrite.simplify import normalise
from morefit.targets.base import Backend
from morefit.text.suggest import suggest
from morefit.validate import by_name, finite_number, name_of

WORDS = {1: "derivative", 2: "second derivative"}


def missing_derivatives(likelihood: Term, x: Array, names: Sequence[str], order: int) -> str:
    """Describe for which event, and by which of the parameters named, the derivative of this order does not exist."""
    sentences = [
        f"the {WORDS[order]} by '{name}' does not exist for {place}"
        for part, own in likelihood.own_points(x)
        for name, place in missing(
            part, own, [n for n in names if n in {p.name for p in part.parameters}], order
        )
    ]
    return "; ".join(sentences) or f"a {WORDS[order]} is not finite"


def missing(part: Likelihood, x: Array, names: Sequence[str], order: int) -> Iterator[tuple[str, str]]:
    """Go through the parameters without a derivative, each with the first event that lacks it."""
    full, _ = part.points(x)
    symbols = [p.symbol for p in part.parameters if p.name in names]
    wanted = [derivative(part.model.summed, symbol, order) for symbol in symbols]
    if not part.events or not wanted:
        return
    before, lost = 0, dict[str, str]()
    for piece in part.by_piece():
        for name, numbers in zip(names, piece.event_values(full, *wanted)[0], strict=True):
            wrong = np.flatnonzero(~np.isfinite(numbers))
            if len(wrong) and name not in lost:
                lost[name] = describe(piece, wrong, before)
        before += piece.events
    yield from lost.items()


def derivative(log_intensity: Expr, symbol: Expr, order: int) -> Expr:
    """Return the derivative of the term of one event."""
    (result,) = normalise(log_intensity)
    for _ in range(order):
        (result,) = gradient(result, [symbol])
    return result


def describe(part: Likelihood, wrong: Integers, before: int) -> str:
    """Name an event by its number, after some others, and what was measured, and count the others like it."""
    first = int(wrong[0])
    measured = ", ".join(f"{name} = {column[first]:.10g}" for name, column in part.data.columns.items())
    more = f" nor for {len(wrong) - 1} others" if len(wrong) > 1 else ""
    return f"event {before + first} ({measured}){more}"


@dataclass(frozen=True, eq=False)
class Problem:
    """Which parameters float, from where, and how far."""

    all_parameters: tuple[Parameter, ...]
    values: Mapping[str, float]  # where all start, or stay
    limits: Mapping[str, tuple[float, float]]
    floating: tuple[str, ...]
    rows: tuple[int, ...]  # of the floating ones among the likelihood's floating ones,
    derivatives: int  # the number of which this is

    @property
    def start(self) -> Array:
        return np.array([self.values[n] for n in self.floating])

    def full(self, x: Array) -> Array:
        """Complete floating values to all, as one set."""
        values = self.template.copy()
        values[0, self.columns] = x
        return values

    def full_rows(self, points: Array) -> Array:
        """Complete floating values to all, a set for each row."""
        values = np.repeat(self.template, len(points), axis=0)
        values[:, self.columns] = points
        return values

    def spanned(self) -> dict[str, tuple[float, float]]:
        """Return where each parameter can be: between its limits, or at its value."""
        return {
            n: self.limits[n] if n in self.floating else (value, value) for n, value in self.values.items()
        }

    @cached_property
    def is_wider(self) -> bool:
        """Whether a parameter can be outside of its own limits."""
        return bool(wider_parameters(self.all_parameters, self.spanned()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all parameters, in the order of the model."""
        return tuple(p.name for p in self.all_parameters)

    @cached_property
    def limits_by_name(self) -> ByName[Interval]:
        """The limits as results list them."""
        return pairs(self.limits)

    @cached_property
    def labels(self) -> ByName[str]:
        """The labels of the parameters that have one."""
        return texts({p.name: p.label for p in self.all_parameters if p.label})

    @cached_property
    def blinded(self) -> ByName[tuple[Any, ...]]:
        """What the offset or scale of each blinded parameter is computed from, but for its phrase."""
        return ByName({p.name: how for p in self.all_parameters if (how := p.blinding)})

    @cached_property
    def floating_limits(self) -> Array:
        """The limits of the floating parameters, (floating, 2)."""
        return np.array([self.limits[n] for n in self.floating])

    @cached_property
    def template(self) -> Array:
        return np.array([[self.values[p.name] for p in self.all_parameters]])

    @property
    def first_row(self) -> Array:
        """Where all parameters start."""
        return np.asarray(self.template[0])

    @cached_property
    def columns(self) -> list[int]:
        """Where the floating parameters are among all."""
        return [self.names.index(n) for n in self.floating]

    @cached_property
    def every_row(self) -> bool:
        """Whether all that floats in the likelihood floats in this fit, in its order."""
        return self.rows == tuple(range(self.derivatives))


def as_likelihood(
    what: str,
    model: Pdf | Simultaneous | Term,
    data: Any = None,
    *,
    weights: Weights = None,
    constraints: Any = (),
    ranges: Ranges | None = None,
    yields_in: YieldsIn = "full",
    backend: str | Backend = "auto",
) -> Term:
    """Return a likelihood, or make one of a model and its data."""
    if isinstance(model, Term):
        if data is not None or weights is not None:
            raise FitError(f"{what}: a likelihood has its data already; give no data and no weights")
        check_no_ranges(what, ranges)
        extra = as_constraints(constraints)
        return model.with_constraints(extra) if extra else model
    if not isinstance(model, Pdf | Simultaneous):
        raise FitError(
            f"{what}: takes a model or a likelihood, got {type(model).__name__}"
            + "; the model comes before the data" * isinstance(data, Pdf)
            + "; write mf.fit(mf.LeastSquares(function, x, y, y_errors)) for points" * callable(model)
        )
    if data is None:
        advice = "call fit(model, data)" if what == "fit" else "pass mf.Likelihood(model, data), or data="
        raise FitError(f"{what}: a model needs data; {advice}")
    return likelihood_of(
        model, data, weights=weights, constraints=constraints, ranges=ranges, yields_in=yields_in, backend=backend
    )  # fmt: skip


def check_no_ranges(what: str, ranges: Ranges | None) -> None:
    """Refuse ranges for a likelihood."""
    if ranges is not None:
        raise FitError(f"{what}: a likelihood has its own ranges; give them to mf.Likelihood, part by part")


def check_data(likelihood: Term, data: Sequence[Dataset] | None = None) -> None:
    """Refuse data that leave nothing to fit: those of a likelihood, or others of the same kind, part by part."""
    parts = likelihood.parts
    each = [part.data for part in parts] if data is None else data
    entries = sum(part.entries_of(own) for part, own in zip(parts, each, strict=True))
    # that there are none is a measurement of yields
    if entries == 0 and not any(part.extended for part in parts):
        raise DataError("dataset: has no events; there is nothing to fit, unless the model has yields")
    for part, own in zip(parts, each, strict=True):
        check_weights(own)
        if counted := counted_in(part.model):
            check_whole_numbers(own, counted.intersection(own.names))


def check_ranges(model: Pdf, fit_model: Pdf) -> None:
    """Refuse to fit events that lie outside the range of the fitted model."""
    drawn = {o.name: o for o in model.observables}
    problems = [
        f"observable '{o.name}': the fitted model must span the range that is drawn, [{drawn[o.name].low},"
        f" {drawn[o.name].high}], got [{o.low}, {o.high}]"
        for o in fit_model.observables
        if o.low > drawn[o.name].low or o.high < drawn[o.name].high
    ]
    if not contains(fit_model.region(), model.region(), model.observables):
        problems.append(f"the fitted model must span what is drawn, got {region_text(fit_model.region())}")
    if problems:
        raise FitError(
            f"toys: {'; '.join(problems)}; give both models one range, or cut events of mf.generate with"
            " mf.Dataset.cut and fit them with mf.fit_many"
        )


def check_weights(data: Dataset) -> None:
    """Refuse weights that leave nothing to fit: a likelihood of a sum below zero has no minimum."""
    if not data.weighted or not len(data):
        return
    total = data.sum_of_weights
    if total == 0 and not any(np.any(piece.weights) for piece in data.pieces()):
        raise DataError(f"dataset: weights: all {len(data)} are zero; there is nothing to fit")
    if not 0 < total < math.inf:
        raise DataError(
            f"dataset: weights: their sum must be positive, got {total:.6g}; too much is subtracted"
        )


def make_problem(likelihood: Term, start: Any, fixed: Any, limits: Any) -> Problem:
    """Combine the settings of the parameters with those that the call overrides."""
    problem = own_problem(likelihood.all_parameters, likelihood.parameters)
    if start is not None or limits is not None or not (isinstance(fixed, tuple) and not fixed):
        values, ranges = dict(problem.values), dict(problem.limits)
        floating = override(likelihood, values, ranges, (start, fixed, limits))
        rows = tuple(map(problem.floating.index, floating))
        problem = replace(problem, values=values, limits=ranges, floating=tuple(floating), rows=rows)
    if not problem.floating:
        raise FitError("fit: no floating parameter; free one, or use Likelihood.value for the value alone")
    return problem


@lru_cache(maxsize=256)  # every fit of a model has the same
def own_problem(parameters: tuple[Parameter, ...], floating: tuple[Parameter, ...]) -> Problem:
    """Put together what the parameters of a likelihood say, some of which float."""
    return Problem(
        all_parameters=parameters,
        values=MappingProxyType({p.name: p.start for p in parameters}),
        limits=MappingProxyType({p.name: (p.low, p.high) for p in parameters}),
        floating=tuple(p.name for p in floating),
        rows=tuple(range(len(floating))),
        derivatives=len(floating),
    )


def override(
    likelihood: Term,
    values: dict[str, float],
    ranges: dict[str, tuple[float, float]],
    options: tuple[Any, Any, Any],
) -> list[str]:
    """Change values and ranges as start, fixed and limits of a call say; return the names of what floats."""
    start, fixed, limits = options
    begin, constants, pairs = mapping("start", start), fixed_values(fixed), mapping("limits", limits)
    check_names(likelihood.all_parameters, [*begin, *constants, *pairs])
    values |= {n: check_number("parameter", n, "start", v, OptionError) for n, v in begin.items()}
    values |= {
        n: finite_number(f"parameter '{n}': fixed value", v) for n, v in constants.items() if v is not None
    }
    ranges |= {n: check_limits(n, pair, OptionError) for n, pair in pairs.items()}
    floating = [p.name for p in likelihood.parameters if p.name not in constants]
    outside = [
        f"parameter '{n}': start must lie in [{ranges[n][0]}, {ranges[n][1]}], got {values[n]}"
        for n in floating
        if not ranges[n][0] <= values[n] <= ranges[n][1] or not math.isfinite(values[n])
    ]
    if outside:
        raise FitError("; ".join(outside))
    return floating


def mapping(what: str, values: Any) -> dict[str, Any]:
    """Return a mapping of parameters, or the values of the result of a fit, by name."""
    named = {} if values is None else by_name(values)
    if named is None:
        raise OptionError(f"fit: {what} must map names of parameters to numbers, got {type(values).__name__}")
    return named


def fixed_values(fixed: Any) -> dict[str, float | None]:
    """Return the parameters to fix with their values, None for where they start."""
    named = by_name(fixed)
    if named is not None:
        return named
    single = isinstance(fixed, str | Parameter) or not isinstance(fixed, Iterable)
    names = [name_of(one) for one in ([fixed] if single else fixed)]
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f"fit: fixed must be names of parameters, or map them to values, got {fixed!r}")
    return dict.fromkeys(names)


def check_fixed(parameters: Sequence[Parameter], fixed: Any, limits: Any) -> None:
    """Refuse to fix parameters outside of their limits, or of those of the call."""
    if isinstance(fixed, tuple) and not fixed:  # as in most fits
        return
    ranges = {p.name: (p.low, p.high) for p in parameters}
    ranges |= {n: check_limits(n, pair, OptionError) for n, pair in mapping("limits", limits).items()}
    for name, value in fixed_values(fixed).items():
        low, high = ranges.get(name, (-math.inf, math.inf))
        number = math.nan if value is None else finite_number(f"parameter '{name}': fixed value", value)
        if number < low or number > high:
            wider = f"({min(low, number):g}, {max(high, number):g})"
            raise FitError(
                f"parameter '{name}': fixed value must lie in [{low}, {high}], got {number}; pass limits={{'{name}': {wider}}}"
                " as well, or give the parameter wider limits"
            )


def check_names(parameters: Sequence[Parameter], names: Sequence[str]) -> None:
    known = [p.name for p in parameters]
    if unknown := [name for name in names if name not in known]:
        each = [f"parameter '{name}': not in the model; {suggest(name, known)}" for name in unknown]
        raise FitError("; ".join(each))


def check_start(likelihood: Term, problem: Problem, first: Evaluation) -> None:
    """Refuse to start where the likelihood is not defined: Minuit could not find its way out."""
    x = np.array([problem.values[p.name] for p in likelihood.parameters])
    if first.bad[0]:
        raise FitError(
            f"fit: at the start values {likelihood.bad_events(x)}; change the start values, the model or the range"
        )
    if not np.isfinite(first.value[0]):
        raise FitError("fit: the likelihood is not finite at the start values; change them or the model")
    if not np.all(np.isfinite(first.gradient)):
        why = missing_derivatives(likelihood, x, problem.floating, 1)
        raise FitError(f"fit: at the start values {why}; change them, the model or the range")
