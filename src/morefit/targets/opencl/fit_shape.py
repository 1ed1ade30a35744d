"""What the text of whole fits in OpenCL C depends on: kernels without their numbers, phases, and shapes of parts and steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import cached_property
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import Table
from morefit.kernel.counts_layout import CountsTable
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.ir import Body, Kernel, Line, NodeLoop
from morefit.kernel.measured_program import MeasuredTable
from morefit.kernel.rows_layout import RowsTable
from morefit.random.xoshiro import TABLE
from morefit.targets.base import CountsPart, Program, WholeIntegral, WholePart
from morefit.targets.opencl.dialect import Dialect, indented
from morefit.targets.opencl.sample import NUMBER

PLAIN = frozenset({0.0, 0.5, 1.0, -1.0, 2.0})  # numbers that belong to a formula rather than to values


@dataclass(frozen=True)
class Lifted:
    """A kernel without the numbers and tables it was made for: they have names, the same for all kernels of this form."""

    kernel: Kernel
    numbers: tuple[float, ...]
    tables: tuple[Table, ...]


class LiftedProgram(Protocol):
    """A program that draws, and the same without its numbers."""

    @property
    def lifted(self) -> Lifted: ...


def lift_numbers(kernel: Kernel, limit: int) -> Lifted:
    """Give names to the numbers and tables in a kernel's lines, unless there are more numbers than ``limit``."""
    numbers: list[float] = []
    tables = {
        table.name: table if table.name == TABLE else Table(f"table {k}", b"", str(k))
        for k, table in enumerate(kernel.tables)
    }

    def name(atom: str | float) -> str | float:
        if isinstance(atom, str):
            return tables[atom].name if atom in tables else atom
        if atom in PLAIN or not math.isfinite(atom):
            return atom
        numbers.append(atom)
        return f"{NUMBER}{len(numbers) - 1}"

    def renamed(body: Body) -> Body:
        lines: list[Line | NodeLoop] = []
        for x in body.lines:
            if isinstance(x, NodeLoop):
                nodes, weights = (tables[table].name for table in x.tables)
                lines.append(replace(x, tables=(nodes, weights), body=renamed(x.body)))
            else:
                lines.append(Line(x.target, x.op, tuple(map(name, x.args))))
        return Body(tuple(lines), tuple(map(name, body.results)))

    per_event = renamed(kernel.per_event)
    if len(numbers) > limit:
        return Lifted(kernel, (), kernel.tables)
    named = tuple(Table(t.name, b"", t.label) for t in tables.values())
    return Lifted(replace(kernel, per_event=per_event, tables=named), tuple(numbers), kernel.tables)


WIDE_FROM = 13  # parameters: work items take a step together; with fewer, one per toy wastes less
TILE = 32  # toys whose records are side by side, or work items that take the step of one toy together


class Runs(Enum):
    """What goes through a phase."""

    ALL = auto()  # a work item per toy, also of those that are no longer fitted
    ITEMS = auto()  # a work item per toy
    TILES = auto()  # TILE work items per toy
    GROUPS = auto()  # a work-group per toy
    BLOCKS = auto()  # a work-group per block of the events of a part


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One kernel; ``index`` is the toy in its lines. Arguments are declarations, which end with a name.

    Parts of a likelihood that are alike share the functions of the first of them, with arguments of their own.
    """

    name: str
    runs: Runs
    arguments: Sequence[str]
    lines: Sequence[str]
    tables: Sequence[str] = ()  # of the text, which it reads
    part: int = 0  # of the likelihood, where it runs over its blocks
    begins: bool = False  # all toys go through it, not only those that are still fitted
    many_blocks: bool = False  # only where a toy may have several blocks of the part
    shared: str = ""  # the function of another phase that this one runs

    @property
    def function(self) -> str:
        """The function that it runs."""
        return self.shared or self.name

    @property
    def all_arguments(self) -> list[str]:
        """All declarations: which toys or blocks, then the phase's own."""
        lists = {
            Runs.ALL: ["const int all_toys"],
            Runs.ITEMS: ["{m}const int *active", "const int active_toys"],
            Runs.TILES: ["{m}const int *active"],
            Runs.GROUPS: ["{m}const int *active"],
            Runs.BLOCKS: [f"{{m}}const block_of_events *blocks{self.part}"],
        }
        running = [] if self.begins else ["{m}int *running"]
        return [*lists[self.runs], *running, *self.arguments]

    @cached_property
    def names(self) -> list[str]:
        """The names of all arguments, in order."""
        return [name_of(declaration) for declaration in self.all_arguments]

    def text(self, d: Dialect) -> list[str]:
        """Write the kernel."""
        head = {
            Runs.ALL: [f"const int index = {d.place};", "if (index >= all_toys) return;"],
            Runs.ITEMS: [
                f"if ({d.place} >= active_toys) return;",
                f"const int index = active[{d.place}];",
            ],
            Runs.TILES: [f"const int index = active[{d.group}], item = {d.item};"],
            Runs.GROUPS: [f"const int index = active[{d.group}], item = {d.item};"],
            Runs.BLOCKS: [
                f"const block_of_events block = blocks{self.part}[{d.group}];",
                f"const int item = {d.item}, index = block.set, count = block.count;",
            ],
        }[self.runs]
        stop = [] if self.begins else ["if (!running[index]) return;"]
        kernel = d.free_kernel if self.runs in (Runs.ALL, Runs.ITEMS, Runs.TILES) else d.kernel
        arguments = ",\n".join(indented([a.format(m=d.memory) for a in self.all_arguments]))
        body = indented([*head, *stop, *self.lines])
        return [*self.tables, f"{kernel} {self.name}(", f"{arguments})", "{", *body, "}", ""]


