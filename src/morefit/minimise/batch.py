"""THE batch minimiser: one fit for each of many sets together, and one rescue for those that fail.

Toys, weighted datasets, replicas, fits with fixed parameters and tested points are all such sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags, Integers
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import value_unit
from morefit.likelihood import Evaluation, Term
from morefit.likelihood.evaluation import PartData
from morefit.minimise.newton import minimise, minimise_eliminated
from morefit.minimise.newton_program import HIGHER
from morefit.minimise.options import Options
from morefit.minimise.path import REFUSED, minimise_likelihood
from morefit.minimise.problem import check_data, make_problem
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.minimise.result import FitResult
from morefit.minimise.settle import Kinked, settle
from morefit.minimise.starts import STARTS
from morefit.minimise.trust_region import DEGENERATE, FLAT

NEWTON, ANOTHER_START, MINUIT, FAILED, UNDETERMINED = range(5)  # how a fit was obtained, or not
SHIFTS = (0.5, -0.5, 1.5)  # in twentieths of the way between limits: other starts for fits that fail
FAR_SHIFTS = (-1.5, 4.0, -4.0, 8.0, -8.0)  # one after the other, for those that fail from there as well
MARGIN = 10.0  # goals: an EDM that is no larger is that of a minimum, as for Minuit
MAX_LAUNCH = 2e8  # events times sets at once, about a second: Ctrl-C is heard and progress moves in between

Starts = Callable[["Fits", Integers], Array]  # the fits so far and some sets -> where these may start


@dataclass(frozen=True, eq=False)
class Fits:
    """The fits of B sets with P floating parameters each."""

    values: Array  # (B, P)
    errors: Array  # (B, P), nan where there are none
    nll: Array  # (B,)
    edm: Array  # (B,)
    valid: Flags  # (B,)
    method: NDArray[np.uint8]  # (B,)
    covariance: Array | None = None  # (B, P, P); None where only errors are known

    @classmethod
    def none(cls, start: Array) -> Fits:
        """Return fits of which nothing is known but where they start."""
        sets, count = start.shape
        return cls(
            values=start.copy(),
            errors=np.full((sets, count), np.nan),
            nll=np.full(sets, np.nan),
            edm=np.full(sets, np.nan),
            valid=np.zeros(sets, np.bool_),
            method=np.full(sets, FAILED, np.uint8),
            covariance=np.full((sets, count, count), np.nan),
        )

    @classmethod
    def joined(cls, some: Sequence[Fits]) -> Fits:
        """Concatenate fits."""
        names = ("values", "errors", "nll", "edm", "valid", "method")
        known = [f.covariance for f in some if f.covariance is not None]
        covariance = np.concatenate(known) if len(known) == len(some) else None
        return cls(**{n: np.concatenate([getattr(f, n) for f in some]) for n in names}, covariance=covariance)

    def rows(self, order: Integers) -> Fits:
        """Return some fits, in an order."""
        covariance = None if self.covariance is None else self.covariance[order]
        names = ("values", "errors", "nll", "edm", "valid", "method")
        return Fits(**{n: getattr(self, n)[order] for n in names}, covariance=covariance)

    @property
    def failed(self) -> Integers:
        """Those without a result; where parameters are undetermined, other starts would not help."""
        return np.flatnonzero(self.method == FAILED)

    def judged(self, likelihood: Term, floating: tuple[str, ...]) -> Fits:
        """Return these fits, none of them valid where steps of a density move: wherever they end, it is not at a minimum."""
        if likelihood.stepping(floating):
            self.valid[:], self.method[:] = False, FAILED
        return self

    def take(self, sets: Integers, fits: Fits, rows: Integers | Flags | slice, method: int) -> None:
        """Take some rows of other fits as those of some sets."""
        for name in ("values", "errors", "nll", "edm"):
            getattr(self, name)[sets] = getattr(fits, name)[rows]
        self.valid[sets], self.method[sets] = method < FAILED, method
        if self.covariance is not None and fits.covariance is not None:
            self.covariance[sets] = fits.covariance[rows]

    def take_all(self, sets: Integers, fits: Fits) -> None:
        """Take other fits as those of some sets, however they were obtained."""
        for method in np.unique(fits.method):
            these = fits.method == method
            self.take(sets[these], fits, these, int(method))


def methods(status: Array, valid: Flags) -> NDArray[np.uint8]:
    """Return how fits were obtained by Newton's method, or why not."""
    lost = (status == FLAT) | (status == DEGENERATE)
    return np.where(valid, NEWTON, np.where(lost, UNDETERMINED, FAILED)).astype(np.uint8)


