"""Minimise a likelihood with some parameters held at many points, all points together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.errors import FitError, OptionError
from morefit.expr import Op, symbols
from morefit.likelihood.unbinned import AnyLikelihood, Evaluation
from morefit.minimise import FitResult, fit
from morefit.minimise.fit import try_minuit
from morefit.minimise.newton import minimise
from morefit.minimise.replicas import GOAL
from morefit.resources import check_memory
from morefit.text.progress import Bar
from morefit.text.suggest import suggest
from morefit.validate import as_number, whole_number

BYTES_OF_POINT = 200.0  # of a scan: values of all parameters, and what the minimiser needs

LOWER = 10 * GOAL  # than the best fit: a point so much lower is the better minimum
# Events times sets at once, about a second: Ctrl-C is heard and the bar moves in between.
LARGEST_LAUNCH = 2e8


def best_fit(what: str, likelihood: AnyLikelihood, best: FitResult | None) -> FitResult:
    """Return the fit to start from: that given, or one made now, which must be valid.

    Parameters that data without events say nothing of stay where they start.
    """
    if not isinstance(likelihood, AnyLikelihood):
        rule = "takes a likelihood, as in mf.Likelihood(model, data)"
        raise FitError(f"{what}: {rule}, got {type(likelihood).__name__}")
    if not (best is None or isinstance(best, FitResult)):
        raise OptionError(f"{what}: best must be what mf.fit returns, got {best!r}")
    if best is None:
        best = fit(likelihood, fixed=unseen(likelihood))
        if not best.valid:
            raise FitError(
                f"{what}: the fit to start from is not valid ({'; '.join(best.reasons)}); pass a better one as best"
            )
    names = {p.name for p in likelihood.all_parameters}
    if set(best.names) != names or not set(best.floating) <= {p.name for p in likelihood.parameters}:
        raise FitError(f"{what}: best must be a fit of this likelihood, got one of {', '.join(best.names)}")
    return refined(likelihood, best)


def unseen(likelihood: AnyLikelihood) -> list[str]:
    """Return the floating parameters that only events would tell of, where there are none."""
    seen: set[str] = set()
    for part in likelihood.parts:
        if part.events:
            seen.update(p.name for p in part.all_parameters)
        expected = part.model.expected_events()
        terms = (*part.constraints, *([] if expected is None else [expected]))
        seen.update(s.name for term in terms for s in symbols(Op.SCALAR, term))
    return [p.name for p in likelihood.parameters if p.name not in seen]


def refined(likelihood: AnyLikelihood, best: FitResult) -> FitResult:
    """Take the last steps to the minimum: a fit may stop where the nll is still 1e-4 too high."""
    held = Held(likelihood, best, (), np.empty((1, 0)), Bar("", 1, False))
    held.attempt(np.array([0]), held.others)
    if not held.valid[0] or held.nll[0] > best.nll:
        return best
    values = {**best.values, **dict(zip(held.rest, held.others[0].tolist(), strict=True))}
    return replace(best, values=values, nll=float(held.nll[0]))


def check_floating(what: str, best: FitResult, *names: str) -> None:
    wrong = [n for n in names if n not in best.floating]
    if wrong and not best.events and wrong[0] in best.names:
        raise FitError(
            f"{what}: needs floating parameters that the data tell of, got '{wrong[0]}' and no events"
        )
    if wrong:
        listed = ", ".join(f"{n!r}: {suggest(n, best.floating)}" for n in wrong)
        raise FitError(f"{what}: needs floating parameters, got {listed}")
    if len(set(names)) < len(names):
        raise FitError(f"{what}: needs two different parameters, got '{names[0]}' twice")


def check_points(what: str, best: FitResult, name: str, points: Array) -> None:
    low, high = best.limits[name]
    if points.ndim != 1 or not len(points) or not np.all((points >= low) & (points <= high)):
        got = f"{points.min():.6g} to {points.max():.6g}" if points.size else "none"
        raise FitError(f"{what}: values of '{name}' must be a list of numbers in [{low}, {high}], got {got}")


def span(what: str, best: FitResult, name: str, width: float, size: int) -> Array:
    """Return values around the best one, so many errors to each side, inside the limits."""
    size = whole_number(f"{what}: size", size, 2)
    check_memory(f"{what}: {size:.6g} points", BYTES_OF_POINT * float(size))
    value, error = best.values[name], best.errors[name]
    if not (isfinite(error) and error > 0):
        raise FitError(
            f"{what}: parameter '{name}' has no error to scale the range by; pass values or bounds"
        )
    low, high = best.limits[name]
    return np.linspace(max(value - width * error, low), min(value + width * error, high), size)


def spaced(what: str, bounds: Any, size: int) -> Array:
    """Return so many values from one bound to the other."""
    size = whole_number(f"{what}: size", size, 2)
    check_memory(f"{what}: {size:.6g} points", BYTES_OF_POINT * float(size))
    ends = [as_number(end) for end in bounds] if isinstance(bounds, Sequence | np.ndarray) else []
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None and -inf < ends[0] < ends[1] < inf:
        return np.linspace(ends[0], ends[1], size)
    raise OptionError(f"{what}: bounds must be two numbers, (low, high), got {bounds!r}")


class Held:
    """A likelihood with some parameters held at B points, to be minimised over the floating rest."""

    def __init__(
        self, likelihood: AnyLikelihood, best: FitResult, names: Sequence[str], points: Array, bar: Bar
    ) -> None:
        places = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        rows = {p.name: k for k, p in enumerate(likelihood.parameters)}
        self.likelihood, self.best, self.names, self.points, self.bar = likelihood, best, names, points, bar
        self.rest = tuple(n for n in best.floating if n not in names)
        self.columns = [places[n] for n in self.rest]
        self.rows = [rows[n] for n in self.rest]
        self.starts = {p.name: p.start for p in likelihood.all_parameters}
        self.limits = np.array([best.limits[n] for n in self.rest]).reshape(-1, 2)
        self.full = np.tile([best.values[p.name] for p in likelihood.all_parameters], (len(points), 1))
        self.full[:, [places[n] for n in names]] = points
        self.nll = np.full(len(points), nan)
        self.others = np.tile([best.values[n] for n in self.rest], (len(points), 1))
        self.valid = np.zeros(len(points), bool)

    def minimise(self) -> None:
        """Minimise all points together; then what failed from elsewhere, and at last by Minuit."""
        everyone = np.arange(len(self.points))
        if not self.rest:
            self.evaluate_only(everyone)
            return
        self.attempt(everyone, self.predicted())
        self.attempt(self.failed, self.others[self.failed])
        # a yield that is zero in the best fit may have to make up for one that is held at zero
        starts = np.clip([self.starts[n] for n in self.rest], *self.limits.T)
        self.attempt(self.failed, np.tile(starts, (len(self.failed), 1)))
        while len(self.failed) and self.valid.any():
            before = len(self.failed)
            self.attempt(self.failed, self.others[self.nearest(self.failed)])
            if len(self.failed) == before:
                break
        for k in self.failed:
            self.by_minuit(int(k))

    @property
    def failed(self) -> Integers:
        return np.flatnonzero(~self.valid)

    def lowest(self) -> tuple[Array, float]:
        """Return where the nll is lowest and how low: at the best fit, or at a point that is clearly lower."""
        nll = np.where(self.valid, self.nll, inf)
        k = int(np.argmin(nll))
        if nll[k] < self.best.nll - LOWER:
            return self.points[k], float(nll[k])
        return np.array([self.best.values[n] for n in self.names]), self.best.nll

    def predicted(self) -> Array:
        """Return where a parabola with the covariance of the best fit has the minima."""
        start = self.others.copy()
        both = self.best.covariance_of(*self.names, *self.rest)
        if np.isfinite(both).all():
            count = len(self.names)
            away = self.points - [self.best.values[n] for n in self.names]
            start += away @ np.linalg.solve(both[:count, :count], both[:count, count:])
        return np.asarray(np.clip(start, self.limits[:, 0], self.limits[:, 1]), np.float64)

    def nearest(self, sets: Integers) -> Integers:
        """Return the valid point nearest to each of some points."""
        scale = np.ptp(self.points, axis=0)
        scaled = self.points / np.where(scale > 0, scale, 1.0)
        good = np.flatnonzero(self.valid)
        away = np.sum((scaled[sets, None, :] - scaled[None, good, :]) ** 2, axis=2)
        return np.asarray(good[np.argmin(away, axis=1)], np.int64)

    def attempt(self, sets: Integers, start: Array) -> None:
        """Minimise some points from where they are told to start, and keep what is valid."""
        if not len(sets):
            return
        found = minimise(lambda which, x: self.evaluate(sets[which], x), start, self.limits, GOAL)
        good = sets[found.valid]
        self.nll[good], self.others[good] = found.nll[found.valid], found.x[found.valid]
        self.valid[good] = True

    def evaluate(self, sets: Integers, x: Array) -> Evaluation:
        """Evaluate with the derivatives of the rest, a part of the sets after another if there are many."""
        self.bar.done(len(self.points) - len(sets))
        full = self.full[sets]
        full[:, self.columns] = x
        return evaluate_in_parts(self.likelihood, full).cut(self.rows)

    def evaluate_only(self, sets: Integers) -> None:
        found = evaluate_in_parts(self.likelihood, self.full[sets], order=0)
        self.nll[sets], self.valid[sets] = found.value, (found.bad == 0) & np.isfinite(found.value)

    def by_minuit(self, k: int) -> None:
        """Minimise one point with Minuit; keep what it found also if it is not valid."""
        start = self.others[self.nearest(np.array([k]))[0]] if self.valid.any() else self.others[k]
        names = [p.name for p in self.likelihood.all_parameters]
        fixed = {n: self.full[k, i] for i, n in enumerate(names) if n not in self.rest}
        found = try_minuit(self.likelihood, dict(zip(self.rest, start, strict=True)), fixed, self.best)
        if found is not None:
            self.nll[k], self.valid[k] = found.nll, found.valid
            self.others[k] = [found.values[n] for n in self.rest]


def evaluate_in_parts(likelihood: AnyLikelihood, full: Array, order: int = 2) -> Evaluation:
    """Evaluate many sets, no more at once than take about a second."""
    most = max(1, int(LARGEST_LAUNCH / max(likelihood.events, 1)))
    found = [likelihood.evaluate_full(full[i : i + most], order) for i in range(0, len(full), most)]
    return found[0] if len(found) == 1 else joined(found)


def joined(parts: Sequence[Evaluation]) -> Evaluation:
    return Evaluation(
        np.concatenate([p.value for p in parts]),
        np.concatenate([p.gradient for p in parts]),
        np.concatenate([p.hessian for p in parts]),
        np.concatenate([p.bad for p in parts]),
    )
