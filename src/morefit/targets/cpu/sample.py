"""The loop that draws events: random numbers, straight lines, again where a candidate is not accepted."""

from __future__ import annotations

from collections.abc import Mapping

from morefit.kernel.ir import MAX_DRAWS, Kernel
from morefit.kernel.symbols import EVENT
from morefit.random.xoshiro import TABLE
from morefit.targets.cpu.abi import REPORT_WORDS, argument
from morefit.targets.cpu.emit import emit_body
from morefit.targets.cpu.random import Philox, Xoshiro, integers
from morefit.targets.cpu.writer import ANY_DENORMALS, Vector, Writer


def start_generator(kernel: Kernel, head: Writer, toy: str, names: Mapping[str, str]) -> Philox | Xoshiro:
    """Begin the random numbers of a block, with the generator of the columns."""
    if kernel.draws.streams:
        return Xoshiro(head, toy, first_event(head), names[TABLE])
    return Philox(head, toy)


def sample_text(
    kernel: Kernel, vector: Vector, names: dict[str, str], head: Writer
) -> tuple[str, list[Writer]]:
    """Write ``block`` for a kernel that draws; ``head`` has loaded scalars and tables, ``names`` knows them."""
    body, whole, part = (Writer(vector, prefix) for prefix in ("t", "f", "g"))
    toy = head.let(f"add i64 {argument(head, 'first_toy')}, %set")
    generator = start_generator(kernel, head, toy, names)
    first = first_event(head)
    uniforms = generator.draw(body, kernel.draws.calls)
    columns = dict(zip(kernel.columns, kernel.draws.numbers, strict=True))
    known = names | {n: event_number(body) if k == EVENT else uniforms[k] for n, k in columns.items()}
    *drawn, accept, above = emit_body(body, kernel.per_event, known)
    count = len(drawn)
    rows = out_rows(head, count)
    store_whole(whole, rows)
    store_part(part, rows)
    mask, kind, many = vector.mask, vector.type, integers(vector)
    lanes = ", ".join(f"i64 {k}" for k in range(vector.width))
    accepted = body.compare("une", accept, body.number(0.0))
    waiting = body.let(f"xor {mask} %done, {ones(vector)}")
    fresh = body.let(f"and {mask} {accepted}, {waiting}")
    over = body.let(f"and {mask} {body.compare('une', above, body.number(0.0))}, {waiting}")
    any_over = reduce_mask(body, "or", over)
    body.lines += [f"  %x{k}n = select {mask} {fresh}, {kind} {x}, {kind} %x{k}" for k, x in enumerate(drawn)]
    body.lines += [f"  %done1 = or {mask} %done, {accepted}", f"  %over1 = or i1 %over, {any_over}"]
    finished = reduce_mask(body, "and", "%done1")
    lines = [
        *generator.functions(),
        "define void @block(ptr %args, i64 %set, i64 %begin, i64 %end, i64 %task)"
        f" noinline alignstack(64) {ANY_DENORMALS} {{",
        "entry:", *head.lines, "  br label %events",
        "events:",
        "  %i = phi i64 [ %begin, %entry ], [ %following, %next ]",
        "  %overs = phi i64 [ 0, %entry ], [ %overs1, %next ]", "  %fails = phi i64 [ 0, %entry ], [ %fails1, %next ]",
        f"  %relative = sub i64 %i, {first}", "  %left = sub i64 %end, %i",
        *spread_lines("event", "%relative", vector), f"  %event = add {many} %event_all, <{lanes}>",
        *generator.event_lines(),
        *spread_lines("room", "%left", vector), f"  %beyond = icmp sge {many} <{lanes}>, %room_all",
        "  br label %attempt",
        "attempt:",
        "  %draw = phi i64 [ 0, %events ], [ %draw1, %attempt ]",
        f"  %done = phi {mask} [ %beyond, %events ], [ %done1, %attempt ]",
        "  %over = phi i1 [ false, %events ], [ %over1, %attempt ]",
        *generator.attempt_lines(),
        *(f"  %x{k} = phi {kind} [ zeroinitializer, %events ], [ %x{k}n, %attempt ]" for k in range(count)),
        *body.lines,
        "  %draw1 = add i64 %draw, 1", f"  %patient = icmp slt i64 %draw1, {MAX_DRAWS}",
        f"  %open = xor i1 {finished}, true", "  %again = and i1 %open, %patient",
        "  br i1 %again, label %attempt, label %keep",
        "keep:", *generator.keep_lines(), "  %full = icmp sge i64 %left, " + str(vector.width), "  br i1 %full, label %whole, label %part",
        "whole:", *whole.lines, "  br label %next",
        "part:", *part.lines, "  br label %next",
        "next:",
        "  %over_count = zext i1 %over1 to i64", "  %overs1 = add i64 %overs, %over_count",
        "  %fail_count = zext i1 %open to i64", "  %fails1 = add i64 %fails, %fail_count",
        f"  %following = add i64 %i, {vector.width}", "  %more = icmp slt i64 %following, %end",
        "  br i1 %more, label %events, label %report",
        "report:", *report_lines(), "  ret void", "}",
    ]  # fmt: skip
    return "\n".join(lines), [body, part, head]


