"""A function of the vector mathematics, known by the name of the Python function that writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature

Write = Callable[..., str]  # (writer, *arguments) -> the register of the result


@dataclass(frozen=True)
class VectorFunction:
    """What writes a function, and how it is called."""

    write: Write
    out_of_line: bool  # too large to repeat at each use
    flushed: bool  # for loops that flush denormals to zero
    far: bool  # rarely called, and only by other functions

    @property
    def arity(self) -> int:
        return len(signature(self.write).parameters) - 1


REGISTERED: dict[str, VectorFunction] = {}


def vector_function(
    *, out_of_line: bool = False, flushed: bool = False, far: bool = False
) -> Callable[[Write], Write]:
    """Register what writes a function, under its own name."""

    def register(write: Write) -> Write:
        assert write.__name__ not in REGISTERED
        REGISTERED[write.__name__] = VectorFunction(write, out_of_line, flushed, far)
        return write

    return register
