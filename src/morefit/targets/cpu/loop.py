"""The loop over the events of one block, for kernels that sum and kernels that store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from morefit.kernel import Atom, Body, Kernel, Line, Sample, Sum
from morefit.targets.cpu.abi import argument, block_words, find_tables
from morefit.targets.cpu.compile import FIXED_ARGUMENT, IN_ORDER
from morefit.targets.cpu.emit import emit_body
from morefit.targets.cpu.pairs import Rank
from morefit.targets.cpu.phases import cut_phases, is_function
from morefit.targets.cpu.reduce_events import Sums
from morefit.targets.cpu.sample import sample_text
from morefit.targets.cpu.writer import ANY_DENORMALS, Vector, Writer

PIECE = 32  # vectors of events that go through functions together, before their sums
CHUNK = 512  # vectors between two flushes: a product of that many mantissas stays below 2**512


@dataclass
class Block:
    """Writes the function ``block`` of a kernel."""

    kernel: Kernel
    vector: Vector  # of the lines
    wide: Vector  # of the sums: as many numbers, in double precision
    sums: Sums = field(init=False)
    rank: Rank | None = field(init=False)

    def __post_init__(self) -> None:
        frame, pairs = self.kernel.frame, self.kernel.pairs
        results = frame.results if isinstance(frame, Sum) else ()
        self.sums = Sums(tuple(r.reduce for r in results), self.wide)
        self.rank = Rank(pairs.count, self.wide, bool(pairs.right), pairs.groups) if pairs else None

    @property
    def words(self) -> int:
        return block_words(self.kernel)

    def text(self) -> tuple[str, list[Writer]]:
        head, loop, flush = Writer(self.vector, "h"), Writer(self.vector, "t"), Writer(self.wide, "f")
        self.load_scalars(head)
        names = {name: f"%s{k}" for k, name in enumerate(self.kernel.scalars)} | find_tables(
            self.kernel, head
        )
        if isinstance(self.kernel.frame, Sample):
            return sample_text(self.kernel, self.vector, names, head)
        self.find_columns(head)
        ahead: list[Writer] = []
        if isinstance(self.kernel.frame, Sum):
            body = self.kernel.per_event
            if phases := cut_phases(body):
                ahead.append(self.compute_ahead(head, phases[0], names))
                names |= self.load_ahead(loop, phases[0])
                self.sums.in_pieces, body = True, phases[1]
            self.sum_up(head, loop, flush, self.add_results(loop, body, names | self.load_columns(loop)))
        else:
            names |= self.load_columns(loop)
            self.store_all(head, loop, flush, emit_body(loop, self.kernel.per_event, names))
        middle = self.rank.flush_lines() if self.rank else []
        last = self.rank.finish_lines("%partial", self.sums.words) if self.rank else []
        lines = [
            # an unaligned stack lets every spilled vector cross a cache line: up to 1.7 times slower
            "define void @block(ptr %args, i64 %set, i64 %begin, i64 %end, i64 %task)"
            f" noinline alignstack(64) {ANY_DENORMALS} {{",
            "entry:", *head.lines, *self.sums.head, "  br label %chunk",
            "chunk:", "  %from = phi i64 [ %begin, %entry ], [ %to, %next ]",
            *self.chunk_lines(), *self.sums.before, *self.loop_lines(loop, *ahead),
            "flush:", *flush.lines, *middle, "  br label %next",
            "next:", "  %rest = icmp slt i64 %to, %end", "  br i1 %rest, label %chunk, label %done",
            "done:", *last, "  ret void", "}",
        ]  # fmt: skip
        notes = [IN_ORDER] if ahead and not self.rank else []
        notes += [FIXED_ARGUMENT] if self.has_fixed_argument() else []
        text = "\n".join([*notes, self.rank.text(), *lines] if self.rank else [*notes, *lines])
        if self.rank:
            flush.intrinsics |= self.rank.declarations()
        return text, [*ahead, loop, flush]

    def has_fixed_argument(self) -> bool:
        """Return whether a function in the loop has an argument that changes and one that does not."""
        known = set(self.kernel.scalars)
        calls = [line for line in self.kernel.per_event.lines if isinstance(line, Line) and is_function(line)]
        return any(len(line.args) > 1 and not known.isdisjoint(line.args) for line in calls)

    def loop_lines(self, loop: Writer, ahead: Writer | None = None) -> list[str]:
        """Go through the events of a chunk; piece by piece and twice through each if some lines come first."""
        width = self.vector.width
        if ahead is None:
            return [
                "  br label %loop",
                "loop:", "  %i = phi i64 [ %from, %chunk ], [ %following, %loop ]", *self.sums.phis, *loop.lines,
                f"  %following = add i64 %i, {width}",
                "  %again = icmp slt i64 %following, %to",
                "  br i1 %again, label %loop, label %flush",
            ]  # fmt: skip
        return [
            "  br label %piece",
            "piece:", "  %piece_from = phi i64 [ %from, %chunk ], [ %piece_to, %over ]", *self.sums.piece_phis,
            f"  %wish_of_piece = add i64 %piece_from, {PIECE * width}",
            "  %piece_to = call i64 @llvm.smin.i64(i64 %wish_of_piece, i64 %to)",
            "  br label %functions_first",
            "functions_first:", "  %early = phi i64 [ %piece_from, %piece ], [ %next_early, %functions_first ]", *ahead.lines,
            f"  %next_early = add i64 %early, {width}",
            "  %more_early = icmp slt i64 %next_early, %piece_to",
            "  br i1 %more_early, label %functions_first, label %loop",
            "loop:", "  %i = phi i64 [ %piece_from, %functions_first ], [ %following, %loop ]", *self.sums.phis, *loop.lines,
            f"  %following = add i64 %i, {width}",
            "  %again = icmp slt i64 %following, %piece_to",
            "  br i1 %again, label %loop, label %over",
            "over:", "  %pieces_left = icmp slt i64 %piece_to, %to",
            "  br i1 %pieces_left, label %piece, label %flush",
        ]  # fmt: skip

    def compute_ahead(self, head: Writer, body: Body, names: Mapping[str, str]) -> Writer:
        """Compute what comes first for the events of a piece, and store it."""
        w, v = Writer(self.vector, "a"), self.vector
        head.lines.append(f"  %stored = alloca [{PIECE * len(body.results)} x {v.type}], align 64")
        registers = emit_body(w, body, {**names, **self.load_columns(w, "%early")}, flushed=True)
        for register, address in zip(registers, self.stored(w, "%early", len(registers)), strict=True):
            w.lines.append(f"  store {v.type} {register}, ptr {address}, align {v.size}")
        return w

    def load_ahead(self, loop: Writer, body: Body) -> dict[str, str]:
        """Read what was stored."""
        addresses = self.stored(loop, "%i", len(body.results))
        return {
            str(name): loop.let(f"load {self.vector.type}, ptr {address}, align {self.vector.size}")
            for name, address in zip(body.results, addresses, strict=True)
        }

    def stored(self, w: Writer, event: str, count: int) -> list[str]:
        """Return where the numbers of a vector of events are stored."""
        row = w.let(f"mul i64 {w.let(f'sub i64 {event}, %piece_from')}, {count}")
        base = w.let(f"getelementptr {self.vector.scalar}, ptr %stored, i64 {row}")
        return [w.let(f"getelementptr {self.vector.type}, ptr {base}, i64 {k}") for k in range(count)]

    def add_results(self, loop: Writer, body: Body, names: Mapping[str, str]) -> list[str]:
        """Write the lines of an event and add its results; after phases each as soon as it is known: none waits in a register."""
        waiting: dict[Atom, list[int]] = {}
        for k, result in enumerate(body.results[: len(self.kernel.sums.results)]):
            waiting.setdefault(result, []).append(k)

        def add(name: str, register: str) -> None:
            for k in waiting.pop(name, ()) if self.sums.in_pieces else ():
                self.sums.update(loop, k, register)

        registers = emit_body(loop, body, names, flushed=True, after=add)
        for k in sorted(k for places in waiting.values() for k in places):
            self.sums.update(loop, k, registers[k])
        return registers

    def load_scalars(self, head: Writer) -> None:
        """Spread each scalar of this set over a vector."""
        v = self.vector
        scalars, padded = argument(head, "scalars", "ptr"), argument(head, "padded")
        for k, _ in enumerate(self.kernel.scalars):
            index = head.let(f"add i64 {head.let(f'mul i64 {padded}, {k}')}, %set")
            number = head.let(
                f"load double, ptr {head.let(f'getelementptr double, ptr {scalars}, i64 {index}')}"
            )
            if v.bits == 32:
                number = head.let(f"fptrunc double {number} to float")
            one = head.let(f"insertelement {v.type} undef, {v.scalar} {number}, i32 0")
            spread = f"shufflevector {v.type} {one}, {v.type} undef, <{v.width} x i32> zeroinitializer"
            head.lines.append(f"  %s{k} = {spread}")

    def find_columns(self, head: Writer) -> None:
        """Find where each column of this set begins, and where the full vectors end."""
        table = argument(head, "columns", "ptr")
        for k, _ in enumerate(self.kernel.columns):
            base = head.let(f"load ptr, ptr {head.let(f'getelementptr i64, ptr {table}, i64 {2 * k}')}")
            step = head.let(f"load i64, ptr {head.let(f'getelementptr i64, ptr {table}, i64 {2 * k + 1}')}")
            offset = head.let(f"mul i64 {step}, %set")
            head.lines.append(f"  %c{k} = getelementptr {self.vector.scalar}, ptr {base}, i64 {offset}")
        head.lines += [
            "  %count = sub i64 %end, %begin",
            f"  %full = and i64 %count, {-self.vector.width}",
            "  %middle = add i64 %begin, %full",
        ]

    def load_columns(self, loop: Writer, event: str = "%i") -> dict[str, str]:
        names, v = {}, self.vector
        for k, name in enumerate(self.kernel.columns):
            address = loop.let(f"getelementptr {v.scalar}, ptr %c{k}, i64 {event}")
            names[name] = loop.let(f"load {v.type}, ptr {address}, align {v.bits // 8}")
        return names

    def chunk_lines(self) -> list[str]:
        """Find the next chunk: as many full vectors as it takes, or the last, partly filled one."""
        width, vectors = self.vector.width, self.rank.rows if self.rank else CHUNK
        lanes = ", ".join(f"i64 {k}" for k in range(width))
        many = f"<{width} x i64>"
        return [
            f"  %wish = add i64 %from, {vectors * width}",
            "  %most = call i64 @llvm.smin.i64(i64 %wish, i64 %middle)",
            "  %tail = icmp sge i64 %from, %middle",
            f"  %beyond = add i64 %from, {width}",
            "  %to = select i1 %tail, i64 %beyond, i64 %most",
            "  %left_over = sub i64 %end, %from",
            f"  %lanes = select i1 %tail, i64 %left_over, i64 {width}",
            f"  %one_lane = insertelement {many} undef, i64 %lanes, i32 0",
            f"  %all_lanes = shufflevector {many} %one_lane, {many} undef, <{width} x i32> zeroinitializer",
            f"  %mask = icmp ult {many} <{lanes}>, %all_lanes",
        ]

    def sum_up(self, head: Writer, loop: Writer, flush: Writer, registers: list[str]) -> None:
        """Carry sums through the loop and add them to the block's words."""
        count = len(self.kernel.sums.results)
        offset = head.let(f"mul i64 %task, {self.words}")
        head.lines.append(
            f"  %partial = getelementptr double, ptr {argument(head, 'partials', 'ptr')}, i64 {offset}"
        )
        for k in range(self.sums.words):
            head.lines.append(
                f"  store double 0.0, ptr {head.let(f'getelementptr double, ptr %partial, i64 {k}')}"
            )
        self.sums.flush(flush)
        if self.rank:
            head.lines += self.rank.head_lines()
            factors = [self.widen(loop, r) for r in registers[count:]]
            left = self.rank.count * self.rank.groups
            self.rank.store_lines(loop, factors[:left], factors[left:])

    def widen(self, loop: Writer, register: str) -> str:
        if self.vector.bits == 64:
            return register
        return loop.let(f"fpext {self.vector.type} {register} to {self.wide.type}")

    def store_all(self, head: Writer, loop: Writer, flush: Writer, registers: list[str]) -> None:
        """Write every result of every event; the last vector goes through a buffer, so that no neighbour is hit."""
        wide = self.wide
        out, step = argument(head, "out", "ptr"), argument(head, "out_step")
        first = head.let(f"mul i64 %set, {len(registers)}")
        offset = loop.let("sub i64 %i, %from")
        size = flush.let("shl i64 %lanes, 3")
        flush.intrinsics["@llvm.memcpy.p0.p0.i64"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        for k, register in enumerate(registers):
            row = head.let(f"mul i64 {head.let(f'add i64 {first}, {k}')}, {step}")
            head.lines.append(f"  %row{k} = getelementptr double, ptr {out}, i64 {row}")
            head.lines.append(f"  %buffer{k} = alloca {wide.type}, align 64")
            self.sums.before += [
                f"  %place{k} = getelementptr double, ptr %row{k}, i64 %from",
                f"  %to{k} = select i1 %tail, ptr %buffer{k}, ptr %place{k}",
            ]
            address = loop.let(f"getelementptr double, ptr %to{k}, i64 {offset}")
            loop.lines.append(f"  store {wide.type} {self.widen(loop, register)}, ptr {address}, align 8")
            length = flush.let(f"select i1 %tail, i64 {size}, i64 0")
            call = f"call void @llvm.memcpy.p0.p0.i64(ptr %place{k}, ptr %buffer{k}, i64 {length}, i1 false)"
            flush.lines.append(f"  {call}")
