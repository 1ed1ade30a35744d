"""Minimise a likelihood with Minuit, and judge what it found by our own Hessian."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from iminuit import Minuit
from numpy.typing import ArrayLike

from morefit.backend import Array, Backend
from morefit.errors import DataError, FitError
from morefit.fit.newton import minimise
from morefit.fit.result import FitResult
from morefit.likelihood import PENALTY, AnyLikelihood, Evaluation, Likelihood
from morefit.model import Parameter, Pdf

RETRIES = 2  # of Migrad, from where it stopped, if the exact Hessian says that it stopped too early
INTEGRAL_ERROR = 0.01  # of the log likelihood: more from numerical integrals makes a fit invalid
AT_LIMIT = 1e-3  # of the error: closer to a limit than this counts as at it
Derivatives = Literal["analytic", "numeric"]
Minimiser = Literal["minuit", "newton"]


def fit(
    model: Pdf | AnyLikelihood,
    data: Any = None,
    *,
    weights: ArrayLike | None = None,
    start: Mapping[str, float] | None = None,
    fixed: Mapping[str, float] | Iterable[str] = (),
    limits: Mapping[str, tuple[float, float]] | None = None,
    derivatives: Derivatives = "analytic",
    strategy: int = 0,
    tolerance: float = 0.1,
    max_calls: int | None = None,
    minos: bool | Iterable[str] = False,
    minimiser: Minimiser = "minuit",
    backend: str | Backend = "auto",
) -> FitResult:
    """Fit a model to data, or minimise a likelihood.

    ``fixed`` names parameters to hold, at their start values or at values given as a mapping; ``start`` and
    ``limits`` override those of the parameters. ``tolerance`` is Minuit's: the fit stops at an estimated distance
    to the minimum (EDM) below 0.002 * tolerance * 0.5. The covariance is the inverse of the exact Hessian H, which
    also checks the minimum; so Minuit's own numeric check, its strategy 1 or 2, is not needed and off by default.
    With weights it is H^-1 C H^-1, C being the sum of the squared weighted scores (arXiv:1911.01303).
    ``minimiser="newton"`` takes Newton steps with the exact Hessian, and Minuit only where they fail.
    """
    begin = time.perf_counter()
    likelihood = as_likelihood(model, data, weights, backend)
    problem = make_problem(likelihood, start or {}, fixed, limits or {})
    objective = Objective(likelihood, problem)
    first = objective.at(problem.start, 2)
    check_start(likelihood, problem, first)
    check_choices(derivatives, minimiser)
    if minimiser == "minuit":
        likelihood.prepare(1 if derivatives == "analytic" else 0)
    ready = time.perf_counter()
    path = Path(objective, first, derivatives, strategy, tolerance, max_calls)
    verdict = path.newton() if minimiser == "newton" else None
    verdict = verdict or path.minuit_with_retries()
    found = time.perf_counter()
    minos_errors = run_minos(path, verdict, minos)
    seconds = {
        "compile": ready - begin,
        "minimise": found - ready - path.looking,
        "hessian": path.looking,
    }
    if minos_errors:
        seconds["minos"] = time.perf_counter() - found
    return make_result(likelihood, objective, path, verdict, minos_errors, seconds)


# ------------------------------------------------------------------------------------ what is asked


@dataclass(frozen=True, eq=False)
class Problem:
    """Which parameters float, from where, and how far."""

    all_parameters: tuple[Parameter, ...]
    values: Mapping[str, float]  # where all start, or stay
    limits: Mapping[str, tuple[float, float]]
    floating: tuple[str, ...]
    rows: tuple[int, ...]  # of the floating ones among the likelihood's floating ones

    @property
    def start(self) -> Array:
        return np.array([self.values[n] for n in self.floating])

    def full(self, x: Array) -> Array:
        """Complete floating values to all, as one set."""
        values = self.template.copy()
        values[0, self.places] = x
        return values

    @cached_property
    def template(self) -> Array:
        return np.array([[self.values[p.name] for p in self.all_parameters]])

    @cached_property
    def places(self) -> list[int]:
        """Where the floating parameters are among all."""
        names = [p.name for p in self.all_parameters]
        return [names.index(n) for n in self.floating]

    @cached_property
    def every_row(self) -> bool:
        """Whether all that floats in the likelihood floats in this fit, in its order."""
        return self.rows == tuple(range(sum(not p.fixed for p in self.all_parameters)))


def as_likelihood(
    model: Pdf | AnyLikelihood, data: Any, weights: ArrayLike | None, backend: str | Backend
) -> AnyLikelihood:
    if isinstance(model, AnyLikelihood):
        if data is not None or weights is not None:
            raise FitError("fit: a likelihood has its data already; give no data and no weights")
        likelihood = model
    elif isinstance(model, Pdf):
        if data is None:
            raise FitError("fit: a model needs data; call fit(model, data)")
        likelihood = Likelihood(model, data, weights=weights, backend=backend)
    else:
        raise FitError(f"fit: takes a model or a likelihood, got {type(model).__name__}")
    if likelihood.events == 0:
        raise DataError("dataset: has no events; there is nothing to fit")
    return likelihood


def make_problem(
    likelihood: AnyLikelihood,
    start: Mapping[str, float],
    fixed: Mapping[str, float] | Iterable[str],
    limits: Mapping[str, tuple[float, float]],
) -> Problem:
    """Put together what the parameters say and what the call overrides."""
    parameters = likelihood.all_parameters
    held = (
        dict(fixed)
        if isinstance(fixed, Mapping)
        else dict.fromkeys([fixed] if isinstance(fixed, str) else fixed)
    )
    check_names(parameters, [*start, *held, *limits])
    values = {p.name: float(start.get(p.name, p.start)) for p in parameters}
    values |= {name: float(v) for name, v in held.items() if v is not None}
    ranges = {p.name: tuple(map(float, limits.get(p.name, (p.low, p.high)))) for p in parameters}
    floating = [p.name for p in parameters if not p.fixed and p.name not in held]
    if not floating:
        raise FitError("fit: no floating parameter; free one, or use Likelihood.value for the value alone")
    outside = [
        f"parameter '{n}': start must lie in [{ranges[n][0]}, {ranges[n][1]}], got {values[n]}"
        for n in floating
        if not ranges[n][0] <= values[n] <= ranges[n][1] or not math.isfinite(values[n])
    ]
    if outside:
        raise FitError("; ".join(outside))
    derived = [p.name for p in likelihood.parameters]
    rows = tuple(derived.index(n) for n in floating)
    return Problem(parameters, values, ranges, tuple(floating), rows)  # type: ignore[arg-type]


def check_names(parameters: Sequence[Parameter], names: Sequence[str]) -> None:
    known = [p.name for p in parameters]
    problems = []
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            problems.append(
                f"parameter '{name}': not in the model" + (f"; did you mean '{near[0]}'?" if near else "")
            )
    if problems:
        raise FitError("; ".join(problems))


def check_start(likelihood: AnyLikelihood, problem: Problem, first: Evaluation) -> None:
    """Refuse to start where the likelihood is not defined: Minuit could not find its way out."""
    if first.bad[0]:
        floating = [p.name for p in likelihood.parameters]
        x = [
            dict(zip(problem.floating, problem.start, strict=True)).get(n, problem.values[n])
            for n in floating
        ]
        raise FitError(
            f"fit: at the start values {likelihood.bad_events(x)}; change the start values, the model or the range"
        )
    if not (np.isfinite(first.value[0]) and np.all(np.isfinite(first.gradient))):
        raise FitError("fit: the likelihood is not finite at the start values; change them or the model")


# ------------------------------------------------------------------------------------ the objective


@dataclass(eq=False)
class Objective:
    """The function Minuit sees. Value and gradient come from one pass, so the last point is remembered."""

    likelihood: AnyLikelihood
    problem: Problem
    calls: dict[str, int] = field(default_factory=lambda: {"value": 0, "gradient": 0, "hessian": 0})
    strayed: int = 0  # evaluations where some event had no positive density
    last_point: bytes = b""
    last: Evaluation | None = None

    def at(self, x: Array, order: int) -> Evaluation:
        """Evaluate with the derivatives of the parameters that float in this fit."""
        self.calls[("value", "gradient", "hessian")[order]] += 1
        found = self.likelihood.evaluate_full(self.problem.full(x), order)
        if found.bad[0]:
            self.strayed += 1
        value = found.value + PENALTY * found.bad
        if self.problem.every_row:
            return Evaluation(value, found.gradient, found.hessian, found.bad)
        rows = list(self.problem.rows)
        gradient = found.gradient[:, rows] if order > 0 else found.gradient
        hessian = found.hessian[:, rows][:, :, rows] if order > 1 else found.hessian
        return Evaluation(value, gradient, hessian, found.bad)

    def remembered(self, x: Array) -> Evaluation:
        point = x.tobytes()
        if self.last is None or point != self.last_point:
            self.last, self.last_point = self.at(x, 1), point
        return self.last

    def value_of_pair(self, x: Array) -> float:
        return finite(self.remembered(x).value[0])

    def gradient(self, x: Array) -> Array:
        slopes: Array = self.remembered(x).gradient[0]
        return slopes

    def value(self, x: Array) -> float:
        return finite(self.at(x, 0).value[0])


def finite(value: float) -> float:
    """Give Minuit a number it can compare."""
    return float(value) if math.isfinite(value) else 1e300


@dataclass(eq=False)
class Path:
    """The way to a minimum: Newton's or Minuit's, from where the former ended."""

    objective: Objective
    first: Evaluation
    derivatives: Derivatives
    strategy: int
    tolerance: float
    max_calls: int | None
    minuit: Minuit | None = None
    looking: float = 0.0  # seconds spent on Hessians at the end of it

    def look(self, values: Array) -> Verdict:
        begin = time.perf_counter()
        verdict = look_at(self.objective, values, self.tolerance)
        self.looking += time.perf_counter() - begin
        return verdict

    @property
    def name(self) -> str:
        return "newton" if self.minuit is None else "minuit"

    @property
    def exhausted(self) -> bool:
        return self.minuit is not None and bool(self.minuit.fmin.has_reached_call_limit)

    def newton(self) -> Verdict | None:
        """Take Newton steps; None if they do not end at a minimum."""
        problem = self.objective.problem
        limits = np.array([problem.limits[n] for n in problem.floating])
        goal = goal_of(self.tolerance)
        found = minimise(lambda _, x: self.objective.at(x[0], 2), problem.start[None, :], limits, goal)
        return self.look(found.x[0]) if found.valid[0] else None

    def minuit_with_retries(self) -> Verdict:
        """Run Migrad, and again from where it stopped if the exact Hessian says that it stopped too early."""
        minuit = self.run_minuit(self.objective.problem.start)
        verdict = self.look(np.array(minuit.values))
        for _ in range(RETRIES):
            if verdict.edm <= verdict.goal or minuit.fmin.has_reached_call_limit:
                break
            minuit.strategy = max(self.strategy, 1)
            minuit.migrad(ncall=self.max_calls)
            verdict = self.look(np.array(minuit.values))
        return verdict

    def run_minuit(self, start: Array) -> Minuit:
        """Run Migrad on the floating parameters only; the Hessian at the start gives it its scales."""
        problem = self.objective.problem
        if self.derivatives == "analytic":
            curvature = np.diag(self.first.hessian[0]).copy()
            minuit = Minuit(
                self.objective.value_of_pair,
                start,
                grad=self.objective.gradient,
                # Minuit scales its first steps by the curvature, and needs it nowhere else
                g2=(lambda x: curvature) if np.all(curvature > 0) else None,
                name=problem.floating,
            )
        else:
            minuit = Minuit(self.objective.value, start, name=problem.floating)
        minuit.errordef = Minuit.LIKELIHOOD
        minuit.strategy = self.strategy
        minuit.tol = self.tolerance
        minuit.print_level = -1  # what goes wrong is told by the result, not on the terminal
        minuit.limits = [problem.limits[n] for n in problem.floating]
        minuit.errors = step_sizes(problem, self.first)
        minuit.migrad(ncall=self.max_calls)
        self.minuit = minuit
        return minuit


def check_choices(derivatives: str, minimiser: str) -> None:
    if derivatives not in ("analytic", "numeric"):
        raise FitError(f"fit: derivatives must be 'analytic' or 'numeric', got {derivatives!r}")
    if minimiser not in ("minuit", "newton"):
        raise FitError(f"fit: minimiser must be 'minuit' or 'newton', got {minimiser!r}")


def goal_of(tolerance: float) -> float:
    """Return the distance to the minimum at which Minuit is content."""
    return 0.002 * max(tolerance, 1e-4) * 0.5


def step_sizes(problem: Problem, first: Evaluation) -> list[float]:
    """Return one standard deviation each, as the curvature at the start has it, within the limits."""
    steps = []
    for k, name in enumerate(problem.floating):
        curvature = first.hessian[0, k, k]
        low, high = problem.limits[name]
        width = high - low
        step = 1 / math.sqrt(curvature) if curvature > 0 and math.isfinite(curvature) else 0.0
        if not step > 0:
            step = 0.01 * (width if math.isfinite(width) else max(abs(problem.values[name]), 1.0))
        steps.append(min(step, 0.25 * width))
    return steps


def run_minos(path: Path, verdict: Verdict, wanted: bool | Iterable[str]) -> dict[str, tuple[float, float]]:
    """Run MINOS for the parameters wanted, with Minuit brought to the minimum if it was not there."""
    if wanted is False:
        return {}
    floating = path.objective.problem.floating
    names = list(floating) if wanted is True else [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [n for n in names if n not in floating]
    if unknown:
        raise FitError(f"fit: minos needs floating parameters, got {', '.join(map(repr, unknown))}")
    minuit = path.minuit or path.run_minuit(verdict.values)
    if not minuit.fmin.is_valid:
        return {}
    minuit.minos(*names)
    return {
        n: (minuit.merrors[n].lower, minuit.merrors[n].upper) for n in names if minuit.merrors[n].is_valid
    }


# ------------------------------------------------------------------------------------ the verdict


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the exact derivatives say of a point."""

    values: Array
    last: Evaluation
    covariance: Array
    at_limit: tuple[str, ...]
    edm: float
    goal: float