def name_of(declaration: str) -> str:
    """Return the name of an argument."""
    return declaration.split()[-1].lstrip("*")


@dataclass(frozen=True)
class IntegralShape:
    """Numerical integrals of a part: their kernel, and how many of everything."""

    kernel: Kernel
    bodies: int
    peaks: int
    axes: int


@dataclass(frozen=True, kw_only=True)
class SumShape:
    """What is summed over the events of a part: the kernel, from which columns of the part, and its integrals."""

    kernel: Kernel
    columns: tuple[str, ...]
    integrals: tuple[IntegralShape, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        integrals = tuple((id(i.kernel), i.bodies, i.peaks, i.axes) for i in self.integrals)
        return (id(self.kernel), self.columns, integrals)

    @classmethod
    def of(cls, program: Program, columns: Sequence[str], integrals: Sequence[WholeIntegral]) -> SumShape:
        shapes = [
            IntegralShape(one.program.kernel, one.bodies, len(one.limits) - 1, one.edges.shape[1])
            for one in integrals
        ]
        return cls(kernel=program.kernel, columns=tuple(columns), integrals=tuple(shapes))


@dataclass(frozen=True, kw_only=True)
class PartShape:
    """What the text depends on in one part of the likelihood. Without a sampler the events are arguments."""

    sampler: Lifted | None
    derive: Kernel | None
    sums: SumShape
    scores: SumShape | None  # squared ones, where events have weights
    observables: tuple[str, ...]
    derived: tuple[str, ...]
    parameters: int  # before the integrals
    floating: tuple[int, ...]  # indices of the floating parameters among all
    places: tuple[int, ...]  # which parameter of the fit each of those is
    measured: tuple[int, int]  # indices of what constraints measured in each toy: from, and up to
    rows: RowsTable | None = None  # what draws events that are the rows of a table
    measuring: MeasuredTable | None = None  # what draws what constraints measured

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.observables, *self.derived)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells the text of one part from another."""
        sampler = self.sampler and (self.sampler.kernel, len(self.sampler.numbers))
        scores, drawn = self.scores and self.scores.key, (self.rows is not None, self.measuring is not None)
        columns = (self.observables, self.derived, self.derive)
        parameters = (self.parameters, self.floating, self.measured)
        own = (sampler, *drawn, *columns, self.sums.key, scores, *parameters)
        return (*own, self.places)

    @property
    def functions(self) -> tuple[Any, ...]:
        """What tells its functions from those of another part of the same text; where its rows are depends on which part it is."""
        *own, _ = self.key
        return (*own, self.rows and id(self))

    @property
    def draw_key(self) -> tuple[Any, ...]:
        """What toys that are drawn together have in common besides the text."""
        tables = self.sampler.tables if self.sampler else ()
        return (tuple(tables), self.rows and self.rows.key, self.measuring and self.measuring.key)

    @property
    def numbers(self) -> Array:
        """The numbers to draw with."""
        return self.rows.numbers if self.rows else np.array(self.sampler.numbers if self.sampler else ())

    @property
    def all_sums(self) -> list[SumShape]:
        return [self.sums, *([self.scores] if self.scores else [])]


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsShape:
    """The same of a part that is a model of counts: whether these are drawn; all else are arguments."""

    table: CountsTable
    rows: RowsTable | None
    measuring: MeasuredTable | None
    scores: ClassVar[None] = None
    all_sums: ClassVar[list[SumShape]] = []

    @property
    def key(self) -> tuple[Any, ...]:
        return ("counts", self.rows is not None, self.measuring is not None)

    @property
    def functions(self) -> tuple[Any, ...]:
        return (id(self),)

    @property
    def draw_key(self) -> tuple[Any, ...]:
        return (self.table.digest, self.rows and self.rows.key, self.measuring and self.measuring.key)

    @property
    def numbers(self) -> Array:
        return self.rows.numbers if self.rows else np.empty(0)


@dataclass(frozen=True, kw_only=True)
class StepShape:
    """What the text of a step of the minimiser depends on."""

    wide: bool  # whether the items of a group take the step of a toy together
    layout: FitLayout

    @property
    def pitch(self) -> int:
        """How far the numbers of a record are apart."""
        return 1 if self.wide else TILE

    @property
    def record_size(self) -> int:
        """How many numbers the records in the memory of the device have: all, or those that are kept from step to step."""
        return self.layout.size if self.scratch is None else self.scratch

    @property
    def record(self) -> str:
        """Where the record of a toy begins."""
        size = self.record_size
        if self.wide:
            return f"records + (long)index * {size}"
        return f"records + (long)(index / {TILE}) * {size * TILE} + index % {TILE}"

    @property
    def scratch(self) -> int | None:
        """The first of the numbers that an item that takes the steps of a toy alone has in its private memory, if they are few."""
        return None if self.wide or self.layout.count >= WIDE_FROM else self.layout.state_size

    def number(self, place: int) -> str:
        """Return a number of the record of a toy, in the memory of the device."""
        return f"fit[{place * self.pitch}]"

    @property
    def runs(self) -> Runs:
        """What takes the steps."""
        return Runs.TILES if self.wide else Runs.ITEMS

    def each(self, first: int, last: int | str, line: str) -> str:
        """Do something for numbers of the record, k."""
        begin, step = (f"{first} + item", TILE) if self.wide else (f"{first}", 1)
        return f"for (int k = {begin}; k < {last}; k += {step}) {line}"

    def wait(self, d: Dialect) -> list[str]:
        return [d.wait_memory] if self.wide else []

    def once(self, d: Dialect, *lines: str) -> list[str]:
        """Let one item do something for a toy."""
        return ["if (item == 0) {", *indented(lines), "}", d.wait_memory] if self.wide else [*lines]


@dataclass(frozen=True, kw_only=True)
class FitShape(StepShape):
    """What the text of whole fits depends on."""

    group: int
    parts: tuple[PartShape | CountsShape, ...]


RECORDS = "{m}double *records"
ROWS = "{m}const int *rows"  # of each toy: where it is drawn, where its fit starts, and what is fixed


def record_line(shape: StepShape, d: Dialect) -> str:
    """Find the record of a toy."""
    return f"{d.memory}double *fit = {shape.record};"


def shape_of(part: WholePart | CountsPart) -> PartShape | CountsShape:
    """Return what the text of a part depends on."""
    if isinstance(part, CountsPart):
        return CountsShape(table=part.table, rows=part.sampler, measuring=part.measuring)
    scores, sampler = part.scores, part.sampler
    rows = sampler if isinstance(sampler, RowsTable) else None
    return PartShape(
        sampler=None if sampler is None or rows else cast("LiftedProgram", sampler).lifted,
        rows=rows,
        measuring=part.measuring,
        derive=part.derive.kernel if part.derive else None,
        sums=SumShape.of(part.sums, part.sums.kernel.columns, part.integrals),
        scores=SumShape.of(scores.program, scores.columns, scores.integrals) if scores else None,
        observables=part.observables,
        derived=part.derived,
        parameters=part.parameters,
        floating=part.floating,
        places=part.places,
        measured=(part.measured, part.measured + part.fluctuating),
    )
