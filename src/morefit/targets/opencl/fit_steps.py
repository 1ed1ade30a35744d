"""The driver of whole fits in OpenCL C: how a fit begins, and a step of the minimiser. It depends on no model."""

from __future__ import annotations

from functools import cached_property, lru_cache

from morefit.kernel.program import Driver
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_shape import RECORDS, ROWS, Phase, StepShape, record_line
from morefit.targets.opencl.program import PREFIX, SCRATCH, GroupWriter, Writer, function_lines


@lru_cache(maxsize=32)
def step_source(driver: Driver, shape: StepShape, dialect: Dialect) -> StepSource:
    """Return the text of a step, which is written once in a process."""
    return StepSource(driver, shape, dialect)


class StepSource:
    """Writes a text of its own, which all models with as many parameters share."""

    def __init__(self, driver: Driver, shape: StepShape, dialect: Dialect) -> None:
        self.driver, self.shape, self.d = driver, shape, dialect

    @property
    def texts(self) -> dict[str, list[Phase]]:
        return {self.text: self.phases}

    @cached_property
    def text(self) -> str:
        shape, d = self.shape, self.d
        writer = GroupWriter(shape.pitch, dialect=d) if shape.wide else Writer(shape.pitch, shape.scratch)
        functions = self.driver.program.without_stages()
        return "\n".join([
            f"// the step of {shape.layout.count} parameters in {d.name}",
            d.prologue,
            "#pragma OPENCL FP_CONTRACT OFF  // the bits of the same steps on the host",
            *(line for f in functions for line in function_lines(f, d.memory, writer)),
            *(line for phase in self.phases for line in phase.text(d)),
        ])  # fmt: skip

    @property
    def phases(self) -> list[Phase]:
        scores = [self.begin_scores, self.correct] if self.driver.weighted else []
        return [self.begin, self.advance, *scores]

    @cached_property
    def begin(self) -> Phase:
        """Begin the record of a fit, with what was counted while its events were drawn; count anew next time."""
        shape, layout = self.shape, self.shape.layout
        reports = [
            line
            for n in range(layout.parts)
            for k, field in enumerate(("above", "abandoned"))
            for line in (
                f"{shape.number(layout.record.first(field) + n)} = report{n}[2 * index + {k}];",
                f"report{n}[2 * index + {k}] = 0;",
            )
        ]
        return Phase(
            name="begin",
            runs=shape.runs,
            begins=True,
            arguments=[
                RECORDS, ROWS, "{m}const double *first_record", "{m}int *running",
                *(f"{{m}}int *report{n}" for n in range(layout.parts)),
            ],
            lines=[
                record_line(shape, self.d),
                "const int row = rows[index];",
                shape.each(0, shape.record_size, f"fit[k * {shape.pitch}] = first_record[row * {layout.size} + k];"),
                *shape.wait(self.d),
                *shape.once(self.d, *reports, "running[index] = 1;"),
                *self.call("begin_fit"),
            ],
        )  # fmt: skip

    @cached_property
    def advance(self) -> Phase:
        """Take a step from what was summed at the trial point; leave the result of a fit that has ended."""
        shape, record = self.shape, self.shape.layout.record
        return Phase(
            name="advance",
            runs=shape.runs,
            arguments=[RECORDS, "{m}double *results", "const int width"],
            lines=[
                record_line(shape, self.d),
                *self.call("advance"),
                f"if ({shape.number(record.first('running'))} != 0.0) return;",
                *shape.once(self.d, "running[index] = 0;"),
                *self.leave_lines(),
            ],
        )

    @cached_property
    def begin_scores(self) -> Phase:
        """Return to where a fit ended."""
        return Phase(
            name="begin_scores",
            runs=self.shape.runs,
            begins=True,
            arguments=[RECORDS],
            lines=[record_line(self.shape, self.d), *self.call("begin_scores")],
        )

    @cached_property
    def correct(self) -> Phase:
        """Correct the errors of a fit by its squared scores, and leave its result again."""
        return Phase(
            name="correct",
            runs=self.shape.runs,
            begins=True,
            arguments=[RECORDS, "{m}double *results", "const int width"],
            lines=[
                record_line(self.shape, self.d),
                *self.call("correct_errors"),
                *self.leave_lines(),
            ],
        )

    def call(self, function: str) -> list[str]:
        """Call a function of the driver for a toy, with room for what it has in private memory."""
        layout, first = self.shape.layout, self.shape.scratch
        if first is None:
            return [f"{PREFIX}{function}(fit);"]
        return [f"double {SCRATCH}[{layout.size - first}];", f"{PREFIX}{function}(fit, {SCRATCH});"]

    def leave_lines(self) -> list[str]:
        """Leave the result of a fit."""
        return [
            self.shape.each(0, "width", f"results[(long)index * width + k] = fit[k * {self.shape.pitch}];")
        ]
