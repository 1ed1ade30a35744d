"""MINOS errors: where the profiled nll has risen by a half, for all parameters and both sides together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from math import inf, nan
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import FitError, OptionError
from morefit.likelihood import Term
from morefit.minimise.check import edm_goal
from morefit.minimise.conditional import LOWER, batch_of, minimise_others, others_of, refined
from morefit.minimise.minuit import Migrad
from morefit.minimise.objective import Objective
from morefit.minimise.options import Options
from morefit.minimise.path import minimise_likelihood
from morefit.minimise.problem import Problem
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
BISECT = 5  # rounds after which a bisection comes at the latest
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
    if not names:
        return result
    if not result.valid:
        sides.notes.append("minos: not run, as the fit is not valid")
    elif options.uses_newton:
        result, sides = search_crossings(likelihood, problem, options, result, names)
    reasons = list(result.reasons)
    if result.valid and (left := [n for n in names if n not in sides.errors]):
        reasons += minos_of_minuit(likelihood, replace(problem, values=result.values), options, left, sides)
    return replace(
        result, minos={n: (lower, upper) for n, (lower, upper) in sides.errors.items()}, notes=(*result.notes, *sides.notes), reasons=tuple(reasons), valid=not reasons,
        seconds={**result.seconds, "minos": time.perf_counter() - begin},
    )  # fmt: skip


def search_crossings(
    likelihood: Term, problem: Problem, options: Options, result: FitResult, names: Sequence[str]
) -> tuple[FitResult, Sides]:
    """Return the errors, and the result that they are of: a lower one, where a lower minimum came into sight."""
    sides = Sides()
    for _ in range(MAX_RESTARTS):
        best, values = refined(likelihood, result), None
        if best.nll < result.nll - 10 * edm_goal(options.tolerance):
            values = best.values
        else:
            crossings = Crossings(likelihood, best, names)
            sides = crossings.search(result)
            if crossings.lower is not None:
                values = dict(zip(problem.floating, crossings.lower.tolist(), strict=True))
        if values is None:
            break
        again = minimise_likelihood(
            likelihood, replace(problem, values={**problem.values, **values}), options
        )
        if not (again.valid and again.nll < result.nll):
            break
        note = f"minos: started again from a minimum that is lower by {result.nll - again.nll:.3g}"
        result = replace(again, notes=(*result.notes, note))
    return result, sides


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
        unit = migrad.unit_of(name)
        for k, side in enumerate(SIDES):
            if not getattr(error, f"{side}_valid"):
                why = (
                    "a lower minimum is near" if getattr(error, f"{side}_new_min") else "Minuit finds no end"
                )
                sides.add(name, k, nan, f"no {{side}} error, {why}")
            elif getattr(error, f"at_{side}_limit"):
                sides.add(name, k, unit * getattr(error, side), "the {side} error ends at the limit")
            else:
                sides.add(name, k, unit * getattr(error, side))
    return [migrad.failure] if migrad.failure else []


class Crossings:
    """A search for each parameter and side: S of them, each a minimisation over the R other floating parameters.

    Where the nll is a parabola its root is straight, so Newton's method on the root takes a few rounds. The slope is that
    by the fixed parameter alone, since the others are at their minimum. A bracket makes every search end.
    """

    def __init__(self, likelihood: Term, best: FitResult, names: Sequence[str]) -> None:
        floating, self.best, self.names = best.floating, best, names
        self.which = np.repeat([floating.index(n) for n in names], 2)  # (S,) the parameter that is fixed
        self.others = others_of(self.which, len(floating))
        self.sign = np.tile([-1.0, 1.0], len(names))
        base = np.tile([best.values[p.name] for p in likelihood.all_parameters], (len(self.which), 1))
        self.batch = batch_of(likelihood, best, floating, base)
        self.limits = self.batch.limits[self.others]  # (S, R, 2) of the others
        self.edge = self.batch.limits[self.which, (self.sign > 0).astype(int)]
        start = self.batch.start
        self.centre = start[np.arange(len(start)), self.which]
        self.room = np.abs(self.edge - self.centre)
        self.begin(start)
        self.lower: Array | None = None  # floating parameters where the nll is lower than at the minimum

    def begin(self, start: Array) -> None:
        """Go one error away from the minimum, with the other parameters where a parabola has them."""
        error = np.array([self.best.errors[n] for n in self.best.floating])[self.which]
        self.known = np.isfinite(error)  # what data do not determine has no error
        error = np.where(self.known & (error > 0), error, 0.01 * np.maximum(np.abs(self.centre), 1.0))
        self.scale = np.minimum(error, np.where(self.room > 0, self.room, inf))
        self.distance = np.minimum(self.scale, self.room)
        self.status = np.where(self.known, np.where(self.room > 0, SEARCHING, AT_LIMIT), OPEN)
        self.rise = np.zeros(len(start))
        self.inner, self.outer = np.zeros(len(start)), np.full(len(start), inf)  # risen too little, too much
        covariance = np.nan_to_num(self.best.covariance[self.others, self.which[:, None]])
        self.inner_x = np.take_along_axis(start, self.others, 1)  # the others at the inner end
        self.inner_tangent = (self.sign / error**2)[:, None] * covariance  # and how they change there
        self.x = self.clip(np.arange(len(start)), self.inner_x + self.distance[:, None] * self.inner_tangent)

    def search(self, result: FitResult) -> Sides:
        """Return errors relative to the values of a result; none of a parameter of which a conditional fit failed."""
        for k in range(MAX_ROUNDS):
            active = np.flatnonzero(self.status == SEARCHING)
            if not len(active) or self.lower is not None:
                break
            self.advance(active, bisect=k % BISECT == BISECT - 1)
        sides = Sides()
        for k, name in enumerate(self.names):
            pair = self.status[2 * k : 2 * k + 2]
            if self.lower is None and not np.isin(pair, (SEARCHING, FAILED)).any():
                for side in (0, 1):
                    self.report(sides, name, 2 * k + side, result.values[name])
        return sides

    def report(self, sides: Sides, name: str, k: int, value: float) -> None:
        """Add the error of one side, and why there is none, or only a part of one."""
        error, note = float(self.theta(np.array([k]))[0] - value), ""
        if self.status[k] == OPEN:
            why = f"the nll does not rise by {UP}" if self.known[k] else "the data do not determine it"
            error, note = nan, f"no {{side}} error, as {why}"
        elif self.status[k] == AT_LIMIT:
            note = f"the {{side}} error ends at the limit, where the nll has risen by {self.rise[k]:.2g}"
        sides.add(name, k % 2, error, note)

    def theta(self, sets: Integers) -> Array:
        """Return where parameters are fixed; at the distance of a limit, exactly there."""
        at = self.centre[sets] + self.sign[sets] * self.distance[sets]
        return np.asarray(np.where(self.distance[sets] >= self.room[sets], self.edge[sets], at), np.float64)

    def clip(self, sets: Integers, x: Array) -> Array:
        return np.asarray(np.clip(x, self.limits[sets, :, 0], self.limits[sets, :, 1]), np.float64)

    def full(self, sets: Integers) -> Array:
        """Return all floating parameters, with those that are fixed."""
        full = np.empty((len(sets), self.x.shape[1] + 1))
        np.put_along_axis(full, self.others[sets], self.x[sets], 1)
        full[np.arange(len(sets)), self.which[sets]] = self.theta(sets)
        return full

    def advance(self, sets: Integers, bisect: bool) -> None:
        """Minimise at the present distances, and choose the next ones."""
        covariance = np.zeros((len(sets), self.x.shape[1], self.x.shape[1]))
        if self.x.shape[1]:
            minima = minimise_others(self.batch, sets, self.which[sets], self.full(sets))
            good = np.isin(minima.status, (CONVERGED, FLAT))
            self.status[sets[~good]] = FAILED
            sets, covariance = sets[good], np.nan_to_num(minima.covariance[good])
            self.x[sets] = minima.x[good]
        at, rows = self.batch.evaluate(sets, self.full(sets)), np.arange(len(sets))
        self.rise[sets] = at.value - self.best.nll
        if self.rise[sets].min(initial=inf) < -LOWER:
            k = sets[[np.argmin(self.rise[sets])]]
            self.lower = np.insert(self.x[k[0]], self.which[k[0]], self.theta(k)[0])
            return
        mixed = np.take_along_axis(at.hessian[rows, self.which[sets]], self.others[sets], 1)
        tangent = -self.sign[sets, None] * np.einsum("kij,kj->ki", covariance, mixed)
        low = self.rise[sets] < UP
        self.inner[sets[low]], self.outer[sets[~low]] = self.distance[sets[low]], self.distance[sets[~low]]
        self.inner_x[sets[low]], self.inner_tangent[sets[low]] = self.x[sets[low]], tangent[low]
        self.judge(sets)
        self.move(sets, self.sign[sets] * at.gradient[rows, self.which[sets]], tangent, bisect)

    def judge(self, sets: Integers) -> None:
        """Decide which searches have ended."""
        rise, distance, room, outer = (a[sets] for a in (self.rise, self.distance, self.room, self.outer))
        narrow = np.isfinite(outer) & (outer - self.inner[sets] <= NARROW * outer)
        crossed = narrow | (np.abs(rise - UP) <= CLOSE)
        at_limit = (rise < UP) & (distance >= room)
        endless = (rise < UP) & np.isinf(room) & (distance >= MAX_DISTANCE * self.scale[sets])
        self.status[sets] = np.select([crossed, at_limit, endless], [CROSSED, AT_LIMIT, OPEN], SEARCHING)

    def move(self, sets: Integers, slope: Array, tangent: Array, bisect: bool) -> None:
        """Choose the next distances of searches: Newton's step, or the middle of the bracket.

        From there on a search begins anew at its inner end: the other parameters may have strayed to another minimum.
        """
        rise, distance, inner, outer = (a[sets] for a in (self.rise, self.distance, self.inner, self.outer))
        root = np.sqrt(2 * np.maximum(rise, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = distance + (np.sqrt(2 * UP) - root) * root / slope
        bracketed = np.isfinite(outer)
        longest = np.minimum(np.where(bracketed, outer, GROWTH * distance), self.room[sets])
        used = (newton > inner) & (newton < outer) & (slope > 0) & ~(bracketed & bisect)
        following = np.where(
            used, np.minimum(newton, longest), np.where(bracketed, 0.5 * (inner + outer), longest)
        )
        ahead = self.x[sets] + (following - distance)[:, None] * tangent
        anew = self.inner_x[sets] + (following - inner)[:, None] * self.inner_tangent[sets]
        going = self.status[sets] == SEARCHING
        self.x[sets[going]] = self.clip(
            sets[going], np.where((used | ~bracketed)[:, None], ahead, anew)[going]
        )
        self.distance[sets[going]] = following[going]