def event_number(body: Writer) -> str:
    """Convert the numbers of the events of a vector."""
    return body.let(f"uitofp {integers(body.vector)} %event to {body.vector.type}")


def ones(vector: Vector) -> str:
    return "<" + ", ".join(["i1 true"] * vector.width) + ">"


def spread_lines(name: str, number: str, vector: Vector) -> list[str]:
    many = integers(vector)
    return [
        f"  %{name}_one = insertelement {many} undef, i64 {number}, i32 0",
        f"  %{name}_all = shufflevector {many} %{name}_one, {many} undef, <{vector.width} x i32> zeroinitializer",
    ]


def first_event(head: Writer) -> str:
    """Find the first event of this set: events are counted from it."""
    place = head.let(f"mul i64 %set, {argument(head, 'bounds_step')}")
    address = head.let(f"getelementptr i64, ptr {argument(head, 'starts', 'ptr')}, i64 {place}")
    return head.let(f"load i64, ptr {address}")


def reduce_mask(w: Writer, how: str, mask: str) -> str:
    name = f"@llvm.vector.reduce.{how}.v{w.vector.width}i1"
    w.intrinsics[name] = f"declare i1 {name}({w.vector.mask})"
    return w.let(f"call i1 {name}({w.vector.mask} {mask})")


def out_rows(head: Writer, count: int) -> list[str]:
    """Find the row of each observable, and allocate a vector of which only some lanes are stored."""
    out, step = argument(head, "out", "ptr"), argument(head, "out_step")
    rows = []
    for k in range(count):
        rows.append(head.let(f"getelementptr double, ptr {out}, i64 {head.let(f'mul i64 {step}, {k}')}"))
        head.lines.append(f"  %buffer{k} = alloca {head.vector.type}, align 64")
    return rows


def store_whole(w: Writer, rows: list[str]) -> None:
    """Write full vectors."""
    for k, row in enumerate(rows):
        address = w.let(f"getelementptr double, ptr {row}, i64 %i")
        w.lines.append(f"  store {w.vector.type} %x{k}n, ptr {address}, align 8")


def store_part(w: Writer, rows: list[str]) -> None:
    """Write the lanes of the last vector through a buffer, so that no neighbour is hit."""
    name = "@llvm.memcpy.p0.p0.i64"
    w.intrinsics[name] = f"declare void {name}(ptr, ptr, i64, i1)"
    size = w.let("shl i64 %left, 3")
    for k, row in enumerate(rows):
        address = w.let(f"getelementptr double, ptr {row}, i64 %i")
        w.lines.append(f"  store {w.vector.type} %x{k}n, ptr %buffer{k}, align 64")
        w.lines.append(f"  call void {name}(ptr {address}, ptr %buffer{k}, i64 {size}, i1 false)")


def report_lines() -> list[str]:
    """Store the numbers of failures in the words of this task."""
    w = Writer(Vector(1), "r")
    partials = argument(w, "partials", "ptr")
    for k, name in enumerate(("%overs1", "%fails1")):
        index = w.let(f"add i64 {w.let(f'mul i64 %task, {REPORT_WORDS}')}, {k}")
        address = w.let(f"getelementptr double, ptr {partials}, i64 {index}")
        w.lines.append(f"  store double {w.let(f'sitofp i64 {name} to double')}, ptr {address}")
    return w.lines
