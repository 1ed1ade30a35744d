"""Acceptances for ``mf.Efficiency``: expansions, expansions made from simulation with their errors, accepted samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, frozen_copy
from morefit.data import Dataset
from morefit.errors import DataError, ModelError
from morefit.expr import Op, leaves
from morefit.functions.polynomials import MAX_DEGREE
from morefit.likelihood import Constraint, constraint
from morefit.model import Observable, Parameter, Pdf
from morefit.model.acceptance import Expansion, Simulation, check_kind, check_observables, values_on_grid
from morefit.validate import whole_number

__all__ = ["Expansion", "SampledExpansion", "Simulation", "from_sample", "simulation"]


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
        rng = np.random.default_rng(seed)
        drawn = rng.multivariate_normal(self.numbers.ravel(), self.covariance, method="eigh")
        return Expansion(self.observables, drawn.reshape(self.coefficients.shape), self.kind)

    def floating(self, prefix: str) -> tuple[Expansion, Constraint]:
        """Return an expansion whose coefficients are parameters, and the constraint that their errors make.

        Parameters are named by the prefix and their orders, as in ``acc_0_2``; coefficients without an error stay numbers.
        """
        free = np.flatnonzero(np.diag(self.covariance) > 0)
        coefficients, numbers = self.coefficients.ravel().copy(), self.numbers.ravel()
        for k in free:
            order = "_".join(map(str, np.unravel_index(k, self.coefficients.shape)))
            coefficients[k] = Parameter(f"{prefix}_{order}", numbers[k])
        measured = constraint(list(coefficients[free]), numbers[free], self.covariance[np.ix_(free, free)])
        return Expansion(self.observables, coefficients.reshape(self.coefficients.shape), self.kind), measured

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; from {self.events} events)"


def from_sample(
    sample: Any,
    observables: Sequence[Observable] | Observable,
    *,
    orders: int | Sequence[int],
    generated: Any = None,
    kind: str = "legendre",
    weights: ArrayLike | str | None = None,
) -> SampledExpansion:
    """Return the acceptance of accepted simulated events as an expansion in polynomials, with its errors.

    Parameters
    ----------
    sample : accepted events, anything a dataset can be made of.
    orders : the highest order in each observable, or one for all.
    generated : how events were distributed before they were accepted or not: None if uniformly, a density at the start
        values of its parameters, or a sample of all generated events, the accepted ones among them.
    kind : the polynomials, "legendre" or "chebyshev".
    weights : of the accepted events; those of the dataset by default.

    With a generated sample, coefficients are those of the least squares between acceptance and expansion, and the scale is
    that of the acceptance. Else they are moments, and the acceptance is one on average over the ranges.
    """
    known, polynomials = check_observables(observables), check_kind(kind)
    highest = check_orders(orders, len(known))
    accepted = Dataset(sample, known, weights=weights)
    shape = tuple(n + 1 for n in highest)
    if len(accepted) <= np.prod(shape):
        raise DataError(
            f"acceptance: {np.prod(shape)} coefficients need more events, got {len(accepted)}; lower the orders"
        )
    if generated is None or isinstance(generated, Pdf):
        coefficients, covariance = by_moments(accepted, known, generated, highest)
    else:
        coefficients, covariance = by_least_squares(accepted, Dataset(generated, known), known, highest)
    if polynomials == "chebyshev":
        turn: Array = np.ones((1, 1))
        for n in highest:
            turn = np.kron(turn, to_chebyshev(n)).astype(np.float64)
        coefficients, covariance = turn @ coefficients, turn @ covariance @ turn.T
    made = SampledExpansion(
        known, coefficients.reshape(shape), polynomials, covariance=covariance, events=len(accepted)
    )
    warn_if_negative(made)
    return made


def simulation(
    sample: Any,
    observables: Sequence[Observable] | Observable,
    *,
    generated: Pdf | None = None,
    weights: ArrayLike | str | None = None,
) -> Simulation:
    """Return accepted simulated events as the acceptance of ``mf.Efficiency``, which they normalise without a formula.

    ``generated`` is the density that the events had before they were accepted or not, at the start values of its parameters;
    None if it was uniform. The error that the size of the sample causes is part of the errors of a fit.
    """
    known = tuple(observables) if isinstance(observables, Sequence) else (observables,)
    accepted = Dataset(sample, known, weights=weights)
    if not len(accepted):
        raise DataError("acceptance: the simulation has no events")
    per_event = flat_weights(accepted, known, generated) / accepted.sum_of_weights
    return Simulation(known, {o.name: accepted[o.name] for o in known}, per_event)


# ------------------------------------------------------------------------------------ coefficients


def by_moments(
    accepted: Dataset, observables: Sequence[Observable], generated: Pdf | None, orders: Sequence[int]
) -> tuple[Array, Array]:
    """Return coefficients as means of polynomials over events, and their covariance."""
    weights = flat_weights(accepted, observables, generated)
    norms = reduce(np.multiply.outer, [2.0 * np.arange(n + 1) + 1 for n in orders])
    each = polynomials_at(accepted, observables, orders) * np.ravel(norms)
    total = weights.sum()
    coefficients = weights @ each / total
    coefficients[0] = 1.0  # to the last bit, so that it has no error
    scores = weights[:, None] * (each - coefficients) / total
    return coefficients, scores.T @ scores


def by_least_squares(
    accepted: Dataset, generated: Dataset, observables: Sequence[Observable], orders: Sequence[int]
) -> tuple[Array, Array]:
    """Return the coefficients for which the expansion is closest to accepted or not, and their covariance."""
    kept, every = (polynomials_at(data, observables, orders) for data in (accepted, generated))
    own, full = event_weights(accepted), event_weights(generated)
    matrix = every.T @ (full[:, None] * every)
    if len(generated) < len(accepted) or np.linalg.cond(matrix) > 1 / np.sqrt(np.finfo(float).eps):
        raise DataError(
            f"acceptance: {len(generated)} generated events do not determine {len(matrix)} coefficients with"
            f" {len(accepted)} accepted; give all generated events, or lower the orders"
        )
    inverse = np.linalg.inv(matrix)
    coefficients = inverse @ (own @ kept)
    # the score of an event is w (accepted - efficiency) P, accepted being 1 or 0
    inside, outside = own**2 * (1 - 2 * kept @ coefficients), (full * (every @ coefficients)) ** 2
    middle = kept.T @ (inside[:, None] * kept) + every.T @ (outside[:, None] * every)
    return coefficients, inverse @ middle @ inverse


def polynomials_at(data: Dataset, observables: Sequence[Observable], orders: Sequence[int]) -> Array:
    """Return all products of Legendre polynomials at each event, (events, products)."""
    products = np.ones((len(data), 1))
    for o, n in zip(observables, orders, strict=True):
        t = (data[o.name] - 0.5 * (o.low + o.high)) / (0.5 * (o.high - o.low))
        one = np.polynomial.legendre.legvander(t, n)
        products = (products[:, :, None] * one[:, None, :]).reshape(len(data), -1)
    return products


def flat_weights(data: Dataset, observables: Sequence[Observable], generated: Pdf | None) -> Array:
    """Return the weights of events divided by the density that they were generated with."""
    if generated is None:
        return event_weights(data) * np.prod([o.high - o.low for o in observables])
    if {o.name for o in generated.observables} != {o.name for o in observables}:
        raise ModelError(
            f"acceptance: generated must be a density in {', '.join(o.name for o in observables)},"
            f" got one in {', '.join(o.name for o in generated.observables)}"
        )
    density = generated.pdf(data)
    if not (density > 0).all():
        raise ModelError(
            f"acceptance: the generated density must be positive at all events, got {density.min():g}; check its parameters"
        )
    return np.asarray(event_weights(data) / density, np.float64)


def event_weights(data: Dataset) -> Array:
    return np.ones(len(data)) if data.weights is None else data.weights


def to_chebyshev(order: int) -> Array:
    """Return the matrix that turns coefficients of Legendre polynomials into those of Chebyshev polynomials."""
    columns = np.zeros((order + 1, order + 1))
    for k, unit in enumerate(np.eye(order + 1)):
        plain = np.polynomial.legendre.leg2poly(unit)
        turned = np.polynomial.chebyshev.poly2cheb(plain)
        columns[: len(turned), k] = turned
    return columns


# ------------------------------------------------------------------------------------ checks


def check_orders(orders: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return the highest order in each observable."""
    each = [orders] * count if np.ndim(orders) == 0 else list(orders)  # type: ignore[arg-type]
    known = tuple(whole_number("acceptance: an order", n, error=ModelError) for n in each)
    if len(known) != count:
        raise ModelError(f"acceptance: needs one order for each of {count} observables, got {len(known)}")
    if max(known) > MAX_DEGREE or not any(known):
        raise ModelError(
            f"acceptance: orders must lie in [0, {MAX_DEGREE}], not all of them 0, got {list(known)}"
        )
    return known


def warn_if_negative(acceptance: Expansion) -> None:
    """Warn where an expansion is negative, which ``mf.Efficiency`` refuses."""
    if not leaves(Op.COLUMN, acceptance.expr):
        return
    heights, points = values_on_grid(acceptance.expr, {})
    if heights.min() < 0:
        lowest = int(heights.argmin())
        place = ", ".join(f"{name} = {grid.ravel()[lowest]:.4g}" for name, grid in points.items())
        warnings.warn(
            f"acceptance: negative in {np.mean(heights < 0):.2%} of the ranges, down to {heights.min():.3g} at {place};"
            " change the orders, or use more events",
            UserWarning,
            stacklevel=3,
        )
