"""Whole fits in OpenCL C: draw a toy, sum, step, and repeat until it has converged, all on the device.

Small toys have a work-group each, which does everything in one launch, with the events in its shared memory if they fit.
The events of a large toy are shared by many groups: ``draw`` once, then ``sums`` and ``advance`` (one group per toy) as often
as needed; a toy that has converged does nothing any more. The numbers that a model is drawn with are arguments, so that one text serves many true values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from morefit.kernel import Kernel
from morefit.kernel.fit_layout import FitLayout
from morefit.targets.opencl.dialect import OPENCL, Dialect, Names, body_lines, indented
from morefit.targets.opencl.functions import helpers
from morefit.targets.opencl.lift import Lifted
from morefit.targets.opencl.sample import STREAMS_BEFORE
from morefit.targets.opencl.source import KernelSource
from morefit.targets.opencl.sums import (
    FINISHED,
    Combine,
    GroupSum,
    output_lines,
    scratch_line,
    state_lines,
    sum_functions,
    tree_lines,
    update_lines,
    words_of,
)


class Home(Enum):
    """Where the events of a toy are, which decides the work-groups that process them."""

    LOCAL = "in the shared memory of its group"
    GLOBAL = "in the memory of the device, for one group"
    SPREAD = "in the memory of the device, for many groups"


@dataclass(frozen=True, kw_only=True)
class FitShape:
    """What the text of a whole fit depends on besides its kernels."""

    group: int
    home: Home
    observables: tuple[str, ...]
    derived: tuple[str, ...]
    layout: FitLayout
    floating: tuple[int, ...]  # indices of the floating parameters among all
    max_steps: int


def fit_functions(shape: FitShape) -> tuple[str, ...]:
    """Return the names of the functions in a text."""
    return ("draw", "sums", "advance") if shape.home is Home.SPREAD else ("fit",)


@dataclass(frozen=True)
class FitSource:
    """Writes a whole fit: its parts are the bodies of four kernels. Without a sampler the events are arguments."""

    sampler: Lifted | None
    derive: Kernel | None
    sums: Kernel
    step: Kernel
    shape: FitShape
    dialect: Dialect = OPENCL

    def text(self) -> str:
        d = self.dialect
        drawing = self.sampling.drawing if self.sampling else None
        kernels = (self.sampler.kernel if self.sampler else None, self.derive, self.sums, self.step)
        bodies = [k.per_event for k in kernels if k]
        bodies += [self.sums.per_call]
        return "\n".join([
            f"// whole fit of {len(self.shape.floating)} parameters in {d.name}",
            d.prologue,
            f"#define GROUP {self.shape.group}  // work items in a group",
            "typedef double real;",
            *(drawing.number_type() if drawing else []),
            "// a block of the events of a toy; its place is where its partial sums go",
            "typedef struct { long begin, event; int set, count, place, unused; } block_of_events;",
            "",
            *helpers(bodies),
            *(drawing.generator_text() if drawing else []),
            *sum_functions(self.sums, d),
            *(self.large_fit() if self.shape.home is Home.SPREAD else self.small_fit()),
        ])  # fmt: skip

    def source(self, kernel: Kernel, tables: str = "t", numbers: int = 0) -> KernelSource:
        return KernelSource(kernel, self.shape.group, self.dialect, tables, numbers)

    @property
    def sampling(self) -> KernelSource | None:
        """What writes the lines that draw, if events are drawn."""
        return self.source(self.sampler.kernel, numbers=len(self.sampler.numbers)) if self.sampler else None

    @property
    def group_sum(self) -> GroupSum:
        return GroupSum(self.sums, self.shape.group, self.dialect)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.shape.observables, *self.shape.derived)

    def function(self, name: str, arguments: list[str], lines: list[str]) -> list[str]:
        joined = ",\n".join(indented(arguments))
        return [f"{self.dialect.kernel} {name}(", f"{joined})", "{", *indented(lines), "}", ""]

    # arguments of functions

    def draw_arguments(self) -> list[str]:
        m, d, source = self.dialect.memory, self.dialect, self.sampling
        if source is None:
            columns = [f"{m}const double *given{k}" for k in range(len(self.shape.observables))]
            return [f"{m}const long *starts", *columns]
        others = (*source.drawing.number_arguments(), *source.table_arguments())
        return [f"const {d.word} seed, const {d.word} first_toy, {m}const int *toys", *others]

    def sum_arguments(self) -> list[str]:
        return [
            f"{self.dialect.memory}const double *parameters",
            *self.source(self.sums, "u").table_arguments(),
        ]

    # one work-group per toy

    def small_fit(self) -> list[str]:
        """Draw, sum and step in one launch; the rows of a toy are in shared memory."""
        d, shape, layout = self.dialect, self.shape, self.shape.layout
        m, local = d.memory, shape.home is Home.LOCAL
        arguments = [
            f"{m}const int *sizes, {f'{d.shared}double *events' if local else f'{m}double *memory'}, const int room",
            f"{m}const double *start, {m}double *results",
            *self.draw_arguments(),
            *self.sum_arguments(),
        ]
        body = [
            f"const int index = {d.group}, item = {d.item}, count = sizes[index];",
            *self.toy_line(),
            *([] if local else [f"{m}double *events = memory + (long)index * {len(self.columns)} * room;"]),
            f"{d.shared}double rows[{len(layout.rows)}];",
            *self.group_sum.room(),
            f"{m}double *result = results + (long)index * {layout.width};",
            f"for (int k = item; k < {len(layout.rows)}; k += GROUP) rows[k] = start[k];",
            f"{d.shared}int report[2];",
            "if (item < 2) report[item] = 0;",
            d.wait,
            *self.draw_loop("k", ("&report[0]", "&report[1]")),
            d.wait,
            f"if (item < 2) result[{layout.above} + item] = report[item];",
            "int steps = 0;",
            f"for (; steps < {shape.max_steps} && rows[{layout.status}] == 0.0; steps++) {{",
            *indented(self.group_sum.prepare(self.parameter("rows"))),
            *indented(self.group_sum.sum_up(self.source(self.sums, "u").names, self.load_lines())),
            "    if (item == 0) {",
            *indented(self.finish("rows", "scalars[{}]"), 2),
            *indented(self.take_step("rows"), 2),
            "    }",
            f"    {d.wait}",
            "}",
            f"for (int k = item; k < {len(layout.result)}; k += GROUP) result[k] = rows[{layout.first_result} + k];",
            f"if (item == 0) result[{layout.steps}] = steps;",
        ]
        return self.function("fit", arguments, body)

    # many work-groups per toy

    def large_fit(self) -> list[str]:
        """Draw, sum and step in one launch per stage; the rows of a toy are in the memory of the device."""
        return [*self.large_draw(), *self.large_sums(), *self.large_step()]

    @property
    def large_arguments(self) -> list[str]:
        m = self.dialect.memory
        return [
            f"{m}const block_of_events *blocks, {m}double *memory, const long room, {m}double *all_rows",
        ]

    def large_head(self, skip: bool) -> list[str]:
        d, layout = self.dialect, self.shape.layout
        leave = [f"if (rows[{layout.status}] != 0.0) return;"] if skip else []
        return [
            f"const block_of_events block = blocks[{d.group}];",
            f"const int item = {d.item}, index = block.set, count = block.count;",
            f"{d.memory}double *events = memory + block.begin, *rows = all_rows + (long)index * {len(layout.rows)};",
            *leave,
        ]

    def large_draw(self) -> list[str]:
        d, layout = self.dialect, self.shape.layout
        m = d.memory
        body = [
            *self.large_head(skip=False),
            *self.toy_line(),
            "if (block.event == 0) {",
            f"    for (int k = item; k < {len(layout.rows)}; k += GROUP) rows[k] = start[k];",
            f"    if (item == 0) results[(long)index * {layout.width} + {layout.steps}] = 0.0;",
            "}",
            *self.draw_loop(
                "block.event + k", ("report + 2 * index", "report + 2 * index + 1"), STREAMS_BEFORE
            ),
        ]
        own = [f"{m}const double *start, {m}double *results, {m}int *report"]
        return self.function("draw", [*self.large_arguments, *own, *self.draw_arguments()], body)

    def large_sums(self) -> list[str]:
        kernel, d, group = self.sums, self.dialect, self.shape.group
        names = self.source(kernel, "u").names
        words = [w for k, r in enumerate(kernel.sums.results) for w in FINISHED[r.reduce](k)]
        inside = [
            *self.load_lines(), *body_lines(kernel.per_event, names, "real"), *update_lines(kernel, names, d),
        ]  # fmt: skip
        body = [
            *self.large_head(skip=True),
            f"{d.shared}double scalars[{max(len(kernel.per_call.results), 1)}];",
            scratch_line(len(words), group, d),
            f"{d.memory}double *partial = partials + (long)block.place * {words_of(kernel)};",
            *self.group_sum.prepare(self.parameter("rows")),
            *(f"const real {names.known[n]} = scalars[{k}];" for k, n in enumerate(kernel.scalars)),
            *state_lines(kernel),
            "for (int k = item; k < count; k += GROUP) {", *indented(inside), "}",
            *tree_lines(words, group, "partial[{place}] = scratch[k * GROUP];", d),
        ]  # fmt: skip
        arguments = [*self.large_arguments, f"{d.memory}double *partials", *self.sum_arguments()]
        return self.function("sums", arguments, body)

    def large_step(self) -> list[str]:
        """Add the blocks of a toy in their order, with compensation, and take a step."""
        d, m, layout = self.dialect, self.dialect.memory, self.shape.layout
        words, added = max(words_of(self.sums), 1), (*self.sums.sums.per_set, *self.sums.sums.per_count)
        arguments = [
            f"{m}const int *first_task, {m}const int *sizes, {m}double *all_rows, {m}double *results",
            f"{m}const int *report, {m}const double *partials",
            *self.sum_arguments(),
        ]
        body = [
            f"const int set = {d.group}, item = {d.item}, count = sizes[set];",
            f"{m}double *all = all_rows + (long)set * {len(layout.rows)};",
            f"{m}double *result = results + (long)set * {layout.width};",
            f"if (all[{layout.status}] != 0.0) return;",
            f"{d.shared}double rows[{len(layout.rows)}], high[{words}], low[{words}];",
            f"{d.shared}double scalars[{max(len(self.sums.per_call.results), 1)}];",
            f"for (int k = item; k < {len(layout.rows)}; k += GROUP) rows[k] = all[k];",
            *Combine(self.sums, self.shape.group, d).add_blocks(words),
            d.wait,
            *(self.group_sum.prepare(self.parameter("rows")) if added else []),
            "if (item == 0) {",
            *indented(self.finish("rows", "scalars[{}]", low=True)),
            *indented(self.take_step("rows")),
            "}",
            d.wait,
            f"for (int k = item; k < {len(layout.rows)}; k += GROUP) all[k] = rows[k];",
            f"for (int k = item; k < {len(layout.result)}; k += GROUP) result[k] = rows[{layout.first_result} + k];",
            f"if (item == 0) result[{layout.steps}] += 1.0;",
            f"if (item < 2) result[{layout.above} + item] = report[2 * set + item];",
        ]
        return self.function("advance", arguments, body)

    # parts of both

    def toy_line(self) -> list[str]:
        return [f"const {self.dialect.word} toy = first_toy + toys[index];"] if self.sampler else []

    def parameter(self, rows: str) -> Callable[[int], str]:
        """Return where the value of a parameter is: in the trial point, or among those that are fixed."""
        row = {parameter: k for k, parameter in enumerate(self.shape.floating)}
        return lambda k: f"{rows}[{row[k]}]" if k in row else f"parameters[{k}]"

    @property
    def load(self) -> Mapping[str, str]:
        """Return where each column of event k of a group is."""
        return {name: f"events[{place} * room + k]" for place, name in enumerate(self.columns)}

    def load_lines(self) -> list[str]:
        known = self.source(self.sums, "u").names.known
        return [f"const double {known[n]} = {self.load[n]};" for n in self.sums.columns]

    def draw_loop(self, event: str, report: tuple[str, str], streams_before: str = "0") -> list[str]:
        """Draw the events or copy those there are, compute what depends on them alone, and report failures."""
        observables, load = self.shape.observables, self.load
        stores = [f"{load[name]} = x{k};" for k, name in enumerate(observables)]
        if self.sampling is None:
            taken = [
                f"const double x{k} = given{k}[starts[index] + {event}];" for k in range(len(observables))
            ]
            inside = [*taken, *stores, *self.derive_lines(load)]
            return ["for (int k = item; k < count; k += GROUP) {", *indented(inside), "}"]
        # others may read what an item drew
        wait = self.dialect.wait if self.shape.home is Home.LOCAL else self.dialect.wait_memory
        drawing = self.sampling.drawing
        lines = drawing.lines(event, [*stores, *self.derive_lines(load)], report, streams_before)
        return [*lines, wait] if drawing.moves else lines

    def derive_lines(self, load: Mapping[str, str]) -> list[str]:
        """Compute the event-only columns of an event."""
        if self.derive is None:
            return []
        names, place = Names(), self.shape.observables.index
        reads = [f"const double {names.add(n, 'c')} = x{place(n)};" for n in self.derive.columns]
        lines = body_lines(self.derive.per_event, names, "double")
        pairs = zip(self.shape.derived, self.derive.per_event.results, strict=True)
        stores = [f"{load[name]} = {names.atom(a)};" for name, a in pairs]
        return ["{", *indented([*reads, *lines, *stores]), "}"]

    def finish(self, rows: str, scalar: str, *, low: bool = False) -> list[str]:
        """Turn the words into the sums that a step reads."""
        row = f"{rows}[{self.shape.layout.first_sum} + {{}}]"
        return ["{", *indented(output_lines(self.sums, row, scalar, "count", low=low)), "}"]

    def take_step(self, rows: str) -> list[str]:
        """Take a Newton step on the rows."""
        names = Names()
        reads = [
            f"const double {names.add(name, 'r')} = {rows}[{self.shape.layout.rows.index(name)}];"
            for name in self.step.columns
        ]
        lines = body_lines(self.step.per_event, names, "double")
        stores = [f"{rows}[{k}] = {names.atom(a)};" for k, a in enumerate(self.step.per_event.results)]
        return ["{", *indented([*reads, *lines, *stores]), "}"]