def look_at(objective: Objective, values: Array, tolerance: float) -> Verdict:
    """Evaluate the Hessian at a point: covariance, distance to the minimum, parameters at a limit."""
    problem = objective.problem
    last = objective.at(values, 2)
    hessian, gradient = last.hessian[0], last.gradient[0]
    covariance = invert(hessian)
    errors = np.nan_to_num(np.sqrt(np.diag(covariance)))
    at_limit = tuple(
        name
        for name, x, error, slope in zip(problem.floating, values, errors, gradient, strict=True)
        if touches(x, error, slope, problem.limits[name])
    )
    free = [k for k, name in enumerate(problem.floating) if name not in at_limit]
    return Verdict(values, last, covariance, at_limit, distance(hessian, gradient, free), goal_of(tolerance))


def make_result(
    likelihood: AnyLikelihood, objective: Objective, path: Path, verdict: Verdict,
    minos: dict[str, tuple[float, float]], seconds: dict[str, float],
) -> FitResult:  # fmt: skip
    problem = objective.problem
    reasons = list(complaints(path.exhausted, verdict))
    x = floating_values(likelihood, problem, verdict.values)
    if verdict.last.bad[0]:
        reasons.append(f"at the minimum {likelihood.bad_events(x)}")
    off = likelihood.integral_error(x)
    if not likelihood.events * off <= INTEGRAL_ERROR:
        reasons.append(
            f"a numerical integral is off by {off:.2g} at the minimum; start closer to it, or give an integral"
        )
    covariance = verdict.covariance
    if likelihood.weighted:
        covariance = sandwich(likelihood, problem, verdict)
    errors = np.sqrt(np.diag(covariance))
    fitted = dict(zip(problem.floating, verdict.values.tolist(), strict=True))
    uncertain = dict(zip(problem.floating, errors.tolist(), strict=True))
    names = tuple(p.name for p in problem.all_parameters)
    return FitResult(
        names=names,
        values={n: fitted.get(n, problem.values[n]) for n in names},
        errors={n: uncertain.get(n, 0.0) for n in names},
        floating=problem.floating,
        covariance=covariance,
        nll=float(verdict.last.value[0]),
        edm=verdict.edm,
        valid=not reasons,
        reasons=tuple(reasons),
        at_limit=verdict.at_limit,
        limits=dict(problem.limits),
        calls=dict(objective.calls),
        seconds=seconds,
        minos=minos,
        events=likelihood.events,
        backend=likelihood.backend.name,
        minimiser=path.name,
    )


