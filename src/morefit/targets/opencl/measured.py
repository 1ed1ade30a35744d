"""What constraints measure in toys, drawn in OpenCL C: the program, NumPy's generator of whole toys, and the phase."""

from __future__ import annotations

from functools import cache

from morefit.kernel.measured_program import draw_measured
from morefit.kernel.read_program import read_program
from morefit.targets.opencl.dialect import Dialect
from morefit.targets.opencl.fit_shape import ROWS, Phase, Runs
from morefit.targets.opencl.program import PREFIX, Writer, function_lines

UNIFORM = f"""\
// NumPy's Philox4x64-10 (Salmon et al., SC11): the word of a toy in the sequence of a key
double {PREFIX}toy_uniform(int key_low, int key_high, int toy_low, int toy_high)
{{
    const ulong toy = (ulong)(uint)toy_high << 32 | (uint)toy_low;
    ulong c0 = toy / 4 + 1, c1 = 0, c2 = 0, c3 = 0, k0 = (ulong)(uint)key_high << 32 | (uint)key_low, k1 = 0;
    for (int round = 0; round < 10; round++) {{
        const ulong high0 = mul_hi(0xd2e7470ee14c6c93UL, c0), low0 = 0xd2e7470ee14c6c93UL * c0;
        const ulong high1 = mul_hi(0xca5a826395121157UL, c2), low1 = 0xca5a826395121157UL * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9e3779b97f4a7c15UL, k1 += 0xbb67ae8584caa73bUL;
    }}
    const ulong word = toy % 4 == 0 ? c0 : toy % 4 == 1 ? c1 : toy % 4 == 2 ? c2 : c3;
    return (double)(word >> 11) * 0x1p-53;
}}
"""


@cache
def measured_functions(d: Dialect) -> list[str]:
    """Write the program."""
    functions = read_program(draw_measured, {}).functions
    return [
        *UNIFORM.splitlines(),
        *(line for f in functions for line in function_lines(f, d.memory, Writer())),
    ]


def measure(n: int, d: Dialect) -> Phase:
    """Draw what the constraints of part n measure, one work item per toy."""
    m = "{m}"
    return Phase(
        name=f"measure{n}",
        runs=Runs.ITEMS,
        begins=True,
        arguments=[
            ROWS, f"{m}const int *toys", f"const {d.word} first_toy{n}", f"{m}const int *measure_words{n}",
            f"{m}double *measure_numbers{n}", f"const int measure_size{n}", f"{m}double *measured{n}",
        ],
        lines=[
            f"const {d.word} toy = first_toy{n} + toys[index];",
            f"{m.format(m=d.memory)}double *goal = measured{n} + (long)index * measure_words{n}[0];",
            f"{PREFIX}draw_measured(measure_words{n}, measure_numbers{n} + (long)rows[index] * measure_size{n}, goal,"
            " (int)(uint)toy, (int)(toy >> 32));",
        ],
    )  # fmt: skip
