"""Minimise a likelihood with Minuit, and check the minimum with the exact Hessian."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np

from morefit.arrays import Array
from morefit.errors import BackendError, CompileError, DataError, FitError, ModelError, OptionError
from morefit.kernel.fit_layout import FitRows
from morefit.likelihood import Evaluation, Term
from morefit.minimise.check import Verdict, check_minimum, edm_goal, failure_reasons
from morefit.minimise.covariance import Errors, Spread, choose_errors, no_spread, with_errors, with_simulation
from morefit.minimise.diagnosis import missing_derivatives
from morefit.minimise.newton import is_valid, minimise
from morefit.minimise.objective import Objective
from morefit.minimise.problem import Problem, check_start
from morefit.minimise.quadratic_model import OPEN
from morefit.minimise.result import FitResult
from morefit.minimise.trust_region import CONVERGED
from morefit.minimise.whole import fit_at_once
from morefit.validate import as_number

if TYPE_CHECKING:
    from iminuit import Minuit

RETRIES = 2  # of Migrad, from where it stopped, if the exact Hessian says that it stopped too early
WORST = {"nll": 0.01, "errors": 0.01}  # that numerical integrals may be off: more makes a fit invalid
REFUSED = (DataError, FitError, ModelError)  # what a fit raises where it cannot start
Derivatives = Literal["analytic", "numeric"]
Minimiser = Literal["auto", "minuit", "newton"]


@dataclass(frozen=True)
class Options:
    """How to minimise, as ``mf.fit`` explains."""

    derivatives: Derivatives = "analytic"
    strategy: int = 0
    tolerance: float = 0.1
    max_calls: int | None = None
    minos: bool | Iterable[str] = False
    errors: Errors = "auto"
    minimiser: Minimiser = "auto"
    print_level: int = 0
    simulation: bool = False  # whether errors include those of simulated samples

    def __post_init__(self) -> None:
        check_choices(self.derivatives, self.minimiser, self.strategy, self.tolerance, self.max_calls)
        if self.print_level not in (0, 1, 2, 3):
            raise OptionError(f"fit: print_level must be 0, 1, 2 or 3, got {self.print_level!r}")

    @property
    def uses_newton(self) -> bool:
        """Whether Newton's method comes first: not for options that only Minuit has, nor without derivatives."""
        only_minuit = self.print_level > 0 or self.max_calls is not None or self.derivatives == "numeric"
        return self.minimiser == "newton" or (self.minimiser == "auto" and not only_minuit)


def minimise_likelihood(
    likelihood: Term, problem: Problem, options: Options, spread: Spread = no_spread
) -> FitResult:
    """Minimise a likelihood; ``spread`` computes the covariance of replicas where errors shall come from these."""
    begin = time.perf_counter()
    minos, newton = options.minos, options.uses_newton
    chosen = choose_errors(options.errors, likelihood, problem.floating, minos is not False)
    objective = Objective(likelihood, problem, chosen == "gradients")
    if newton:
        for part in likelihood.parts:
            part.sums(2)
    else:
        likelihood.prepare(1 if options.derivatives == "analytic" else 0)
    ready = time.perf_counter()
    path = Path(objective, options)
    verdict = path.newton() if newton else None
    path.name = "minuit" if verdict is None else "newton"
    verdict = verdict or path.minuit_with_retries()
    end = time.perf_counter()
    minos_errors = run_minos(path, verdict, minos)
    seconds = {"compile": ready - begin, "minimise": end - ready - path.looking, "hessian": path.looking}
    if minos_errors:
        seconds["minos"] = time.perf_counter() - end
    result = make_result(likelihood, objective, path, verdict, minos_errors, seconds)
    objective.release()
    if chosen not in ("naive", "gradients"):
        result = with_errors(result, chosen, likelihood, problem, verdict, spread)
    return with_simulation(result, likelihood, problem, verdict) if options.simulation else result


def check_choices(
    derivatives: str, minimiser: str, strategy: int, tolerance: object, max_calls: object
) -> None:
    if derivatives not in ("analytic", "numeric"):
        raise OptionError(f"fit: derivatives must be 'analytic' or 'numeric', got {derivatives!r}")
    if minimiser not in ("auto", "minuit", "newton"):
        raise OptionError(f"fit: minimiser must be 'auto', 'minuit' or 'newton', got {minimiser!r}")
    if strategy not in (0, 1, 2):
        raise OptionError(f"fit: strategy must be 0, 1 or 2, got {strategy!r}")
    number = as_number(tolerance)
    if number is None or not 0 <= number < math.inf:
        raise OptionError(f"fit: tolerance must be a positive number, got {tolerance!r}")
    if max_calls is not None and not (isinstance(max_calls, Integral) and int(max_calls) > 0):
        raise OptionError(f"fit: max_calls must be a positive whole number or None, got {max_calls!r}")


