"""Likelihoods for hepstats: its discoveries, limits, intervals and sWeights take ``Loss(likelihood)`` and ``Minimiser()``.

hepstats expects parameters with a current value, models and data that know them, and a loss: the interface of zfit.
These are the least that it needs; zfit itself is not needed, and does no harm where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data import Dataset
from morefit.errors import ModelError
from morefit.expr import Op, evaluate
from morefit.likelihood import Likelihood, Term, generate
from morefit.likelihood.table import TableLikelihood
from morefit.minimise import FitResult, fit
from morefit.model import Observable, Pdf
from morefit.model.compose import Sum
from morefit.text.suggest import suggest

TOLERANCE = 1e-3  # of fits: test statistics are differences of their minima


class Parameter:
    """A parameter with a current value, which floats or not; also what a constraint measured."""

    name = ""
    floating = independent = True  # on the class as well, in the place of what a class of zfit has there

    def __init__(self, name: str, value: float, low: float = -np.inf, high: float = np.inf) -> None:
        self.name, self.lower, self.upper = name, low, high
        self._value = value

    def value(self) -> float:
        """Return the current value."""
        return self._value

    def set_value(self, value: Any, clip: bool | None = None) -> AbstractContextManager[None]:
        """Set the value; as a context manager, until the end of the context."""
        before, self._value = self._value, float(np.asarray(value))
        return restored(self, before)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._value, dtype)

    def __repr__(self) -> str:
        return f"Parameter('{self.name}', {self._value:g})"


@contextmanager
def restored(parameter: Parameter, value: float) -> Iterator[None]:
    """Set the value back at the end."""
    yield
    parameter.set_value(value)


@dataclass(frozen=True, eq=False)
class Space:
    """The ranges of the observables of a model."""

    observables: tuple[Observable, ...]

    @property
    def obs(self) -> tuple[str, ...]:
        """The names of the observables."""
        return tuple(o.name for o in self.observables)

    @property
    def limit1d(self) -> tuple[float, float]:
        """The range of the only observable."""
        (x,) = self.observables
        return x.low, x.high

    def area(self) -> float:
        """Return the product of the widths of all ranges."""
        return float(np.prod([o.high - o.low for o in self.observables]))


class Data:
    """A dataset of a model."""

    def __init__(self, space: Space, dataset: Dataset) -> None:
        self.space, self.dataset = space, dataset

    @classmethod
    def from_numpy(cls, obs: Space, array: Any, weights: ArrayLike | None = None) -> Data:
        """Return the data of an array (events,) or (events, observables)."""
        return Data(obs, Dataset(np.asarray(array), list(obs.observables), weights=weights))

    @property
    def obs(self) -> tuple[str, ...]:
        """The names of the observables."""
        return self.space.obs

    @property
    def nevents(self) -> float:
        """The number of events, or the sum of their weights."""
        return self.dataset.sum_of_weights

    n_events = nevents

    @property
    def weights(self) -> Array | None:
        """The weights, None if events have none."""
        return self.dataset.weights

    def with_weights(self, weights: ArrayLike | None) -> Data:
        """Return the same events with other weights."""
        return Data(self.space, Dataset(dict(self.dataset.columns), weights=weights))

    def set_weights(self, weights: ArrayLike | None) -> None:
        """Give the events other weights."""
        self.dataset = self.with_weights(weights).dataset


class Sampler(Data):
    """Toys of a model, each in the place of the one before; an extended model draws a Poisson number of events."""

    def __init__(self, model: Model, events: int) -> None:
        super().__init__(model.space, model.part.without_events().data)
        self.model, self.events = model, events
        self.params = {p.name: p.value() for p in model.get_params()}

    def resample(self, param_values: Mapping[Parameter, Any] | None = None) -> None:
        """Draw a toy where parameters were when the sampler was made, but for some values."""
        self.params |= {p.name: float(np.asarray(value)) for p, value in (param_values or {}).items()}
        part, seed = self.model.part, int(self.model.rng.integers(2**63))
        self.dataset = generate(
            part.model,
            None if self.model.is_extended else self.events,
            truth={**self.model.values(), **self.params},
            seed=seed,
            given=part.data if part.model.given else None,
        )


@dataclass(eq=False)
class Model:
    """A density with the current values of parameters; that of a part of a likelihood, or of one of its components."""

    part: Likelihood
    pdf_: Pdf
    parameters: Mapping[str, Parameter]  # of the whole likelihood
    rng: np.random.Generator
    yield_: Parameter | None = None

    @property
    def space(self) -> Space:
        """The ranges of the observables."""
        return Space(self.part.model.observables)

    @property
    def is_extended(self) -> bool:
        """Whether the model predicts the number of events."""
        return self.yield_ is not None or self.pdf_.expected_events() is not None

    def get_params(self, *_: Any, **__: Any) -> list[Parameter]:
        """Return the parameters that float in the likelihood, or did at first."""
        return [self.parameters[p.name] for p in self.pdf_.parameters if p.name in self.parameters]

    def values(self) -> dict[str, float]:
        """Return the current values of all parameters of the density, fixed ones included."""
        each = self.pdf_.parameters
        return {
            p.name: self.parameters[p.name].value() if p.name in self.parameters else p.start for p in each
        }

    def pdf(self, x: Any) -> Array:
        """Return the normalised density of each event."""
        return self.pdf_.pdf(x.dataset if isinstance(x, Data) else x, self.values())

    def ext_pdf(self, x: Any) -> Array:
        """Return the density times the expected number of events."""
        expected = self.pdf_.expected_events()
        if self.yield_ is not None:
            return self.yield_.value() * self.pdf(x)
        assert expected is not None
        return float(evaluate(expected, self.values())) * self.pdf(x)

    def integrate(self, limits: tuple[float, float]) -> float:
        """Return the probability of a range of the only observable."""
        return self.pdf_.integrate({self.space.obs[0]: limits}, self.values())

    def sample(self, n: int | None = None) -> Data:
        """Draw events."""
        sampler = Sampler(self, 0 if n is None else n)
        sampler.resample()
        return sampler

    def create_sampler(self, n: int) -> Sampler:
        """Return what draws toys."""
        return Sampler(self, int(n))

    def get_yield(self) -> Parameter | None:
        """Return the yield of a component."""
        return self.yield_

    def get_models(self) -> list[Model]:
        """Return the components of a sum with yields that are parameters."""
        if not (isinstance(self.pdf_, Sum) and self.pdf_.yields):
            return []
        names = [one.name if one.op is Op.SCALAR else None for one in self.pdf_.yields]
        if wrong := [
            str(y) for y, name in zip(self.pdf_.yields, names, strict=True) if name not in self.parameters
        ]:
            raise ModelError(
                f"hepstats: the yields of a sum must be floating parameters, got {wrong[0]}; use mf.sweights"
            )
        return [
            Model(self.part, pdf, self.parameters, self.rng, self.parameters[str(name)])
            for name, pdf in zip(names, self.pdf_.pdfs, strict=True)
        ]


@dataclass(eq=False)
class Measured:
    """A constraint, with the values that it measured as parameters, which toys set."""

    part: int
    number: int  # among the constraints of its part
    loss: Loss

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What was measured."""
        own = self.loss.likelihood.parts[self.part].constraints[self.number]
        return tuple(
            Parameter(f"measured {self.part} {self.number} {k}", value)
            for k, value in enumerate(own.measured)
        )

    def sample(self, n: int) -> dict[Parameter, Array]:
        """Draw what toys measure at the current values."""
        own = self.loss.likelihood.parts[self.part].constraints[self.number]
        seed = int(self.loss.rng.integers(2**63))
        drawn = own.draw(self.loss.values(), seed, np.arange(n), around_data=False)
        return {p: drawn[:, k] for k, p in enumerate(self.parameters)}


