"""The unbinned likelihood of a model and a dataset, extended when the model has yields, with its constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Integers
from morefit.data import Dataset
from morefit.data.dataset import check_whole_numbers, dataset_of
from morefit.errors import OptionError
from morefit.expr import ZERO, Expr, Op, evaluate, leaves, scalar
from morefit.integrals import MORE_POINTS, SharedBoxes
from morefit.kernel import Precision
from morefit.kernel.sums import Request, set_terms
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood.accuracy import check_smooth, has_kinks, integral_error, is_numerical, node_sums
from morefit.likelihood.base import BadEvents, Evaluation, Point, Term
from morefit.likelihood.constraint import Constraint, as_constraints
from morefit.likelihood.datasets import PartData
from morefit.likelihood.event_nodes import EventNodes, FollowedNodes
from morefit.likelihood.signs import negative_place
from morefit.likelihood.sums import request_of, terms_of, triangle, unpack, with_constrained
from morefit.model import Parameter, Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.conditional import check_events
from morefit.model.counts import counted_in
from morefit.model.observable import Ranges
from morefit.model.opaque import opaque_names
from morefit.model.pdf import conditional_parts
from morefit.model.region import YieldsIn
from morefit.pipeline import (
    Bound,
    Columns,
    Compiled,
    Settings,
    able_backend,
    compile_renamed,
    compile_sums,
    compile_values,
)
from morefit.rewrite.precompute import Precompute
from morefit.sampling.generate import Sampler, ToySampler, generate_events
from morefit.sampling.given import given_rows
from morefit.targets import Backend, Events, choose_backend

NLL_ERROR = 0.01  # that numerical integrals may add to the sum over all events,
MIN_EVENTS = 1000  # of them: with fewer, the accuracy is that of this many,
NO_NAMES: Mapping[Expr, Expr] = {}
BEST_ERROR = 1e-10  # the smallest relative error of an integral that is requested


class Likelihood(Term):
    """Minus the logarithm of the likelihood of a model for data: -sum ln P, extended when it has yields.

    ``constraints`` are independent measurements, such as ``mf.constraint(mu, 5.28, 0.01)``. Weights are taken from
    the dataset by default. ``ranges`` leave out the events outside of them, as ``data.report`` says, and restrict the
    model (``mf.Restricted``): ``{"m": [(5.0, 5.2), (5.4, 6.0)]}``; its yields and fractions are those of the full
    ranges, or of the events in the ranges of the fit if ``yields_in="range"``. ``precision="single"`` computes each
    event in single precision; ``precompute`` says what is computed once per dataset: "auto" what pays, "none", or "all".

    Example: ``mf.Likelihood(model, data, constraints=[mf.constraint(sigma, 0.1, 0.01)])``
    """

    has_kernels: ClassVar[bool] = True  # compiled ones sum over its events

    def __new__(cls, model: Any = None, *arguments: Any, **options: Any) -> Any:
        """Return the sum of the likelihoods of all categories if the model is ``mf.Simultaneous``; one in pieces of files."""
        data = options.get("data", arguments[0] if arguments else None)
        in_files = isinstance(data, Dataset) and not data.in_memory
        if cls is Likelihood and isinstance(model, Pdf) and in_files:
            from morefit.likelihood.in_pieces import LikelihoodInPieces

            return object.__new__(LikelihoodInPieces)
        if cls is not Likelihood or model is None or isinstance(model, Pdf):
            return object.__new__(cls)
        from morefit.likelihood.simultaneous import Simultaneous, simultaneous_likelihood

        if isinstance(model, Simultaneous):
            return simultaneous_likelihood(model, *arguments, **options)
        return object.__new__(cls)

    def __init__(
        self,
        model: Pdf,
        data: Any,
        *,
        weights: ArrayLike | None = None,
        constraints: Sequence[Any] | Any = (),
        ranges: Ranges | None = None,
        yields_in: YieldsIn = "full",
        backend: str | Backend = "auto",
        precision: str = "double",
        precompute: Precompute = "auto",
    ) -> None:
        model = in_ranges(model, ranges, yields_in)
        dataset = events_of(model, data, weights)
        check_whole_numbers(dataset, counted_in(model))
        if conditional := conditional_parts(model):
            for piece in dataset.pieces():
                check_events(conditional, {p.name: p.start for p in model.parameters}, piece.columns)
        place = able_backend(model, choose_backend(backend, 0 if opaque_names(model) else len(dataset)))
        settings = Settings(place, choose_precision(precision), precompute)
        self.set_up(model, dataset, as_constraints(constraints), settings)

    def set_up(
        self,
        model: Pdf,
        data: Dataset,
        constraints: tuple[Constraint, ...],
        settings: Settings,
        fixed: frozenset[str] = frozenset(),
        names: Mapping[Expr, Expr] = NO_NAMES,
        alike: Likelihood | None = None,
    ) -> None:
        """Set what the likelihood is made of; what has been checked is not checked again.

        ``names`` are what parameters are called in kernels, which likelihoods with alike formulas then share; ``alike``
        has the same model and constraints, so that their terms, which may be hundreds, need not be made again.
        """
        self.model, self.data, self.constraints, self.settings = model, data, constraints, settings
        self.fixed_names, self.kernel_names, self.checked = fixed, names, False
        if alike is None:
            self.measured = np.array([value for c in constraints for value in c.measured])
            self.measured_symbols = tuple(scalar(f"measured value {k}") for k in range(len(self.measured)))
            self.constraint_terms = tuple(terms_of(constraints, self.measured_symbols))
            self.all_parameters = (
                with_constrained(model.parameters, self.constraint_terms) if constraints else model.parameters
            )
        else:
            self.measured, self.measured_symbols = alike.measured, alike.measured_symbols
            self.constraint_terms, self.all_parameters = alike.constraint_terms, alike.all_parameters
        self.bound: dict[tuple[int, bool], tuple[EventNodes | None, Bound]] = {}
        self.compiled: dict[tuple[int, bool], Compiled] = {}

    def replaced(
        self,
        *,
        data: Dataset | None = None,
        constraints: tuple[Constraint, ...] | None = None,
        backend: Backend | None = None,
        fixed: frozenset[str] | None = None,
        names: Mapping[Expr, Expr] | None = None,
    ) -> Self:
        """Return the same likelihood with something else in the place of its data, constraints or backend."""
        settings = self.settings
        if backend is not None:
            settings = Settings(able_backend(self.model, backend), settings.precision, settings.precompute)
        other: Self = object.__new__(self.kind(data))
        other.set_up(
            self.model,
            self.data if data is None else data,
            self.constraints if constraints is None else constraints,
            settings,
            self.fixed_names if fixed is None else fixed,
            self.kernel_names if names is None else names,
            self if constraints is None else None,
        )
        return other

    def kind(self, data: Dataset | None) -> type[Any]:
        """Return the class of the same likelihood of other data; None for its own."""
        return type(self)

    @cached_property
    def columns(self) -> Columns:
        """The columns of the data, and what has been computed from them."""
        return Columns(self.data.columns)

    @property
    def parts(self) -> tuple[Likelihood, ...]:
        return (self,)

    @property
    def has_weights(self) -> bool:
        """Whether its events have weights, which are no numbers of events."""
        return self.data.weighted

    @property
    def passes(self) -> int:
        """How many times events were read from files for evaluations."""
        return 0

    def own_data(self) -> tuple[PartData, ...]:
        """Return the data as those of many sets, which share them; of nodes so many that they hold far from the minimum."""
        if self.on_nodes is None:
            columns, events, weights = self.columns, self.events, self.data.weights
        else:
            nodes = self.on_nodes.finer()
            columns, events, weights = nodes.columns, len(nodes.points), nodes.weights
        return (PartData(columns, Events.all_sets(events), weights, boxes=self.boxes),)

    def by_piece(self) -> Generator[Likelihood, None, None]:
        """Yield likelihoods of all events that are in memory, one after the other."""
        yield self

    def with_parts(self, parts: Sequence[Likelihood]) -> Likelihood:
        (part,) = parts
        return part

    @property
    def events(self) -> int:
        return len(self.data)

    @property
    def backend(self) -> Backend:
        return self.settings.backend

    @property
    def entries(self) -> float:
        """How many events were counted."""
        return float(len(self.data))

    @property
    def extended(self) -> bool:
        return self.model.expected_events() is not None

    @property
    def unit(self) -> str:
        return "events"

    @property
    def ndata(self) -> float:
        return math.inf

    @property
    def degrees(self) -> float:
        return math.inf

    @property
    def numerical(self) -> bool:
        """Whether integrals of the model are done numerically."""
        return is_numerical(self.model)

    def has_kinks(self, floating: tuple[str, ...]) -> bool:
        """Return whether the slope of a log density jumps where floating parameters say."""
        return has_kinks(self.model, floating)

    @cached_property
    def boxes(self) -> SharedBoxes:
        """The boxes of numerical integrals, shared by all evaluations."""
        return self.new_boxes()

    def new_boxes(self, more_points: int = 0) -> SharedBoxes:
        """Return boxes for numerical integrals, as accurate as all events together need."""
        allowed = NLL_ERROR / max(self.entries, MIN_EVENTS)
        return SharedBoxes(max(allowed, BEST_ERROR), more_points)

    # --------------------------------------------------------------------- data, and data like them

    def read(self, data: Any) -> Dataset:
        """Return other data of the same kind."""
        return events_of(self.model, data)

    def without_events(self) -> Likelihood:
        """Return the likelihood of no events; what the model is given stays."""
        given, every = self.model.given, self.model.observables
        kept = {o.name: self.data[o.name] for o in given} if given else {o.name: np.empty(0) for o in every}
        return self.replaced(data=Dataset(kept))

    def sampler(self, truth: Mapping[str, float], backend: Backend, resample: bool = True) -> ToySampler:
        """Return what draws toys at true values, for rows of what a conditional model is given, drawn by chance or not."""
        rows = given_rows("toys", self.model, self.data, resample=resample) if self.model.given else None
        return Sampler(self.model, truth, backend, given=rows)

    def generated(self, values: Mapping[str, float], seed: int, *, backend: Any, generator: Any) -> Dataset:
        """Draw a dataset: as many events as there are, or a Poisson number around what is expected."""
        data = generate_events(
            self.model,
            None if self.extended else self.events,
            truth={p.name: values[p.name] for p in self.model.parameters},
            seed=seed if isinstance(generator, str) else None,
            backend=backend,
            generator=generator,
            given=self.data if self.model.given else None,
        )
        assert isinstance(data, Dataset)
        return data

    def replicas(self, weights: Callable[[], Array], seed: int, numbers: Integers) -> PartData:
        """Return replicas, in which each event counts a Poisson number of times, as ``weights`` draws them."""
        drawn = weights() if self.data.weights is None else weights() * self.data.weights
        events = Events.all_sets(self.events)
        return PartData(self.columns, events, np.ascontiguousarray(drawn), boxes=self.boxes)

    def replica(self, data: PartData, k: int) -> Dataset:
        """Return one of some replicas."""
        assert data.weights is not None
        return self.data.with_weights(data.weights[k])

    @property
    def facts(self) -> dict[str, Any]:
        """What toys depend on besides the model and constraints."""
        given = self.model.given
        return {"given": {o.name: column_digest(self.data[o]) for o in given}} if given else {}

    # --------------------------------------------------------------------- what is summed

    def request(
        self,
        order: int,
        *,
        floating: Sequence[Parameter] | None = None,
        weighted: bool | None = None,
        careful: bool = False,
        fisher: bool = False,
    ) -> Request:
        """Return what to sum over events; the derivatives are by some parameters, by default by all that float."""
        return request_of(
            self.model,
            self.parameters if floating is None else floating,
            order,
            constraints=self.constraint_terms,
            weighted=self.data.weighted if weighted is None else weighted,
            careful=careful,
            fisher=fisher,
        )

    def compile_request(self, request: Request) -> Compiled:
        """Compile sums, to be bound to any events."""
        own = (*self.all_symbols, *self.measured_symbols)
        if not self.kernel_names:
            return compile_sums(request, own, self.settings)
        return compile_renamed(request, own, tuple(self.kernel_names.get(s, s) for s in own), self.settings)

    def sums(self, order: int) -> Compiled:
        """Return the sums of the data up to an order of derivatives, compiled."""
        key = (order, False)
        if key not in self.compiled:
            self.check_derivatives(order)
            self.compiled[key] = self.compile_request(
                self.request(order, weighted=self.on_nodes is not None or None)
            )
        return self.compiled[key]

    def check_derivatives(self, order: int) -> None:
        """Refuse a model whose numerical integrals have no derivatives that can be computed, if they are wanted."""
        if order > 0 and not self.checked and is_numerical(self.model):
            check_smooth(self.model, {p.name: p.start for p in self.all_parameters})
        self.checked |= order > 0

    @cached_property
    def log_intensity(self) -> Expr:
        """What is summed over events, as an expression."""
        return self.model.summed

    def with_measured(self, full: Array, measured: Array | None = None) -> Array:
        """Complete points by what constraints measured: in the data, or in each of many datasets."""
        if not self.measured_symbols:
            return full
        values = self.measured if measured is None else measured
        return np.concatenate([full, np.broadcast_to(values, (len(full), len(self.measured)))], axis=1)

    def constraints_at(self, measured: Array | None) -> tuple[Constraint, ...]:
        """Return the constraints with other measured values, of shape (1, values); None for those they have."""
        if measured is None:
            return self.constraints
        counts = np.cumsum([len(c.measured) for c in self.constraints])
        each = np.split(measured[0], counts[:-1])
        return tuple(c.measuring(v.tolist()) for c, v in zip(self.constraints, each, strict=True))

    # --------------------------------------------------------------------- evaluation

    @cached_property
    def on_nodes(self) -> FollowedNodes | None:
        """The nodes at which a log density that takes long is computed, in the place of many events of one observable."""
        slow = self.has_kernels and node_sums(self.model) and self.settings.precision is Precision.DOUBLE
        if not slow or opaque_names(self.model) or len(self.data.names) != 1:
            return None
        (name, x), *_ = self.data.columns.items()
        if {leaf.name for leaf in leaves(Op.COLUMN, self.model.summed)} != {name}:
            return None

        def logs(points: Array, full: Array) -> Array:
            compiled = compile_values((self.model.summed,), self.all_symbols, self.settings)
            bound = compiled.bind(Columns({name: points}), Events.all_sets(len(points)), boxes=self.boxes)
            return np.asarray(bound(full)[:, 0])

        return FollowedNodes.of(
            name, x, self.data.weights, logs, np.array([[p.start for p in self.all_parameters]])
        )

    def program(
        self, order: int, careful: bool = False, fisher: bool = False, full: Array | None = None
    ) -> Callable[[Array], Array]:
        """Return the compiled sums bound to the data, compiling them when they are first used.

        They are over nodes in the place of events, where the log density takes long, that hold at parameters ``full``.
        """
        key = (3 if fisher else order, careful)
        nodes = None if careful or fisher or self.on_nodes is None else self.on_nodes.at(full)
        if key not in self.bound or self.bound[key][0] is not nodes:
            if careful or fisher:
                self.compiled[key] = self.compile_request(self.request(order, careful=careful, fisher=fisher))
            else:
                self.sums(order)
            self.bound[key] = nodes, self.bind_sums(self.compiled[key], nodes, self.boxes)
        return self.bound[key][1]

    def bind_sums(self, compiled: Compiled, nodes: EventNodes | None, boxes: SharedBoxes) -> Bound:
        """Bind sums to the events, or to nodes in their place."""
        if nodes is not None:
            events = Events.all_sets(len(nodes.points))
            return compiled.bind(nodes.columns, events, nodes.weights, boxes)
        weights = self.data.weights
        if weights is None and any(wanted is WEIGHT for wanted in compiled.columns):
            weights = np.ones(self.events)
        return compiled.bind(self.columns, Events.all_sets(self.events), weights, boxes)

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        complete = self.with_measured(full)
        out = self.program(order, full=full)(complete)
        wrong = ~np.isfinite(out).all(axis=1) | (out[:, -1] > 0)
        if wrong.any():
            out[wrong] = self.program(order, careful=True)(complete[wrong])
        return unpack(out, len(self.parameters), order)

    def evaluate_many(
        self, data: Sequence[PartData], sets: Integers, full: Array, order: int = 2
    ) -> Evaluation:
        (own,) = data
        request = self.request(order, weighted=own.weights is not None)
        out = own.bind(self.compile_request(request), sets)(self.with_measured(full, own.rows(sets)))
        return unpack(out, len(self.parameters), order)

    def many_scores(self, data: Sequence[PartData], sets: Integers, full: Array) -> Array:
        (own,) = data
        compiled = self.compile_request(self.request(0, weighted=own.weights is not None, fisher=True))
        out = own.bind(compiled, sets)(self.with_measured(full, own.rows(sets)))
        scores = triangle(out[:, :-1], len(self.parameters))
        return scores + self.hessian_of(self.constraint_terms, full) if self.constraints else scores

    def evaluate_again(self, full: Array) -> Evaluation:
        follow = self.on_nodes
        nodes = follow.finer() if follow is not None and follow.at(full) is not None else None
        bound = self.bind_sums(self.sums(2), nodes, self.new_boxes(MORE_POINTS))
        return unpack(bound(self.with_measured(full)), len(self.parameters), 2)

    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        return matrix(self, full)

    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        full, _ = self.points(x)
        yield self, full[0, self.floating_columns]

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

    def hessian_of(self, terms: Sequence[Expr], full: Array) -> Array:
        """Return the second derivatives of terms without events, by the floating parameters."""
        count = len(self.parameters)
        total = np.zeros((len(full), count, count))
        floating = tuple(p.symbol for p in self.parameters)
        for term in terms:
            seconds = set_terms(Request(ZERO, floating, 2, per_set=term))[1 + count :]
            total += triangle(self.values_of(seconds, self.with_measured(full)), count)
        return total

    def values_of(self, terms: Sequence[Expr], points: Array) -> Array:
        """Return terms without events at points with measured values, (sets, terms)."""
        names = [symbol.name for symbol in (*self.all_symbols, *self.measured_symbols)]
        rows = [dict(zip(names, row, strict=True)) for row in points]
        numbers = [[float(evaluate(term, values)) for term in terms] for values in rows]
        return np.array(numbers, np.float64).reshape(len(points), len(terms))

    # --------------------------------------------------------------------- single events

    def per_event(self, x: Point) -> Array:
        """Return the normalised density of each event, (events,) or (B, events)."""
        points, one = self.points(x)
        densities = self.event_values(points, self.model.normalised())[:, 0, :]
        return densities[0] if one else densities

    def event_values(self, full: Array, *wanted: Expr) -> Array:
        """Return expressions for each set and event, (B, expressions, events)."""
        compiled = compile_values(wanted, self.all_symbols, self.settings)
        return compiled.bind(self.columns, Events.all_sets(self.events), boxes=self.boxes)(full)

    def own_bad_events(self, x: Point) -> BadEvents:
        """Return the events that have a density that is zero, negative, infinite or not a number."""
        model, (points, _) = self.model, self.points(x)
        density, logs, formula = self.event_values(
            points[:1], model.normalised(), model.log_intensity(), model.density()
        )[0]
        bad = np.flatnonzero(~np.isfinite(logs))
        if not len(bad):
            bad = np.flatnonzero(~((density >= np.finfo(float).tiny) & (density < np.inf)))
        # where formula and integral are both negative, their quotient would not show what is wrong
        return BadEvents(bad, np.where(density > 0, formula, density)[bad], len(logs))

    def negative_place(self, x: Point) -> str:
        """Describe where the density is negative; empty if nowhere."""
        return negative_place(self.model, self.values_at(x))

    def values_at(self, x: Point) -> dict[str, float]:
        """Return all parameters at a point by name."""
        points, _ = self.points(x)
        return {p.name: float(v) for p, v in zip(self.all_parameters, points[0], strict=True)}

    def model_error(self, x: Point) -> float:
        """Return the relative error of the worst numerical integral of the model."""
        values = self.values_at(x)
        check_smooth(self.model, values)
        return integral_error(self.model, values, self.data.sample.columns)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        terms = f", {len(self.constraints)} constraints" if self.constraints else ""
        return f"Likelihood({self.events} events{terms}, parameters: {names})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "model": self.model, "data": self.data, "constraints": self.constraints, "settings": self.settings,
            "fixed": self.fixed_names, "names": self.kernel_names,
        }  # fmt: skip

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.set_up(**state)


def events_of(model: Pdf, data: Any, weights: ArrayLike | None = None) -> Dataset:
    """Return a dataset of the observables of a model; of a restricted one, the events in its region."""
    dataset = dataset_of(data, model.observables, weights)
    return dataset.inside(region) if (region := model.region()) else dataset


def choose_precision(name: str) -> Precision:
    try:
        return Precision[name.upper()]
    except KeyError:
        raise OptionError(f"precision '{name}': not known; use 'double' or 'single'") from None


def column_digest(column: Array) -> str:
    """Return a digest of the numbers of a column."""
    return sha256(column.tobytes()).hexdigest()
