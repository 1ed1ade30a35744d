"""Value, gradient and Hessian of minus the logarithm of a likelihood, for one or many parameter sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array
from morefit.data import Dataset
from morefit.errors import ModelError, OptionError
from morefit.expr import ZERO, Expr, Op, Operand, add_all, evaluate, symbols, to_expr
from morefit.integrals import MORE_POINTS, SharedBoxes
from morefit.kernel import Precision
from morefit.kernel.sums import Request, set_terms
from morefit.likelihood.accuracy import check_smooth, has_kinks, integral_error, is_numerical
from morefit.model import Parameter, Pdf
from morefit.model.arguments import ANY, check_operand, listed
from morefit.model.pdf import check_model
from morefit.pipeline import Bound, Columns, Compiled, Settings, compile_sums, compile_values
from morefit.rewrite.columns import Precompute
from morefit.targets import Backend, Events, choose_backend

Point = ArrayLike | Mapping[str, ArrayLike]  # in the order of the parameters, or by their names

NLL_ERROR = 0.01  # that numerical integrals may add to the sum over all events,
FEWEST = 1000  # of them: fewer do not ask for less,
BEST_ERROR = 1e-10  # but relatively to an integral no less than this is asked for
PENALTY = 708.0  # minus the logarithm of the smallest density a double can hold, for each event that has none


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Minus log likelihood and derivatives for B sets; with bad events, the sums over the good ones."""

    value: Array  # (B,)
    gradient: Array  # (B, P)
    hessian: Array  # (B, P, P)
    bad: NDArray[np.int64]  # (B,) events without a positive density

    def cut(self, rows: list[int]) -> Evaluation:
        """Keep the derivatives by some of the parameters."""
        return Evaluation(self.value, self.gradient[:, rows], self.hessian[:, rows][:, :, rows], self.bad)


@dataclass(frozen=True, eq=False)
class BadEvents:
    """The events whose density is not a positive number."""

    indices: NDArray[np.int64]
    densities: Array
    total: int

    def __len__(self) -> int:
        return len(self.indices)

    def __str__(self) -> str:
        if not len(self):
            return f"all {self.total} events have a positive density"
        shown = ", ".join(f"{i} ({d:g})" for i, d in zip(self.indices[:5], self.densities[:5], strict=True))
        more = ", ..." if len(self) > 5 else ""
        return f"{len(self)} of {self.total} events have no positive density: event {shown}{more}"


