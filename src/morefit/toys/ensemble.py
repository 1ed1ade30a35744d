"""An ensemble: what toys are drawn from, what is fitted to them, and their whole fits in compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import FitError, ModelError
from morefit.expr import Expr
from morefit.expr.quadrature import NodeDomain
from morefit.garbage import without_collection
from morefit.integrals.boxes import SharedBoxes
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.measured_program import MeasuredTable
from morefit.kernel.program import Driver
from morefit.kernel.symbols import WEIGHT
from morefit.likelihood import Constraint, Likelihood, Term
from morefit.likelihood.evaluation import least_mean_weight
from morefit.likelihood.event_nodes import Cells
from morefit.likelihood.wider import resolved
from morefit.minimise.newton import begin_steps
from morefit.minimise.newton_program import fit_driver
from morefit.minimise.starts import STARTS, thorough_starts
from morefit.minimise.whole import accurate_at, can_fit_whole, whole_part
from morefit.model.integrate.smooth import SmoothSum
from morefit.pipeline import Compiled, able_backend
from morefit.random.host import stream_key
from morefit.sampling.generate import ToySampler
from morefit.targets.base import Backend, CompiledDraw, CountsPart, WholeFit, WholePart
from morefit.targets.cpu.run import Cpu
from morefit.toys.batch import GOAL, Toys
from morefit.toys.pairs import check_pairs
from morefit.toys.polynomials import column_ranges, smooth_in

FINER = 2  # halvings of boxes that were not accurate enough for some toys
WEIGHED = 200  # events whose weights show how large those of toys are


@dataclass(eq=False)
class Ensemble:
    """Draws toys of one likelihood and fits another (or the same) to each; toys are known by their number."""

    drawn: Term
    fitted: Term
    truth: Mapping[str, float]  # all parameters of the likelihood that is drawn from
    start: Mapping[str, float]  # all parameters of the fitted one; fixed ones stay there
    seed: int
    backend: Backend
    fluctuate: bool = True  # toys draw what constraints measured anew
    thorough: bool = False  # every fit is started again elsewhere
    resample: bool = True  # toys draw rows of what a conditional model is given
    weighted: bool = False  # events are stored, with weights; else weights are formulas of the fitted parts
    on_nodes: bool = False  # stored events are nodes, and their weights numbers of events
    expected: int = 1  # about how many toys there will be, which tells what is worth being built
    goal: float = GOAL  # of the EDM, of events that count once
    mean_weight: float = 1.0  # of stored datasets
    finer: int = 0  # how many more times the boxes of integrals are halved in whole fits
    polynomials: bool = True  # stand for smooth integrals for each event in whole fits
    has_rows: bool = True  # what a conditional model is given are rows of the data that toys are drawn from
    boxes: SharedBoxes = field(init=False, default_factory=SharedBoxes, repr=False)
    samplers: tuple[ToySampler, ...] | None = field(default=None, repr=False)
    made: tuple[tuple[CompiledDraw | None, ...], WholeFit] | None = field(
        init=False, default=None, repr=False
    )
    steps_on_host: bool = field(init=False, default=False, repr=False)  # rather than on a device
    # the same with nodes for other values, as toys/nodes.py makes them
    with_other_nodes: dict[tuple[tuple[str, float], ...], Ensemble | None] = field(
        init=False, default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        for part in (*self.drawn.parts, *self.fitted.parts):
            self.backend = able_backend(part.model, self.backend)
        self.fitted = resolved(self.fitted, self.start)
        self.fitted = self.fitted.with_parts([p.replaced(backend=self.backend) for p in self.fitted.parts])
        check_pairs(self.drawn.parts, self.fitted.parts)
        if not self.floating:
            raise FitError("toys: the fitted model has no floating parameter; free one")
        for constraint in self.constraints if self.fluctuate else ():
            constraint.check_drawable()

    @property
    def constraints(self) -> list[Constraint]:
        return [c for part in self.fitted.parts for c in part.constraints]

    @cached_property
    def floating(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.fitted.parameters)

    @cached_property
    def limits(self) -> Array:
        return np.array([(p.low, p.high) for p in self.fitted.parameters])

    @cached_property
    def start_values(self) -> Array:
        """Where fits start, of all parameters."""
        return np.array([self.start[p.name] for p in self.fitted.all_parameters])

    def sampler(self, part: int) -> ToySampler:
        """Return what draws the events of a part."""
        if self.samplers is None:
            self.samplers = tuple(
                p.sampler(self.truth_of(p), self.backend, self.resample) for p in self.drawn.parts
            )
        return self.samplers[part]

    def truth_of(self, part: Likelihood) -> dict[str, float]:
        return {p.name: self.truth[p.name] for p in part.model.parameters}

    @property
    def margins(self) -> tuple[float, ...]:
        """The current margin of each envelope; the events that are drawn depend on it."""
        return tuple(self.sampler(k).margin for k in range(len(self.drawn.parts)))

    def measured(self, part: int, toys: Integers) -> Array | None:
        """Return what the constraints of a part measure in each toy; None if that is what they measured in the data."""
        constraints = self.fitted.parts[part].constraints
        if not (self.fluctuate and constraints):
            return None
        values = {**self.start, **self.truth}
        return np.concatenate(
            [
                c.draw(values, stream_key(self.seed, f"constraint {part} {k}"), toys, around_data=False)
                for k, c in enumerate(constraints)
            ],
            axis=1,
        )

    @cached_property
    def measuring(self) -> tuple[MeasuredTable | None, ...]:
        """How whole fits draw the same for each part; None if the backend does not, or if there is nothing to draw."""
        return tuple(self.measured_table(k) for k in range(len(self.fitted.parts)))

    def measured_table(self, part: int) -> MeasuredTable | None:
        constraints, values = self.fitted.parts[part].constraints, {**self.start, **self.truth}
        if not (self.fluctuate and constraints and self.backend.draws_measured):
            return None
        each = [
            c.compiled_draw(values, stream_key(self.seed, f"constraint {part} {k}"))
            for k, c in enumerate(constraints)
        ]
        known = [value for own in each if own is not None for value in own]
        return MeasuredTable.of(known) if known and all(own is not None for own in each) else None

    def draw(self, first: int, sizes: NDArray[np.int64]) -> Toys:
        """Return toys ``first``, ``first + 1``, ...; their events are drawn when they are needed.

        ``sizes`` are the numbers of events of each toy, (toys,), or (toys, parts).
        """
        rows = np.ascontiguousarray(np.reshape(sizes, (len(sizes), -1)), np.int64)
        return Toys(self, first, rows)

    def fixing(self, values: Mapping[str, float]) -> Ensemble:
        """Return the same with some parameters of the fit fixed at these values."""
        return replace(self, fitted=self.fitted.fixing(values), start={**self.start, **values})

    @cached_property
    def with_finer_boxes(self) -> Ensemble | None:
        """The same with more accurate integrals in whole fits, if there are integrals by boxes and such fits."""
        sums = (own for own in self.compiled if isinstance(own, Compiled)) if self.has_whole_fit else ()
        boxed = (not isinstance(one.integral.domain, NodeDomain) for own in sums for one in own.integrals)
        if self.finer or not any(boxed):
            return None
        other = replace(self, finer=FINER)
        with suppress(ModelError):  # there may be no integral between start and limits
            return other if other.whole_parts else None
        other = replace(self, finer=FINER)
        other.boxes = self.boxes
        return other

    # --------------------------------------------------------------------- fits in compiled code alone

    @cached_property
    def has_weights(self) -> bool:
        """Whether events have weights, so that errors come from the sandwich."""
        if self.on_nodes:
            return False
        return self.weighted or any(weight is not None for weight in self.formulas)

    @property
    def formulas(self) -> tuple[Expr | None, ...]:
        """The weight of an event as a formula, for each part; None where it counts once, or has a column of weights."""
        return tuple(None if self.weighted else part.weight for part in self.fitted.parts)

    @cached_property
    def weight_scale(self) -> float:
        """The mean weight of events: the EDM at which fits end is as small."""
        if all(weight is None for weight in self.formulas):
            return self.mean_weight
        each = zip(self.fitted.parts, self.formulas, strict=True)
        sizes = [part.events if weight is None else WEIGHED for part, weight in each]
        return least_mean_weight(self.draw(0, np.array([sizes])).datasets(0), alone=False)

    @cached_property
    def compiled(self) -> tuple[Compiled | CountsTable, ...]:
        """The sums of each part."""
        each = zip(self.fitted.parts, self.formulas, strict=True)
        weighted = [(part, self.weighted or weight is not None) for part, weight in each]
        return tuple(p.whole_sums(w, s) for (p, w), s in zip(weighted, self.smooth, strict=True))

    @cached_property
    def scores(self) -> tuple[Compiled, ...]:
        """The sums of squared scores of each part, from which whole fits compute errors; none where they cannot."""
        parts = self.fitted.parts
        if not (self.has_weights and all(part.has_scores for part in parts)):
            return ()
        each = zip(parts, self.formulas, strict=True)
        weighted = [(part, self.weighted or weight is not None) for part, weight in each]
        sums = tuple(p.score_sums(w, s) for (p, w), s in zip(weighted, self.smooth, strict=True))
        return sums if can_fit_whole(parts, sums) else ()

    @cached_property
    def layout(self) -> FitLayout:
        """The record of a fit."""
        return FitLayout(len(self.floating), len(self.fitted.parts))

    @cached_property
    def expects_whole_fit(self) -> bool:
        """Whether a fit may be one without Python, as far as the sums need not be known; its driver is compiled from here on."""
        able = all(part.fits_whole for part in self.fitted.parts)
        if not able or self.fitted.elimination(self.floating, self.limits) is not None:
            return False
        if not self.has_weights and self.fitted.kinked(self.floating):
            return False
        self.steps_on_host = self.backend.expect_fits(self.driver, self.layout, self.expected)
        return True

    @cached_property
    def has_whole_fit(self) -> bool:
        """Whether a fit can run without Python; models of counts read counts, and no other columns."""
        if not (self.expects_whole_fit and can_fit_whole(self.fitted.parts, self.compiled)):
            return False
        pairs = zip(self.drawn.parts, self.compiled, strict=True)
        return all(len(p.model.observables) == 1 for p, own in pairs if isinstance(own, CountsTable))

    @property
    def driver(self) -> Driver:
        return fit_driver(self.layout, bool(self.scores))

    @property
    def result_width(self) -> int:
        """How many numbers a whole fit returns; with the covariance where errors are computed from it afterwards."""
        apart = self.has_weights and not self.scores
        return self.layout.derivatives_width if apart else self.layout.width

    @without_collection()
    def whole_fit(self) -> WholeFit | None:
        """Return a fit that needs no Python, if there is one; made anew when a sampler was repaired."""
        if not self.expects_whole_fit:
            return None
        # before the sums, which take longest in Python: machine code is made meanwhile
        samplers = tuple(self.sampler(k).compiled for k in range(len(self.drawn.parts)))
        if not self.has_whole_fit:
            return None
        if self.made is None or any(a is not b for a, b in zip(self.made[0], samplers, strict=True)):
            parts = [
                p if s is None else p.drawn_by(s.program, self.measuring[k])
                for k, (p, s) in enumerate(zip(self.whole_parts, samplers, strict=True))
            ]
            self.made = (samplers, self.whole_fit_of(parts))
        return self.made[1]

    def whole_fit_of(self, parts: Sequence[WholePart | CountsPart]) -> WholeFit:
        """Return a fit of parts whose events are drawn or stored."""
        driver, layout = self.driver, self.layout
        expect = partial(Cpu().expect_fits, driver, layout) if self.steps_on_host else None
        begin = partial(begin_steps, driver, layout)
        return WholeFit(
            driver=driver, layout=layout, parts=tuple(parts), begin_steps=begin, expect_steps=expect
        )

    @cached_property
    def first_record(self) -> Array:
        """The record with which each whole fit begins."""
        layout = self.layout
        start = self.start_values[self.fitted.floating_columns]
        others = 0 if self.fitted.one_minimum else STARTS
        starts = thorough_starts(layout.count) if self.thorough else others
        edges, weight = self.fitted.edges(self.floating, self.limits), self.weight_scale
        (record,) = layout.first_records(
            start[None],
            self.limits,
            self.goal * weight,
            starts,
            self.thorough,
            edges=edges,
            weight=weight,
            shifts=self.backend.max_shifts(layout.count),
        )
        return np.asarray(record)

    @cached_property
    def grids(self) -> tuple[Cells | None, ...]:
        """The cells of parts whose log density takes long, for fits at their nodes; None for others, and with weights."""
        if self.on_nodes or self.has_weights:
            return (None,) * len(self.fitted.parts)
        pairs = zip(self.drawn.parts, self.fitted.parts, strict=True)
        return tuple(self.grid(part) if len(drawn.model.observables) == 1 else None for drawn, part in pairs)

    def grid(self, part: Likelihood) -> Cells | None:
        """Return the cells of a part at start and truth, if its log density takes long."""
        rows = np.array([self.values_of(part, {}), self.values_of(part, self.truth)])
        return None if part.slow is None else part.slow.cells(rows)

    @cached_property
    def smooth(self) -> tuple[tuple[SmoothSum, ...], ...]:
        """The integrals for each event of each part that polynomials of a column stand for; see ``exact``."""
        pairs = zip(self.fitted.parts, self.drawn.parts, strict=True)
        return tuple(smooth_in(self, part, drawn) for part, drawn in pairs)

    @cached_property
    def exact(self) -> Ensemble:
        """The same with integrals for each event themselves, for toys where polynomials are not accurate."""
        other = replace(self, polynomials=False)
        other.boxes = self.boxes
        return other

    @cached_property
    def at_nodes(self) -> Ensemble:
        """The same for toys whose events are nodes, with numbers of events as weights.

        Integrals for each node take much longer than those for all, whose boxes hence are fine from the start.
        """
        other = replace(self, weighted=True, on_nodes=True, finer=FINER)
        other.boxes = self.boxes
        return other

    @cached_property
    def whole_parts(self) -> tuple[WholePart | CountsPart, ...]:
        """The parts of a whole fit, without what draws their events; integrals are accurate at start and truth at least."""
        places = {name: row for row, name in enumerate(self.floating)}
        return tuple(
            whole_part(
                part,
                compiled,
                places=places,
                columns=[
                    *(o.name for o in drawn.model.observables),
                    *([WEIGHT.name] if self.weighted else []),
                ],
                fluctuating=self.fluctuate,
                rows=accurate_at(part, self.start, self.truth, between=self.finer > 0),
                boxes=self.boxes,
                finer=self.finer,
                scores=scores,
                weight=weight,
                ranges=column_ranges(self, part, drawn) if self.polynomials else None,
            )
            for part, drawn, compiled, scores, weight in zip(
                self.fitted.parts,
                self.drawn.parts,
                self.compiled,
                self.scores or [None] * len(self.compiled),
                self.formulas,
                strict=True,
            )
        )

    def values_of(self, part: Likelihood, values: Mapping[str, float]) -> list[float]:
        """Return all parameters of a part, at their starts but for some values."""
        known = {**self.start, **values}
        return [known[p.name] for p in part.all_parameters]

    @cached_property
    def whole_parameters(self) -> tuple[Array, ...]:
        """The parameters of the sums of each part, with what its constraints measured in the data."""
        return tuple(
            part.with_measured(np.array([self.values_of(part, {})]))[0] for part in self.fitted.parts
        )
