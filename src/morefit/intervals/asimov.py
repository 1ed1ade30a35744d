"""Asimov data: a likelihood of data that are what is expected at some values, without fluctuations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.data.histogram import divide
from morefit.errors import ModelError
from morefit.expr import evaluate
from morefit.intervals.information import expected_constraints, line_edges
from morefit.likelihood import BinnedLikelihood, Likelihood, Term
from morefit.likelihood.binned import MAX_AXES
from morefit.likelihood.generate import warn_of_lost_weights
from morefit.likelihood.simultaneous import Simultaneous
from morefit.likelihood.table import TableLikelihood
from morefit.minimise.problem import as_likelihood
from morefit.model import Pdf
from morefit.model.counts import counted_in
from morefit.text.arguments import in_sentences
from morefit.toys.arguments import complete

NAME = "asimov"
SPLIT = 32  # bins in each piece of a line, the pieces being short next to values of parameters
BINS = {2: 200, 3: 50}  # along each observable, where there are several
MAX_ROWS = 200  # of what conditional densities are given, from the first to the last in order
EXACT = 1e-6  # of the integral of a conditional density


@in_sentences
def asimov(likelihood: Term | Pdf | Simultaneous, values: Any, *, data: Any = None) -> Term:
    """Return a likelihood of what is expected at values by name, or at the result of a fit, in the place of its data.

    Bins and points have their expected contents, and constraints measure their expected values. Events of one to
    three observables become a ``BinnedLikelihood`` of many bins: of one observable a few thousand, narrow next to the
    values of parameters, so that 0.1 % of the information is lost at most; of two 200 x 200, of three 50 x 50 x 50; of
    whole numbers one for each. Events of one observable whose density is an integral for each event, such as a numerical
    convolution, are spread over its range, with weights that count events.
    In the ranges of a fit, bins outside expect nothing. A model without yields expects as many events as the data have.
    A model takes its ``data``, for their number of events. Events of a conditional density, in one observable, are spread in the same way for rows of the data.

    Example: ``mf.intervals.asimov(nll, {"n_signal": 0})``
    """
    term = as_likelihood(NAME, likelihood, data)
    known = complete(term, values, "values")
    warn_of_lost_weights(NAME, term)
    return term.with_parts([expected_part(part, known) for part in term.parts])


def expected_part(part: Likelihood, values: Mapping[str, float]) -> Likelihood:
    """Return one part with what is expected of it."""
    own = {p.name: values[p.name] for p in part.all_parameters}
    constraints = expected_constraints(part, own)
    spread = expected_events_of(part, own) if part.model.given or takes_long(part) else None
    if spread is not None:
        return spread.replaced(constraints=constraints, fixed=part.fixed_names)
    binned = part if isinstance(part, TableLikelihood) else binned_part(part, own)
    return binned.asimov(own).replaced(constraints=constraints, fixed=part.fixed_names)


def binned_part(part: Likelihood, values: Mapping[str, float]) -> BinnedLikelihood:
    """Return a likelihood of events with many bins in their place, with the same number of events all over them."""
    model = part.model
    if len(model.observables) > MAX_AXES:
        raise ModelError(
            f"asimov: takes events of up to {MAX_AXES} observables; make mf.BinnedLikelihood of others, or use toys"
        )
    edges = [edges_of(part, axis, list(values.values())) for axis in range(len(model.observables))]
    shape = tuple(len(line) - 1 for line in edges)
    empty = BinnedLikelihood(model, (np.zeros(shape), *edges), backend=part.backend)
    return empty.with_columns(empty.counting(np.full(empty.events, part.data.sum_of_weights / empty.events)))


def given_rows_of(part: Likelihood) -> dict[str, Array]:
    """Return some rows of what a model is given, from the first to the last in order; nothing if it is given nothing."""
    if not part.model.given:
        return {}
    chosen = np.unique(np.linspace(0, part.events - 1, MAX_ROWS).round().astype(np.int64))
    ordered = np.lexsort([part.data[o.name] for o in part.model.given])
    return {o.name: part.data[o.name][ordered[chosen]] for o in part.model.given}


class ExpectedEvents(Likelihood):
    """A likelihood of events with weights that are the numbers of events expected there, so that errors are those of events."""

    @property
    def has_weights(self) -> bool:
        return False

    @property
    def entries(self) -> float:
        return self.data.sum_of_weights


def takes_long(part: Likelihood) -> bool:
    """Return whether a likelihood of events of one observable has an integral for each of them, which bins would double."""
    table = isinstance(part, TableLikelihood)
    return not table and len(part.model.drawn) == 1 and not counted_in(part.model) and part.slow is not None


def expected_events_of(part: Likelihood, values: Mapping[str, float]) -> ExpectedEvents | None:
    """Return events at points of a quadrature, those of a conditional density for rows of what the data are given.

    None if a density that can have bins is too narrow for these points.
    """
    model = part.model
    if len(model.drawn) > 1 or counted_in(model) or (model.given and not part.events):
        raise ModelError(
            "asimov: takes data of conditional densities in one observable that is no count; use toys for others"
        )
    (x,) = model.drawn
    rows = given_rows_of(part)
    count = len(next(iter(rows.values()))) if rows else 1
    pieces, (nodes, shares) = (
        model.region().get(x.name) or [(x.low, x.high)],
        np.polynomial.legendre.leggauss(16),
    )
    for panels in (16, 64, 256):
        edges = [np.linspace(low, high, panels + 1) for low, high in pieces]
        low, width = (np.concatenate(some) for some in ([e[:-1] for e in edges], [np.diff(e) for e in edges]))
        points = (low[:, None] + width[:, None] * (nodes + 1) / 2).ravel()
        steps = np.outer(width, shares / 2).ravel()
        columns = {x.name: np.tile(points, count)} | {n: np.repeat(r, len(points)) for n, r in rows.items()}
        probabilities = model.pdf(columns, values) * np.tile(steps, count)
        off = np.abs(probabilities.reshape(count, -1).sum(axis=1) - 1).max()
        if off < EXACT:
            break
    else:
        if not rows:
            return None
        raise ModelError(
            f"asimov: the density of a row is too narrow, its integral is off by {off:.1g}; use toys"
        )
    total = model.expected_events()
    events = part.events if total is None else float(evaluate(total, values))
    some = probabilities > 0
    data = Dataset({n: c[some] for n, c in columns.items()}, weights=(events / count * probabilities)[some])
    return ExpectedEvents(model, data, backend=part.backend)


def edges_of(part: Likelihood, axis: int, values: list[float]) -> Array:
    """Return the edges of bins along one observable, those of the ranges of a fit among them."""
    x, count = part.model.observables[axis], len(part.model.observables)
    ends = [end for low_high in part.model.region().get(x.name, ()) for end in low_high]
    if x.name in counted_in(part.model):
        return np.union1d(np.arange(x.low, x.high + 1), ends)  # a bin for each number, which loses nothing
    if count > 1:
        return np.union1d(np.linspace(x.low, x.high, BINS[count] + 1), ends)
    return divide(line_edges(x, [*values, *ends]), SPLIT)
