"""Newton's method for many fits at once, evaluated together: the same program as in whole fits, one step at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Flags, Integers
from morefit.dataclass import dataclass
from morefit.kernel.fit_layout import MAX_STEPS, FitLayout, FitRows
from morefit.kernel.program import Driver
from morefit.likelihood import Evaluation
from morefit.likelihood.evaluation import PartData
from morefit.minimise.newton_program import fit_driver
from morefit.minimise.quadratic_model import UNKNOWN
from morefit.minimise.starts import STARTS, thorough_starts
from morefit.minimise.trust_region import CONVERGED, FLAT

if TYPE_CHECKING:
    from morefit.likelihood.eliminate import Elimination
    from morefit.targets.cpu.fit_driver import Steps

# (sets, x of shape (len(sets), P)) -> value, gradient, Hessian
Evaluate = Callable[[Integers, Array], Evaluation]


@dataclass(frozen=True, eq=False)
class Minima:
    """Where many minimisations ended: B sets, P parameters."""

    x: Array  # (B, P)
    covariance: Array  # (B, P, P), nan where there is none
    errors: Array  # (B, P), nan where there are none
    nll: Array  # (B,)
    edm: Array  # (B,)
    status: Array  # (B,)
    fixed: Array  # (B,) how many parameters are at a limit
    steps: NDArray[np.int64]  # (B,) evaluations

    @classmethod
    def of(cls, rows: FitRows) -> Minima:
        """Read what fits returned, with the covariance."""
        count = rows.layout.count
        errors = rows.errors.copy()
        covariance = rows.columns("covariance").reshape(-1, count, count).copy()
        unknown = ~(errors >= 0)
        if unknown.any():
            errors[unknown] = np.nan
            covariance[unknown[:, :, None] | unknown[:, None, :]] = np.nan
        nll, edm = (np.where(a < UNKNOWN, a, np.inf) for a in (rows.value, rows.edm))
        return cls(
            x=rows.x.copy(),
            covariance=covariance,
            errors=errors,
            nll=nll,
            edm=edm,
            status=rows.status.copy(),
            fixed=rows.column("fixed").copy(),
            steps=rows.steps.astype(np.int64),
        )

    @property
    def valid(self) -> Flags:
        return is_valid(self.status, self.fixed)


def is_valid(status: Array, fixed: Array) -> Flags:
    """Return which fits have a minimum; where a parameter at a limit leaves others without effect, it is one of the rest."""
    return np.asarray((status == CONVERGED) | ((status == FLAT) & (fixed > 0)), np.bool_)


def prepare_steps(count: int) -> None:
    """Compile the steps of fits with a number of parameters, if they are not yet."""
    from morefit.targets.cpu.fit_driver import driver_code

    layout = FitLayout(count)
    driver_code(fit_driver(layout), layout)


def begin_steps(driver: Driver, layout: FitLayout, records: Array) -> Steps:
    """Begin fits whose steps the host takes, from their first records."""
    from morefit.targets.cpu.fit_driver import Steps  # which a fit in one call does not need

    return Steps(driver, layout, records)


@np.errstate(all="ignore")
def minimise(
    evaluate: Evaluate,
    start: Array,
    limits: Array,
    goal: float,
    *,
    thorough: bool = False,
    starts: int = STARTS,
    edges: Sequence[float] = (),
    weight: float = 1.0,
    max_steps: int = MAX_STEPS,
) -> Minima:
    """Minimise B functions of P parameters from ``start`` (B, P) within ``limits`` (P, 2) or (B, P, 2).

    What is done is left out of the next evaluation. Where it is ``thorough``, every minimisation is started again elsewhere;
    else only one that ends at a limit, from ``starts`` other points. ``edges``: 1 for parameters that move the end of a density, -1 for angles whose limits are one point. ``weight`` is the
    mean one of events, and ``max_steps`` are taken from each start.
    """
    layout = FitLayout(start.shape[1])
    starts = thorough_starts(layout.count) if thorough else starts
    records = layout.first_records(
        start, np.asarray(limits), goal, starts, thorough, edges=edges, weight=weight
    )
    records[:, layout.record.first("max_steps")] = max_steps
    steps = begin_steps(fit_driver(layout), layout, records)
    final = np.empty((len(start), layout.state_size))
    active = np.arange(len(start))
    while len(active):
        # views of the fits that have not ended
        trial, gradient, hessian = map(steps.columns, ("trial", "new_gradient", "new_hessian"))
        value, bad, running = map(steps.column, ("new_value", "bad", "running"))
        while running.all():
            evaluation = evaluate(active, trial.copy())
            value[:], gradient[:], bad[:] = evaluation.value, evaluation.gradient, evaluation.bad
            hessian[:] = evaluation.hessian.reshape(hessian.shape)
            steps.advance()
        ended = ~steps.running
        final[active[ended]] = steps.take(ended)
        active = active[~ended]
    return Minima.of(FitRows(layout, final))


@np.errstate(all="ignore")
def minimise_eliminated(
    elimination: Elimination,
    data: Sequence[PartData],
    sets: Integers,
    full: Array,
    limits: Array,
    goal: float,
) -> Minima:
    """Minimise a likelihood for some datasets from rows of all parameters, with some of its parameters eliminated.

    Templates with constraints have one minimum, so that one at a limit is not searched again.
    """

    def at(rows: Integers, x: Array) -> Array:
        points = full[rows]
        points[:, elimination.rest] = x
        return points

    minima = minimise(
        lambda rows, x: elimination.evaluate(data, sets[rows], at(rows, x)),
        full[:, elimination.rest],
        limits[elimination.outer],
        goal,
        starts=0,
    )
    values, covariance = elimination.complete(
        data, sets, at(np.arange(len(sets)), minima.x), minima.covariance
    )
    errors = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    return replace(minima, x=values, covariance=covariance, errors=errors)
