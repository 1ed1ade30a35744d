"""Kernel lines as LLVM instructions: the record of an operation says which."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from morefit.expr.operations import LlvmKind, Operation
from morefit.kernel import Atom, Body
from morefit.targets.cpu.writer import Writer


def instruction(w: Writer, name: str, *args: str) -> str:
    return w.let(f"{name} {w.vector.type} {', '.join(args)}")


def comparison(w: Writer, predicate: str, a: str, b: str) -> str:
    return w.select(w.compare(predicate, a, b), w.number(1.0), w.number(0.0))


def choice(w: Writer, predicate: str, a: str, b: str) -> str:
    """Take the first argument where it compares so with the second or is NaN, as numpy does."""
    holds = w.compare(predicate, a, b)
    return w.select(w.let(f"or {w.vector.mask} {holds}, {w.compare('uno', a, a)}"), a, b)


def select(w: Writer, name: str, condition: str, a: str, b: str) -> str:
    return w.select(w.compare("une", condition, w.number(0.0)), a, b)


def gather(w: Writer, name: str, table: str, place: str) -> str:
    """Load one number for each lane; the register of a table is its address."""
    v = w.vector
    indices = w.let(f"fptosi {v.type} {place} to <{v.width} x i64>")
    result = "undef"
    for lane in range(v.width):
        index = w.let(f"extractelement <{v.width} x i64> {indices}, i32 {lane}")
        number = w.let(f"load double, ptr {w.let(f'getelementptr double, ptr {table}, i64 {index}')}")
        if v.bits == 32:
            number = w.let(f"fptrunc double {number} to float")
        result = w.let(f"insertelement {v.type} {result}, {v.scalar} {number}, i32 {lane}")
    return result


EMIT: dict[LlvmKind, Callable[..., str]] = {
    LlvmKind.INSTRUCTION: instruction,
    LlvmKind.INTRINSIC: Writer.intrinsic,
    LlvmKind.CALL: Writer.call,
    LlvmKind.COMPARISON: comparison,
    LlvmKind.CHOICE: choice,
    LlvmKind.SELECT: select,
    LlvmKind.GATHER: gather,
}


def emit(writer: Writer, op: Operation, args: list[str], *, flushed: bool = False) -> str:
    """Write one operation; return the register of its result."""
    llvm = op.llvm
    assert llvm is not None
    return EMIT[llvm.kind](writer, llvm.flushed if flushed and llvm.flushed else llvm.name, *args)


def emit_body(writer: Writer, body: Body, names: Mapping[str, str], *, flushed: bool = False) -> list[str]:
    """Write the lines of a body; return the registers of its results."""
    registers = dict(names)

    def atom(value: Atom) -> str:
        return registers[value] if isinstance(value, str) else writer.number(value)

    for line in body.lines:
        registers[line.target] = emit(writer, line.op, [atom(a) for a in line.args], flushed=flushed)
    return [atom(r) for r in body.results]
