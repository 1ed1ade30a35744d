"""Whole fits in OpenCL C: a work-group draws a toy, sums, steps, and repeats until it has converged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from morefit.kernel import Kernel, Reduce
from morefit.render.cstyle import OPENCL, Dialect, Names, body_lines, helpers, indented, number_text
from morefit.render.opencl import FINISHED, STATE, TWO_SUM, Combine, Shape, Source, words_of
from morefit.render.sample import takes_streams

SCRATCH = 2048  # doubles of shared memory for the reduction


@dataclass(frozen=True)
class FitShape:
    """What the text of a whole fit depends on besides its kernels."""

    group: int
    room: int  # events that a toy has room for
    observables: tuple[str, ...]
    derived: tuple[str, ...]
    rows: tuple[str, ...]  # of the numbers that a step reads
    kept: int
    told: int
    first_sum: int
    status: int
    places: tuple[int, ...]  # of the floating parameters among all
    most_steps: int


def render_fit(
    sampler: Kernel,
    derive: Kernel | None,
    sums: Kernel,
    step: Kernel,
    shape: FitShape,
    dialect: Dialect = OPENCL,
) -> str:
    """Write the kernel ``fit``."""
    return FitSource(sampler, derive, sums, step, shape, dialect).text()


@dataclass(frozen=True)
class FitSource:
    """Writes a whole fit: its parts are the bodies of four kernels."""

    sampler: Kernel
    derive: Kernel | None
    sums: Kernel
    step: Kernel
    shape: FitShape
    dialect: Dialect

    def text(self) -> str:
        d = self.dialect
        bodies = [k.per_event for k in (self.sampler, self.derive, self.sums, self.step) if k]
        bodies += [self.sums.per_call]
        draws = self.source(self.sampler)
        return "\n".join([
            f"// whole fit of {len(self.shape.places)} parameters in {d.name}",
            d.prologue,
            f"#define GROUP {self.shape.group}  // work items in a group, one group a toy",
            f"#define ROOM {self.shape.room}  // events that a toy has room for",
            "typedef double real;",
            "",
            *helpers(bodies),
            *draws.generator_text(),
            *TWO_SUM.splitlines(),
            "",
            *self.kernel_lines(),
        ])  # fmt: skip

    def source(self, kernel: Kernel) -> Source:
        return Source(kernel, Shape(self.shape.group), self.dialect)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.shape.observables, *self.shape.derived)

    def kernel_lines(self) -> list[str]:
        d, shape = self.dialect, self.shape
        m = d.memory
        tables = self.source(self.sampler).names
        arguments = [
            f"{m}const int *sizes, const {d.word} seed, const {d.word} first_toy",
            f"{m}double *memory, {m}const double *parameters, {m}const double *start, {m}double *results",
            *(f"{m}const double *{tables.known[t.name]}" for t in self.sampler.tables),
        ]
        words = words_of(self.sums)
        body = [
            f"const int index = {d.group}, item = {d.item}, count = sizes[index];",
            f"const {d.word} toy = first_toy + index;",
            f"{m}double *events = memory + (long)index * {len(self.columns)} * ROOM;",
            f"{d.shared}double rows[{len(shape.rows)}], scalars[{max(len(self.sums.per_call.results), 1)}];",
            f"{d.shared}double high[{max(words, 1)}], low[{max(words, 1)}], scratch[{self.chunk(words)} * GROUP];",
            f"{m}double *result = results + (long)index * {shape.told + 3};",
            f"for (int k = item; k < {len(shape.rows)}; k += GROUP) rows[k] = start[k];",
            *self.draw(),
            "int steps = 0;",
            f"for (; steps < {shape.most_steps}; steps++) {{",
            f"    {d.wait}",
            f"    if (rows[{shape.status}] != 0.0) break;",
            *indented(self.prepare()),
            f"    {d.wait}",
            *indented(self.sum_up(words)),
            "    if (item == 0) {",
            *indented(self.finish(), 2),
            *indented(self.take_step(), 2),
            "    }",
            "}",
            d.wait,
            f"for (int k = item; k < {shape.told}; k += GROUP) result[k] = rows[k];",
            f"if (item == 0) result[{shape.told}] = steps;",
        ]
        joined = ",\n".join(indented(arguments))
        return [f"{d.kernel} fit(", f"{joined})", "{", *indented(body), "}", ""]

    def chunk(self, words: int) -> int:
        return min(max(SCRATCH // self.shape.group, 1), max(words, 1))

    def draw(self) -> list[str]:
        """Draw the events, compute what depends on them alone, and report what went wrong."""
        d, names = self.dialect, self.source(self.sampler)
        count = self.sampler.outputs
        kept = [f"events[{k} * ROOM + k] = x{k};" for k in range(count)]
        found = {name: f"x{k}" for k, name in enumerate(self.shape.observables)}
        loop = ["const long event = k;", *names.draw_lines(), *kept, *self.derive_lines(found)]
        totals = [f"result[{self.shape.told + 1 + k}] = 0.0;" for k in range(2)]
        return [
            "if (item == 0) {", *indented(totals), "}",
            f"{d.shared}int report[2];",
            "if (item < 2) report[item] = 0;",
            d.wait,
            "int overs = 0, fails = 0;",
            *names.draw_loop([*loop, "overs += over;", "fails += !accepted;"]),
            *([d.wait_memory] if takes_streams(self.sampler.columns) else []),  # others read what an item drew
            f"if (overs) {d.count_up.format('&report[0]', 'overs')}",
            f"if (fails) {d.count_up.format('&report[1]', 'fails')}",
            d.wait,
            f"if (item < 2) result[{self.shape.told + 1} + item] = report[item];",
        ]  # fmt: skip

    def derive_lines(self, found: Mapping[str, str]) -> list[str]:
        """Compute the event-only columns of an event."""
        if self.derive is None:
            return []
        names = Names()
        given = [f"const double {names.add(n, 'c')} = {found[n]};" for n in self.derive.columns]
        lines = body_lines(self.derive.per_event, names, "double")
        first = len(self.shape.observables)
        kept = [
            f"events[{first + k} * ROOM + k] = {names.atom(a)};"
            for k, a in enumerate(self.derive.per_event.results)
        ]
        return ["{", *indented([*given, *lines, *kept]), "}"]

    def prepare(self) -> list[str]:
        """Compute the per-call scalars from the trial point; one item does it."""
        names, kernel = Names(), self.sums
        place = {self.shape.places[k]: k for k in range(len(self.shape.places))}
        given = [
            f"const double {names.add(name, 'p')} = {f'rows[{place[k]}]' if k in place else f'parameters[{k}]'};"
            for k, name in enumerate(kernel.parameters)
        ]
        lines = body_lines(kernel.per_call, names, "double")
        kept = [f"scalars[{k}] = {names.atom(a)};" for k, a in enumerate(kernel.per_call.results)]
        return ["if (item == 0) {", *indented([*given, *lines, *kept]), "}"]

    def sum_up(self, words: int) -> list[str]:
        """Sum over the events of the toy, then over the items, always in the same order."""
        kernel, d = self.sums, self.dialect
        source = self.source(kernel)
        names = source.names
        scalars = [f"const double {names.known[n]} = scalars[{k}];" for k, n in enumerate(kernel.scalars)]
        columns = [
            f"const double {names.known[n]} = events[{self.columns.index(n)} * ROOM + k];"
            for n in kernel.columns
        ]
        lines = body_lines(kernel.per_event, names, "double")
        updates = [
            line
            for k, (result, atom) in enumerate(zip(kernel.results, kernel.per_event.results, strict=False))
            for line in source.update(k, result.reduce, names.atom(atom))
        ]
        flush = [line for k, r in enumerate(kernel.results) for line in flush_lines(k, r.reduce)]
        state = [line for k, r in enumerate(kernel.results) for line in STATE[r.reduce](k)]
        logs = [k for k, r in enumerate(kernel.results) if r.reduce is Reduce.LOG]
        carried = [f"double logs{k} = 0.0;" for k in logs]
        often = ["if ((++taken & 255) == 0) {", *indented(flush), "}"] if logs else []
        return [
            *scalars, *state, *carried, *(["int taken = 0;"] if logs else []),
            "for (int k = item; k < count; k += GROUP) {", *indented([*columns, *lines, *updates, *often]), "}",
            *self.reduce(words),
            d.wait,
        ]  # fmt: skip

    def reduce(self, words: int) -> list[str]:
        """Add the words of all items in a tree, as many at a time as there is room for."""
        kernel, d = self.sums, self.dialect
        finished = [
            w
            for k, r in enumerate(kernel.results)
            for w in ([f"logs{k} + log(product{k})", *FINISHED[r.reduce](k)[1:]] if r.reduce is Reduce.LOG
                      else FINISHED[r.reduce](k))
        ]  # fmt: skip
        most = self.chunk(words)
        lines = []
        for first in range(0, len(finished), most):
            chunk = finished[first : first + most]
            lines += [f"scratch[{k} * GROUP + item] = {word};" for k, word in enumerate(chunk)]
            lines += [
                d.wait,
                "for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {",
                f"    for (int k = item; k < {len(chunk)} * half_way; k += GROUP) {{",
                f"        {d.shared}double *row = scratch + k / half_way * GROUP + k % half_way;",
                "        row[0] += row[half_way];",
                "    }",
                f"    {d.wait}",
                "}",
                f"for (int k = item; k < {len(chunk)}; k += GROUP) high[{first} + k] = scratch[k * GROUP], low[{first} + k] = 0.0;",
                d.wait,
            ]
        return lines

    def finish(self) -> list[str]:
        """Turn the words into the sums that a step reads."""
        combine = Combine(self.sums, Shape(self.shape.group), self.dialect)
        lines = [
            line.replace("row[", f"rows[{self.shape.first_sum} + ")
            .replace("stops[set * bounds_step] - starts[set * bounds_step]", "count")
            .replace(f"scalars[set * {len(self.sums.per_call.results)} + ", "scalars[")
            for line in combine.outputs()
        ]
        return ["{", *indented(lines), "}"]

    def take_step(self) -> list[str]:
        """Take a Newton step on the rows."""
        names = Names()
        given = [
            f"const double {names.add(name, 'r')} = rows[{self.shape.rows.index(name)}];"
            for name in self.step.columns
        ]
        lines = body_lines(self.step.per_event, names, "double")
        kept = [f"rows[{k}] = {names.atom(a)};" for k, a in enumerate(self.step.per_event.results)]
        return ["{", *indented([*given, *lines, *kept]), "}"]


def flush_lines(k: int, reduce: Reduce) -> list[str]:
    """Take the logarithm of a product before it overflows."""
    if reduce is not Reduce.LOG:
        return []
    return [f"logs{k} += log(product{k});", f"product{k} = {number_text(1.0)};"]