@dataclass(eq=False)
class Loss:
    """A likelihood of events as hepstats takes it, or a sum of such ones; ``seed`` is that of its toys.

    ``loss["name"]`` is the parameter of a name, for ``POI`` and ``POIarray``. Toys draw what constraints measured anew.
    """

    likelihood: Term
    seed: int | None = None
    data: list[Data] = field(default_factory=list)
    params: dict[str, Parameter] = field(default_factory=dict)
    model: list[Model] = field(init=False)
    errordef = 0.5

    def __post_init__(self) -> None:
        likelihood: object = self.likelihood
        if not isinstance(likelihood, Term) or any(isinstance(p, TableLikelihood) for p in likelihood.parts):
            raise ModelError(
                f"hepstats: takes likelihoods of events, as mf.Likelihood(model, data), got {self.likelihood!r}"
            )
        self.rng = np.random.default_rng(self.seed)
        if not self.params:
            kind = parameter_class()
            self.params = {p.name: kind(p.name, p.start, p.low, p.high) for p in self.likelihood.parameters}
        self.model = [Model(part, part.model, self.params, self.rng) for part in self.likelihood.parts]
        if not self.data:
            self.data = [Data(model.space, model.part.data) for model in self.model]
        self.constraints = [
            Measured(k, j, self)
            for k, part in enumerate(self.likelihood.parts)
            for j in range(len(part.constraints))
        ]

    def __getitem__(self, name: str) -> Parameter:
        """Return the parameter of a name."""
        if name not in self.params:
            raise ModelError(
                f"hepstats: parameter '{name}': does not float in the likelihood; {suggest(name, self.params)}"
            )
        return self.params[name]

    def get_params(self, *_: Any, **__: Any) -> list[Parameter]:
        """Return the parameters that float in the likelihood, or did at first."""
        return list(self.params.values())

    def values(self) -> dict[str, float]:
        """Return all current values, fixed ones included."""
        known = {p.name: p.start for p in self.likelihood.all_parameters}
        return known | {name: p.value() for name, p in self.params.items()}

    def current(self) -> Term:
        """Return the likelihood of the data and of what constraints measure at present."""
        parts = list(self.likelihood.parts)
        for k, data in enumerate(self.data):
            own = [
                c.measuring([p.value() for p in m.parameters])
                for c, m in zip(
                    parts[k].constraints, (m for m in self.constraints if m.part == k), strict=True
                )
            ]
            parts[k] = parts[k].replaced(data=data.dataset, constraints=tuple(own))
        return self.likelihood.with_parts(parts)

    def value(self, **_: Any) -> float:
        """Return minus the log likelihood at the current values."""
        return float(self.current().value(self.values()))

    def create_new(
        self, model: Sequence[Model], data: Sequence[Data], constraints: Sequence[Measured] = ()
    ) -> Loss:
        """Return the same likelihood of other data; parameters are shared."""
        other = Loss(self.likelihood, None, list(data), self.params)
        other.rng, other.constraints = self.rng, list(constraints)
        return other


