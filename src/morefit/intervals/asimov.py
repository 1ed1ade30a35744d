"""Asimov data: a likelihood of data that are what is expected at some values, without fluctuations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.data.histogram import divide
from morefit.errors import ModelError
from morefit.intervals.information import expected_constraints, line_edges
from morefit.likelihood import BinnedLikelihood, Likelihood, Term
from morefit.likelihood.binned import MAX_AXES
from morefit.likelihood.table import TableLikelihood
from morefit.minimise.problem import as_likelihood
from morefit.model.counts import counted_in
from morefit.toys.arguments import complete

NAME = "asimov"
SPLIT = 32  # bins in each piece of a line, the pieces being short next to values of parameters
BINS = {2: 200, 3: 50}  # along each observable, where there are several


def asimov(likelihood: Term, values: Any) -> Term:
    """Return a likelihood of what is expected at values by name, or at the result of a fit, in the place of its data.

    Bins and points have their expected contents, and constraints measure their expected values. Events of one to
    three observables become a ``BinnedLikelihood`` of many bins: of one observable a few thousand, narrow next to the
    values of parameters, so that 0.1 % of the information is lost at most; of two 200 x 200, of three 50 x 50 x 50.
    In the ranges of a fit, bins outside expect nothing. A model without yields expects as many events as the data have.

    Example: ``mf.intervals.asimov(nll, {"n_signal": 0})``
    """
    term = as_likelihood(NAME, likelihood)
    known = complete(term, values, "values")
    return term.with_parts([expected_part(part, known) for part in term.parts])


def expected_part(part: Likelihood, values: Mapping[str, float]) -> Likelihood:
    """Return one part with what is expected of it."""
    own = {p.name: values[p.name] for p in part.all_parameters}
    binned = part if isinstance(part, TableLikelihood) else binned_part(part, own)
    return binned.asimov(own).replaced(constraints=expected_constraints(part, own), fixed=part.fixed_names)


def binned_part(part: Likelihood, values: Mapping[str, float]) -> BinnedLikelihood:
    """Return a likelihood of events with many bins in their place, with the same number of events all over them."""
    model = part.model
    if model.given or counted_in(model) or len(model.observables) > MAX_AXES:
        raise ModelError(
            f"asimov: takes events of up to {MAX_AXES} observables, of densities that are given nothing and count nothing; make mf.BinnedLikelihood of others, or use toys"
        )
    edges = [edges_of(part, axis, list(values.values())) for axis in range(len(model.observables))]
    shape = tuple(len(line) - 1 for line in edges)
    empty = BinnedLikelihood(model, (np.zeros(shape), *edges), backend=part.backend)
    return empty.with_columns(empty.counting(np.full(empty.events, part.data.sum_of_weights / empty.events)))


def edges_of(part: Likelihood, axis: int, values: list[float]) -> Array:
    """Return the edges of bins along one observable, those of the ranges of a fit among them."""
    x, count = part.model.observables[axis], len(part.model.observables)
    ends = [end for low_high in part.model.region().get(x.name, ()) for end in low_high]
    if count > 1:
        return np.union1d(np.linspace(x.low, x.high, BINS[count] + 1), ends)
    return divide(line_edges(x, [*values, *ends]), SPLIT)
