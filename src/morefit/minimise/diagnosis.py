"""Name the event and the parameter where a likelihood has a value but no derivative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from morefit.arrays import Array, Integers
from morefit.expr import Expr
from morefit.likelihood import Likelihood, Term
from morefit.rewrite.derive import gradient
from morefit.rewrite.simplify import normalise

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
