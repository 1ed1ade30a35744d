"""Random numbers on vectors: Philox4x32-10 (Salmon et al., SC11), and streams of xoshiro128++ side by side (Blackman and Vigna, ACM TOMS 47, 2021)."""

from __future__ import annotations

from morefit.random.philox import BUMPS, MULTIPLIERS, ROUNDS
from morefit.random.xoshiro import BLOCK, GOLDEN, HALF_BYTES, LAST, MIXING, STREAMS, WORDS
from morefit.targets.cpu.abi import argument
from morefit.targets.cpu.writer import Vector, Writer

WORD = 0xFFFFFFFF
UNIFORM = 2.0**-53  # of 53 random bits


class Philox:
    """Writes the random numbers of a sampling kernel: keyed by seed, counted by event, toy and draw."""

    def __init__(self, head: Writer, toy: str) -> None:
        self.keys = round_keys(head, argument(head, "seed"))
        self.low = spread(head, head.let(f"and i64 {toy}, {WORD}"))
        self.high = spread(head, head.let(f"lshr i64 {toy}, 32"))

    def draw(self, body: Writer, calls: int) -> list[str]:
        """Draw the numbers of one candidate."""
        uniforms: list[str] = []
        first = body.let(f"mul i64 %draw, {calls}")
        for k in range(calls):
            draw = spread(body, body.let(f"add i64 {first}, {k}"))
            uniforms += two_uniforms(body, ("%event", self.low, draw, self.high), self.keys)
        return uniforms


def round_keys(w: Writer, seed: str) -> list[tuple[str, str]]:
    """Spread the keys of all rounds over vectors, once per block; ``seed`` holds both halves of the key."""
    keys = [w.let(f"and i64 {seed}, {WORD}"), w.let(f"lshr i64 {seed}, 32")]
    rounds = []
    for _ in range(ROUNDS):
        rounds.append((spread(w, keys[0]), spread(w, keys[1])))
        keys = [
            w.let(f"and i64 {w.let(f'add i64 {key}, {bump}')}, {WORD}")
            for key, bump in zip(keys, BUMPS, strict=True)
        ]
    return rounds


def spread(w: Writer, number: str) -> str:
    """Copy a 64-bit integer to every lane."""
    kind = integers(w.vector)
    one = w.let(f"insertelement {kind} undef, i64 {number}, i32 0")
    return w.let(f"shufflevector {kind} {one}, {kind} undef, <{w.vector.width} x i32> zeroinitializer")


def integers(vector: Vector) -> str:
    return f"<{vector.width} x i64>"


def splat(vector: Vector, number: int) -> str:
    return "<" + ", ".join([f"i64 {number}"] * vector.width) + ">"


def two_uniforms(
    w: Writer, counter: tuple[str, str, str, str], keys: list[tuple[str, str]]
) -> tuple[str, str]:
    """Return two numbers in [0, 1) of 53 bits for each lane, from a counter of four 32-bit words in 64-bit lanes."""
    v, kind, word = w.vector, integers(w.vector), splat(w.vector, WORD)

    def op(name: str, a: str, b: str) -> str:
        return w.let(f"{name} {kind} {a}, {b}")

    c0, c1, c2, c3 = (op("and", c, word) for c in counter)  # tells the compiler that 32-bit products will do
    for k0, k1 in keys:
        p0, p1 = op("mul", c0, splat(v, MULTIPLIERS[0])), op("mul", c2, splat(v, MULTIPLIERS[1]))
        high0, high1 = op("lshr", p0, splat(v, 32)), op("lshr", p1, splat(v, 32))
        c0, c1 = op("xor", op("xor", high1, c1), k0), op("and", p1, word)
        c2, c3 = op("xor", op("xor", high0, c3), k1), op("and", p0, word)
    return uniform(w, c0, c1), uniform(w, c2, c3)


def uniform(w: Writer, high: str, low: str) -> str:
    """Make a number of 53 bits out of two words: all of the first, the upper 21 bits of the second."""
    v, kind = w.vector, integers(w.vector)
    bits = w.let(f"shl {kind} {high}, {splat(v, 21)}")
    bits = w.let(f"or {kind} {bits}, {w.let(f'lshr {kind} {low}, {splat(v, 11)}')}")
    return w.mul(w.let(f"uitofp {kind} {bits} to {v.type}"), w.number(UNIFORM))


