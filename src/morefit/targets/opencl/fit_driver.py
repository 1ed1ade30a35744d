"""Whole fits in OpenCL C: phases that all toys of a launch go through together.

What depends on parameters alone is serial: one work item computes it for one toy, so that the items of a group work on as
many toys. So is the step of the minimiser, unless there are many parameters. What runs over events or nodes of a quadrature has a work-group per
block of them. The host starts the phases of a step again and again; a toy that has converged leaves them at once, and the
device lists those that go on. The
numbers that a model is drawn with are arguments, so that one text serves many true values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

from morefit.kernel.ir import Kernel
from morefit.kernel.program import Driver
from morefit.kernel.read_program import read_program
from morefit.kernel.resolved import is_unresolved
from morefit.targets.opencl.dialect import Dialect, Names, body_lines, indented
from morefit.targets.opencl.fit_counts import CountsText, counts_functions
from morefit.targets.opencl.fit_shape import (
    RECORDS,
    ROWS,
    CountsShape,
    FitShape,
    PartShape,
    Phase,
    Runs,
    StepShape,
    record_line,
)
from morefit.targets.opencl.fit_steps import step_source
from morefit.targets.opencl.fit_sums import SumText
from morefit.targets.opencl.functions import helpers
from morefit.targets.opencl.measured import measure, measured_functions
from morefit.targets.opencl.program import Writer, function_lines
from morefit.targets.opencl.rows import COUNTED, draw_arguments, draw_lines, rows_functions
from morefit.targets.opencl.sample import STREAMS_BEFORE
from morefit.targets.opencl.source import TASK, KernelSource
from morefit.targets.opencl.sums import plain_loop, sum_functions

# phases that have a text of their own where texts are cut, to be built beside the others
APART = {"draw", "prepare", "integrate", "sums"}


class PartText:
    """Writes what one part of a likelihood adds to whole fits."""

    def __init__(self, shape: FitShape, number: int, part: PartShape, d: Dialect) -> None:
        self.shape, self.number, self.part, self.d = shape, number, part, d
        self.deriving = KernelSource(part.derive, shape.group, d, f"d{number}_") if part.derive else None
        self.sampling: KernelSource | None = None
        if part.sampler:
            self.sampling = KernelSource(
                part.sampler.kernel, shape.group, d, f"t{number}_",
                numbers=len(part.sampler.numbers), suffix=f"_{number}", rows=True,
            )  # fmt: skip
        self.sums = SumText(shape, number, part, part.sums, self.load, d)
        self.scores = (
            SumText(shape, number, part, part.scores, self.load, d, ends=True) if part.scores else None
        )

    @property
    def kernels(self) -> list[Kernel]:
        part = self.part
        drawn = [part.sampler.kernel] if part.sampler else []
        derive = [part.derive] if part.derive else []
        return [*drawn, *derive, *self.sum_kernels]

    @property
    def sum_kernels(self) -> list[Kernel]:
        """The kernels of sums over events and nodes."""
        return [kernel for text in self.texts for kernel in text.kernels]

    @property
    def step_phases(self) -> list[Phase]:
        """The phases of sums at the trial point."""
        return self.sums.phases

    @property
    def texts(self) -> list[SumText]:
        """Sums of each step, and those at the end."""
        return [self.sums] if self.scores is None else [self.sums, self.scores]

    # drawing

    def places(self, begin: str) -> dict[str, str]:
        """Return where each column of event k is, of those that begin somewhere."""
        n = self.number
        return {
            name: f"events{n}[{begin} + {place} * room{n} + k]"
            for place, name in enumerate(self.part.columns)
        }

    @cached_property
    def load(self) -> Mapping[str, str]:
        """Return where each column of event k of a block is."""
        return self.places("block.begin")

    def draw(self) -> Phase:
        """Draw the events or copy those there are, compute what depends on them alone, and count failures."""
        observables, n, m = self.part.observables, self.number, "{m}"
        stores = [f"{self.load[name]} = x{k};" for k, name in enumerate(observables)]
        memory = [f"{m}double *events{n}", f"const long room{n}"]
        derive = self.deriving.table_arguments() if self.deriving else []
        if self.part.rows is not None:
            return self.draw_rows(memory, derive)
        if self.sampling is None:
            given = [f"{m}const double *given{n}_{k}" for k in range(len(observables))]
            taken = [
                f"const double x{k} = given{n}_{k}[starts{n}[index] + block.event + k];"
                for k in range(len(observables))
            ]
            arguments = [*memory, f"{m}const long *starts{n}", *given, *derive]
            lines = plain_loop([*taken, *stores, *self.derive_lines(self.load)])
        else:
            drawing, word = self.sampling.drawing, self.d.word
            report = (f"report{n} + 2 * index", f"report{n} + 2 * index + 1")
            arguments = [
                *memory, ROWS, f"{m}const int *toys", f"const {word} seed{n}", f"const {word} first_toy{n}", f"{m}int *report{n}",
                *drawing.number_arguments(), *self.sampling.table_arguments(), *derive,
            ]  # fmt: skip
            lines = [
                *(drawing.room() if drawing.rounds else []),
                "const int row = rows[index];",
                f"const {word} seed = seed{n}, toy = first_toy{n} + toys[index];",
                *drawing.lines(
                    "block.event + k", [*stores, *self.derive_lines(self.load)], report, STREAMS_BEFORE
                ),
            ]
        return Phase(name=f"draw{n}", runs=Runs.BLOCKS, arguments=arguments, lines=lines, part=n, begins=True)

    def draw_rows(self, memory: Sequence[str], derive: Sequence[str]) -> Phase:
        """Draw the rows of a table, one work item per toy, and compute what depends on them alone."""
        n, d, part = self.number, self.d, self.part
        places = self.places("begin")
        loads = [f"const double x{k} = {places[name]};" for k, name in enumerate(part.observables)]
        derived = self.derive_lines(places)
        lines = [
            f"const int row = rows[index], count = sizes[index * {len(self.shape.parts)} + {n}];",
            "const long begin = (long)index * count;",
            *draw_lines(n, d, f"events{n} + begin", f"(int)room{n}"),
            *(["for (int k = 0; k < count; k++) {", *indented([*loads, *derived]), "}"] if derived else []),
        ]
        arguments = ["{m}const int *sizes", *memory, *draw_arguments(n, d), *derive]
        return Phase(name=f"draw{n}", runs=Runs.ITEMS, arguments=arguments, lines=lines, begins=True)

    def derive_lines(self, places: Mapping[str, str]) -> list[str]:
        """Compute the event-only columns of an event."""
        part = self.part
        if part.derive is None or self.deriving is None:
            return []
        names, place = Names(known=self.deriving.table_names()), part.observables.index
        reads = [f"const double {names.add(n, 'c')} = x{place(n)};" for n in part.derive.columns]
        lines = body_lines(part.derive.per_event, names, "double")
        pairs = zip(part.derived, part.derive.per_event.results, strict=True)
        stores = [f"{places[name]} = {names.atom(a)};" for name, a in pairs]
        return ["{", *indented([*reads, *lines, *stores]), "}"]


class Added(Protocol):
    """What is added to the sums of a fit."""

    def add_arguments(self) -> list[str]: ...

    def add_lines(self) -> list[str]: ...

    def place_tables(self) -> list[str]: ...


class FitSource:
    """Writes whole fits: ``begin`` are the phases before the first step, ``steps`` those of each step, ``end`` those after the last."""

    def __init__(self, driver: Driver, shape: FitShape, dialect: Dialect) -> None:
        self.shape, self.d = shape, dialect
        self.driver = step_source(driver, StepShape(wide=shape.wide, layout=shape.layout), dialect)
        self.parts = [
            CountsText(shape, k, part, dialect)
            if isinstance(part, CountsShape)
            else PartText(shape, k, part, dialect)
            for k, part in enumerate(shape.parts)
        ]

    @property
    def event_parts(self) -> list[PartText]:
        """The parts that are sums over events."""
        return [part for part in self.parts if isinstance(part, PartText)]

    @cached_property
    def begin(self) -> list[Phase]:
        return [*self.draw, self.driver.begin]

    @cached_property
    def draw(self) -> list[Phase]:
        """The phases that draw what constraints measure, and the data."""
        measures = [k for k, part in enumerate(self.shape.parts) if part.measuring is not None]
        return [*(measure(k, self.d) for k in measures), *self.shared([[part.draw()] for part in self.parts])]

    def shared(self, phases: Sequence[Sequence[Phase]]) -> list[Phase]:
        """Return the phases of all parts: those of parts that are alike run the functions of the first of them."""
        first: dict[Any, Sequence[Phase]] = {}
        return [
            phase if phase is known else replace(phase, shared=known.name)
            for part, own in zip(self.shape.parts, phases, strict=True)
            for phase, known in zip(own, first.setdefault(part.functions, own), strict=True)
        ]

    @cached_property
    def steps(self) -> list[Phase]:
        return [*self.trial_sums, self.driver.advance]

    @cached_property
    def trial_sums(self) -> list[Phase]:
        """The phases of a step before the minimiser's."""
        return [*self.shared([p.step_phases for p in self.parts]), self.collect]

    @cached_property
    def end(self) -> list[Phase]:
        """The phases after the last step, of all toys: errors of weighted events."""
        sums = self.score_sums
        return [self.driver.begin_scores, *sums, self.driver.correct] if sums else []

    @cached_property
    def score_sums(self) -> list[Phase]:
        """The phases that sum squared scores, where events have weights."""
        texts = [p.scores if isinstance(p, PartText) else None for p in self.parts]
        phases = self.shared([text.phases if text else [] for text in texts])
        return [*phases, self.collect_scores] if phases else []

    @property
    def scores(self) -> list[SumText]:
        return [p.scores for p in self.event_parts if p.scores]

    @property
    def all_phases(self) -> list[Phase]:
        return [*self.begin, *self.steps, *self.end]

    @cached_property
    def phases(self) -> list[Phase]:
        """All phases but those of the driver, which have a text of their own."""
        return [p for p in (*self.all_phases, self.choose) if p not in self.driver.phases]

    @cached_property
    def texts(self) -> dict[str, list[Phase]]:
        """The phases by the texts that have their functions."""
        groups: dict[str, list[Phase]] = {}
        for phase in self.phases:
            kind = phase.name.rstrip("_0123456789") if self.d.cut_texts else ""
            groups.setdefault(kind if kind in APART else "", []).append(phase)
        return {self.text_of(phases): phases for phases in groups.values()}

    def text_of(self, phases: Sequence[Phase]) -> str:
        """Write the functions of some phases."""
        return "\n".join([self.head, *(line for p in phases if not p.shared for line in p.text(self.d))])

    @cached_property
    def head(self) -> str:
        """What comes before the functions of phases."""
        d = self.d
        kernels = [kernel for part in self.parts for kernel in part.kernels]
        return "\n".join([
            f"// whole fits of {self.shape.layout.count} parameters in {d.name}",
            d.prologue,
            f"#define GROUP {self.shape.group}  // work items in a group",
            "typedef double real;",
            *(line for p in self.event_parts if p.sampling for line in p.sampling.drawing.number_type()),
            *TASK.splitlines(),
            "",
            *helpers(kernels),
            *self.generators(),
            *self.sum_functions(),
            *self.check_functions(),
        ])  # fmt: skip

    def generators(self) -> list[str]:
        """Return the functions that draw random numbers, each once."""
        texts = [tuple(p.sampling.drawing.generator_text()) for p in self.event_parts if p.sampling]
        rows = any(part.rows is not None for part in self.shape.parts)
        texts += [tuple(COUNTED.text(self.d))] if rows else []
        own = rows_functions(self.d) if rows else []
        if any(part.measuring is not None for part in self.shape.parts):
            own = [*own, *measured_functions(self.d)]
        return [*(line for text in dict.fromkeys(texts) for line in text), *own]

    def sum_functions(self) -> list[str]:
        """Return the functions that sums need, each once."""
        kernels = [kernel for p in self.event_parts for kernel in p.sum_kernels]
        counts = len(self.event_parts) < len(self.parts)
        return [*sum_functions(kernels, self.d), *(counts_functions(self.d) if counts else [])]

    def check_functions(self) -> list[str]:
        """Return the functions that say whether integrals are accurate."""
        if not any(p.part.sums.integrals for p in self.event_parts):
            return []
        functions = read_program(is_unresolved, {}).functions
        return [line for f in functions for line in function_lines(f, self.d.memory, Writer())]

    @cached_property
    def choose(self) -> Phase:
        """List the toys that are still fitted, and their blocks, for the next steps; count them."""
        lines = [f"active[{self.d.count_up.format('counts', 1)}] = index;"]
        for n in range(len(self.parts)):
            count = self.d.count_up.format(f"counts + {n + 1}", "number")
            lines += [
                "{",
                f"    const int first = first_block{n}[index], number = first_block{n}[index + 1] - first;",
                f"    const int place = {count};",
                f"    for (int k = 0; k < number; k++) blocks{n}[place + k] = all_blocks{n}[first + k];",
                "}",
            ]
        return Phase(
            name="choose",
            runs=Runs.ALL,
            arguments=[
                "{m}int *counts", "{m}int *active",
                *(
                    argument
                    for n in range(len(self.parts))
                    for argument in (
                        f"{{m}}const int *first_block{n}", f"{{m}}const block_of_events *all_blocks{n}",
                        f"{{m}}block_of_events *blocks{n}",
                    )
                ),
            ],
            lines=lines,
        )  # fmt: skip

    @cached_property
    def collect(self) -> Phase:
        """Take what was summed at the trial point."""
        record = self.shape.layout.record
        parts = [part.sums if isinstance(part, PartText) else part for part in self.parts]
        return self.collecting("collect", parts, record.first("new_value"), record.first("bad") + 1)

    @cached_property
    def collect_scores(self) -> Phase:
        """Take the squared scores where fits ended, in the place of a Hessian."""
        place = self.shape.layout.record.slice("new_hessian")
        phase = self.collecting("collect_scores", self.scores, place.start, place.stop)
        return replace(phase, begins=True)

    def collecting(self, name: str, texts: Sequence[Added], first: int, last: int) -> Phase:
        """Add up sums of all parts in some numbers of the record, which are zero before."""
        shape = self.shape
        return Phase(
            name=name,
            runs=shape.runs,
            tables=[table for one in texts for table in one.place_tables()],
            arguments=[
                RECORDS, "{m}const int *sizes", *(argument for one in texts for argument in one.add_arguments()),
            ],
            lines=[
                record_line(shape, self.d),
                shape.each(first, last, f"fit[k * {shape.pitch}] = 0.0;"),
                *shape.wait(self.d),
                *(line for one in texts for line in one.add_lines()),
            ],
        )  # fmt: skip
