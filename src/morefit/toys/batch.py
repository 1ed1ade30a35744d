"""Some toys of an ensemble: their events, and their fits in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Array, Integers, row_sums
from morefit.data.dataset import Dataset
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import FitRows
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood import Likelihood, Term
from morefit.likelihood.evaluation import PartData
from morefit.minimise.batch import FAILED, NEWTON, Batch, Fits
from morefit.minimise.covariance import correct_errors
from morefit.pipeline import Columns, Settings
from morefit.random.host import part_key
from morefit.sampling.generate import Sizes
from morefit.targets.base import Buffer, Drawn, Events, WholeFit
from morefit.toys.negative import lost_toys
from morefit.toys.nodes import fit_with_finer_nodes
from morefit.toys.whole_fits import by_events, fit_whole_together

if TYPE_CHECKING:
    from morefit.toys.ensemble import Ensemble
    from morefit.toys.stored import StoredToys

GOAL = 0.002 * 0.1 * 0.5  # Minuit's, for its default tolerance and an error definition of one half
MAX_ELEMENTS = 1 << 22  # of the Hessians of toys that are fitted together, step by step


@dataclass(eq=False)
class Toys:
    """Some toys, known by the number of the first and the numbers of events of each."""

    ensemble: Ensemble
    first: int
    sizes: Sizes  # (toys, parts)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def events(self) -> Integers:
        """How many events each toy has, (toys,)."""
        return row_sums(self.sizes)

    @property
    def numbers(self) -> Integers:
        return np.arange(self.first, self.first + len(self))

    @property
    def offsets(self) -> Integers | None:
        """Of the numbers of toys from that of the first; None: one after the other."""
        return None

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """The events of each part, one toy after the other, where the backend keeps them."""
        ensemble = self.ensemble
        return tuple(
            ensemble.sampler(k).draw(np.ascontiguousarray(sizes), part_key(ensemble.seed, k), self.first)
            for k, sizes in enumerate(self.sizes.T)
        )

    @cached_property
    def data(self) -> tuple[PartData, ...]:
        """The events and measured values of each part, to be summed over."""
        ensemble = self.ensemble
        columns = [
            Columns.uploaded(self.named(k, drawn.columns), Settings(ensemble.backend))
            for k, drawn in enumerate(self.drawn)
        ]
        return tuple(
            PartData(
                columns=columns[k],
                events=Events.slices(sizes),
                weights=self.weights(k, columns[k]),
                measured=ensemble.measured(k, self.numbers),
                boxes=ensemble.boxes,
            )
            for k, sizes in enumerate(self.sizes.T)
        )

    def weights(self, part: int, columns: Columns) -> Buffer | None:
        """Return the weights of the events of a part where the backend can read them: a column, or computed from others."""
        formula, settings = self.ensemble.formulas[part], Settings(self.ensemble.backend)
        if formula is None:
            return self.drawn[part].columns[-1] if self.ensemble.weighted else None
        columns.precompute((formula,), settings)
        return columns.buffer(formula, settings)

    def named(self, part: int, columns: Sequence[Buffer]) -> dict[str, Buffer]:
        observables = self.ensemble.drawn.parts[part].model.observables
        names = [*(o.name for o in observables), *([WEIGHT.name] if self.ensemble.weighted else [])]
        return dict(zip(names, columns, strict=True))

    @cached_property
    def arrays(self) -> tuple[dict[str, Array], ...]:
        """The events of each part as numpy knows them, read once: from a device they are copied each time."""
        return tuple(
            {name: buffer.values for name, buffer in self.named(k, drawn.columns).items()}
            for k, drawn in enumerate(self.drawn)
        )

    def datasets(self, toy: int) -> tuple[Dataset, ...]:
        """Return the events of one toy, counted from the first of these, part by part, with their weights."""
        each = [self.columns_of(toy, k) for k in range(self.sizes.shape[1])]
        return tuple(
            Dataset(
                {n: column for n, column in columns.items() if n != WEIGHT.name},
                weights=columns[WEIGHT.name] if self.ensemble.weighted else formula,
            )
            for columns, formula in zip(each, self.ensemble.formulas, strict=True)
        )

    def columns_of(self, toy: int, part: int) -> dict[str, Array]:
        """Return the columns of a part of one toy, counted from the first of these."""
        events = Events.slices(self.sizes[:, part])
        own = slice(int(events.starts[toy]), int(events.stops[toy]))
        return {name: column[own] for name, column in self.arrays[part].items()}

    def events_to_check(self, toys: Integers, k: int, part: Likelihood) -> dict[str, Array]:
        """Return some events of part ``k``: those of the first toy for all, since the events of all may never be in memory."""
        return part.events_to_check(self.one(int(toys[0])).columns_of(0, k))

    def one(self, toy: int) -> Toys:
        """Return one toy alone; it is drawn again, since the events of all may never have been in memory."""
        return Toys(self.ensemble, self.first + toy, self.sizes[toy : toy + 1])

    def some(self, toys: Integers) -> Toys:
        """Return some of these toys; they are drawn again."""
        if any(self.is_stored(k) for k in range(self.sizes.shape[1])):
            return self.gathered(toys)
        numbers = self.numbers[toys]
        return ChosenToys(self.ensemble, int(numbers[0]), self.sizes[toys], numbers - numbers[0])

    def gathered(self, toys: Integers) -> StoredToys:
        """Return some of these toys, stored."""
        from morefit.toys.stored import StoredToys

        return StoredToys.of(self.ensemble, [self.one(int(toy)) for toy in toys])

    def in_memory(self, toys: Integers) -> Iterator[tuple[Integers, Toys]]:
        """Yield some of these toys, as many together as memory can hold, and which they are."""
        for some in by_events(toys, self.events):
            numbers = self.numbers[some]
            for run in np.split(some, np.flatnonzero(np.diff(numbers) != 1) + 1):
                yield run, Toys(self.ensemble, int(self.numbers[run[0]]), self.sizes[run])

    def stored(self) -> StoredToys:
        """Return the same toys, drawn once for several fits."""
        from morefit.toys.stored import StoredToys

        return StoredToys(
            self.ensemble,
            self.first,
            self.sizes,
            tuple(tuple(part.columns) for part in self.drawn),
            self.numbers,
        )

    def fit(self) -> Fits:
        """Fit every toy: by Newton's method, again from other starts, and by Minuit what is left.

        No result depends on which other toys are there, nor on the number of threads.
        """
        fits = self.first_fit(self.ensemble)
        lost = lost_toys(self)  # which have no minimum, wherever a fit ended
        failed = fits.failed
        if len(lost):
            fits.valid[lost], fits.method[lost] = False, FAILED
            failed = np.setdiff1d(fits.failed, lost)
        self.fit_again(fits, failed, self.ensemble)
        fit_with_finer_nodes(self, fits, self.ensemble, fits.valid)
        return fits

    def first_fit(self, ensemble: Ensemble) -> Fits:
        """Fit every toy by Newton's method: in compiled code alone if that can be done, else step by step."""
        whole = self.fit_whole(ensemble)
        if whole is None:
            return self.fit_by_steps(ensemble)
        if ensemble.has_weights and not ensemble.scores:
            correct_errors(self.batch(ensemble), whole, np.arange(len(self)))
        return whole

    def fit_by_steps(self, ensemble: Ensemble) -> Fits:
        """Fit every toy by Newton's method, step by step."""
        batch, together = self.batch(ensemble), max(1, MAX_ELEMENTS // len(ensemble.floating) ** 2)
        pieces = [
            np.arange(first, min(first + together, len(self))) for first in range(0, len(self), together)
        ]
        each = []
        for some in pieces:
            fits = batch.newton(some, batch.start[some])
            if ensemble.has_weights:
                correct_errors(batch, fits, some)
            each.append(replace(fits, covariance=None))  # they need much memory, as compiled code knows
        return Fits.joined(each)

    def fit_again(self, fits: Fits, failed: Integers, ensemble: Ensemble) -> None:
        """Fit some toys again, many together; what fails for good stays marked so."""
        left = self.fit_finer(fits, failed, ensemble)
        for some in by_events(left, self.events):
            batch = self.gathered(some).batch(ensemble)
            rows = Fits.none(batch.start)
            rows.take(np.arange(len(some)), fits, some, FAILED)
            batch.rescue(rows)
            if ensemble.has_weights:
                correct_errors(batch, rows, np.arange(len(some)))
            fits.take_all(some, rows)

    def fit_finer(self, fits: Fits, failed: Integers, ensemble: Ensemble) -> Integers:
        """Fit some toys again in compiled code, with finer boxes for numerical integrals; return those that fail still."""
        finer = ensemble.with_finer_boxes if len(failed) else None
        if finer is None:
            return failed
        left = [self.fit_some_finer(fits, some, finer) for some in by_events(failed, self.events)]
        return np.concatenate(left)

    def fit_some_finer(self, fits: Fits, failed: Integers, finer: Ensemble) -> Integers:
        again = self.some(failed).fit_whole(finer)
        if again is None:
            return failed
        valid = np.flatnonzero(again.valid)
        fits.take(failed[valid], again, valid, NEWTON)
        return np.delete(failed, valid)

    def batch(self, ensemble: Ensemble) -> Batch:
        """Return the minimiser of these toys, with the parameters that an ensemble fits."""
        return Batch(
            likelihood=ensemble.fitted,
            data=self.data,
            base=np.tile(ensemble.start_values, (len(self), 1)),
            floating=ensemble.floating,
            limits=ensemble.limits,
            goal=ensemble.goal * ensemble.weight_scale,
            weight=ensemble.weight_scale,
            alone=lambda toy: self.likelihood(toy, ensemble.fitted),
            thorough=ensemble.thorough,
        )

    def likelihood(self, toy: int, fitted: Term) -> Term:
        """Return the likelihood of one toy."""
        parts = [
            part.replaced(
                data=part.read(data),
                constraints=part.constraints_at(own.rows(np.array([toy]))),
            )
            for part, data, own in zip(fitted.parts, self.datasets(toy), self.data, strict=True)
        ]
        return fitted.with_parts(parts)

    def fit_whole(self, ensemble: Ensemble) -> Fits | None:
        """Draw and fit every toy in compiled code alone; None if that cannot be done."""
        return fit_whole_together([(self, ensemble)])[0]

    def whole_job(self, ensemble: Ensemble) -> tuple[WholeFit, int] | None:
        """Return what draws and fits toys in compiled code, and how many numbers it returns for each, if it can be done."""
        job = ensemble.whole_fit()
        return None if job is None else (job.checked(self.sizes), ensemble.result_width)

    def repair(self, ensemble: Ensemble, results: FitRows) -> bool:
        """Raise the envelopes that densities exceeded; return whether toys must be drawn again."""
        reports = zip(results.above, results.abandoned, strict=True)
        repaired = [ensemble.sampler(k).repair(*report) for k, report in enumerate(reports)]  # all of them
        return any(repaired)

    def is_stored(self, k: int) -> bool:
        """Return whether the events of a part are not drawn where they are fitted."""
        return self.ensemble.sampler(k).compiled is None


@dataclass(eq=False)
class ChosenToys(Toys):
    """Toys that do not follow one another; they can be fitted in compiled code alone."""

    chosen: Integers = field(default_factory=lambda: np.empty(0, np.int64))  # from the first

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        raise NotImplementedError("toys that do not follow one another are drawn where they are fitted")

    @property
    def numbers(self) -> Integers:
        return self.first + self.chosen

    @property
    def offsets(self) -> Integers:
        return self.chosen

    def one(self, toy: int) -> Toys:
        return Toys(self.ensemble, int(self.numbers[toy]), self.sizes[toy : toy + 1])
