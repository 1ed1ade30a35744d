"""Kernels as OpenCL C: one work-group per block of the events of a set, its items stride through it.

The text of a kernel has a function ``prepare`` (one work-item per set) and one for its frame. ``sums`` leaves the partial
results of each block, which ``combine`` (one work-group per set) adds in a fixed order and turns into outputs. Where every set
is small, ``evaluate`` does all of that in one launch, with one work-group per set. The numbers that ``sample`` draws with may be
arguments, so that one text serves many true values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

from morefit.dataclass import dataclass
from morefit.kernel.ir import Frame, Kernel, Precision, Sample, Store, Sum
from morefit.random.xoshiro import BLOCK, STREAMS
from morefit.targets.opencl.combine import Combine
from morefit.targets.opencl.dialect import OPENCL, Dialect, Names, body_lines, indented
from morefit.targets.opencl.functions import helpers
from morefit.targets.opencl.pairs import PairSum
from morefit.targets.opencl.sample import STREAMS_BEFORE, Draw
from morefit.targets.opencl.sums import (
    SHARED_SCALARS,
    WORD_TABLE,
    GroupSum,
    int_table,
    outputs_of,
    plain_loop,
    read_scalars,
    scalar_lines,
    scratch_line,
    shares_scalars,
    state_lines,
    sum_functions,
    tree_lines,
    turns_of,
    update_lines,
    words_left,
    words_of,
)

MAX_ARGUMENTS = 64  # parameters that one launch may have as an argument


FUNCTIONS: dict[type[Frame], tuple[str, ...]] = {
    Sum: ("sums", "combine"),
    Store: ("store",),
    Sample: ("sample",),
}
TASK = """\
// a block of the events of a set: where it begins among all events and in its set, and where its results go
typedef struct { long begin, event; int set, count, place, unused; } block_of_events;
"""


def functions_of(kernel: Kernel) -> tuple[str, ...]:
    """Return the names of the functions that go through the events of sets block by block."""
    return ("prepare",) * bool(kernel.per_call.results) + FUNCTIONS[type(kernel.frame)]


def block_multiple(kernel: Kernel, group: int) -> int:
    """Return of how many events a block is a multiple: streams of random numbers begin and end with it."""
    frame = kernel.frame
    return BLOCK * max(group // STREAMS, 1) if isinstance(frame, Sample) and frame.streams else 1


def can_evaluate(kernel: Kernel) -> bool:
    """Whether one group can evaluate a set alone."""
    return isinstance(kernel.frame, Sum) and not kernel.pairs and len(kernel.parameters) <= MAX_ARGUMENTS


def render(kernel: Kernel, group: int, dialect: Dialect = OPENCL, numbers: int = 0) -> str:
    """Write a kernel as one text; ``numbers`` of its arguments are numbers to draw with."""
    (text,) = KernelSource(kernel, group, replace(dialect, cut_texts=False), numbers=numbers).texts
    return text


@dataclass(frozen=True, eq=False)
class KernelSource:
    """Writes the functions of a kernel."""

    kernel: Kernel
    group: int  # work-items in a work-group
    dialect: Dialect
    tables: str = "t"  # what the names of tables begin with
    numbers: int = 0  # arguments to draw with
    suffix: str = ""  # of their names
    rows: bool = False  # whether each set has a row of them

    @cached_property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """The names of functions by the texts that have them: one text, or several where these are built at the same time."""
        kernel, frame = self.kernel, {Sum: self.sums, Store: self.store, Sample: self.sample}
        functions = [(FUNCTIONS[type(kernel.frame)], frame[type(kernel.frame)]())]
        if kernel.per_call.results:
            functions.insert(0, (("prepare",), self.prepare()))
        if can_evaluate(kernel):
            functions.append((("evaluate",), self.evaluate()))
        if not self.dialect.cut_texts:
            names = tuple(name for some, _ in functions for name in some)
            functions = [(names, [line for _, lines in functions for line in lines])]
        return {
            "\n".join([*self.begin(), *self.output_table(names), *lines]): names for names, lines in functions
        }

    def output_table(self, functions: Collection[str]) -> list[str]:
        """Return the tables of outputs, if some of the functions read them."""
        if not {"combine", "evaluate"} & {*functions}:
            return []
        outputs = outputs_of(self.kernel, "", "")
        tables = [int_table(WORD_TABLE, outputs.words)] if outputs.words else []
        return [*tables, *outputs.tables("", range(self.kernel.outputs)), ""]

    def begin(self) -> list[str]:
        """Return what comes before the functions."""
        kernel, d = self.kernel, self.dialect
        kind = "double" if kernel.precision is Precision.DOUBLE else "float"
        return [
            f"// kernel {kernel.name} ({kernel.frame.label}, {kernel.precision.name}) in {d.name}",
            d.prologue,
            f"#define GROUP {self.group}  // work items in a group",
            f"typedef {kind} real;  // of the lines of an event",
            "",
            *TASK.splitlines(),
            "",
            *self.drawing.number_type(),
            *helpers([kernel]),
            *(sum_functions([kernel], d) if isinstance(kernel.frame, Sum) else []),
        ]

    def prepare(self) -> list[str]:
        """Compute the scalars of each set."""
        kernel, d = self.kernel, self.dialect
        # compilers take twice as long if each of hundreds of numbers is found from the beginning of all sets
        lines = [
            f"{d.memory}const double *point = parameters + (long)set * {len(kernel.parameters)};",
            f"{d.memory}double *made = scalars + (long)set * {len(kernel.per_call.results)};",
            *scalar_lines(kernel, "point[{}]".format, "made[{}]", self.table_names()),
        ]
        first = f"const int sets, {d.memory}const double *parameters, {d.memory}double *scalars"
        return [
            f"{d.free_kernel} prepare({', '.join([first, *self.table_arguments()])})",
            "{",
            *indented([f"const int set = {d.place};", "if (set >= sets) return;", *lines]),
            "}",
            "",
        ]

    @property
    def names(self) -> Names:
        """Return a name for each scalar, column and table of the loop."""
        names = Names(self.kernel.precision)
        for role, group in (("s", self.kernel.scalars), ("c", self.kernel.columns)):
            for name in group:
                names.add(name, role)
        if shares_scalars(self.kernel, self.dialect):
            places = enumerate(self.kernel.scalars)
            names.know({name: f"{SHARED_SCALARS}[{k}]" for k, name in places})
        names.know(self.table_names())
        return names

    def table_names(self) -> dict[str, str]:
        """Return the identifier of each table."""
        names = Names()
        for k, table in enumerate(self.kernel.tables):
            names.add(table.name, f"{self.tables}{k}", table.label)
        return names.known

    def arguments(self, *others: str, columns: bool = True) -> str:
        """Write the arguments of every loop: scalars, blocks, columns and tables."""
        m = self.dialect.memory
        parts = [
            f"{m}const double *scalars",
            f"{m}const block_of_events *blocks, const int first_block",
            *others,
            *(self.column_arguments() if columns else []),
            *self.table_arguments(),
        ]
        return ",\n".join(indented(parts))

    def column_arguments(self) -> list[str]:
        names = [self.names.known[name] for name in self.kernel.columns]
        return [
            f"{self.dialect.memory}const real *{c}_all, const long {c}_first, const long {c}_step"
            for c in names
        ]

    def table_arguments(self) -> list[str]:
        return [f"{self.dialect.memory}const double *{name}" for name in self.table_names().values()]

    def head(self) -> list[str]:
        """Find the block of a group, and the scalars of its set."""
        d, kernel = self.dialect, self.kernel
        return [
            f"const block_of_events block = blocks[first_block + {d.group}];",
            f"const int item = {d.item}, set = block.set, count = block.count;",
            *read_scalars(kernel, self.names, f"scalars[set * {len(kernel.per_call.results)} + {{}}]", d),
        ]

    def load_columns(self, begin: str = "block.begin") -> list[str]:
        names, used = self.names, self.kernel.per_event.reads
        lines = [f"const long event = {begin} + k;"]
        for name in self.kernel.columns:
            c = names.known[name]
            if name in used:
                lines.append(f"const real {c} = {c}_all[{c}_first + {c}_step * set + event];")
        return lines

    def frame(self, name: str, arguments: str, lines: Sequence[str]) -> list[str]:
        return [f"{self.dialect.kernel} {name}(", f"{arguments})", "{", *indented(lines), "}", ""]

    def store(self) -> list[str]:
        """Store every result of every event."""
        kernel, names = self.kernel, self.names
        lines = body_lines(kernel.per_event, names, "real")
        stores = [
            f"row[{k} * out_step + event] = {names.atom(atom)};"
            for k, atom in enumerate(kernel.per_event.results)
        ]
        m = self.dialect.memory
        row = f"{m}double *row = out + out_first + out_step * set * {len(kernel.per_event.results)};"
        return self.frame(
            "store",
            self.arguments(f"{m}double *out, const long out_first, const long out_step"),
            [*self.head(), row, *plain_loop([*self.load_columns(), *lines, *stores])],
        )

    def sums(self) -> list[str]:
        """Reduce the results over the events of each block, then over blocks."""
        kernel, d = self.kernel, self.dialect
        text = [
            *self.head(),
            f"{d.memory}double *partial = partials + (long)block.place * {words_of(kernel)};",
            *self.block_sums(self.load_columns(), "partial"),
        ]
        frame = self.frame("sums", self.arguments(f"{d.memory}double *partials"), text)
        return [*frame, *Combine(kernel, self.group, d).lines()]

    def block_sums(self, columns: Sequence[str], target: str) -> list[str]:
        """Sum over the events of a block, at most MAX_EVENTS per item; ``columns`` loads one. Leave words at ``target``."""
        kernel, d, names, group = self.kernel, self.dialect, self.names, self.group
        pairs = PairSum(kernel.pairs, group, d) if kernel.pairs else None
        inside = [*columns, *body_lines(kernel.per_event, names, "real")]
        words = [words_left(kernel, sums) for sums in turns_of(kernel)]
        total = sum(map(len, words))
        lines = [scratch_line(total, group, d, pairs.room if pairs else 0)]
        lines += [f"{d.shared}double *factors = scratch;"] if pairs else []  # these and words take turns
        for k, sums in enumerate(turns_of(kernel)):
            with_pairs = pairs if k == len(words) - 1 else None
            updated = [*inside, *update_lines(kernel, sums, names, d)]
            leave, before = f"{target}[{{place}}] = scratch[k * GROUP];", sum(map(len, words[:k]))
            lines += [
                *(with_pairs.begin() if with_pairs else []),
                *state_lines(kernel, sums),
                *(with_pairs.loop(updated, names) if with_pairs else plain_loop(updated)),
                *tree_lines(words[k], group, leave, d, before),
            ]
        return [*lines, *(pairs.leave(f"{target} + {total}") if pairs else [])]

    def evaluate(self) -> list[str]:
        """Evaluate a set in one group: scalars, sums, outputs."""
        kernel, d, names = self.kernel, self.dialect, self.names
        m, count = d.memory, len(kernel.parameters)
        group = GroupSum(kernel, self.group, d)
        arguments = [
            *(["const one_set given", f"{m}const double *parameters"] if count else []),
            f"const int sets, {m}const long *starts, {m}const long *sizes, const int sizes_step",
            f"{m}double *out",
            *self.column_arguments(),
            *self.table_arguments(),
        ]
        lines = [
            f"const int set = {d.group}, item = {d.item}, count = sizes[set * sizes_step];",
            "const long begin = starts[set * sizes_step];",
            *group.room(),
            *group.prepare(
                lambda k: f"sets == 1 ? given.numbers[{k}] : parameters[set * {count} + {k}]",
                self.table_names(),
            ),
            *group.sum_up(names, self.load_columns("begin")),
            f"{m}double *row = out + (long)set * {kernel.outputs + 1};",
            *outputs_of(kernel, "scalars[{}]", "count", low=False).store(d.wait_memory, "scalars[{}]"),
        ]
        kind = (
            [f"typedef struct {{ double numbers[{count}]; }} one_set;  // of parameters", ""] if count else []
        )
        return [*kind, *self.frame("evaluate", ",\n".join(indented(arguments)), lines)]

    @property
    def drawing(self) -> Draw:
        return Draw(self.kernel, self.names, self.dialect, self.numbers, suffix=self.suffix, rows=self.rows)

    def sample(self) -> list[str]:
        """Draw events: random numbers, straight lines, again until a candidate is accepted."""
        kernel, d, drawing = self.kernel, self.dialect, self.drawing
        keep = [f"out{k}[out_first + block.begin + k] = x{k};" for k in range(kernel.outputs)]
        others = [
            f"const {d.word} seed, const {d.word} first_toy, {d.memory}int *report, const long out_first",
            *drawing.number_arguments(),
            *(f"{d.memory}double *out{k}" for k in range(kernel.outputs)),
        ]
        lines = [
            *self.head(),
            f"const {d.word} toy = first_toy + set;",
            *(drawing.room() if drawing.rounds else []),
            *drawing.lines("block.event + k", keep, ("report", "report + 1"), STREAMS_BEFORE),
        ]
        arguments = self.arguments(*others, columns=False)
        return [*drawing.generator_text(), *self.frame("sample", arguments, lines)]
