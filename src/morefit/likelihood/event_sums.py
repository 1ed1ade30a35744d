"""The compiled sums of a likelihood over its events, or over nodes in their place, and what constraints add to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import ClassVar

import numpy as np

from morefit.arrays import Array, Integers, all_finite
from morefit.data.dataset import Dataset
from morefit.expr import Expr, evaluate
from morefit.integrals.boxes import SharedBoxes
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.ir import Precision
from morefit.kernel.sums import Request
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood.accuracy import check_smooth, is_numerical, node_sums
from morefit.likelihood.base import Term
from morefit.likelihood.coarse import NLL_ERROR
from morefit.likelihood.constraint import Constraint
from morefit.likelihood.evaluation import Evaluation, PartData
from morefit.likelihood.event_nodes import EventNodes, FollowedNodes, requests_apart
from morefit.likelihood.parameters import symbols_of
from morefit.likelihood.shared_form import OwnForm
from morefit.likelihood.slow_terms import SlowTerms
from morefit.likelihood.smooth_sums import smoothed
from morefit.likelihood.sums import constrained, request_of, second_derivatives, triangle, unpack
from morefit.model import Pdf
from morefit.model.integrate.smooth import SmoothSum
from morefit.model.opaque import opaque_names
from morefit.pipeline import Bound, Columns, Compiled, Settings, compile_renamed, compile_sums, compile_values
from morefit.targets.base import Backend, Events

MIN_EVENTS = 1000  # with fewer, the accuracy of integrals is that of this many,
BEST_ERROR = 1e-10  # the smallest relative error of an integral that is requested
NO_NAMES: Mapping[Expr, Expr] = {}

Sums = Callable[[Array], Array]  # of rows of parameters


class EventSums(Term):
    """A likelihood as sums over the events of one dataset: of a model, with constraints."""

    renamed: EventSums | None  # the same before a sum of likelihoods chose the names in its kernels
    has_kernels: ClassVar[bool] = True  # compiled ones sum over its events
    has_scores: ClassVar[bool] = True  # squared ones, of single events, are the covariance of its gradient

    def set_up(
        self,
        model: Pdf,
        data: Dataset,
        constraints: tuple[Constraint, ...],
        settings: Settings,
        fixed: frozenset[str] = frozenset(),
        names: Mapping[Expr, Expr] = NO_NAMES,
        weight: Expr | None = None,
        form: OwnForm | None = None,
    ) -> None:
        """Set what the likelihood is made of; what has been checked is not checked again.

        ``names`` are what parameters are called in kernels, which likelihoods with alike formulas then share. ``weight``
        is that of an event as a formula: the weights of the data, and those of toys. ``form`` stands for the formulas of the
        model in kernels that others with other numbers share.
        """
        self.form = form
        self.weight, self.renamed = weight, None
        self.model, self.data, self.constraints, self.settings = model, data, constraints, settings
        self.fixed_names, self.kernel_names, self.checked = fixed, names, False
        self.measured, self.measured_symbols, self.constraint_terms, self.all_parameters = constrained(
            model.parameters, constraints
        )
        self.bound: dict[tuple[int, bool], tuple[tuple[EventNodes | None, ...], Sums]] = {}
        self.compiled: dict[tuple[int, bool], Compiled] = {}

    @property
    def origin(self) -> EventSums:
        """The likelihood as the user made it."""
        return self if self.renamed is None else self.renamed

    @cached_property
    def columns(self) -> Columns:
        """The columns of the data, and what has been computed from them."""
        return Columns(self.data.columns)

    @property
    def events(self) -> int:
        return len(self.data)

    @property
    def backend(self) -> Backend:
        return self.settings.backend

    @cached_property
    def boxes(self) -> SharedBoxes:
        """The boxes of numerical integrals, shared by all evaluations."""
        return self.new_boxes()

    def new_boxes(self) -> SharedBoxes:
        """Return boxes for numerical integrals, as accurate as all events together need."""
        allowed = NLL_ERROR / max(self.entries, MIN_EVENTS)
        return SharedBoxes(max(allowed, BEST_ERROR))

    # --------------------------------------------------------------------- what is summed

    def request(
        self, order: int, *, weighted: bool | None = None, careful: bool = False, fisher: bool = False
    ) -> Request:
        """Return what to sum over events, with derivatives by all parameters that float.

        Squared scores (``fisher``) are those of events alone.
        """
        return request_of(
            self.model,
            self.parameters,
            order,
            constraints=() if fisher else self.constraint_terms,
            weighted=self.data.weighted if weighted is None else weighted,
            careful=careful,
            fisher=fisher,
            form=self.form,
        )

    @property
    def kernel_symbols(self) -> tuple[Expr, ...]:
        """What sums depend on: all parameters, what constraints measured, and numbers of a form."""
        return (*self.all_symbols, *self.measured_symbols, *(self.form.symbols if self.form else ()))

    def compile_request(self, request: Request) -> Compiled:
        """Compile sums, to be bound to any events."""
        own = self.kernel_symbols
        if not self.kernel_names:
            return compile_sums(request, own, self.settings)
        return compile_renamed(request, own, tuple(self.kernel_names.get(s, s) for s in own), self.settings)

    def sums(self, order: int) -> Compiled:
        """Return the sums of the data up to an order of derivatives, compiled."""
        key = (order, False)
        if key not in self.compiled:
            self.check_derivatives(order)
            weighted = self.data.weighted or self.on_nodes is not None
            self.compiled[key] = self.compile_request(self.request(order, weighted=weighted))
        return self.compiled[key]

    @property
    def fits_whole(self) -> bool:
        """Whether compiled code alone can sum over its data."""
        return self.has_kernels

    def whole_sums(
        self, weighted: bool | None = None, smooth: Sequence[SmoothSum] = ()
    ) -> Compiled | CountsTable:
        """Return the sums of a whole fit, of events with or without weights; by default those of the data.

        Polynomials may stand for integrals for each event that are smooth.
        """
        if weighted is None:
            return self.sums(2)
        return self.compile_request(smoothed(self.request(2, weighted=weighted), smooth))

    def score_sums(self, weighted: bool, smooth: Sequence[SmoothSum] = ()) -> Compiled:
        """Return the sums of squared scores, with or without weights, and the information of constraints, compiled."""
        own = request_of(
            self.model, self.parameters, 0, constraints=self.constraint_terms, weighted=weighted, fisher=True
        )
        return self.compile_request(smoothed(own, smooth))

    def check_derivatives(self, order: int) -> None:
        """Refuse a model whose numerical integrals have no derivatives that can be computed, if they are wanted."""
        if order > 0 and not self.checked and is_numerical(self.model):
            check_smooth(self.model, {p.name: p.start for p in self.all_parameters})
        self.checked |= order > 0

    @cached_property
    def slow(self) -> SlowTerms | None:
        """The terms of its log density that have integrals for each event, which may be computed at fewer points."""
        if not self.has_kernels or not node_sums(self.model):
            return None
        able = self.data.in_memory and self.settings.precision is Precision.DOUBLE
        if not able or opaque_names(self.model):
            return None
        return SlowTerms(
            model=self.model,
            data=self.data,
            settings=self.settings,
            parameters=self.all_parameters,
            boxes=self.boxes,
        )

    @property
    def on_nodes(self) -> FollowedNodes | None:
        """The nodes in the place of the events of the only observable, if its log density takes long."""
        return None if self.slow is None else self.slow.on_nodes

    @property
    def apart(self) -> tuple[tuple[Expr, FollowedNodes], ...]:
        """Terms that take long and depend on one of several observables, each with nodes in its place."""
        return () if self.slow is None else self.slow.apart

    def program(
        self, order: int, careful: bool = False, fisher: bool = False, full: Array | None = None
    ) -> Sums:
        """Return the compiled sums bound to the data, compiling them when they are first used.

        They are over nodes in the place of events, where the log density takes long, that hold at parameters ``full``.
        """
        key = (3 if fisher else order, careful)
        nodes: tuple[EventNodes | None, ...] = (None,)
        if not (careful or fisher):
            follow = [nodes for _, nodes in self.apart] if self.apart else [self.on_nodes]
            nodes = tuple(None if one is None else one.at(full) for one in follow)
        if key not in self.bound or not all(map(is_, self.bound[key][0], nodes)):
            self.bound[key] = nodes, self.bind_order(key, order, nodes, fisher)
        return self.bound[key][1]

    def bind_order(
        self, key: tuple[int, bool], order: int, nodes: tuple[EventNodes | None, ...], fisher: bool
    ) -> Sums:
        """Bind the sums of an order; those of terms apart to their nodes, or all to events if there are none."""
        _, careful = key
        if careful or fisher:
            self.compiled[key] = self.compile_request(self.request(order, careful=careful, fisher=fisher))
            return self.bind_sums(self.compiled[key], None, self.boxes)
        if not self.apart:
            return self.bind_sums(self.sums(order), nodes[0], self.boxes)
        known = [one for one in nodes if one is not None]
        if len(known) < len(nodes):
            return self.bind_sums(self.sums(order), None, self.boxes)
        return self.bind_apart(order, known, self.boxes)

    def bind_apart(self, order: int, nodes: Sequence[EventNodes], boxes: SharedBoxes) -> Sums:
        """Bind sums of the terms apart to nodes, and those of all others to events."""
        self.check_derivatives(order)
        requests = requests_apart(self.request(order), self.apart)
        places = (None, *nodes)
        bound = [
            self.bind_sums(self.compile_request(r), n, boxes) for r, n in zip(requests, places, strict=True)
        ]
        return lambda full: np.sum([one(full) for one in bound], axis=0)

    def bind_sums(self, compiled: Compiled, nodes: EventNodes | None, boxes: SharedBoxes) -> Bound:
        """Bind sums to the events, or to nodes in their place."""
        if nodes is not None:
            events = Events.all_sets(len(nodes.points))
            return compiled.bind(nodes.columns, events, nodes.weights, boxes)
        weights = self.data.weights
        if weights is None and any(wanted is WEIGHT for wanted in compiled.columns):
            weights = np.ones(self.events)
        return compiled.bind(self.columns, Events.all_sets(self.events), weights, boxes)

    # --------------------------------------------------------------------- evaluation

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        complete = self.with_measured(full)
        out = self.program(order, full=full)(complete)
        if not all_finite(out) or out[:, -1].any():
            wrong = ~np.isfinite(out).all(axis=1) | (out[:, -1] > 0)
            out[wrong] = self.program(order, careful=True)(complete[wrong])
        return unpack(out, len(self.parameters), order)

    def evaluate_many(
        self, data: Sequence[PartData], sets: Integers, full: Array, order: int = 2
    ) -> Evaluation:
        (own,) = data
        request = self.request(order, weighted=own.weights is not None)
        requests = requests_apart(request, self.apart) if own.apart else [request]
        rows = self.with_measured(full, own.rows(sets))
        pairs = zip((own, *own.apart), requests, strict=True)
        each = [d.bind(self.compile_request(r), sets)(rows) for d, r in pairs]
        out = np.sum(each, axis=0) if own.apart else each[0]
        if (lost := ~np.isfinite(out).all(axis=1) & own.empty(sets)).any():  # no events times log(0)
            careful = self.compile_request(replace(request, careful=True))
            out[lost] = own.bind(careful, sets[lost])(rows[lost])
        return unpack(out, len(self.parameters), order)

    def many_scores(self, data: Sequence[PartData], sets: Integers, full: Array) -> Array:
        (own,) = data
        compiled = self.score_sums(own.weights is not None)
        out = own.bind(compiled, sets)(self.with_measured(full, own.rows(sets)))
        return triangle(out[:, :-1], len(self.parameters))

    def evaluate_again(self, full: Array) -> Evaluation:
        boxes, bound = self.boxes.with_more_points(), None
        if self.apart and all(follow.at(full) is not None for _, follow in self.apart):
            bound = self.bind_apart(2, [follow.finer() for _, follow in self.apart], boxes)
        if bound is None:
            follow = self.on_nodes
            nodes = follow.finer() if follow is not None and follow.at(full) is not None else None
            bound = self.bind_sums(self.sums(2), nodes, boxes)
        return unpack(bound(self.with_measured(full)), len(self.parameters), 2)

    def fisher_sums(self, full: Array) -> Array:
        """Return the sums of w**2 dlnP/da dlnP/db over events for each set of all parameters."""
        return triangle(self.program(0, fisher=True)(self.with_measured(full))[:, :-1], len(self.parameters))

    def squared_scores(self, full: Array) -> Array:
        """Return the covariance of the gradient: sums of w**2 dlnP dlnP over events, and what constraints add.

        A constraint is a measurement of its own with a weight of one: its gradient varies by its information, which is
        its Hessian. The number of events varies as well when it is part of the likelihood, and the sum over a Poisson
        number of events of independent terms has this covariance; the expected number itself does not vary.
        """
        return self.fisher_sums(full) + self.hessian_of(self.constraint_terms, full)

    def event_values(self, full: Array, *wanted: Expr) -> Array:
        """Return expressions for each set and event, (B, expressions, events)."""
        compiled = compile_values(wanted, self.all_symbols, self.settings)
        return compiled.bind(self.columns, Events.all_sets(self.events), boxes=self.boxes)(full)

    # --------------------------------------------------------------------- constraints

    def with_measured(self, full: Array, measured: Array | None = None) -> Array:
        """Complete points by what constraints measured, in the data or in each of many datasets, and by numbers of a form."""
        if not self.measured_symbols and self.form is None:
            return full
        values = self.measured if measured is None else measured
        parts = [full, np.broadcast_to(values, (len(full), len(self.measured)))]
        if self.form is not None:
            parts.append(np.tile(self.form.numbers, (len(full), 1)))
        return np.concatenate(parts, axis=1)

    def constraints_at(self, measured: Array | None) -> tuple[Constraint, ...]:
        """Return the constraints with other measured values, of shape (1, values); None for those they have."""
        if measured is None:
            return self.constraints
        counts = np.cumsum([len(c.measured) for c in self.constraints])
        each = np.split(measured[0], counts[:-1])
        return tuple(c.measuring(v.tolist()) for c, v in zip(self.constraints, each, strict=True))

    def hessian_of(self, terms: Sequence[Expr], full: Array) -> Array:
        """Return the second derivatives of terms without events, by the floating parameters."""
        count = len(self.parameters)
        total = np.zeros((len(full), count, count))
        floating = symbols_of(self.parameters)
        for term in terms:
            total += triangle(
                self.values_of(second_derivatives(term, floating), self.with_measured(full)), count
            )
        return total

    def values_of(self, terms: Sequence[Expr], points: Array) -> Array:
        """Return terms without events at points with measured values, (sets, terms)."""
        names = [symbol.name for symbol in self.kernel_symbols]
        rows = [dict(zip(names, row, strict=True)) for row in points]
        numbers = [[float(evaluate(term, values)) for term in terms] for values in rows]
        return np.array(numbers, np.float64).reshape(len(points), len(terms))
