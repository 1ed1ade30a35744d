"""Tables whose rows are drawn on the CPU: for many toys, or as what fills the rows of one in a whole fit."""

from __future__ import annotations

from functools import cache

import numpy as np

from morefit.arrays import Array, Integers, address
from morefit.kernel.program import integers_at, vector_at
from morefit.kernel.rows_layout import RowsTable
from morefit.kernel.rows_program import draw_rows
from morefit.targets.cache import source_version
from morefit.targets.cpu.abi import ARGUMENTS, FIRST_TOY, SEED, Code, signed
from morefit.targets.cpu.compile import build_object, find_by_key
from morefit.targets.cpu.random import round_keys, two_uniforms
from morefit.targets.cpu.writer import Vector, Writer

WORD = 4294967296  # values of 32 bits
# where ``draw_block`` finds the table of a draw
WORDS, NUMBERS = (ARGUMENTS.index(name) for name in ("columns", "scalars"))
OUT, OUT_STEP, REPORT = (ARGUMENTS.index(name) for name in ("out", "out_step", "partials"))
TOYS = len(ARGUMENTS)  # the word that follows those of one toy: how many there are


def draw_toy(args: Integers, toy: int, out: int) -> None:
    """Write the columns of one toy to an address."""
    number = args[FIRST_TOY] + toy
    seed = args[SEED]
    draw_rows(
        integers_at(args[WORDS]), vector_at(args[NUMBERS]), vector_at(out), args[OUT_STEP],
        seed_low=seed % WORD, seed_high=seed // WORD % WORD, toy_low=number % WORD, toy_high=number // WORD,
    )  # fmt: skip


def draw_block(args: Integers, toy: int, begin: int, end: int, task: int) -> None:
    """Draw the rows of a toy with its first block, in the place of the events of a sampler; none is ever rejected."""
    report = vector_at(args[REPORT])
    report[2 * task] = 0.0
    report[2 * task + 1] = 0.0
    if begin == 0:
        draw_toy(args, toy, args[OUT])


def draw_many(job: Integers) -> None:
    """Draw toys, one after the other in each column."""
    words = integers_at(job[WORDS])
    for toy in range(job[TOYS]):
        draw_toy(job, toy, job[OUT] + 8 * toy * words[0])


def uniform_text() -> str:
    """Write the random numbers of one row."""
    w = Writer(Vector(1), "u")
    seed = w.let(f"or i64 {w.let('shl i64 %seed_high, 32')}, %seed_low")
    counter = [
        w.let(f"insertelement <1 x i64> undef, i64 %{name}, i32 0")
        for name in ("row", "toy_low", "attempt", "toy_high")
    ]
    first, second = two_uniforms(w, (counter[0], counter[1], counter[2], counter[3]), round_keys(w, seed))
    one, other = (w.let(f"extractelement <1 x double> {u}, i32 0") for u in (first, second))
    chosen = w.let(f"select i1 {w.let('icmp eq i64 %which, 0')}, double {one}, double {other}")
    names = ("seed_low", "seed_high", "toy_low", "toy_high", "row", "attempt", "which")
    arguments = ", ".join(f"i64 %{name}" for name in names)
    lines = [*w.lines, f"  ret double {chosen}", "}"]
    return "\n".join([f"define internal double @uniform({arguments}) alwaysinline {{", *lines])


def rows_text() -> str:
    """Write the program."""
    from morefit.targets.cpu.program import drivers_text  # which code on disk does not need

    return drivers_text(draw_block, draw_many, provided=[uniform_text()])


@cache
def rows_code() -> Code:
    """Return the machine code, which is the same for all tables."""
    identity = ("rows", source_version())
    return find_by_key(identity, lambda: build_object(rows_text(), driver=True), ("draw_block", "draw_many"))


def run_rows(table: RowsTable, toys: int, seed: int, first_toy: int = 0) -> Array:
    """Draw toys ``first_toy``, ``first_toy + 1``, ...; return (columns, toys, rows)."""
    out = np.empty((table.columns, toys, table.rows))
    known = {
        WORDS: address(table.words), NUMBERS: address(table.numbers), OUT: address(out),
        OUT_STEP: toys * table.rows, SEED: signed(seed), FIRST_TOY: first_toy, TOYS: toys,
    }  # fmt: skip
    job = np.array([known.get(k, 0) for k in range(TOYS + 1)], np.int64)
    rows_code().functions["draw_many"](address(job))
    return out
