"""Whole fits in OpenCL C: the program that is common to all targets, with the stages of this one written into it.

Small toys have a work-group each, which does everything in one launch, with the events in its shared memory if they
fit. The events of a large toy are shared by many groups: ``draw`` once, then ``sums`` and ``advance`` (one group per toy)
as often as needed; a toy that has converged does nothing any more. The numbers that a model is drawn with are arguments,
so that one text serves many true values.
"""

from __future__ import annotations

from collections.abc import Sequence

from morefit.kernel.program import Program
from morefit.kernel.read_program import read_program
from morefit.kernel.resolved import is_unresolved
from morefit.targets.opencl.dialect import OPENCL, Dialect, body_lines, indented
from morefit.targets.opencl.fit_part import PartText
from morefit.targets.opencl.fit_shape import FitShape, Home, record_is_local
from morefit.targets.opencl.functions import helpers
from morefit.targets.opencl.program import PREFIX, function_lines, group_lines
from morefit.targets.opencl.sample import STREAMS_BEFORE
from morefit.targets.opencl.source import TASK
from morefit.targets.opencl.sums import (
    FINISHED,
    Combine,
    plain_loop,
    scratch_line,
    state_lines,
    sum_functions,
    tree_lines,
    update_lines,
    words_of,
)


class FitSource:
    """Writes a whole fit."""

    def __init__(self, program: Program, shape: FitShape, dialect: Dialect = OPENCL) -> None:
        self.program, self.shape, self.d = program, shape, dialect
        self.parts = [PartText(shape, k, dialect) for k in range(len(shape.parts))]
        self.local = record_is_local(shape.layout) and shape.home is not Home.SPREAD

    @property
    def record_memory(self) -> str:
        return self.d.shared if self.local else self.d.memory

    @property
    def wait(self) -> str:
        """Wait until all of the group see the record of the fit."""
        return self.d.wait if self.local else self.d.wait_memory

    def text(self) -> str:
        d = self.d
        kernels = [kernel for part in self.parts for kernel in part.kernels]
        bodies = [b for k in kernels for b in (k.per_event, k.per_call)]
        return "\n".join([
            f"// whole fit of {self.shape.layout.count} parameters in {d.name}",
            d.prologue,
            f"#define GROUP {self.shape.group}  // work items in a group",
            "typedef double real;",
            *(line for p in self.parts if p.sampling for line in p.sampling.drawing.number_type()),
            *TASK.splitlines(),
            "",
            *(line for part in self.parts for line in part.place_table()),
            *helpers(bodies),
            *self.generators(),
            *self.sum_functions(),
            *self.program_functions(),
            *(self.large_fit() if self.shape.home is Home.SPREAD else self.small_fit()),
        ])  # fmt: skip

    def generators(self) -> list[str]:
        """Return the functions that draw random numbers, each once."""
        texts = [tuple(p.sampling.drawing.generator_text()) for p in self.parts if p.sampling]
        return [line for text in dict.fromkeys(texts) for line in text]

    def sum_functions(self) -> list[str]:
        """Return the functions that sums need, each once."""
        kernels = [
            kernel for p in self.parts for kernel in (p.part.sums, *(i.kernel for i in p.part.integrals))
        ]
        most = max((sum_functions(kernel, self.d) for kernel in kernels), key=len)
        return list(most)

    def program_functions(self) -> list[str]:
        """Return the functions of the program that one item runs."""
        lines = [
            line for f in self.program.without_stages() for line in function_lines(f, self.record_memory)
        ]
        if any(p.part.integrals for p in self.parts):
            m = self.d.memory
            for f in read_program(is_unresolved, {}).functions:
                lines += function_lines(f, self.d.shared, {"limits": m, "edges": m})
        return lines

    def function(self, name: str, arguments: list[str], lines: list[str]) -> list[str]:
        joined = ",\n".join(indented(arguments))
        return [f"{self.d.kernel} {name}(", f"{joined})", "{", *indented(lines), "}", ""]

    def shared_room(self) -> list[str]:
        """Declare the shared memory of all stages."""
        d = self.d
        scalars, high = (max(getattr(p, name) for p in self.parts) for name in ("scalars", "words"))
        checks, bodies = (max(getattr(p, name) for p in self.parts) for name in ("checks", "bodies"))
        lines = [
            f"{d.shared}double scalars[{max(scalars, 1)}], high[{high}];",
            f"{d.shared}double scratch[{max(p.scratch for p in self.parts)}];",
        ]
        if any(p.part.integrals for p in self.parts):
            lines.append(f"{d.shared}double integrals[{bodies}], check[{checks}];")
        return lines

    # one work-group per toy

    def small_fit(self) -> list[str]:
        """Draw, sum and step in one launch."""
        d, layout = self.d, self.shape.layout
        m, local, count = d.memory, self.shape.home is Home.LOCAL, len(self.parts)
        arguments = [
            f"{m}const int *toys, {m}const int *sizes, {f'{d.shared}double *memory' if local else f'{m}double *all_memory'}",
            f"const long all_room, {m}const long *rooms",
            f"{m}const double *first_record, {m}double *results, const int width",
            *([] if self.local else [f"{m}double *records"]),
            *(a for p in self.parts for a in (*p.draw_arguments(), *p.sum_arguments())),
        ]
        size = layout.size
        drawing = next(
            (p.sampling.drawing for p in self.parts if p.sampling and p.sampling.drawing.rounds), None
        )
        body = [
            f"const int index = {d.group}, item = {d.item};",
            f"{d.shared}double fit[{size}];"
            if self.local
            else f"{m}double *fit = records + (long)index * {size};",
            *([] if local else [f"{m}double *memory = all_memory + index * all_room;"]),
            *self.shared_room(),
            f"{d.shared}int report[{2 * count}];",
            *(drawing.room() if drawing else []),
            f"for (int k = item; k < {size}; k += GROUP) fit[k] = first_record[k];",
            f"for (int k = item; k < {2 * count}; k += GROUP) report[k] = 0;",
            self.wait,
            *group_lines(self.program, self.program.main.body, self.stages(), self.wait),
            f"{m}double *result = results + (long)index * width;",
            "for (int k = item; k < width; k += GROUP) result[k] = fit[k];",
        ]
        return self.function("fit", arguments, body)

    def stages(self) -> dict[str, list[str]]:
        return {"draw": self.draw_stage(), "sums": self.sum_stage()}

    def part_scope(self, k: int, lines: Sequence[str]) -> list[str]:
        """Write lines in which the events are those of one part."""
        space = self.d.shared if self.shape.home is Home.LOCAL else self.d.memory
        head = [
            f"const int count = sizes[index * {len(self.parts)} + {k}];",
            f"const long room = rooms[{2 * k}];",
            f"{space}double *events = memory + rooms[{2 * k + 1}];",
        ]
        return ["{", *indented([*head, *lines]), "}"]

    def draw_stage(self) -> list[str]:
        lines = []
        for k, part in enumerate(self.parts):
            report = (f"&report[{2 * k}]", f"&report[{2 * k + 1}]")
            lines += [*self.part_scope(k, part.draw_lines("k", report)), self.d.wait_memory]
        above, given_up = (self.shape.layout.record.first(name) for name in ("above", "given_up"))
        return [
            *lines,
            f"for (int k = item; k < {len(self.parts)}; k += GROUP) {{",
            f"    fit[{above} + k] = report[2 * k];",
            f"    fit[{given_up} + k] = report[2 * k + 1];",
            "}",
            self.wait,
        ]

    def sum_stage(self) -> list[str]:
        lines = self.clear_lines()
        for k, part in enumerate(self.parts):
            lines += self.part_scope(k, part.sum_lines(self.wait))
        return lines

    def clear_lines(self) -> list[str]:
        """Set the sums to zero."""
        record = self.shape.layout.record
        first, last = record.first("new_value"), record.first("bad")
        return [f"for (int k = {first} + item; k <= {last}; k += GROUP) fit[k] = 0.0;", self.wait]

    # many work-groups per toy, for a likelihood of one part without numerical integrals

    def large_fit(self) -> list[str]:
        """Draw, sum and step in one launch per stage; the record of a toy is in the memory of the device."""
        return [*self.large_draw(), *self.large_sums(), *self.large_step()]

    @property
    def large_arguments(self) -> list[str]:
        m = self.d.memory
        return [
            f"{m}const int *toys, {m}const block_of_events *blocks, {m}double *memory, const long room",
            f"{m}double *records",
        ]

    def large_head(self, skip: bool) -> list[str]:
        d, layout = self.d, self.shape.layout
        leave = [f"if (fit[{layout.record.first('running')}] == 0.0) return;"] if skip else []
        return [
            f"const block_of_events block = blocks[{d.group}];",
            f"const int item = {d.item}, index = block.set, count = block.count;",
            f"{d.memory}double *events = memory + block.begin, *fit = records + (long)index * {layout.size};",
            *leave,
        ]

    def large_draw(self) -> list[str]:
        (part,) = self.parts
        m, drawing = self.d.memory, part.sampling.drawing if part.sampling else None
        own = [f"{m}int *report, {m}const double *first_record"]
        report = ("report + 2 * index", "report + 2 * index + 1")
        body = [
            *self.large_head(skip=False),
            *(drawing.room() if drawing and drawing.rounds else []),
            "if (block.event == 0) {",
            f"    for (int k = item; k < {self.shape.layout.size}; k += GROUP) fit[k] = first_record[k];",
            f"    {self.d.wait_memory}",
            f"    if (item == 0) {PREFIX}begin_fit(fit);",
            "}",
            *part.draw_lines("block.event + k", report, STREAMS_BEFORE),
        ]
        return self.function("draw", [*self.large_arguments, *own, *part.draw_arguments()], body)

    def large_sums(self) -> list[str]:
        (part,) = self.parts
        kernel, d, group = part.part.sums, self.d, self.shape.group
        names, pairs = part.source.names, part.pairs
        words = [w for k, r in enumerate(kernel.sums.results) for w in FINISHED[r.reduce](k)]
        inside = [
            *part.load_lines(), *body_lines(kernel.per_event, names, "real"), *update_lines(kernel, names, d),
        ]  # fmt: skip
        body = [
            *self.large_head(skip=True),
            f"{d.shared}double scalars[{part.group_sum.scalars}];",
            scratch_line(len(words), group, d),
            *([f"{d.shared}double factors[{pairs.room}];", *pairs.begin()] if pairs else []),
            f"{d.memory}double *partial = partials + (long)block.place * {words_of(kernel)};",
            *part.prepare_lines(),
            *(f"const real {names.known[n]} = scalars[{k}];" for k, n in enumerate(kernel.scalars)),
            *state_lines(kernel),
            *(pairs.loop(inside, names) if pairs else plain_loop(inside)),
            *tree_lines(words, group, "partial[{place}] = scratch[k * GROUP];", d),
            *(pairs.leave(f"partial + {len(words)}") if pairs else []),
        ]  # fmt: skip
        arguments = [*self.large_arguments, f"{d.memory}double *partials", *part.sum_arguments()]
        return self.function("sums", arguments, body)

    def large_step(self) -> list[str]:
        """Add the blocks of a toy in their order, with compensation, and take a step."""
        (part,) = self.parts
        d, m, layout, kernel = self.d, self.d.memory, self.shape.layout, part.part.sums
        words = max(words_of(kernel), 1)
        arguments = [
            f"{m}const int *first_task, {m}const int *sizes, {m}double *records, {m}double *results, const int width",
            f"{m}const int *report, {m}const double *partials, {m}double *totals",
            *part.sum_arguments(),
        ]
        report = [layout.record.first(name) for name in ("above", "given_up")]
        body = [
            f"const int set = {d.group}, index = set, item = {d.item}, count = sizes[set];",
            f"{m}double *fit = records + (long)set * {layout.size};",
            f"{m}double *result = results + (long)set * width;",
            f"if (fit[{layout.record.first('running')}] == 0.0) return;",
            f"{m}double *high = totals + (long)set * {2 * words}, *low = high + {words};",
            f"{d.shared}double scalars[{part.group_sum.scalars}];",
            *self.clear_lines(),
            *Combine(kernel, self.shape.group, d).add_blocks(words),
            d.wait_memory,
            *part.prepare_lines(),
            "if (item == 0) {",
            *indented(part.add_lines(low=True)),
            "}",
            self.wait,
            *part.pair_lines("(high[{0}] + low[{0}])", self.wait),
            "if (item == 0) {",
            f"    fit[{report[0]}] = report[2 * set];",
            f"    fit[{report[1]}] = report[2 * set + 1];",
            f"    {PREFIX}advance(fit);",
            "}",
            self.wait,
            "for (int k = item; k < width; k += GROUP) result[k] = fit[k];",
        ]
        return self.function("advance", arguments, body)
