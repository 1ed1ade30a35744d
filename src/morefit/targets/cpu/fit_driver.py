"""The text of a whole fit, or of its steps alone: the program common to all targets, the stages of this one, and calls by address."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from morefit.arrays import Array, Flags, address
from morefit.garbage import without_collection
from morefit.kernel.fit_layout import FitLayout
from morefit.kernel.program import Driver
from morefit.resources import available_cores
from morefit.targets.ahead import compile_ahead
from morefit.targets.cache import source_version
from morefit.targets.cpu.abi import REPORT_WORDS, Code, argument
from morefit.targets.cpu.compile import build_object, expect_text, find_by_key, host, is_compiled
from morefit.targets.cpu.denormals import DECLARED, FLUSH
from morefit.targets.cpu.fit_stages import advance_all, begin_all, correct_all, draw, drive, scores, sums
from morefit.targets.cpu.writer import Vector, Writer
from morefit.text.progress import Bar

TAKE = """\
define internal i64 @take_toy(i64 %counter) alwaysinline {
  %p = inttoptr i64 %counter to ptr
  %toy = atomicrmw add ptr %p, i64 1 seq_cst
  ret i64 %toy
}"""
CALLS = """\
define internal void @call_table(i64 %function, i64 %table) alwaysinline {{
  %f = inttoptr i64 %function to ptr
  %t = inttoptr i64 %table to ptr
  call void %f(ptr %t)
  ret void
}}
define internal void @call_block(i64 %function, i64 %table, i64 %set, i64 %begin, i64 %end, i64 %task) alwaysinline {{
  %f = inttoptr i64 %function to ptr
  %t = inttoptr i64 %table to ptr
{flush}
  call void %f(ptr %t, i64 %set, i64 %begin, i64 %end, i64 %task)
{restore}
  ret void
}}"""
COPY = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @copy_numbers(i64 %source, i64 %target, i64 %count) alwaysinline {
  %s = inttoptr i64 %source to ptr
  %t = inttoptr i64 %target to ptr
  %size = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %t, ptr %s, i64 %size, i1 false)
  ret void
}"""


@without_collection()
def drive_text(driver: Driver, layout: FitLayout) -> str:
    """Write the driver of one thread (``drive``), and steps of many fits (``begin_all``, ``advance_all``, ``correct_all``)."""
    from morefit.kernel.read_program import read_program  # which code on disk does not need
    from morefit.targets.cpu.program import DECLARATIONS, program_text

    record = {"Fit": layout.record}
    own: list[Callable[..., Any]] = [draw, sums, drive, begin_all, advance_all]
    own += [scores, correct_all] if driver.weighted else []
    stages = [read_program(stage, record) for stage in own]
    texts = program_text(driver.program, *stages)
    machine = host().machine
    flush, restore = FLUSH[machine]
    calls = CALLS.format(flush=flush, restore=restore)
    return "\n".join([*DECLARATIONS, *DECLARED[machine], calls, COPY, TAKE, *texts])


def identity(driver: Driver, layout: FitLayout) -> tuple[str, ...]:
    """Return where the text of a driver comes from, so that none need be written."""
    return "driver", source_version(), driver.main.__module__, driver.main.__name__, repr(layout)


def find_driver(driver: Driver, layout: FitLayout, written: Callable[[], str]) -> Code:
    """Return the machine code of a driver, and write its text only if it must be compiled."""
    names = ["drive", "begin_all", "advance_all", *(["correct_all"] if driver.weighted else [])]
    return find_by_key(identity(driver, layout), lambda: build_object(written(), driver=True), names)


@lru_cache(maxsize=32)
def driver_code(driver: Driver, layout: FitLayout) -> Code:
    """Return the machine code of a driver, with a progress bar if that takes long: it waits for what is compiled before."""
    with Bar("compiling: machine code", None, shown=True):
        return find_driver(driver, layout, lambda: drive_text(driver, layout))


@lru_cache(maxsize=32)
def expect_driver(driver: Driver, layout: FitLayout) -> None:
    """Begin to compile a driver, once.

    Its text is written before: beside other work in Python it would take twice as long, and machine code would begin later.
    """
    if available_cores() > 1 and not is_compiled(*identity(driver, layout)):
        expect_text()
        text = drive_text(driver, layout)
        compile_ahead(lambda: find_driver(driver, layout, lambda: text))


@lru_cache(maxsize=16)
def copy_text(columns: int) -> str:
    """Write a stand-in for drawing: it copies the stored events of a toy; a column has its address and those of its starts."""
    w = Writer(Vector(1), "t")
    table = argument(w, "columns", "ptr")
    out, step, words = argument(w, "out", "ptr"), argument(w, "out_step"), argument(w, "partials", "ptr")
    size = w.let(f"shl i64 {w.let('sub i64 %end, %begin')}, 3")
    for k in range(columns):
        base = w.let(f"load ptr, ptr {w.let(f'getelementptr i64, ptr {table}, i64 {2 * k}')}")
        starts = w.let(f"load ptr, ptr {w.let(f'getelementptr i64, ptr {table}, i64 {2 * k + 1}')}")
        start = w.let(f"load i64, ptr {w.let(f'getelementptr i64, ptr {starts}, i64 %set')}")
        first = w.let(f"add i64 {start}, %begin")
        source = w.let(f"getelementptr double, ptr {base}, i64 {first}")
        row = w.let(f"add i64 {w.let(f'mul i64 {step}, {k}')}, %begin")
        target = w.let(f"getelementptr double, ptr {out}, i64 {row}")
        w.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )
    for k in range(REPORT_WORDS):
        index = w.let(f"add i64 {w.let(f'mul i64 %task, {REPORT_WORDS}')}, {k}")
        w.lines.append(f"  store double 0.0, ptr {w.let(f'getelementptr double, ptr {words}, i64 {index}')}")
    return "\n".join([
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "define void @block(ptr %args, i64 %set, i64 %begin, i64 %end, i64 %task) {", *w.lines, "  ret void", "}",
    ])  # fmt: skip


class Steps:
    """The states of fits, which a step changes in place."""

    def __init__(self, driver: Driver, layout: FitLayout, records: Array) -> None:
        self.layout = layout
        self.code: Code = driver_code(driver, layout)
        self.scratch = np.zeros(layout.size)
        self.states = np.array(records[:, : layout.state_size], order="C")
        self.run("begin_all")

    @property
    def states(self) -> Array:
        return self.own_states

    @states.setter
    def states(self, states: Array) -> None:
        """Take other states, and say where they are."""
        self.own_states = states
        self.table = np.array(
            [len(states), address(states), self.layout.state_size, address(self.scratch)], np.int64
        )

    def run(self, name: str) -> None:
        self.code.functions[name](address(self.table))

    def column(self, name: str) -> Array:
        return self.states[:, self.layout.record.first(name)]

    def columns(self, name: str) -> Array:
        return self.states[:, self.layout.record.slice(name)]

    @property
    def running(self) -> Flags:
        return np.asarray(self.column("running") > 0)

    def take(self, chosen: Flags) -> Array:
        """Remove some fits; return their states."""
        gone = self.states[chosen]
        self.states = np.ascontiguousarray(self.states[~chosen])
        return gone

    def advance(self) -> None:
        """Take a step of each fit after the sums at its trial point."""
        self.run("advance_all")

    def correct(self) -> None:
        """Correct the errors of each fit after the squared scores at its end, which are in the place of a Hessian."""
        self.run("correct_all")
