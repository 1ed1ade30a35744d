"""Minimise a likelihood with Minuit, and judge what it found by our own Hessian."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from iminuit import Minuit
from numpy.typing import ArrayLike

from morefit.backend import Array, Backend
from morefit.errors import DataError, FitError
from morefit.fit.covariance import Errors, choose_errors, with_errors
from morefit.fit.newton import minimise
from morefit.fit.objective import Objective
from morefit.fit.problem import Problem, as_likelihood, check_start, make_problem
from morefit.fit.replicas import TOLERANCE
from morefit.fit.result import FitResult
from morefit.fit.verdict import Verdict, complaints, goal_of, look_at
from morefit.likelihood import AnyLikelihood, Evaluation
from morefit.model import Pdf

RETRIES = 2  # of Migrad, from where it stopped, if the exact Hessian says that it stopped too early
INTEGRAL_ERROR = 0.01  # of the log likelihood: more from numerical integrals makes a fit invalid
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
    errors: Errors = "auto",
    minimiser: Minimiser = "minuit",
    backend: str | Backend = "auto",
) -> FitResult:
    """Fit a model to data, or minimise a likelihood.

    ``fixed`` names parameters to hold, at their start values or at values given as a mapping; ``start`` and
    ``limits`` override those of the parameters. ``tolerance`` is Minuit's: the fit stops at an estimated distance
    to the minimum (EDM) below 0.002 * tolerance * 0.5. The covariance is the inverse of the exact Hessian H, which
    also checks the minimum; so Minuit's own numeric check, its strategy 1 or 2, is not needed and off by default.
    With weights it is the "sandwich" H^-1 C H^-1, C being the sum of the squared weighted scores
    (arXiv:1911.01303). ``errors`` chooses: "naive" is H^-1, "sumw2" H^-1 H2 H^-1 with the Hessian H2 of squared
    weights, "bootstrap" the spread of the fits of replicas, "auto" the sandwich with weights and else naive.
    ``minimiser="newton"`` takes Newton steps with the exact Hessian, and Minuit only where they fail.
    """
    begin = time.perf_counter()
    likelihood = as_likelihood(model, data, weights, backend)
    chosen = choose_errors(errors, likelihood, minos is not False)
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
    result = make_result(likelihood, objective, path, verdict, minos_errors, seconds)
    if chosen == "naive":
        return result
    return with_errors(result, chosen, likelihood, problem, verdict, try_minuit)


def try_minuit(
    likelihood: AnyLikelihood, start: Mapping[str, float], fixed: Mapping[str, float], best: FitResult
) -> FitResult | None:
    """Return what Minuit finds close to the minimum within the limits of a fit, or None where it cannot start."""
    limits = {n: best.limits[n] for n in start}
    try:
        return fit(likelihood, start=start, fixed=fixed, limits=limits, tolerance=TOLERANCE, errors="naive")
    except (FitError, DataError):
        return None


def check_choices(derivatives: str, minimiser: str) -> None:
    if derivatives not in ("analytic", "numeric"):
        raise FitError(f"fit: derivatives must be 'analytic' or 'numeric', got {derivatives!r}")
    if minimiser not in ("minuit", "newton"):
        raise FitError(f"fit: minimiser must be 'minuit' or 'newton', got {minimiser!r}")


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
            minuit = Minuit(
                self.objective.value_of_pair,
                start,
                grad=self.objective.gradient,
                name=problem.floating,
                **self.second_derivatives(),
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

    def second_derivatives(self) -> dict[str, Callable[[Array], Array]]:
        """Return what Minuit is told of them: the Hessian where it asks for it, else the curvature at the start.

        Strategies 1 and 2 would compute the Hessian by differences, from several gradients for each parameter.
        """
        curvature = np.diag(self.first.hessian[0]).copy()
        if not np.all(curvature > 0):
            return {}
        if self.strategy > 0:
            return {"hessian": self.objective.hessian}
        return {"g2": lambda x: curvature}  # scales the first steps, and is needed nowhere else


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
    errors = np.sqrt(np.diag(verdict.covariance))
    fitted = dict(zip(problem.floating, verdict.values.tolist(), strict=True))
    uncertain = dict(zip(problem.floating, errors.tolist(), strict=True))
    names = tuple(p.name for p in problem.all_parameters)
    return FitResult(
        names=names,
        values={n: fitted.get(n, problem.values[n]) for n in names},
        errors={n: uncertain.get(n, 0.0) for n in names},
        floating=problem.floating,
        covariance=verdict.covariance,
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
        backend=likelihood.backend.label,
        minimiser=path.name,
    )


def floating_values(likelihood: AnyLikelihood, problem: Problem, values: Array) -> Array:
    known = dict(problem.values) | dict(zip(problem.floating, values, strict=True))
    return np.array([known[p.name] for p in likelihood.parameters])
