"""The memory of whole fits on one thread: arrays that compiled code reads and writes, and tables of their addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import numpy as np

from morefit.arrays import Array, Integers, address
from morefit.kernel.rows_layout import RowsTable
from morefit.resources import aligned
from morefit.targets.base import PartBatch, Program, ToyBatch
from morefit.targets.cpu import fit_stages as stages
from morefit.targets.cpu.abi import ARGUMENTS, Code, Target
from morefit.targets.cpu.columns import ScatteredColumn


class Native(Protocol):
    """A program with machine code."""

    @property
    def code(self) -> Code: ...

    @property
    def target(self) -> Target: ...

    @property
    def threads(self) -> int: ...

    @property
    def words(self) -> int: ...


def native(program: Program) -> Native:
    return cast(Native, program)


class Memory:
    """Arrays that compiled code reads and writes: they live as long as this."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = []

    def own(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> int:
        """Keep an array; return its address."""
        self.arrays.append(array)
        return address(array)

    def room(self, count: int) -> Array:
        array = aligned(count)
        array[:] = 1.0  # what is read past the end must do no harm
        self.arrays.append(array)
        return array

    def words(self, numbers: Sequence[int]) -> Integers:
        array = np.array(numbers, np.int64)
        self.arrays.append(array)
        return array

    def table(
        self, program: Program, columns: Sequence[Array], lanes: int, known: Mapping[str, int]
    ) -> Integers:
        """Write the table of one kernel, and compute what it needs once."""
        kernel = program.kernel
        tables = [t.array for t in kernel.tables]
        pairs = self.words([w for array in (*columns, *tables) for w in (self.own(array), 0)])
        scalars = self.room(max(len(kernel.per_call.results), 1) * lanes)
        words = {
            "scalars": address(scalars), "padded": lanes, "sets": 1, "columns": address(pairs),
            "starts": address(self.words([0])), **known,
        }  # fmt: skip
        table = self.words([words.get(name, 0) for name in ARGUMENTS])
        if not kernel.parameters:
            native(program).code.functions["prepare"](address(table))
        return table


def set_toys(words: Integers, toys: ToyBatch, k: int) -> None:
    """Set the sizes of part k in each toy, and what its constraints measured."""
    measured = toys.parts[k].measured
    words[stages.SIZES] = address(toys.sizes) + 8 * k
    words[stages.SIZES_STEP] = toys.sizes.shape[1]
    words[stages.MEASURED] = 0 if measured is None else address(measured)
    words[stages.MEASURED_COUNT] = 0 if measured is None else measured.shape[1]


def stored_words(part: PartBatch) -> list[int]:
    """Return where each column of stored events begins, and where it says from which number on those of each toy are."""
    assert part.starts is not None
    starts = address(part.starts)
    words: list[int] = []
    for column in part.events:
        if isinstance(column, ScatteredColumn):
            words += 0, address(column.pieces.places)
        else:
            words += address(column.values), starts
    return words


def function(program: Program, name: str) -> int:
    return native(program).code.addresses[name]


def rows_words(table: RowsTable, memory: Memory, goal: Mapping[str, int]) -> tuple[Code, Integers]:
    """Return what draws the rows of a table, and the words that it reads."""
    from morefit.targets.cpu.rows import NUMBERS, WORDS, rows_code  # only tables need it

    words = memory.words([goal.get(name, 0) for name in ARGUMENTS])
    words[WORDS], words[NUMBERS] = memory.own(table.words), memory.own(table.numbers)
    return rows_code(), words