def sandwich(likelihood: AnyLikelihood, problem: Problem, verdict: Verdict) -> Array:
    """Return the covariance of a weighted fit: H^-1 C H^-1."""
    rows = list(problem.rows)
    scores = likelihood.score_covariance(problem.full(verdict.values))[0][np.ix_(rows, rows)]
    return np.asarray(verdict.covariance @ scores @ verdict.covariance, np.float64)


def floating_values(likelihood: AnyLikelihood, problem: Problem, values: Array) -> Array:
    known = dict(problem.values) | dict(zip(problem.floating, values, strict=True))
    return np.array([known[p.name] for p in likelihood.parameters])


def invert(hessian: Array) -> Array:
    """Invert a positive-definite matrix, scaled to a unit diagonal first; nan where it is not one."""
    nothing = np.full_like(hessian, np.nan)
    diagonal = np.diag(hessian)
    if not np.all(np.isfinite(hessian)) or not np.all(diagonal > 0):
        return nothing
    scale = 1 / np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(hessian * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return nothing
    inverse = np.linalg.solve(factor, np.diag(scale))
    return np.asarray(inverse.T @ inverse, np.float64)


def touches(x: float, error: float, slope: float, limits: tuple[float, float]) -> bool:
    """Say whether a parameter ended at a limit: within a thousandth of its error, the slope pointing outwards."""
    near = AT_LIMIT * error
    low, high = limits
    return (x - low <= near and slope >= 0) or (high - x <= near and slope <= 0)


def distance(hessian: Array, gradient: Array, free: list[int]) -> float:
    """Return half of g H^-1 g over the parameters that are not at a limit."""
    if not free:
        return 0.0
    inverse = invert(hessian[np.ix_(free, free)])
    slopes = gradient[free]
    return float(0.5 * slopes @ inverse @ slopes)


def complaints(exhausted: bool, verdict: Verdict) -> Iterable[str]:
    """List what is wrong with a fit."""
    if exhausted:
        yield "the call limit was reached before the minimum"
    if not np.all(np.isfinite(verdict.covariance)):
        yield "the Hessian is not positive definite, so there are no errors"
    elif not verdict.edm <= 10 * verdict.goal:  # Minuit's own margin for calling a minimum valid
        yield f"the estimated distance to the minimum, {verdict.edm:.3g}, is above the goal of {verdict.goal:.3g}"
    if not math.isfinite(verdict.last.value[0]):
        yield "the likelihood is not finite at the minimum"
