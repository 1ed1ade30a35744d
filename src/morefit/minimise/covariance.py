"""The covariance of a fit: the inverse Hessian, or what corrects it for weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from morefit.arrays import Array
from morefit.errors import OptionError
from morefit.likelihood.unbinned import AnyLikelihood, Likelihood
from morefit.minimise.check import Verdict, blanked
from morefit.minimise.problem import Problem
from morefit.minimise.replicas import Replicas, Rescue, evaluate_weighted
from morefit.minimise.result import FitResult
from morefit.minimise.text import ERRORS

Errors = Literal["auto", "naive", "gradients", "sumw2", "sandwich", "bootstrap"]
REPLICAS = 500  # of a bootstrap: its errors are then known to 3 %
SEED = 0  # of their weights
ENOUGH = 0.9  # of the replicas must be valid
NOT_ONE = 0.1  # what rounding cannot add to a diagonal element of H^-1 H


def choose_errors(errors: str, likelihood: AnyLikelihood, floating: tuple[str, ...], minos: bool) -> str:
    """Return where errors shall come from: with ``"auto"`` from the sandwich if events have weights.

    Without weights they come from the Hessian, unless the density has a kink that moves with a parameter.
    """
    if errors != "auto" and errors not in ERRORS:
        choices = ", ".join(map(repr, ("auto", *ERRORS)))
        raise OptionError(f"fit: errors must be one of {choices}, got {errors!r}")
    best = "sandwich" if likelihood.weighted else "gradients" if likelihood.kinked(floating) else "naive"
    chosen = best if errors == "auto" else errors
    if chosen == "gradients" and likelihood.weighted:
        raise OptionError("fit: errors='gradients' is for events without weights; use errors='sandwich'")
    if minos and chosen not in ("naive", "gradients"):
        raise OptionError(
            f"fit: minos follows the likelihood and knows nothing of {chosen} errors; leave it out, or ask for"
            " errors='naive'"
        )
    return chosen


def with_errors(
    result: FitResult,
    chosen: str,
    likelihood: AnyLikelihood,
    problem: Problem,
    verdict: Verdict,
    rescue: Rescue,
) -> FitResult:
    """Return a result with its naive errors replaced by those chosen."""
    begin = time.perf_counter()
    reasons = list(result.reasons)
    middle = likelihood.add_up(problem.full(verdict.values), MIDDLE[chosen])[0]
    covariance = sandwich(verdict.inverse, middle[np.ix_(problem.rows, problem.rows)])
    covariance += spread(result, likelihood, rescue, reasons) if chosen == "bootstrap" else verdict.own
    covariance = blanked(covariance, problem.floating, verdict.flat)
    variances = np.diag(covariance)
    if result.valid and not np.all(variances >= 0):
        reasons.append(f"the {chosen} covariance has variances that are not positive")
    known = np.sqrt(np.where(variances >= 0, variances, np.nan))
    errors = dict(result.errors) | dict(zip(problem.floating, known.tolist(), strict=True))
    return replace(
        result, covariance=covariance, errors=errors, errors_from=chosen, reasons=tuple(reasons),
        valid=not reasons, seconds={**result.seconds, "errors": time.perf_counter() - begin},
    )  # fmt: skip


def without_held(covariance: Array, hessian: Array) -> tuple[Array, Array]:
    """Split covariances (..., P, P) into inverse Hessians and variances that have nothing to do with a Hessian.

    A parameter that is held at a limit has such a variance where the Hessian is positive definite only without it.
    """
    unit = np.einsum("...ik,...ki->...i", covariance, hessian)
    held = np.abs(unit - 1) > NOT_ONE
    apart = held[..., :, None] | held[..., None, :]
    return np.where(apart, 0.0, covariance), np.where(apart, covariance, 0.0)


def sandwich(inverse: Array, middle: Array) -> Array:
    """Return H^-1 M H^-1 for matrices (..., P, P), symmetric to the last bit."""
    product = inverse @ middle @ inverse
    return np.asarray(0.5 * (product + np.swapaxes(product, -1, -2)), np.float64)


def constraint_hessian(part: Likelihood, full: Array) -> Array:
    """Return the second derivatives of the constraints."""
    return part.hessian_of(part.constraints, full)


def squared_hessian(part: Likelihood, full: Array) -> Array:
    """Return the Hessian with squared weights; a yield is scaled so that it stays where it is (as RooFit does)."""
    weights = part.data.weights
    if weights is None:
        return part.evaluate_full(full, 2).hessian
    squares = weights**2
    hessian = evaluate_weighted(part, full, np.tile(squares, (len(full), 1))).hessian
    expected = part.model.expected_events()
    if expected is None:
        return hessian
    ratio = float(squares.sum() / weights.sum())
    return hessian + (ratio - 1) * part.hessian_of([expected], full)


MIDDLE: Mapping[str, Callable[[Likelihood, Array], Array]] = {
    "sandwich": Likelihood.squared_scores,
    "sumw2": squared_hessian,
    "bootstrap": constraint_hessian,
}


def spread(result: FitResult, likelihood: AnyLikelihood, rescue: Rescue, reasons: list[str]) -> Array:
    """Return the covariance of bootstrap replicas, whose constraints stay where they are."""
    count = len(result.floating)
    if not result.valid:
        return np.full((count, count), np.nan)
    values, _, valid = Replicas(likelihood, result, SEED, rescue).fit(REPLICAS)
    if valid.sum() < ENOUGH * REPLICAS:
        reasons.append(f"only {valid.sum()} of {REPLICAS} replicas of the bootstrap are valid")
    if valid.sum() < 2:
        return np.full((count, count), np.nan)
    return np.cov(values[valid], rowvar=False).reshape(count, count)
