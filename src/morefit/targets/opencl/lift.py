"""Texts that serve many true values: the numbers and tables of a kernel become arguments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from morefit.dataclass import dataclass
from morefit.expr import Table
from morefit.kernel.ir import Body, Kernel, Line, NodeLoop
from morefit.random.xoshiro import TABLE
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
