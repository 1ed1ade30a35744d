"""The path of a fit: Newton's method first, Minuit where it ends without a minimum, lower valleys beside it, and the result."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from morefit.arrays import Array, read_only
from morefit.errors import DataError, FitError, ModelError
from morefit.kernel.fit_layout import FitRows, value_unit
from morefit.likelihood import Evaluation, Term
from morefit.minimise.check import (
    Verdict,
    changing_elsewhere,
    check_minimum,
    check_parabola,
    edm_goal,
    ends_beyond,
    failure_reasons,
    jumping,
)
from morefit.minimise.covariance import Spread, choose_errors, no_spread, with_errors, with_simulation
from morefit.minimise.differences import MOST_PARAMETERS, Differences
from morefit.minimise.kinks import at_kink, describe_valley, lowest_beside
from morefit.minimise.newton import Minima, is_valid, minimise, minimise_eliminated, prepare_steps
from morefit.minimise.newton_program import HIGHER
from morefit.minimise.objective import Objective
from morefit.minimise.options import Options
from morefit.minimise.problem import Problem, missing_derivatives
from morefit.minimise.result import FitResult
from morefit.minimise.starts import STARTS
from morefit.minimise.trust_region import CONVERGED, DEGENERATE, FLAT
from morefit.minimise.whole import expect_fit, fit_at_once
from morefit.model.derived import derived_in
from morefit.records.fields import NO_MINOS, ByName, floats
from morefit.records.fields import regions as by_observable
from morefit.records.named_arrays import by_names
from morefit.text.progress import LateBar


def started_at(objective: Objective, place: Array) -> Objective:
    """Return the same objective with another start; calls are counted together."""
    problem = objective.problem
    values = dict(problem.values) | dict(zip(problem.floating, place.tolist(), strict=True))
    return replace(objective, problem=replace(problem, values=values), lowest=math.inf, best=None, last=None)


WORST = {"nll": 0.01, "errors": 0.01}  # that numerical integrals may be off: more makes a fit invalid
MAX_VALLEYS = 5  # from one to a lower one beside it
MIN_TOLERANCE = 1e-9  # of Newton's method: an EDM of 1e-12 is about what rounding leaves
NO_BAD_EVENTS = read_only(np.zeros(1, np.int64))
REFUSED = (DataError, FitError, ModelError)  # what a fit raises where it cannot start


class End(NamedTuple):
    """Where steps ended, at a minimum or not."""

    x: Array
    value: float
    status: float

    def is_better_than(self, verdict: Verdict) -> bool:
        """Return whether this is far lower than another end, or no higher and the parameters that are undetermined are known."""
        there = float(verdict.last.value[0])
        lost = self.status in (FLAT, DEGENERATE) and not verdict.flat
        known = not any(True for _ in failure_reasons(verdict))
        much = HIGHER * verdict.unit
        return self.value < there - much or (lost and not known and self.value <= there + verdict.goal)


def minimise_likelihood(
    likelihood: Term, problem: Problem, options: Options, spread: Spread = no_spread
) -> FitResult:
    """Minimise a likelihood; ``spread`` computes the covariance of replicas where errors shall come from these."""
    with LateBar(options.progress) as bar:
        return minimise_shown(likelihood, problem, options, spread, bar)


def minimise_shown(
    likelihood: Term, problem: Problem, options: Options, spread: Spread, bar: LateBar
) -> FitResult:
    """Minimise a likelihood, and show on a bar what is done."""
    begin = time.perf_counter()
    chosen = choose_errors(options.errors, likelihood, problem.floating, options.minos is not False)
    weight = likelihood.weight_scale if likelihood.weighted else 1.0
    numeric, by_scores = options.derivatives == "numeric", chosen == "gradients"
    objective = Objective(likelihood, problem, by_scores, weight, numeric, bar=bar)
    # values tell nothing of scores, and pairs of very many parameters are too many
    newton = options.uses_newton and not (numeric and (by_scores or len(problem.floating) > MOST_PARAMETERS))
    if newton and not numeric:
        expect_fit(likelihood, problem)
    else:
        likelihood.prepare(0 if numeric else 1)
    ready = time.perf_counter()
    verdict, end = newton_steps(objective, options.tolerance) if newton else (None, None)
    name, problems = "newton", list[str]()
    # no minimiser with derivatives leads to the minimum along those
    steps = likelihood.stepping(problem.floating)
    if verdict is None and end is not None and steps:
        verdict = check_minimum(objective, end.x, options.tolerance)
    if verdict is None:
        from morefit.minimise.minuit import Migrad  # seldom needed

        migrad = Migrad(objective, options)
        verdict = check_parabola(objective, migrad.minimise())
        name, problems = "minuit", migrad.problems
        # Minuit may end above what is known, such as at a saddle point that it started from
        if end is not None and end.is_better_than(verdict):
            verdict, name, problems = check_minimum(objective, end.x, options.tolerance), "newton", []
    if steps:
        problems = [jumping(steps), *problems]
    lower = None
    if objective.by_scores and newton:
        verdict, lower = in_lower_valleys(objective, verdict, options.tolerance)
    if objective.by_scores:
        verdict = at_kink(objective, verdict)
    compiled, checked = objective.compiling, objective.checking
    spent = time.perf_counter() - ready - compiled - checked
    seconds = {"compile": ready - begin + compiled, "minimise": spent, "hessian": checked}
    result = make_result(objective, verdict, name, problems, seconds)
    if lower is not None:
        result = replace(result, notes=(describe_valley(objective, verdict, lower), *result.notes))
    objective.release()
    if chosen not in ("naive", "gradients"):
        result = with_errors(result, chosen, likelihood, problem, verdict=verdict, spread=spread)
    if options.simulation:
        result = with_simulation(result, likelihood, problem, verdict)
    if not (named := derived_in(tuple(part.model for part in likelihood.parts))):
        return result
    from morefit.minimise.derived import with_quantities

    return with_quantities(result, named.values())


def in_lower_valleys(
    objective: Objective, verdict: Verdict, tolerance: float
) -> tuple[Verdict, Array | None]:
    """Move on to lower minima beside one of a density with kinks; return also a place that is lower still, if any is known."""
    for _ in range(MAX_VALLEYS):
        place = lowest_beside(objective, verdict)
        if place is None:
            return verdict, None
        there, _ = newton_steps(started_at(objective, place), tolerance)
        if there is None or not there.last.value[0] < verdict.last.value[0]:
            return verdict, place
        verdict = there
    return verdict, lowest_beside(objective, verdict)


def newton_steps(objective: Objective, tolerance: float) -> tuple[Verdict | None, End | None]:
    """Take Newton steps, all in one call if that can be done; no verdict if they do not end at a minimum, but where they ended.

    Steps of numeric derivatives go by values alone; the minimum is judged by the exact Hessian.
    """
    numeric = objective.numeric
    goal = (edm_goal(tolerance) if numeric else edm_goal(tolerance, MIN_TOLERANCE)) * objective.weight
    try:
        rows = None if objective.by_scores or numeric else fit_at_once(objective, goal)
        if rows is None or rows.of_first("unresolved"):  # integrals by boxes that follow the parameters
            minima = stepwise(objective, goal)
            end = End(minima.x[0], float(minima.nll[0]), float(minima.status[0]))
            return check_minimum(objective, end.x, tolerance) if minima.valid[0] else None, end
    except ModelError:
        return None, None
    objective.calls["hessian"] += int(rows.of_first("steps"))
    end = End(rows.x[0], rows.of_first("value"), rows.of_first("status"))
    if end.status == CONVERGED and not rows.of_first("fixed"):
        return verdict_of(end.x, rows, goal, value_unit(objective.weight)), end
    valid = is_valid(rows.status, rows.column("fixed"))[0]
    return check_minimum(objective, end.x, tolerance) if valid else None, end


def stepwise(objective: Objective, goal: float) -> Minima:
    """Take Newton steps one by one, with parameters eliminated if the likelihood can do so and knows its derivatives."""
    likelihood, problem = objective.likelihood, objective.problem
    limits = problem.floating_limits
    numeric = objective.numeric
    elimination = None if objective.by_scores or numeric else likelihood.elimination(problem.floating, limits)
    if elimination is None:
        wait_for_code(objective)
        starts = 0 if likelihood.one_minimum else STARTS
        edges = likelihood.edges(problem.floating, limits)
        at = Differences.around(objective, problem.start).at if numeric else partial(objective.at, order=2)
        return minimise(
            lambda _, x: at(x[0]),
            problem.start[None],
            limits,
            goal,
            starts=starts,
            edges=edges,
            weight=objective.weight,
        )
    minima = minimise_eliminated(
        elimination,
        likelihood.own_data(),
        np.zeros(1, np.int64),
        problem.full(problem.start),
        limits=limits,
        goal=goal,
    )
    objective.calls["hessian"] += int(minima.steps[0])
    return minima


def wait_for_code(objective: Objective) -> None:
    """Wait for machine code, so that its time does not count as that of the steps."""
    begin = time.perf_counter()
    prepare_steps(len(objective.problem.floating))
    objective.likelihood.compile_seconds()  # which are known when all code is there
    objective.compiling += time.perf_counter() - begin


def verdict_of(x: Array, rows: FitRows, goal: float, unit: float) -> Verdict:
    """Return the verdict on a minimum inside all limits, whose derivatives are known."""
    shape = rows.layout.count, rows.layout.count
    hessian, inverse = rows.columns("hessian").reshape(1, *shape), rows.columns("covariance").reshape(shape)
    last = Evaluation(rows.value, rows.columns("gradient"), hessian, NO_BAD_EVENTS)
    return Verdict(x, last, inverse, np.zeros(shape), edm=rows.of_first("edm"), goal=goal, unit=unit)


def make_result(
    objective: Objective, verdict: Verdict, minimiser: str, problems: Sequence[str], seconds: dict[str, float]
) -> FitResult:
    """Put together a result; ``problems`` are those of the minimiser."""
    likelihood, problem = objective.likelihood, objective.problem
    x = floating_values(likelihood, problem, verdict.values)
    fitted = dict(zip(problem.floating, verdict.values.tolist(), strict=True))
    values = {n: fitted[n] if n in fitted else problem.values[n] for n in problem.names}
    elsewhere = changing_elsewhere(objective, verdict), ends_beyond(objective, verdict)
    reasons = [*problems, *failure_reasons(verdict, *elsewhere)]
    if not verdict.last.bad[0] and not math.isfinite(verdict.edm):
        reasons += missing_at_minimum(likelihood, problem, verdict, x)
    if verdict.last.bad[0]:
        reasons.append(f"at the minimum {likelihood.bad_events(x)}")
    elif below := likelihood.negative_density(values):
        reasons.append(f"at the minimum {below}")
    try:
        integral_errors = check_integrals(objective, verdict, x)
    except ModelError as error:
        integral_errors = {}
        reasons.append(f"at the minimum: {error}")
    for what, off in integral_errors.items():
        if not off <= WORST[what]:
            reasons.append(
                f"numerical integrals may be wrong at the minimum: {what} by {off:.2g}, more than {WORST[what]:g};"
                " give an integral"
            )
    covariance = verdict.covariance(problem.floating)
    uncertain = dict(zip(problem.floating, np.sqrt(covariance.diagonal()).tolist(), strict=True))
    regions = tuple(part.model.region() for part in likelihood.parts)
    in_ranges = any(regions)
    return FitResult.converted_from(
        names=problem.names,
        values=ByName(values),
        errors=ByName({n: uncertain.get(n, 0.0) for n in problem.names}),
        floating=problem.floating,
        covariance=by_names(read_only(covariance), problem.floating, 2),
        nll=float(verdict.last.value[0]),
        edm=float(verdict.edm),
        valid=not reasons,
        reasons=tuple(reasons),
        at_limit=verdict.at_limit,
        limits=problem.limits_by_name,
        calls=ByName(dict(objective.calls)),
        seconds=ByName(seconds),
        minos=NO_MINOS,
        events=round(likelihood.entries),
        backend=likelihood.backend.label,
        minimiser=minimiser,
        flat_directions=tuple(map(floats, verdict.flat)),
        integral_errors=ByName(integral_errors),
        errors_from="gradients" if objective.by_scores else "naive",
        labels=problem.labels,
        blinded=problem.blinded,
        ndf=degrees_of_freedom(likelihood, problem),
        ranges=tuple(map(by_observable, regions)) if in_ranges else (),
        yields_in=tuple(part.model.yields_meaning() for part in likelihood.parts) if in_ranges else (),
    )


def degrees_of_freedom(likelihood: Term, problem: Problem) -> int:
    """Return how many bins, points and constraints there are more than floating parameters; 0 with events."""
    degrees = likelihood.degrees
    return max(int(degrees) - len(problem.floating), 0) if math.isfinite(degrees) else 0


def check_integrals(objective: Objective, verdict: Verdict, x: Array) -> dict[str, float]:
    """Return how far numerical integrals may be off, for the nll and relatively for the errors; empty without any."""
    likelihood, problem = objective.likelihood, objective.problem
    if not likelihood.has_integrals:
        return {}
    full, rows = problem.full(verdict.values), np.ix_(problem.rows, problem.rows)
    # the end of the steps knows the Hessian, unless squared scores were in its place
    last = verdict.last
    here = likelihood.evaluate_full(full, 2).hessian[0][rows] if objective.by_scores else last.hessian[0]
    other = likelihood.evaluate_again(full)
    nll = max(likelihood.entries * likelihood.integral_error(x), abs(float(other.value[0] - last.value[0])))
    sizes = np.sqrt(np.abs(np.diag(verdict.inverse)))
    change = np.abs(other.hessian[0][rows] - here) * np.outer(sizes, sizes)
    return {"nll": float(nll), "errors": float(np.nan_to_num(change, nan=0.0).max(initial=0.0)) / 2}


def missing_at_minimum(likelihood: Term, problem: Problem, verdict: Verdict, x: Array) -> Iterator[str]:
    """Describe which derivatives are missing at a minimum that has a value."""
    for order, numbers in ((1, verdict.last.gradient), (2, verdict.last.hessian)):
        if math.isfinite(verdict.last.value[0]) and not np.isfinite(numbers).all():
            yield f"at the minimum {missing_derivatives(likelihood, x, problem.floating, order)}"
            return


def floating_values(likelihood: Term, problem: Problem, values: Array) -> Array:
    if problem.every_row:
        return values
    known = dict(problem.values) | dict(zip(problem.floating, values, strict=True))
    return np.array([known[p.name] for p in likelihood.parameters])
