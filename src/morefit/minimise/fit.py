"""``mf.fit``: fit a model to data, or minimise a likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array
from morefit.likelihood import Term
from morefit.minimise.covariance import Errors
from morefit.minimise.minuit import Derivatives, Minimiser, Options, minimise_likelihood
from morefit.minimise.problem import as_likelihood, check_data, make_problem
from morefit.minimise.result import FitResult
from morefit.model import Pdf
from morefit.targets import Backend

REPLICAS = 500  # of a bootstrap: its errors are then known to 3 %
SEED = 0  # of their weights
MIN_VALID = 0.9  # of the replicas


def fit(
    model: Pdf | Term,
    data: Any = None,
    *,
    weights: ArrayLike | None = None,
    constraints: Sequence[Any] | Any = (),
    start: Any = None,
    fixed: Any = (),
    limits: Mapping[Any, tuple[float | None, float | None]] | None = None,
    derivatives: Derivatives = "analytic",
    strategy: int = 0,
    tolerance: float = 0.1,
    max_calls: int | None = None,
    minos: bool | Iterable[str] = False,
    errors: Errors = "auto",
    minimiser: Minimiser = "auto",
    print_level: int = 0,
    backend: str | Backend = "auto",
) -> FitResult:
    """Fit a model to data, or minimise a likelihood.

    ``fixed`` names parameters to fix, at their start values or at those of a mapping; ``start`` and
    ``limits`` override those of the parameters, None for an open end. ``tolerance`` is Minuit's: the fit stops at an estimated distance
    to the minimum (EDM) below 0.002 * tolerance * 0.5. The covariance is the inverse of the exact Hessian H, which
    also checks the minimum; so Minuit's own numeric check, its strategy 1 or 2, is not needed and off by default.
    With weights it is the "sandwich" H^-1 C H^-1, C being the sum of the squared weighted scores
    (arXiv:1911.01303). ``errors`` chooses: "naive" is H^-1, "sumw2" H^-1 H2 H^-1 with the Hessian H2 of squared
    weights, "bootstrap" the spread of the fits of replicas, "auto" the sandwich with weights and else naive.
    ``minimiser="auto"`` takes Newton steps with the exact Hessian in compiled code, and Minuit where they do not end at
    a minimum; the result says which. "minuit" is Minuit alone, also for ``max_calls``, and for ``print_level`` 1 to 3,
    with which it prints what it does.
    """
    options = Options(
        derivatives=derivatives,
        strategy=strategy,
        tolerance=tolerance,
        max_calls=max_calls,
        minos=minos,
        errors=errors,
        minimiser=minimiser,
        print_level=print_level,
        simulation=True,
    )
    likelihood = as_likelihood("fit", model, data, weights=weights, constraints=constraints, backend=backend)
    check_data(likelihood)
    problem = make_problem(likelihood, start, fixed, limits)
    return minimise_likelihood(likelihood, problem, options, replica_covariance)


def replica_covariance(likelihood: Term, result: FitResult, reasons: list[str]) -> Array:
    """Return the covariance of the fits of replicas; what is wrong with them is added to the reasons."""
    count = len(result.floating)
    if not result.valid:
        return np.full((count, count), np.nan)
    from morefit.minimise.replicas import Replicas

    fits = Replicas(likelihood, result, SEED).fit(REPLICAS)
    valid = int(fits.valid.sum())
    if valid < MIN_VALID * REPLICAS:
        reasons.append(f"only {valid} of {REPLICAS} replicas of the bootstrap are valid")
    if valid < 2:
        return np.full((count, count), np.nan)
    return np.cov(fits.values[fits.valid], rowvar=False).reshape(count, count)
