"""The unbinned likelihood of a model and a dataset, extended when the model has yields, with its constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from morefit.arrays import Array, Flags, Integers
from morefit.data.dataset import Dataset, dataset_of
from morefit.data.sources import is_histogram
from morefit.data.weights import Weights, weight_formula
from morefit.digests import sha256
from morefit.errors import DataError
from morefit.expr import Expr
from morefit.kernel.ir import Precision
from morefit.kernel.record import fingerprint
from morefit.likelihood.accuracy import (
    Moved,
    check_smooth,
    integral_error,
    is_numerical,
    node_sums,
    with_unsolved,
)
from morefit.likelihood.base import Point
from morefit.likelihood.coarse import some_events
from morefit.likelihood.constraint import Constraint, as_constraints
from morefit.likelihood.evaluation import BadEvents, PartData, check_whole_numbers
from morefit.likelihood.event_sums import EventSums
from morefit.likelihood.places import MovedPlaces, moved_places
from morefit.likelihood.poles import check_rounding
from morefit.likelihood.shared_form import OwnForm
from morefit.likelihood.signs import negative_place, negative_rows
from morefit.likelihood.slow_terms import data_of_nodes
from morefit.likelihood.wider import accurate
from morefit.model import Pdf
from morefit.model.compose.restricted import in_ranges
from morefit.model.conditional import check_events
from morefit.model.counts import counted_in
from morefit.model.observable import Ranges
from morefit.model.opaque import opaque_names
from morefit.model.parts import conditional_parts
from morefit.model.region import YieldsIn
from morefit.model.replace import Changed, Replacement, depends_on_limits, is_unresolved
from morefit.pipeline import Settings, able_backend
from morefit.rewrite.precompute import Precompute
from morefit.sampling.conditional_rows import conditional_rows
from morefit.sampling.generate import Sampler, ToySampler, generate_events
from morefit.targets.base import Backend, Events
from morefit.targets.choose import choose_backend
from morefit.text.arguments import in_sentences


class Likelihood(EventSums):
    """Minus the logarithm of the likelihood of a model for data: -sum ln P, extended when it has yields.

    ``constraints`` are independent measurements, such as ``mf.constraint(mu, 5.28, 0.01)``. Weights are taken from
    the dataset by default; a formula of observables, such as ``1 / efficiency``, weights toys as well. ``ranges`` leave
    out the events outside of them, as ``data.report`` says, and restrict the model (``mf.Restricted``):
    ``{"m": [(5.0, 5.2), (5.4, 6.0)]}``; its yields and fractions are those of the full ranges, or of the events in the
    ranges of the fit if ``yields_in="range"``. ``precision="single"`` computes each event in single precision;
    ``precompute`` says what is computed once per dataset: "auto" what pays, "none", or "all".

    Example: ``mf.Likelihood(model, data, constraints=[mf.constraint(sigma, 0.1, 0.01)])``
    """

    def __new__(cls, model: Any = None, *arguments: Any, **options: Any) -> Any:
        """Return the sum of the likelihoods of all categories if the model is ``mf.Simultaneous``; one in pieces of files."""
        data = options.get("data", arguments[0] if arguments else None)
        in_files = isinstance(data, Dataset) and not data.in_memory
        if cls is Likelihood and in_files and isinstance(model, Pdf):
            from morefit.likelihood.in_pieces import LikelihoodInPieces

            return object.__new__(LikelihoodInPieces)
        if cls is not Likelihood or model is None or isinstance(model, Pdf):
            return object.__new__(cls)
        from morefit.likelihood.simultaneous import Simultaneous, simultaneous_likelihood

        if isinstance(model, Simultaneous):
            return simultaneous_likelihood(model, *arguments, **options)
        return object.__new__(cls)

    @in_sentences
    def __init__(
        self,
        model: Pdf,
        data: Any,
        *,
        weights: Weights = None,
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
        settings = Settings(place, Precision.named(precision), precompute)
        weight = weight_formula(weights)
        self.set_up(model, dataset, as_constraints(constraints), settings, weight=weight)

    def replaced(
        self,
        *,
        data: Dataset | None = None,
        constraints: tuple[Constraint, ...] | None = None,
        backend: Backend | None = None,
        fixed: frozenset[str] | None = None,
        names: Mapping[Expr, Expr] | None = None,
        form: OwnForm | None = None,
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
            fixed=self.fixed_names if fixed is None else fixed,
            names=self.kernel_names if names is None else names,
            weight=self.weight,
            form=self.form if form is None else form,
        )
        return other

    def without_formula(self) -> Self:
        """Return the same likelihood, whose events have the weights of their data, if any, and no formula for them."""
        other = self.replaced()
        other.weight = None
        return other

    @property
    def source(self) -> Pdf | None:
        """The density whose formulas depend on limits and start values of parameters; None for a table without one."""
        return self.model

    def changed_model(self, change: Replacement) -> tuple[Any, Dataset]:
        """Return its model with other parameters, and the data as that model needs them."""
        return change(self.model), self.data

    def kind(self, data: Dataset | None) -> type[Any]:
        """Return the class of the same likelihood of other data; None for its own."""
        return type(self)

    @property
    def parts(self) -> tuple[Likelihood, ...]:
        return (self,)

    @property
    def has_weights(self) -> bool:
        """Whether its events have weights, which are no numbers of events."""
        return self.data.weighted or self.weight is not None

    @property
    def passes(self) -> int:
        """How many times events were read from files for evaluations."""
        return 0

    def own_data(self) -> tuple[PartData, ...]:
        """Return the data as those of many sets, which share them; nodes are enough for values far from the minimum."""
        if self.on_nodes is not None:
            return (data_of_nodes(self.on_nodes, self.boxes),)
        apart = tuple(data_of_nodes(follow, self.boxes) for _, follow in self.apart)
        events = Events.all_sets(self.events)
        return (PartData(self.columns, events, self.data.weights, boxes=self.boxes, apart=apart),)

    def by_piece(self) -> Generator[Likelihood, None, None]:
        """Yield likelihoods of all events that are in memory, one after the other."""
        yield self

    def with_parts(self, parts: Sequence[Likelihood]) -> Likelihood:
        (part,) = parts
        return part

    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        return matrix(self, full)

    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        if isinstance(x, np.ndarray) and x.shape == (len(self.parameters),):
            yield self, x
            return
        full, _ = self.points(x)
        yield self, full[0, self.floating_columns]

    @property
    def entries(self) -> float:
        """How many events were counted."""
        return self.entries_of(self.data)

    def entries_of(self, data: Dataset) -> float:
        """Return how many events were counted in other data of the same kind."""
        return float(len(data))

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

    def own_moving(self, moved: Moved, floating: tuple[str, ...]) -> frozenset[str]:
        """Return the floating parameters that move some points of the density, such as its kinks."""
        return moved(self.model, floating)

    @property
    def own_places(self) -> MovedPlaces:
        """The parameters that move something along an observable, and frequencies."""
        return MovedPlaces() if self.source is None else moved_places(self.source)

    # --------------------------------------------------------------------- data, and data like them

    def read(self, data: Any) -> Dataset:
        """Return other data of the same kind."""
        return events_of(self.model, data, self.weight)

    def without_events(self) -> Likelihood:
        """Return the likelihood of no events; what the model is given stays."""
        given, every = self.model.given, self.model.observables
        columns = (
            {o.name: self.data[o.name] for o in given} if given else {o.name: np.empty(0) for o in every}
        )
        return self.replaced(data=Dataset(columns))

    def sampler(self, truth: Mapping[str, float], backend: Backend, resample: bool = True) -> ToySampler:
        """Return what draws toys at true values, for rows of what a conditional model is given, drawn by chance or not."""
        rows = (
            conditional_rows("toys", self.model, self.data, resample=resample) if self.model.given else None
        )
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
        assert isinstance(data.weights, np.ndarray)
        return self.data.with_weights(data.weights[k])

    @property
    def facts(self) -> dict[str, Any]:
        """What toys depend on besides the model and constraints."""
        given, facts = self.model.given, dict[str, Any]()
        if given:
            facts["given"] = {o.name: sha256(self.data[o].tobytes()).hexdigest() for o in given}
        return facts if self.weight is None else facts | {"weights": fingerprint([self.weight])}

    # --------------------------------------------------------------------- single events

    @in_sentences
    def per_event(self, x: Point) -> Array:
        """Return the normalised density of each event, (events,) or (B, events)."""
        points, one = self.points(x)
        each = [
            part.event_values(some, part.model.normalised())[:, 0, :]
            for own, some in accurate(self, points)
            for part in own.parts
        ]
        return each[0][0] if one else np.concatenate(each)

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

    def negative_place(self, values: Mapping[str, float]) -> str:
        """Describe where the density is negative; empty if nowhere."""
        return "" if self.source is None else negative_place(self.source, values)

    def negative_rows(self, values: Mapping[str, Any]) -> Flags:
        """Return at which of many values of its parameters the density is negative."""
        return np.zeros(1, np.bool_) if self.source is None else negative_rows(self.source, values)

    @property
    def has_node_sums(self) -> bool:
        """Whether there are integrals for each event."""
        return self.source is not None and bool(node_sums(self.source))

    def events_to_check(self, columns: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Return some events, of other columns or of the data, at which integrals for each of them can be checked."""
        return some_events(self.data.sample.columns if columns is None else columns, self.model)

    def depends_on_limits(self, wider: Changed) -> bool:
        """Return whether other limits of some parameters change formulas."""
        return self.source is not None and depends_on_limits(self.source, wider)

    def is_unresolved(self, moved: Changed, values: Mapping[str, float]) -> bool:
        """Return whether integrals for each event, or over bins, are inaccurate at values of all parameters, some of which have moved."""
        return self.source is not None and is_unresolved(self.source, moved)

    @property
    def has_unjudged_integrals(self) -> bool:
        """Whether it has integrals that compiled code does not judge itself."""
        return False

    def unresolved_rows(self, values: Mapping[str, Any]) -> Flags:
        """Return at which of many values of its parameters such integrals are wrong."""
        return np.zeros(1, np.bool_)

    def values_at(self, x: Point) -> dict[str, float]:
        """Return all parameters at a point by name."""
        points, _ = self.points(x)
        return {p.name: v for p, v in zip(self.all_parameters, points[0].tolist(), strict=True)}

    @property
    def has_unsolved_kinks(self) -> bool:
        """Whether a numerical integral has a kink that could not be solved for an observable."""
        return bool(with_unsolved(self.model))

    def check_derivatives_at(self, x: Point) -> dict[str, float]:
        """Refuse a point at which numerical integrals have no derivatives that can be computed; return it by name."""
        values = self.values_at(x)
        check_smooth(self.model, values)
        return values

    def model_error(self, x: Point) -> float:
        """Return the relative error of the worst numerical integral of the model."""
        values = self.check_derivatives_at(x)
        check_rounding(self.model, values, self.data.sample.columns)
        return integral_error(self.model, values, self.data.sample.columns)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        count = len(self.constraints)
        terms = f", {count} constraint{'s' * (count > 1)}" if count else ""
        weights = "" if self.weight is None else f" of weight {self.weight!r:.60}"
        return f"Likelihood({self.events} events{weights}{terms}, parameters: {names})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "model": self.model, "data": self.data, "constraints": self.constraints, "settings": self.settings,
            "fixed": self.fixed_names, "names": self.kernel_names, "weight": self.weight,
            "form": self.form,
        }  # fmt: skip

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.set_up(**state)


