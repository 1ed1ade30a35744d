"""Write LLVM IR line by line: one method per instruction, every value a vector of one kind."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace

LARGEST_SINGLE = (2.0 - 2.0**-23) * 2.0**127


@dataclass(frozen=True)
class Vector:
    """The shape of every value in a function: ``width`` floating-point numbers of ``bits`` bits."""

    width: int
    bits: int = 64

    @property
    def scalar(self) -> str:
        return "double" if self.bits == 64 else "float"

    @property
    def type(self) -> str:
        return f"<{self.width} x {self.scalar}>"

    @property
    def integers(self) -> str:
        return f"<{self.width} x i{self.bits}>"

    @property
    def mask(self) -> str:
        return f"<{self.width} x i1>"

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return self.width * self.bits // 8

    @property
    def all_true(self) -> str:
        return f"<{', '.join(['i1 true'] * self.width)}>"

    @property
    def suffix(self) -> str:
        return f"v{self.width}f{self.bits}"


# loops flush denormals, the rest does not: no test for zero may be merged with another on either assumption
ANY_DENORMALS = '"denormal-fp-math"="dynamic,dynamic"'


def number_text(x: float, bits: int) -> str:
    """Write a number as LLVM reads it, exactly (a float32 is written as the double it equals)."""
    if bits == 32:
        # a number beyond the range stands for the largest, such as the bound that tells inf from numbers
        x = max(-LARGEST_SINGLE, min(x, LARGEST_SINGLE)) if math.isfinite(x) else x
        x = struct.unpack("<f", struct.pack("<f", x))[0]
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


def function_name(name: str, vector: Vector, out_of_line: bool) -> str:
    """Name a function of the vector mathematics for one kind of vector."""
    return f"@mf_{name}_{vector.suffix}{'_called' if out_of_line else ''}"


@dataclass
class Writer:
    """Lines of one function body, and the functions it needs."""

    vector: Vector
    prefix: str = "t"
    lines: list[str] = field(default_factory=list)
    intrinsics: dict[str, str] = field(default_factory=dict)  # name -> declaration
    functions: dict[tuple[str, Vector], None] = field(default_factory=dict)  # called so far, in order
    out_of_line: bool = False  # call functions instead of having them inlined: smaller, faster to compile
    definitions: list[str] = field(default_factory=list)  # of functions that the body calls

    def widened(self, vector: Vector) -> Writer:
        """Return a writer of vectors of another kind that adds to the same lines."""
        return replace(self, vector=vector)

    def inside(self, prefix: str) -> Writer:
        """Return a writer of the body of another function in the same module."""
        return replace(self, prefix=prefix, lines=[])

    def let(self, text: str) -> str:
        """Give the result of an instruction a name."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def number(self, x: float) -> str:
        v = self.vector
        return "<" + ", ".join([f"{v.scalar} {number_text(x, v.bits)}"] * v.width) + ">"

    def integer(self, x: int) -> str:
        return "<" + ", ".join([f"i{self.vector.bits} {x}"] * self.vector.width) + ">"

    def add(self, a: str, b: str, flags: str = "") -> str:
        return self.let(f"fadd {flags}{self.vector.type} {a}, {b}")

    def sub(self, a: str, b: str, flags: str = "") -> str:
        return self.let(f"fsub {flags}{self.vector.type} {a}, {b}")

    def mul(self, a: str, b: str, flags: str = "") -> str:
        return self.let(f"fmul {flags}{self.vector.type} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.let(f"fdiv {self.vector.type} {a}, {b}")

    def neg(self, a: str) -> str:
        return self.let(f"fneg {self.vector.type} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Return ``a * b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def intrinsic(self, name: str, *args: str) -> str:
        """Call a floating-point intrinsic: fma, fabs, sqrt, floor, roundeven, copysign, minnum, maxnum ..."""
        v = self.vector
        full = f"@llvm.{name}.{v.suffix}"
        self.intrinsics[full] = f"declare {v.type} {full}({', '.join([v.type] * len(args))})"
        return self.let(f"call {v.type} {full}({', '.join(f'{v.type} {a}' for a in args)})")

    def call(self, name: str, *args: str) -> str:
        """Call a function of the vector mathematics, such as ``exp``."""
        v = self.vector
        self.functions[name, v] = None
        full = function_name(name, v, self.out_of_line)
        return self.let(f"call {v.type} {full}({', '.join(f'{v.type} {a}' for a in args)})")

    def compare(self, predicate: str, a: str, b: str) -> str:
        """Return a mask; predicates as LLVM's: olt, ole, oeq, une, uno ..."""
        return self.let(f"fcmp {predicate} {self.vector.type} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        v = self.vector
        return self.let(f"select {v.mask} {mask}, {v.type} {a}, {v.type} {b}")

    def to_bits(self, a: str) -> str:
        return self.let(f"bitcast {self.vector.type} {a} to {self.vector.integers}")

    def from_bits(self, a: str) -> str:
        return self.let(f"bitcast {self.vector.integers} {a} to {self.vector.type}")

    def integer_op(self, op: str, a: str, b: str) -> str:
        """Apply an integer instruction: add, sub, shl, lshr, ashr, and, or, xor, mul."""
        return self.let(f"{op} {self.vector.integers} {a}, {b}")
