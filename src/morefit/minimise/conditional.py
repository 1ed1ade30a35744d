"""Minimise a likelihood with some parameters fixed at many points, all points together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np

from morefit.arrays import Array, Integers
from morefit.errors import FitError, OptionError
from morefit.expr import Op, symbols
from morefit.likelihood import Evaluation, Term
from morefit.likelihood.wider import for_limits, resolved
from morefit.minimise import FitResult, fit
from morefit.minimise.batch import ANOTHER_START, NEWTON, UNDETERMINED, Batch, Fits
from morefit.minimise.finer_nodes import minimise_with_finer_nodes
from morefit.minimise.newton import Minima, minimise
from morefit.minimise.replicas import TOLERANCE
from morefit.resources import check_memory
from morefit.text.progress import Bar
from morefit.text.suggest import suggest
from morefit.validate import as_number, whole_number

BYTES_OF_POINT = 200.0  # of a scan: values of all parameters, and what the minimiser needs
GOAL = 1e-12  # EDM: Asimov data have what is expected at such minima, and p-values of them six digits
APART = 3.0  # errors: minima of neighbours that differ by more may be two different ones
LOWER = 1e-5  # than the best fit: a point so much lower is the better minimum


def best_fit(what: str, likelihood: Term, best: FitResult | None) -> FitResult:
    """Return the fit to start from: the one passed, or a new one, which must be valid.

    Parameters that data without events cannot determine stay where they start.
    """
    if not isinstance(likelihood, Term):
        raise FitError(
            f"{what}: takes a likelihood, as in mf.Likelihood(model, data), got {type(likelihood).__name__}"
        )
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


def warn_of_weights(what: str, likelihood: Term) -> None:
    """Warn that differences of a weighted likelihood have no known probabilities."""
    if likelihood.weighted:
        warnings.warn(
            f"{what}: events have weights, so that the levels of the likelihood are no probabilities; use the errors of"
            " mf.fit, or mf.intervals.bootstrap",
            UserWarning,
            stacklevel=3,
        )


def unseen(likelihood: Term) -> list[str]:
    """Return the floating parameters that only events determine, where there are none."""
    seen: set[str] = set()
    for part in likelihood.parts:
        if part.events:
            seen.update(p.name for p in part.all_parameters)
        expected = part.model.expected_events()
        terms = (*part.constraint_terms, *([] if expected is None else [expected]))
        seen.update(s.name for term in terms for s in symbols(Op.SCALAR, term))
    return [p.name for p in likelihood.parameters if p.name not in seen]


def refined(likelihood: Term, best: FitResult) -> FitResult:
    """Take the last steps to the minimum: a fit may stop where the nll is still 1e-4 too high."""
    last = Conditional(likelihood, best, (), np.empty((1, 0)), Bar("", 1, False))
    last.batch.attempt(last.fits, np.array([0]), last.batch.start, NEWTON)
    if not last.fits.valid[0] or last.fits.nll[0] > best.nll:
        return best
    values = {**best.values, **dict(zip(last.rest, last.fits.values[0].tolist(), strict=True))}
    return replace(best, values=values, nll=float(last.fits.nll[0]))


def check_floating(what: str, best: FitResult, *names: str) -> None:
    wrong = [n for n in names if n not in best.floating]
    if wrong and not best.events and wrong[0] in best.names:
        raise FitError(
            f"{what}: needs floating parameters that the data determine, got '{wrong[0]}' and no events"
        )
    if wrong and wrong[0] in best.quantities:
        raise FitError(
            f"{what}: needs floating parameters, got '{wrong[0]}', which is derived; write the model with it as a"
            " parameter, and derive another one from it"
        )
    if wrong:
        listed = ", ".join(f"{n!r}: {suggest(n, best.floating)}" for n in wrong)
        raise FitError(f"{what}: needs floating parameters, got {listed}")
    if len(set(names)) < len(names):
        raise FitError(f"{what}: needs two different parameters, got '{names[0]}' twice")


def check_points(what: str, best: FitResult, name: str, points: Array) -> None:
    low, high = best.limits[name]
    if points.ndim != 1 or not len(points) or not np.all((points >= low) & (points <= high)):
        ends = (
            dict.fromkeys(f"{end:.6g}" for end in (points.min(), points.max())) if points.size else ["none"]
        )
        got = " to ".join(ends)
        raise FitError(f"{what}: values of '{name}' must be a list of numbers in [{low}, {high}], got {got}")


def span(what: str, best: FitResult, name: str, width: float, size: int) -> Array:
    """Return values around the best one, ``width`` errors to each side, inside the limits."""
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
    """Return ``size`` values from one bound to the other."""
    size = whole_number(f"{what}: size", size, 2)
    check_memory(f"{what}: {size:.6g} points", BYTES_OF_POINT * float(size))
    ends = [as_number(end) for end in bounds] if isinstance(bounds, Sequence | np.ndarray) else []
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None and -inf < ends[0] < ends[1] < inf:
        return np.linspace(ends[0], ends[1], size)
    raise OptionError(f"{what}: bounds must be two numbers, (low, high), got {bounds!r}")


def batch_of(
    likelihood: Term,
    best: FitResult,
    floating: tuple[str, ...],
    base: Array,
    done: Callable[[int], None] = lambda _: None,
) -> Batch:
    """Return the minimiser of the data of a likelihood from rows of all parameters, some of which float."""
    likelihood = resolved(for_limits(likelihood, best.limits), best.values)
    return Batch(
        likelihood=likelihood,
        data=likelihood.own_data(),
        base=base,
        floating=floating,
        limits=np.array([best.limits[n] for n in floating]).reshape(-1, 2),
        goal=GOAL * likelihood.weight_scale,
        weight=likelihood.weight_scale,
        alone=lambda _: likelihood,
        strategy=0,
        tolerance=TOLERANCE,
        done=done,
    )


def minimise_others(batch: Batch, sets: Integers, which: Integers, x: Array) -> Minima:
    """Minimise each of some sets over all floating parameters but the one at ``which``, from ``x`` (S, P).

    The minima have the P - 1 others.
    """
    others = others_of(which, len(batch.floating))

    def evaluate(rows: Integers, values: Array) -> Evaluation:
        full, own = x[rows].copy(), others[rows]
        np.put_along_axis(full, own, values, 1)
        at, every = batch.evaluate(sets[rows], full), np.arange(len(rows))[:, None, None]
        gradient = np.take_along_axis(at.gradient, own, 1)
        return Evaluation(at.value, gradient, at.hessian[every, own[:, :, None], own[:, None, :]], at.bad)

    return minimise(evaluate, np.take_along_axis(x, others, 1), batch.limits[others], GOAL)


def others_of(which: Integers, count: int) -> Integers:
    """Return the columns of all ``count`` parameters but one, for each that is left out, (S, count - 1)."""
    columns = np.tile(np.arange(count), (len(which), 1))
    return np.asarray(columns[columns != which[:, None]].reshape(len(which), count - 1), np.int64)


class Conditional:
    """A likelihood with some parameters fixed at B points, minimised over the floating rest at all points together."""

    def __init__(
        self,
        likelihood: Term,
        best: FitResult,
        names: Sequence[str],
        points: Array,
        bar: Bar,
        known: tuple[Array, Array] | None = None,
    ) -> None:
        """Take the points; ``known`` are all parameters and the nll of those that were minimised before, nan of others."""
        columns = {p.name: k for k, p in enumerate(likelihood.all_parameters)}
        self.best, self.names, self.points = best, names, points
        self.rest = tuple(n for n in best.floating if n not in names)
        base = np.tile([best.values[p.name] for p in likelihood.all_parameters], (len(points), 1))
        base[:, [columns[n] for n in names]] = points
        self.begin = np.clip([p.start for p in likelihood.all_parameters], -inf, inf)[
            [columns[n] for n in self.rest]
        ]
        self.batch = batch_of(likelihood, best, self.rest, base, bar.done)
        self.fits = Fits.none(self.batch.start)
        if known is not None:
            self.take_known(*known)

    def take_known(self, full: Array, nll: Array) -> None:
        """Take the minima of points that were minimised before."""
        these, fits = np.isfinite(nll), self.fits
        fits.values[these], fits.nll[these] = full[these][:, self.batch.columns], nll[these]
        fits.valid[these], fits.method[these] = True, NEWTON

    def minimise(self) -> None:
        """Minimise all points; then what failed from elsewhere, from where neighbours have their minima, and by Minuit."""
        if self.rest:
            self.minimise_rest()
        else:
            self.batch.evaluate_only(self.fits)
        minimise_with_finer_nodes(self.batch, self.fits, self.fits.valid)

    def minimise_rest(self) -> None:
        """Minimise over the parameters that float."""
        fits, best = self.fits, self.batch.start
        new = fits.failed
        first = fits.values[self.nearest(new)] if fits.valid.any() else self.predicted()
        self.batch.attempt(fits, new, first, NEWTON)
        # a yield that is zero in the best fit may have to make up for one that is fixed at zero
        begin = np.tile(np.clip(self.begin, *self.batch.limits.T), (len(best), 1))
        for start in (best, begin):
            self.batch.attempt(fits, fits.failed, start[fits.failed], ANOTHER_START)
        while len(failed := fits.failed) and fits.valid.any():
            near = fits.values[self.nearest(failed)]
            if len(self.batch.attempt(fits, failed, near, ANOTHER_START)) == len(failed):
                self.batch.base[failed[:, None], self.batch.columns] = near
                break
        self.batch.rescue(fits)
        fits.valid[fits.method == UNDETERMINED] = (
            True  # the nll is known, also where it does not depend on all
        )
        self.follow_neighbours()

    def follow_neighbours(self) -> None:
        """Minimise again from the minima of neighbours wherever the nll is lower there: a profile does not jump up.

        Where a mixture has several minima, some points may have ended in a higher one than those next to them. Where these
        are far away, the neighbour's may be the lower one although the nll is not lower at once.
        """
        fits, order = self.fits, np.lexsort(self.points.T)
        errors = np.array([self.best.errors[n] for n in self.rest])
        changed, tried = fits.valid.copy(), np.zeros((2, len(order)), np.bool_)
        while changed.any():
            before, changed = changed, np.zeros_like(changed)
            for side, (near, own) in enumerate(((order[:-1], order[1:]), (order[1:], order[:-1]))):
                near, own = near[before[near]], own[before[near]]
                if not len(own):
                    continue  # integrals have no rule where no parameters are known
                there = self.batch.evaluate(own, fits.values[near], order=0)
                lower = (there.bad == 0) & ~(there.value >= fits.nll[own] - LOWER)
                away = np.any(np.abs(fits.values[near] - fits.values[own]) > APART * errors, axis=1)
                away &= ~tried[side, own]
                tried[side, own[away]] = True
                near, own = near[lower | away], own[lower | away]
                if not len(own):
                    continue
                minima = self.batch.newton(own, fits.values[near])
                better = minima.valid & ~(minima.nll >= fits.nll[own] - LOWER)
                fits.take(own[better], minima, better, ANOTHER_START)
                changed[own[better]] = True

    @property
    def full(self) -> Array:
        """All parameters at each point, (B, all parameters)."""
        return self.batch.full(self.fits)

    def lowest(self) -> tuple[Array, float]:
        """Return where the nll is lowest and how low: at the best fit, or at a point that is clearly lower."""
        nll = np.where(self.fits.valid, self.fits.nll, inf)
        k = int(np.argmin(nll))
        if nll[k] < self.best.nll - LOWER:
            return self.points[k], float(nll[k])
        return np.array([self.best.values[n] for n in self.names]), self.best.nll

    def predicted(self) -> Array:
        """Return where a parabola with the covariance of the best fit has the minima."""
        start = self.batch.start
        both = self.best.covariance_of(*self.names, *self.rest)
        if np.isfinite(both).all():
            count = len(self.names)
            away = self.points - [self.best.values[n] for n in self.names]
            start += away @ np.linalg.solve(both[:count, :count], both[:count, count:])
        return np.asarray(np.clip(start, *self.batch.limits.T), np.float64)

    def nearest(self, sets: Integers) -> Integers:
        """Return the valid point nearest to each of some points."""
        scale = np.ptp(self.points, axis=0)
        scaled = self.points / np.where(scale > 0, scale, 1.0)
        good = np.flatnonzero(self.fits.valid)
        away = np.sum((scaled[sets, None, :] - scaled[None, good, :]) ** 2, axis=2)
        return np.asarray(good[np.argmin(away, axis=1)], np.int64)