@dataclass(eq=False)
class Path:
    """The way to a minimum: Newton's or Minuit's, from where the former ended."""

    objective: Objective
    options: Options
    minuit: Minuit | None = None
    failure: str = ""  # what Minuit raised, in words
    looking: float = 0.0  # seconds spent on Hessians at the end of it
    name: str = "minuit"  # what found the minimum; MINOS is Minuit's in any case

    def look(self, values: Array) -> Verdict:
        begin = time.perf_counter()
        verdict = check_minimum(self.objective, values, self.options.tolerance)
        self.looking += time.perf_counter() - begin
        return verdict

    @property
    def exhausted(self) -> bool:
        return self.ended and bool(self.minuit.fmin.has_reached_call_limit)  # type: ignore[union-attr]

    @property
    def ended(self) -> bool:
        """Whether Migrad ran to an end, good or bad."""
        return self.minuit is not None and self.minuit.fmin is not None and not self.failure

    @cached_property
    def first(self) -> Evaluation:
        """The likelihood at the start, which must be defined there."""
        objective = self.objective
        first = objective.at(objective.problem.start, 2)
        check_start(objective.likelihood, objective.problem, first)
        return first

    def newton(self) -> Verdict | None:
        """Take Newton steps, all in one call if that can be done; None if they do not end at a minimum."""
        objective, goal = self.objective, edm_goal(self.options.tolerance)
        problem = objective.problem
        try:
            rows = None if objective.by_scores else fit_at_once(objective.likelihood, problem, goal)
            if rows is None or rows.column("unresolved")[0]:  # integrals by boxes that follow the parameters
                limits = problem.floating_limits
                minima = minimise(lambda _, x: objective.at(x[0], 2), problem.start[None, :], limits, goal)
                return self.look(minima.x[0]) if minima.valid[0] else None
        except ModelError:
            return None
        objective.calls["hessian"] += int(rows.steps[0])
        status, fixed = rows.status[0], rows.column("fixed")[0]
        if status == CONVERGED and not fixed:
            return verdict_of(rows, goal)
        return self.look(rows.x[0]) if is_valid(status, fixed) else None

    def minuit_with_retries(self) -> Verdict:
        """Run Migrad, and again from where it stopped if the exact Hessian says that it stopped too early."""
        minuit = self.run_minuit(self.objective.problem.start)
        verdict = self.look(self.reached())
        for _ in range(RETRIES):
            if verdict.edm <= verdict.goal or not self.ended or self.exhausted:
                break
            minuit.strategy = max(self.options.strategy, 1)
            if not self.attempt(minuit.migrad, ncall=self.options.max_calls):
                minuit = self.run_minuit(self.reached())
            before, verdict = verdict, self.look(self.reached())
            if math.isnan(verdict.edm) and not verdict.last.value[0] < before.last.value[0]:
                break  # no minimum here, and no way further down
        return verdict

    def reached(self) -> Array:
        """Return where Minuit stopped; where it failed, the lowest point that it has seen."""
        values = np.array(self.minuit.values) if self.minuit is not None else self.objective.problem.start
        best = self.objective.best
        return values if best is None or (self.ended and all(map(math.isfinite, values))) else best

    def attempt(self, job: Callable[..., object], *names: str, **options: int | None) -> bool:
        """Call a method of Minuit; an exception makes the fit invalid, and is not raised."""
        try:
            job(*names, **options)
        except (BackendError, CompileError, MemoryError):
            raise
        except Exception as error:
            self.failure = f"Minuit failed with {type(error).__name__}: {error}"
        else:
            self.failure = ""
        return not self.failure

    def run_minuit(self, start: Array) -> Minuit:
        """Run Migrad; without second derivatives if it fails with them, as iminuit does for some Hessians."""
        for known in (self.second_derivatives(), {}):
            self.minuit = self.make_minuit(start, known)
            if self.attempt(self.minuit.migrad, ncall=self.options.max_calls) or not known:
                break
        return self.minuit

    def make_minuit(self, start: Array, second: dict[str, Callable[[Array], Array]]) -> Minuit:
        """Set up Minuit for the floating parameters only; the Hessian at the start gives it its scales."""
        from iminuit import Minuit

        problem = self.objective.problem
        if self.options.derivatives == "analytic":
            minuit = Minuit(
                self.objective.value_of_pair,
                start,
                grad=self.objective.gradient,
                name=problem.floating,
                **second,
            )
        else:
            minuit = Minuit(self.objective.value, start, name=problem.floating)
        minuit.errordef = Minuit.LIKELIHOOD
        minuit.strategy = self.options.strategy
        minuit.tol = self.options.tolerance
        minuit.print_level = self.options.print_level or -1  # problems are reported in the result
        minuit.limits = [problem.limits[n] for n in problem.floating]
        minuit.errors = step_sizes(problem, self.first)
        return minuit

    def second_derivatives(self) -> dict[str, Callable[[Array], Array]]:
        """Return those that Minuit takes: the Hessian where its strategy uses it, else the curvature at the start.

        Strategies 1 and 2 would compute the Hessian by differences, from several gradients for each parameter.
        """
        curvature = np.diag(self.first.hessian[0]).copy()
        if not np.all(curvature > 0):
            return {}
        if self.options.strategy > 0:
            return {"hessian": self.objective.hessian}
        return {"g2": lambda x: curvature}  # scales the first steps, and is needed nowhere else


