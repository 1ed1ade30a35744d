"""Models of counts in whole fits: the phases that draw the counts of a toy and sum over its bins, a work item per toy.

A point (parameters, measured values, counts) belongs to a toy for a whole fit, and what is computed on the way to a work item for one
phase. Both lie side by side for the items of a tile, which read and write the same places at the same time.
"""

from __future__ import annotations

from functools import cache

from morefit.kernel.counts_program import sum_at_point
from morefit.kernel.ir import Kernel
from morefit.kernel.read_program import read_program
from morefit.targets.opencl.dialect import Dialect, indented
from morefit.targets.opencl.fit_shape import (
    RECORDS,
    ROWS,
    TILE,
    CountsShape,
    FitShape,
    Phase,
    Runs,
    record_line,
)
from morefit.targets.opencl.program import PREFIX, TileWriter, function_lines
from morefit.targets.opencl.rows import draw_arguments, draw_lines

SHARED = frozenset({"numbers"})  # the arrays of the program that all toys read


@cache
def counts_functions(d: Dialect) -> list[str]:
    """Write the program that sums over bins, for items whose numbers lie side by side; whole fits eliminate nothing."""
    functions = read_program(sum_at_point, {}).functions
    return [line for f in functions for line in function_lines(f, d.memory, TileWriter(TILE, shared=SHARED))]


class CountsText:
    """Writes what a part that is a model of counts adds to whole fits; its sizes are arguments."""

    def __init__(self, shape: FitShape, number: int, part: CountsShape, d: Dialect) -> None:
        self.shape, self.number, self.part, self.d = shape, number, part, d

    @property
    def kernels(self) -> list[Kernel]:
        """No kernels: the program is the same for all models."""
        return []

    def place(self, name: str, owner: str) -> str:
        """Find the numbers of a toy or of a work item among those of its tile."""
        n, m = self.number, self.d.memory
        begin = f"{name}s{n} + (long)({owner} / {TILE}) * {TILE} * {name}_size{n} + {owner} % {TILE}"
        return f"{m}double *{name} = {begin};"

    def draw(self) -> Phase:
        """Draw the counts or copy those there are, and take over parameters and what constraints measured."""
        n, m, d, drawn = self.number, "{m}", self.d, self.part.rows is not None
        count, first = f"bins{n}", f"parameter_count{n}"
        if drawn:
            own, source = draw_arguments(n, d), f"events{n} + (long)index * {count}"
            fill = draw_lines(n, d, source, count)
        else:
            own, fill = [ROWS, f"{m}const long *starts{n}", f"{m}const double *given{n}_0"], []
            source = f"given{n}_0 + starts{n}[index]"
        return Phase(
            name=f"draw{n}",
            runs=Runs.ITEMS,
            begins=True,
            arguments=[
                *own, *([f"{m}double *events{n}"] if drawn else []), f"const int {count}", f"const int {first}",
                f"{m}const double *parameters{n}", f"{m}const double *measured{n}",
                f"const int measured_first{n}", f"const int measured_count{n}",
                f"{m}double *points{n}", f"const int point_size{n}",
            ],
            lines=[
                "const int row = rows[index];",
                self.place("point", "index"),
                *fill,
                f"{d.memory}const double *counts = {source};",
                f"for (int k = 0; k < {first}; k++) point[k * {TILE}] = parameters{n}[row * {first} + k];",
                f"for (int k = 0; k < measured_count{n}; k++)",
                f"    point[(measured_first{n} + k) * {TILE}] = measured{n}[(long)index * measured_count{n} + k];",
                f"for (int k = 0; k < {count}; k++) point[({first} + k) * {TILE}] = counts[k];",
            ],
        )  # fmt: skip

    @property
    def step_phases(self) -> list[Phase]:
        """Sum over the bins at the trial point."""
        n, m, shape = self.number, "{m}", self.shape
        trial = shape.layout.record.first("trial")
        return [
            Phase(
                name=f"sums{n}",
                runs=Runs.ITEMS,
                arguments=[
                    RECORDS, f"{m}const int *counts_words{n}", f"{m}double *counts_numbers{n}",
                    f"{m}const int *floating{n}", f"const int floating_count{n}",
                    *(f"{m}double *{name}s{n}" for name in ("point", "work", "output")),
                    *(f"const int {name}_size{n}" for name in ("point", "work", "output")),
                ],
                lines=[
                    record_line(shape, self.d),
                    f"const int slot = {self.d.place};",
                    self.place("point", "index"), self.place("work", "slot"), self.place("output", "index"),
                    f"for (int k = 0; k < floating_count{n}; k++) {{",
                    f"    const int goal = floating{n}[2 * k], source = floating{n}[2 * k + 1];",
                    f"    if (source >= 0) point[goal * {TILE}] = fit[({trial} + source) * {shape.pitch}];",
                    "}",
                    f"{PREFIX}sum_at_point(counts_words{n}, counts_numbers{n}, point, work, output);",
                ],
            )
        ]  # fmt: skip

    def add_arguments(self) -> list[str]:
        n, m = self.number, "{m}"
        return [f"{m}double *outputs{n}", f"const int output_size{n}", f"{m}const int *goals{n}"]

    def place_tables(self) -> list[str]:
        return []

    def add_lines(self) -> list[str]:
        """Add the outputs to the sums of the fit; log likelihoods come in, the last output counts what is bad."""
        n, shape = self.number, self.shape
        bad = shape.number(shape.layout.record.first("bad"))
        last = f"output_size{n} - 1"
        lines = [
            self.place("output", "index"),
            shape.each(
                0, last, f"if (goals{n}[k] >= 0) fit[goals{n}[k] * {shape.pitch}] -= output[k * {TILE}];"
            ),
            *shape.wait(self.d),
            *shape.once(self.d, f"{bad} += output[({last}) * {TILE}];"),
        ]
        return ["{", *indented(lines), "}"]