@dataclass(eq=False)
class Batch:
    """A likelihood of many datasets or with parameters fixed at many points, to be minimised over the rest.

    ``base`` has a row of all parameters for each set: where floating ones start and the others stay. ``alone`` returns
    the likelihood of one set by itself, for Minuit; ``done`` is called with the number of sets that are finished.
    """

    likelihood: Term
    data: Sequence[PartData]
    base: Array  # (B, all parameters)
    floating: tuple[str, ...]
    limits: Array  # (P, 2)
    goal: float
    alone: Callable[[int], Term]
    strategy: int = 1  # of Minuit
    tolerance: float = 0.1  # of Minuit
    thorough: bool = False  # every fit is started again elsewhere
    done: Callable[[int], None] = lambda _: None
    weight: float = 1.0  # the mean one of events

    @cached_property
    def columns(self) -> list[int]:
        """Where the floating parameters are among all."""
        indices = {p.name: k for k, p in enumerate(self.likelihood.all_parameters)}
        return [indices[n] for n in self.floating]

    @cached_property
    def rows(self) -> list[int]:
        """Where they are among those by which the likelihood has derivatives."""
        indices = {p.name: k for k, p in enumerate(self.likelihood.parameters)}
        return [indices[n] for n in self.floating]

    @property
    def much(self) -> float:
        """How much higher a minimum is that is not the same."""
        return HIGHER * value_unit(self.weight)

    @property
    def start(self) -> Array:
        """Where each set starts, (B, P)."""
        return np.clip(self.base[:, self.columns], self.limits[:, 0], self.limits[:, 1])

    def full(self, fits: Fits) -> Array:
        """Return all parameters where fits ended, (B, all parameters)."""
        full = self.base.copy()
        full[:, self.columns] = fits.values
        return full

    def values_at(self, fits: Fits, k: int) -> dict[str, float]:
        """Return all parameters where the fit of one set ended, by name."""
        names = (p.name for p in self.likelihood.all_parameters)
        return dict(zip(names, self.full(fits)[k].tolist(), strict=True))

    def of_one(self, k: int, term: Term) -> Batch:
        """Return the minimiser of one set, whose likelihood by itself is given."""
        return replace(
            self, likelihood=term, data=term.own_data(), base=self.base[[k]], alone=lambda _: term,
            done=lambda _: None,
        )  # fmt: skip

    def fit(self, starts: Sequence[Starts] = ()) -> Fits:
        """Fit all sets from where they start, and those that fail again."""
        fits = Fits.none(self.start)
        if not self.floating:
            return self.evaluate_only(fits)
        self.attempt(fits, np.arange(len(self.base)), self.start, NEWTON)
        self.rescue(fits, starts)
        return fits

    def rescue(self, fits: Fits, starts: Sequence[Starts] = ()) -> None:
        """Fit what failed again, all failures together: from other starts, and at last each with Minuit.

        Starts of the caller come first, each for those that are left. Then come points around the start, the lowest
        of three minima first, and others farther away. A minimum above where the fit failed, such as at a kink, is not
        the last word, and no minimum at all where that is in another valley, or where the start is lower.
        """
        if self.likelihood.stepping(self.floating):  # no start helps, nor Minuit
            return
        left = fits.failed
        self.correct(fits, left)
        tried, before, ceiling = left, Fits.none(self.start[left]), self.ceiling(fits, left)
        before.take(np.arange(len(left)), fits, left, FAILED)
        for choose in starts:
            left = self.attempt(fits, left, choose(fits, left), ANOTHER_START) if len(left) else left
        ends = fits.nll.copy()
        left = self.lowest(fits, left, ends, SHIFTS)
        for shift in FAR_SHIFTS:
            left = self.lowest(fits, left, ends, (shift,))
        for k in left:
            self.by_minuit(fits, int(k))
        wrong = fits.valid[tried] & (fits.nll[tried] > ceiling)
        fits.take(tried[wrong], before, wrong, FAILED)

    def correct(self, fits: Fits, sets: Integers) -> None:
        """Evaluate the nll where some sets failed: compiled fits may have left the boxes of their integrals, and be far too low there."""
        if self.likelihood.has_integrals and len(sets):
            there = self.evaluate(sets, fits.values[sets], order=0)
            known = (there.bad == 0) & np.isfinite(there.value)
            fits.nll[sets] = np.where(known, there.value, np.nan)

    def ceiling(self, fits: Fits, sets: Integers) -> Array:
        """Return how high a minimum of some sets may be that failed before."""
        if not len(sets):
            return np.empty(0)
        start = self.evaluate(sets, self.start[sets], order=0)
        known = np.where((start.bad == 0) & np.isfinite(start.value), start.value, np.inf)
        return np.fmin(known, np.where(fits.edm[sets] < UNKNOWN, fits.nll[sets], np.inf)) + self.much

    def attempt(self, fits: Fits, sets: Integers, start: Array, method: int) -> Integers:
        """Minimise some sets from these starts and keep what is valid; return those that are not."""
        if not len(sets):
            return sets
        minima = self.newton(sets, start)
        if method == NEWTON:
            fits.take(sets, minima, slice(None), FAILED)
        lost = minima.method == UNDETERMINED
        fits.take(sets[lost], minima, lost, UNDETERMINED)
        fits.take(sets[minima.valid], minima, minima.valid, method)
        return np.asarray(sets[minima.method == FAILED], np.int64)

    def lowest(self, fits: Fits, sets: Integers, ends: Array, shifts: Sequence[float]) -> Integers:
        """Minimise some sets from points around their starts and keep the lowest minimum of each.

        Return those that have none, or one above the end of the fit that failed.
        """
        best = np.where(fits.valid[sets], fits.nll[sets], np.inf)
        for shift in shifts if len(sets) else ():
            minima = self.newton(sets, self.shifted(sets, shift))
            lower = minima.valid & (minima.nll < best)
            best[lower] = minima.nll[lower]
            fits.take(sets[lower], minima, lower, ANOTHER_START)
        return np.asarray(sets[~np.isfinite(best) | (best > ends[sets] + self.much)], np.int64)

    def shifted(self, sets: Integers, shift: float) -> Array:
        """Return starts moved by a part of the way between the limits, each parameter in its own direction."""
        start, (low, high) = self.start[sets], self.limits.T
        width = high - low
        part = np.where(np.isfinite(width), 0.05 * width, 0.1 * np.maximum(np.abs(start), 1.0))
        signs = np.where(np.arange(start.shape[1]) % 2, 1.0, -1.0)
        return np.asarray(np.clip(start + shift * signs * part, low, high), np.float64)

    @cached_property
    def kinks(self) -> list[int]:
        """Which floating parameters move kinks of a density of events without weights."""
        if self.likelihood.weighted or any(part.weights is not None for part in self.data):
            return []
        names = self.likelihood.kinked(self.floating)
        return [k for k, name in enumerate(self.floating) if name in names]

    def scores(self, sets: Integers, x: Array) -> Array:
        """Return sums of products of scores of some sets at floating parameters."""
        full = self.base[sets]
        full[:, self.columns] = x
        return self.likelihood.many_scores(self.data, sets, full)[
            np.ix_(range(len(sets)), self.rows, self.rows)
        ]

    def settled(self, sets: Integers, start: Array) -> Fits:
        """Minimise a density with kinks for some sets together."""
        starts = 0 if self.likelihood.one_minimum else STARTS
        kinked = Kinked(self.evaluate, self.scores, self.limits, self.goal, self.kinks, self.thorough, starts)
        ends = settle(kinked, sets, start)
        valid = ends.edm <= MARGIN * self.goal  # nor nan
        return Fits(
            values=ends.x,
            errors=np.sqrt(np.diagonal(ends.covariance, axis1=1, axis2=2)),
            nll=ends.value,
            edm=ends.edm,
            valid=valid,
            method=np.where(valid, NEWTON, FAILED).astype(np.uint8),
            covariance=ends.covariance,
        )

    def newton(self, sets: Integers, start: Array) -> Fits:
        """Take Newton steps for some sets together."""
        if self.kinks:
            return self.settled(sets, start)
        elimination = None if self.thorough else self.likelihood.elimination(self.floating, self.limits)
        if elimination is None:
            minima = minimise(
                lambda k, x: self.evaluate(sets[k], x), start, self.limits, self.goal, thorough=self.thorough,
                starts=0 if self.likelihood.one_minimum else STARTS, edges=self.likelihood.edges(self.floating, self.limits),
                weight=self.weight,
            )  # fmt: skip
        else:
            full = self.base[sets]
            full[:, self.columns] = start
            minima = minimise_eliminated(
                elimination, self.data, sets, full, limits=self.limits, goal=self.goal
            )
        fits = Fits(
            values=minima.x,
            errors=minima.errors,
            nll=minima.nll,
            edm=minima.edm,
            valid=minima.valid,
            method=methods(minima.status, minima.valid),
            covariance=minima.covariance,
        )
        return fits.judged(self.likelihood, self.floating)

    def evaluate(self, sets: Integers, x: Array, order: int = 2) -> Evaluation:
        """Evaluate some sets at floating parameters, with the derivatives by these."""
        self.done(len(self.base) - len(sets))
        full = self.base[sets]
        full[:, self.columns] = x
        pieces = [
            self.likelihood.evaluate_many(self.data, sets[some], full[some], order)
            for some in self.pieces(sets)
        ]
        if len(pieces) == 1:
            joined = pieces[0]
        else:
            names = ("value", "gradient", "hessian", "bad")
            joined = Evaluation(*(np.concatenate([getattr(p, n) for p in pieces]) for n in names))
        return joined.cut(self.rows) if order == 2 else joined

    def pieces(self, sets: Integers) -> Iterator[slice]:
        """Cut sets that share all events into pieces that take about a second each."""
        events = sum(part.events.count for part in self.data if part.events.shared)
        size = max(1, int(MAX_LAUNCH / events)) if events else max(len(sets), 1)
        for first in range(0, max(len(sets), 1), size):
            yield slice(first, first + size)

    def evaluate_only(self, fits: Fits) -> Fits:
        """Evaluate where nothing floats."""
        sets = np.arange(len(self.base))
        evaluation = self.evaluate(sets, np.empty((len(sets), 0)), order=0)
        fits.nll[:] = evaluation.value
        fits.valid[:] = (evaluation.bad == 0) & np.isfinite(evaluation.value)
        fits.method[fits.valid] = NEWTON
        return fits

    def by_minuit(self, fits: Fits, k: int) -> None:
        """Minimise one set with Minuit, from where it starts; keep what it finds also if it is not valid."""
        names = [p.name for p in self.likelihood.all_parameters]
        values = dict(zip(names, self.base[k].tolist(), strict=True))
        start = dict(zip(self.floating, self.start[k].tolist(), strict=True))
        result = self.try_minuit(self.alone(k), start, {n: v for n, v in values.items() if n not in start})
        if result is None or (fits.valid[k] and not (result.valid and result.nll < fits.nll[k])):
            return
        method = MINUIT if result.valid else UNDETERMINED if result.undetermined else FAILED
        rows = Fits(
            values=np.array([[result.values[n] for n in self.floating]]),
            errors=np.array([[result.errors[n] for n in self.floating]]),
            nll=np.array([result.nll]),
            edm=np.array([result.edm]),
            valid=np.array([result.valid]),
            method=np.array([method], np.uint8),
            covariance=result.covariance[None],
        )
        fits.take(np.array([k]), rows, np.array([0]), method)

    def try_minuit(self, term: Term, start: dict[str, float], fixed: dict[str, float]) -> FitResult | None:
        """Return what Minuit finds within the limits, or None where it cannot start."""
        limits = {n: (low, high) for n, (low, high) in zip(self.floating, self.limits.tolist(), strict=True)}
        try:
            check_data(term)
            options = Options(minimiser="minuit", strategy=self.strategy, tolerance=self.tolerance)
            return minimise_likelihood(term, make_problem(term, start, fixed, limits), options)
        except REFUSED:
            return None
