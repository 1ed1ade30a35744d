"""Whole fits without Python: one function that draws a toy, sums, steps, and repeats until it has converged.

It calls the functions of four compiled kernels by their addresses: the one that draws events, the one that computes
event-only columns, the one that sums, and the one that takes a Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from morefit.kernel.fit_layout import FitLayout
from morefit.random.xoshiro import BLOCK
from morefit.targets.cpu.abi import argument
from morefit.targets.cpu.sample import WORDS as SAMPLE_WORDS
from morefit.targets.cpu.writer import Vector, Writer

# the table of one thread, one 64-bit word each
CONTEXT = (
    "counter",  # shared: the next toy to be taken
    "toys",
    "sizes",  # events of each toy
    "draw", "draw_args", "draw_report",  # function, its table, its words
    "derive", "derive_args",  # function or 0, its table
    "prepare", "block", "combine", "sum_args",
    "step", "step_args",
    "count",  # the number of events, where the tables of the sums find it
    "last_task",  # one past the last block, likewise
    "parameters",  # of the sums: double[parameter][lanes]
    "sums",  # what combine writes
    "rows",  # what a step reads: double[row][lanes]
    "written",  # what a step writes: double[row][written_step]
    "start",  # the rows to begin with
    "results",  # double[toy][width of the layout]
    "max_steps",
)  # fmt: skip


@dataclass(frozen=True)
class Driver:
    """What the text of a driver depends on."""

    layout: FitLayout
    floating: tuple[int, ...]  # indices of the floating parameters among all
    lanes: int
    written_step: int  # from row to row of what a step writes


@lru_cache(maxsize=64)
def drive_text(driver: Driver) -> str:
    """Write the driver."""
    return DriverText(driver).text()


class DriverText:
    """Writes a driver, part by part."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.layout = driver, driver.layout
        self.head, toy = Writer(Vector(1), "h"), Writer(Vector(1), "t")
        self.at = at = {name: self.word(name) for name in CONTEXT if name not in ("toys", "max_steps")}
        self.toys, self.max_steps = self.word("toys", "i64"), self.word("max_steps", "i64")
        sizes = at["sizes"]
        self.size = toy.let(f"load i64, ptr {toy.let(f'getelementptr i64, ptr {sizes}, i64 %toy')}")
        toy.lines.append(f"  store i64 {self.size}, ptr {at['count']}")
        self.blocks = toy.let(f"sdiv i64 {toy.let(f'add i64 {self.size}, {BLOCK - 1}')}, {BLOCK}")
        toy.lines.append(f"  store i64 {self.blocks}, ptr {at['last_task']}")
        row = toy.let(f"mul i64 %toy, {self.layout.width}")
        self.result = toy.let(f"getelementptr double, ptr {at['results']}, i64 {row}")
        self.toy = toy.lines

    def word(self, name: str, kind: str = "ptr") -> str:
        """Load a word of the table of this thread."""
        address = self.head.let(f"getelementptr i64, ptr %context, i64 {CONTEXT.index(name)}")
        return self.head.let(f"load {kind}, ptr {address}")

    def begin_fit(self) -> list[str]:
        """Begin with the first rows, and a clean report."""
        w, at = Writer(Vector(1), "b"), self.at
        size = 8 * len(self.layout.rows) * self.driver.lanes
        w.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {at['rows']}, ptr {at['start']}, i64 {size}, i1 false)"
        )
        for place in (self.layout.above, self.layout.given_up):
            put(w, "0.0", self.result, place)
        return w.lines

    def before_sums(self) -> list[str]:
        """Hand the trial point to the sums."""
        w, at, lanes = Writer(Vector(1), "s"), self.at, self.driver.lanes
        for row, parameter in enumerate(self.driver.floating):
            copy(w, at["rows"], row * lanes, at["parameters"], parameter * lanes)
        w.lines.append(f"  call void {at['prepare']}(ptr {at['sum_args']})")
        return w.lines

    def take_step(self) -> tuple[list[str], str]:
        """Hand the sums to a step and keep the state it writes; return also the register of the status."""
        w, at, lanes = Writer(Vector(1), "a"), self.at, self.driver.lanes
        w.lines.append(f"  call void {at['combine']}(ptr {at['sum_args']})")
        for k in range(len(self.layout.sums)):
            copy(w, at["sums"], k, at["rows"], (self.layout.first_sum + k) * lanes)
        w.lines.append(f"  call void {at['step']}(ptr {at['step_args']}, i64 0, i64 0, i64 1, i64 0)")
        for k in range(len(self.layout.state)):
            copy(w, at["written"], k * self.driver.written_step, at["rows"], k * lanes)
        status = load(w, at["rows"], self.layout.status * lanes)
        return w.lines, status

    def keep_result(self) -> list[str]:
        w, lanes = Writer(Vector(1), "l"), self.driver.lanes
        for k in range(len(self.layout.result)):
            copy(w, self.at["rows"], (self.layout.first_result + k) * lanes, self.result, k)
        put(w, w.let("sitofp i64 %steps1 to double"), self.result, self.layout.steps)
        return w.lines

    def blocks_loop(self, name: str, before: str, after: str, call: str) -> list[str]:
        return loop_over_blocks(name, before, after, (self.size, self.blocks), [f"  call void {call}"])

    def text(self) -> str:
        at = self.at
        after, status = self.take_step()
        draw = f"{at['draw']}(ptr {at['draw_args']}, i64 %toy, i64 %draw_from, i64 %draw_to, i64 %draw_k)"
        derive = (
            f"{at['derive']}(ptr {at['derive_args']}, i64 0, i64 %derive_from, i64 %derive_to, i64 %derive_k)"
        )
        block = f"{at['block']}(ptr {at['sum_args']}, i64 0, i64 %sum_from, i64 %sum_to, i64 %sum_k)"
        return "\n".join([
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", "declare i64 @llvm.smin.i64(i64, i64)",
            "define void @drive(ptr noalias %context) {", "entry:", *self.head.lines,
            f"  %derives = icmp ne ptr {at['derive']}, null", "  br label %take",
            "take:", f"  %toy = atomicrmw add ptr {at['counter']}, i64 1 seq_cst",
            f"  %any = icmp slt i64 %toy, {self.toys}", "  br i1 %any, label %begin, label %done",
            "begin:", *self.toy, *self.begin_fit(), f"  %some = icmp sgt i64 {self.blocks}, 0",
            "  br i1 %some, label %draw, label %fit",
            *self.blocks_loop("draw", "begin", "drawn", draw),
            "drawn:", *report(at["draw_report"], self.result, self.layout.above, self.blocks),
            "reported:", "  br i1 %derives, label %derive, label %fit",
            *self.blocks_loop("derive", "reported", "fit", derive),
            "fit:", "  br label %step",
            "step:", "  %steps = phi i64 [ 0, %fit ], [ %steps1, %after ]", *self.before_sums(),
            "  br i1 %some, label %sum, label %after",
            *self.blocks_loop("sum", "step", "after", block),
            "after:", *after, "  %steps1 = add i64 %steps, 1", f"  %open = fcmp oeq double {status}, 0.0",
            f"  %patient = icmp slt i64 %steps1, {self.max_steps}", "  %again = and i1 %open, %patient",
            "  br i1 %again, label %step, label %keep",
            "keep:", *self.keep_result(), "  br label %take",
            "done:", "  ret void", "}",
        ])  # fmt: skip


