"""Search for lower minima: one likelihood minimised from many starts together, and its distinct minima."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morefit.arrays import Array
from morefit.errors import FitError
from morefit.likelihood import Term
from morefit.minimise.batch import NEWTON, Fits
from morefit.minimise.conditional import LOWER, batch_of
from morefit.minimise.covariance import Spread
from morefit.minimise.options import Options
from morefit.minimise.path import minimise_likelihood
from morefit.minimise.problem import Problem
from morefit.minimise.result import FitResult
from morefit.resources import check_memory
from morefit.validate import whole_number

SEED = 0  # of where fits start
NEAR = 10.0  # errors around the first minimum, where every second start lies
WIDE = 100.0  # times the value and its error: limits so far apart say nothing about where minima are
SAME = 0.1  # errors: minima that are closer, and as high, are one


def search_minima(
    likelihood: Term, problem: Problem, options: Options, spread: Spread, starts: int
) -> FitResult:
    """Minimise from the start of a problem and from others; return the result at the lowest minimum, and list all."""
    starts = whole_number("fit: starts", starts, 1)
    check_memory(f"fit: {starts:.6g} starts", 80.0 * starts * (len(problem.floating) + 4) ** 2)
    problem, result = first_minimum(likelihood, problem, options, spread, starts)
    points = start_points(problem, result, starts)
    base = np.repeat(problem.template, starts, axis=0)
    base[:, problem.columns] = points
    batch = batch_of(likelihood, result, problem.floating, base)
    fits = Fits.none(batch.start)
    batch.attempt(fits, np.arange(starts), batch.start, NEWTON)
    minima = distinct(fits)
    if len(minima) and not result.nll <= fits.nll[minima[0][0]] + 10 * batch.goal:
        lowest = dict(zip(problem.floating, fits.values[minima[0][0]].tolist(), strict=True))
        problem = replace(problem, values={**problem.values, **lowest})
        again = minimise_likelihood(likelihood, problem, options, spread)
        result = again if again.valid or not result.valid else result
    listed = tuple(
        (fits.nll[rows[0]], dict(zip(problem.floating, fits.values[rows[0]], strict=True))) for rows in minima
    )
    return replace(result, minima=listed, notes=(*result.notes, in_words(fits, minima)))


def first_minimum(
    likelihood: Term, problem: Problem, options: Options, spread: Spread, starts: int
) -> tuple[Problem, FitResult]:
    """Return the result from the start of a problem, or from other points if the likelihood is not defined there."""
    low, high = problem.floating_limits.T
    way = np.maximum(np.abs(problem.start), 1.0)
    ends = (
        np.where(np.isfinite(low), low, problem.start - way),
        np.where(np.isfinite(high), high, problem.start + way),
    )
    rng, failures = np.random.default_rng(SEED), []
    for _ in range(starts):
        try:
            return problem, minimise_likelihood(likelihood, problem, options, spread)
        except FitError as error:
            failures.append(error)
        point = dict(zip(problem.floating, rng.uniform(*ends).tolist(), strict=True))
        problem = replace(problem, values={**problem.values, **point})
    raise failures[0]


def start_points(problem: Problem, result: FitResult, starts: int) -> Array:
    """Return where to start: where the problem does, all over the limits, and around the first minimum in turns."""
    start, (low, high) = problem.start, problem.floating_limits.T
    values, errors = (np.array([m[n] for n in problem.floating]) for m in (result.values, result.errors))
    known = np.isfinite(errors) & (errors > 0)
    way = np.where(known, NEAR * errors, np.maximum(np.abs(values), 1.0))
    near = np.maximum(values - way, low), np.minimum(values + way, high)
    wide = high - low > WIDE * (np.abs(values) + np.where(known, errors, 0.0))
    far = np.where(wide, near[0], low), np.where(wide, near[1], high)
    parts = np.random.default_rng(SEED).random((starts, len(start)))
    close = (np.arange(starts) % 2 == 0)[:, None]
    lowest, highest = (np.where(close, one, other) for one, other in zip(near, far, strict=True))
    points = np.asarray(lowest + parts * (highest - lowest), np.float64)
    points[0] = start
    return points


def distinct(fits: Fits) -> list[list[int]]:
    """Return the fits of each minimum, the lowest first; where parameters have no errors, the nll alone tells."""
    minima: list[list[int]] = []
    for k in np.argsort(np.where(fits.valid, fits.nll, np.inf))[: int(fits.valid.sum())].tolist():
        for rows in minima:
            away = np.abs(fits.values[k] - fits.values[rows[0]]) / fits.errors[rows[0]]
            if fits.nll[k] - fits.nll[rows[0]] <= LOWER and not np.any(away > SAME):
                rows.append(k)
                break
        else:
            minima.append([k])
    return minima


def in_words(fits: Fits, minima: list[list[int]]) -> str:
    """Describe how many minima there are, how high, and how many starts led to each."""
    total = len(fits.nll)
    if not minima:
        return f"starts: none of {total} led to a minimum"
    best = fits.nll[minima[0][0]]
    each = [f"+{fits.nll[rows[0]] - best:.3f} ({len(rows)})" for rows in minima[1:6]]
    more = [f"{len(minima) - 6} more"] if len(minima) > 6 else []
    lost = total - sum(map(len, minima))
    heights = ", ".join([f"nll {best:.3f} ({len(minima[0])} starts)", *each, *more])
    plural = "minima" if len(minima) > 1 else "minimum"
    return f"starts: {len(minima)} {plural} from {total} starts: {heights}{f'; {lost} led to none' if lost else ''}"