def likelihood_of(
    model: Any,
    data: Any,
    *,
    weights: Any = None,
    constraints: Any = (),
    ranges: Any = None,
    backend: str | Backend = "auto",
    **of_events: Any,
) -> Likelihood:
    """Return the likelihood of the bins of a histogram, or of events, which have more options; of categories, their sum."""
    if not isinstance(model, Pdf) or isinstance(data, Dataset) or not is_histogram(data):
        return Likelihood(
            model, data, weights=weights, constraints=constraints, ranges=ranges, backend=backend, **of_events
        )
    if weights is not None or ranges is not None:
        raise DataError(
            "dataset: a histogram has its variances and its bins; give no weights and no ranges, but the bins of a range, such as"
            " (counts[:20], edges[:21]), or one likelihood for each: mf.BinnedLikelihood(model, a) + mf.BinnedLikelihood(model, b)"
        )
    from morefit.likelihood.binned import BinnedLikelihood  # seldom needed

    return BinnedLikelihood(model, data, constraints=constraints, backend=backend)


def events_of(model: Pdf, data: Any, weights: Weights = None) -> Dataset:
    """Return a dataset of the observables of a model; of a restricted one, the events in its region."""
    dataset = dataset_of(data, model.observables, weights)
    return dataset.inside(region) if (region := model.region()) else dataset
