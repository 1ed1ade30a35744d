"""How events become sums, as LLVM IR: results one by one, and products of all pairs out of many factors in tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from morefit.dataclass import dataclass
from morefit.kernel.ir import EXPONENT_ONE, MANTISSA, RANGE, SMALLEST, WORDS, Reduce
from morefit.targets.cpu.abi import SIDE, pair_words
from morefit.targets.cpu.writer import Vector, Writer

IN_REGISTERS = 64  # vectors; more of them live in memory, which spares the compiler from spilling them itself

# the vectors carried around the loop, as (type, first value); and the words they become in a block's result:
# ADD a sum; EXACT a sum and its correction; LOG a logarithm, a binary exponent and whether a density was bad
STATE: dict[Reduce, tuple[tuple[str, str], ...]] = {
    Reduce.ADD: (("number", "0"),),
    Reduce.EXACT: (("number", "0"), ("number", "0")),
    Reduce.LOG: (("number", "1"), ("integer", "0"), ("integer", "0")),
}


@dataclass
class Sums:
    """Writes what keeps the sums of one block: before, inside and after the loop."""

    kinds: tuple[Reduce, ...]
    vector: Vector  # of the sums, in double precision
    head: list[str] = field(default_factory=list)  # once per block
    before: list[str] = field(default_factory=list)  # before the loop over a chunk
    phis: list[str] = field(default_factory=list)  # at the top of the loop
    in_pieces: bool = False  # whether there is a loop around it, over pieces of the chunk
    blocks: tuple[str, str] = ("functions_first", "loop")  # the block before the loop, and the loop
    piece_phis: list[str] = field(default_factory=list)  # at the top of that

    def __post_init__(self) -> None:
        self.too_many = sum(self.carried) > IN_REGISTERS

    @property
    def carried(self) -> list[int]:
        """How many vectors each sum carries through the loop."""
        return [len(STATE[kind]) for kind in self.kinds]

    @property
    def in_memory(self) -> bool:
        """Whether a sum is loaded and stored for every vector of events; several loops have few sums each."""
        return self.too_many and not self.in_pieces

    @property
    def words(self) -> int:
        return sum(WORDS[k] for k in self.kinds)

    def first_word(self, k: int) -> int:
        return sum(WORDS[kind] for kind in self.kinds[:k])

    def kind(self, what: str) -> str:
        return self.vector.type if what == "number" else self.vector.integers

    def update(self, loop: Writer, k: int, result: str) -> None:
        """Add one vector of events to the carried vectors of a sum."""
        v, how = self.vector, self.kinds[k]
        if loop.vector.bits != v.bits:
            result = loop.let(f"fpext {loop.vector.type} {result} to {v.type}")
        old = [self.load(loop, k, part) for part in range(len(STATE[how]))]
        for part, new in enumerate(UPDATE[how](loop.widened(v), result, *old)):
            self.keep(loop, k, part, new)

    def load(self, loop: Writer, k: int, part: int) -> str:
        what, first = STATE[self.kinds[k]][part]
        kind = self.kind(what)
        splat = "zeroinitializer" if first == "0" else Writer(self.vector).number(1.0)
        if not self.in_memory:
            start, new = f"{splat}, %chunk", f"%n{k}_{part}"
            if self.in_pieces:
                self.piece_phis.append(f"  %p{k}_{part} = phi {kind} [ {start} ], [ {new}, %over ]")
                start = f"%p{k}_{part}, %{self.blocks[0]}"
            self.phis.append(f"  %a{k}_{part} = phi {kind} [ {start} ], [ {new}, %{self.blocks[1]} ]")
            return f"%a{k}_{part}"
        self.head.append(f"  %m{k}_{part} = alloca {kind}, align 64")
        self.before.append(f"  store {kind} {splat}, ptr %m{k}_{part}, align 64")
        return loop.let(f"load {kind}, ptr %m{k}_{part}, align 64")

    def keep(self, loop: Writer, k: int, part: int, new: str) -> None:
        kind = self.kind(STATE[self.kinds[k]][part][0])
        if self.in_memory:
            loop.lines.append(f"  store {kind} {new}, ptr %m{k}_{part}, align 64")
        else:
            loop.lines.append(f"  %n{k}_{part} = bitcast {kind} {new} to {kind}")

    def flush(self, flush: Writer) -> None:
        """Reduce the carried vectors and add them to the block's words; lanes past the last event do not count."""
        for k, how in enumerate(self.kinds):
            for part, (what, first) in enumerate(STATE[how]):
                kind = self.kind(what)
                name = f"%n{k}_{part}"
                if self.in_memory:
                    name = flush.let(f"load {kind}, ptr %m{k}_{part}, align 64")
                neutral = "zeroinitializer" if first == "0" else flush.number(1.0)
                name = flush.let(f"select {self.vector.mask} %mask, {kind} {name}, {kind} {neutral}")
                word = REDUCE[how][part](flush, name)
                address = flush.let(f"getelementptr double, ptr %partial, i64 {self.first_word(k) + part}")
                sofar = flush.let(f"load double, ptr {address}")
                flush.lines.append(
                    f"  store double {flush.let(f'fadd double {sofar}, {word}')}, ptr {address}"
                )


