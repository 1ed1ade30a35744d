"""Whole fits in OpenCL C: the program that is common to all targets, with the stages of this one written into it.

Small toys have a work-group each, which does everything in one launch, with the events in its shared memory if they
fit. The events of a large toy are shared by many groups: ``draw`` once, then ``sums`` and ``advance`` (one group per toy)
as often as needed; a toy that has converged does nothing any more. The numbers that a model is drawn with are arguments,
so that one text serves many true values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from morefit.kernel import Kernel
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.program import Program, read_program
from morefit.kernel.resolved import is_unresolved
from morefit.targets.opencl.dialect import OPENCL, Dialect, Names, body_lines, indented, number_text
from morefit.targets.opencl.functions import helpers
from morefit.targets.opencl.lift import Lifted
from morefit.targets.opencl.pairs import PairSum
from morefit.targets.opencl.program import PREFIX, function_lines, group_lines
from morefit.targets.opencl.sample import STREAMS_BEFORE
from morefit.targets.opencl.source import TASK, KernelSource
from morefit.targets.opencl.sums import (
    FINISHED,
    Combine,
    GroupSum,
    max_words,
    outputs_of,
    pairs_of,
    plain_loop,
    scratch_line,
    state_lines,
    sum_functions,
    tree_lines,
    update_lines,
    words_of,
)

MAX_LOCAL_RECORD = 1024  # numbers: a larger record of a fit is in the memory of the device


class Home(Enum):
    """Where the events of a toy are, which decides the work-groups that process them."""

    LOCAL = "in the shared memory of its group"
    GLOBAL = "in the memory of the device, for one group"
    SPREAD = "in the memory of the device, for many groups"


@dataclass(frozen=True)
class IntegralShape:
    """Numerical integrals of a part: their kernel, and how many of everything."""

    kernel: Kernel
    bodies: int
    peaks: int
    axes: int


@dataclass(frozen=True, kw_only=True)
class PartShape:
    """What the text depends on in one part of the likelihood. Without a sampler the events are arguments."""

    sampler: Lifted | None
    derive: Kernel | None
    sums: Kernel
    observables: tuple[str, ...]
    derived: tuple[str, ...]
    parameters: int  # before the integrals
    floating: tuple[int, ...]  # indices of the floating parameters among all
    places: tuple[int, ...]  # which parameter of the fit each of those is
    measured: tuple[int, int]  # indices of what constraints measured in each toy: from, and up to
    integrals: tuple[IntegralShape, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.observables, *self.derived)


@dataclass(frozen=True, kw_only=True)
class FitShape:
    """What the text of a whole fit depends on."""

    group: int
    home: Home
    layout: FitLayout
    parts: tuple[PartShape, ...]


def fit_functions(home: Home) -> tuple[str, ...]:
    """Return the names of the functions in a text."""
    return ("draw", "sums", "advance") if home is Home.SPREAD else ("fit",)


def record_is_local(layout: FitLayout) -> bool:
    """Return whether the record of a fit is in the shared memory of its group."""
    return layout.size <= MAX_LOCAL_RECORD


class PartText:
    """Writes what one part of a likelihood adds to a whole fit."""

    def __init__(self, shape: FitShape, number: int, d: Dialect) -> None:
        self.shape, self.number, self.d = shape, number, d
        self.part = part = shape.parts[number]
        self.group_sum = GroupSum(part.sums, shape.group, d)
        self.pairs = PairSum(part.sums.pairs, shape.group, d) if part.sums.pairs else None
        self.source = KernelSource(part.sums, shape.group, d, f"u{number}_")
        self.sampling: KernelSource | None = None
        if part.sampler:
            numbers = len(part.sampler.numbers)
            self.sampling = KernelSource(
                part.sampler.kernel, shape.group, d, f"t{number}_", numbers, f"_{number}"
            )

    @property
    def kernels(self) -> list[Kernel]:
        part = self.part
        drawn = [part.sampler.kernel] if part.sampler else []
        return [
            *drawn,
            *([part.derive] if part.derive else []),
            part.sums,
            *(i.kernel for i in part.integrals),
        ]

    @property
    def words(self) -> int:
        """How many numbers ``high`` must hold."""
        return max(self.group_sum.words, *(words_of(i.kernel) for i in self.part.integrals), 1)

    @property
    def scalars(self) -> int:
        return max(
            len(k.per_call.results) for k in (self.part.sums, *(i.kernel for i in self.part.integrals))
        )

    @property
    def scratch(self) -> int:
        """How many numbers the sums over items and the products of pairs share."""
        limit = max_words(self.shape.group) * self.shape.group
        trees = min(limit, self.words * self.shape.group)
        return max(trees, self.pairs.room if self.pairs else 0)

    # arguments

    def draw_arguments(self) -> list[str]:
        m, d, n = self.d.memory, self.d, self.number
        if self.sampling is None:
            columns = [f"{m}const double *given{n}_{k}" for k in range(len(self.part.observables))]
            return [f"{m}const long *starts{n}", *columns]
        others = (*self.sampling.drawing.number_arguments(), *self.sampling.table_arguments())
        return [f"const {d.word} seed{n}, const {d.word} first_toy{n}", *others]

    def sum_arguments(self) -> list[str]:
        m, n = self.d.memory, self.number
        integrals = [
            argument
            for i, integral in enumerate(self.part.integrals)
            for argument in (
                f"const int nodes{n}_{i}, {m}double *limits{n}_{i}, {m}double *edges{n}_{i}, const int boxes{n}_{i}",
                *(f"{m}const double *node{n}_{i}_{k}" for k in range(len(integral.kernel.columns))),
            )
        ]
        return [
            f"{m}const double *parameters{n}, {m}const double *measured{n}",
            *self.source.table_arguments(),
            *integrals,
        ]

    # drawing

    @property
    def load(self) -> Mapping[str, str]:
        """Return where each column of event k of a group is."""
        return {name: f"events[{place} * room + k]" for place, name in enumerate(self.part.columns)}

    def draw_lines(self, event: str, report: tuple[str, str], streams_before: str = "0") -> list[str]:
        """Draw the events or copy those there are, compute what depends on them alone, and report failures."""
        observables, n = self.part.observables, self.number
        stores = [f"{self.load[name]} = x{k};" for k, name in enumerate(observables)]
        if self.sampling is None:
            taken = [
                f"const double x{k} = given{n}_{k}[starts{n}[index] + {event}];"
                for k in range(len(observables))
            ]
            return plain_loop([*taken, *stores, *self.derive_lines()])
        head = [f"const {self.d.word} seed = seed{n}, toy = first_toy{n} + toys[index];"]
        return [
            *head,
            *self.sampling.drawing.lines(event, [*stores, *self.derive_lines()], report, streams_before),
        ]

    def derive_lines(self) -> list[str]:
        """Compute the event-only columns of an event."""
        part = self.part
        if part.derive is None:
            return []
        names, place = Names(), part.observables.index
        reads = [f"const double {names.add(n, 'c')} = x{place(n)};" for n in part.derive.columns]
        lines = body_lines(part.derive.per_event, names, "double")
        pairs = zip(part.derived, part.derive.per_event.results, strict=True)
        stores = [f"{self.load[name]} = {names.atom(a)};" for name, a in pairs]
        return ["{", *indented([*reads, *lines, *stores]), "}"]

    # sums

    def parameter(self, k: int) -> str:
        """Return where the value of a parameter is: in the trial point, measured, an integral, or fixed."""
        part, n = self.part, self.number
        place = dict(zip(part.floating, part.places, strict=True)).get(k)
        if place is not None:
            return f"fit[{self.shape.layout.record.first('trial')} + {place}]"
        first, last = part.measured
        if first <= k < last:
            return f"measured{n}[index * {last - first} + {k - first}]"
        return f"parameters{n}[{k}]" if k < part.parameters else f"integrals[{k - part.parameters}]"

    def load_lines(self) -> list[str]:
        known = self.source.names.known
        return [f"const double {known[n]} = {self.load[n]};" for n in self.part.sums.columns]

    def integral_lines(self, wait: str) -> list[str]:
        """Compute the numerical integrals at the trial point, and check how well their boxes resolve the integrand."""
        lines, first, n = [], 0, self.number
        record = self.shape.layout.record
        for i, integral in enumerate(self.part.integrals):
            kernel, bodies = integral.kernel, integral.bodies
            group, source = (
                GroupSum(kernel, self.shape.group, self.d),
                KernelSource(kernel, self.shape.group, self.d),
            )
            known = source.names.known
            columns = [f"const double {known[c]} = node{n}_{i}_{k}[k];" for k, c in enumerate(kernel.columns)]
            outputs = outputs_of(kernel, "scalars[{}]", "count", low=False)
            check = f"check, limits{n}_{i}, edges{n}_{i}, {integral.peaks}, {integral.axes}, boxes{n}_{i}"
            outs = [
                f"{f'integrals[{first + k}]' if k < bodies else f'check[{k - bodies}]'} = {' + '.join(terms) or '0.0'};"
                for k, terms in outputs.terms.items()
                if k < kernel.outputs
            ]
            lines += [
                "{",
                *indented([
                    f"const int count = nodes{n}_{i};",
                    *group.prepare(self.parameter),
                    *group.sum_up(source.names, columns),
                    "if (item == 0) {",
                    *indented([
                        *outputs.before,
                        *outs,
                        f"if ({PREFIX}is_unresolved({check})) fit[{record.first('new_unresolved')}] += 1.0;",
                    ]),
                    "}",
                    wait,
                ]),
                "}",
            ]  # fmt: skip
            first += bodies
        return lines

    @property
    def checks(self) -> int:
        """How many numbers tell how accurate the integrals are."""
        return max((i.kernel.outputs - i.bodies for i in self.part.integrals), default=1)

    @property
    def bodies(self) -> int:
        return max(sum(i.bodies for i in self.part.integrals), 1)

    def sum_lines(self, wait: str) -> list[str]:
        """Sum over the events at the trial point, and add the sums to those of the fit."""
        pairs, names = self.pairs, self.source.names
        loop: Callable[[Sequence[str]], list[str]] | None = None
        if pairs is not None:
            products = pairs

            def loop(inside: Sequence[str]) -> list[str]:
                return products.loop(inside, names)

        begin = [f"{self.d.shared}double *factors = scratch;", *pairs.begin()] if pairs else []
        first = words_of(self.part.sums) - pairs_of(self.part.sums)
        leave = [*pairs.leave(f"high + {first}"), self.d.wait] if pairs else []
        return [
            *self.integral_lines(wait),
            *self.group_sum.prepare(self.parameter),
            *begin,
            *self.group_sum.sum_up(names, self.load_lines(), loop),
            *leave,
            "if (item == 0) {",
            *indented(self.add_lines(low=False)),
            "}",
            wait,
            *self.pair_lines("high[{0}]", wait),
        ]

    def output_places(self) -> list[int]:
        """Return where each output is added in the record of the fit."""
        record, places = self.shape.layout.record, self.part.places
        n, hessian = self.shape.layout.count, record.first("new_hessian")
        rows = [
            hessian + max(places[i], places[j]) * n + min(places[i], places[j])
            for i in range(len(places))
            for j in range(i + 1)
        ]
        slopes = [record.first("new_gradient") + place for place in places]
        return [record.first("new_value"), *slopes, *rows, record.first("bad")]

    def add_lines(self, *, low: bool) -> list[str]:
        """Add the outputs to the sums of the fit; log likelihoods come in, their negative is minimised."""
        outputs = outputs_of(self.part.sums, "scalars[{}]", "count", low=low)
        places, bad = self.output_places(), self.part.sums.outputs
        return outputs.before + [
            f"fit[{places[k]}] {'+' if k == bad else '-'}= {' + '.join(terms)};"
            for k, terms in outputs.terms.items()
            if terms
        ]

    def place_table(self) -> list[str]:
        """Return where the sums of pairs are added, as a table of the text."""
        if self.pairs is None:
            return []
        first = self.pairs.pairs.output
        places = ", ".join(str(p) for p in self.output_places()[first : first + pairs_of(self.part.sums)])
        return [f"__constant int pair_places{self.number}[] = {{{places}}};"]

    def pair_lines(self, word: str, wait: str) -> list[str]:
        """Add the sums of pairs, with the sign the kernel asks for."""
        if self.pairs is None:
            return []
        count = pairs_of(self.part.sums)
        first = words_of(self.part.sums) - count
        value = f"{number_text(self.pairs.pairs.sign)} * {word.format(f'{first} + k')}"
        return [
            f"for (int k = item; k < {count}; k += GROUP) fit[pair_places{self.number}[k]] -= {value};",
            wait,
        ]


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
            *part.group_sum.prepare(part.parameter),
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
            *part.group_sum.prepare(part.parameter),
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