STATE = f"<{WORDS} x i32>"
TABLE_BYTES = HALF_BYTES * 16 * WORDS * 4  # of the jumps that one bit stands for
SPARE = 15  # streams are started up to a full vector: lanes past the end draw too, and look into tables


class Xoshiro:
    """Writes the random numbers of a sampling kernel: streams are started once per block, and stored in memory.

    Blocks begin at multiples of ``BLOCK`` events of a toy, independent of the threads; so streams begin there too.
    """

    def __init__(self, head: Writer, toy: str, first: str, jumps: str) -> None:
        """Start the streams of this block; ``first`` is the first event of the toy, ``jumps`` the table."""
        self.vector = head.vector
        block = head.let(f"sdiv i64 {head.let(f'sub i64 %begin, {first}')}, {BLOCK}")
        stream = head.let(f"mul i64 {block}, {STREAMS}")
        room = head.let(f"add i64 {head.let('sub i64 %end, %begin')}, {SPARE}")
        few = head.let(f"icmp slt i64 {room}, {STREAMS}")
        count = head.let(f"select i1 {few}, i64 {room}, i64 {STREAMS}")
        seed = argument(head, "seed")
        head.lines += [
            f"  %streams = alloca [{WORDS * STREAMS} x i32], align 64",
            f"  call void @start(ptr {jumps}, i64 {seed}, i64 {toy}, i64 {stream}, i64 {count}, ptr %streams)",
        ]
        self.last: list[str] = []

    def functions(self) -> list[str]:
        """Define what starts streams."""
        return [jump_text(), start_text()]

    def event_lines(self) -> list[str]:
        """Load the states of the streams that a vector of events belongs to."""
        w = Writer(self.vector, "e")
        place = w.let(f"and i64 %relative, {STREAMS - 1}")
        for k in range(WORDS):
            index = w.let(f"add i64 {place}, {k * STREAMS}")
            w.lines += [
                f"  %stream{k} = getelementptr i32, ptr %streams, i64 {index}",
                f"  %start{k} = load {small(self.vector)}, ptr %stream{k}, align 4",
            ]
        return w.lines

    def attempt_lines(self) -> list[str]:
        """Carry the state from candidate to candidate."""
        return [
            f"  %state{k} = phi {small(self.vector)} [ %start{k}, %events ], [ {self.last[k]}, %attempt ]"
            for k in range(WORDS)
        ]

    def draw(self, body: Writer, calls: int) -> list[str]:
        """Draw the numbers of one candidate, two from four words; a stream whose event is done does not move."""
        kind, before = small(self.vector), [f"%state{k}" for k in range(WORDS)]
        uniforms, state = [], before
        for _ in range(2 * calls):
            words = []
            for _ in range(2):
                word, state = step(body, state)
                words.append(body.let(f"zext {kind} {word} to {integers(self.vector)}"))
            uniforms.append(uniform(body, *words))
        self.last = [
            body.let(f"select {self.vector.mask} %done, {kind} {old}, {kind} {new}")
            for old, new in zip(before, state, strict=True)
        ]
        return uniforms

    def keep_lines(self) -> list[str]:
        """Keep the states for the next events of these streams."""
        kind = small(self.vector)
        return [f"  store {kind} {self.last[k]}, ptr %stream{k}, align 4" for k in range(WORDS)]


def small(vector: Vector) -> str:
    return f"<{vector.width} x i32>"


def step(w: Writer, state: list[str]) -> tuple[str, list[str]]:
    """Return the next word of 32 bits and the state after it."""
    kind = small(w.vector)

    def number(n: int) -> str:
        return "<" + ", ".join([f"i32 {n}"] * w.vector.width) + ">"

    def op(name: str, a: str, b: str) -> str:
        return w.let(f"{name} {kind} {a}, {b}")

    def rotate(a: str, by: int) -> str:
        return op("or", op("shl", a, number(by)), op("lshr", a, number(32 - by)))

    s0, s1, s2, s3 = state
    word = op("add", rotate(op("add", s0, s3), 7), s0)
    shifted = op("shl", s1, number(9))
    s2, s3 = op("xor", s2, s0), op("xor", s3, s1)
    s1, s0 = op("xor", s1, s2), op("xor", s0, s3)
    return word, [s0, s1, op("xor", s2, shifted), rotate(s3, 11)]


