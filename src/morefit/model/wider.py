"""Formulas that limits and start values of parameters chose, and nodes of rules: chosen anew for other values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from morefit.errors import ModelError
from morefit.expr import Op, substitute, toposort
from morefit.model.integrate.per_event import check_points, rule_error
from morefit.model.parameter import Parameter
from morefit.model.pdf import Pdf
from morefit.model.replace import Replacement

Limits = Mapping[str, tuple[float, float]]
Changed = tuple[tuple[Parameter, Parameter], ...]  # parameters, and those in their places
ACCURACY = 1e-8  # of integrals for each event


def for_values(model: Pdf, values: Mapping[str, float]) -> Pdf:
    """Return a model whose formulas hold at values of parameters, and whose integrals for each event are accurate there."""
    model = within_limits(model, values)
    moved = moved_parameters(model.parameters, values)
    return changed_model(model, moved) if moved and is_unresolved(model, moved) else model


def moved_parameters(parameters: Sequence[Parameter], values: Mapping[str, float]) -> Changed:
    """Return the parameters that start elsewhere than at some values, each with one that starts there."""
    shown = [p for p in parameters if values[p.name] != p.start and not p.blind]
    return tuple((p, p.with_start(values[p.name])) for p in shown)


def within_limits(model: Pdf, values: Mapping[str, float]) -> Pdf:
    """Return a model whose formulas hold at values: itself unless these lie outside of limits that matter."""
    outside = [p for p in model.parameters if not p.low <= values.get(p.name, p.start) <= p.high]
    limits = {p.name: around(values[p.name], values[p.name]) for p in outside}
    return for_limits(model, limits) if limits else model


@lru_cache(maxsize=256)
def is_unresolved(model: Pdf, moved: Changed) -> bool:
    """Return whether an integral for each event is inaccurate where some parameters have other values than at the start."""
    nodes = toposort(model.summed, enter_integrals=False, enter_sums=False)
    sums = [node for node in nodes if node.op is Op.NODE_SUM]
    values = {p.name: p.start for p in model.parameters} | {new.name: new.start for _, new in moved}
    points = values | check_points(model.observables) if sums else {}
    return any(rule_error(node, points) > ACCURACY for node in sums)


def around(low: float, high: float) -> tuple[float, float]:
    """Return powers of two around values, so that limits do not differ from one point to the next."""
    return -power_above(-low), power_above(high)


def power_above(value: float) -> float:
    """Return the nearest power of two, or minus one, that is not below a value."""
    if value == 0 or not math.isfinite(value):
        return value
    exponent = math.log2(abs(value))
    return math.copysign(2.0 ** (math.ceil(exponent) if value > 0 else math.floor(exponent)), value)


def for_limits(model: Pdf, limits: Limits) -> Pdf:
    """Return a model whose formulas hold within limits: itself unless these are wider than its own, which matter."""
    wider = wider_parameters(model.parameters, limits)
    return changed_model(model, wider) if wider and depends_on_limits(model, wider) else model


def wider_parameters(parameters: Sequence[Parameter], limits: Limits) -> Changed:
    """Return the parameters whose limits do not contain others, each with one whose limits contain both."""
    pairs = []
    for p in parameters:
        low, high = limits.get(p.name, (p.low, p.high))
        # no formula is chosen by the limits of a hidden value
        if (low < p.low or high > p.high) and not p.blind:
            pairs.append((p, p.with_limits(min(low, p.low), max(high, p.high))))
    return tuple(pairs)


@lru_cache(maxsize=64)
def changed_model(model: Pdf, others: Changed) -> Pdf:
    """Return a model with others in the places of some parameters."""
    changed: Pdf = Replacement(others)(model)
    return changed


@lru_cache(maxsize=256)
def depends_on_limits(model: Pdf, wider: Changed) -> bool:
    """Return whether a model has other formulas with wider limits of some parameters; False if it cannot be told."""
    if not any(old is p for old, _ in wider for p in model.parameters):
        return False
    changed = changed_model(model, wider)
    try:
        summed = changed.summed
    except ModelError:  # a density of the user has parameters where they cannot be replaced
        return False
    back: dict[Any, Any] = {new.symbol: old.symbol for old, new in wider}
    return substitute(summed, back) is not model.summed