def loop_over_blocks(
    name: str, before: str, after: str, sizes: tuple[str, str], body: list[str]
) -> list[str]:
    """Repeat something for each block; ``sizes`` are the numbers of events and of blocks."""
    size, blocks = sizes
    return [
        f"{name}:",
        f"  %{name}_k = phi i64 [ 0, %{before} ], [ %{name}_next, %{name} ]",
        f"  %{name}_from = mul i64 %{name}_k, {BLOCK}",
        f"  %{name}_full = add i64 %{name}_from, {BLOCK}",
        f"  %{name}_to = call i64 @llvm.smin.i64(i64 %{name}_full, i64 {size})",
        *body,
        f"  %{name}_next = add i64 %{name}_k, 1",
        f"  %{name}_more = icmp slt i64 %{name}_next, {blocks}",
        f"  br i1 %{name}_more, label %{name}, label %{after}",
    ]


def report(words: str, result: str, first: int, blocks: str) -> list[str]:
    """Add up the reports of all blocks that were drawn, into the results from ``first`` on."""
    lines = [
        "  br label %report",
        "report:",
        "  %report_k = phi i64 [ 0, %drawn ], [ %report_next, %report ]",
        *(
            f"  %told{k} = phi double [ 0.0, %drawn ], [ %told{k}_next, %report ]"
            for k in range(SAMPLE_WORDS)
        ),
        f"  %report_row = mul i64 %report_k, {SAMPLE_WORDS}",
    ]
    for k in range(SAMPLE_WORDS):
        lines += [
            f"  %report_i{k} = add i64 %report_row, {k}",
            f"  %report_p{k} = getelementptr double, ptr {words}, i64 %report_i{k}",
            f"  %report_v{k} = load double, ptr %report_p{k}",
            f"  %told{k}_next = fadd double %told{k}, %report_v{k}",
            f"  %result_p{k} = getelementptr double, ptr {result}, i64 {first + k}",
            f"  store double %told{k}_next, ptr %result_p{k}",
        ]
    return [
        *lines,
        "  %report_next = add i64 %report_k, 1",
        f"  %report_more = icmp slt i64 %report_next, {blocks}",
        "  br i1 %report_more, label %report, label %reported",
    ]


