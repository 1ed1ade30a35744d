"""Likelihoods for hepstats: its discoveries, limits, intervals and sWeights take ``Loss(likelihood)`` and ``Minimiser()``.

hepstats expects parameters with a current value, models and data that know them, and a loss: the interface of zfit.
These are the least that it needs; zfit itself is not needed, and does no harm where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.interop.hepstats_parts import Data, Model, Parameter, parameter_class
from morefit.likelihood import Term
from morefit.likelihood.table import TableLikelihood
from morefit.minimise import FitResult, fit
from morefit.text.suggest import suggest

TOLERANCE = 1e-3  # of fits: test statistics are differences of their minima


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