def update_sum(w: Writer, x: str, total: str) -> list[str]:
    return [w.add(total, x, "nsz contract ")]


def update_exact(w: Writer, x: str, total: str, correction: str) -> list[str]:
    """Knuth's two-sum: what the addition lost goes into the correction."""
    new = w.add(total, x)
    part = w.sub(new, total)
    lost = w.add(w.sub(total, w.sub(new, part)), w.sub(x, part))
    return [new, w.add(correction, lost)]


def update_log(w: Writer, x: str, product: str, exponent: str, worst: str) -> list[str]:
    """Multiply mantissas, add exponents; anything but a positive normal number shows in ``worst``."""
    bits = w.to_bits(x)
    above = w.integer_op("sub", bits, w.integer(SMALLEST))
    power = w.integer_op("lshr", above, w.integer(52))
    mantissa = w.integer_op("or", w.integer_op("and", bits, w.integer(MANTISSA)), w.integer(EXPONENT_ONE))
    return [
        w.mul(product, w.from_bits(mantissa)),
        w.integer_op("add", exponent, power),
        integer_intrinsic(w, "umax", worst, above),
    ]


UPDATE: dict[Reduce, Callable[..., list[str]]] = {
    Reduce.ADD: update_sum,
    Reduce.EXACT: update_exact,
    Reduce.LOG: update_log,
}


def integer_intrinsic(w: Writer, name: str, a: str, b: str) -> str:
    kind, full = w.vector.integers, f"@llvm.{name}.v{w.vector.width}i64"
    w.intrinsics[full] = f"declare {kind} {full}({kind}, {kind})"
    return w.let(f"call {kind} {full}({kind} {a}, {kind} {b})")


def lane_sum(w: Writer, lanes: str) -> str:
    full = f"@llvm.vector.reduce.fadd.{w.vector.suffix}"
    w.intrinsics[full] = f"declare double {full}(double, {w.vector.type})"
    return w.let(f"call reassoc double {full}(double 0.0, {w.vector.type} {lanes})")


def lane_log(w: Writer, lanes: str) -> str:
    return lane_sum(w, w.call("log", lanes))


def lane_count(w: Writer, lanes: str) -> str:
    return w.let(f"sitofp i64 {lane_integer(w, 'add', lanes)} to double")


def lane_bad(w: Writer, lanes: str) -> str:
    bad = w.let(f"icmp uge i64 {lane_integer(w, 'umax', lanes)}, {RANGE}")
    return w.let(f"uitofp i1 {bad} to double")


def lane_integer(w: Writer, name: str, lanes: str) -> str:
    full = f"@llvm.vector.reduce.{name}.v{w.vector.width}i64"
    w.intrinsics[full] = f"declare i64 {full}({w.vector.integers})"
    return w.let(f"call i64 {full}({w.vector.integers} {lanes})")


REDUCE = {
    Reduce.ADD: (lane_sum,),
    Reduce.EXACT: (lane_sum, lane_sum),
    Reduce.LOG: (lane_log, lane_count, lane_bad),
}


ROWS = 32  # vectors of events in a tile; with 64 numbers it fills a quarter of a second-level cache