@dataclass(eq=False)
class Minimum:
    """The result of a fit; it goes through the values of the parameters in their order."""

    loss: Loss
    result: FitResult
    params: dict[Parameter, dict[str, float]]

    @property
    def fmin(self) -> float:
        """Minus the log likelihood."""
        return self.result.nll

    @property
    def valid(self) -> bool:
        """Whether the fit has a minimum."""
        return self.result.valid

    converged = valid

    def covariance(self, params: Sequence[Parameter] | None = None) -> Array:
        """Return the covariance matrix of the floating parameters, or of some."""
        return (
            self.result.covariance if params is None else self.result.covariance_of(*(p.name for p in params))
        )

    def hesse(self, *_: Any, **__: Any) -> dict[Parameter, dict[str, float]]:
        """Return the errors."""
        return {p: {"error": numbers["error"]} for p, numbers in self.params.items()}

    def __iter__(self) -> Iterator[float]:
        return iter([numbers["value"] for numbers in self.params.values()])


class Minimiser:
    """``mf.fit`` as hepstats calls it: parameters that do not float stay, and the others move to the minimum."""

    verbosity = 0

    def minimize(self, loss: Loss, **_: Any) -> Minimum:
        """Minimise a loss from the current values."""
        fixed = {p.name: p.value() for p in loss.get_params() if not p.floating}
        start = {p.name: float(np.clip(p.value(), p.lower, p.upper)) for p in loss.get_params() if p.floating}
        result = fit(loss.current(), start=start, fixed=fixed, tolerance=TOLERANCE, errors="naive")
        params = {
            p: {"value": result.values[p.name], "error": result.errors[p.name]} for p in loss.get_params()
        }
        for parameter, numbers in params.items():
            parameter.set_value(numbers["value"])
        return Minimum(loss, result, params)


@cache
def parameter_class() -> type[Parameter]:
    """Return the class of parameters; where zfit is installed, a subclass that zfit accepts as its own.

    hepstats lets zfit set the values of all parameters if it can be imported, whoever made them.
    """
    if find_spec("zfit") is None:
        return Parameter
    kinds = import_module("zfit").Parameter.__mro__
    return type("Parameter", (Parameter, next(k for k in kinds if k.__name__ == "ZfitParameter")), {})
