"""What a likelihood sums over its events and adds once, in one place; and how sums become value and derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from morefit.arrays import Array, read_only
from morefit.errors import ModelError
from morefit.expr import ZERO, Expr, Op, add_all, scalar, symbols
from morefit.kernel.sums import Request, set_terms
from morefit.likelihood.constraint import Constraint
from morefit.likelihood.evaluation import Evaluation
from morefit.likelihood.parameters import one_of_each, symbols_of
from morefit.likelihood.shared_form import OwnForm
from morefit.model import Parameter, Pdf
from morefit.model.arguments import listing
from morefit.model.parameter import blinded_in
from morefit.text.suggest import suggest

if TYPE_CHECKING:
    from morefit.likelihood.unbinned import Likelihood


@lru_cache(maxsize=256)  # fits by products of scores ask at every step
def second_derivatives(term: Expr, floating: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the second derivatives of a term without events (lower triangle), such as that of a constraint."""
    return tuple(set_terms(Request(ZERO, floating, 2, per_set=term))[1 + len(floating) :])


@lru_cache(maxsize=256)  # every fit asks
def request_of(
    model: Pdf,
    floating: tuple[Parameter, ...],
    order: int,
    *,
    constraints: tuple[Expr, ...] = (),
    weighted: bool,
    careful: bool = False,
    fisher: bool = False,
    form: OwnForm | None = None,
) -> Request:
    """Return what is summed over events for a likelihood, and what is added once: expected events and constraints.

    The squared scores (``fisher``) have the information of constraints added; the expected number does not vary. A ``form``
    stands for the formulas of the model.
    """
    formulas = (model.summed, model.expected_events()) if form is None else (form.summed, form.expected)
    expected = None if fisher else formulas[1]
    known = (*([] if expected is None else [expected]), *constraints)
    extra = list(known) if fisher else [-c for c in known]
    return Request(
        formulas[0],
        symbols_of(floating),
        order,
        weighted=weighted,
        careful=careful,
        fisher=fisher,
        per_set=ZERO if not extra else extra[0] if len(extra) == 1 else add_all(*extra),
    )


class Constrained(NamedTuple):
    """What constraints add to a model."""

    measured: Array
    symbols: tuple[Expr, ...]  # that stand for what was measured
    terms: tuple[Expr, ...]
    parameters: tuple[Parameter, ...]  # of the model, and those that stand only in constraints


@lru_cache(maxsize=256)  # every fit asks, and there may be hundreds of terms
def constrained(parameters: tuple[Parameter, ...], constraints: tuple[Constraint, ...]) -> Constrained:
    """Return what constraints add to a model with some parameters."""
    measured = np.array([value for c in constraints for value in c.measured], np.float64)
    stand_ins = tuple(scalar(f"measured value {k}") for k in range(len(measured)))
    terms = tuple(terms_of(constraints, stand_ins))
    return Constrained(read_only(measured), stand_ins, terms, with_constrained(parameters, terms))


def terms_of(constraints: Sequence[Constraint], measured: Sequence[Expr]) -> Iterator[Expr]:
    """Return what each constraint adds, its measured values being the next of some symbols."""
    first = 0
    for constraint in constraints:
        last = first + len(constraint.measured)
        yield constraint.nll(measured[first:last])
        first = last


def parameters_in(term: Expr) -> list[Parameter]:
    """Return the parameters of a constraint's term, without its measured values."""
    return [s for s in symbols(Op.SCALAR, term) if isinstance(s, Parameter)]


def check_constrained(parts: Sequence[Likelihood], others: Iterable[Parameter] = ()) -> None:
    """Refuse constraints that have no effect: no model has their parameters, nor does a constraint that has one of a model's.

    ``others`` are parameters of models that take part elsewhere, such as those of other choices.
    """
    if all(len(part.all_parameters) == len(part.model.parameters) for part in parts):
        return
    known = {p.name for part in parts for p in part.model.parameters} | {p.name for p in others}
    pairs = [pair for part in parts for pair in zip(part.constraints, part.constraint_terms, strict=True)]
    each = [(c, {p.name for p in parameters_in(term)}) for c, term in pairs]
    waiting = [(c, names) for c, names in each if names]
    while attached := [names for _, names in waiting if names & known]:
        known.update(*attached)
        waiting = [(c, names) for c, names in waiting if not names & known]
    if waiting:
        alone, names = waiting[0]
        raise ModelError(
            f"{alone!r}: no model has {', '.join(map(repr, sorted(names)))}, so that the fit does not change; leave it out, or use"
            f" {'it' if len(names) == 1 else 'them'} in a model; {suggest(min(names), sorted(known))}"
        )


def with_constrained(parameters: tuple[Parameter, ...], terms: Sequence[Expr]) -> tuple[Parameter, ...]:
    """Add the parameters that stand only in constraints."""
    if blinded := [p for term in terms for p in blinded_in(term)]:
        raise ModelError(
            f"constraint: would show the true value of the blinded {listing(blinded)}; leave it out, or fit without blind="
        )
    return (
        one_of_each([*parameters, *(p for term in terms for p in parameters_in(term))])
        if terms
        else parameters
    )


def unpack(out: Array, count: int, order: int) -> Evaluation:
    """Read value, gradient and Hessian out of rows of sums, and turn their sign."""
    sets = len(out)
    gradient = -out[:, 1 : 1 + count] if order > 0 else np.empty((sets, 0))
    hessian = triangle(-out[:, 1 + count : -1], count) if order > 1 else np.empty((sets, 0, 0))
    return Evaluation(-out[:, 0], gradient, hessian, out[:, -1].astype(np.int64))


def triangle(rows: Array, count: int) -> Array:
    """Fill (B, P, P) from lower triangles (B, P (P + 1) / 2)."""
    full = np.empty((len(rows), count, count))
    i, j = lower_triangle(count)
    full[:, i, j] = rows
    full[:, j, i] = rows
    return full


lower_triangle = lru_cache(maxsize=256)(np.tril_indices)  # slower to make than a small Hessian is to compute
