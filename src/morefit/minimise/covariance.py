"""The covariance of a fit: the inverse Hessian, or what corrects it for weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from morefit.arrays import Array, Flags, Integers, read_only
from morefit.errors import FitError, OptionError
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.evaluation import PartData
from morefit.minimise.check import Verdict, blanked, part_in
from morefit.minimise.problem import Problem
from morefit.minimise.result import FitResult
from morefit.minimise.sandwich import NOT_ONE
from morefit.model.parts import is_simulated
from morefit.records.fields import ByName
from morefit.records.named_arrays import by_names
from morefit.targets.base import Events

if TYPE_CHECKING:
    from morefit.minimise.batch import Batch, Fits

# the covariance of replicas; adds what is wrong with it
Spread = Callable[[Term, FitResult, list[str]], Array]
Errors = Literal["auto", "naive", "gradients", "sumw2", "sandwich", "bootstrap"]
KINDS = get_args(Errors)


def no_spread(likelihood: Term, result: FitResult, reasons: list[str]) -> Array:
    """Refuse a covariance of replicas: fits of replicas need none of their own."""
    raise FitError("fit: errors='bootstrap' is for fits of data, not of replicas")


def choose_errors(errors: str, likelihood: Term, floating: tuple[str, ...], minos: bool) -> str:
    """Return the kind of errors to compute: with ``"auto"`` the sandwich if events have weights.

    Without weights they come from the Hessian, unless the density has a kink that moves with a parameter.
    """
    if errors not in KINDS:
        choices, way = ", ".join(map(repr, KINDS)), "; write minos=True" if errors == "minos" else ""
        raise OptionError(f"fit: errors must be one of {choices}, got {errors!r}{way}")
    best = "sandwich" if likelihood.weighted else "gradients" if likelihood.kinked(floating) else "naive"
    chosen = best if errors == "auto" else errors
    if chosen == "gradients" and likelihood.weighted:
        raise OptionError("fit: errors='gradients' is for events without weights; use errors='sandwich'")
    if chosen in ("sumw2", "bootstrap") and not all(part.data.in_memory for part in likelihood.parts):
        raise OptionError(
            f"fit: errors={chosen!r} needs all events in memory, got events that stay in files; use errors='sandwich'"
        )
    if minos and chosen not in ("naive", "gradients"):
        raise OptionError(
            f"fit: MINOS errors are not defined for errors={chosen!r}; use errors='naive' or drop minos"
        )
    return chosen


def with_errors(
    result: FitResult,
    chosen: str,
    likelihood: Term,
    problem: Problem,
    verdict: Verdict,
    spread: Spread,
) -> FitResult:
    """Return a result with its naive errors replaced by those chosen."""
    begin = time.perf_counter()
    reasons = list(result.reasons)
    if chosen == "bootstrap":
        covariance = spread(likelihood, result, reasons)
    else:
        middle = likelihood.add_up(problem.full(verdict.values), MIDDLE[chosen])[0]
        own = middle if problem.every_row else middle[np.ix_(problem.rows, problem.rows)]
        covariance = sandwich(verdict.inverse, own) + verdict.own
    covariance = blanked(covariance, problem.floating, verdict.flat)
    variances = covariance.diagonal()
    known = (variances > 0) | part_in(problem.floating, verdict.flat)
    if result.valid and not known.all():  # squares of tiny weights are zero
        reasons.append(f"the {chosen} covariance has variances that are not positive")
    roots = np.sqrt(np.where(variances >= 0, variances, np.nan))
    errors = dict(result.errors) | dict(zip(problem.floating, roots.tolist(), strict=True))
    return result.updated(
        covariance=by_names(read_only(covariance), problem.floating, 2), errors=ByName(errors), errors_from=chosen,
        reasons=tuple(reasons), valid=not reasons,
        seconds=ByName({**result.seconds, "errors": time.perf_counter() - begin}),
    )  # fmt: skip


def with_simulation(result: FitResult, likelihood: Term, problem: Problem, verdict: Verdict) -> FitResult:
    """Return a result whose covariance includes what the finite size of simulated samples adds."""
    if not any(is_simulated(part.model) for part in likelihood.parts):
        return result
    begin = time.perf_counter()
    own = simulation_covariance(likelihood, problem.full(verdict.values), verdict.inverse, problem.rows)
    covariance = result.covariance + own
    errors = dict(zip(problem.floating, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    simulated = dict(zip(problem.floating, np.sqrt(np.diag(own)).tolist(), strict=True))
    return result.updated(
        covariance=by_names(read_only(covariance), problem.floating, 2), errors=ByName(dict(result.errors) | errors),
        simulation_errors=ByName(simulated),
        seconds=ByName({**result.seconds, "simulation": time.perf_counter() - begin}),
    )  # fmt: skip


def simulation_covariance(likelihood: Term, full: Array, inverse: Array, rows: Sequence[int]) -> Array:
    """Return what simulated samples add to the covariance of some floating parameters, by the inverse of their Hessian."""
    from morefit.likelihood.simulation import gradient_covariance

    return sandwich(inverse, gradient_covariance(likelihood, full)[np.ix_(rows, rows)])


def split_fixed(covariance: Array, hessian: Array) -> tuple[Array, Array]:
    """Split covariances (..., P, P) into inverse Hessians and variances that do not come from a Hessian.

    A parameter that is fixed at a limit has such a variance where the Hessian is positive definite only without it.
    """
    unit = np.einsum("...ik,...ki->...i", covariance, hessian)
    fixed = np.abs(unit - 1) > NOT_ONE
    apart = fixed[..., :, None] | fixed[..., None, :]
    return np.where(apart, 0.0, covariance), np.where(apart, covariance, 0.0)


def correct_errors(batch: Batch, fits: Fits, sets: Integers) -> None:
    """Give fits of some sets of weighted events the errors of the sandwich; those of Minuit have them already."""
    from morefit.minimise.batch import ANOTHER_START, NEWTON, UNDETERMINED

    rows = np.flatnonzero(np.isin(fits.method, (NEWTON, ANOTHER_START, UNDETERMINED)))
    if not len(rows):
        return
    assert fits.covariance is not None
    full = batch.base[sets[rows]]
    full[:, batch.columns] = fits.values[rows]
    scores = batch.likelihood.many_scores(batch.data, sets[rows], full)[
        np.ix_(range(len(rows)), batch.rows, batch.rows)
    ]
    inverse, own = fits.covariance[rows], np.zeros_like(scores)
    limited = np.flatnonzero(at_limits(fits.values[rows], batch.limits))
    if len(limited):
        some = rows[limited]
        hessian = batch.evaluate(sets[some], fits.values[some]).hessian
        inverse[limited], own[limited] = split_fixed(inverse[limited], hessian)
    variances = np.diagonal(own + sandwich(inverse, scores), axis1=1, axis2=2)
    known = (variances >= 0) & ~np.isnan(fits.errors[rows])
    fits.errors[rows] = np.sqrt(np.where(known, variances, np.nan))


def at_limits(values: Array, limits: Array) -> Flags:
    """Return which fits (B, P) have a parameter at one of its limits (P, 2)."""
    return np.asarray(np.any((values <= limits[:, 0]) | (values >= limits[:, 1]), axis=1), np.bool_)


def sandwich(inverse: Array, middle: Array) -> Array:
    """Return H^-1 M H^-1 for matrices (..., P, P), symmetric to the last bit."""
    product = inverse @ middle @ inverse
    return np.asarray(0.5 * (product + np.swapaxes(product, -1, -2)), np.float64)


def squared_hessian(part: Likelihood, full: Array) -> Array:
    """Return the Hessian with squared weights; a yield is scaled so that it stays where it is (as RooFit does)."""
    weights = part.data.weights
    if weights is None:
        return part.evaluate_full(full, 2).hessian
    squares = weights**2
    own = PartData(part.columns, Events.all_sets(part.events), squares, boxes=part.boxes)
    hessian = part.evaluate_many((own,), np.arange(len(full)), full).hessian
    expected = part.model.expected_events()
    if expected is None:
        return hessian
    ratio = float(squares.sum() / weights.sum())
    return hessian + (ratio - 1) * part.hessian_of([expected], full)


MIDDLE: Mapping[str, Callable[[Likelihood, Array], Array]] = {
    "sandwich": lambda part, full: part.squared_scores(full),
    "sumw2": squared_hessian,
}