def verdict_of(rows: FitRows, goal: float) -> Verdict:
    """Return the verdict on a minimum inside all limits, whose derivatives are known."""
    count = rows.layout.count
    hessian, inverse = (rows.columns(name).reshape(1, count, count) for name in ("hessian", "covariance"))
    last = Evaluation(rows.value, rows.columns("gradient"), hessian, np.zeros(1, np.int64))
    return Verdict(rows.x[0], last, inverse[0], np.zeros((count, count)), (), float(rows.edm[0]), goal)


def step_sizes(problem: Problem, first: Evaluation) -> list[float]:
    """Return one standard deviation each, as the curvature at the start has it, within the limits."""
    steps = []
    for k, name in enumerate(problem.floating):
        curvature = first.hessian[0, k, k]
        low, high = problem.limits[name]
        width = high - low
        size = max(abs(problem.values[name]), 1.0)
        step = 1 / math.sqrt(curvature) if curvature > 0 and math.isfinite(curvature) else 0.0
        if not step > 0:
            step = 0.01 * (width if math.isfinite(width) else size)
        steps.append(min(step, 0.25 * width, OPEN * size))
    return steps


def run_minos(path: Path, verdict: Verdict, wanted: bool | Iterable[str]) -> dict[str, tuple[float, float]]:
    """Run MINOS for the parameters wanted, with Minuit brought to the minimum if it was not there."""
    if wanted is False:
        return {}
    floating = path.objective.problem.floating
    if not isinstance(wanted, Iterable) and wanted is not True:
        raise OptionError(f"fit: minos must be True, False or names of parameters, got {wanted!r}")
    names = list(floating) if wanted is True else [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [n for n in names if n not in floating]
    if unknown:
        raise FitError(f"fit: minos needs floating parameters, got {', '.join(map(repr, unknown))}")
    minuit = path.minuit or path.run_minuit(verdict.values)
    if not path.ended or not minuit.fmin.is_valid or not path.attempt(minuit.minos, *names):
        return {}
    return {
        n: (minuit.merrors[n].lower, minuit.merrors[n].upper) for n in names if minuit.merrors[n].is_valid
    }


def make_result(
    likelihood: Term, objective: Objective, path: Path, verdict: Verdict,
    minos: dict[str, tuple[float, float]], seconds: dict[str, float],
) -> FitResult:  # fmt: skip
    problem = objective.problem
    x = floating_values(likelihood, problem, verdict.values)
    reasons = [*([path.failure] if path.failure else []), *failure_reasons(path.exhausted, verdict)]
    if not verdict.last.bad[0] and not math.isfinite(verdict.edm):
        reasons += missing_at_minimum(likelihood, problem, verdict, x)
    if verdict.last.bad[0]:
        reasons.append(f"at the minimum {likelihood.bad_events(x)}")
    try:
        integral_errors = check_integrals(likelihood, problem, verdict, x)
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
        backend=likelihood.backend.label,
        minimiser=path.name,
        flat_directions=verdict.flat,
        integral_errors=integral_errors,
        errors_from="gradients" if objective.by_scores else "naive",
        labels={p.name: p.label for p in problem.all_parameters if p.label},
    )


def check_integrals(likelihood: Term, problem: Problem, verdict: Verdict, x: Array) -> dict[str, float]:
    """Return how far numerical integrals may be off, for the nll and relatively for the errors; empty without any."""
    if not likelihood.has_integrals:
        return {}
    full, rows = problem.full(verdict.values), np.ix_(problem.rows, problem.rows)
    here, other = likelihood.evaluate_full(full, 2), likelihood.evaluate_again(full)
    nll = max(likelihood.events * likelihood.integral_error(x), abs(float(other.value[0] - here.value[0])))
    sizes = np.sqrt(np.abs(np.diag(verdict.inverse)))
    change = np.abs(other.hessian[0] - here.hessian[0])[rows] * np.outer(sizes, sizes)
    return {"nll": float(nll), "errors": float(np.nan_to_num(change, nan=0.0).max(initial=0.0)) / 2}


def missing_at_minimum(likelihood: Term, problem: Problem, verdict: Verdict, x: Array) -> Iterator[str]:
    """Describe which derivatives are missing at a minimum that has a value."""
    for order, numbers in ((1, verdict.last.gradient), (2, verdict.last.hessian)):
        if math.isfinite(verdict.last.value[0]) and not np.isfinite(numbers).all():
            yield f"at the minimum {missing_derivatives(likelihood, x, problem.floating, order)}"
            return


def floating_values(likelihood: Term, problem: Problem, values: Array) -> Array:
    known = dict(problem.values) | dict(zip(problem.floating, values, strict=True))
    return np.array([known[p.name] for p in likelihood.parameters])
