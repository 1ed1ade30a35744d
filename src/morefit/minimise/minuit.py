"""Drive Minuit: Migrad, again where the exact Hessian says that it stopped too early, and its MINOS."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.errors import BackendError, CompileError
from morefit.likelihood import Evaluation
from morefit.minimise.check import Verdict, check_minimum
from morefit.minimise.objective import Objective
from morefit.minimise.options import Options
from morefit.minimise.problem import Problem, check_start
from morefit.minimise.quadratic_model import OPEN

if TYPE_CHECKING:
    from iminuit import Minuit
    from iminuit.util import MError

RETRIES = 2  # of Migrad, from where it stopped, if the exact Hessian says that it stopped too early


@dataclass(eq=False)
class Migrad:
    """Minuit on an objective, from the start of its problem."""

    objective: Objective
    options: Options
    minuit: Minuit | None = None
    failure: str = ""  # what Minuit raised, in words

    @property
    def strategy(self) -> int:
        return self.options.strategy or 0

    @property
    def problems(self) -> list[str]:
        """What kept Minuit from a minimum, in words."""
        texts = [self.failure, "the call limit was reached before the minimum" if self.exhausted else ""]
        return [text for text in texts if text]

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

    def minimise(self) -> Verdict:
        """Run Migrad, and again from where it stopped if the exact Hessian says that it stopped too early."""
        minuit, tolerance = self.run(self.objective.problem.start), self.options.tolerance
        verdict = check_minimum(self.objective, self.reached(), tolerance)
        for _ in range(RETRIES):
            if verdict.edm <= verdict.goal or not self.ended or self.exhausted:
                break
            minuit.strategy = max(self.strategy, 1)
            if not self.attempt(minuit.migrad, ncall=self.options.max_calls):
                minuit = self.run(self.reached())
            before, verdict = verdict, check_minimum(self.objective, self.reached(), tolerance)
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
        assert self.minuit is not None
        level = self.minuit.print_level  # of all of Minuit in this process
        self.minuit.print_level = self.options.print_level or -1  # problems are reported in the result
        try:
            job(*names, **options)
        except (BackendError, CompileError, MemoryError):
            raise
        except Exception as error:
            self.failure = f"Minuit failed with {type(error).__name__}: {error}"
        else:
            self.failure = ""
        finally:
            self.minuit.print_level = level
        return not self.failure

    def run(self, start: Array) -> Minuit:
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
        minuit.errordef = Minuit.LIKELIHOOD * self.objective.weight
        minuit.strategy = self.strategy
        minuit.tol = self.options.tolerance
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
        if self.strategy > 0:
            return {"hessian": self.objective.hessian}
        return {"g2": lambda x: curvature}  # scales the first steps, and is needed nowhere else

    def minos(self, names: Sequence[str]) -> Mapping[str, MError]:
        """Run MINOS from a start that is a minimum; return nothing where Minuit finds none there, or fails."""
        minuit = self.run(self.objective.problem.start)
        if not self.ended or not minuit.fmin.is_valid or not self.attempt(minuit.minos, *names):
            return {}
        return {n: minuit.merrors[n] for n in names}


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
