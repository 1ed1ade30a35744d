"""Fit many pseudo-experiments together: drawn, summed and minimised in batches, the rest one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morefit.arrays import Array, Integers
from morefit.data import Dataset
from morefit.errors import FitError
from morefit.integrals import SharedBoxes
from morefit.kernel.fit_layout import FitLayout, FitRows
from morefit.likelihood.unbinned import Evaluation, request_of, unpack
from morefit.minimise.fit import REFUSED
from morefit.minimise.fit import fit as fit_one
from morefit.minimise.newton import MOST_STEPS, Minima, minimise
from morefit.minimise.newton_kernel import MAX_PARAMETERS, make_step
from morefit.minimise.newton_rules import CONVERGED, UNKNOWN
from morefit.minimise.problem import check_ranges
from morefit.minimise.result import FitResult
from morefit.model import Parameter, Pdf
from morefit.model.pdf import check_model
from morefit.pipeline import Columns, Compiled, Settings, compile_sums, compile_values
from morefit.sampling.generate import REPAIRS, Sampler
from morefit.targets import Backend, Buffer, Drawn, Events, Program, WholeFit

NEWTON, ANOTHER_START, MINUIT, FAILED, UNDETERMINED = range(5)  # how a fit was obtained, or not
GOAL = 0.002 * 0.1 * 0.5  # Minuit's, for its default tolerance and an error definition of one half
SMALL = 2_000_000  # events of a toy that one thread fits; larger ones are fitted by all threads, step by step
SHIFTS = (0.5, -0.5, 1.5)  # in twentieths of the way between limits: other starts for fits that fail
FAR_SHIFTS = (-1.5, 4.0, -4.0, 8.0, -8.0)  # one after the other, for those that fail from there as well
TOGETHER = 1 << 22  # events of toys that are fitted again together


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fits of some toys: T of them, P floating parameters."""

    values: Array  # (T, P)
    errors: Array  # (T, P), nan where there are none
    nll: Array
    edm: Array
    valid: NDArray[np.bool_]
    how: NDArray[np.uint8]


