"""The loops that draw events: random numbers, straight lines, again where a candidate is not accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from morefit.dataclass import dataclass
from morefit.kernel.ir import MAX_DRAWS, Kernel
from morefit.kernel.symbols import EVENT
from morefit.random.xoshiro import BLOCK, TABLE
from morefit.targets.cpu.abi import REPORT_WORDS, Target, argument
from morefit.targets.cpu.emit import emit_body
from morefit.targets.cpu.random import Philox, Xoshiro, integers, small, spread
from morefit.targets.cpu.writer import ANY_DENORMALS, Vector, Writer

# vectors whose lines alternate: each line waits for the one before, and there are too many to look far ahead (an angular
# event takes 6.4 ns for 8.5 by one, 7.5 by four; a mass 5.9 for 7.7, 5.6)
TOGETHER = 2
FEW_LINES = 64  # of more, a tenth of the time to draw is not worth the time to compile them, which doubles
BEGIN = (
    "define void @block(ptr %args, i64 %set, i64 %begin, i64 %end, i64 %task)"
    f" noinline alignstack(64) {ANY_DENORMALS} {{"
)


def vectors_together(kernel: Kernel, target: Target) -> int:
    """Return how many vectors of candidates are made at a time; never a single lane, which LLVM cannot pack."""
    return TOGETHER if len(kernel.per_event.lines) <= FEW_LINES or target.width == 1 else 1


def sample_text(
    kernel: Kernel, vector: Vector, names: Mapping[str, str], head: Writer
) -> tuple[str, list[Writer]]:
    """Write ``block`` for a kernel that draws; ``head`` has loaded scalars and tables, ``names`` knows them."""
    toy = head.let(f"add i64 {argument(head, 'first_toy')}, %set")
    first = first_event(head)
    if kernel.draws.streams:
        return streams_text(
            Candidate(kernel, vector, names), Xoshiro(head, toy, first, names[TABLE]), head, first
        )
    return turns_text(Candidate(kernel, vector, names), Philox(head, toy), head, first)


@dataclass(eq=False)
class Candidate:
    """The lines that make a candidate for each lane of a vector, its observables, and whether it is accepted."""

    kernel: Kernel
    vector: Vector
    names: Mapping[str, str]
    body: Writer = field(init=False)
    drawn: list[str] = field(init=False)
    accepted: str = field(init=False)
    above: str = field(init=False)

    def write(self, generator: Philox | Xoshiro) -> None:
        """Write them, for events whose numbers are ``%event``."""
        self.body = Writer(self.vector, "t")
        uniforms = generator.draw(self.body, self.kernel.draws.calls)
        columns = dict(zip(self.kernel.columns, self.kernel.draws.numbers, strict=True))
        events = {n: event_number(self.body) if k == EVENT else uniforms[k] for n, k in columns.items()}
        *self.drawn, accept, above = emit_body(self.body, self.kernel.per_event, {**self.names, **events})
        self.accepted, self.above = (
            self.body.compare("une", x, self.body.number(0.0)) for x in (accept, above)
        )

    @property
    def always_accepted(self) -> bool:
        return self.kernel.per_event.results[-2] == 1.0


def turns_text(candidate: Candidate, generator: Philox, head: Writer, first: str) -> tuple[str, list[Writer]]:
    """Write turns: a candidate for each event, then one for each whose candidate was rejected, until none is.

    No lane waits for others. Every number is a function of its event and its turn, so the order does not matter.
    """
    v, many = candidate.vector, integers(candidate.vector)
    begin, whole, part = (Writer(v, prefix) for prefix in ("b", "f", "g"))
    # rejected events, counted from the first of this block; lanes past the end read on
    head.lines.append(f"  %list = alloca [{BLOCK + v.width} x i32], align 64")
    ahead = spread(head, head.let(f"sub i64 %begin, {first}"))
    rows = out_rows(head, len(candidate.kernel.per_event.results) - 2)
    begin.lines += [
        "  %place = getelementptr i32, ptr %list, i64 %i",
        f"  %listed = load {small(v)}, ptr %place, align 4",
    ]
    begin.lines.append(f"  %offset = zext {small(v)} %listed to {many}")
    begin.lines.append(f"  %event = add {many} %offset, {ahead}")
    begin.lines.append(f"  %inside = icmp slt {many} {lane_numbers(v)}, {spread(begin, '%left')}")
    candidate.write(generator)
    body = candidate.body
    over = body.both(candidate.above, "%inside")
    body.lines.append(f"  %over1 = or {v.mask} %over, {over}")
    fresh = body.both(candidate.accepted, "%inside")
    rejected = body.let(f"xor {v.mask} {fresh}, %inside")
    waiting = "0" if candidate.always_accepted else keep_rejected(body, rejected)
    store_whole(whole, rows, candidate.drawn, whole.let("add i64 %begin, %i"))
    scatter(part, rows, candidate.drawn, part.let(f"add {many} %offset, {spread(part, '%begin')}"), fresh)
    any_over = Writer(v, "r")
    some = reduce_mask(any_over, "or", "%over1")
    lines = [
        BEGIN,
        "entry:", *head.lines, "  %count = sub i64 %end, %begin", "  br label %number",
        "number:",  # the events of the first turn: all
        "  %numbered = phi i64 [ 0, %entry ], [ %numbered1, %number ]", *numbering_lines(v), f"  %numbered1 = add i64 %numbered, {v.width}",
        "  %unnumbered = icmp slt i64 %numbered1, %count", "  br i1 %unnumbered, label %number, label %turn",
        "turn:",
        "  %draw = phi i64 [ 0, %number ], [ %draw1, %turned ]", "  %size = phi i64 [ %count, %number ], [ %waiting1, %turned ]",
        f"  %overs = phi {v.mask} [ zeroinitializer, %number ], [ %over1, %turned ]",
        "  %all = icmp eq i64 %draw, 0", "  br label %events",
        "events:",
        "  %i = phi i64 [ 0, %turn ], [ %following, %next ]", "  %waiting = phi i64 [ 0, %turn ], [ %waiting1, %next ]",
        f"  %over = phi {v.mask} [ %overs, %turn ], [ %over1, %next ]", "  %left = sub i64 %size, %i",
        *begin.lines, *body.lines, f"  %waiting1 = add i64 {waiting}, 0",
        f"  %full = icmp sge i64 %left, {v.width}", "  %in_order = and i1 %full, %all",
        "  br i1 %in_order, label %whole, label %part",
        "whole:", *whole.lines, "  br label %next",
        "part:", *part.lines, "  br label %next",
        "next:",
        f"  %following = add i64 %i, {v.width}", "  %more = icmp slt i64 %following, %size",
        "  br i1 %more, label %events, label %turned",
        "turned:",
        "  %draw1 = add i64 %draw, 1", f"  %patient = icmp slt i64 %draw1, {MAX_DRAWS}",
        "  %open = icmp sgt i64 %waiting1, 0", "  %again = and i1 %open, %patient",
        "  br i1 %again, label %turn, label %report",
        "report:", *any_over.lines, f"  %overs1 = zext i1 {some} to i64",
        *report_lines("%overs1", "%waiting1"), "  ret void", "}",
    ]  # fmt: skip
    return "\n".join(lines), [body, part, head, any_over]


def numbering_lines(vector: Vector) -> list[str]:
    """Number events in order, a vector of them from ``%numbered`` on."""
    w = Writer(vector, "n")
    numbers = w.let(f"add {integers(vector)} {spread(w, '%numbered')}, {lane_numbers(vector)}")
    short = w.let(f"trunc {integers(vector)} {numbers} to {small(vector)}")
    w.lines.append(
        f"  store {small(vector)} {short}, ptr {w.let('getelementptr i32, ptr %list, i64 %numbered')}, align 4"
    )
    return w.lines


def keep_rejected(w: Writer, rejected: str) -> str:
    """Move the rejected events of a vector behind those before it; return how many there are then.

    Whole vectors are stored: what lies behind was read before, or is overwritten by the next.
    """
    width, kind, mask = w.vector.width, small(w.vector), w.vector.mask
    compress, count = f"@llvm.experimental.vector.compress.v{width}i32", f"@llvm.ctpop.i{width}"
    w.intrinsics[compress] = f"declare {kind} {compress}({kind}, {mask}, {kind})"
    w.intrinsics[count] = f"declare i{width} {count}(i{width})"
    packed = w.let(f"call {kind} {compress}({kind} %listed, {mask} {rejected}, {kind} poison)")
    address = w.let("getelementptr i32, ptr %list, i64 %waiting")
    w.lines.append(f"  store {kind} {packed}, ptr {address}, align 4")
    bits = w.let(f"bitcast {mask} {rejected} to i{width}")
    found = w.let(f"call i{width} {count}(i{width} {bits})")
    return w.let(f"add i64 %waiting, {w.let(f'zext i{width} {found} to i64')}")


def scatter(w: Writer, rows: list[str], drawn: list[str], places: str, mask: str) -> None:
    """Write some lanes, each to the place of its event."""
    v, pointers = w.vector, f"<{w.vector.width} x ptr>"
    name = f"@llvm.masked.scatter.v{v.width}f64.v{v.width}p0"
    w.intrinsics[name] = f"declare void {name}({v.type}, {pointers}, i32, {v.mask})"
    for row, x in zip(rows, drawn, strict=True):
        address = w.let(f"getelementptr double, ptr {row}, {integers(v)} {places}")
        w.lines.append(f"  call void {name}({v.type} {x}, {pointers} {address}, i32 8, {v.mask} {mask})")


def streams_text(
    candidate: Candidate, generator: Xoshiro, head: Writer, first: str
) -> tuple[str, list[Writer]]:
    """Write a loop over vectors of events: candidates until each lane has accepted one, since streams go on from there."""
    vector, count = candidate.vector, len(candidate.kernel.per_event.results) - 2
    begin, whole, part = (Writer(vector, prefix) for prefix in ("b", "f", "g"))
    begin.lines.append(
        f"  %event = add {integers(vector)} {spread(begin, '%relative')}, {lane_numbers(vector)}"
    )
    begin.lines.append(
        f"  %beyond = icmp sge {integers(vector)} {lane_numbers(vector)}, {spread(begin, '%left')}"
    )
    candidate.write(generator)
    body, accepted = candidate.body, candidate.accepted
    rows = out_rows(head, count)
    results = [f"%x{k}n" for k in range(count)]
    store_whole(whole, rows, results, "%i")
    places = part.let(f"add {integers(vector)} {spread(part, '%i')}, {lane_numbers(vector)}")
    inside = part.let(f"xor {vector.mask} %beyond, {vector.all_true}")
    scatter(part, rows, results, places, inside)
    mask, kind = vector.mask, vector.type
    waiting = body.let(f"xor {mask} %done, {vector.all_true}")
    fresh = body.both(accepted, waiting)
    any_over = reduce_mask(body, "or", body.both(candidate.above, waiting))
    body.lines += [
        f"  %x{k}n = select {mask} {fresh}, {kind} {x}, {kind} %x{k}" for k, x in enumerate(candidate.drawn)
    ]
    body.lines += [f"  %done1 = or {mask} %done, {accepted}", f"  %over1 = or i1 %over, {any_over}"]
    finished = reduce_mask(body, "and", "%done1")
    lines = [
        *generator.functions(),
        BEGIN,
        "entry:", *head.lines, "  br label %events",
        "events:",
        "  %i = phi i64 [ %begin, %entry ], [ %following, %next ]",
        "  %overs = phi i64 [ 0, %entry ], [ %overs1, %next ]", "  %fails = phi i64 [ 0, %entry ], [ %fails1, %next ]",
        f"  %relative = sub i64 %i, {first}", "  %left = sub i64 %end, %i",
        *begin.lines, *generator.event_lines(),
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
        "report:", *report_lines("%overs1", "%fails1"), "  ret void", "}",
    ]  # fmt: skip
    return "\n".join(lines), [body, part, head]


def event_number(body: Writer) -> str:
    """Convert the numbers of the events of a vector."""
    return body.let(f"uitofp {integers(body.vector)} %event to {body.vector.type}")


def lane_numbers(vector: Vector) -> str:
    return "<" + ", ".join(f"i64 {k}" for k in range(vector.width)) + ">"


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
    """Find the row of each observable."""
    out, step = argument(head, "out", "ptr"), argument(head, "out_step")
    places = [head.let(f"mul i64 {step}, {k}") for k in range(count)]
    return [head.let(f"getelementptr double, ptr {out}, i64 {place}") for place in places]


def store_whole(w: Writer, rows: list[str], drawn: list[str], place: str) -> None:
    """Write full vectors of events that follow each other."""
    for row, x in zip(rows, drawn, strict=True):
        address = w.let(f"getelementptr double, ptr {row}, i64 {place}")
        w.lines.append(f"  store {w.vector.type} {x}, ptr {address}, align 8")


def report_lines(above: str, abandoned: str) -> list[str]:
    """Store the numbers of failures in the words of this task."""
    w = Writer(Vector(1), "w")
    partials = argument(w, "partials", "ptr")
    for k, name in enumerate((above, abandoned)):
        index = w.let(f"add i64 {w.let(f'mul i64 %task, {REPORT_WORDS}')}, {k}")
        address = w.let(f"getelementptr double, ptr {partials}, i64 {index}")
        w.lines.append(f"  store double {w.let(f'sitofp i64 {name} to double')}, ptr {address}")
    return w.lines
