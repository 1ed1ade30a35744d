"""Register functions by name, and write what they share: polynomials, pairs of numbers (high, low), choices between lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature

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


Pair = tuple[str, str]  # an unevaluated sum, the second much smaller than the first

INFINITY = float("inf")
NAN = float("nan")


def polynomial(w: Writer, coefficients: Sequence[float], x: str) -> str:
    """Evaluate a polynomial, lowest coefficient first.

    The lowest comes in last, so that its sum is rounded once; the others are paired as Estrin did.
    """
    return w.fma(_estrin(w, coefficients[1:], x), x, w.number(coefficients[0]))


def lean_polynomial(w: Writer, coefficients: Sequence[float], x: str) -> str:
    """Evaluate a polynomial with few multiplications, for loops that have others to do meanwhile.

    Even and odd powers are two chains, Horner's; on an AVX-512 core this beats Estrin's in a long loop by 5 %.
    """
    square = w.mul(x, x)
    chains = []
    for part in (coefficients[0::2], coefficients[1::2]):
        total = w.number(part[-1])
        for c in reversed(part[:-1]):
            total = w.fma(total, square, w.number(c))
        chains.append(total)
    return w.fma(chains[1], x, chains[0])


def _estrin(w: Writer, coefficients: Sequence[float], x: str) -> str:
    terms = [w.number(c) for c in coefficients]
    while len(terms) > 1:
        pairs = [w.fma(terms[i + 1], x, terms[i]) for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[2 * len(pairs) :]
        x = w.mul(x, x) if len(terms) > 1 else x
    return terms[0]


def fast_two_sum(w: Writer, a: str, b: str) -> Pair:
    """Add exactly, for ``|a| >= |b|`` (Dekker)."""
    high = w.add(a, b)
    return high, w.sub(b, w.sub(high, a))


def two_sum(w: Writer, a: str, b: str) -> Pair:
    """Add exactly, in any order of size (Knuth)."""
    high = w.add(a, b)
    part = w.sub(high, a)
    return high, w.add(w.sub(a, w.sub(high, part)), w.sub(b, part))


def two_product(w: Writer, a: str, b: str) -> Pair:
    """Multiply exactly."""
    high = w.mul(a, b)
    return high, w.fma(a, b, w.neg(high))


def multiply(w: Writer, a: Pair, b: Pair) -> Pair:
    """Multiply two pairs."""
    high, low = two_product(w, a[0], b[0])
    return high, w.fma(a[0], b[1], w.fma(a[1], b[0], low))


def reciprocal(w: Writer, a: Pair) -> Pair:
    """Divide one by a pair."""
    high = w.div(w.number(1.0), a[0])
    rest = w.fma(w.neg(high), a[1], w.fma(w.neg(high), a[0], w.number(1.0)))
    return high, w.mul(high, rest)


def divide(w: Writer, a: Pair, b: Pair) -> str:
    """Divide two pairs and round once, nearly."""
    inverse = w.div(w.number(1.0), b[0])
    high = w.mul(a[0], inverse)
    rest = w.fma(w.neg(high), b[0], a[0])
    return w.fma(w.fma(w.neg(high), b[1], w.add(rest, a[1])), inverse, high)


def absolute(w: Writer, x: str) -> str:
    return w.intrinsic("fabs", x)


def copy_sign(w: Writer, x: str, sign: str) -> str:
    return w.intrinsic("copysign", x, sign)


def flip_sign(w: Writer, x: str, bits: str) -> str:
    """Negate where the lowest bit of an integer is set."""
    sign = w.integer_op("shl", bits, w.integer(w.vector.bits - 1))
    return w.from_bits(w.integer_op("xor", w.to_bits(x), sign))


def choose(w: Writer, predicate: str, a: str, b: float, yes: str | float, no: str | float) -> str:
    """Select by comparing with a number; NaN takes the side that the predicate chooses for it."""
    return w.select(w.compare(predicate, a, w.number(b)), operand(w, yes), operand(w, no))


def operand(w: Writer, value: str | float) -> str:
    return value if isinstance(value, str) else w.number(value)


def clamp(w: Writer, x: str, low: float, high: float) -> str:
    """Hold a value in a range; NaN passes."""
    raised = choose(w, "olt", x, low, low, x)
    return choose(w, "ogt", raised, high, high, raised)


def both(w: Writer, a: str, b: str) -> str:
    return w.let(f"and {w.vector.mask} {a}, {b}")


def either(w: Writer, a: str, b: str) -> str:
    return w.let(f"or {w.vector.mask} {a}, {b}")


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


def where_any(w: Writer, mask: str, usual: str, rare: Callable[[], str]) -> str:
    """Return ``usual`` unless a lane of the mask is set: then compute ``rare``, and take it in those lanes."""
    start, far, end = (f"{name}{w.prefix}{len(w.lines)}" for name in ("near", "far", "end"))
    name = f"@llvm.vector.reduce.or.v{w.vector.width}i1"
    w.intrinsics[name] = f"declare i1 {name}({w.vector.mask})"
    w.lines += [f"  br label %{start}", f"{start}:"]
    some = w.let(f"call i1 {name}({w.vector.mask} {mask})")
    w.lines += [f"  br i1 {some}, label %{far}, label %{end}", f"{far}:"]
    mended = w.select(mask, rare(), usual)
    last = next(
        line[:-1] for line in reversed(w.lines) if line.endswith(":")
    )  # rare may have blocks of its own
    w.lines += [f"  br label %{end}", f"{end}:"]
    return w.let(f"phi {w.vector.type} [ {usual}, %{start} ], [ {mended}, %{last} ]")


def repeat(
    w: Writer, start: Sequence[str], step: Callable[..., tuple[Sequence[str], str]], limit: int
) -> Sequence[str]:
    """Replace vectors by those that ``step`` makes of them, in each lane while its mask is set, ``limit`` times at most.

    A lane that is done does not change any more, so that it does not depend on the others.
    """
    label, mask_type = f"{w.prefix}{len(w.lines)}", w.vector.mask
    some = f"@llvm.vector.reduce.or.v{w.vector.width}i1"
    w.intrinsics[some] = f"declare i1 {some}({mask_type})"
    w.lines += [f"  br label %begin{label}", f"begin{label}:", f"  br label %loop{label}", f"loop{label}:"]
    first = len(w.lines)
    values = [w.let("") for _ in start]  # their texts name what comes last
    going, count = w.let(""), w.let("")
    new, mask = step(*values)
    results = [w.select(going, *pair) for pair in zip(new, values, strict=True)]
    still = both(w, going, mask)
    more = w.let(f"add i32 {count}, 1")
    few = w.let(f"icmp ult i32 {more}, {limit}")
    go_on = w.let(f"and i1 {few}, {w.let(f'call i1 {some}({mask_type} {still})')}")
    w.lines += [f"  br label %again{label}", f"again{label}:"]
    w.lines += [f"  br i1 {go_on}, label %loop{label}, label %done{label}", f"done{label}:"]
    every = "<" + ", ".join(["i1 true"] * w.vector.width) + ">"
    kinds = [*[w.vector.type] * len(values), mask_type, "i32"]
    before, after = [*start, every, "0"], [*results, still, more]
    for k, (name, kind) in enumerate(zip([*values, going, count], kinds, strict=True)):
        pairs = f"[ {before[k]}, %begin{label} ], [ {after[k]}, %again{label} ]"
        w.lines[first + k] = f"  {name} = phi {kind} {pairs}"
    return results


def lane_by_lane(w: Writer, name: str, x: str) -> str:
    """Call a function of the C library for each lane, in float64."""
    w.intrinsics[f"@{name}"] = f"declare double @{name}(double) nounwind willreturn memory(none)"
    v, result = w.vector, "poison"
    for i in range(v.width):
        lane = w.let(f"extractelement {v.type} {x}, i32 {i}")
        wide = lane if v.bits == 64 else w.let(f"fpext float {lane} to double")
        value = w.let(f"call double @{name}(double {wide})")
        value = value if v.bits == 64 else w.let(f"fptrunc double {value} to float")
        result = w.let(f"insertelement {v.type} {result}, {v.scalar} {value}, i32 {i}")
    return result


@vector_function()
def sign(w: Writer, x: str) -> str:
    """Return 1, -1, or x itself where that is zero or NaN."""
    return choose(w, "ogt", x, 0.0, 1.0, choose(w, "olt", x, 0.0, -1.0, x))
