"""Replace parts of a model, wherever they stand; and formulas that limits and start values of parameters chose, chosen anew for others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from morefit.errors import ModelError
from morefit.expr import Expr, Op, Quantity, substitute, to_expr, toposort
from morefit.model.arguments import described
from morefit.model.compose.choice import choices_in, decisions
from morefit.model.derived import Derived, derived_in
from morefit.model.integrate.per_event import check_points, rule_error
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.parts import parts_of
from morefit.model.pdf import Pdf
from morefit.text.suggest import suggest


def replace_parts(model: Pdf, replacements: Mapping[Any, Any]) -> Pdf:
    """Return a model with other things in the places of some, which are named or passed themselves."""
    (changed,) = replace_in_all({"": model}, replacements).values()
    return changed


def replace_in_all(models: Mapping[str, Pdf], replacements: Mapping[Any, Any]) -> dict[str, Pdf]:
    """Return models with parts replaced in those that have them; one of them must."""
    if not isinstance(replacements, Mapping):
        raise ModelError(f"replace: takes a mapping from old to new parts, got {described(replacements)}")
    parts = tuple(part for model in models.values() for part in parts_in(model))
    chosen = [(old_part(old, parts), new) for old, new in replacements.items()]
    for old, new in chosen:
        check_kind(old, new)
    change = Replacement(chosen)
    return {label: change(model) for label, model in models.items()}


def parts_in(model: Pdf) -> Iterator[tuple[str, Any]]:
    """Go through what can be replaced, with names: quantities have their own, densities the labels of sums."""
    for choice in choices_in(model).values():
        yield choice.name, choice
    for decided in (one.model for one in decisions(model)):
        for quantity in (*decided.parameters, *decided.observables, *derived_in((decided,)).values()):
            yield quantity.name, quantity
    for pdf in parts_of(model):
        yield "", pdf
        yield from ((title, part) for title, _, part in pdf.branches() if title)


def old_part(old: Any, parts: tuple[tuple[str, Any], ...]) -> Any:
    """Return the one part of a model that a key means."""
    matches = {
        id(part): part for name, part in parts if (name == old if isinstance(old, str) else part is old)
    }
    if len(matches) != 1:
        what = repr(old) if isinstance(old, str) else described(old)
        names = dict.fromkeys(name for name, _ in parts if name)
        how = "several parts have this name; pass the one that is meant" if matches else suggest(old, names)
        raise ModelError(f"replace: {what} is not one part of the model; {how}")
    return next(iter(matches.values()))


def check_kind(old: Any, new: Any) -> None:
    """Refuse a thing of another kind: a density for a density, an observable for one, else a number or a formula."""
    wanted = Pdf if isinstance(old, Pdf) else Observable if isinstance(old, Observable) else None
    if wanted is None:
        to_expr(new)
    elif not isinstance(new, wanted):
        kind = "a density" if wanted is Pdf else "an observable"
        raise ModelError(f"replace: {described(old)} must become {kind}, got {described(new)}")


class Replacement:
    """Changes whatever a model is made of; what several parts share stays shared."""

    def __init__(self, chosen: Sequence[tuple[Any, Any]]) -> None:
        # with the old one, so that no other object gets its address
        self.known = {id(old): (old, new) for old, new in chosen}
        self.exprs = {old.expr: to_expr(new) for old, new in chosen if isinstance(old, Quantity)}

    def __call__(self, value: Any) -> Any:
        """Return a value with the parts replaced; a value without any is itself."""
        if isinstance(value, Expr):
            return self.expression(value)
        if isinstance(value, (list, tuple)):
            return tuple(map(self, value)) if isinstance(value, tuple) else [*map(self, value)]
        if isinstance(value, dict):
            return {key: self(one) for key, one in value.items()}
        if isinstance(value, (Pdf, Derived)) and id(value) not in self.known:
            self.known[id(value)] = value, self.changed(value)
        return self.known[id(value)][1] if id(value) in self.known else value

    def changed(self, part: Pdf | Derived) -> Pdf | Derived:
        """Return a density or a derived quantity made of changed parts."""
        if isinstance(part, Pdf):
            return part.replaced(self)
        return Derived(part.name, self.expression(part.formula), part.label)

    def expression(self, expr: Expr) -> Expr:
        names = [
            node for node in toposort(expr) if isinstance(node.value, Derived) and node not in self.exprs
        ]
        return substitute(expr, self.exprs | {node: to_expr(self(node.value)) for node in names})


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
