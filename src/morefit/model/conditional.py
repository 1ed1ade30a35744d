"""Conditional densities: ``given`` names observables that are not drawn, and the integral is that of each event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError
from morefit.expr import Expr, Op, evaluate, scalar, substitute, symbols
from morefit.model.arguments import Allowed, declared_arguments
from morefit.model.integrate import by_terms, integral_over
from morefit.model.observable import Observable
from morefit.model.printed import quantities

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

_accepting: set[Any] = set()  # functions that take ``given``


def accept_conditional(kind: type[Pdf]) -> None:
    """Let densities of a class be made with ``given``, which ``Pdf.__new__`` has read.

    The ``__init__`` of a dataclass is written after the class is made, so it is wrapped when it is first needed.
    """
    plain: Any = kind.__init__
    if plain in _accepting:
        return

    @wraps(plain)
    def init(self: Pdf, *args: Any, given: Any = None, **named: Any) -> None:
        plain(self, *args, **named)

    _accepting.add(init)
    type.__setattr__(kind, "__init__", init)


def conditional_integral(pdf: Pdf, drawn: tuple[Observable, ...]) -> Expr:
    """Return the integral of a conditional density over observables, in which the given ones stay.

    It is done term by term, or for each event by a rule in the loop over events.
    """
    free = {o.expr: scalar(o.name) for o in pdf.given}  # numbers, as far as the integral is concerned
    total = by_terms(substitute(pdf.density(), free), drawn)
    if total is None:
        return integral_over(pdf.density(), drawn, pdf.parameters, pdf.given)
    return substitute(total, {number: column for column, number in free.items()})


def check_events(parts: Iterable[Pdf], values: Mapping[str, float], columns: Mapping[str, Array]) -> None:
    """Refuse events in which an argument of a conditional density is not what its field declares, at some values."""
    for pdf in parts:
        for name, domain in declared_arguments(type(pdf)).items():
            if isinstance(domain, Allowed):
                for one in quantities(getattr(pdf, name)):
                    what = f"density '{type(pdf).__name__}': argument '{name}'"
                    check_column(what, one, domain, {**values, **columns})


def check_column(what: str, argument: Expr, domain: Allowed, known: Mapping[str, Any]) -> None:
    """Refuse an argument whose smallest or largest value in events lies outside its domain."""
    names = [s.name for s in symbols(Op.COLUMN, argument)]
    if not names or not all(name in known and np.size(known[name]) for name in names):
        return
    numbers = np.broadcast_to(evaluate(argument, known), np.shape(known[names[0]]))
    for event in (int(np.argmin(numbers)), int(np.argmax(numbers))):
        if not domain.holds(float(numbers[event])):
            where = ", ".join(f"{name} = {known[name][event]:.6g}" for name in names)
            raise DataError(
                f"{what} must be {domain.rule} in every event, got {numbers[event]:g} in event {event} with {where};"
                " cut the data or change the formula"
            )
