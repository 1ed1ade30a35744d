"""Argument validation of toy studies: numbers of toys and events, the truth, and where fits start."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morefit.data.dataset import Dataset
from morefit.data.weights import observables_of, weight_formula
from morefit.dataclass import dataclass
from morefit.errors import DataError, ModelError, OptionError
from morefit.expr import Quantity
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.constraint import as_constraints
from morefit.likelihood.simultaneous import Simultaneous
from morefit.likelihood.unbinned import likelihood_of
from morefit.minimise.problem import check_no_ranges
from morefit.model import Pdf
from morefit.model.observable import Ranges
from morefit.model.parameter import check_blinding
from morefit.model.parts import check_model
from morefit.model.region import YieldsIn
from morefit.random.host import part_key, stream_key
from morefit.resources import check_memory
from morefit.sampling.conditional_rows import conditional_rows
from morefit.sampling.generate import Sizes, check_room, expected_events, poisson_sizes
from morefit.text.suggest import suggest
from morefit.toys.task import STREAM
from morefit.validate import numbers_by_name, whole_number


@dataclass(frozen=True)
class PartNumbers:
    """How many events toys have in each part; None for what it expects, or the rows that it is given."""

    numbers: tuple[int | None, ...]

    @classmethod
    def of(cls, model: object, events: Any, given: Any) -> Any:
        """Return the numbers of the categories of simultaneous models; of others, the numbers of the user."""
        return cls(model.numbers("toy study", events, given)) if isinstance(model, Simultaneous) else events


def whole(what: str, number: Any, least: int) -> int:
    """Return a whole number among the options of a study."""
    return whole_number(f"toy study: {what}", number, least)


def template_of(
    what: str,
    model: Pdf | Simultaneous | Term,
    constraints: Any = (),
    given: Any = None,
    *,
    ranges: Ranges | None = None,
    yields_in: YieldsIn = "full",
    weights: Any = None,
    weighted: bool = False,
) -> Term:
    """Return the likelihood that toys are drawn and fitted of; that of a model has no events, but given columns.

    It may be ``weighted`` by a formula of observables; that of a model has the formula ``weights``, by label in categories.
    """
    extra = as_constraints(constraints)
    if isinstance(model, Term):
        if given is not None:
            raise OptionError(f"{what}: a likelihood has its given columns already; leave given out")
        if weights is not None:
            raise OptionError(f"{what}: a likelihood has its weights already; leave weights out")
        check_unweighted(what, model, formulas=weighted)
        check_no_ranges(what, ranges)
        return model.with_constraints(extra) if extra else model
    check_formulas(what, weights)
    template: Term = likelihood_of(
        model, no_events(model, weights), weights=weights, constraints=extra, ranges=ranges, yields_in=yields_in,
        backend="cpu",
    )  # fmt: skip
    if given is None:
        return template
    if isinstance(model, Simultaneous):
        known = model.split(given, columns=lambda one: one.given).items()
        each = [conditional_rows(what, model[k], own) if model[k].given else None for k, (own, _) in known]
    else:
        each = [conditional_rows(what, model, given)]
    parts = zip(template.parts, each, strict=True)
    return template.with_parts(
        [p if own is None else p.replaced(data=Dataset(own.columns)) for p, own in parts]
    )


def check_unweighted(what: str, likelihood: Term, *, formulas: bool = False) -> None:
    """Refuse a likelihood of events with weights where toys are drawn, unless they are formulas, which weight toys as well."""
    if not likelihood.weighted:
        return
    if not formulas:
        raise DataError(
            f"{what}: toys have no weights, so the data must not have any; use mf.intervals.bootstrap, or mf.fit_many of"
            " datasets with weights"
        )
    if any(part.has_weights and part.weight is None for part in likelihood.parts):
        raise DataError(
            f"{what}: toys have the weights of a formula of observables, got numbers; write mf.Likelihood(model, data,"
            " weights=1 / efficiency), or use mf.intervals.bootstrap, or mf.fit_many of datasets with weights"
        )


def check_formulas(what: str, weights: Any) -> None:
    """Refuse weights of toys that are no formulas."""
    each = weights.values() if isinstance(weights, Mapping) else [weights]
    for one in each:
        if one is not None and not isinstance(one, Quantity):
            raise OptionError(
                f"{what}: weights must be a formula of observables, such as 1 / efficiency, got {one!r:.60}"
            )


def without_events(term: Term) -> Term:
    """Return a likelihood whose data stay behind when it is sent to workers, but for columns that are given."""
    if not term.events:
        return term
    return term.with_parts([part.without_events() for part in term.parts])


def no_events(model: Any, weights: Any = None) -> dict[str, Any]:
    """Return the columns of a model and of the formula of its weights, or of each category, without any events."""
    if isinstance(model, Simultaneous):
        by_label = isinstance(weights, Mapping)
        own = {model.known(k): one for k, one in weights.items()} if by_label else dict[str, Any]()
        return {
            label: no_events(one, own.get(label) if by_label else weights)
            for label, one in model.models.items()
        }
    check_model(model)
    return {o.name: np.empty(0) for o in (*model.observables, *observables_of(weight_formula(weights)))}


def complete(term: Term, values: Any, what: str) -> dict[str, float]:
    """Return values of all parameters: those given, or else where they start."""
    known = {p.name: p.start for p in term.all_parameters}
    check_blinding(term.all_parameters, values)
    chosen = numbers_by_name(what, values)
    problems = [
        f"parameter '{name}': not in the model, but in {what}; {suggest(name, known)}"
        for name in chosen
        if name not in known
    ]
    if problems:
        raise ModelError("; ".join(problems))
    return {name: float(value) for name, value in (known | chosen).items()}


def starts(fitted: Term, truth: Mapping[str, float], start: Any, *, keep_fixed: bool) -> dict[str, float]:
    """Return where the fits start: at the truth if it is known and inside the limits, but for what the user says."""
    begin, chosen = complete(fitted, start, "start"), numbers_by_name("start", start)
    for p in fitted.all_parameters:
        if p.name in chosen:
            if not p.low <= begin[p.name] <= p.high:
                rule = f"start must lie in [{p.low}, {p.high}]"
                raise ModelError(f"parameter '{p.name}': {rule}, got {begin[p.name]}")
        elif p.name in truth and not (p.fixed and keep_fixed):
            begin[p.name] = truth[p.name] if p.fixed else min(max(truth[p.name], p.low), p.high)
    return begin


def warn_of_truth(fitted: Term, truth: Mapping[str, float]) -> None:
    """Warn that fits cannot return a truth outside of limits: biases, pulls and coverages are then those of the limits."""
    for p in fitted.parameters:
        if p.name in truth and not p.low <= truth[p.name] <= p.high:
            warnings.warn(
                f"toy study: parameter '{p.name}': the truth must lie in [{p.low}, {p.high}] for fits to find it, got"
                f" {truth[p.name]}; pulls and coverages are those of fits at a limit",
                UserWarning,
                stacklevel=4,
            )


def toy_sizes(term: Term, truth: Mapping[str, float], toys: int, events: Any, seed: int) -> Sizes:
    """Return how many events each toy has, (toys,); (toys, parts) for a sum of likelihoods.

    Without ``events``, a part draws a Poisson number around what it expects, or has as many as its data.
    """
    check_memory(f"toy study: results of {toys:.6g} toys", toys * 8.0 * (2 * len(term.parameters) + 5))
    stream = stream_key(seed, STREAM)
    if events is None or isinstance(events, PartNumbers) or len(term.parts) > 1:
        each = enumerate(zip(term.parts, events_of_toys("toy study", term, events), strict=True))
        columns = [
            poisson_part_sizes(part, truth, toys, part_key(stream, k))
            if number is None
            else np.full(toys, number, np.int64)
            for k, (part, number) in each
        ]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    model = term.parts[0].model
    numbers = [whole("events", number, 0) for number in np.atleast_1d(np.asarray(events)).tolist()]
    check_room("toy study", model, max(numbers, default=0))
    if np.ndim(events) and len(numbers) != toys:
        raise OptionError(
            f"toy study: events must be one number, or one for each of {toys} toys, got {len(numbers)}"
        )
    return np.array(numbers, np.int64) if np.ndim(events) else np.full(toys, numbers[0], np.int64)


def check_rows(term: Term, sizes: Sizes, resample: bool) -> None:
    """Refuse toys that keep the rows they are given, as they do not resample them, but have another number of events."""
    if resample:
        return
    for part, own in zip(term.parts, sizes.reshape(len(sizes), -1).T, strict=True):
        if part.model.given and np.any(own != part.events):
            raise OptionError(
                f"toy study: toys that keep the {part.events} rows they are given must have as many events, got"
                f" {own[own != part.events][0]}; use resample=True"
            )


def poisson_part_sizes(part: Likelihood, truth: Mapping[str, float], toys: int, seed: int) -> Sizes:
    """Draw how many events of one part each toy has, around what it expects."""
    expected = expected_events(part.model, truth)
    if not 0 <= expected < np.inf:
        raise ModelError(f"toy study: the model must expect a finite number of events, got {expected}")
    check_room("toy study", part.model, expected)
    return poisson_sizes(expected, toys, seed)


def events_of_toys(what: str, term: Term, events: int | PartNumbers | None = None) -> tuple[int | None, ...]:
    """Return how many events toys have in each part; None for a Poisson number around what it expects."""
    if isinstance(events, PartNumbers):
        own = zip(term.parts, events.numbers, strict=True)
        return tuple(part.events if n is None and not part.extended else n for part, n in own)
    if events is not None:
        if len(term.parts) > 1:
            raise ModelError(
                f"{what}: events must be left out for a sum of likelihoods: each part has as many as its data, or as it"
                " expects"
            )
        return (events,)
    if any(part.model.expected_events() is None and not part.events for part in term.parts):
        raise ModelError(f"{what}: events is missing; the model predicts no number, as one with yields would")
    return tuple(part.events if part.model.expected_events() is None else None for part in term.parts)


def expected_total(term: Term, values: Mapping[str, float], numbers: Sequence[int | None]) -> float:
    """Return how many events a toy has on average, all parts together."""
    return sum(
        expected_events(part.model, values) if number is None else number
        for part, number in zip(term.parts, numbers, strict=True)
    )
