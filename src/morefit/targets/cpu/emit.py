"""Kernel lines as LLVM instructions: one row an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from morefit.expr import Op
from morefit.kernel import Arith, Atom, Body
from morefit.targets.cpu.writer import Writer

CONTRACT = "contract "  # a * b + c may be rounded once
Emit = Callable[..., str]


def function(name: str) -> Emit:
    return lambda w, *args: w.call(name, *args)


def intrinsic(name: str) -> Emit:
    return lambda w, *args: w.intrinsic(name, *args)


def comparison(predicate: str) -> Emit:
    return lambda w, a, b: w.select(w.compare(predicate, a, b), w.number(1.0), w.number(0.0))


def choice(predicate: str) -> Emit:
    """Take the first argument where it compares so with the second or is NaN, as numpy does."""
    return lambda w, a, b: w.select(
        w.let(f"or {w.vector.mask} {w.compare(predicate, a, b)}, {w.compare('uno', a, a)}"), a, b
    )


def gather(w: Writer, table: str, place: str) -> str:
    """Load one number for each lane; the register of a table is its address."""
    v = w.vector
    places = w.let(f"fptosi {v.type} {place} to <{v.width} x i64>")
    result = "undef"
    for lane in range(v.width):
        index = w.let(f"extractelement <{v.width} x i64> {places}, i32 {lane}")
        number = w.let(f"load double, ptr {w.let(f'getelementptr double, ptr {table}, i64 {index}')}")
        if v.bits == 32:
            number = w.let(f"fptrunc double {number} to float")
        result = w.let(f"insertelement {v.type} {result}, {v.scalar} {number}, i32 {lane}")
    return result


EMIT: dict[Op | Arith, Emit] = {
    Op.ADD: lambda w, a, b: w.add(a, b, CONTRACT),
    Op.MUL: lambda w, a, b: w.mul(a, b, CONTRACT),
    Arith.SUB: lambda w, a, b: w.sub(a, b, CONTRACT),
    Arith.DIV: lambda w, a, b: w.div(a, b),
    Arith.NEG: lambda w, a: w.neg(a),
    Op.POW: function("pow"),
    Op.EXP: function("exp"),
    Op.EXP2: function("exp2"),
    Op.EXPM1: function("expm1"),
    Op.LOG: function("log"),
    Op.LOG1P: function("log1p"),
    Op.LOG2: function("log2"),
    Op.LOG10: function("log10"),
    Op.SQRT: intrinsic("sqrt"),
    Op.SIN: function("sin"),
    Op.COS: function("cos"),
    Op.TAN: function("tan"),
    Op.ASIN: function("asin"),
    Op.ACOS: function("acos"),
    Op.ATAN: function("atan"),
    Op.ATAN2: function("atan2"),
    Op.SINH: function("sinh"),
    Op.COSH: function("cosh"),
    Op.TANH: function("tanh"),
    Op.ERF: function("erf"),
    Op.ERFC: function("erfc"),
    Op.NDTRI: function("ndtri"),
    Op.LGAMMA: function("lgamma"),
    Op.DIGAMMA: function("digamma"),
    Op.TRIGAMMA: function("trigamma"),
    Op.TETRAGAMMA: function("tetragamma"),
    Op.ABS: intrinsic("fabs"),
    Op.FLOOR: intrinsic("floor"),
    Op.MIN: choice("olt"),
    Op.MAX: choice("ogt"),
    Op.LESS: comparison("olt"),
    Op.LESS_EQUAL: comparison("ole"),
    Op.EQUAL: comparison("oeq"),
    Op.NOT_EQUAL: comparison("une"),
    Op.LOOKUP: lambda w, table, place: gather(w, table, place),
    Op.WHERE: lambda w, c, a, b: w.select(w.compare("une", c, w.number(0.0)), a, b),
}


FLUSHED: dict[Op | Arith, Emit] = {
    Op.EXP: function("exp_flushed"),
    Op.EXP2: function("exp2_flushed"),
}  # where denormals count as zero


def emit_body(writer: Writer, body: Body, names: Mapping[str, str], *, flushed: bool = False) -> list[str]:
    """Write the lines of a body; return the registers of its results."""
    registers = dict(names)
    table = EMIT | FLUSHED if flushed else EMIT

    def atom(value: Atom) -> str:
        return registers[value] if isinstance(value, str) else writer.number(value)

    for line in body.lines:
        registers[line.target] = table[line.op](writer, *(atom(a) for a in line.args))
    return [atom(r) for r in body.results]
