"""Philox4x32-10 on vectors: random numbers that depend on a key and a counter only (Salmon et al., SC11)."""

from __future__ import annotations

from morefit.random.philox import BUMPS, MULTIPLIERS, ROUNDS
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

    def functions(self) -> list[str]:
        """Call nothing."""
        return []

    def event_lines(self) -> list[str]:
        """Need nothing for a vector of events."""
        return []

    def attempt_lines(self) -> list[str]:
        """Keep nothing from candidate to candidate."""
        return []

    def keep_lines(self) -> list[str]:
        """Keep nothing from event to event."""
        return []

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