@dataclass(frozen=True)
class Rank:
    """Writes the functions that turn tiles of ``left`` and ``right`` into sums of left_i * right_j, i >= j."""

    count: int
    vector: Vector
    weighted: bool  # whether right differs from left
    groups: int = 1  # of numbers, each with a row for each vector of events

    @property
    def rows(self) -> int:
        """Vectors of events in a tile."""
        return ROWS // self.groups

    @property
    def stride(self) -> int:
        """Vectors from one number to the next in a tile; odd, so that numbers do not compete for the same cache lines."""
        return (self.rows * self.groups + 1) | 1

    @property
    def sides(self) -> int:
        return -(-self.count // SIDE)

    @property
    def words(self) -> int:
        return pair_words(self.count)

    def outputs(self) -> list[int]:
        """For each word its index in the lower triangle, row by row, or -1 where it is not wanted."""
        indices = []
        for bi in range(self.sides):
            for bj in range(bi + 1):
                for ii in range(SIDE):
                    for jj in range(SIDE):
                        i, j = bi * SIDE + ii, bj * SIDE + jj
                        indices.append(i * (i + 1) // 2 + j if j <= i < self.count else -1)
        return indices

    def head_lines(self) -> list[str]:
        """Make room for the tiles and the sums, all zero."""
        size = self.vector.width * 8
        tile, sums = self.sides * SIDE * self.stride, self.words
        names = ["left", "right"] if self.weighted else ["left"]
        lines = [f"  %{n} = alloca [{tile} x {self.vector.type}], align 64" for n in names]
        lines.append(f"  %sums = alloca [{sums} x {self.vector.type}], align 64")
        for name, length in [(n, tile) for n in names] + [("sums", sums)]:
            lines.append(f"  call void @llvm.memset.p0.i64(ptr %{name}, i8 0, i64 {length * size}, i1 false)")
        return lines

    def store_lines(self, loop: Writer, event: str, left: list[str], right: list[str]) -> None:
        """Put the numbers of one vector of events into the tile; lanes past the last event become zero."""
        v = self.vector
        row = loop.let(f"sub i64 {event}, %from")
        row = loop.let(f"lshr i64 {row}, {v.width.bit_length() - 1}")
        if self.groups > 1:
            row = loop.let(f"mul i64 {row}, {self.groups}")
        for name, numbers in (("left", left), ("right", right)):
            for k, number in enumerate(numbers):
                masked = loop.let(f"select {v.mask} %mask, {v.type} {number}, {v.type} zeroinitializer")
                index = loop.let(f"add i64 {row}, {k % self.count * self.stride + k // self.count}")
                address = loop.let(f"getelementptr {v.type}, ptr %{name}, i64 {index}")
                loop.lines.append(f"  store {v.type} {masked}, ptr {address}, align 64")

    def flush_lines(self) -> list[str]:
        right = "right" if self.weighted else "left"
        times = f"  %rows = mul i64 %vectors, {self.groups}" if self.groups > 1 else ""
        return [
            "  %used = sub i64 %to, %from",
            f"  %{'vectors' if times else 'rows'} = lshr i64 %used, {self.vector.width.bit_length() - 1}",
            *([times] if times else []),
            f"  call void @rank_update(ptr %left, ptr %{right}, ptr %sums, i64 %rows)",
        ]

    def finish_lines(self, partial: str, first: int) -> list[str]:
        return [
            f"  %first = getelementptr double, ptr {partial}, i64 {first}",
            "  call void @rank_finish(ptr %sums, ptr %first)",
        ]

    def text(self) -> str:
        return "\n".join([self.update_text(), self.finish_text()])

    def update_text(self) -> str:
        """Go through the tile for each block of sums; one on the diagonal needs half of its products if both sides are the same."""
        every = [(i, j) for i in range(SIDE) for j in range(SIDE)]
        half = every if self.weighted else [(i, j) for i, j in every if j <= i]
        return "\n".join([
            "define internal void @rank_update(ptr noalias %left, ptr %right, ptr noalias %sums, i64 %rows) noinline {",
            "entry:", "  br label %outer",
            "outer:",
            "  %bi = phi i64 [ 0, %entry ], [ %bi1, %close ]", "  %q0 = phi i64 [ 0, %entry ], [ %q1, %close ]",
            "  %none = icmp eq i64 %bi, 0", "  br i1 %none, label %diagonal, label %inner",
            "inner:",
            "  %bj = phi i64 [ 0, %outer ], [ %bj1, %keep ]", "  %q = phi i64 [ %q0, %outer ], [ %q2, %keep ]",
            *self.block_lines("", "%bj", "%q", every, "inner"),
            "  %q2 = add i64 %q, 1", "  %bj1 = add i64 %bj, 1", "  %below = icmp slt i64 %bj1, %bi",
            "  br i1 %below, label %inner, label %diagonal",
            "diagonal:",
            "  %qd = phi i64 [ %q0, %outer ], [ %q2, %keep ]",
            *self.block_lines("d", "%bi", "%qd", half, "diagonal"),
            "  br label %close",
            "close:",
            "  %q1 = add i64 %qd, 1", "  %bi1 = add i64 %bi, 1", f"  %more = icmp slt i64 %bi1, {self.sides}",
            "  br i1 %more, label %outer, label %done",
            "done:", "  ret void", "}",
        ])  # fmt: skip

    def block_lines(
        self, mark: str, column: str, place: str, cells: Sequence[tuple[int, int]], before: str
    ) -> list[str]:
        """Add the products of a block for all rows of a tile; names end with ``mark``, and the last label is ``keep`` with it."""
        v, m = self.vector, mark
        one_side = column == "%bi" and not self.weighted
        body = []
        for name, block in (("l", "%bi"), *(() if one_side else (("r", column),))):
            base = "%left" if name == "l" else "%right"
            for k in range(SIDE):
                body += [
                    f"  %{name}n{k}{m} = mul i64 {block}, {SIDE * self.stride}",
                    f"  %{name}m{k}{m} = add i64 %{name}n{k}{m}, {k * self.stride}",
                    f"  %{name}o{k}{m} = add i64 %{name}m{k}{m}, %t{m}",
                    f"  %{name}p{k}{m} = getelementptr {v.type}, ptr {base}, i64 %{name}o{k}{m}",
                    f"  %{name}{k}{m} = load {v.type}, ptr %{name}p{k}{m}, align 64",
                ]
        fma, right = f"@llvm.fma.{v.suffix}", "l" if one_side else "r"
        body += [
            f"  %n{i}{j}{m} = call {v.type} {fma}({v.type} %l{i}{m}, {v.type} %{right}{j}{m}, {v.type} %a{i}{j}{m})"
            for i, j in cells
        ]
        return [
            f"  %place{m} = mul i64 {place}, {SIDE * SIDE}",
            *(line for i, j in cells for line in (
                f"  %k{i}{j}{m} = add i64 %place{m}, {i * SIDE + j}",
                f"  %p{i}{j}{m} = getelementptr {v.type}, ptr %sums, i64 %k{i}{j}{m}",
                f"  %s{i}{j}{m} = load {v.type}, ptr %p{i}{j}{m}, align 64")),
            f"  br label %loop{m}",
            f"loop{m}:",
            f"  %t{m} = phi i64 [ 0, %{before} ], [ %next{m}, %loop{m} ]",
            *(f"  %a{i}{j}{m} = phi {v.type} [ %s{i}{j}{m}, %{before} ], [ %n{i}{j}{m}, %loop{m} ]" for i, j in cells),
            *body,
            f"  %next{m} = add i64 %t{m}, 1", f"  %again{m} = icmp slt i64 %next{m}, %rows",
            f"  br i1 %again{m}, label %loop{m}, label %keep{m}",
            f"keep{m}:",
            *(f"  store {v.type} %n{i}{j}{m}, ptr %p{i}{j}{m}, align 64" for i, j in cells),
        ]  # fmt: skip

    def finish_text(self) -> str:
        v = self.vector
        return "\n".join([
            "define internal void @rank_finish(ptr noalias %sums, ptr noalias %partial) noinline {",
            "entry:", "  br label %loop",
            "loop:",
            "  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]",
            f"  %from = getelementptr {v.type}, ptr %sums, i64 %k",
            f"  %lanes = load {v.type}, ptr %from, align 64",
            f"  %sum = call reassoc double @llvm.vector.reduce.fadd.{v.suffix}(double 0.0, {v.type} %lanes)",
            "  %to = getelementptr double, ptr %partial, i64 %k", "  store double %sum, ptr %to",
            "  %k1 = add i64 %k, 1", f"  %more = icmp slt i64 %k1, {self.words}",
            "  br i1 %more, label %loop, label %done",
            "done:", "  ret void", "}",
        ])  # fmt: skip

    def declarations(self) -> dict[str, str]:
        v = self.vector
        reduce, fma = f"@llvm.vector.reduce.fadd.{v.suffix}", f"@llvm.fma.{v.suffix}"
        return {
            "@llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            reduce: f"declare double {reduce}(double, {v.type})",
            fma: f"declare {v.type} {fma}({v.type}, {v.type}, {v.type})",
        }
