"""Draw toys at one tested value and fit each: its estimate, or the ratio of its likelihood to that with the value fixed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import inf, isinf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.intervals.free_fits import TIE, FreeFits, reached
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.wider import resolved
from morefit.minimise.batch import Fits
from morefit.random.host import part_key, stream_key
from morefit.sampling.generate import Sizes, expected_events, poisson_sizes
from morefit.targets.base import Backend
from morefit.toys.batch import Toys
from morefit.toys.ensemble import Ensemble
from morefit.toys.nodes import fit_with_finer_nodes
from morefit.toys.whole_fits import first_fits

MAX_EVENTS = 1 << 23  # drawn together; toys and their bits must not depend on the machine, so this is fixed

Report = Callable[[int], None]  # how many toys of a point are done
Side = Literal["both", "below", "above"]
Estimator = Callable[[Any], float]  # of a dataset, or of those of the parts


@dataclass(frozen=True, eq=False)
class Outcome:
    """One number for each toy of a point, nan if its fits failed."""

    numbers: NDArray[Any]  # (T,): estimates, or ratios,
    estimates: NDArray[Any] | None = None  # (T,): which come with the estimates of the free fits
    clipped: int = 0  # number of toys below zero within the precision of fits, set to zero
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Tested:
    """Toys at each of some truths: toy i of point k has the number k * toys + i. It pickles."""

    term: Term
    name: str
    truths: tuple[Mapping[str, float], ...]
    starts: tuple[Mapping[str, float], ...]  # of the free fits
    idle: tuple[tuple[str, ...], ...]  # parameters without effect at the tested value, so fixed as well
    seed: int
    purpose: str  # of the toys: constructions with one seed have toys of their own
    toys: int
    events: tuple[int | None, ...]  # of each part; None: Poisson numbers around what it expects
    backend: Backend
    estimator: Estimator | None = None
    fluctuate: bool = True  # toys draw what constraints measured anew
    values: tuple[float, ...] | None = None  # that are tested; None: the true ones
    bound: float | None = None  # free fits below it count as those with the parameter fixed there
    shared_from: int | None = None  # points from here on have one truth, and share their toys
    side: Side = "both"  # t counts only where the free fit is on this side of the tested value
    begun: dict[int, Point] = field(init=False, default_factory=dict, repr=False)  # with their first fits

    def begin(self, numbers: Sequence[int], ensembles: Callable[[Point], Sequence[Ensemble]]) -> None:
        """Make the first fits of the toys at some points together, which the backend may do faster."""
        points = [Point(self, k) for k in numbers if not self.has_no_events(k)]
        make_first_fits([(point, ensemble) for point in points for ensemble in ensembles(point)])
        self.begun.update((point.number, point) for point in points)

    def point(self, number: int) -> Point:
        """Return the toys at a point, with their first fits if these are made."""
        return self.begun.pop(number, None) or Point(self, number)

    @property
    def stream(self) -> int:
        """The key of the random numbers of the toys."""
        return stream_key(self.seed, self.purpose)

    def ratios(self, point: int, report: Report) -> Outcome:
        """Return t = 2 (nll with the parameter fixed - nll) of every toy, and the fitted values."""
        if self.values is None and self.has_no_events(point):  # the truth fits all toys
            truth = np.full(self.toys, self.truths[point][self.name])
            return Outcome(np.zeros(self.toys, np.float32), truth)
        return self.point(point).ratios(report)

    def has_no_events(self, point: int) -> bool:
        """Return whether no toy of a point has events, nor constraints that fluctuate."""
        return not (self.fluctuate and any(part.constraints for part in self.term.parts)) and all(
            events is None and expected_events(part.model, self.truths[point]) == 0
            for part, events in zip(self.term.parts, self.events, strict=True)
        )

    def are_shared(self, first: int) -> bool:
        """Return whether points from some on share their toys."""
        return self.shared_from is not None and first >= self.shared_from

    def shared_ratios(self, points: Sequence[int], report: Report) -> Outcome:
        """Return the same of points that share their toys, which are drawn and fitted freely once, (points, T) each."""
        assert self.shared_from is not None
        return Point(self, self.shared_from).shared_ratios(points, report)

    def estimates(self, point: int, report: Report) -> Outcome:
        """Return the fitted value of every toy, or what the estimator returns."""
        return self.point(point).estimates(report)


class Point:
    """The toys at one truth."""

    def __init__(self, tested: Tested, number: int) -> None:
        self.tested, self.number = tested, number
        self.truth = dict(tested.truths[number])
        begin = time.perf_counter()
        start = dict(tested.starts[number])
        self.free = Ensemble(
            drawn=tested.term,
            fitted=tested.term,
            truth=self.truth,
            start=start,
            seed=tested.stream,
            backend=tested.backend,
            fluctuate=tested.fluctuate,
            expected=tested.toys * len(tested.truths),
            thorough=bool(tested.idle[number]),  # where a signal is not there, it may seem to be anywhere
        )
        self.free.sampler(0)  # compiles
        self.seconds = {"compile": time.perf_counter() - begin}
        self.ensembles: dict[tuple[tuple[str, float], ...], Ensemble] = {}  # with parameters fixed
        self.fits: dict[Ensemble, Fits] = {}  # the first fits of all toys, where they are made

    def ratios(self, report: Report) -> Outcome:
        ratios, estimates = np.empty(self.tested.toys, np.float32), np.empty(self.tested.toys)
        clipped = 0
        for first, toys in self.blocks():
            t, estimates[first : first + len(toys)] = FreeFits.of(self, toys).ratios(self.fixed)
            clipped += int(np.count_nonzero((t < 0) & (t >= -TIE)))
            ratios[first : first + len(t)] = np.where(t >= 0, t, np.where(t >= -TIE, 0.0, np.nan))
            report(first + len(t))
        return Outcome(ratios, estimates, clipped, self.seconds)

    def shared_ratios(self, points: Sequence[int], report: Report) -> Outcome:
        """Return the ratios of all toys at the tested values of several points, (points, T), and the fitted values."""
        assert self.tested.values is not None
        shape = len(points), self.tested.toys
        ratios, estimates = np.empty(shape, np.float32), np.empty(shape)
        fixed = [self.fixed_at(self.tested.values[point], point) for point in points]
        if self.tested.backend.toys_together > 1:
            some = [self.conditional_ensemble(values) for values in fixed if self.floats_besides(values)]
            make_first_fits([(self, ensemble) for ensemble in (self.free, *some)])
        for first, toys in self.blocks():
            rows = slice(first, first + len(toys))
            free = FreeFits.of(self, toys)
            for k, values in enumerate(fixed):
                t, estimates[k, rows] = free.ratios(values)
                ratios[k, rows] = np.where(t >= 0, t, np.where(t >= -TIE, 0.0, np.nan))
            report((first + len(toys)) * len(points))
        return Outcome(ratios, estimates, seconds=self.seconds)

    def estimates(self, report: Report) -> Outcome:
        estimates = np.empty(self.tested.toys)
        for first, toys in self.blocks():
            estimates[first : first + len(toys.sizes)] = self.estimates_of(toys)
            report(first + len(toys.sizes))
        return Outcome(estimates, seconds=self.seconds)

    def blocks(self) -> Iterator[tuple[int, Toys]]:
        """Draw the toys in blocks of at most about ``MAX_EVENTS`` events."""
        if self.fits:  # drawn where they are fitted
            yield 0, self.toys
            return
        begin, count = self.number * self.tested.toys, self.toys_of_a_block
        for first in range(0, self.tested.toys, count):
            yield first, self.free.draw(begin + first, self.sizes[first : first + count])

    @property
    def toys_of_a_block(self) -> int:
        return max(1, MAX_EVENTS // max(int(self.sizes.sum(axis=1).max(initial=1)), 1))

    @cached_property
    def toys(self) -> Toys:
        """All toys."""
        return self.free.draw(self.number * self.tested.toys, self.sizes)

    @cached_property
    def sizes(self) -> Sizes:
        """Return how many events each toy has, (toys, parts)."""
        columns = []
        for k, (part, events) in enumerate(zip(self.tested.term.parts, self.tested.events, strict=True)):
            columns.append(
                self.part_sizes(k, part) if events is None else np.full(self.tested.toys, events, np.int64)
            )
        return np.stack(columns, axis=1)

    def part_sizes(self, k: int, part: Likelihood) -> Sizes:
        """Draw the numbers of events of one part."""
        tested, toys = self.tested, self.tested.toys
        mean, seed = expected_events(part.model, self.truth), part_key(tested.stream, k)
        sizes: Sizes = self.timed("draw sizes", poisson_sizes, mean, toys, seed, self.number * toys)
        return sizes

    def timed(self, what: str, do: Callable[..., Any], *arguments: Any) -> Any:
        begin = time.perf_counter()
        result = do(*arguments)
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - begin
        return result

    def fit(self, toys: Toys, ensemble: Ensemble) -> Fits:
        """Fit every toy as ``Toys.fit`` does, but accept a minimum without errors."""
        fits = self.fits.get(ensemble)
        if fits is None:
            fits = toys.first_fit(ensemble)
        toys.fit_again(fits, np.flatnonzero(~reached(fits)), ensemble)
        fit_with_finer_nodes(toys, fits, ensemble, reached(fits))
        return fits

    def estimates_of(self, toys: Toys) -> Array:
        if self.tested.estimator is not None:
            return np.array([self.own_estimate(toys.datasets(k)) for k in range(len(toys))])
        fits = self.timed("fit", self.fit, toys, self.free)
        column = self.free.floating.index(self.tested.name)
        return np.where(reached(fits), fits.values[:, column], np.nan)

    def own_estimate(self, data: tuple[Dataset, ...]) -> float:
        """Return the user's estimate for a toy; nan where there is none."""
        assert self.tested.estimator is not None
        answer = self.tested.estimator(data[0] if len(data) == 1 else data)
        try:
            number = float(answer)
        except (TypeError, ValueError):
            number = inf
        if isinf(number):
            raise ModelError(
                f"neyman_belt: the estimator must return a finite number, or nan where it has none, got {answer!r}"
            )
        return number

    def again(self, toy: Toys, start: Array) -> Fits:
        """Fit a toy freely from where its conditional fit is lower: the free fit had ended in another minimum."""
        minimum = toy.batch(self.free).newton(np.array([0]), start[None])
        fit_with_finer_nodes(toy, minimum, self.free, reached(minimum))
        return minimum

    @property
    def fixed(self) -> dict[str, float]:
        """The fixed parameters: the one tested, and those without effect at its value."""
        values = self.tested.values
        value = self.truth[self.tested.name] if values is None else values[self.number]
        return self.fixed_at(value, self.number)

    def fixed_at(self, value: float, point: int) -> dict[str, float]:
        """Return the fixed parameters of a point, with another value of the one tested."""
        idle = {name: self.truth[name] for name in self.tested.idle[point]}
        return {self.tested.name: value, **idle}

    def free_and_conditional(self) -> list[Ensemble]:
        """Return what is fitted for ratios."""
        fixed = self.fixed
        return [self.free, *([self.conditional_ensemble(fixed)] if self.floats_besides(fixed) else [])]

    def floats_besides(self, fixed: Mapping[str, float]) -> bool:
        """Return whether parameters float where some are fixed."""
        return bool(set(self.free.floating) - set(fixed))

    def are_fitted_at(self, fixed: Mapping[str, float]) -> bool:
        """Return whether the first fits with some parameters fixed are made."""
        return self.floats_besides(fixed) and self.conditional_ensemble(fixed) in self.fits

    def conditional(self, toys: Toys, fixed: Mapping[str, float]) -> tuple[Array, Array, Flags]:
        """Return the conditional nll, all floating parameters there, and whether it is known."""
        x = np.tile([{**self.truth, **fixed}[n] for n in self.free.floating], (len(toys), 1))
        if not self.floats_besides(fixed):
            nll, known = self.values_at(toys, fixed)
            return nll, x, known
        ensemble = self.conditional_ensemble(fixed)
        fits = self.fit(toys, ensemble)
        x[:, [self.free.floating.index(n) for n in ensemble.floating]] = fits.values
        return fits.nll, x, reached(fits)

    def conditional_ensemble(self, fixed: Mapping[str, float]) -> Ensemble:
        """Return the same toys with some parameters fixed, compiled once."""
        key = tuple(fixed.items())
        if key not in self.ensembles:
            self.ensembles[key] = self.free.fixing(fixed)
        return self.ensembles[key]

    def values_at(self, toys: Toys, fixed: Mapping[str, float]) -> tuple[Array, Flags]:
        """Evaluate every toy where nothing is left to fit."""
        values = {**self.truth, **fixed}
        term = resolved(self.free.fitted, values)
        full = np.tile([values[p.name] for p in term.all_parameters], (len(toys), 1))
        evaluation = term.evaluate_many(toys.data, np.arange(len(toys)), full, 0)
        return evaluation.value, (evaluation.bad == 0) & np.isfinite(evaluation.value)


def make_first_fits(wanted: Sequence[tuple[Point, Ensemble]]) -> None:
    """Fit all toys of points together, unless they are too many to be in memory."""
    some = [(point, ensemble) for point, ensemble in wanted if point.tested.toys <= point.toys_of_a_block]
    begin = time.perf_counter()
    fits = first_fits([(point.toys, ensemble) for point, ensemble in some])
    for (point, ensemble), own in zip(some, fits, strict=True):
        point.fits[ensemble] = own
    for point, _ in some[:1]:
        point.seconds["first fits"] = time.perf_counter() - begin
