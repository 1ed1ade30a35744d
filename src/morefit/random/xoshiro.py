"""Streams of xoshiro128++ in numpy: its seed, its step, its jumps and its numbers, any number of streams at once.

The generator has one sequence a seed. A jump goes 2**64 numbers ahead, a long jump 2**96: stream s of toy t begins
after t long jumps and s jumps, so that no two streams meet (Blackman and Vigna, ACM TOMS 47, 2021). A long jump is
2**32 jumps, and a jump is linear in the 128 bits of the state. So every start is a product of matrices of bits, one
for each bit of t * 2**32 + s, and such a matrix is a table: what each half-byte of a state adds to the next state.

Events are dealt to streams by their number alone: in each block of events there are ``STREAMS`` of them, which take
the events of the block in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray

from morefit.expr import Table
from morefit.random.philox import joined

BLOCK = 4096  # events: the unit of streams, and of the tasks and partial sums of the CPU
Words = NDArray[np.uint32]  # states: (..., WORDS)
WORDS = 4  # of 32 bits, the state
# in a block of events: a multiple of every vector, and the items of a group that fits a small toy
STREAMS = 64
BITS = 64  # of the number of jumps: 32 for the toy, 32 for the stream
HALF_BYTES = 8 * WORDS  # of a state
TABLE = "jumps of xoshiro128++"
GOLDEN = 0x9E3779B97F4A7C15
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST = 31  # the last shift of splitmix64


def rotate(words: Words, by: int) -> Words:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))


def step(state: Words) -> tuple[Words, Words]:
    """Return the next word of each stream and the states after it."""
    s0, s1, s2, s3 = np.moveaxis(state, -1, 0)
    word = rotate(s0 + s3, 7) + s0
    shifted = s1 << np.uint32(9)
    s2, s3 = s2 ^ s0, s3 ^ s1
    s1, s0 = s1 ^ s2, s0 ^ s3
    return word, np.stack([s0, s1, s2 ^ shifted, rotate(s3, 11)], axis=-1)


def splitmix64(start: int, first: int, count: int) -> NDArray[np.uint64]:
    """Return words ``first``, ``first + 1``, ... of the sequence that spreads a seed (Steele et al., OOPSLA 2014)."""
    place = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = np.uint64(start) + place * np.uint64(GOLDEN)
    for shift, factor in MIXING:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(LAST))


def seeded(seed: int, toy: int = 0) -> Words:
    """Return the state that splitmix64 makes of a seed; after 2**32 toys the next words of it are taken."""
    words = splitmix64(seed, 2 * (toy >> 32), 2)
    return np.stack([words, words >> np.uint64(32)], axis=-1).astype(np.uint32).ravel()


@cache
def jump_tables() -> Words:
    """Return what a half-byte of a state becomes by 1, 2, 4, ... jumps: (bit, half-byte, its value, word)."""
    ones = np.eye(32 * WORDS, dtype=np.uint8).reshape(-1, WORDS, 32)
    images = np.packbits(ones, axis=-1, bitorder="little").view("<u4").astype(np.uint32)[..., 0]
    _, images = step(images)  # of every state with a single bit, by one step
    for _ in range(64):
        images = apply(table_of(images), images)
    tables = []
    for _ in range(BITS):
        tables.append(table_of(images))
        images = apply(tables[-1], images)
    return np.array(tables)


def table_of(images: Words) -> Words:
    """Add up the images of the bits of every half-byte: (half-byte, its value, word)."""
    table = np.zeros((HALF_BYTES, 16, WORDS), np.uint32)
    for bit in range(4):
        table[:, np.arange(16) >> bit & 1 == 1] ^= images[bit::4, None]
    return table


def apply(table: Words, state: Words) -> Words:
    """Jump ahead by the table of a jump."""
    result = np.zeros_like(state)
    for k in range(HALF_BYTES):
        result ^= table[k, state[..., k // 8] >> np.uint32(4 * (k % 8)) & np.uint32(15)]
    return result


def start(seed: int, toy: int, streams: int) -> Words:
    """Return the states at the start of the first streams of a toy."""
    tables = jump_tables()
    state, number = seeded(seed, toy), toy << 32 & (1 << BITS) - 1
    state = reduce(lambda s, k: apply(tables[k], s), (k for k in range(BITS) if number >> k & 1), state)
    states = state[None]
    for table in tables:
        if len(states) >= streams:
            break
        states = np.concatenate([states, apply(table, states)])
    return states[:streams]


def stream_of(event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which stream of its toy an event is drawn from."""
    return event // BLOCK * STREAMS + event % STREAMS


@cache
def jump_table() -> Table:
    """Return the tables of all jumps in the form that kernels read: bytes of doubles."""
    return Table(TABLE, jump_tables().astype("<u4").tobytes(), "xoshiro128++")


class Streams:
    """The random numbers of a toy; each event goes on in its stream where the one before it stopped."""

    def __init__(self, seed: int, toy: int, size: int) -> None:
        self.size = size
        self.states = start(seed, toy, -(-size // BLOCK) * STREAMS)

    def together(self) -> Iterator[NDArray[np.int64]]:
        """Go through the events, as many at a time as there are streams."""
        events = np.arange(self.size)
        for turn in range(BLOCK // STREAMS):
            yield events[events % BLOCK // STREAMS == turn]

    def numbers(self, events: NDArray[np.int64], draw: int, calls: int) -> list[NDArray[np.float64]]:
        """Return the numbers of a candidate for each event, of 53 bits; the state of a stream counts the draws."""
        streams = stream_of(events)
        return [self.number(streams) for _ in range(2 * calls)]

    def number(self, streams: NDArray[np.int64]) -> NDArray[np.float64]:
        high, states = step(self.states[streams])
        low, self.states[streams] = step(states)
        return joined(high.astype(np.uint64), low.astype(np.uint64))