class AnyLikelihood(ABC):
    """What fits need of a likelihood: of one dataset, or a sum of several."""

    all_parameters: tuple[Parameter, ...]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The floating parameters, in the order of ``x``."""
        return tuple(p for p in self.all_parameters if not p.fixed)

    @cached_property
    def all_symbols(self) -> tuple[Expr, ...]:
        """All parameters as expressions, in the order of a full point."""
        return tuple(p.expr for p in self.all_parameters)

    @property
    @abstractmethod
    def events(self) -> int: ...

    @property
    @abstractmethod
    def backend(self) -> Backend: ...

    @abstractmethod
    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        """Evaluate at all parameters, of shape (sets, all parameters); derivatives by the floating ones."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Likelihood, ...]:
        """The likelihoods of single datasets that this one is made of."""

    @abstractmethod
    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        """Add up what ``matrix`` gives for each part at its own parameters, in shape (sets, P, P)."""

    @property
    def weighted(self) -> bool:
        """Whether events have weights, so that the inverse Hessian is not the covariance."""
        return any(part.data.weights is not None for part in self.parts)

    @abstractmethod
    def prepare(self, order: int) -> None:
        """Compile what an evaluation of this order needs."""

    @abstractmethod
    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        """Go through the parts, each with the point in its own floating parameters."""

    @abstractmethod
    def bad_events(self, x: Point) -> BadEvents: ...

    @abstractmethod
    def evaluate_again(self, full: Array) -> Evaluation:
        """Evaluate to the Hessian with boxes of their own for numerical integrals, made for these values."""

    def integral_error(self, x: Point) -> float:
        """Return the relative error of the worst numerical integral, by an independent one; 0 if there is none."""
        return max(part.model_error(own) for part, own in self.own_points(x))

    @property
    def has_integrals(self) -> bool:
        """Whether a model is normalised numerically."""
        return any(is_numerical(part.model) for part in self.parts)

    def kinked(self, floating: tuple[str, ...]) -> bool:
        """Return whether the slope of a log density jumps where floating parameters say: the Hessian misses that."""
        return any(has_kinks(part.model, floating) for part in self.parts)

    @abstractmethod
    def compile_seconds(self) -> dict[str, float]:
        """Return the seconds spent in each stage of compiling, so far."""

    def value(self, x: Point) -> Any:
        """Return minus the log likelihood: a float for one point, an array for many.

        Points are numbers in the order of ``parameters``, or values by name. The result is inf where an event has no
        positive density; ``bad_events`` says which.
        """
        points, one = self.points(x)
        found = self.evaluate_full(points, 0)
        values = np.where(found.bad > 0, np.inf, found.value)
        return float(values[0]) if one else values

    def gradient(self, x: Point) -> Array:
        """Return the first derivatives, (P,) or (B, P); nan where an event has no positive density."""
        points, one = self.points(x)
        found = self.evaluate_full(points, 1)
        found.gradient[found.bad > 0] = np.nan
        return found.gradient[0] if one else found.gradient

    def hessian(self, x: Point) -> Array:
        """Return the second derivatives, (P, P) or (B, P, P); nan where an event has no positive density."""
        points, one = self.points(x)
        found = self.evaluate_full(points, 2)
        found.hessian[found.bad > 0] = np.nan
        return found.hessian[0] if one else found.hessian

    def fisher(self, x: Point) -> Array:
        """Return the sums of w**2 dlnP/da dlnP/db over events, (P, P) or (B, P, P), as weighted fits need them."""
        points, one = self.points(x)
        found = self.add_up(points, Likelihood.fisher_sums)
        return found[0] if one else found

    def points(self, x: Point) -> tuple[Array, bool]:
        """Complete floating parameters to all, in shape (sets, all parameters)."""
        points = np.asarray(self.in_order(x) if isinstance(x, Mapping) else x, np.float64)
        floating = [k for k, p in enumerate(self.all_parameters) if not p.fixed]
        if points.ndim not in (1, 2) or points.shape[-1] != len(floating):
            names = ", ".join(p.name for p in self.parameters)
            raise ModelError(
                f"likelihood: x must have shape ({len(floating)},) or (sets, {len(floating)}) for {names},"
                f" got {points.shape}"
            )
        full = np.empty((len(points) if points.ndim == 2 else 1, len(self.all_parameters)))
        full[:] = [p.start for p in self.all_parameters]
        full[:, floating] = points
        return full, points.ndim == 1

    def in_order(self, values: Mapping[str, ArrayLike]) -> Array:
        """Return values by name in the order of ``parameters``; where one is an array, there are many points."""
        names = [p.name for p in self.parameters]
        if missing := [n for n in names if n not in values]:
            raise ModelError(f"likelihood: x has no value for {', '.join(missing)}")
        if unknown := [n for n in values if n not in names]:
            raise ModelError(
                f"likelihood: x has {', '.join(map(repr, unknown))}; what floats is {', '.join(names)}"
            )
        return np.stack(np.broadcast_arrays(*(np.asarray(values[n], np.float64) for n in names)), axis=-1)

    def __add__(self, other: AnyLikelihood) -> JointLikelihood:
        return JointLikelihood([self, other]) if isinstance(other, AnyLikelihood) else NotImplemented

    def __radd__(self, other: int) -> AnyLikelihood:
        """Let ``sum([a, b])`` work, which starts at 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


class Likelihood(AnyLikelihood):
    """Minus the logarithm of the likelihood of a model given data: -sum ln P, extended when it has yields.

    ``constraints`` are terms added to it, such as ``mf.gaussian_constraint(mu, 5.28, 0.01)``. Weights are taken
    from the dataset unless given.
    """

    def __init__(
        self,
        model: Pdf,
        data: Any,
        *,
        weights: ArrayLike | None = None,
        constraints: Sequence[Operand] | Operand = (),
        backend: str | Backend = "auto",
        precision: str = "double",
        precompute: Precompute = "auto",
    ) -> None:
        check_model(model)
        self.model = model
        self.data = Dataset(data, model.observables, weights=weights)
        self.constraints = tuple(
            check_operand(f"constraint {k}:", c, ANY)
            for k, c in enumerate(listed("likelihood: constraints", constraints), 1)
        )
        self.settings = Settings(
            choose_backend(backend, len(self.data)), choose_precision(precision), precompute
        )
        self.all_parameters = with_constrained(model.parameters, self.constraints)
        self.columns = Columns(self.data.columns)
        self.boxes = self.new_boxes()
        self.bound: dict[tuple[int, bool], Bound] = {}
        self.compiled: dict[tuple[int, bool], Compiled] = {}

    @property
    def events(self) -> int:
        return len(self.data)

    @property
    def backend(self) -> Backend:
        return self.settings.backend

    def new_boxes(self, more_points: int = 0) -> SharedBoxes:
        """Return boxes for numerical integrals, as accurate as all events together need."""
        allowed = NLL_ERROR / max(self.events, FEWEST)
        return SharedBoxes(max(allowed, BEST_ERROR), more_points)

    def request(self, order: int, *, careful: bool = False, fisher: bool = False) -> Request:
        """Say what to sum over events."""
        request = request_of(
            self.model,
            self.parameters,
            order,
            constraints=self.constraints,
            weighted=self.data.weights is not None,
        )
        return replace(request, careful=careful, fisher=fisher)

    @cached_property
    def log_intensity(self) -> Expr:
        """What is summed over events, as an expression."""
        return self.model.summed

    @property
    def parts(self) -> tuple[Likelihood, ...]:
        return (self,)

    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        full, _ = self.points(x)
        yield self, full[0, [k for k, p in enumerate(self.all_parameters) if not p.fixed]]

    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        return matrix(self, full)

    def fisher_sums(self, full: Array) -> Array:
        """Return the sums of w**2 dlnP/da dlnP/db over events for each set of all parameters."""
        return triangle(self.program(0, fisher=True)(full)[:, :-1], len(self.parameters))

    def squared_scores(self, full: Array) -> Array:
        """Return the covariance of the gradient: sums of w**2 dlnP dlnP over events, and what constraints add.

        A constraint is a measurement of its own with a weight of one: its gradient varies by its information, which is
        its Hessian. The number of events varies as well when it is part of the likelihood, and the sum over a Poisson
        number of events of independent terms has this covariance; the expected number itself does not vary.
        """
        return self.fisher_sums(full) + self.hessian_of(self.constraints, full)

    def hessian_of(self, terms: Sequence[Expr], full: Array) -> Array:
        """Return the second derivatives of terms without events, by the floating parameters."""
        count = len(self.parameters)
        found = np.zeros((len(full), count, count))
        floating = tuple(p.expr for p in self.parameters)
        for term in terms:
            seconds = set_terms(Request(ZERO, floating, 2, per_set=term))[1 + count :]
            for k, row in enumerate(full):
                values = {p.name: x for p, x in zip(self.all_parameters, row, strict=True)}
                found[k] += triangle(np.array([[float(evaluate(s, values)) for s in seconds]]), count)[0]
        return found

    def prepare(self, order: int) -> None:
        self.program(order)

    def program(self, order: int, careful: bool = False, fisher: bool = False) -> Bound:
        """Return the compiled sums bound to the data, compiling them when first asked for."""
        key = (3 if fisher else order, careful)
        if key not in self.bound:
            if order > 0 and not any(known for known, _ in self.bound):
                check_smooth(self.model, {p.name: p.start for p in self.all_parameters})
            self.compiled[key] = self.compile(order, careful, fisher)
            events = Events.all_sets(self.events)
            self.bound[key] = self.compiled[key].bind(self.columns, events, self.data.weights, self.boxes)
        return self.bound[key]

    def compile(self, order: int, careful: bool = False, fisher: bool = False) -> Compiled:
        """Compile the sums, to be bound to any events."""
        request = self.request(order, careful=careful, fisher=fisher)
        return compile_sums(request, self.all_symbols, self.settings)

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        out = self.program(order)(full)
        wrong = ~np.isfinite(out).all(axis=1) | (out[:, -1] > 0)
        if wrong.any():
            out[wrong] = self.program(order, careful=True)(full[wrong])
        return unpack(out, len(self.parameters), order)

    def per_event(self, x: Point) -> Array:
        """Return the normalised density of each event, (events,) or (B, events)."""
        points, one = self.points(x)
        found = self.event_values(points, self.model.normalised())[:, 0, :]
        return found[0] if one else found

    def event_values(self, full: Array, *wanted: Expr) -> Array:
        """Return expressions for each set and event, (B, expressions, events)."""
        compiled = compile_values(wanted, self.all_symbols, self.settings)
        return compiled.bind(self.columns, Events.all_sets(self.events), boxes=self.boxes)(full)

    def bad_events(self, x: Point) -> BadEvents:
        """Say which events have a density that is zero, negative, infinite or not a number."""
        model, (points, _) = self.model, self.points(x)
        density, logs, formula = self.event_values(
            points[:1], model.normalised(), model.log_intensity(), model.density()
        )[0]
        bad = np.flatnonzero(~np.isfinite(logs))
        if not len(bad):
            bad = np.flatnonzero(~((density >= np.finfo(float).tiny) & (density < np.inf)))
        # where formula and integral are both negative, their quotient would not show what is wrong
        return BadEvents(bad, np.where(density > 0, formula, density)[bad], len(logs))

    def model_error(self, x: Point) -> float:
        """Return the relative error of the worst numerical integral of the model."""
        points, _ = self.points(x)
        values = {p.name: float(v) for p, v in zip(self.all_parameters, points[0], strict=True)}
        check_smooth(self.model, values)
        return integral_error(self.model, values, self.data.columns)

    def evaluate_again(self, full: Array) -> Evaluation:
        compiled, events = self.compile(2), Events.all_sets(self.events)
        bound = compiled.bind(self.columns, events, self.data.weights, self.new_boxes(MORE_POINTS))
        return unpack(bound(full), len(self.parameters), 2)

    def compile_seconds(self) -> dict[str, float]:
        return add_times(c.seconds for c in self.compiled.values())

    def __getstate__(self) -> dict[str, Any]:
        return {
            "model": self.model, "data": self.data, "constraints": self.constraints, "settings": self.settings,
            "all_parameters": self.all_parameters,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, columns=Columns(state["data"].columns), bound={}, compiled={})
        self.boxes = self.new_boxes()


class JointLikelihood(AnyLikelihood):
    """The sum of likelihoods; parameters of one name are one parameter."""

    def __init__(self, parts: Sequence[AnyLikelihood]) -> None:
        self._parts = tuple(single for part in parts for single in part.parts)
        self.all_parameters = one_of_each(p for part in self.parts for p in part.all_parameters)
        place = {p.name: k for k, p in enumerate(self.all_parameters)}
        floating = {p.name: k for k, p in enumerate(self.parameters)}
        self.places = [[place[p.name] for p in part.all_parameters] for part in self.parts]
        self.rows = [[floating[p.name] for p in part.parameters] for part in self.parts]

    @property
    def parts(self) -> tuple[Likelihood, ...]:
        return self._parts

    @property
    def events(self) -> int:
        return sum(part.events for part in self.parts)

    @property
    def backend(self) -> Backend:
        return self.parts[0].backend

    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        return self.joined(full, order, lambda part, own: part.evaluate_full(own, order))

    def joined(
        self, full: Array, order: int, evaluate_part: Callable[[Likelihood, Array], Evaluation]
    ) -> Evaluation:
        """Add up evaluations of the parts, each at its own parameters."""
        sets, count = len(full), len(self.parameters)
        total = Evaluation(
            np.zeros(sets), np.zeros((sets, count)), np.zeros((sets, count, count)), np.zeros(sets, np.int64)
        )
        for part, places, rows in zip(self.parts, self.places, self.rows, strict=True):
            found = evaluate_part(part, np.ascontiguousarray(full[:, places]))
            total.value[:] += found.value
            total.bad[:] += found.bad
            if order > 0:
                total.gradient[:, rows] += found.gradient
            if order > 1:
                total.hessian[np.ix_(range(sets), rows, rows)] += found.hessian
        return total

    def bad_events(self, x: Point) -> BadEvents:
        for part, own in self.own_points(x):
            found = part.bad_events(own)
            if len(found):
                return found
        return found

    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        count = len(self.parameters)
        total = np.zeros((len(full), count, count))
        for part, places, rows in zip(self.parts, self.places, self.rows, strict=True):
            found = matrix(part, np.ascontiguousarray(full[:, places]))
            total[np.ix_(range(len(full)), rows, rows)] += found
        return total

    def prepare(self, order: int) -> None:
        for part in self.parts:
            part.prepare(order)

    def evaluate_again(self, full: Array) -> Evaluation:
        return self.joined(full, 2, Likelihood.evaluate_again)

    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        full, _ = self.points(x)
        for part, places in zip(self.parts, self.places, strict=True):
            floating = [k for k, p in zip(places, part.all_parameters, strict=True) if not p.fixed]
            yield part, full[0, floating]

    def compile_seconds(self) -> dict[str, float]:
        return add_times(part.compile_seconds() for part in self.parts)


def request_of(
    model: Pdf, floating: Sequence[Parameter], order: int, *,
    constraints: Sequence[Expr] = (), weighted: bool = False,
) -> Request:  # fmt: skip
    """Say what is summed over events for a likelihood, and what is added once: expected events and constraints."""
    expected = model.expected_events()
    extra = [-c for c in (*([] if expected is None else [expected]), *constraints)]
    per_set = ZERO if not extra else extra[0] if len(extra) == 1 else add_all(*extra)
    return Request(model.summed, tuple(p.expr for p in floating), order, weighted, per_set=per_set)


def gaussian_constraint(quantity: Operand, value: float, error: float) -> Expr:
    """Return the term that an independent measurement ``value +- error`` of a quantity adds."""
    if not error > 0:
        raise ModelError(f"constraint: error must be positive, got {error}")
    return 0.5 * ((to_expr(quantity) - value) / error) ** 2


def choose_precision(name: str) -> Precision:
    try:
        return Precision[name.upper()]
    except KeyError:
        raise OptionError(f"precision '{name}': not known; use 'double' or 'single'") from None


def one_of_each(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Join parameters by name; two different ones of one name are an error that names both."""
    found: dict[str, Parameter] = {}
    for p in parameters:
        if found.setdefault(p.name, p) is not p:
            raise ModelError(
                f"parameter '{p.name}': two different ones share this name, {found[p.name]!r} and {p!r};"
                " rename one or use the same object"
            )
    return tuple(found.values())