def load(w: Writer, base: str, index: int) -> str:
    return w.let(f"load double, ptr {w.let(f'getelementptr double, ptr {base}, i64 {index}')}")


def put(w: Writer, number: str, base: str, index: int) -> None:
    w.lines.append(f"  store double {number}, ptr {w.let(f'getelementptr double, ptr {base}, i64 {index}')}")


def copy(w: Writer, source: str, at: int, target: str, to: int) -> None:
    """Copy one number from an address to another."""
    put(w, load(w, source, at), target, to)


@lru_cache(maxsize=16)
def copy_text(columns: int) -> str:
    """Write a stand-in for drawing: it copies the stored events of a toy."""
    w = Writer(Vector(1), "t")
    table, starts = argument(w, "columns", "ptr"), argument(w, "starts", "ptr")
    out, step, words = argument(w, "out", "ptr"), argument(w, "out_step"), argument(w, "partials", "ptr")
    start = w.let(f"load i64, ptr {w.let(f'getelementptr i64, ptr {starts}, i64 %set')}")
    first = w.let(f"add i64 {start}, %begin")
    size = w.let(f"shl i64 {w.let('sub i64 %end, %begin')}, 3")
    for k in range(columns):
        base = w.let(f"load ptr, ptr {w.let(f'getelementptr i64, ptr {table}, i64 {2 * k}')}")
        source = w.let(f"getelementptr double, ptr {base}, i64 {first}")
        row = w.let(f"add i64 {w.let(f'mul i64 {step}, {k}')}, %begin")
        target = w.let(f"getelementptr double, ptr {out}, i64 {row}")
        w.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )
    for k in range(SAMPLE_WORDS):
        index = w.let(f"add i64 {w.let(f'mul i64 %task, {SAMPLE_WORDS}')}, {k}")
        w.lines.append(f"  store double 0.0, ptr {w.let(f'getelementptr double, ptr {words}, i64 {index}')}")
    return "\n".join([
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "define void @block(ptr %args, i64 %set, i64 %begin, i64 %end, i64 %task) {", *w.lines, "  ret void", "}",
    ])  # fmt: skip
