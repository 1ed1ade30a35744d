"""``mf.fit``: fit a model to data, or minimise a likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from morefit.arrays import Array
from morefit.data.weights import Weights
from morefit.likelihood import Term
from morefit.likelihood.parameters import one_of_each
from morefit.likelihood.simultaneous import Simultaneous, undecided
from morefit.likelihood.sums import check_constrained
from morefit.likelihood.wider import for_limits, half_way, resolved
from morefit.minimise.covariance import Errors
from morefit.minimise.options import Derivatives, Minimiser, Options
from morefit.minimise.path import WORST, minimise_likelihood
from morefit.minimise.problem import (
    Problem,
    as_likelihood,
    check_data,
    check_fixed,
    check_names,
    fixed_values,
    make_problem,
    mapping,
)
from morefit.minimise.result import FitResult
from morefit.model import Pdf
from morefit.model.compose.choice import Decision
from morefit.model.observable import Ranges
from morefit.model.region import YieldsIn
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences

REPLICAS = 500  # of a bootstrap: its errors are then known to 3 %
SEED = 0  # of their weights
MIN_VALID = 0.9  # of the replicas


@in_sentences
def fit(
    model: Pdf | Simultaneous | Term,
    data: Any = None,
    *,
    weights: Weights = None,
    constraints: Sequence[Any] | Any = (),
    ranges: Ranges | None = None,
    yields_in: YieldsIn = "full",
    start: Any = None,
    fixed: Any = (),
    limits: Mapping[Any, tuple[float | None, float | None]] | None = None,
    derivatives: Derivatives = "analytic",
    strategy: int | None = None,
    tolerance: float = 0.1,
    max_calls: int | None = None,
    minos: bool | Iterable[str] = False,
    errors: Errors = "auto",
    minimiser: Minimiser = "auto",
    print_level: int = 0,
    starts: int = 1,
    progress: bool = True,
    backend: str | Backend = "auto",
) -> FitResult:
    """Fit a model to data, or minimise a likelihood.

    ``ranges`` are those of the events that are fitted, such as ``{"m": [(5.0, 5.2), (5.4, 6.0)]}``; yields and fractions
    are those of the full ranges, or with ``yields_in="range"`` of the fitted ones. ``fixed`` names parameters to fix, at
    their start values or at those of a mapping; ``start`` and ``limits`` override those of the parameters, None for an open
    end. ``tolerance`` is Minuit's: the fit stops at an estimated distance to the minimum below 0.002 * tolerance * 0.5.
    The covariance is the inverse of the exact Hessian H, which also checks the minimum; Minuit's numeric check, its strategy
    1 or 2, is off by default. With weights it is the "sandwich" H^-1 C H^-1, C being the sum of the squared weighted scores
    (arXiv:1911.01303). ``errors`` chooses: "naive" is H^-1, "sumw2" H^-1 H2 H^-1 with the Hessian H2 of squared
    weights, "bootstrap" the spread of the fits of replicas, "auto" the sandwich with weights and else naive.
    ``minimiser="auto"`` takes Newton steps with the exact Hessian in compiled code, and Minuit where they do not end at
    a minimum; the result says which. "minuit" is Minuit alone, and so are ``strategy``, ``max_calls``, and ``print_level``
    1 to 3, with which it prints what it does. ``minos`` requests asymmetric errors, of all parameters or of some: where the
    nll, minimised over the others, has risen by a half. They come from conditional fits of all of them together, or with
    "minuit" from its MINOS. ``starts`` is the number of points to search from: the start values first, then points between
    the limits and around the minima, which ``result.minima`` lists. ``derivatives="numeric"`` goes by differences of
    values instead, of many points in one pass; errors are those of the exact Hessian all the same. ``progress`` shows
    on a terminal what a fit that takes longer than a second has done.

    Example: ``mf.fit(model, data, fixed={"sigma": 0.1}, minos=["mu"])``
    """
    options = Options(
        derivatives=derivatives, strategy=strategy, tolerance=tolerance, max_calls=max_calls, minos=minos,
        errors=errors, minimiser=minimiser, print_level=print_level, simulation=True, progress=progress,
    )  # fmt: skip
    ways = undecided(model)

    def decided(model: Any, start: Any, fixed: Any, limits: Any, options: Options) -> FitResult:
        likelihood = as_likelihood(
            "fit", model, data, weights=weights, constraints=constraints, ranges=ranges, yields_in=yields_in,
            backend=backend,
        )  # fmt: skip
        check_data(likelihood)
        check_fixed(likelihood.all_parameters, fixed, limits)
        check_constrained(likelihood.parts, (p for way in ways for p in way.model.parameters))
        return fit_likelihood(likelihood, start, fixed, limits, options=options, starts=starts)

    if ways:
        return fit_choices(ways, decided, (start, fixed, limits), options)
    return decided(model, start, fixed, limits, options)


def fit_likelihood(
    likelihood: Term, start: Any, fixed: Any, limits: Any, *, options: Options, starts: int
) -> FitResult:
    """Fit a likelihood, with formulas for the limits of the fit, and once more where its integrals need finer nodes."""
    problem = make_problem(likelihood, start, fixed, limits)
    if problem.is_wider and (wider := for_limits(likelihood, problem.spanned())) is not likelihood:
        likelihood, problem = wider, make_problem(wider, start, fixed, limits)
    result = minimise_problem(likelihood, problem, options, starts)
    if any(off > WORST[what] for what, off in result.integral_errors.items()):
        for values, begin in ((result.values, result), (half_way(problem.values, result.values), start)):
            finer = resolved(likelihood, values)
            if finer is likelihood:
                continue
            again = minimise_problem(finer, make_problem(finer, begin, fixed, limits), options, starts)
            if again.valid:
                return again.fitted_to(finer)
    return result.fitted_to(likelihood)


def minimise_problem(likelihood: Term, problem: Problem, options: Options, starts: int) -> FitResult:
    """Minimise from one start or several, and find the errors of MINOS if they are wanted."""
    before = likelihood.passes
    result = minimise_starts(likelihood, problem, options, starts)
    if passes := likelihood.passes - before:
        return replace(result, notes=(*result.notes, f"events stay in files: {passes} passes over them"))
    return result


def minimise_starts(likelihood: Term, problem: Problem, options: Options, starts: int) -> FitResult:
    if type(starts) is int and starts == 1:
        result = minimise_likelihood(likelihood, problem, options, replica_covariance)
    else:
        from morefit.minimise.search import search_minima

        result = search_minima(likelihood, problem, options, replica_covariance, starts)
    if options.minos is False:
        return result
    from morefit.minimise.minos import with_minos

    return with_minos(likelihood, problem, options, result)


def fit_choices(
    ways: Sequence[Decision],
    decided: Callable[..., FitResult],
    overrides: tuple[Any, Any, Any],
    options: Options,
) -> FitResult:
    """Fit a model once for each way to decide its choices, and return the fit with the lowest nll and penalties."""
    start = mapping("start", overrides[0])
    fixed = fixed_values(overrides[1])
    limits = mapping("limits", overrides[2])
    check_names(one_of_each([p for way in ways for p in way.model.parameters]), [*start, *fixed, *limits])
    results = []
    for way in ways:
        names = {p.name for p in way.model.parameters}
        own = [{n: v for n, v in chosen.items() if n in names} for chosen in (start, fixed, limits)]
        minos = options.minos
        wanted = minos if isinstance(minos, (bool, str)) else [n for n in minos if n in names]
        results.append(decided(way.model, *own, replace(options, minos=wanted)))
    scores = [r.nll + way.penalty(r.floating) for way, r in zip(ways, results, strict=True)]
    best = min(range(len(ways)), key=lambda k: (not results[k].valid, scores[k]))
    alternatives = {way.label: score for way, score in zip(ways, scores, strict=True)}
    likelihood = results[best].likelihood
    chosen = replace(results[best], choices=ways[best].labels, alternatives=alternatives)
    return chosen if likelihood is None else chosen.fitted_to(likelihood)


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
