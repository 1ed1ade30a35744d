"""Weights that are a formula of observables: what it may contain, and its numbers for the columns of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data.columns import Draft, outside_ranges, read_source
from morefit.errors import DataError
from morefit.expr import Expr, Op, Quantity, evaluate, known_expr, symbols
from morefit.model.observable import Observable

if TYPE_CHECKING:
    from morefit.data.io.table import Ranged

Weights = ArrayLike | str | Quantity | None  # numbers, the name of a column, a formula, or none


def weight_formula(weights: object) -> Expr | None:
    """Return weights that are a formula of observables; None for all others."""
    if weights is None or not isinstance(weights, Quantity):
        return None
    formula = known_expr(weights)
    assert formula is not None
    if names := [f"'{symbol.name}'" for symbol in symbols(Op.SCALAR, formula)]:
        raise DataError(
            f"dataset: weights: must be a formula of observables alone, got the parameters {', '.join(names)}; write their"
            " values, or use the formula in the model (mf.Efficiency)"
        )
    if not observables_of(formula):
        raise DataError(
            f"dataset: weights: must be a formula of observables, got {formula!r:.60}, which has none; a factor that all"
            " events have changes nothing"
        )
    return formula


def observables_of(formula: Expr | None) -> tuple[Observable, ...]:
    """Return the observables that a formula of weights depends on."""
    known = () if formula is None else symbols(Op.COLUMN, formula)
    return tuple(o for o in known if isinstance(o, Observable))


def read_events(
    source: object, ranges: Sequence[Ranged] | None, weights: Weights, *, copies: bool = True
) -> tuple[Draft, list[Ranged]]:
    """Read columns and weights, with a list of all problems; return also the observables that only weights depend on."""
    formula = weight_formula(weights)
    if formula is None:
        return read_source(source, ranges, cast("ArrayLike | str | None", weights), copies=copies), []
    names = {o.name for o in ranges or ()}
    others: list[Ranged] = [o for o in observables_of(formula) if o.name not in names]
    draft = read_source(source, None if ranges is None else [*ranges, *others], None, copies=copies)
    if ranges is None:
        draft.problems += [f"weights: no column '{o.name}'" for o in others if o.name not in draft.columns]
    if not draft.problems:
        draft.weights = values_of(formula, draft.columns)
    return draft, [] if ranges is None else others


def bad_observables(columns: Mapping[str, Array], weights: Weights) -> list[str]:
    """Return messages for the observables of a formula of weights with events outside of their ranges."""
    return list(outside_ranges(columns, observables_of(weight_formula(weights))))


def values_of(formula: Expr, columns: Mapping[str, Array]) -> Array:
    """Return the weight of each event."""
    count = len(next(iter(columns.values())))
    numbers = evaluate(formula, {o.name: columns[o.name] for o in observables_of(formula)})
    return np.ascontiguousarray(np.broadcast_to(np.asarray(numbers, np.float64), (count,)))