def jump_text() -> str:
    """Advance one stream by a table: add up what each half-byte of the state becomes."""
    w, terms = Writer(Vector(1), "j"), []
    for k in range(HALF_BYTES):
        if k % 8 == 0:
            part = w.let(f"extractelement {STATE} %state, i32 {k // 8}")
        half = w.let(f"and i32 {w.let(f'lshr i32 {part}, {4 * (k % 8)}')}, 15")
        index = w.let(f"add i64 {w.let(f'zext i32 {half} to i64')}, {16 * k}")
        address = w.let(f"getelementptr {STATE}, ptr %table, i64 {index}")
        terms.append(w.let(f"load {STATE}, ptr {address}, align 8"))
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=True)
        terms = [w.let(f"xor {STATE} {a}, {b}") for a, b in pairs]
    return "\n".join([
        f"define internal {STATE} @jump({STATE} %state, ptr %table) noinline {{", *w.lines, f"  ret {STATE} {terms[0]}", "}",
    ])  # fmt: skip


def start_text() -> str:
    """Start the streams of a block from ``stream`` on: jump to the first, then from each to the next."""
    seed, lane = Writer(Vector(1), "s"), Writer(Vector(1), "l")
    pairs = seed.let("lshr i64 %toy, 32")  # of words of splitmix64: one for each 2**32 toys
    place = seed.let(f"add i64 %seed, {seed.let(f'mul i64 {pairs}, {2 * GOLDEN % 2**64}')}")
    words = []
    for _ in range(2):
        place = seed.let(f"add i64 {place}, {GOLDEN}")
        words.append(mix(seed, place))
    one = seed.let(f"insertelement <2 x i64> undef, i64 {words[0]}, i32 0")
    both = seed.let(f"insertelement <2 x i64> {one}, i64 {words[1]}, i32 1")
    base = seed.let(f"bitcast <2 x i64> {both} to {STATE}")
    number = seed.let(f"or i64 {seed.let('shl i64 %toy, 32')}, %stream")
    for k in range(WORDS):
        index = lane.let(f"add i64 %lane, {k * STREAMS}")
        word = lane.let(f"extractelement {STATE} %here, i32 {k}")
        lane.lines.append(
            f"  store i32 {word}, ptr {lane.let(f'getelementptr i32, ptr %streams, i64 {index}')}"
        )
    return "\n".join([
        "define internal void @start(ptr %jumps, i64 %seed, i64 %toy, i64 %stream, i64 %count, ptr %streams) noinline {",
        "entry:", *seed.lines, "  br label %bits",
        "bits:",
        f"  %left = phi i64 [ {number}, %entry ], [ %rest, %next ]",
        "  %table = phi ptr [ %jumps, %entry ], [ %following, %next ]",
        f"  %state = phi {STATE} [ {base}, %entry ], [ %after, %next ]",
        "  %any = icmp ne i64 %left, 0", "  br i1 %any, label %bit, label %lanes",
        "bit:", "  %odd = trunc i64 %left to i1", "  br i1 %odd, label %ahead, label %next",
        "ahead:", f"  %jumped = call {STATE} @jump({STATE} %state, ptr %table)", "  br label %next",
        "next:",
        f"  %after = phi {STATE} [ %state, %bit ], [ %jumped, %ahead ]",
        "  %rest = lshr i64 %left, 1", f"  %following = getelementptr i8, ptr %table, i64 {TABLE_BYTES}",
        "  br label %bits",
        "lanes:",
        "  %lane = phi i64 [ 0, %bits ], [ %lane1, %lanes ]",
        f"  %here = phi {STATE} [ %state, %bits ], [ %there, %lanes ]",
        *lane.lines, f"  %there = call {STATE} @jump({STATE} %here, ptr %jumps)",
        "  %lane1 = add i64 %lane, 1", "  %more = icmp slt i64 %lane1, %count",
        "  br i1 %more, label %lanes, label %done",
        "done:", "  ret void", "}",
    ])  # fmt: skip


def mix(w: Writer, z: str) -> str:
    """Scramble a word as splitmix64 does (Steele et al., OOPSLA 2014)."""
    for shift, factor in MIXING:
        z = w.let(f"xor i64 {z}, {w.let(f'lshr i64 {z}, {shift}')}")
        z = w.let(f"mul i64 {z}, {factor}")
    return w.let(f"xor i64 {z}, {w.let(f'lshr i64 {z}, {LAST}')}")
