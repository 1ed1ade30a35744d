"""What hepstats expects of parameters, models and data: those of zfit, as far as it uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import Op, evaluate
from morefit.likelihood import Likelihood, generate
from morefit.model import Observable, Pdf


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


@cache
def parameter_class() -> type[Parameter]:
    """Return the class of parameters; where zfit is installed, a subclass that zfit accepts as its own.

    hepstats lets zfit set the values of all parameters if it can be imported, whoever made them.
    """
    if find_spec("zfit") is None:
        return Parameter
    kinds = import_module("zfit").Parameter.__mro__
    return type("Parameter", (Parameter, next(k for k in kinds if k.__name__ == "ZfitParameter")), {})


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
        extended = self.pdf_.expected_events() is not None
        branches = [(w, pdf) for _, w, pdf in self.pdf_.branches() if w is not None] if extended else []
        if len(branches) < 2:
            return []
        names = [weight.name if weight.op is Op.SCALAR else None for weight, _ in branches]
        if wrong := [
            str(weight)
            for (weight, _), name in zip(branches, names, strict=True)
            if name not in self.parameters
        ]:
            raise ModelError(
                f"hepstats: the yields of a sum must be floating parameters, got {wrong[0]}; use mf.sweights"
            )
        return [
            Model(self.part, pdf, self.parameters, self.rng, self.parameters[str(name)])
            for name, (_, pdf) in zip(names, branches, strict=True)
        ]
