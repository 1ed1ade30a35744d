"""Fits of toys in compiled code alone, of several ensembles together, and how their results are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from morefit.arrays import Integers
from morefit.kernel.fit_layout import FitRows
from morefit.minimise.batch import FAILED, NEWTON, Fits, methods
from morefit.minimise.newton import is_valid
from morefit.minimise.trust_region import CONVERGED
from morefit.random.host import part_key
from morefit.resources import on_all_cores
from morefit.sampling.generate import REPAIRS, envelope_error
from morefit.targets.base import Events, PartBatch, ToyBatch
from morefit.toys.on_nodes import fit_on_nodes
from morefit.toys.polynomials import are_rough

if TYPE_CHECKING:
    from morefit.toys.batch import Toys
    from morefit.toys.ensemble import Ensemble

SMALL = 2_000_000  # events of a toy that one thread fits; larger ones are fitted by all threads, step by step
TOGETHER = 1 << 22  # events of toys that are fitted again together
PIECE = 1 << 14  # toys whose results a thread reads


def first_fits(fits: Sequence[tuple[Toys, Ensemble]]) -> list[Fits]:
    """Fit the toys of each ensemble as ``Toys.first_fit`` does, together where the backend can do that."""
    whole = fit_whole_together(fits)
    return [
        toys.fit_by_steps(ensemble) if done is None else done
        for (toys, ensemble), done in zip(fits, whole, strict=True)
    ]


def fit_whole_together(fits: Sequence[tuple[Toys, Ensemble]]) -> list[Fits | None]:
    """Draw and fit the toys of each ensemble in compiled code alone, None where that cannot be done; all have one backend."""
    answers = [fit_slow(*each) if any(each[1].grids) else None for each in fits]
    left = [k for k, done in enumerate(answers) if done is None]
    for k, done in zip(left, fit_events([fits[k] for k in left]), strict=True):
        answers[k] = done
        if done is not None and any(fits[k][1].smooth):
            fit_exactly(*fits[k], done)
    return answers


def fit_exactly(toys: Toys, ensemble: Ensemble, fits: Fits) -> None:
    """Fit toys again that ended at no minimum, or where polynomials are not the integrals for each event."""
    wrong = ~fits.valid | are_rough(fits, ensemble)
    for some in by_events(np.flatnonzero(wrong), toys.events):
        (exact,) = fit_events([(toys.some(some), ensemble.exact)])
        if exact is not None:
            fits.take_all(some, exact)


def fit_slow(toys: Toys, ensemble: Ensemble) -> Fits | None:
    """Fit toys whose log density takes long for each event: at nodes, and the rest at their events; None if that cannot be done."""
    fits, left = fit_on_nodes(toys, ensemble)
    if len(left):
        (rest,) = fit_events([(toys.some(left), ensemble)])
        if rest is None:
            return None
        fits.take_all(left, rest)
    return fits


def fit_events(fits: Sequence[tuple[Toys, Ensemble]]) -> list[Fits | None]:
    """Draw and fit the toys of each ensemble at their events."""
    answers: list[Fits | None] = [None] * len(fits)
    left = [k for k, (toys, _) in enumerate(fits) if toys.events.max(initial=0) <= SMALL]
    for _ in range(REPAIRS):
        jobs = {k: job for k in left if (job := fits[k][0].whole_job(fits[k][1])) is not None}
        left = []
        for width in {width for _, width in jobs.values()}:
            some = [k for k in jobs if jobs[k][1] == width]
            batches = [(jobs[k][0], whole_batch(*fits[k])) for k in some]
            rows = fits[some[0]][1].backend.fit_whole_together(batches, width)
            for k, own in zip(some, rows, strict=True):
                if own is None:
                    continue
                results = FitRows(jobs[k][0].layout, own)
                if fits[k][0].repair(fits[k][1], results):
                    left.append(k)
                else:
                    answers[k] = read_rows(results).judged(fits[k][1].fitted, fits[k][1].floating)
        if not left:
            return answers
    raise envelope_error()


def whole_batch(toys: Toys, ensemble: Ensemble) -> ToyBatch:
    """Return toys for fits in compiled code."""
    return ToyBatch(
        sizes=toys.sizes,
        first=toys.first,
        record=ensemble.first_record,
        offsets=toys.offsets,
        parts=tuple(part_batch(toys, ensemble, k) for k in range(toys.sizes.shape[1])),
    )


def part_batch(toys: Toys, ensemble: Ensemble, k: int) -> PartBatch:
    stored = toys.is_stored(k)
    drawn = not stored and ensemble.measuring[k] is not None
    return PartBatch(
        parameters=ensemble.whole_parameters[k],
        measured=None if drawn else ensemble.measured(k, toys.numbers),
        seed=part_key(ensemble.seed, k),
        events=toys.drawn[k].columns if stored else (),
        starts=Events.slices(toys.sizes[:, k]).starts if stored else None,
    )


def read_rows(rows: FitRows) -> Fits:
    """Read the results of whole fits; they stay where they are, for memory that is new takes longer than a fit on a GPU."""
    fits, count = rows.x.shape
    valid, method = np.ones(fits, np.bool_), np.full(fits, NEWTON, np.uint8)
    unresolved = rows.column("unresolved")

    def mark(cut: slice) -> None:
        # few, as a rule
        odd = cut.start + np.flatnonzero((rows.status[cut] != CONVERGED) | (unresolved[cut] != 0))
        resolved = unresolved[odd] == 0
        valid[odd] = is_valid(rows.status[odd], rows.column("fixed")[odd]) & resolved
        method[odd] = np.where(resolved, methods(rows.status[odd], valid[odd]), FAILED)
        none = rows.errors[cut] < 0
        if none.any():
            rows.errors[cut][none] = np.nan

    on_all_cores(mark, fits, PIECE)
    return Fits(
        values=rows.x,
        errors=rows.errors,
        nll=rows.value,
        edm=rows.edm,
        valid=valid,
        method=method,
        covariance=rows.columns("covariance").reshape(fits, count, count).copy()
        if rows.has_covariance
        else None,
    )


def by_events(toys: Integers, sizes: Integers) -> Iterator[Integers]:
    """Cut toys into groups that have no more events than fit into memory together."""
    if len(toys):
        group = np.cumsum(sizes[toys]) // TOGETHER
        yield from np.split(toys, np.flatnonzero(np.diff(group)) + 1)
