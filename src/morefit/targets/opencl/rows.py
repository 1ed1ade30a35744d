"""Rows of tables that are drawn in OpenCL C: the program that all tables share, and how a work item calls it for a toy."""

from __future__ import annotations

from functools import cache

from morefit.kernel.read_program import read_program
from morefit.kernel.rows_program import draw_rows
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_shape import ROWS
from morefit.targets.opencl.program import PREFIX, Writer, function_lines
from morefit.targets.opencl.sample import GENERATORS

UNIFORM = f"""\
// one of the two random numbers of a row and an attempt
double {PREFIX}uniform(int seed_low, int seed_high, int toy_low, int toy_high, int row, int attempt, int which)
{{
    double uniform[2];
    const ulong seed = (ulong)(uint)seed_high << 32 | (uint)seed_low;
    philox((uint)row, (uint)toy_low, (uint)attempt, (uint)toy_high, seed, uniform);
    return which ? uniform[1] : uniform[0];
}}
"""
COUNTED = GENERATORS[False]  # the generator that is counted


@cache
def rows_functions(d: Dialect) -> list[str]:
    """Write the program, without the generator of random numbers."""
    functions = read_program(draw_rows, {}).functions
    return [
        *UNIFORM.splitlines(),
        *(line for f in functions for line in function_lines(f, d.memory, Writer())),
    ]


def draw_arguments(n: int, d: Dialect) -> list[str]:
    """Declare what tells how the rows of part n are drawn."""
    m = "{m}"
    return [
        ROWS, f"{m}const int *toys", f"const {d.word} seed{n}", f"const {d.word} first_toy{n}",
        f"{m}const int *row_words{n}", f"{m}double *numbers_{n}", f"const int row_size{n}",
    ]  # fmt: skip


def draw_lines(n: int, d: Dialect, goal: str, step: str) -> list[str]:
    """Draw the rows of a toy; its columns are a number of elements apart."""
    words = ["(int)(uint)seed", "(int)(seed >> 32)", "(int)(uint)toy", "(int)(toy >> 32)"]
    return [
        f"const {d.word} seed = seed{n}, toy = first_toy{n} + toys[index];",
        f"{PREFIX}draw_rows(row_words{n}, numbers_{n} + (long)row * row_size{n}, {goal}, {step}, {', '.join(words)});",
    ]
