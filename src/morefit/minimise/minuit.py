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
from morefit.kernel.fit_layout import FAR_FROM_ONE
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
        start = self.objective.problem.start
        values = start if self.minuit is None else np.array(self.minuit.values) * self.scaled.units
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

        problem, scaled = self.objective.problem, self.scaled
        begin = start / scaled.units
        if self.options.derivatives == "analytic":
            minuit = Minuit(
                scaled.value_of_pair, begin, grad=scaled.gradient, name=problem.floating, **second
            )
        else:
            minuit = Minuit(scaled.value, begin, name=problem.floating)
        minuit.errordef = Minuit.LIKELIHOOD * self.objective.weight / scaled.value_unit
        minuit.strategy = self.strategy
        minuit.tol = self.options.tolerance
        minuit.limits = problem.floating_limits / scaled.units[:, None]
        minuit.errors = self.steps / scaled.units
        return minuit

    @cached_property
    def steps(self) -> Array:
        """The first steps of the parameters."""
        return np.array(step_sizes(self.objective.problem, self.first))

    @cached_property
    def scaled(self) -> InUnits:
        """The objective in units in which steps are about one, where they are far from it."""
        weight = np.array([self.objective.weight])
        return InUnits(self.objective, far_units(self.steps), float(far_units(weight)[0]))

    def second_derivatives(self) -> dict[str, Callable[[Array], Array]]:
        """Return those that Minuit takes: the Hessian where its strategy uses it, else the curvature at the start.

        Strategies 1 and 2 would compute the Hessian by differences, from several gradients for each parameter.
        """
        curvature = np.diag(self.first.hessian[0]) / self.scaled.value_unit * self.scaled.units**2
        if not np.all(curvature > 0):
            return {}
        if self.strategy > 0:
            return {"hessian": self.scaled.hessian}
        return {"g2": lambda x: curvature}  # scales the first steps, and is needed nowhere else

    def unit_of(self, name: str) -> float:
        """Return the unit in which Minuit has a parameter and its errors."""
        return float(self.scaled.units[self.objective.problem.floating.index(name)])

    def minos(self, names: Sequence[str]) -> Mapping[str, MError]:
        """Run MINOS from a start that is a minimum; return nothing where Minuit finds none there, or fails."""
        minuit = self.run(self.objective.problem.start)
        if not self.ended or not minuit.fmin.is_valid or not self.attempt(minuit.minos, *names):
            return {}
        return {n: minuit.merrors[n] for n in names}


@dataclass(frozen=True, eq=False)
class InUnits:
    """An objective whose parameters and values are measured in units, all of them powers of two."""

    objective: Objective
    units: Array  # (P,) of the parameters
    value_unit: float

    def value(self, x: Array) -> float:
        return self.objective.value(x * self.units) / self.value_unit

    def value_of_pair(self, x: Array) -> float:
        return self.objective.value_of_pair(x * self.units) / self.value_unit

    def gradient(self, x: Array) -> Array:
        return self.objective.gradient(x * self.units) / self.value_unit * self.units

    def hessian(self, x: Array) -> Array:
        return self.objective.hessian(x * self.units) / self.value_unit * self.units * self.units[:, None]


# iminuit looks here first; to inspect a signature takes longer than a pass over 10 000 events
for seen in (InUnits.value_of_pair, InUnits.value):
    seen.__dict__["_parameters"] = {"x": None}


def far_units(sizes: Array) -> Array:
    """Return powers of two near sizes that are far from one, else one: Minuit takes differences of less for none."""
    far = (sizes < 1 / FAR_FROM_ONE) | (sizes > FAR_FROM_ONE)
    return np.asarray(np.where(far, 2.0 ** np.round(np.log2(sizes)), 1.0), np.float64)


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
