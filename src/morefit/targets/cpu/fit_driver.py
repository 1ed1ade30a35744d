"""Whole fits without Python: one function that draws a toy, sums, steps, and repeats until it has converged.

It calls the functions of four compiled kernels by their addresses: the one that draws events, the one that computes
event-only columns, the one that sums, and the one that takes a Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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
    "results",  # double[toy][told rows + 3]: the result, steps, above its envelope, given up
    "most_steps",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """The sizes that the text of a driver depends on."""

    lanes: int
    places: tuple[int, ...]  # of the floating parameters among all
    sums: int  # outputs of the sums, the count of bad blocks included
    first_sum: int  # the row that the first of them goes to
    rows: int  # that a step reads
    kept: int  # that it writes
    told: int  # of those, after the trial point, that are the result
    written_step: int
    status: int  # the row of the status


def word(w: Writer, name: str, kind: str = "ptr") -> str:
    address = w.let(f"getelementptr i64, ptr %context, i64 {CONTEXT.index(name)}")
    return w.let(f"load {kind}, ptr {address}")


@lru_cache(maxsize=64)
def drive_text(shape: Shape) -> str:
    """Write the driver."""
    head, toy, step = Writer(Vector(1), "h"), Writer(Vector(1), "t"), Writer(Vector(1), "s")
    at = {name: word(head, name) for name in CONTEXT if name not in ("toys", "most_steps")}
    toys, most = word(head, "toys", "i64"), word(head, "most_steps", "i64")
    result_row = shape.told + 3
    sizes = at["sizes"]
    size = toy.let(f"load i64, ptr {toy.let(f'getelementptr i64, ptr {sizes}, i64 %toy')}")
    toy.lines.append(f"  store i64 {size}, ptr {at['count']}")
    blocks = toy.let(f"sdiv i64 {toy.let(f'add i64 {size}, {BLOCK - 1}')}, {BLOCK}")
    toy.lines.append(f"  store i64 {blocks}, ptr {at['last_task']}")
    row = toy.let(f"mul i64 %toy, {result_row}")
    result = toy.let(f"getelementptr double, ptr {at['results']}, i64 {row}")
    for place, parameter in enumerate(shape.places):
        copy(step, at["rows"], place * shape.lanes, at["parameters"], parameter * shape.lanes)
    step.lines.append(f"  call void {at['prepare']}(ptr {at['sum_args']})")
    after = Writer(Vector(1), "a")
    after.lines.append(f"  call void {at['combine']}(ptr {at['sum_args']})")
    for k in range(shape.sums):
        copy(after, at["sums"], k, at["rows"], (shape.first_sum + k) * shape.lanes)
    after.lines.append(f"  call void {at['step']}(ptr {at['step_args']}, i64 0, i64 0, i64 1, i64 0)")
    for k in range(shape.kept):
        copy(after, at["written"], k * shape.written_step, at["rows"], k * shape.lanes)
    status = load(after, at["rows"], shape.status * shape.lanes)
    last = Writer(Vector(1), "l")
    for k in range(shape.told):
        copy(last, at["rows"], (len(shape.places) + k) * shape.lanes, result, k)
    put(last, last.let("sitofp i64 %steps1 to double"), result, shape.told)
    begin = Writer(Vector(1), "b")
    bytes_of_rows = 8 * shape.rows * shape.lanes
    begin.lines.append(
        f"  call void @llvm.memcpy.p0.p0.i64(ptr {at['rows']}, ptr {at['start']}, i64 {bytes_of_rows}, i1 false)"
    )
    for k in (1, 2):
        put(begin, "0.0", result, shape.told + k)
    return "\n".join([
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", "declare i64 @llvm.smin.i64(i64, i64)",
        "define void @drive(ptr noalias %context) {", "entry:", *head.lines,
        f"  %derives = icmp ne ptr {at['derive']}, null", "  br label %take",
        "take:", f"  %toy = atomicrmw add ptr {at['counter']}, i64 1 seq_cst",
        f"  %any = icmp slt i64 %toy, {toys}", "  br i1 %any, label %begin, label %done",
        "begin:", *toy.lines, *begin.lines, f"  %some = icmp sgt i64 {blocks}, 0",
        "  br i1 %some, label %draw, label %fit",
        *loop_over_blocks("draw", "begin", "drawn", size, blocks, [
            f"  call void {at['draw']}(ptr {at['draw_args']}, i64 %toy, i64 %draw_from, i64 %draw_to, i64 %draw_k)",
        ]),
        "drawn:", *report(at["draw_report"], result, shape.told, blocks),
        "reported:", "  br i1 %derives, label %derive, label %fit",
        *loop_over_blocks("derive", "reported", "fit", size, blocks, [
            f"  call void {at['derive']}(ptr {at['derive_args']}, i64 0, i64 %derive_from, i64 %derive_to, i64 %derive_k)",
        ]),
        "fit:", "  br label %step",
        "step:", "  %steps = phi i64 [ 0, %fit ], [ %steps1, %after ]", *step.lines,
        "  br i1 %some, label %sum, label %after",
        *loop_over_blocks("sum", "step", "after", size, blocks, [
            f"  call void {at['block']}(ptr {at['sum_args']}, i64 0, i64 %sum_from, i64 %sum_to, i64 %sum_k)",
        ]),
        "after:", *after.lines, "  %steps1 = add i64 %steps, 1", f"  %open = fcmp oeq double {status}, 0.0",
        f"  %patient = icmp slt i64 %steps1, {most}", "  %again = and i1 %open, %patient",
        "  br i1 %again, label %step, label %keep",
        "keep:", *last.lines, "  br label %take",
        "done:", "  ret void", "}",
    ])  # fmt: skip


def loop_over_blocks(
    name: str, before: str, after: str, size: str, blocks: str, body: list[str]
) -> list[str]:
    """Call something for each block of events."""
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


def report(words: str, result: str, told: int, blocks: str) -> list[str]:
    """Add up what the drawing of each block had to say."""
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
            f"  %result_p{k} = getelementptr double, ptr {result}, i64 {told + 1 + k}",
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
    """Write a stand-in for drawing: it copies the events of a toy from where they are given."""
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
