"""What a likelihood answers: its parameters, its value and derivatives for one or many points, its parts, its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Integers
from morefit.errors import ModelError, OptionError
from morefit.expr import Expr, Quantity
from morefit.kernel.fit_layout import ANGLE, END, FREQUENCY, PLACE, STEP
from morefit.likelihood.accuracy import Moved, moved_edges, moved_kinks, moved_steps
from morefit.likelihood.angles import turning
from morefit.likelihood.constraint import Constraint, as_constraints
from morefit.likelihood.evaluation import BadEvents, Evaluation, PartData, least_mean_weight
from morefit.likelihood.parameters import floating_among, full_points, symbols_of
from morefit.likelihood.repeated import warn_of_copies
from morefit.likelihood.wider import evaluated
from morefit.model import Parameter
from morefit.records.named_arrays import ArrayByName, by_names
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences
from morefit.validate import by_name

if TYPE_CHECKING:
    from morefit.likelihood.eliminate import Elimination
    from morefit.likelihood.unbinned import Likelihood
    from morefit.model.replace import Changed

Point = ArrayLike | Mapping[str, ArrayLike]  # in the order of the parameters, or by their names


class Term(ABC):
    """A likelihood: of one dataset, or a sum of several. Fits, toys, scans, plots and explanations take it."""

    all_parameters: tuple[Parameter, ...]
    fixed_names: frozenset[str]  # besides those of the parameters that are fixed anyway
    labels: tuple[str, ...] = ()  # of the parts, if they are categories
    errordef: ClassVar[float] = 0.5  # this and what follows make it a cost function of iminuit
    has_grad: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = False  # iminuit would call it with numbers one by one
    verbose: ClassVar[int] = 0
    one_minimum: ClassVar[bool] = False  # is known: one at a limit is not searched for again elsewhere
    join: ClassVar[Callable[[Sequence[Term]], Term]]  # the sum of likelihoods, which joint.py defines

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The floating parameters, in the order of ``x``."""
        return floating_among(self.all_parameters, self.fixed_names)[1]

    @cached_property
    def floating_columns(self) -> list[int]:
        """Where the floating parameters are among all."""
        return floating_among(self.all_parameters, self.fixed_names)[0]

    @cached_property
    def all_symbols(self) -> tuple[Expr, ...]:
        """All parameters as expressions, in the order of a full point."""
        return symbols_of(self.all_parameters)

    @property
    @abstractmethod
    def parts(self) -> tuple[Likelihood, ...]:
        """The likelihoods of single datasets that this one is made of."""

    @property
    @abstractmethod
    def events(self) -> int: ...

    @property
    @abstractmethod
    def backend(self) -> Backend: ...

    @abstractmethod
    def evaluate_full(self, full: Array, order: int) -> Evaluation:
        """Evaluate at all parameters, of shape (sets, all parameters); derivatives by the floating ones."""

    @abstractmethod
    def evaluate_many(
        self, data: Sequence[PartData], sets: Integers, full: Array, order: int = 2
    ) -> Evaluation:
        """Evaluate datasets ``sets`` of many, one for each row of ``full``; ``data`` has one record for each part."""

    @abstractmethod
    def many_scores(self, data: Sequence[PartData], sets: Integers, full: Array) -> Array:
        """Return the covariance of the gradient for some of many datasets, as ``squared_scores`` does for one."""

    @abstractmethod
    def add_up(self, full: Array, matrix: Callable[[Likelihood, Array], Array]) -> Array:
        """Add up what ``matrix`` gives for each part at its own parameters, in shape (sets, P, P)."""

    @abstractmethod
    def own_points(self, x: Point) -> Iterator[tuple[Likelihood, Array]]:
        """Go through the parts, each with the point in its own floating parameters."""

    @abstractmethod
    def evaluate_again(self, full: Array) -> Evaluation:
        """Evaluate to the Hessian with boxes of their own for numerical integrals, made for these values."""

    @abstractmethod
    def with_parts(self, parts: Sequence[Likelihood]) -> Term:
        """Return the same sum of other parts."""

    @property
    def weighted(self) -> bool:
        """Whether events have weights, so that the inverse Hessian is not the covariance."""
        return any(part.has_weights for part in self.parts)

    @property
    def weight_scale(self) -> float:
        """The least mean weight of a part; distances to a minimum are as small as weights are.

        It is at most one where something is not weighted: a part, or a constraint.
        """
        weighted = [part.data for part in self.parts if part.has_weights]
        alone = len(weighted) == len(self.parts) and not any(part.constraints for part in self.parts)
        return least_mean_weight(weighted, alone=alone)

    @property
    def extended(self) -> bool:
        """Whether every part predicts its number of events."""
        return all(part.extended for part in self.parts)

    @property
    def entries(self) -> float:
        """How many events were counted, in bins or one by one."""
        return sum(part.entries for part in self.parts)

    @property
    def unit(self) -> str:
        """What its data are counted in: "events", "bins" or "points", or "rows" where parts differ."""
        units = {part.unit for part in self.parts}
        return units.pop() if len(units) == 1 else "rows"

    @property
    def passes(self) -> int:
        """How many times events were read from files for evaluations."""
        return sum(part.passes for part in self.parts)

    @property
    def ndata(self) -> float:
        """The number of bins and points, infinite if there are events that are not binned."""
        return sum(part.ndata for part in self.parts)

    @property
    def degrees(self) -> float:
        """The number of terms in the chi-square that twice the value is, infinite if it is none."""
        return sum(part.degrees for part in self.parts)

    @property
    def _parameters(self) -> dict[str, tuple[float, float] | None]:
        """The limits of the floating parameters, as iminuit looks for them."""
        return {p.name: (p.low, p.high) for p in self.parameters}

    def __call__(self, *x: Any, **named: Any) -> float:
        """Return minus the log likelihood, as a function of the floating parameters one by one, or of values by name."""
        if named:
            if x:
                raise OptionError("likelihood: is called with numbers one by one or by name, not both")
            return float(self.value(named))
        if len(x) == 1 and by_name(x[0]) is not None:
            return float(self.value(x[0]))
        if len(x) == 1 and np.ndim(x[0]):
            raise OptionError(
                "likelihood: is called with numbers one by one, nll(1.0, 2.0); use nll.value for arrays"
            )
        return self._value(x) if x or not self.parameters else float(self.value())

    def grad(self, *x: float) -> Array:
        """Return the first derivatives, as a function of the floating parameters one by one."""
        return self._grad(x)

    def _value(self, x: Sequence[float]) -> float:
        return float(self.value(np.array(x, np.float64)))

    def _grad(self, x: Sequence[float]) -> Array:
        return self.gradient(np.array(x, np.float64))

    def own_data(self) -> tuple[PartData, ...]:
        """Return the data as those of many sets, which share them."""
        return tuple(data for part in self.parts for data in part.own_data())

    def prepare(self, order: int) -> None:
        """Compile what an evaluation of this order needs."""
        for part in self.parts:
            if part.has_kernels:
                part.program(order)

    def elimination(self, floating: Sequence[str], limits: Array) -> Elimination | None:
        """Return what minimises over some floating parameters at any values of the others; None if there is nothing such."""
        return None

    @in_sentences
    def bad_events(self, x: Point) -> BadEvents:
        """Return the events of the first part that has any with a density that is zero, negative or not a number."""
        for part, own in self.own_points(x):
            bad = part.own_bad_events(own)
            if len(bad):
                break
        return bad

    def negative_density(self, values: Mapping[str, float]) -> str:
        """Describe where the density of a part is negative between events or inside of a bin, at values of all parameters; empty if nowhere."""
        return next(filter(None, (part.negative_place(values) for part in self.parts)), "")

    def integral_error(self, x: Point) -> float:
        """Return the relative error of the worst numerical integral, by an independent one; 0 if there is none."""
        return max(part.model_error(own) for part, own in self.own_points(x))

    @property
    def has_integrals(self) -> bool:
        """Whether a model is normalised numerically."""
        return any(part.numerical for part in self.parts)

    def kinked(self, floating: tuple[str, ...]) -> frozenset[str]:
        """Return the floating parameters that move a point where the slope of a log density jumps: the Hessian misses that."""
        return self.moving(moved_kinks, floating)

    def edges(self, floating: tuple[str, ...], limits: Array) -> tuple[float, ...]:
        """Return what each floating parameter moves: END, a point beyond which a density is zero; another PLACE, or a STEP; a FREQUENCY.

        ANGLE for those whose limits are one point, and 0 for others.
        """
        kinds = dict.fromkeys(floating, 0.0)
        for part in self.parts:
            moved = part.own_places
            for kind, names in ((PLACE, moved.places), (STEP, moved.steps), (FREQUENCY, moved.frequencies)):
                kinds |= dict.fromkeys(names & kinds.keys(), kind)
        kinds |= dict.fromkeys(turning(self.parts, floating, limits), ANGLE)
        kinds |= dict.fromkeys(self.moving(moved_edges, floating), END)
        return tuple(kinds.values())

    def stepping(self, floating: tuple[str, ...]) -> tuple[str, ...]:
        """Return the floating parameters that move a step of a density: where it passes an event, the likelihood jumps."""
        names = self.moving(moved_steps, floating)
        return tuple(name for name in floating if name in names)

    def moving(self, moved: Moved, floating: tuple[str, ...]) -> frozenset[str]:
        """Return the floating parameters that move some points of the density of any part, such as its kinks."""
        return frozenset[str]().union(*[part.own_moving(moved, floating) for part in self.parts])

    def compile_seconds(self) -> dict[str, float]:
        """Return the seconds spent in each stage of compiling, so far."""
        total: dict[str, float] = {}
        every = {id(compiled): compiled for part in self.parts for compiled in part.compiled.values()}
        for compiled in every.values():  # parts may share them
            total |= {stage: total.get(stage, 0.0) + seconds for stage, seconds in compiled.seconds.items()}
        return total

    @in_sentences
    def value(self, x: Point | None = None) -> Any:
        """Return minus the log likelihood: a float for one point, an array for many.

        Points are numbers in the order of ``parameters``, or values by name. The result is inf where an event has no
        positive density; ``bad_events`` says which.
        """
        points, one = self.points(x)
        evaluation = evaluated(self, points, 0)
        values = np.where(evaluation.bad > 0, np.inf, evaluation.value)
        return float(values[0]) if one else values

    @in_sentences
    def log_probability(self, x: Point | None = None) -> Any:
        """Return the log likelihood, as ``value`` takes points, and -inf outside the limits of the floating parameters.

        That is what samplers take: constraints are priors, and parameters without one have a flat prior in their limits.
        """
        points, one = self.points(x)
        own = points[:, self.floating_columns]
        low, high = np.array([(p.low, p.high) for p in self.parameters]).reshape(-1, 2).T
        inside = np.all((own >= low) & (own <= high), axis=1)
        logs = np.full(len(points), -np.inf)
        if inside.any():
            evaluation = evaluated(self, points[inside], 0)
            logs[inside] = np.where(evaluation.bad > 0, -np.inf, -evaluation.value)
        return float(logs[0]) if one else logs

    @in_sentences
    def gradient(self, x: Point | None = None) -> ArrayByName:
        """Return the first derivatives, (P,) or (B, P), also by name, as in ``gradient(x)["mu"]``; nan where an event has no positive density."""
        points, one = self.points(x)
        evaluation = evaluated(self, points, 1)
        self.check_smooth_at(x)
        evaluation.gradient[evaluation.bad > 0] = np.nan
        return self.by_name(evaluation.gradient, one)

    @in_sentences
    def hessian(self, x: Point | None = None) -> ArrayByName:
        """Return the second derivatives, (P, P) or (B, P, P), also by two names; nan where an event has no positive density."""
        points, one = self.points(x)
        evaluation = evaluated(self, points, 2)
        self.check_smooth_at(x)
        evaluation.hessian[evaluation.bad > 0] = np.nan
        return self.by_name(evaluation.hessian, one)

    def by_name(self, derivatives: Array, one: bool) -> ArrayByName:
        """Return derivatives of one point or of many, of which all axes but that of points are parameters."""
        rows = derivatives[0] if one else derivatives
        return by_names(rows, [p.name for p in self.parameters], derivatives.ndim - 1)

    def check_smooth_at(self, x: Point | None) -> None:
        """Refuse points at which numerical integrals have no derivatives that can be computed."""
        if any(part.has_unsolved_kinks for part in self.parts):
            for row in self.points(x)[0][:, self.floating_columns]:
                for part, own in self.own_points(row):
                    part.check_derivatives_at(own)

    @in_sentences
    def fisher(self, x: Point | None = None) -> ArrayByName:
        """Return the sums of w**2 dlnP/da dlnP/db over events, (P, P) or (B, P, P), as weighted fits need them."""
        points, one = self.points(x)
        sums = self.add_up(points, lambda part, full: part.fisher_sums(full))
        return self.by_name(sums, one)

    def points(self, x: Any) -> tuple[Array, bool]:
        """Complete floating parameters to all, in shape (sets, all parameters); also whether it is one point."""
        return full_points(x, self.all_parameters, self.floating_columns)

    def __add__(self, other: object) -> Term:
        if isinstance(other, Constraint | Quantity):
            return self.with_constraints(as_constraints(other))
        if isinstance(other, Term):
            if {id(part.origin) for part in self.parts} & {id(part.origin) for part in other.parts}:
                raise ModelError("likelihood: is in the sum already; its events would count twice")
            warn_of_copies(*([c for part in term.parts for c in part.constraints] for term in (self, other)))
            return Term.join([self, other])
        if hasattr(type(other), "__radd__") and not isinstance(other, Number | np.ndarray):
            return NotImplemented  # a cost function of iminuit adds this one to itself
        return self._refuse(other)

    def __radd__(self, other: object) -> Term:
        """Let ``sum([a, b])`` work, which starts at 0."""
        return self if isinstance(other, int) and other == 0 else self._refuse(other)

    def _refuse(self, *other: object) -> NoReturn:
        """Refuse arithmetic that is no sum of likelihoods."""
        got = f"got {other[0]!r:.60}" if other else "got another operation"
        raise ModelError(
            f"likelihood: is added to other likelihoods and to constraints alone, {got}; call nll.value for its numbers"
        )

    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse

    @cached_property
    def remade(self) -> dict[Changed, Term]:
        """The same likelihood with other limits or start values of its parameters, as far as they were needed."""
        return {}

    def fixing(self, names: Iterable[str]) -> Term:
        """Return the same likelihood without derivatives by some parameters, which stay where they are put."""
        fixed = self.fixed_names | frozenset(names)
        return self.with_parts([part.replaced(fixed=fixed) for part in self.parts])

    def with_constraints(self, constraints: tuple[Constraint, ...]) -> Term:
        """Return the same likelihood with more constraints."""
        first, *rest = self.parts
        known = dict.fromkeys(c for part in self.parts for c in part.constraints)
        new = (c for c in constraints if c not in known)
        return self.with_parts([first.replaced(constraints=(*first.constraints, *new)), *rest])