def with_constrained(parameters: Sequence[Parameter], constraints: Sequence[Expr]) -> tuple[Parameter, ...]:
    """Add the parameters that stand only in constraints."""
    extra = [s for c in constraints for s in symbols(Op.SCALAR, c) if isinstance(s, Parameter)]
    return one_of_each([*parameters, *extra])


def triangle(rows: Array, count: int) -> Array:
    """Fill (B, P, P) from lower triangles (B, P (P + 1) / 2)."""
    full = np.empty((len(rows), count, count))
    i, j = lower_triangle(count)
    full[:, i, j] = rows
    full[:, j, i] = rows
    return full


lower_triangle = lru_cache(maxsize=256)(np.tril_indices)  # slower to make than a small Hessian is to compute


def unpack(out: Array, count: int, order: int) -> Evaluation:
    """Read value, gradient and Hessian out of a row of sums, and turn their sign."""
    sets = len(out)
    gradient = -out[:, 1 : 1 + count] if order > 0 else np.empty((sets, 0))
    hessian = triangle(-out[:, 1 + count : -1], count) if order > 1 else np.empty((sets, 0, 0))
    return Evaluation(-out[:, 0], gradient, hessian, out[:, -1].astype(np.int64))


def add_times(times: Iterable[Mapping[str, float]]) -> dict[str, float]:
    def join(total: dict[str, float], one: Mapping[str, float]) -> dict[str, float]:
        return total | {k: total.get(k, 0.0) + v for k, v in one.items()}

    return reduce(join, times, {})
