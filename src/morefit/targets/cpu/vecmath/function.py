"""Functions of the vector mathematics, known by the names of the Python functions that write them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature

from morefit.dataclass import dataclass
from morefit.targets.cpu.writer import Vector, Writer

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
        """The number of arguments besides the writer; others are known already."""
        return sum(p.default is Parameter.empty for p in signature(self.write).parameters.values()) - 1


REGISTERED: dict[str, VectorFunction] = {}


def vector_function(
    *, name: str = "", wide: bool = False, out_of_line: bool = False, flushed: bool = False, far: bool = False
) -> Callable[[Write], Write]:
    """Register what writes a function, under a name or its own; a ``wide`` one computes float32 in float64, too."""

    def register(write: Write) -> Write:
        known_as, body = name or write.__name__, widened(write) if wide else write
        assert known_as not in REGISTERED
        REGISTERED[known_as] = VectorFunction(body, out_of_line, flushed, far)
        return body

    return register


INFINITY = float("inf")
NAN = float("nan")
LARGE = 1e150  # whose square does not overflow
LN2 = 0.6931471805599453
PI = (3.141592653589793, 1.2246467991473532e-16)  # and what is missing of it


def widened(body: Write) -> Write:
    """Let a body for float64 serve float32 too, by computing in float64."""

    @wraps(body)
    def write(w: Writer, *arguments: str) -> str:
        if w.vector.bits == 64:
            return body(w, *arguments)
        wide = w.widened(Vector(w.vector.width, 64))
        result = body(
            wide, *[wide.let(f"fpext {w.vector.type} {a} to {wide.vector.type}") for a in arguments]
        )
        return w.let(f"fptrunc {wide.vector.type} {result} to {w.vector.type}")

    return write


@vector_function()
def sign(w: Writer, x: str) -> str:
    """Return 1, -1, or x itself where that is zero or NaN."""
    return w.choose("ogt", x, 0.0, 1.0, w.choose("olt", x, 0.0, -1.0, x))
