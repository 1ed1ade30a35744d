"""Replace parts of a model: parameters, observables, derived quantities and densities, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from morefit.errors import ModelError
from morefit.expr import Expr, Quantity, substitute, to_expr, toposort
from morefit.model.arguments import described
from morefit.model.compose.choice import choices_in, decisions
from morefit.model.derived import Derived, derived_in
from morefit.model.observable import Observable
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
