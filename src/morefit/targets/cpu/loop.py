"""The loop over the events of one block, for kernels that sum and kernels that store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

from morefit.dataclass import dataclass
from morefit.kernel.ir import Atom, Body, Kernel, Line, Sample, Sum
from morefit.targets.cpu.abi import argument, block_words, find_tables
from morefit.targets.cpu.codegen import FIXED_ARGUMENT, IN_ORDER
from morefit.targets.cpu.emit import emit_body
from morefit.targets.cpu.phases import Phase, cut_phases, is_function
from morefit.targets.cpu.reduce_events import Rank, Sums
from morefit.targets.cpu.sample import sample_text
from morefit.targets.cpu.writer import ANY_DENORMALS, Vector, Writer

PIECE = 32  # vectors of events that go through functions together, before their sums
PART = 8  # vectors: pieces are multiples of it
PHASES = (("functions_first", "%early", "a"), ("loop", "%i", "t"))  # block, event and prefix of each phase
MAX_BYTES = 1 << 14  # of what functions store for a piece: half of a small first-level cache
# scalars that are vectors before the loop: of more, most would be spilled, each to as much memory as eight of them take as numbers
# (61 parameters with 444 scalars: 137 ns per event for 170)
MAX_SPREAD = 64
CHUNK = 512  # vectors between two flushes: a product of that many mantissas stays below 2**512


# copies the scalars of one set, which lie a row of sets apart
OWN_SCALARS = """define internal void @own_scalars(ptr noalias %scalars, i64 %padded, i64 %set, ptr noalias %own, i64 %count) noinline {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %row = mul i64 %k, %padded
  %index = add i64 %row, %set
  %from = getelementptr double, ptr %scalars, i64 %index
  %number = load double, ptr %from
  %to = getelementptr double, ptr %own, i64 %k
  store double %number, ptr %to
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}"""


@dataclass(frozen=True)
class PieceLoop:
    """The loop of a phase: its block and the one before, its event, its lines, and what it carries."""

    label: str
    before: str
    event: str
    writer: Writer
    phis: list[str]


@dataclass
class Block:
    """Writes the function ``block`` of a kernel."""

    kernel: Kernel
    vector: Vector  # of the lines
    wide: Vector  # of the sums: as many numbers, in double precision
    sums: Sums = field(init=False)
    rank: Rank | None = field(init=False)
    stored: list[str] = field(default_factory=list)  # names that phases store for later ones
    piece: int = PIECE

    def __post_init__(self) -> None:
        frame, pairs = self.kernel.frame, self.kernel.pairs
        results = frame.results if isinstance(frame, Sum) else ()
        self.sums = Sums(tuple(r.reduce for r in results), self.wide)
        self.rank = Rank(pairs.count, self.wide, bool(pairs.right), pairs.groups) if pairs else None

    @property
    def words(self) -> int:
        return block_words(self.kernel)

    def text(self) -> tuple[str, list[Writer]]:
        head, flush = Writer(self.vector, "h"), Writer(self.wide, "f")
        names = self.load_scalars(head) | find_tables(self.kernel, head)
        loop = Writer(self.vector, "t", in_memory=self.in_memory)
        if isinstance(self.kernel.frame, Sample):
            return sample_text(self.kernel, self.vector, names, head)
        self.find_columns(head)
        pieces: list[PieceLoop] = []
        if isinstance(self.kernel.frame, Sum):
            body = self.kernel.per_event
            if phases := cut_phases(body, () if self.rank else self.sums.carried):
                pieces, registers = self.write_pieces(head, phases, names)
                loop = pieces[-1].writer
            else:
                registers = self.add_results(loop, body, names | self.load_columns(loop))
            self.sum_up(head, loop, flush, registers, pieces[-1].event if pieces else "%i")
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
            *self.chunk_lines(), *self.sums.before, *(self.piece_lines(pieces) if pieces else self.loop_lines(loop)),
            "flush:", *flush.lines, *middle, "  br label %next",
            "next:", "  %rest = icmp slt i64 %to, %end", "  br i1 %rest, label %chunk, label %done",
            "done:", *last, "  ret void", "}",
        ]  # fmt: skip
        notes = [IN_ORDER] if pieces and not self.rank else []
        notes += [FIXED_ARGUMENT] if self.has_fixed_argument() else []
        notes += [OWN_SCALARS] if self.in_memory else []
        text = "\n".join([*notes, self.rank.text(), *lines] if self.rank else [*notes, *lines])
        if self.rank:
            flush.intrinsics |= self.rank.declarations()
        return text, [*(piece.writer for piece in pieces[:-1]), loop, flush]

    def has_fixed_argument(self) -> bool:
        """Return whether a function in the loop has an argument that changes and one that does not."""
        known = set(self.kernel.scalars)
        calls = [line for line in self.kernel.per_event.lines if isinstance(line, Line) and is_function(line)]
        return any(len(line.args) > 1 and not known.isdisjoint(line.args) for line in calls)

    def loop_lines(self, loop: Writer) -> list[str]:
        """Go through the events of a chunk."""
        return [
            "  br label %loop",
            "loop:", "  %i = phi i64 [ %from, %chunk ], [ %following, %loop ]", *self.sums.phis, *loop.lines,
            f"  %following = add i64 %i, {self.vector.width}",
            "  %again = icmp slt i64 %following, %to",
            "  br i1 %again, label %loop, label %flush",
        ]  # fmt: skip

    def write_pieces(
        self, head: Writer, phases: Sequence[Phase], names: Mapping[str, str]
    ) -> tuple[list[PieceLoop], list[str]]:
        """Write the lines of each phase, which reads what earlier ones have stored; return the registers of all results."""
        v, self.sums.in_pieces = self.vector, True
        self.stored = [name for phase in phases for name in phase.stored]
        self.piece = min(PIECE, max(MAX_BYTES // (v.size * len(self.stored)) & -PART, PART))
        head.lines.append(f"  %stored = alloca [{self.piece * len(self.stored)} x {v.type}], align 64")
        loops: list[PieceLoop] = []
        registers: dict[int, str] = {}
        for n, phase in enumerate(phases):
            label, event, prefix = PHASES[n] if n < len(PHASES) else (f"loop{n}", f"%i{n}", f"t{n}_")
            w = Writer(v, prefix, in_memory=self.in_memory)
            before, carried = loops[-1].label if loops else "piece", len(self.sums.phis)
            self.sums.blocks = before, label
            addresses = self.places(w, event)
            known = [name for earlier in phases[:n] for name in earlier.stored]
            inputs = {**names, **self.load_columns(w, event), **self.load_stored(w, addresses, known)}
            results = tuple(self.kernel.per_event.results[k] for k in phase.sums)
            body = Body(phase.lines, (*results, *phase.stored))
            made = self.add_results(w, body, inputs, phase.sums)
            registers |= zip(phase.sums, made, strict=False)
            for name, register in zip(phase.stored, made[len(results) :], strict=True):
                w.lines.append(f"  store {v.type} {register}, ptr {addresses[name]}, align {v.size}")
            loops.append(PieceLoop(label, before, event, w, self.sums.phis[carried:]))
        return loops, [registers[k] for k in sorted(registers)]

    def piece_lines(self, loops: Sequence[PieceLoop]) -> list[str]:
        """Go through the events of a chunk piece by piece, and through each piece once for every phase."""
        width = self.vector.width
        lines = [
            "  br label %piece",
            "piece:", "  %piece_from = phi i64 [ %from, %chunk ], [ %piece_to, %over ]", *self.sums.piece_phis,
            f"  %wish_of_piece = add i64 %piece_from, {self.piece * width}",
            "  %piece_to = call i64 @llvm.smin.i64(i64 %wish_of_piece, i64 %to)",
            f"  br label %{loops[0].label}",
        ]  # fmt: skip
        for loop, after in zip(loops, [*(one.label for one in loops[1:]), "over"], strict=True):
            following = f"%next_{loop.event[1:]}"
            lines += [
                f"{loop.label}:",
                f"  {loop.event} = phi i64 [ %piece_from, %{loop.before} ], [ {following}, %{loop.label} ]",
                *loop.phis, *loop.writer.lines,
                f"  {following} = add i64 {loop.event}, {width}",
                f"  %more_{loop.event[1:]} = icmp slt i64 {following}, %piece_to",
                f"  br i1 %more_{loop.event[1:]}, label %{loop.label}, label %{after}",
            ]  # fmt: skip
        return [
            *lines,
            "over:", "  %pieces_left = icmp slt i64 %piece_to, %to",
            "  br i1 %pieces_left, label %piece, label %flush",
        ]  # fmt: skip

    def load_stored(self, w: Writer, addresses: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
        """Read what earlier phases have stored; LLVM leaves out what is not used."""
        load = f"load {self.vector.type}, ptr {{}}, align {self.vector.size}"
        return {name: w.let(load.format(addresses[name])) for name in names}

    def places(self, w: Writer, event: str) -> dict[str, str]:
        """Return where the stored numbers of a vector of events are."""
        row = w.let(f"mul i64 {w.let(f'sub i64 {event}, %piece_from')}, {len(self.stored)}")
        base = w.let(f"getelementptr {self.vector.scalar}, ptr %stored, i64 {row}")
        return {
            name: w.let(f"getelementptr {self.vector.type}, ptr {base}, i64 {k}")
            for k, name in enumerate(self.stored)
        }

    def add_results(
        self, loop: Writer, body: Body, names: Mapping[str, str], places: Sequence[int] | None = None
    ) -> list[str]:
        """Write the lines of an event and add its results; after phases each as soon as it is known: none waits in a register.

        ``places`` are those of the results among all, if there are others.
        """
        every = range(len(self.kernel.sums.results))  # but for factors of pairs
        places = every if places is None else places
        waiting: dict[Atom, list[int]] = {}
        for k, result in zip(places, body.results, strict=False):
            if k in every:
                waiting.setdefault(result, []).append(k)

        def add(name: str, register: str) -> None:
            for k in waiting.pop(name, ()) if self.sums.in_pieces else ():
                self.sums.update(loop, k, register)

        registers = emit_body(loop, body, names, flushed=True, after=add)
        for k, register in zip(places, registers, strict=False):
            if any(k in same for same in waiting.values()):
                self.sums.update(loop, k, register)
        return registers

    def load_scalars(self, head: Writer) -> dict[str, str]:
        """Spread each scalar of this set over a vector, and return their registers; many are copied, to be loaded where they are used."""
        v = self.vector
        scalars, padded = argument(head, "scalars", "ptr"), argument(head, "padded")
        if self.in_memory:
            head.lines += [
                f"  %own = alloca [{len(self.in_memory)} x double], align 64",
                f"  call void @own_scalars(ptr {scalars}, i64 {padded}, i64 %set, ptr %own, i64 {len(self.in_memory)})",
            ]
            return {}
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
        return {name: f"%s{k}" for k, name in enumerate(self.kernel.scalars)}

    @cached_property
    def in_memory(self) -> dict[str, str]:
        """The places of scalars that are loaded where they are used: too many to stay in registers or, spread, in a cache."""
        names = self.kernel.scalars
        if len(names) <= MAX_SPREAD or not isinstance(self.kernel.frame, Sum) or self.has_fixed_argument():
            return {}
        return {name: f"getelementptr double, ptr %own, i64 {k}" for k, name in enumerate(names)}

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

    def sum_up(self, head: Writer, loop: Writer, flush: Writer, registers: list[str], event: str) -> None:
        """Carry sums through the loop and add them to the block's words; ``event`` is that of the last phase."""
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
            self.rank.store_lines(loop, event, factors[:left], factors[left:])

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
