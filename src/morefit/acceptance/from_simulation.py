"""Acceptances made from simulated events: coefficients, values in bins and at knots, and the covariance of these."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.acceptance.sampled import Made, SampledExpansion, SampledTable
from morefit.arrays import Array
from morefit.data.dataset import Dataset
from morefit.errors import DataError, ModelError
from morefit.expr import Op, leaves
from morefit.expr.interpolate import checked_axis
from morefit.functions import MAX_DEGREE, basis
from morefit.model import Observable, Pdf
from morefit.model.acceptance import (
    BASES,
    Expansion,
    Simulation,
    check_kind,
    check_observables,
    values_on_grid,
)
from morefit.model.templates.histogram import MAX_AXES, covering
from morefit.text.arguments import in_sentences
from morefit.validate import whole_number

ROUNDING = 1e-9  # of an efficiency of one


def expansion_of(
    accepted: Dataset,
    generated: Pdf | Dataset | None,
    observables: tuple[Observable, ...],
    *,
    orders: tuple[int, ...],
    kind: str,
) -> SampledExpansion:
    """Return an expansion in polynomials."""
    shape = tuple(n + 1 for n in orders)
    check_size(accepted, int(np.prod(shape)), "lower the orders")
    if isinstance(generated, Dataset):
        made = by_least_squares(accepted, generated, lambda data: polynomials_at(data, observables, orders))
    else:
        norms = reduce(np.multiply.outer, [2.0 * np.arange(n + 1) + 1 for n in orders])
        each = polynomials_at(accepted, observables, orders) * np.ravel(norms)
        made = by_moments(flat_weights(accepted, observables, generated), each)
    coefficients, covariance = made
    if kind == "chebyshev":
        turn: Array = np.ones((1, 1))
        for n in orders:
            turn = np.kron(turn, to_chebyshev(n)).astype(np.float64)
        coefficients, covariance = turn @ coefficients, turn @ covariance @ turn.T
    return SampledExpansion(
        observables, coefficients.reshape(shape), kind, covariance=covariance, events=len(accepted)
    )


def table_of(
    accepted: Dataset,
    generated: Pdf | Dataset | None,
    observables: tuple[Observable, ...],
    *,
    edges: list[Array],
    kind: str,
) -> SampledTable:
    """Return an acceptance in bins, or at the knots of a spline."""
    size = int(np.prod([len(e) - (kind == "histogram") for e in edges]))
    check_size(accepted, size, "use fewer bins")
    if kind == "histogram":
        made = in_bins(accepted, generated, observables, edges)
    else:
        name, knots = observables[0].name, edges[0]
        if isinstance(generated, Dataset):
            made = by_least_squares(accepted, generated, lambda data: splines_at(data[name], knots))
        else:
            weights = flat_weights(accepted, observables, generated)
            made = by_moments(weights, splines_at(accepted[name], knots) @ inverse_overlaps(knots))
    return SampledTable(
        observables, edges, kind, made=made, events=len(accepted), relative=not isinstance(generated, Dataset)
    )


def in_bins(
    accepted: Dataset,
    generated: Pdf | Dataset | None,
    observables: Sequence[Observable],
    edges: Sequence[Array],
) -> Made:
    """Return the acceptance in bins, and its covariance."""
    shape = [len(e) - 1 for e in edges]

    def sums(data: Dataset, weights: Array) -> Array:
        axes = [cells_of(data[o.name], e) for o, e in zip(observables, edges, strict=True)]
        cells = np.ravel_multi_index(axes, shape)
        return np.bincount(cells, weights, int(np.prod(shape))).astype(np.float64)

    if isinstance(generated, Dataset):
        own, full = event_weights(accepted), event_weights(generated)
        counts = sums(generated, full)
        if empty := int(np.sum(counts <= 0)):
            raise DataError(
                f"acceptance: {empty} of {counts.size} bins have no generated events; use fewer bins"
            )
        shares = sums(accepted, own) / counts
        if over := int(np.sum(shares > 1 + ROUNDING)):
            raise DataError(
                f"acceptance: more events are accepted than generated in {over} of {counts.size} bins; give all generated events"
            )
        variances = sums(accepted, own**2) * (1 - 2 * shares) + shares**2 * sums(generated, full**2)
        return shares, np.diag(np.maximum(variances, 0) / counts**2)
    weights = flat_weights(accepted, observables, generated)
    sizes = np.ravel(reduce(np.multiply.outer, [np.diff(e) / (e[-1] - e[0]) for e in edges]))
    heights, squares = sums(accepted, weights) / weights.sum() / sizes, sums(accepted, weights**2)
    crossed = np.outer(heights, squares / sizes)
    covariance = (
        np.diag(squares / sizes**2) - crossed - crossed.T + np.outer(heights, heights) * squares.sum()
    )
    return heights, covariance / weights.sum() ** 2


def by_moments(weights: Array, each: Array) -> Made:
    """Return coefficients as means of functions over events, (events, functions), and their covariance."""
    total = weights.sum()
    constant = (each == each[0]).all(axis=0)  # to the last bit, so that it has no error
    coefficients = np.where(constant, each[0], weights @ each / total)
    scores = weights[:, None] * (each - coefficients) / total
    return coefficients, scores.T @ scores


def by_least_squares(accepted: Dataset, generated: Dataset, functions: Callable[[Dataset], Array]) -> Made:
    """Return the coefficients of functions for which their sum is closest to accepted or not, and their covariance."""
    passing, every = functions(accepted), functions(generated)
    own, full = event_weights(accepted), event_weights(generated)
    matrix = every.T @ (full[:, None] * every)
    if len(generated) < len(accepted) or np.linalg.cond(matrix) > 1 / np.sqrt(np.finfo(float).eps):
        raise DataError(
            f"acceptance: {len(generated)} generated events do not determine {len(matrix)} coefficients with"
            f" {len(accepted)} accepted; give all generated events, or lower the orders or bins"
        )
    inverse = np.linalg.inv(matrix)
    coefficients = inverse @ (own @ passing)
    # the score of an event is w (accepted - efficiency) P, accepted being 1 or 0
    inside, outside = own**2 * (1 - 2 * passing @ coefficients), (full * (every @ coefficients)) ** 2
    middle = passing.T @ (inside[:, None] * passing) + every.T @ (outside[:, None] * every)
    return coefficients, inverse @ middle @ inverse


def splines_at(x: Array, knots: Array) -> Array:
    """Return at each point the splines that are one at one knot and zero at the others, (points, knots)."""
    cells = cells_of(x, knots)
    distances, rows = x - knots[cells], basis(knots, "not-a-knot")
    total: Array = np.zeros((len(knots), len(x)))
    for power in (3, 2, 1, 0):
        total = total * distances + rows[:, power, cells]
    return total.T


def inverse_overlaps(knots: Array) -> Array:
    """Return the inverse of the mean products of these splines over the range."""
    nodes, weights = np.polynomial.legendre.leggauss(4)  # exact for the squares of cubics
    widths = np.diff(knots)[:, None]
    at = splines_at(np.ravel(knots[:-1, None] + widths * (1 + nodes) / 2), knots)
    return np.linalg.inv(at.T @ (np.ravel(widths * weights / 2)[:, None] * at) / (knots[-1] - knots[0]))


def cells_of(x: Array, edges: Array) -> Any:
    """Return the number of the cell of each value; those at the last edge are in the last."""
    return np.searchsorted(edges[1:-1], x, side="right")


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


def check_size(accepted: Dataset, count: int, remedy: str) -> None:
    """Refuse fewer events than what is to be determined from them."""
    if len(accepted) <= count:
        raise DataError(f"acceptance: {count} coefficients need more events, got {len(accepted)}; {remedy}")


TABLES = {"histogram": MAX_AXES, "spline": 1}  # kinds, and the observables that they may have
MIN_SPLINE_BINS = 3  # of a cubic spline without conditions at its ends


@in_sentences
def from_sample(
    sample: Any,
    observables: Sequence[Observable] | Observable,
    *,
    orders: int | Sequence[int] | None = None,
    bins: Any = None,
    generated: Any = None,
    kind: str = "legendre",
    weights: ArrayLike | str | None = None,
) -> SampledExpansion | SampledTable:
    """Return the acceptance of accepted simulated events: an expansion in polynomials, a histogram or a spline, with its errors.

    Parameters
    ----------
    sample : accepted events, anything a dataset can be made of.
    orders : of polynomials: the highest in each observable, or one for all.
    bins : of a histogram, or between the knots of a spline: their number or their edges, in each observable or one for all.
    generated : how events were distributed before they were accepted or not: None if uniformly, a density at the start
        values of its parameters, or a sample of all generated events, the accepted ones among them.
    kind : "legendre" or "chebyshev" polynomials, a "histogram" in up to three observables, or a cubic "spline" in one.
    weights : of the accepted events; those of the dataset by default.

    With a generated sample, coefficients and values are those of the least squares between acceptance and function, in bins
    the ratio of events, and the scale is that of the acceptance. Else they are moments, and the acceptance is one on
    average over the ranges.
    """
    known = check_observables(observables)
    if kind not in TABLES:
        check_kind(kind, [*BASES, *TABLES])
    wanted, other = ("bins", "orders") if kind in TABLES else ("orders", "bins")
    options = {"bins": bins, "orders": orders}
    if options[wanted] is None or options[other] is not None:
        raise ModelError(f"acceptance: kind '{kind}' needs {wanted}=, and no {other}=")
    accepted = Dataset(sample, known, weights=weights)
    source = generated if generated is None or isinstance(generated, Pdf) else Dataset(generated, known)
    made: SampledExpansion | SampledTable
    if kind in TABLES:
        made = table_of(accepted, source, known, edges=check_bins(bins, known, kind), kind=kind)
    else:
        made = expansion_of(accepted, source, known, orders=check_orders(orders, len(known)), kind=kind)
    warn_if_negative(made)
    return made


@in_sentences
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


# ------------------------------------------------------------------------------------ checks


def check_orders(orders: Any, count: int) -> tuple[int, ...]:
    """Return the highest order in each observable."""
    each = [orders] * count if np.ndim(orders) == 0 else list(orders)
    known = tuple(whole_number("acceptance: an order", n, error=ModelError) for n in each)
    if len(known) != count:
        raise ModelError(f"acceptance: needs one order for each of {count} observables, got {len(known)}")
    if max(known) > MAX_DEGREE or not any(known):
        raise ModelError(
            f"acceptance: orders must lie in [0, {MAX_DEGREE}], not all of them 0, got {list(known)}"
        )
    return known


def check_bins(bins: Any, observables: tuple[Observable, ...], kind: str) -> list[Array]:
    """Return the edges of bins in each observable, from end to end of its range."""
    if len(observables) > TABLES[kind]:
        raise ModelError(
            f"acceptance: a {kind} takes {TABLES[kind]} observables at most, got {len(observables)}"
        )
    alike = np.ndim(bins) == 0 or (len(observables) == 1 and np.ndim(bins[0]) == 0)
    each = [bins] * len(observables) if alike else list(bins)
    if len(each) != len(observables):
        raise ModelError(
            f"acceptance: needs bins for each of {len(observables)} observables, got {len(each)}"
        )
    edges = []
    for o, one in zip(observables, each, strict=True):
        if np.ndim(one) == 0:
            count = whole_number("acceptance: bins", one, minimum=1, error=ModelError)
            edges.append(np.linspace(o.low, o.high, count + 1))
        else:
            own = covering(o, checked_axis(f"acceptance: bins of '{o.name}'", one))
            edges.append(np.concatenate([[o.low], own[(own > o.low) & (own < o.high)], [o.high]]))
    if kind == "spline" and len(edges[0]) <= MIN_SPLINE_BINS:
        raise ModelError(
            f"acceptance: a spline needs {MIN_SPLINE_BINS} bins or more, got {len(edges[0]) - 1}"
        )
    return edges


def warn_if_negative(acceptance: Expansion | SampledTable) -> None:
    """Warn where an acceptance is negative, which ``mf.Efficiency`` refuses."""
    if not leaves(Op.COLUMN, acceptance.expr):
        return
    heights, points = values_on_grid(acceptance.expr, {})
    if heights.min() < 0:
        lowest = int(heights.argmin())
        place = ", ".join(f"{name} = {grid.ravel()[lowest]:.4g}" for name, grid in points.items())
        warnings.warn(
            f"acceptance: negative in {np.mean(heights < 0):.2%} of the ranges, down to {heights.min():.3g} at {place};"
            " change the orders or bins, or use more events",
            UserWarning,
            stacklevel=3,
        )