@dataclass(eq=False)
class Ensemble:
    """Draws toys from one model and fits another (or the same) to each; toys are known by their number."""

    model: Pdf
    fit_model: Pdf
    truth: Mapping[str, float]  # all parameters of the generating model
    start: Mapping[str, float]  # all parameters of the fitted model; fixed ones stay there
    seed: int
    backend: Backend
    fixed: tuple[str, ...] = ()  # held besides those that the model holds
    settings: Settings = field(init=False)
    made: tuple[Compiled, WholeFit | None] | None = field(init=False, default=None, repr=False)
    boxes: SharedBoxes = field(init=False, default_factory=SharedBoxes, repr=False)

    def __post_init__(self) -> None:
        check_model(self.model)
        check_model(self.fit_model)
        self.settings = Settings(self.backend)
        names = {o.name for o in self.fit_model.observables}
        missing = names - {o.name for o in self.model.observables}
        if missing:
            raise FitError(
                f"toys: the fitted model needs {sorted(missing)}, which the generating model does not draw"
            )
        check_ranges(self.model, self.fit_model)
        if not self.floating:
            raise FitError("toys: the fitted model has no floating parameter; free one")

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.model, self.truth, self.backend)

    @cached_property
    def all_parameters(self) -> tuple[Parameter, ...]:
        return self.fit_model.parameters

    @cached_property
    def floating(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.all_parameters if not p.fixed and p.name not in self.fixed)

    @cached_property
    def compiled(self) -> Compiled:
        request = request_of(self.fit_model, self.floating, 2)
        return compile_sums(request, tuple(p.expr for p in self.all_parameters), self.settings)

    def draw(self, first: int, sizes: NDArray[np.int64]) -> Toys:
        """Return toys ``first``, ``first + 1``, ...; their events are drawn when they are asked for."""
        return Toys(self, first, np.ascontiguousarray(sizes, np.int64))

    @cached_property
    def start_values(self) -> Array:
        return np.array([self.start[p.name] for p in self.all_parameters])

    @cached_property
    def places(self) -> list[int]:
        """Where the floating parameters are among all."""
        floating = set(self.floating)
        return [k for k, p in enumerate(self.all_parameters) if p in floating]

    @cached_property
    def limits(self) -> Array:
        return np.array([(p.low, p.high) for p in self.floating])

    def whole_fit(self) -> WholeFit | None:
        """Return a fit that needs no Python, if the model allows it; made anew when the sampler was repaired."""
        if self.made is None or self.made[0] is not self.sampler.compiled:
            self.made = (self.sampler.compiled, self.make_whole_fit(self.sampler.compiled.program))
        return self.made[1]

    def make_whole_fit(self, sampler: Program | None) -> WholeFit | None:
        compiled = self.compiled
        if compiled.integrals or len(self.floating) > MAX_PARAMETERS:
            return None
        step = make_step(len(self.floating))
        derived = tuple(compiled.stages.per_dataset.values())
        plain = Settings(self.backend, precompute="none")
        return WholeFit(
            sampler=sampler,
            derive=compile_values(derived, (), plain).program if derived else None,
            sums=compiled.program,
            step=compile_values(step.exprs, (), plain).program,
            observables=tuple(o.name for o in self.model.observables),
            derived=tuple(compiled.stages.per_dataset),
            layout=step.layout,
            start=self.first_rows(step.layout),
            parameters=self.start_values,
            places=tuple(self.places),
            max_steps=MOST_STEPS,
        )

    def first_rows(self, layout: FitLayout) -> Array:
        """Return what the first step reads: the start as trial point, limits, and nothing known yet."""
        start = np.clip(self.start_values[self.places], self.limits[:, 0], self.limits[:, 1])
        rows = dict.fromkeys(layout.rows, 0.0) | {"value": UNKNOWN, "goal": GOAL}
        for k, x in enumerate(start):
            rows |= {f"trial{k}": x, f"x{k}": x, f"low{k}": self.limits[k, 0], f"high{k}": self.limits[k, 1]}
            rows[f"h{k}_{k}"] = 1.0
        return np.array([rows[name] for name in layout.rows])

    def shifted(self, shift: float) -> Array:
        """Return the start moved by a part of the way between the limits, each parameter in its own direction."""
        start, (low, high) = self.start_values[self.places], self.limits.T
        width = high - low
        part = np.where(np.isfinite(width), 0.05 * width, 0.1 * np.maximum(np.abs(start), 1.0))
        signs = np.where(np.arange(len(start)) % 2, 1.0, -1.0)
        return np.asarray(np.clip(start + shift * signs * part, low, high), np.float64)

    def holding(self, values: Mapping[str, float]) -> Ensemble:
        """Return the same with some parameters of the fit held at given values."""
        start = {**self.start, **values}
        held = Ensemble(
            self.model, self.fit_model, self.truth, start, self.seed, self.backend, (*self.fixed, *values)
        )
        held.__dict__["sampler"] = self.sampler
        return held


