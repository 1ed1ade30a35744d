"""Philox4x32-10 in numpy, which the compiled ones are tested against, and numbers of whole toys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.resources import on_all_cores

Words = NDArray[np.uint64]  # of 32 bits in 64-bit integers, or of 64
WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PIECE = 1 << 15  # toys: enough for threads not to wait for each other
HALF_BIT = 2.0**-54  # keeps a uniform number of 53 bits away from zero
BUMPS = (0x9E3779B9, 0xBB67AE85)  # of the key, from round to round


def philox(
    counter: tuple[Words, Words, Words, Words], key: tuple[int, int]
) -> tuple[Words, Words, Words, Words]:
    """Return four 32-bit words for each counter (Salmon et al., SC11)."""
    c0, c1, c2, c3 = (np.array(c, np.uint64) for c in counter)
    p0, p1 = np.empty_like(c0), np.empty_like(c2)
    k0, k1 = key
    for _ in range(ROUNDS):  # in place: new arrays take longer than what is computed
        np.multiply(c0, np.uint64(MULTIPLIERS[0]), out=p0)
        np.multiply(c2, np.uint64(MULTIPLIERS[1]), out=p1)
        np.bitwise_xor(np.right_shift(p1, HALF, out=c0), c1, out=c0)
        np.bitwise_xor(np.right_shift(p0, HALF, out=c2), c3, out=c2)
        np.bitwise_and(p1, WORD, out=c1)
        np.bitwise_and(p0, WORD, out=c3)
        c0 ^= np.uint64(k0)
        c2 ^= np.uint64(k1)
        k0, k1 = (k0 + BUMPS[0]) & 0xFFFFFFFF, (k1 + BUMPS[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def uniforms(seed: int, toy: int, events: NDArray[np.int64], draw: int) -> tuple[NDArray[np.float64], ...]:
    """Return two numbers in [0, 1) of 53 bits for each event."""
    event = events.astype(np.uint64)
    low, high = (np.full_like(event, part) for part in (toy & 0xFFFFFFFF, toy >> 32))
    key = (seed & 0xFFFFFFFF, seed >> 32)
    w = philox((event, low, np.full_like(event, draw), high), key)
    return joined(w[0], w[1]), joined(w[2], w[3])


def toy_uniforms(seed: int, toys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) of 53 bits for each toy: that toy's number in the sequence of NumPy's Philox4x64-10.

    Events are drawn from another generator, so that none has this number.
    """
    numbers, words = np.empty(len(toys), np.uint64), Sequence64(seed)
    starts = [0, *(np.flatnonzero(np.diff(toys) != 1) + 1).tolist(), len(toys)]
    for begin, end in pairwise(starts if len(toys) else ()):
        counter, left_out = divmod(int(toys[begin]), 4)  # each value of the counter gives four
        numbers[begin:end] = words.after((counter, 0, 0, 0), left_out + end - begin)[left_out:]
    # signed: converted by vector instructions
    return np.multiply((numbers >> np.uint64(11)).view(np.int64), 2.0**-53, dtype=np.float64)


def toy_normals(seed: int, toys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a standard normal number for each toy."""
    from scipy.special import ndtri  # type: ignore[import-untyped]  # slow, and only constrained toys need it

    numbers = toy_uniforms(seed, toys) + HALF_BIT

    def transform(cut: slice) -> None:
        ndtri(numbers[cut], out=numbers[cut])

    on_all_cores(transform, len(toys), PIECE)
    return numbers


class Sequence64:
    """NumPy's Philox4x64-10, whose words of 64 bits can be had from any place on."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Philox(key=seed)
        self.state: Any = self.generator.state  # to set it takes less time than to make a generator

    def after(self, counter: tuple[int, int, int, int], count: int) -> Words:
        """Return the words that follow a value of the counter, whose lowest part is the first."""
        self.state["state"]["counter"][:] = counter
        self.generator.state = self.state
        return np.asarray(self.generator.random_raw(count), np.uint64)


def joined(high: Words, low: Words) -> NDArray[np.float64]:
    """Return numbers in [0, 1) of 53 bits from words of 32."""
    bits = (high << np.uint64(21)) | (low >> np.uint64(11))
    # signed: converted by vector instructions
    return np.multiply(bits.view(np.int64), 2.0**-53, dtype=np.float64)


class Counted:
    """The random numbers of a toy; an event needs to know of no other."""

    def __init__(self, seed: int, toy: int, size: int) -> None:
        self.seed, self.toy, self.size = seed, toy, size

    def together(self) -> Iterator[NDArray[np.int64]]:
        """Go through the events, all at a time."""
        yield np.arange(self.size)

    def numbers(self, events: NDArray[np.int64], draw: int, calls: int) -> list[NDArray[np.float64]]:
        """Return the numbers of a candidate for each event."""
        return [u for k in range(calls) for u in uniforms(self.seed, self.toy, events, draw * calls + k)]
