"""Argument validation of toy studies: numbers of toys and events, the truth, and where fits start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from morefit.errors import ModelError
from morefit.minimise.result import suggest
from morefit.model import Pdf
from morefit.model.pdf import check_model
from morefit.random.host import stream_key
from morefit.resources import check_memory
from morefit.sampling.generate import Sizes, check_room, expected_events, poisson_sizes
from morefit.toys.task import STREAM
from morefit.validate import numbers_by_name, whole_number


def whole(what: str, number: Any, least: int) -> int:
    """Return a whole number of at least ``least``."""
    return whole_number(f"toy study: {what}", number, least, ModelError)


def complete(model: Pdf, values: Mapping[str, float] | None, what: str) -> dict[str, float]:
    """Return values of all parameters, by default their start values."""
    check_model(model)
    known = {p.name: p.start for p in model.parameters}
    chosen = numbers_by_name(what, values)
    problems = [
        f"parameter '{name}': not in the model, but in {what}; {suggest(name, known)}"
        for name in chosen
        if name not in known
    ]
    if problems:
        raise ModelError("; ".join(problems))
    return {name: float(value) for name, value in (known | chosen).items()}


def starts(
    fitted: Pdf, truth: Mapping[str, float], chosen: Mapping[str, float] | None, *, keep_fixed: bool
) -> dict[str, float]:
    """Return where the fits start: where the user chooses, or else at the truth, inside the limits."""
    begin = complete(fitted, chosen, "start")
    for p in fitted.parameters:
        if p.name in (chosen or {}):
            if not p.low <= begin[p.name] <= p.high:
                rule = f"start must lie in [{p.low}, {p.high}]"
                raise ModelError(f"parameter '{p.name}': {rule}, got {begin[p.name]}")
        elif p.name in truth and not (p.fixed and keep_fixed):
            begin[p.name] = truth[p.name] if p.fixed else min(max(truth[p.name], p.low), p.high)
    return begin


def toy_sizes(model: Pdf, truth: Mapping[str, float], toys: int, events: Any, seed: int) -> Sizes:
    """Return the number of events of each toy."""
    check_memory(f"toy study: results of {toys:.6g} toys", toys * 8.0 * (2 * len(model.parameters) + 5))
    if events is None:
        if model.expected_events() is None:
            raise ModelError(
                "toy study: events is missing; the model predicts no number, as one with yields would"
            )
        expected = expected_events(model, truth)
        if not 0 <= expected < np.inf:
            raise ModelError(f"toy study: the model must expect a finite number of events, got {expected}")
        check_room("toy study", model, expected)
        return poisson_sizes(expected, toys, stream_key(seed, STREAM))
    numbers = [whole("events", number, 0) for number in np.atleast_1d(np.asarray(events)).tolist()]
    check_room("toy study", model, max(numbers, default=0))
    if np.ndim(events) and len(numbers) != toys:
        raise ModelError(
            f"toy study: events must be one number, or one for each of {toys} toys, got {len(numbers)}"
        )
    return np.array(numbers if np.ndim(events) else numbers * toys, np.int64)
