"""Conditional densities: ``given`` names observables that are not drawn, and the integral is that of each event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError, ModelError
from morefit.expr import Expr, Op, const, domain_of, evaluate, scalar, substitute, symbols, toposort
from morefit.expr.evaluate import adapted_to
from morefit.model.arguments import Allowed, conditional, declared_arguments, listing
from morefit.model.integrate import by_terms, integral_over, integral_over_box
from morefit.model.observable import Observable
from morefit.model.printed import quantities

if TYPE_CHECKING:
    from morefit.model.pdf import Pdf

PLACES = (0.35, 0.7)  # of the ranges of given observables: where an integral is compared with a numerical one
MAX_AXES = 3  # of that one
TOLERANCE = 1e-6  # and its relative error,
RESOLVED = 1e-4  # which it must not exceed, to be compared with
WRONG = 1e-3  # relative difference


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


def check_integral(pdf: Pdf) -> None:
    """Refuse a density whose own integral depends on observables that it draws: it would not be normalised in them."""
    known, given = pdf.known_integral(), {o.name for o in pdf.given}
    if known is not None and (columns := [s for s in symbols(Op.COLUMN, known) if s.name not in given]):
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral must not depend on observables, got one with"
            f" {listing(columns)}; {conditional(columns)}"
        )
    if pdf.given and not pdf.branches():
        for place in PLACES:
            check_normalisation(pdf, place)


def check_normalisation(pdf: Pdf, place: float) -> None:
    """Refuse a conditional density whose integral is not that over what it draws, at the start of its parameters."""
    values = {p.name: p.start for p in pdf.parameters}
    values |= {o.name: o.low + place * (o.high - o.low) for o in pdf.given}
    density, integral = pdf.density(), pdf.integral()
    numerical = any(node.op is Op.INTEGRAL for node in toposort(integral))
    if len(pdf.drawn) > MAX_AXES or numerical or pdf.whole_numbers:
        return
    known: dict[Expr, Expr] = {q.symbol: const(values[q.name]) for q in pdf.parameters}
    known |= {o.expr: const(values[o.name]) for o in pdf.given}
    check = integral_over_box(substitute(density, known), pdf.drawn, ())
    adapted = adapted_to(check.args[1:], domain_of(check), (), TOLERANCE)
    formula, total = float(evaluate(integral, values)), float(adapted.totals[0])
    if adapted.error < RESOLVED and not abs(formula - total) <= WRONG * abs(total):
        where = ", ".join(f"{o.name} = {values[o.name]:.6g}" for o in pdf.given)
        raise ModelError(
            f"density '{type(pdf).__name__}': its integral must be that over {listing(pdf.drawn)} with {listing(pdf.given)}"
            f" given, {total:.6g} at {where}, got {formula:.6g}; change the integral or what is given"
        )


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
