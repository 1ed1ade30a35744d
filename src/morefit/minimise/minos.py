"""MINOS errors: where the profiled nll has risen by a half, for all parameters and both sides together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.errors import FitError, OptionError
from morefit.likelihood import Evaluation, Term
from morefit.minimise.conditional import LOWER, batch_of, refined
from morefit.minimise.minuit import Migrad
from morefit.minimise.newton import Minima, minimise
from morefit.minimise.objective import Objective
from morefit.minimise.options import Options
from morefit.minimise.path import minimise_likelihood
from morefit.minimise.problem import Problem
from morefit.minimise.replicas import GOAL
from morefit.minimise.result import FitResult
from morefit.minimise.trust_region import CONVERGED, FLAT
from morefit.model import Parameter
from morefit.validate import name_of

UP = 0.5  # how far the nll rises
CLOSE = 1e-5  # to that rise: about as many errors
NARROW = 1e-7  # of the distance: where the nll jumps, its rise is no closer
GROWTH = 4.0  # of the distance, at most, while the nll has not risen enough
MAX_DISTANCE = 1e3  # first steps, where no limit ends the search
MAX_ROUNDS = 60  # of conditional fits; three or four are enough where the nll is about a parabola
BISECT = 5  # every so many rounds at the latest
MAX_RESTARTS = 5  # of a fit, at lower minima
SEARCHING, CROSSED, AT_LIMIT, OPEN, FAILED = range(5)  # the status of a side
SIDES = ("lower", "upper")


@dataclass
class Sides:
    """MINOS errors by name, nan where there is none, and what is to be said about them."""

    errors: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, side: int, error: float, note: str = "") -> None:
        self.errors.setdefault(name, [nan, nan])[side] = error
        if note:
            self.notes.append(f"minos of {name}: {note.format(side=SIDES[side])}")


def with_minos(likelihood: Term, problem: Problem, options: Options, result: FitResult) -> FitResult:
    """Return a result with MINOS errors; where these lead to a lower minimum, the fit starts again from there."""
    begin, sides = time.perf_counter(), Sides()
    names = minos_names(options.minos, problem.floating)
    if not result.valid:
        sides.notes.append("minos: not run, as the fit is not valid")
    elif options.uses_newton:
        for _ in range(MAX_RESTARTS):
            crossings = Crossings(likelihood, refined(likelihood, result), names)
            sides = crossings.search(result)
            if crossings.lower is None:
                break
            values = dict(zip(problem.floating, crossings.lower.tolist(), strict=True))
            again = minimise_likelihood(
                likelihood, replace(problem, values={**problem.values, **values}), options
            )
            if not (again.valid and again.nll < result.nll):
                break
            note = f"minos: started again from a minimum that is lower by {result.nll - again.nll:.3g}"
            result = replace(again, notes=(*result.notes, note))
    reasons = list(result.reasons)
    if result.valid and (left := [n for n in names if n not in sides.errors]):
        reasons += minos_of_minuit(likelihood, replace(problem, values=result.values), options, left, sides)
    return replace(
        result, minos={n: (lower, upper) for n, (lower, upper) in sides.errors.items()}, notes=(*result.notes, *sides.notes), reasons=tuple(reasons), valid=not reasons,
        seconds={**result.seconds, "minos": time.perf_counter() - begin},
    )  # fmt: skip


def minos_names(wanted: Any, floating: Sequence[str]) -> list[str]:
    """Return the names of the parameters to run MINOS for."""
    if wanted is True:
        return list(floating)
    if not isinstance(wanted, str | Parameter | Iterable):
        raise OptionError(f"fit: minos must be True, False or names of parameters, got {wanted!r}")
    names = [name_of(one) for one in ([wanted] if isinstance(wanted, str | Parameter) else wanted)]
    if unknown := [n for n in names if n not in floating]:
        raise FitError(f"fit: minos needs floating parameters, got {', '.join(map(repr, unknown))}")
    return list(dict.fromkeys(names))


def minos_of_minuit(
    likelihood: Term, problem: Problem, options: Options, names: Sequence[str], sides: Sides
) -> list[str]:
    """Run Minuit's own MINOS from a minimum and add what it finds; return what it raised, in words."""
    objective = Objective(likelihood, problem)
    migrad = Migrad(objective, options)
    errors = migrad.minos(names)
    objective.release()
    if not errors and not migrad.failure:
        sides.notes.append("minos: Minuit finds no valid minimum to begin from")
    for name, error in errors.items():
        for k, side in enumerate(SIDES):
            if not getattr(error, f"{side}_valid"):
                why = "a lower minimum is near" if getattr(error, f"{side}_new_min") else "Minuit finds no end"
                sides.add(name, k, nan, f"no {{side}} error, {why}")
            elif getattr(error, f"at_{side}_limit"):
                sides.add(name, k, getattr(error, side), "the {side} error ends at the limit")
            else:
                sides.add(name, k, getattr(error, side))
    return [migrad.failure] if migrad.failure else []


