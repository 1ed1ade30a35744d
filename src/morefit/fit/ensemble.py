"""Fit many pseudo-experiments together: drawn, summed and minimised in batches, the rest one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morefit.backend import Array, Backend, Drawn, Events
from morefit.data import Dataset
from morefit.errors import FitError
from morefit.expr import ZERO
from morefit.fit.minuit import fit as fit_one
from morefit.fit.newton import Minima, Sets, minimise
from morefit.generate import Sampler
from morefit.kernel.sums import Request
from morefit.likelihood import Evaluation, unpack
from morefit.model import Parameter, Pdf
from morefit.model.pdf import check_model
from morefit.pipeline import Columns, Compiled, Settings, compile_sums

NEWTON, ANOTHER_START, MINUIT, FAILED = range(4)  # how a fit was obtained
GOAL = 0.002 * 0.1 * 0.5  # Minuit's, for its default tolerance and an error definition of one half
SHIFTS = (0.5, -0.5, 1.5)  # in errors, roughly: other starts for fits that do not converge


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
        expected = self.fit_model.expected_events()
        per_set = ZERO if expected is None else -expected
        floating = tuple(p.expr for p in self.floating)
        request = Request(self.fit_model.log_intensity(), floating, 2, per_set=per_set)
        return compile_sums(request, tuple(p.expr for p in self.all_parameters), self.settings)

    def draw(self, first: int, sizes: NDArray[np.int64]) -> Toys:
        """Draw toys ``first``, ``first + 1``, ..."""
        return Toys(self, first, sizes, self.sampler.draw(sizes, self.seed, first))

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
    """Some toys, drawn: their events, one toy after the other, where the backend keeps them."""

    ensemble: Ensemble
    first: int
    sizes: NDArray[np.int64]
    drawn: Drawn

    @cached_property
    def events(self) -> Events:
        return Events.slices(self.sizes)

    @cached_property
    def columns(self) -> Columns:
        names = [o.name for o in self.ensemble.model.observables]
        return Columns.uploaded(dict(zip(names, self.drawn.columns, strict=True)), self.ensemble.settings)

    def dataset(self, toy: int) -> Dataset:
        """Return the events of one toy, counted from the first of these."""
        low, high = int(self.events.starts[toy]), int(self.events.stops[toy])
        names = [o.name for o in self.ensemble.model.observables]
        return Dataset({n: c.values[low:high] for n, c in zip(names, self.drawn.columns, strict=True)})

    def fit(self, ensemble: Ensemble | None = None) -> Fitted:
        """Fit every toy: together by Newton's method, again from other starts, and by Minuit what is left."""
        task = BatchFit(ensemble or self.ensemble, self)
        found = task.newton()
        how = np.where(found.valid, NEWTON, FAILED).astype(np.uint8)
        result = Fitted(found.x, found.errors, found.nll, found.edm, found.valid.copy(), how)
        for shift in SHIFTS:
            task.retry(result, shift)
        for toy in np.flatnonzero(~result.valid):
            task.minuit(result, int(toy))
        return result


class BatchFit:
    """One fit for each toy, with one ensemble's parameters."""

    def __init__(self, ensemble: Ensemble, toys: Toys) -> None:
        self.ensemble, self.toys = ensemble, toys
        self.places = [k for k, p in enumerate(ensemble.all_parameters) if p in ensemble.floating]
        self.full = np.array([ensemble.start[p.name] for p in ensemble.all_parameters])
        self.limits = np.array([(p.low, p.high) for p in ensemble.floating])
        self.start = self.full[self.places]

    def evaluate(self, which: Sets, x: Array) -> Evaluation:
        """Evaluate toys ``which`` at floating parameters x."""
        events = self.toys.events
        part = Events(events.starts[which], events.stops[which], False)
        full = np.tile(self.full, (len(which), 1))
        full[:, self.places] = x
        out = self.ensemble.compiled.bind(self.toys.columns, part)(full)
        return unpack(out, len(self.places), 2)

    def newton(self, which: Sets | None = None, start: Array | None = None) -> Minima:
        these = np.arange(len(self.toys.sizes)) if which is None else which
        begin = np.tile(self.start, (len(these), 1)) if start is None else start
        return minimise(lambda sets, x: self.evaluate(these[sets], x), begin, self.limits, GOAL)

    def retry(self, result: Fitted, shift: float) -> None:
        """Try what failed from another start: shifted by about its error, each parameter in its own direction."""
        bad = np.flatnonzero(~result.valid)
        if not len(bad):
            return
        with np.errstate(all="ignore"):
            typical = np.nanmedian(result.errors[result.valid], axis=0) if result.valid.any() else np.nan
        width = self.limits[:, 1] - self.limits[:, 0]
        small = np.where(np.isfinite(width), 0.05 * width, 0.1 * np.maximum(np.abs(self.start), 1.0))
        step = np.where(np.isfinite(typical), typical, small)
        signs = np.where(np.arange(len(self.start)) % 2, 1.0, -1.0)
        start = np.clip(self.start + shift * signs * step, self.limits[:, 0], self.limits[:, 1])
        found = self.newton(bad, np.tile(start, (len(bad), 1)))
        good = bad[found.valid]
        result.values[good], result.errors[good] = found.x[found.valid], found.errors[found.valid]
        result.nll[good], result.edm[good] = found.nll[found.valid], found.edm[found.valid]
        result.valid[good], result.how[good] = True, ANOTHER_START

    def minuit(self, result: Fitted, toy: int) -> None:
        """Hand one toy to Minuit; what it cannot fit either stays marked as failed."""
        ensemble = self.ensemble
        held = {p.name: ensemble.start[p.name] for p in ensemble.all_parameters if p not in ensemble.floating}
        start = {p.name: ensemble.start[p.name] for p in ensemble.floating}
        try:
            found = fit_one(ensemble.fit_model, self.toys.dataset(toy), start=start, fixed=held, strategy=1)
        except (FitError, ValueError):
            return
        result.values[toy] = [found.values[p.name] for p in ensemble.floating]
        result.errors[toy] = [found.errors[p.name] for p in ensemble.floating]
        result.nll[toy], result.edm[toy] = found.nll, found.edm
        if found.valid:
            result.valid[toy], result.how[toy] = True, MINUIT
