"""Whole fits in OpenCL C: phases that all toys of a launch go through together.

What depends on parameters alone is serial: one work item computes it for one toy, so that the items of a group work on as
many toys. So is the step of the minimiser, unless there are many parameters. What runs over events or nodes of a quadrature has a work-group per
block of them. The host starts the phases of a step again and again; a toy that has converged leaves them at once, and the
device lists those that go on. The
numbers that a model is drawn with are arguments, so that one text serves many true values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from morefit.kernel.program import Driver
from morefit.kernel.read_program import read_program
from morefit.kernel.resolved import is_unresolved
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_part import PartText
from morefit.targets.opencl.fit_phase import Phase, Runs
from morefit.targets.opencl.fit_shape import RECORDS, FitShape, StepShape, record_line
from morefit.targets.opencl.fit_steps import step_source
from morefit.targets.opencl.fit_sums import SumText
from morefit.targets.opencl.functions import helpers
from morefit.targets.opencl.program import Writer, function_lines
from morefit.targets.opencl.source import TASK
from morefit.targets.opencl.sums import sum_functions


class FitSource:
    """Writes whole fits: ``begin`` are the phases before the first step, ``steps`` those of each step, ``end`` those after the last."""

    def __init__(self, driver: Driver, shape: FitShape, dialect: Dialect) -> None:
        self.shape, self.d = shape, dialect
        self.driver = step_source(driver, StepShape(wide=shape.wide, layout=shape.layout), dialect)
        self.parts = [PartText(shape, k, dialect) for k in range(len(shape.parts))]

    @cached_property
    def begin(self) -> list[Phase]:
        return [*(part.draw() for part in self.parts), self.driver.begin]

    @cached_property
    def steps(self) -> list[Phase]:
        return [*(phase for p in self.parts for phase in p.sums.phases), self.collect, self.driver.advance]

    @cached_property
    def end(self) -> list[Phase]:
        """The phases after the last step, of all toys: errors of weighted events."""
        if not self.shape.weighted:
            return []
        phases = [phase for text in self.scores for phase in text.phases]
        return [self.driver.begin_scores, *phases, self.collect_scores, self.driver.correct]

    @property
    def scores(self) -> list[SumText]:
        return [p.scores for p in self.parts if p.scores]

    @property
    def all_phases(self) -> list[Phase]:
        return [*self.begin, *self.steps, *self.end]

    @property
    def phases(self) -> list[Phase]:
        """All phases of this text; those of the driver have their own."""
        return [p for p in (*self.all_phases, self.choose) if p not in self.driver.phases]

    @cached_property
    def text(self) -> str:
        d = self.d
        kernels = [kernel for part in self.parts for kernel in part.kernels]
        return "\n".join([
            f"// whole fits of {self.shape.layout.count} parameters in {d.name}",
            d.prologue,
            f"#define GROUP {self.shape.group}  // work items in a group",
            "typedef double real;",
            *(line for p in self.parts if p.sampling for line in p.sampling.drawing.number_type()),
            *TASK.splitlines(),
            "",
            *(line for part in self.parts for text in part.texts for line in text.place_table()),
            *helpers(kernels),
            *self.generators(),
            *self.sum_functions(),
            *self.check_functions(),
            *(line for phase in self.phases for line in phase.text(d)),
        ])  # fmt: skip

    def generators(self) -> list[str]:
        """Return the functions that draw random numbers, each once."""
        texts = [tuple(p.sampling.drawing.generator_text()) for p in self.parts if p.sampling]
        return [line for text in dict.fromkeys(texts) for line in text]

    def sum_functions(self) -> list[str]:
        """Return the functions that sums need, each once."""
        kernels = [kernel for p in self.parts for kernel in p.sum_kernels]
        most = max((sum_functions(kernel, self.d) for kernel in kernels), key=len)
        return list(most)

    def check_functions(self) -> list[str]:
        """Return the functions that say whether integrals are accurate."""
        if not any(p.part.sums.integrals for p in self.parts):
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
        texts = [p.sums for p in self.parts]
        return self.collecting("collect", texts, record.first("new_value"), record.first("bad") + 1)

    @cached_property
    def collect_scores(self) -> Phase:
        """Take the squared scores where fits ended, in the place of a Hessian."""
        place = self.shape.layout.record.slice("new_hessian")
        phase = self.collecting("collect_scores", self.scores, place.start, place.stop)
        return replace(phase, begins=True)

    def collecting(self, name: str, texts: Sequence[SumText], first: int, last: int) -> Phase:
        """Add up sums of all parts in some numbers of the record, which are zero before."""
        shape = self.shape
        return Phase(
            name=name,
            runs=shape.runs,
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
