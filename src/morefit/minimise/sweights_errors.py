"""The errors of a fit to events with sWeights: those of the weights themselves included (arXiv:1911.01303)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.arrays import Array
from morefit.errors import DataError, OptionError
from morefit.likelihood import Likelihood, Term
from morefit.minimise.check import invert
from morefit.minimise.covariance import sandwich, simulation_covariance
from morefit.minimise.derived import with_quantities
from morefit.minimise.result import FitResult
from morefit.minimise.sweights import fitted_events, full_point
from morefit.minimise.weight_functions import Basis, Solution
from morefit.model import Pdf
from morefit.model.derived import derived_in
from morefit.model.parts import is_simulated
from morefit.rewrite.derive import derivatives
from morefit.rewrite.simplify import normalise

if TYPE_CHECKING:
    from morefit.minimise.sweights import SWeights

STEP = 1e-3  # of the error of a parameter, for differences of weights


def correct(weights: SWeights, component: str, model: Pdf | Term, result: FitResult, data: Any) -> FitResult:
    """Return the result of a fit to weighted events with the covariance of both fits, taken as one estimate.

    The covariance of the gradient is the sum over events of squares of what each event adds to it: by its own score, and
    by its effect on the weights of all events.
    """
    if not isinstance(result, FitResult):
        raise OptionError(f"sweights: result must be that of mf.fit, got {type(result).__name__}")
    weighted = weights.data_for(component, data)
    likelihood, _, fitted = fitted_events(model, weighted, result, weights.basis.likelihood.backend)
    own = likelihood.data.weights
    if own is None or not np.array_equal(own, weights.weights[component][fitted]):
        raise DataError(
            f"sweights: the fit must be one of data_for({component!r}), got events with other weights"
        )
    full, names = full_point(likelihood, result), determined(result)
    rows = rows_of(likelihood, names)
    scores = np.zeros((len(names), len(fitted)))
    scores[:, fitted] = event_scores(likelihood, full, names)
    each, constrained = effects(weights, component, scores[:, weights.fitted])
    middle = each @ each.T + constrained
    middle += likelihood.hessian_of(likelihood.constraint_terms, full)[0][np.ix_(rows, rows)]
    inverse = invert(likelihood.evaluate_full(full, 2).hessian[0][np.ix_(rows, rows)])
    block = sandwich(inverse, middle)
    if is_simulated(likelihood.model):
        block = block + simulation_covariance(likelihood, full, inverse, rows)
    covariance, places = np.array(result.covariance), [result.floating.index(name) for name in names]
    covariance[np.ix_(places, places)] = block
    errors = dict(result.errors) | dict(zip(names, np.sqrt(block.diagonal()).tolist(), strict=True))
    with_errors = replace(result, covariance=covariance, errors=errors, errors_from="sweights", minos={})
    named = derived_in((likelihood.model,))
    return with_quantities(with_errors, named.values()) if named else with_errors


def effects(weights: SWeights, component: str, scores: Array) -> tuple[Array, Array]:
    """Return what each event adds to the gradient of a weighted fit, (P, events), and the covariance by constraints.

    An event counts with its weight; it moves the parameters of the fit that weights come from, and so all weights; and
    classic weights also contain its share in their sums and yields.
    """
    basis, row = weights.basis, weights.components.index(component)
    likelihood, counts = basis.likelihood, basis.counts
    point = full_point(likelihood, weights.result)
    solution = basis.solve(point)
    each = scores * (solution.weights[row] * counts)
    if basis.variance is None:
        each = each + effects_of_sums(solution, row, counts, scores)
    names = determined(weights.result)
    if not basis.names.intersection(names):
        return each, np.zeros((len(scores), len(scores)))
    slopes = np.array([slope(weights, name, row, scores) for name in names]).T  # (P, parameters)
    rows = rows_of(likelihood, names)
    square = np.ix_(rows, rows)
    moved = slopes @ invert(likelihood.evaluate_full(point, 2).hessian[0][square])
    each = each + moved @ (event_scores(likelihood, point, names) * counts)
    constraints = likelihood.hessian_of(likelihood.constraint_terms, point)[0][square]
    return each, moved @ constraints @ moved.T


def effects_of_sums(solution: Solution, row: int, counts: Array, scores: Array) -> Array:
    """Return what each event adds by its terms in the matrix W and in the sums that determine the yields."""
    h, inverse = solution.quotients, solution.inverse
    weighted = counts * solution.weights[row]
    sums = (scores * counts) @ h.T @ inverse  # (P, K)
    cubes = np.einsum("ie,je,ke->ijk", h * counts, h, h, optimize=True)
    by_yields = 2 * np.einsum("i,ijk,pj->pk", inverse[row], cubes, sums) - (scores * weighted) @ h.T
    return np.asarray((by_yields @ inverse @ h) * counts - weighted * (sums @ h), np.float64)


def slope(weights: SWeights, name: str, row: int, scores: Array) -> Array:
    """Return how the weighted sum of scores changes with a parameter of the fit that weights come from, (P,)."""
    basis: Basis = weights.basis
    if name not in basis.names:
        return np.zeros(len(scores))
    likelihood, result = basis.likelihood, weights.result
    low, high = result.limits[name]
    k = [p.name for p in likelihood.all_parameters].index(name)
    ends = np.clip(result.values[name] + STEP * result.errors[name] * np.array([-1, 1]), low, high)
    sums = []
    for end in ends:
        point = full_point(likelihood, result)
        point[0, k] = end
        sums.append(scores @ (basis.solve(point).weights[row] * basis.counts))
    return np.asarray((sums[1] - sums[0]) / (ends[1] - ends[0]), np.float64)


def event_scores(likelihood: Likelihood, full: Array, names: Sequence[str]) -> Array:
    """Return the derivatives of the logarithm of each event's density by some parameters, (P, events)."""
    symbols = {p.name: p.symbol for p in likelihood.parameters}
    formula, *_ = normalise(likelihood.model.summed)
    slopes = derivatives(formula, [symbols[name] for name in names])
    return np.asarray(likelihood.event_values(full, *slopes)[0], np.float64)


def determined(result: FitResult) -> list[str]:
    """Return the parameters of a fit that have an error from its Hessian."""
    return [n for n in result.floating if n not in result.at_limit and np.isfinite(result.errors[n])]


def rows_of(likelihood: Likelihood, names: Sequence[str]) -> list[int]:
    """Return where parameters are among the floating ones of a likelihood."""
    floating = [p.name for p in likelihood.parameters]
    return [floating.index(name) for name in names]
