"""Acceptances with the errors of the simulated events that they were made from: expansions, histograms, splines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from morefit.arrays import Array, frozen_copy
from morefit.expr import Expr, Quantity, to_expr
from morefit.expr.interpolate import piecewise_family
from morefit.functions import spline
from morefit.likelihood import Constraint, constraint
from morefit.model import Observable, Parameter
from morefit.model.acceptance import Expansion, nested_sum
from morefit.model.templates.histogram import histogram_function

Made = tuple[Array, Array]  # coefficients or values, and their covariance


class SampledExpansion(Expansion):
    """An expansion made from simulated events, with the covariance matrix of its coefficients in C order."""

    __slots__ = ("covariance", "events")

    def __init__(
        self,
        observables: Sequence[Observable],
        coefficients: Array,
        kind: str,
        *,
        covariance: Array,
        events: int,
    ) -> None:
        super().__init__(observables, coefficients, kind)
        self.covariance, self.events = frozen_copy(covariance, np.float64), events

    @property
    def numbers(self) -> Array:
        """The coefficients as numbers."""
        return np.array([c.number for c in self.coefficients.ravel()]).reshape(self.coefficients.shape)

    @property
    def errors(self) -> Array:
        """The errors of the coefficients."""
        return np.sqrt(np.diag(self.covariance)).reshape(self.coefficients.shape)

    def varied(self, seed: int) -> Expansion:
        """Return another expansion that the errors of this one allow, for systematic studies."""
        return Expansion(self.observables, fluctuated(self.numbers, self.covariance, seed), self.kind)

    def floating(self, prefix: str) -> tuple[Expansion, Constraint]:
        """Return an expansion whose coefficients are parameters, and the constraint that their errors make.

        Parameters are named by the prefix and their orders, as in ``acc_0_2``; coefficients without an error stay numbers.
        """
        coefficients, measured = as_parameters(prefix, self.numbers, self.covariance)
        return Expansion(self.observables, coefficients, self.kind), measured

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; from {self.events} events)"


class SampledTable(Quantity):
    """An acceptance in bins, or at the knots of a spline, made from simulated events, with its covariance in C order.

    ``relative`` says that its scale is not known: it is one on average over the ranges.
    """

    __slots__ = ("__weakref__", "covariance", "edges", "events", "kind", "numbers", "observables", "relative")

    def __init__(
        self,
        observables: tuple[Observable, ...],
        edges: Sequence[Array],
        kind: str,
        *,
        made: Made,
        events: int,
        relative: bool,
    ) -> None:
        shape = [len(e) - (kind == "histogram") for e in edges]
        self.observables, self.edges, self.kind = observables, tuple(edges), kind
        self.numbers = frozen_copy(made[0].reshape(shape), np.float64)
        self.covariance, self.events, self.relative = frozen_copy(made[1], np.float64), events, relative

    @property
    def expr(self) -> Expr:
        return self.function(self.numbers)

    @property
    def errors(self) -> Array:
        """The errors of the numbers."""
        return np.sqrt(np.diag(self.covariance)).reshape(self.numbers.shape)

    def function(self, values: Any) -> Expr:
        """Return the acceptance with other values in its bins or at its knots."""
        if self.kind == "spline":
            return spline(self.observables[0], self.edges[0], values)
        if values.dtype != object:
            return histogram_function(self.observables, (values, *self.edges))
        cells = [
            piecewise_family(o.expr, e, np.eye(len(e) - 1)[:, None])
            for o, e in zip(self.observables, self.edges, strict=True)
        ]
        return nested_sum(values, cells)

    def varied(self, seed: int) -> Expr:
        """Return another acceptance that the errors of this one allow, for systematic studies; none of its values is negative."""
        return self.function(np.maximum(fluctuated(self.numbers, self.covariance, seed), 0.0))

    def floating(self, prefix: str) -> tuple[Expr, Constraint]:
        """Return the acceptance with parameters as its values, and the constraint that their errors make.

        Parameters are named by the prefix and their places, as in ``acc_0_2``; values without an error stay numbers. If the
        scale is not known, it gets the error of the number of events: it cancels in ``mf.Efficiency``.
        """
        scale = np.outer(self.numbers, self.numbers) / self.events if self.relative else 0.0
        values, measured = as_parameters(prefix, self.numbers, self.covariance + scale)
        return self.function(values), measured

    def __repr__(self) -> str:
        names, size = ", ".join(o.name for o in self.observables), " x ".join(map(str, self.numbers.shape))
        return f"Acceptance({names}; {self.kind}, {size} values; from {self.events} events)"


def fluctuated(numbers: Array, covariance: Array, seed: int) -> Array:
    """Draw numbers with a covariance."""
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(numbers.ravel(), covariance, method="eigh").reshape(numbers.shape)


def as_parameters(prefix: str, numbers: Array, covariance: Array) -> tuple[Any, Constraint]:
    """Return expressions that are parameters where numbers have an error, and the constraint of these."""
    values = np.array([to_expr(number) for number in numbers.ravel()], object)
    free = np.flatnonzero(np.diag(covariance) > 0)
    for k in free:
        place = "_".join(map(str, np.unravel_index(k, numbers.shape)))
        values[k] = Parameter(f"{prefix}_{place}", numbers.ravel()[k])
    measured = constraint(list(values[free]), numbers.ravel()[free], covariance[np.ix_(free, free)])
    return np.array([to_expr(v) for v in values], object).reshape(numbers.shape), measured
