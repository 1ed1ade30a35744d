"""What the cores of a machine give by themselves: loops on registers that neither read memory nor wait for others.

A chain of multiplications, each of which waits for the one before, runs at the clock of a core. Multiply-adds on
vectors, in no order, keep its arithmetic units busy. Where two "cores" are threads of one, they share those units.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from morefit.targets.cpu.compile import find_code, host

LENGTH = {"chain": 64, "units": 16}  # operations in a turn of the loop
TURNS = {"chain": 1 << 16, "units": 1 << 18}  # a few ms
ALMOST_ONE = "0x3FEFFFFFFFFFFFFF"

LOOP = """
define void @{name}(ptr %out) {{
entry:
  br label %loop
loop:
  %turn = phi i64 [0, %entry], [%next, %loop]
{body}
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, {turns}
  br i1 %more, label %loop, label %end
end:
{end}
  ret void
}}
"""


def loop_text(name: str) -> str:
    """Write one of the loops in LLVM's language; what it computes is stored, or else it would be left out."""
    kind = "double" if name == "chain" else f"<{host().width} x double>"
    steps = range(LENGTH[name])
    if name == "chain":
        body = [f"%x0 = phi {kind} [1.0, %entry], [%x{LENGTH[name]}, %loop]"]
        body += [f"%x{k + 1} = fmul {kind} %x{k}, {ALMOST_ONE}" for k in steps]
        end = [f"store {kind} %x{LENGTH[name]}, ptr %out"]
    else:
        body = [f"%x{k} = phi {kind} [zeroinitializer, %entry], [%y{k}, %loop]" for k in steps]
        body += [
            f"%y{k} = call {kind} @llvm.fma.v{host().width}f64({', '.join([f'{kind} %x{k}'] * 3)})"
            for k in steps
        ]
        end = [f"%p{k} = getelementptr {kind}, ptr %out, i64 {k}" for k in steps]
        end += [f"store {kind} %y{k}, ptr %p{k}, align 8" for k in steps]
    indented = ["\n".join("  " + line for line in lines) for lines in (body, end)]
    return LOOP.format(name=name, body=indented[0], turns=TURNS[name], end=indented[1])


def loop_job(name: str, threads: int, tasks: int) -> Callable[[], Any]:
    """Run a loop so many times, by so many threads."""
    vector = f"<{host().width} x double>"
    declared = f"declare {vector} @llvm.fma.v{host().width}f64({', '.join([vector] * 3)})\n"
    loop = find_code(loop_text(name) + declared, (name,)).functions[name]
    pool = ThreadPoolExecutor(threads)

    def run(_: int) -> None:
        found = ctypes.create_string_buffer(LENGTH["units"] * 8 * host().width)
        loop(ctypes.addressof(found))

    return lambda: list(pool.map(run, range(tasks)))
