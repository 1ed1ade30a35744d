"""Texts that serve many true values: the numbers and tables of a kernel become arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from morefit.expr import Table
from morefit.kernel import Body, Kernel, Line
from morefit.random.xoshiro import TABLE
from morefit.targets.opencl.sample import NUMBER

PLAIN = frozenset({0.0, 0.5, 1.0, -1.0, 2.0})  # numbers that belong to a formula rather than to values


@dataclass(frozen=True)
class Lifted:
    """A kernel without the numbers and tables it was made for: they have names, the same for all that are alike."""

    kernel: Kernel
    numbers: tuple[float, ...]
    tables: tuple[Table, ...]


def lift_numbers(kernel: Kernel, most: int) -> Lifted:
    """Give names to the numbers and tables in a kernel's lines, unless there are more numbers than may be given."""
    found: list[float] = []
    tables = {t.name: t.name if t.name == TABLE else f"table {k}" for k, t in enumerate(kernel.tables)}

    def name(atom: str | float) -> str | float:
        if isinstance(atom, str):
            return tables.get(atom, atom)
        if atom in PLAIN or not math.isfinite(atom):
            return atom
        found.append(atom)
        return f"{NUMBER}{len(found) - 1}"

    lines = tuple(Line(x.target, x.op, tuple(map(name, x.args))) for x in kernel.per_event.lines)
    results = tuple(map(name, kernel.per_event.results))
    if len(found) > most:
        return Lifted(kernel, (), kernel.tables)
    named = tuple(Table(new, b"") for new in tables.values())
    return Lifted(replace(kernel, per_event=Body(lines, results), tables=named), tuple(found), kernel.tables)