class Crossings:
    """A search for each parameter and side: S of them, each a minimisation over the R other floating parameters.

    Where the nll is a parabola its root is straight, so Newton's method on the root converges in a few rounds; its slope
    is that of the nll by the fixed parameter alone, since the others are at their minimum. Rounds inside a bracket end.
    """

    def __init__(self, likelihood: Term, best: FitResult, names: Sequence[str]) -> None:
        floating = best.floating
        which = np.repeat([floating.index(n) for n in names], 2)
        count, self.best, self.names = len(which), best, names
        self.which: Integers = which  # (S,) the fixed parameter
        self.sign = np.tile([-1.0, 1.0], len(names))
        self.others = np.array([[j for j in range(len(floating)) if j != k] for k in which], np.int64)
        base = np.tile([best.values[p.name] for p in likelihood.all_parameters], (count, 1))
        self.batch = batch_of(likelihood, best, floating, base)
        self.centre = np.array([best.values[n] for n in floating])[which]
        self.limits = self.batch.limits
        edge = np.where(self.sign < 0, self.limits[which, 0], self.limits[which, 1])
        self.room = np.abs(edge - self.centre)
        self.edge = edge
        error = np.array([best.errors[n] for n in floating])[which]
        self.known = np.isfinite(error)  # what data do not determine has no error
        scale = np.where(self.known & (error > 0), error, 0.01 * np.maximum(np.abs(self.centre), 1.0))
        self.scale = np.minimum(scale, np.where(self.room > 0, self.room, scale))
        self.distance = np.minimum(self.scale, self.room)
        self.inner, self.outer = np.zeros(count), np.full(count, inf)  # not yet risen, and risen too far
        self.rise = np.zeros(count)
        self.status = np.where(self.known, np.where(self.room > 0, SEARCHING, AT_LIMIT), OPEN)
        covariance = np.nan_to_num(best.covariance)
        variance = np.where(self.known & (error > 0), error, 1.0) ** 2
        self.tangent = self.sign[:, None] * covariance[self.others, which[:, None]] / variance[:, None]
        self.x = np.take_along_axis(self.batch.start, self.others, 1) + self.distance[:, None] * self.tangent
        self.lower: Array | None = None  # floating parameters where the nll is lower than at the minimum

    def search(self, result: FitResult) -> Sides:
        """Return errors relative to the values of a result; none for a parameter of which a conditional fit failed."""
        for k in range(MAX_ROUNDS):
            active = np.flatnonzero(self.status == SEARCHING)
            if not len(active) or self.lower is not None:
                break
            self.advance(active, bisect=k % BISECT == BISECT - 1)
        self.status[self.status == SEARCHING] = FAILED
        sides = Sides()
        for k, name in enumerate(self.names):
            if self.lower is None and FAILED not in self.status[2 * k : 2 * k + 2]:
                self.report(sides, name, 2 * k, result.values[name])
                self.report(sides, name, 2 * k + 1, result.values[name])
        return sides

    def report(self, sides: Sides, name: str, k: int, value: float) -> None:
        error, note = self.theta(np.array([k]))[0] - value, ""
        if self.status[k] == OPEN:
            error = nan
            note = (
                f"no {{side}} error, as the nll does not rise by {UP}"
                if self.known[k]
                else "no {side} error, as the data do not determine it"
            )
        elif self.status[k] == AT_LIMIT:
            note = f"the {{side}} error ends at the limit, where the nll has risen by {self.rise[k]:.2g}"
        sides.add(name, k % 2, float(error), note)

    def theta(self, sets: Integers) -> Array:
        """Return where parameters are fixed; at the distance of a limit, exactly there."""
        at = self.centre[sets] + self.sign[sets] * self.distance[sets]
        return np.asarray(np.where(self.distance[sets] >= self.room[sets], self.edge[sets], at), np.float64)

    def evaluate(self, sets: Integers, x: Array) -> Evaluation:
        """Evaluate with the derivatives by all floating parameters."""
        full = np.empty((len(sets), x.shape[1] + 1))
        np.put_along_axis(full, self.others[sets], x, 1)
        full[np.arange(len(sets)), self.which[sets]] = self.theta(sets)
        return self.batch.evaluate(sets, full)

    def conditional(self, sets: Integers) -> Minima:
        """Minimise over the other parameters."""

        def evaluate(rows: Integers, x: Array) -> Evaluation:
            at, others = self.evaluate(sets[rows], x), self.others[sets[rows]]
            hessian = np.take_along_axis(at.hessian, others[:, :, None], 1)
            return Evaluation(
                at.value,
                np.take_along_axis(at.gradient, others, 1),
                np.take_along_axis(hessian, others[:, None, :], 2),
                at.bad,
            )

        return minimise(evaluate, self.x[sets], self.limits[self.others[sets]], GOAL)

    def advance(self, sets: Integers, bisect: bool) -> None:
        """Minimise at the present distances and choose the next ones."""
        if self.x.shape[1]:
            minima = self.conditional(sets)
            good = np.isin(minima.status, (CONVERGED, FLAT))
            self.status[sets[~good]] = FAILED
            sets, covariance = sets[good], np.nan_to_num(minima.covariance[good])
            self.x[sets] = minima.x[good]
        else:
            covariance = np.empty((len(sets), 0, 0))
        at, rows = self.evaluate(sets, self.x[sets]), np.arange(len(sets))
        rise, distance = at.value - self.best.nll, self.distance[sets]
        slope = self.sign[sets] * at.gradient[rows, self.which[sets]]
        self.rise[sets] = rise
        if len(sets) and rise.min() < -LOWER:
            k = int(np.argmin(rise))
            self.lower = np.insert(self.x[sets[k]], self.which[sets[k]], self.theta(sets[k : k + 1]))
            return
        mixed = np.take_along_axis(at.hessian[rows, self.which[sets]], self.others[sets], 1)
        self.tangent[sets] = -self.sign[sets][:, None] * np.einsum("kij,kj->ki", covariance, mixed)
        low = rise < UP
        self.inner[sets] = np.where(low, distance, self.inner[sets])
        self.outer[sets] = np.where(low, self.outer[sets], distance)
        inner, outer, room = self.inner[sets], self.outer[sets], self.room[sets]
        bracketed = np.isfinite(outer)
        crossed = (np.abs(rise - UP) <= CLOSE) | (bracketed & (outer - inner <= NARROW * outer))
        at_limit = low & (distance >= room) & ~crossed
        endless = low & (distance >= MAX_DISTANCE * self.scale[sets]) & np.isinf(room)
        self.status[sets] = np.select([crossed, at_limit, endless], [CROSSED, AT_LIMIT, OPEN], SEARCHING)
        root = np.sqrt(2 * np.maximum(rise, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = distance + (np.sqrt(2 * UP) - root) * root / slope
        longest = np.minimum(np.where(bracketed, outer, GROWTH * distance), room)
        middle = np.where(bracketed, 0.5 * (inner + outer), longest)
        used = (newton > inner) & (newton < outer) & (slope > 0) & ~(bracketed & bisect)
        following = np.where(used, np.minimum(newton, longest), middle)
        searching = self.status[sets] == SEARCHING
        self.distance[sets] = np.where(searching, following, distance)
        moved = self.x[sets] + (self.distance[sets] - distance)[:, None] * self.tangent[sets]
        low_high = self.limits[self.others[sets]]
        self.x[sets] = np.clip(moved, low_high[..., 0], low_high[..., 1])