@dataclass(eq=False)
class Toys:
    """Some toys, known by the number of the first and the number of events of each."""

    ensemble: Ensemble
    first: int
    sizes: NDArray[np.int64]

    @cached_property
    def drawn(self) -> Drawn:
        """Draw the events, one toy after the other, where the backend keeps them."""
        return self.ensemble.sampler.draw(self.sizes, self.ensemble.seed, self.first)

    @cached_property
    def events(self) -> Events:
        return Events.slices(self.sizes)

    @cached_property
    def columns(self) -> Columns:
        names = [o.name for o in self.ensemble.model.observables]
        return Columns.uploaded(dict(zip(names, self.drawn.columns, strict=True)), self.ensemble.settings)

    @cached_property
    def numbers(self) -> dict[str, Array]:
        """The events as numpy knows them, read once: what lies on a device is copied from there each time."""
        names = [o.name for o in self.ensemble.model.observables]
        return {n: c.values for n, c in zip(names, self.drawn.columns, strict=True)}

    def dataset(self, toy: int) -> Dataset:
        """Return the events of one toy, counted from the first of these."""
        low, high = int(self.events.starts[toy]), int(self.events.stops[toy])
        return Dataset({n: c[low:high] for n, c in self.numbers.items()})

    def one(self, toy: int) -> Toys:
        """Return one toy alone."""
        return Toys(self.ensemble, self.first + toy, self.sizes[toy : toy + 1])

    def fit(self, ensemble: Ensemble | None = None) -> Fitted:
        """Fit every toy: by Newton's method, again from other starts, and by Minuit what is left.

        No result depends on which other toys are there, nor on the number of threads.
        """
        ensemble = ensemble or self.ensemble
        whole = self.fit_whole(ensemble) if self.sizes.max(initial=0) <= SMALL else None
        result = whole or self.fit_batch(ensemble)
        self.fit_again(result, np.flatnonzero(~result.valid), ensemble)
        return result

    def fit_again(self, result: Fitted, failed: Integers, ensemble: Ensemble) -> None:
        """Fit some toys again, many together; what fails for good stays marked so."""
        for some in by_events(failed, self.sizes):
            given = GivenToys.of(self.ensemble, [self.alone(int(toy)) for toy in some])
            Rescue(BatchFit(ensemble, given), result, some).run()

    def alone(self, toy: int) -> Dataset:
        """Return the events of one toy, drawn alone: those of all may never have been in memory."""
        return self.one(toy).dataset(0)

    def fit_whole(self, ensemble: Ensemble) -> Fitted | None:
        """Draw and fit every toy in compiled code alone."""
        for _ in range(REPAIRS):
            job = ensemble.whole_fit()
            if job is None:
                return None
            rows = ensemble.backend.fit_whole(job, self.sizes, ensemble.seed, self.first)
            if rows is None:
                return None
            results = FitRows(job.layout, rows)
            if not ensemble.sampler.repair(results.above, results.given_up):
                return read_rows(results)
        raise ensemble.sampler.hopeless()

    def fit_batch(self, ensemble: Ensemble) -> Fitted:
        """Fit every toy with events kept in memory, all of them step by step."""
        found = BatchFit(ensemble, self).newton()
        how = np.where(found.valid, NEWTON, FAILED).astype(np.uint8)
        return Fitted(found.x, found.errors, found.nll, found.edm, found.valid.copy(), how)


@dataclass(eq=False)
class GivenToys(Toys):
    """Toys whose events are given, one toy after the other, a column for each observable."""

    given: tuple[Buffer, ...] = ()

    @classmethod
    def of(cls, ensemble: Ensemble, datasets: Sequence[Dataset]) -> GivenToys:
        """Put datasets behind each other where the backend can read them."""
        names = [o.name for o in ensemble.model.observables]
        joined = (np.concatenate([d[n] for d in datasets]) for n in names)
        sizes = np.array([len(d) for d in datasets], np.int64)
        return cls(ensemble, 0, sizes, tuple(ensemble.backend.upload(c) for c in joined))

    @cached_property
    def drawn(self) -> Drawn:
        return Drawn(self.given, 0, 0)

    def one(self, toy: int) -> GivenToys:
        return GivenToys.of(self.ensemble, [self.dataset(toy)])

    def alone(self, toy: int) -> Dataset:
        return self.dataset(toy)

    def fit_whole(self, ensemble: Ensemble) -> Fitted | None:
        """Fit every toy in compiled code alone; its events are copied to where a thread works on them."""
        job = ensemble.make_whole_fit(None)
        if job is None:
            return None
        job = replace(job, events=self.given, starts=self.events.starts)
        rows = ensemble.backend.fit_whole(job, self.sizes, 0, 0)
        return None if rows is None else read_rows(FitRows(job.layout, rows))


def read_rows(rows: FitRows) -> Fitted:
    """Read the results of whole fits."""
    valid = rows.status == CONVERGED
    return Fitted(
        values=rows.x.copy(),
        errors=np.where(rows.errors >= 0, rows.errors, np.nan),
        nll=rows.value.copy(),
        edm=rows.edm.copy(),
        valid=valid,
        how=np.where(valid, NEWTON, FAILED).astype(np.uint8),
    )


