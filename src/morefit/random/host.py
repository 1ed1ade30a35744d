"""Random numbers made on the host, for draws that must not use the compiled generators: NumPy's, or xoshiro256++."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from morefit.digests import sha256
from morefit.errors import OptionError
from morefit.random.xoshiro import splitmix64
from morefit.text.suggest import suggest

Words = NDArray[np.uint64]
COMPILED = ("philox", "xoshiro128++")  # made where the events are
STREAMS = 1024  # side by side, for numpy to work on
JUMP = (0x180EC6D33CFD0ABA, 0xD5A61266F0C9392C, 0xA9582618E03FC9AA, 0x39ABDC4529B1661C)


class Source(Protocol):
    """Something that gives numbers in [0, 1)."""

    def random(self, size: int, /) -> NDArray[np.float64]: ...


class Xoshiro256PlusPlus:
    """Streams of xoshiro256++ side by side (Blackman and Vigna, ACM TOMS 47, 2021); ``state`` is (4, streams)."""

    def __init__(self, state: Words) -> None:
        self.state = np.array(state, np.uint64).reshape(4, -1)

    @classmethod
    def seeded(cls, seed: int, toy: int = 0) -> Xoshiro256PlusPlus:
        """Fill the states of all streams with what splitmix64 makes of a seed, each toy with the next words."""
        words = splitmix64(seed, toy * 4 * STREAMS, 4 * STREAMS)
        return cls(words.reshape(STREAMS, 4).T)

    def words(self) -> Words:
        """Return the next word of every stream."""
        s = self.state
        result: Words = rotate(s[0] + s[3], 23) + s[0]
        shifted = s[1] << np.uint64(17)
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotate(s[3], 45)
        return result

    def jump(self) -> None:
        """Go 2**128 words ahead in every stream."""
        ahead = np.zeros_like(self.state)
        for word in JUMP:
            for bit in range(64):
                if word >> bit & 1:
                    ahead ^= self.state
                self.words()
        self.state = ahead

    def random(self, size: int, /) -> NDArray[np.float64]:
        """Return numbers in [0, 1) of 53 bits, one from each stream in turn."""
        rows = -(-size // self.state.shape[1])
        words = np.concatenate([self.words() for _ in range(rows)]) if rows else np.empty(0, np.uint64)
        return np.asarray((words[:size] >> np.uint64(11)) * 2.0**-53, np.float64)


def rotate(words: Words, by: int) -> Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


Generator: TypeAlias = "str | np.random.BitGenerator | Xoshiro256PlusPlus"  # numpy imports its own when used
OWN = (*COMPILED, "xoshiro256++")


def numpy_generators() -> dict[str, type[np.random.BitGenerator]]:
    """List NumPy's generators by name."""
    known = {name: getattr(np.random, name) for name in dir(np.random)}
    base = np.random.BitGenerator
    return {n: k for n, k in known.items() if isinstance(k, type) and issubclass(k, base) and k is not base}


def check_generator(generator: Generator, seed: int | None) -> None:
    """Refuse a generator that does not exist, or a seed for one that has its own."""
    if not isinstance(generator, str):
        if not isinstance(generator, np.random.BitGenerator | Xoshiro256PlusPlus):
            raise OptionError(
                f"generator: must be a name, a numpy.random.BitGenerator or a Xoshiro256PlusPlus,"
                f" got {type(generator).__name__}"
            )
        if seed is not None:
            raise OptionError(
                f"generator: a {type(generator).__name__} object has a state of its own; drop the seed, or give its name"
            )
        return
    if generator not in OWN and generator not in numpy_generators():
        names = [*OWN, *numpy_generators()]
        raise OptionError(f"generator '{generator}': not known; {suggest(generator, names)}")


def stream_key(seed: int, purpose: str) -> int:
    """Return the key of the stream that one purpose has of a seed; ``generate`` has the seed itself as its key.

    Keys are the first 64 bits of SHA-256 of the purpose and the seed, so that no toy of a study, of a construction
    or of a bootstrap has the events of ``generate`` with the same seed, nor of each other.
    """
    return int.from_bytes(sha256(f"{purpose} {seed}".encode()).digest()[:8], "little")


def part_key(seed: int, part: int) -> int:
    """Return the key of the random numbers of one part of a likelihood; the first part has that of the toys."""
    return seed if part == 0 else stream_key(seed, f"part {part}")


def source_for(generator: Generator, seed: int, toy: int) -> Source:
    """Return the random numbers of a toy; a generator object continues its stream; a name is reseeded per toy."""
    if isinstance(generator, Xoshiro256PlusPlus):
        return generator
    if isinstance(generator, np.random.BitGenerator):
        return np.random.Generator(generator)
    if generator == "xoshiro256++":
        return Xoshiro256PlusPlus.seeded(seed, toy)
    sequence = np.random.SeedSequence(seed, spawn_key=(toy,))
    return np.random.Generator(numpy_generators()[generator](sequence))
