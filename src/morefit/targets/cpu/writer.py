"""Write LLVM IR line by line: one method per instruction, and for what the functions of vecmath are made of."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from morefit.dataclass import dataclass

Operand = str | float  # a register, or a number that all lanes have
Pair = tuple[str, str]  # an unevaluated sum, the second much smaller than the first
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
    # names that are loaded where they are used, and their places
    in_memory: Mapping[str, str] = field(default_factory=dict)

    def widened(self, vector: Vector) -> Writer:
        """Return a writer of vectors of another kind that adds to the same lines."""
        return replace(self, vector=vector)

    def inside(self, prefix: str) -> Writer:
        """Return a writer of the body of another function in the same module."""
        return replace(self, prefix=prefix, lines=[], in_memory={})

    def let(self, text: str) -> str:
        """Give the result of an instruction a name."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def number(self, x: float) -> str:
        v = self.vector
        return "<" + ", ".join([f"{v.scalar} {number_text(x, v.bits)}"] * v.width) + ">"

    def operand(self, value: Operand) -> str:
        return value if isinstance(value, str) else self.number(value)

    def integer(self, x: int) -> str:
        return "<" + ", ".join([f"i{self.vector.bits} {x}"] * self.vector.width) + ">"

    def add(self, a: Operand, b: Operand, flags: str = "") -> str:
        return self.let(f"fadd {flags}{self.vector.type} {self.operand(a)}, {self.operand(b)}")

    def sub(self, a: Operand, b: Operand, flags: str = "") -> str:
        return self.let(f"fsub {flags}{self.vector.type} {self.operand(a)}, {self.operand(b)}")

    def mul(self, a: Operand, b: Operand, flags: str = "") -> str:
        return self.let(f"fmul {flags}{self.vector.type} {self.operand(a)}, {self.operand(b)}")

    def div(self, a: Operand, b: Operand) -> str:
        return self.let(f"fdiv {self.vector.type} {self.operand(a)}, {self.operand(b)}")

    def neg(self, a: Operand) -> str:
        return self.let(f"fneg {self.vector.type} {self.operand(a)}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> str:
        """Return ``a * b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def intrinsic(self, name: str, *args: Operand) -> str:
        """Call a floating-point intrinsic: fma, fabs, sqrt, floor, roundeven, copysign, minnum, maxnum ..."""
        v = self.vector
        full = f"@llvm.{name}.{v.suffix}"
        self.intrinsics[full] = f"declare {v.type} {full}({', '.join([v.type] * len(args))})"
        return self.let(f"call {v.type} {full}({', '.join(f'{v.type} {self.operand(a)}' for a in args)})")

    def call(self, name: str, *args: Operand) -> str:
        """Call a function of the vector mathematics, such as ``exp``."""
        v = self.vector
        self.functions[name, v] = None
        full = function_name(name, v, self.out_of_line)
        return self.let(f"call {v.type} {full}({', '.join(f'{v.type} {self.operand(a)}' for a in args)})")

    def compare(self, predicate: str, a: Operand, b: Operand) -> str:
        """Return a mask; predicates as LLVM's: olt, ole, oeq, une, uno ..."""
        return self.let(f"fcmp {predicate} {self.vector.type} {self.operand(a)}, {self.operand(b)}")

    def select(self, mask: str, a: Operand, b: Operand) -> str:
        v = self.vector
        return self.let(f"select {v.mask} {mask}, {v.type} {self.operand(a)}, {v.type} {self.operand(b)}")

    def to_bits(self, a: str) -> str:
        return self.let(f"bitcast {self.vector.type} {a} to {self.vector.integers}")

    def from_bits(self, a: str) -> str:
        return self.let(f"bitcast {self.vector.integers} {a} to {self.vector.type}")

    def integer_op(self, op: str, a: str, b: str) -> str:
        """Apply an integer instruction: add, sub, shl, lshr, ashr, and, or, xor, mul."""
        return self.let(f"{op} {self.vector.integers} {a}, {b}")

    # ------------------------------------------------------------- polynomials, pairs of numbers, choices between lanes

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """Evaluate a polynomial, lowest coefficient first.

        The lowest comes in last, so that its sum is rounded once; the others are paired as Estrin did.
        """
        return self.fma(self._estrin(coefficients[1:], x), x, coefficients[0])

    def lean_polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """Evaluate a polynomial with few multiplications, for loops that have others to do meanwhile.

        Even and odd powers are two chains, Horner's; on an AVX-512 core this beats Estrin's in a long loop by 5 %.
        """
        square = self.mul(x, x)
        chains = []
        for part in (coefficients[0::2], coefficients[1::2]):
            total = self.number(part[-1])
            for c in reversed(part[:-1]):
                total = self.fma(total, square, c)
            chains.append(total)
        return self.fma(chains[1], x, chains[0])

    def _estrin(self, coefficients: Sequence[float], x: str) -> str:
        terms = [self.number(c) for c in coefficients]
        while len(terms) > 1:
            pairs = [self.fma(terms[i + 1], x, terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = pairs + terms[2 * len(pairs) :]
            x = self.mul(x, x) if len(terms) > 1 else x
        return terms[0]

    def fast_two_sum(self, a: Operand, b: Operand) -> Pair:
        """Add exactly, for ``|a| >= |b|`` (Dekker)."""
        high = self.add(a, b)
        return high, self.sub(b, self.sub(high, a))

    def two_sum(self, a: Operand, b: Operand) -> Pair:
        """Add exactly, in any order of size (Knuth)."""
        high = self.add(a, b)
        part = self.sub(high, a)
        return high, self.add(self.sub(a, self.sub(high, part)), self.sub(b, part))

    def two_product(self, a: Operand, b: Operand) -> Pair:
        """Multiply exactly."""
        high = self.mul(a, b)
        return high, self.fma(a, b, self.neg(high))

    def multiply(self, a: Pair, b: Pair) -> Pair:
        """Multiply two pairs."""
        high, low = self.two_product(a[0], b[0])
        return high, self.fma(a[0], b[1], self.fma(a[1], b[0], low))

    def reciprocal(self, a: Pair) -> Pair:
        """Divide one by a pair."""
        high = self.div(1.0, a[0])
        rest = self.fma(self.neg(high), a[1], self.fma(self.neg(high), a[0], 1.0))
        return high, self.mul(high, rest)

    def divide(self, a: Pair, b: Pair) -> str:
        """Divide two pairs and round once, nearly."""
        inverse = self.div(1.0, b[0])
        high = self.mul(a[0], inverse)
        rest = self.fma(self.neg(high), b[0], a[0])
        return self.fma(self.fma(self.neg(high), b[1], self.add(rest, a[1])), inverse, high)

    def absolute(self, x: str) -> str:
        return self.intrinsic("fabs", x)

    def copy_sign(self, x: Operand, sign: str) -> str:
        return self.intrinsic("copysign", x, sign)

    def flip_sign(self, x: str, bits: str) -> str:
        """Negate where the lowest bit of an integer is set."""
        sign = self.integer_op("shl", bits, self.integer(self.vector.bits - 1))
        return self.from_bits(self.integer_op("xor", self.to_bits(x), sign))

    def choose(self, predicate: str, a: Operand, b: Operand, yes: Operand, no: Operand) -> str:
        """Select by comparing with a number; NaN takes the side that the predicate chooses for it."""
        return self.select(self.compare(predicate, a, b), yes, no)

    def clamp(self, x: str, low: float, high: float) -> str:
        """Hold a value in a range; NaN passes."""
        raised = self.choose("olt", x, low, low, x)
        return self.choose("ogt", raised, high, high, raised)

    def both(self, a: str, b: str) -> str:
        return self.let(f"and {self.vector.mask} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.let(f"or {self.vector.mask} {a}, {b}")

    def where_any(self, mask: str, usual: str, rare: Callable[[], str]) -> str:
        """Return ``usual`` unless a lane of the mask is set: then compute ``rare``, and take it in those lanes."""
        start, far, end = (f"{name}{self.prefix}{len(self.lines)}" for name in ("near", "far", "end"))
        name = f"@llvm.vector.reduce.or.v{self.vector.width}i1"
        self.intrinsics[name] = f"declare i1 {name}({self.vector.mask})"
        self.lines += [f"  br label %{start}", f"{start}:"]
        some = self.let(f"call i1 {name}({self.vector.mask} {mask})")
        self.lines += [f"  br i1 {some}, label %{far}, label %{end}", f"{far}:"]
        mended = self.select(mask, rare(), usual)
        # rare may have blocks of its own
        last = next(line[:-1] for line in reversed(self.lines) if line.endswith(":"))
        self.lines += [f"  br label %{end}", f"{end}:"]
        return self.let(f"phi {self.vector.type} [ {usual}, %{start} ], [ {mended}, %{last} ]")

    def repeat(
        self, start: Sequence[str], step: Callable[..., tuple[Sequence[str], str]], limit: int
    ) -> Sequence[str]:
        """Replace vectors by those that ``step`` makes of them, in each lane while its mask is set, ``limit`` times at most.

        A lane that is done does not change any more, so that it does not depend on the others.
        """
        label, mask_type = f"{self.prefix}{len(self.lines)}", self.vector.mask
        some = f"@llvm.vector.reduce.or.v{self.vector.width}i1"
        self.intrinsics[some] = f"declare i1 {some}({mask_type})"
        self.lines += [
            f"  br label %begin{label}",
            f"begin{label}:",
            f"  br label %loop{label}",
            f"loop{label}:",
        ]
        first = len(self.lines)
        values = [self.let("") for _ in start]  # their texts name what comes last
        going, count = self.let(""), self.let("")
        new, mask = step(*values)
        results = [self.select(going, *pair) for pair in zip(new, values, strict=True)]
        still = self.both(going, mask)
        more = self.let(f"add i32 {count}, 1")
        few = self.let(f"icmp ult i32 {more}, {limit}")
        go_on = self.let(f"and i1 {few}, {self.let(f'call i1 {some}({mask_type} {still})')}")
        self.lines += [f"  br label %again{label}", f"again{label}:"]
        self.lines += [f"  br i1 {go_on}, label %loop{label}, label %done{label}", f"done{label}:"]
        kinds = [*[self.vector.type] * len(values), mask_type, "i32"]
        before, after = [*start, self.vector.all_true, "0"], [*results, still, more]
        for k, (name, kind) in enumerate(zip([*values, going, count], kinds, strict=True)):
            pairs = f"[ {before[k]}, %begin{label} ], [ {after[k]}, %again{label} ]"
            self.lines[first + k] = f"  {name} = phi {kind} {pairs}"
        return results

    def lane_by_lane(self, name: str, x: str) -> str:
        """Call a function of the C library for each lane, in float64."""
        self.intrinsics[f"@{name}"] = f"declare double @{name}(double) nounwind willreturn memory(none)"
        v, result = self.vector, "poison"
        for i in range(v.width):
            lane = self.let(f"extractelement {v.type} {x}, i32 {i}")
            wide = lane if v.bits == 64 else self.let(f"fpext float {lane} to double")
            value = self.let(f"call double @{name}(double {wide})")
            value = value if v.bits == 64 else self.let(f"fptrunc double {value} to float")
            result = self.let(f"insertelement {v.type} {result}, {v.scalar} {value}, i32 {i}")
        return result