class BatchFit:
    """One fit for each toy, with one ensemble's parameters."""

    def __init__(self, ensemble: Ensemble, toys: Toys) -> None:
        self.ensemble, self.toys = ensemble, toys
        self.start = ensemble.start_values[ensemble.places]

    def evaluate(self, which: Integers, x: Array) -> Evaluation:
        """Evaluate toys ``which`` at floating parameters x."""
        events = self.toys.events
        part = Events(events.starts[which], events.stops[which], False)
        full = np.tile(self.ensemble.start_values, (len(which), 1))
        full[:, self.ensemble.places] = x
        out = self.ensemble.compiled.bind(self.toys.columns, part, boxes=self.ensemble.boxes)(full)
        return unpack(out, len(self.start), 2)

    def newton(self, start: Array | None = None, which: Integers | None = None) -> Minima:
        """Minimise all toys, or some, from one start."""
        some = np.arange(len(self.toys.sizes)) if which is None else which
        begin = np.tile(self.start if start is None else start, (len(some), 1))
        return minimise(lambda k, x: self.evaluate(some[k], x), begin, self.ensemble.limits, GOAL)

    def minuit(self, toy: int) -> FitResult | None:
        """Hand one toy to Minuit; None if it cannot start."""
        ensemble = self.ensemble
        floating = set(ensemble.floating)
        held = {p.name: ensemble.start[p.name] for p in ensemble.all_parameters if p not in floating}
        start = {p.name: ensemble.start[p.name] for p in ensemble.floating}
        try:
            return fit_one(
                ensemble.fit_model, self.toys.dataset(toy), start=start, fixed=held, strategy=1,
                backend=ensemble.backend,
            )  # fmt: skip
        except REFUSED:
            return None


@dataclass(eq=False)
class Rescue:
    """Another try for toys whose first fit failed: from other starts, the lowest counts, then by Minuit."""

    fits: BatchFit  # of these toys alone
    result: Fitted  # of all toys
    rows: Integers  # where these toys are among all

    def run(self) -> None:
        left = self.lowest(np.arange(len(self.rows)), SHIFTS)
        for shift in FAR_SHIFTS:
            left = self.lowest(left, (shift,))
        names = [p.name for p in self.fits.ensemble.floating]
        for toy in left:
            found = self.fits.minuit(int(toy))
            if found is not None:
                how = MINUIT if found.valid else UNDETERMINED if found.undetermined else FAILED
                values, errors = ([m[n] for n in names] for m in (found.values, found.errors))
                fill(self.result, int(self.rows[toy]), values, errors, found.nll, found.edm, how)

    def lowest(self, toys: Integers, shifts: Sequence[float]) -> Integers:
        """Fit toys from some starts and keep the lowest minimum of each; return those that have none."""
        best = np.full(len(toys), np.inf)
        for shift in shifts if len(toys) else ():
            found = self.fits.newton(self.fits.ensemble.shifted(shift), toys)
            for k in np.flatnonzero(found.valid & (found.nll < best)):
                best[k] = found.nll[k]
                row = int(self.rows[toys[k]])
                fill(self.result, row, found.x[k], found.errors[k], best[k], found.edm[k], ANOTHER_START)
        return np.asarray(toys[~np.isfinite(best)], np.int64)


def by_events(toys: Integers, sizes: NDArray[np.int64]) -> Iterator[Integers]:
    """Cut toys into groups that have no more events than fit into memory together."""
    if len(toys):
        group = np.cumsum(sizes[toys]) // TOGETHER
        yield from np.split(toys, np.flatnonzero(np.diff(group)) + 1)


def fill(
    result: Fitted, toy: int, values: ArrayLike, errors: ArrayLike, nll: float, edm: float, how: int
) -> None:
    """Write one fit into the results of all."""
    result.values[toy], result.errors[toy] = values, errors
    result.nll[toy], result.edm[toy] = nll, edm
    result.valid[toy], result.how[toy] = how < FAILED, how
