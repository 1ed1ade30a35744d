"""xoshiro128++ on vectors: a stream for each event, started by splitmix64 (Blackman and Vigna, ACM TOMS 47, 2021)."""

from __future__ import annotations

from morefit.render.launch import argument
from morefit.render.philox import integers, splat, spread, uniform
from morefit.render.writer import Vector, Writer

GOLDEN = 0x9E3779B97F4A7C15
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST = 31  # the last shift of splitmix64
WORDS = 4  # of 32 bits, the state


class Xoshiro:
    """Writes the random numbers of a sampling kernel; a stream depends on the seed, the toy and the event only."""

    def __init__(self, head: Writer, toy: str) -> None:
        """Find the start of this toy's part of splitmix64, once per block."""
        self.vector = head.vector
        seed = mix(head, "i64", head.let(f"add i64 {argument(head, 'seed')}, {GOLDEN}"))
        place = head.let(f"mul i64 {head.let(f'add i64 {toy}, 1')}, {GOLDEN}")
        self.toy = spread(head, mix(head, "i64", head.let(f"add i64 {seed}, {place}")))
        self.first: list[str] = []
        self.last: list[str] = []

    def event_lines(self) -> list[str]:
        """Start the streams of a vector of events, from two words of splitmix64 each."""
        w, kind = Writer(self.vector, "s"), integers(self.vector)
        twice = w.let(f"shl {kind} %event, {splat(self.vector, 1)}")
        for k in (1, 2):
            place = w.let(f"add {kind} {twice}, {splat(self.vector, k)}")
            place = w.let(f"mul {kind} {place}, {splat(self.vector, GOLDEN)}")
            word = mix(w, kind, w.let(f"add {kind} {self.toy}, {place}"), self.vector)
            high = w.let(f"lshr {kind} {word}, {splat(self.vector, 32)}")
            self.first += [w.let(f"trunc {kind} {half} to {small(self.vector)}") for half in (word, high)]
        return w.lines

    def attempt_lines(self) -> list[str]:
        """Carry the state from candidate to candidate."""
        return [
            f"  %state{k} = phi {small(self.vector)} [ {self.first[k]}, %events ], [ {self.last[k]}, %attempt ]"
            for k in range(WORDS)
        ]

    def draw(self, body: Writer, calls: int) -> list[str]:
        """Draw the numbers of one candidate, two from four words."""
        state = [f"%state{k}" for k in range(WORDS)]
        uniforms = []
        for _ in range(2 * calls):
            words = []
            for _ in range(2):
                word, state = step(body, state)
                words.append(body.let(f"zext {small(self.vector)} {word} to {integers(self.vector)}"))
            uniforms.append(uniform(body, *words))
        self.last = state
        return uniforms


def small(vector: Vector) -> str:
    return f"<{vector.width} x i32>"


def mix(w: Writer, kind: str, z: str, vector: Vector | None = None) -> str:
    """Scramble a word as splitmix64 does (Steele et al., OOPSLA 2014)."""

    def number(n: int) -> str:
        return splat(vector, n) if vector else str(n)

    for shift, factor in MIXING:
        z = w.let(f"xor {kind} {z}, {w.let(f'lshr {kind} {z}, {number(shift)}')}")
        z = w.let(f"mul {kind} {z}, {number(factor)}")
    return w.let(f"xor {kind} {z}, {w.let(f'lshr {kind} {z}, {number(LAST)}')}")


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
