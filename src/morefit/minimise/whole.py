"""One fit in one call of compiled code, of data that one thread sums over in less time than Python needs between steps."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from morefit.arrays import Array, read_only
from morefit.expr import Expr
from morefit.integrals.boxes import SharedBoxes
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import FitLayout, FitRows
from morefit.kernel.ir import Precision
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood import Likelihood, Term
from morefit.minimise.newton_program import fit_driver
from morefit.minimise.objective import Objective
from morefit.minimise.problem import Problem
from morefit.minimise.starts import STARTS
from morefit.model.integrate.smooth import smooth_column
from morefit.pipeline import Compiled, Settings, compile_values
from morefit.targets.base import (
    Backend,
    CountsPart,
    HostColumn,
    PartBatch,
    ToyBatch,
    WholeFit,
    WholeIntegral,
    WholePart,
    WholeScores,
)
from morefit.targets.cpu.run import Cpu

MAX_EVENTS = 20_000  # more are summed over by all threads, step by step
MAX_JOBS = 64  # cached in this process
MAX_RECORDS = 64  # cached with a job
Sums = tuple[Compiled | CountsTable, ...]
FIRST = np.zeros(1, np.int64)  # where the events of the only dataset begin


class Plan(NamedTuple):
    """The job of a fit, what was compiled for it, and the records with which fits of some problems begin."""

    job: WholeFit
    compiled: Sums  # stored, so that nothing else can have its address
    records: dict[tuple[Problem, float, int, float], Array]


_plans: OrderedDict[tuple[object, ...], Plan] = OrderedDict()


def expect_fit(likelihood: Term, problem: Problem) -> None:
    """Begin to compile what a fit in one call, or step by step, needs: the sums, and the driver beside them.

    A device's compiler takes long for the sums: they come first there.
    """
    on_cpu = likelihood.backend.name == "cpu"
    at_once = on_cpu and likelihood.events <= MAX_EVENTS
    count, parts = len(problem.floating), len(likelihood.parts)
    if on_cpu:
        expect_driver(likelihood.backend, count, parts if at_once else 1)
    for part in likelihood.parts:
        if part.has_kernels:
            # of events in memory, a fit in one call needs no more than the sums themselves
            (part.sums if on_cpu and part.data.in_memory and not part.apart else part.program)(2)
    if not on_cpu:  # whose steps are taken on the CPU
        expect_driver(Cpu(), count, 1)


@lru_cache(maxsize=32)  # every fit asks
def expect_driver(backend: Backend, floating: int, parts: int) -> None:
    layout = FitLayout(floating, parts)
    backend.expect_fits(fit_driver(layout), layout)


def fit_at_once(objective: Objective, goal: float) -> FitRows | None:
    """Fit in one call; return the record of the fit, None if the likelihood or its backend does not allow it."""
    likelihood, problem = objective.likelihood, objective.problem
    parts = likelihood.parts
    if likelihood.backend.name != "cpu" or likelihood.events > MAX_EVENTS:
        return None
    if not all(part.fits_whole and part.data.in_memory for part in parts):
        return None
    if likelihood.elimination(problem.floating, problem.floating_limits) is not None:
        return None
    # nodes in the place of events, from step to step
    if any(part.on_nodes or part.apart for part in parts):
        return None
    plan = find_plan(likelihood, problem, tuple([part.whole_sums() for part in parts]))
    if plan is None:
        return None
    job = plan.job
    toys = ToyBatch(
        sizes=np.array([[part.events for part in parts]]),
        first=0,
        record=first_record(plan, objective, goal),
        parts=tuple([part_batch(part, problem) for part in parts]),
    )
    if not job.spare:  # it did not run yet
        begin = time.perf_counter()
        likelihood.backend.prepare_fits(job, toys)
        objective.compiling += time.perf_counter() - begin
    rows = likelihood.backend.fit_whole(job, toys, job.layout.derivatives_width)
    return None if rows is None else FitRows(job.layout, rows)


def first_record(plan: Plan, objective: Objective, goal: float) -> Array:
    """Return the record with which a fit begins, read-only; fits of a problem have the same."""
    likelihood, problem = objective.likelihood, objective.problem
    starts = 0 if likelihood.one_minimum else STARTS
    key = problem, goal, starts, objective.weight
    if key not in plan.records:
        start, limits = problem.start[None], problem.floating_limits
        edges = likelihood.edges(problem.floating, limits)
        shifts = likelihood.backend.max_shifts(plan.job.layout.count)
        (record,) = plan.job.layout.first_records(
            start, limits, goal, starts, edges=edges, weight=objective.weight, shifts=shifts
        )
        if len(plan.records) == MAX_RECORDS:
            plan.records.clear()
        plan.records[key] = read_only(record.copy())
    return plan.records[key]


def part_batch(part: Likelihood, problem: Problem) -> PartBatch:
    """Return the events of a part, and where its parameters start."""
    known, weights = part.data.columns, part.data.weights
    stored = [known[o.name] for o in part.model.observables] + ([] if weights is None else [weights])
    columns = [HostColumn(np.ascontiguousarray(c, np.float64)) for c in stored]
    return PartBatch(parameters=part_values(part, problem), events=tuple(columns), starts=FIRST)


def part_values(part: Likelihood, problem: Problem) -> Array:
    """Return the parameters of the sums of a part, with what its constraints measured and the numbers of its form."""
    if part.all_parameters is problem.all_parameters and not part.constraints and part.form is None:
        return problem.first_row
    row = np.array([[problem.values[p.name] for p in part.all_parameters]])
    return np.asarray(part.with_measured(row)[0])


def find_plan(likelihood: Term, problem: Problem, compiled: Sums) -> Plan | None:
    """Return the plan of a fit, None if it cannot run without Python; one without numerical integrals serves all data."""
    # alike parts share what is compiled, so that names say whose parameters are whose, and which column is where
    names = [(part.all_parameters, column_names(part)) for part in likelihood.parts]
    key = (*map(id, compiled), problem.floating, *names)
    if (plan := _plans.get(key)) is not None:
        return plan
    if not can_fit_whole(likelihood.parts, compiled):
        return None
    plan = Plan(make_job(likelihood, problem, compiled), compiled, {})
    if not any(own.integrals for own in compiled):
        _plans[key] = plan
        if len(_plans) > MAX_JOBS:
            _plans.popitem(last=False)
    return plan


def make_job(likelihood: Term, problem: Problem, compiled: Sums) -> WholeFit:
    layout = FitLayout(len(problem.floating), len(likelihood.parts))
    places = {name: row for row, name in enumerate(problem.floating)}
    parts = tuple(
        whole_part(
            part,
            own,
            places=places,
            columns=column_names(part),
            fluctuating=False,
            rows=np.array([[problem.values[p.name] for p in part.all_parameters]]),
            boxes=part.boxes,
        )
        for part, own in zip(likelihood.parts, compiled, strict=True)
    )
    return WholeFit(driver=fit_driver(layout), layout=layout, parts=parts)


def can_fit_whole(parts: Sequence[Likelihood], compiled: Sequence[Compiled | CountsTable]) -> bool:
    """Return whether a fit can run without Python: not with integrals inside integrals, in several places, or in single precision."""
    nested = any(one.compiled.integrals for own in compiled for one in own.integrals)
    one_place = len({part.backend.name for part in parts}) == 1
    return one_place and not nested and all(part.settings.precision is Precision.DOUBLE for part in parts)


def whole_part(
    part: Likelihood,
    compiled: Compiled | CountsTable,
    *,
    places: Mapping[str, int],
    columns: Sequence[str],
    fluctuating: bool,
    rows: Array,
    boxes: SharedBoxes,
    finer: int = 0,
    scores: Compiled | None = None,
    weight: Expr | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> WholePart | CountsPart:
    """Return one part of a whole fit, without what draws its events.

    ``places`` are the parameters of the fit by name (others are fixed), ``columns`` what its events have, and ``rows``
    the parameters of the part at which its numerical integrals must be accurate; their boxes are halved ``finer`` more
    times. ``scores`` are the squared ones of weighted events, and ``weight`` the formula of weights that are no column.
    Columns that take long are polynomials of those whose ``ranges`` are known.
    """
    common: Any = {
        "parameters": len(part.kernel_symbols),
        "floating": tuple(part.floating_columns),
        "places": tuple(places.get(p.name, -1) for p in part.parameters),
        "measured": len(part.all_parameters),
        "fluctuating": len(part.measured) if fluctuating else 0,
    }
    if isinstance(compiled, CountsTable):
        return CountsPart(table=compiled, **common)
    derived = dict(compiled.per_dataset) | ({} if weight is None else {WEIGHT.name: weight})
    own = {} if scores is None else {name: (f"{name} of scores", e) for name, e in scores.per_dataset.items()}
    derived |= dict(own.values())
    if ranges is not None:
        derived = {name: smooth_column(expr, ranges) for name, expr in derived.items()}
    plain = Settings(part.backend, precompute="none")

    def fixed(sums: Compiled) -> tuple[WholeIntegral, ...]:
        return tuple(
            one.fix(part.with_measured(np.unique(rows, axis=0)), boxes, finer) for one in sums.integrals
        )

    return WholePart(
        sampler=None,
        derive=compile_values(tuple(derived.values()), (), plain).program if derived else None,
        sums=compiled.program,
        observables=tuple(columns),
        derived=tuple(derived),
        **common,
        integrals=fixed(compiled),
        scores=None
        if scores is None
        else WholeScores(
            program=scores.program,
            columns=tuple(own[name][0] if name in own else name for name in scores.program.kernel.columns),
            integrals=fixed(scores),
        ),
    )


def accurate_at(
    part: Likelihood, start: Mapping[str, float], truth: Mapping[str, float], *, between: bool
) -> Array:
    """Return the parameters of a part at which integrals must be accurate: at start and truth, also between start and limits.

    There may be peaks or zeros that do not exist at the start, and boxes must know how narrow they are.
    """
    rows = [start, {**start, **truth}]
    for p in part.parameters if between else ():
        ends = [end for end in (p.low, p.high) if np.isfinite(end)]
        rows += [{**start, p.name: (start[p.name] + end) / 2} for end in ends]
    return np.array([[row[p.name] for p in part.all_parameters] for row in rows])


def column_names(part: Likelihood) -> tuple[str, ...]:
    """Return the names of the columns that a fit is given, the weights last."""
    names = tuple([o.name for o in part.model.observables])
    return names if part.data.weights is None else (*names, WEIGHT.name)
