"""What a loop carries from event to event and how a block's sums are made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from morefit.dataclass import dataclass
from morefit.kernel.ir import EXPONENT_ONE, MANTISSA, RANGE, SMALLEST, WORDS, Reduce
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
