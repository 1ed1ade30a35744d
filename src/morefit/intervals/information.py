"""The expected Fisher information of a model: how well a number of events measures its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError, OptionError
from morefit.expr import evaluate
from morefit.expr.quadrature import Axis, Boxes, Domain, refine
from morefit.integrals.boxes import SharedBoxes
from morefit.likelihood import Constraint, Likelihood, Term
from morefit.likelihood.sums import check_constrained, triangle
from morefit.likelihood.table import TableLikelihood
from morefit.minimise.check import invert
from morefit.model import Observable, Pdf
from morefit.model.counts import counted_in
from morefit.model.parts import check_known
from morefit.model.region import boxes
from morefit.pipeline import Columns, compile_values
from morefit.records.fields import floats, words
from morefit.records.named_arrays import FrozenByName, by_names
from morefit.targets.base import Backend, Events
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences
from morefit.text.rounding import round_pdg
from morefit.text.tables import Column, text_table
from morefit.toys.arguments import complete, template_of
from morefit.validate import as_number, finite_number

MAX_DIMENSIONS = 4  # of a factor
POINTS = 16  # nodes of a box in each dimension
MAX_NODES = 1 << 25  # evaluated in all
AT_ONCE = 1 << 17  # nodes
CLOSEST = 13  # quarterings: on a line, peaks at the values of parameters are looked for down to 4**-12 of it
SAFETY = 0.1  # of the tolerance, as changes of many boxes add up
NEGLIGIBLE = 1e-200  # a density below has no derivatives worth dividing by it


@dataclass(frozen=True, eq=False, repr=False)
class FisherInformation(FrozenByName):
    """The expected information about P floating parameters, events * E[dlnP/da dlnP/db]; extended with its yields.

    ``accuracy`` is how far the integral may be off, in units of the square roots of the diagonal, and ``tolerance``
    how far it was allowed to be.
    """

    names: tuple[str, ...]
    values: Mapping[str, float]  # of all parameters, fixed ones included
    events: float
    matrix: Array  # (P, P)
    accuracy: float
    tolerance: float

    converted = {"names": words, "values": floats}
    named = {"matrix": ("names", 2)}

    @property
    def valid(self) -> bool:
        """Whether the integral is as accurate as promised and the information can be inverted."""
        return self.accuracy <= self.tolerance and bool(np.isfinite(self.covariance).all())

    @cached_property
    def covariance(self) -> Array:
        """The inverse of the matrix: no unbiased estimate has a smaller covariance; nan if there is none."""
        return by_names(invert(np.asarray(self.matrix)), self.names, 2)

    @property
    def errors(self) -> Mapping[str, float]:
        """The expected errors by name."""
        return floats(dict(zip(self.names, np.sqrt(np.diag(self.covariance)), strict=True)))

    def __str__(self) -> str:
        cells = [round_pdg(self.values[n], self.errors[n])[:2] for n in self.names]
        value, error = zip(*cells, strict=True)
        columns = [
            Column("parameter", self.names, numeric=False),
            Column("value", value),
            Column("error", error),
        ]
        head = f"expected information of {self.events:.6g} events, accurate to {self.accuracy:.1g}"
        return "\n".join([head, *(f"  {line}" for line in self._complaints()), "", text_table(columns)])

    def _complaints(self) -> Iterator[str]:
        if not self.accuracy <= self.tolerance:
            yield f"NOT CONVERGED: the integral should be accurate to {self.tolerance:g}"
        if not np.isfinite(self.covariance).all():
            yield "NOT POSITIVE DEFINITE: these parameters cannot be told apart"


@in_sentences
def fisher_information(
    model: Pdf | Term,
    events: float | None = None,
    *,
    truth: Any = None,
    constraints: Sequence[Any] | Any = (),
    tolerance: float = 1e-8,
    backend: str | Backend = "auto",
) -> FisherInformation:
    """Return the expected information of a number of events about the floating parameters of a model.

    An extended model predicts the number of events, so ``events`` must be None. ``truth`` are the true values, the
    start values unless given. It is integrated over boxes by compiled sums over their nodes; boxes are cut until the
    ``tolerance`` is met, in units of the square roots of the diagonal, or too many nodes are spent.

    Of a likelihood it is the information of its parts, each with as many events as its data or as it expects, and of
    its constraints.

    Example: ``mf.fisher_information(model).errors``
    """
    if not (as_number(tolerance) or 0.0) > 0:
        raise OptionError(f"fisher information: tolerance must be positive, got {tolerance!r}")
    term = template_of("fisher information", model, constraints)
    check_constrained(term.parts)
    values = complete(term, truth, "truth")
    names = tuple(p.name for p in term.parameters)
    if not names:
        raise ModelError("fisher information: the model has no floating parameter; free one")
    if events is not None and (len(term.parts) > 1 or term.events):
        raise ModelError(
            "fisher information: a likelihood has its numbers of events already; leave events out"
        )
    place, total = choose_backend(backend), 0.0
    matrix, accuracy = np.zeros((len(names), len(names))), 0.0
    for part in term.parts:
        check_known(part.model, "the Fisher information")
        own = {p.name: values[p.name] for p in part.all_parameters}
        if isinstance(part, TableLikelihood):
            expected = part.asimov(own)
            total += expected.entries
            rows = [names.index(p.name) for p in part.parameters]
            matrix[np.ix_(rows, rows)] += table_information(expected, own)
            continue
        seen = None if part.model.expected_events() is not None else part.events or None
        count = number_of_events(part.model, seen if events is None else events, own)
        total += count
        for factor in part.model.factors():
            rows = [names.index(p.name) for p in factor.parameters if p.name in names]
            if rows:  # the scores of factors are independent, so their informations add up
                information, off = integrate(Integrand(factor, own, place), tolerance)
                matrix[np.ix_(rows, rows)] += count * information
                accuracy = max(accuracy, off)
        if part.constraints:
            rows = [names.index(p.name) for p in part.parameters]
            matrix[np.ix_(rows, rows)] += constraint_information(part, own)
    return FisherInformation(
        names=names, values=values, events=total, matrix=matrix, accuracy=accuracy, tolerance=tolerance
    )


def table_information(part: TableLikelihood, values: Mapping[str, float]) -> Array:
    """Return the second derivatives of the likelihood of bins or points that have what is expected of them."""
    expected = part.replaced(constraints=expected_constraints(part, values))
    return np.asarray(expected.hessian({p.name: values[p.name] for p in part.all_parameters}), np.float64)


def expected_constraints(part: Likelihood, values: Mapping[str, float]) -> tuple[Constraint, ...]:
    """Return constraints that measure what is expected of them."""
    return tuple(c.measuring(c.expected(values)) for c in part.constraints)


def constraint_information(part: Likelihood, values: Mapping[str, float]) -> Array:
    """Return the second derivatives of constraints that measure what is expected of them."""
    expected = part.replaced(constraints=expected_constraints(part, values))
    full = np.array([[values[p.name] for p in part.all_parameters]])
    return np.asarray(expected.hessian_of(expected.constraint_terms, full)[0], np.float64)


def number_of_events(model: Pdf, events: float | None, values: Mapping[str, float]) -> float:
    """Return how many events a model expects, or the number that is passed, as it has to be."""
    if model.given:
        names = ", ".join(f"'{o.name}'" for o in model.given)
        raise ModelError(
            f"fisher information: needs the density of {names}, which the model is given; multiply by it"
        )
    expected = model.expected_events()
    if expected is None:
        if events is None:
            raise ModelError(
                "fisher information: events is missing; the model predicts no number, as one with yields would"
            )
        count = finite_number("fisher information: the number of events", events)
    elif events is not None:
        raise ModelError(
            f"fisher information: the model predicts the number of events, got events={events}; change its yields"
        )
    else:
        count = float(evaluate(expected, values))
    if not (count > 0 and isfinite(count)):
        raise ModelError(f"fisher information: the number of events must be positive, got {count}")
    return count


class Integrand:
    """What is integrated: the density, and the information of one event, as compiled sums over nodes."""

    def __init__(self, model: Pdf, values: Mapping[str, float], backend: Backend) -> None:
        self.values = values
        self.observables, self.region = model.observables, model.region()
        if len(self.observables) > MAX_DIMENSIONS:
            raise ModelError(
                f"fisher information: integrals are done in up to {MAX_DIMENSIONS} dimensions,"
                f" got {len(self.observables)}; write the model as a product"
            )
        self.full = np.array([[values[p.name] for p in model.parameters]])
        self.count = sum(not p.fixed for p in model.parameters)
        self.spent = 0
        self.shared = SharedBoxes()
        whole = counted_in(model)
        event = {
            o.name: [o.low + 0.5 if o.name in whole else 0.5 * (o.low + o.high)] for o in self.observables
        }
        likelihood = Likelihood(model, event, weights=[1.0], backend=backend, precompute="none")
        leaves = tuple(p.symbol for p in likelihood.all_parameters)
        self.density = compile_values((model.normalised(),), leaves, likelihood.settings)
        self.squares = likelihood.compile_request(likelihood.request(0, fisher=True))

    def __call__(self, boxes: Boxes) -> Array:
        """Return a row for each box: the integral of the density, and the lower triangle of the information."""
        block = max(1, AT_ONCE // boxes.nodes_each)
        cuts = [slice(k, k + block) for k in range(0, len(boxes), block)]
        return np.concatenate([self.sum_block(boxes.replaced(boxes.low[s], boxes.high[s])) for s in cuts])

    def sum_block(self, boxes: Boxes) -> Array:
        nodes = boxes.nodes()
        self.spent += nodes.weights.size
        everywhere = Events.all_sets(nodes.weights.size)
        density = self.density.bind(Columns(nodes.columns), everywhere, boxes=self.shared)(self.full)[0, 0]
        if not np.all(density >= 0):
            raise ModelError(
                "fisher information: the density is negative or not a number at these values; change them"
            )
        keep, terms = density > NEGLIGIBLE, nodes.weights * density
        positive = Columns({name: column[keep] for name, column in nodes.columns.items()})
        slices = Events.slices(keep.reshape(len(boxes), -1).sum(axis=1))
        squares = self.squares.bind(positive, slices, np.sqrt(terms[keep]), self.shared)
        information = squares(np.tile(self.full, (len(boxes), 1)))[:, :-1]  # the weights are squared there
        return np.column_stack([terms.reshape(len(boxes), -1).sum(axis=1), information])

    def boxes(self) -> Boxes:
        """Return boxes to begin with: those of the region, or a line cut closely where its peaks may be."""
        low, high = (np.array([getattr(o, end) for o in self.observables]) for end in ("low", "high"))
        if len(self.observables) > 1:
            within = [[o.within(box) for o in self.observables] for box in boxes(self.region)]
            ends = [np.array([[getattr(o, end) for o in box] for box in within]) for end in ("low", "high")]
        else:
            edges = line_edges(self.observables[0], list(self.values.values()))
            steps = [end for ranges in self.region.values() for ends in ranges for end in ends]
            edges = np.unique([*edges, *steps])
            ends = [edges[:-1, None], edges[1:, None]]
        domain = Domain(tuple(Axis(o.name, (o.low, o.high)) for o in self.observables))
        inside = [(each - low) / (high - low) for each in ends]
        return Boxes(domain, inside[0], inside[1], points=POINTS)


def line_edges(x: Observable, values: Sequence[float]) -> Array:
    """Cut a line into eight, and ever closer next to the values of parameters."""
    width = x.high - x.low
    steps = np.outer([-1, 1], width * 0.25 ** np.arange(1, CLOSEST)).ravel()
    inside = [v for v in values if x.low < v < x.high]
    near = np.add.outer(inside, [0.0, *steps]).ravel()
    return np.unique([*np.linspace(x.low, x.high, 9), *near[(near > x.low) & (near < x.high)]])


def integrate(integrand: Integrand, tolerance: float) -> tuple[Array, float]:
    """Return the information of one event, and how far it is off; cut boxes until that is little.

    A box with a narrow peak between its nodes looks finished, but then the density does not integrate to one, and
    all boxes are cut.
    """
    boxes, level = integrand.boxes(), 0
    while True:
        left = (MAX_NODES - integrand.spent) // boxes.nodes_each
        sizes = scales(integrand(boxes).sum(axis=0), integrand.count)
        adapted = refine(integrand, boxes, SAFETY * tolerance, left, sizes)
        accuracy = max(adapted.error, float(abs(adapted.totals[0] - 1)))
        if accuracy <= tolerance or not isfinite(accuracy) or integrand.spent > MAX_NODES:
            return triangle(adapted.totals[None, 1:], integrand.count)[0], accuracy
        axis = level % len(integrand.observables)
        boxes, level = adapted.boxes.halved(np.full(len(adapted.boxes), axis)), level + 1


def scales(total: Array, count: int) -> Array:
    """Return what a change of each output is measured by: one, or the square roots of the diagonal."""
    i, j = np.tril_indices(count)
    diagonal = total[1:][i == j]
    sizes = np.sqrt(diagonal[i] * diagonal[j])
    return np.concatenate([[1.0], np.where(sizes > 0, sizes, 1.0)])
