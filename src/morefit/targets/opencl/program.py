"""Drivers as OpenCL C: one item of a work-group runs what has no stages, and all wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morefit.kernel.program import (
    Assign,
    Call,
    Do,
    Element,
    For,
    Function,
    If,
    Kind,
    Leave,
    Name,
    Number,
    Operate,
    Part,
    Program,
    Put,
    Statement,
    Value,
    While,
)
from morefit.targets.opencl.dialect import indented, number_text

TYPES = {Kind.FLOAT: "double", Kind.INT: "int", Kind.BOOL: "int"}
CALLS = {"sqrt": "sqrt({0})", "isfinite": "isfinite({0})", "float": "(double)({0})", "int": "(int)({0})"}
PREFIX = "do_"  # keeps functions apart from those of C, such as step
SYMBOLS = {"and": "&&", "or": "||"}
REMAINDER = "(({0} % {1} + {1}) % {1})"  # as Python has it: of a division that rounds down


def function_lines(function: Function, memory: str, others: Mapping[str, str] | None = None) -> list[str]:
    """Write one function; arrays and records are in one kind of memory, but for ``others`` by name."""

    def declared(name: str, kind: Kind) -> str:
        own = (others or {}).get(name, memory)
        pointer = kind in (Kind.VECTOR, Kind.RECORD)
        return f"{own}double *{named(name, kind)}" if pointer else f"{TYPES[kind]} {named(name, kind)}"

    arguments = ", ".join(declared(name, kind) for name, kind in function.arguments)
    kind = TYPES[function.kind] if function.kind else "void"
    variables = [f"{declared(name, kind)};" for name, kind in function.variables.items()]
    body = indented([*variables, *lines(function.body)])
    # inlined, the rare parts of a driver cost registers everywhere: fewer groups run at a time, and compilers take long
    return [f"__attribute__((noinline)) {kind} {PREFIX}{function.name}({arguments})", "{", *body, "}", ""]


def named(name: str, kind: Kind) -> str:
    """Return a name that is none of C's own, such as half."""
    return name if kind is Kind.RECORD else f"{name}_"


def group_lines(
    program: Program, body: Sequence[Statement], stages: Mapping[str, Sequence[str]], wait: str
) -> list[str]:
    """Write what all items of a work-group run: stages together, everything else one of them."""
    written: list[str] = []
    for statement in body:
        if isinstance(statement, Do) and statement.call.function in stages:
            written += stages[statement.call.function]
        elif isinstance(statement, While) and program.needs_stages(statement.body):
            inside = group_lines(program, statement.body, stages, wait)
            written += [f"while ({bare(statement.condition)}) {{", *indented(inside), "}"]
        else:
            assert not program.needs_stages([statement])
            written += ["if (item == 0) {", *indented(lines([statement])), "}", wait]
    return written


def lines(statements: Sequence[Statement]) -> list[str]:
    return [line for s in statements for line in statement_lines(s)]


def statement_lines(s: Statement) -> list[str]:
    if isinstance(s, Assign):
        return [f"{named(s.name, s.value.kind)} = {text(s.value)};"]
    if isinstance(s, Put):
        return [f"{text(s.place)} = {text(s.value)};"]
    if isinstance(s, Do):
        return [f"{text(s.call)};"]
    if isinstance(s, If):
        otherwise = ["} else {", *indented(lines(s.otherwise))] if s.otherwise else []
        return [f"if ({bare(s.condition)}) {{", *indented(lines(s.body)), *otherwise, "}"]
    if isinstance(s, While):
        return [f"while ({bare(s.condition)}) {{", *indented(lines(s.body)), "}"]
    if isinstance(s, Leave):
        return [f"{s.how};" if s.value is None else f"{s.how} {text(s.value)};"]
    return loop_lines(s)


def loop_lines(s: For) -> list[str]:
    """Write a loop; what the body assigns does not change its end."""
    test, name = "<" if s.step > 0 else ">", named(s.name, Kind.INT)
    fixed = isinstance(s.end, Number)
    end = text(s.end) if fixed else f"{name}end"
    head = f"for ({name} = {text(s.begin)}; {name} {test} {end}; {name} += {s.step}) {{"
    loop = [head, *indented(lines(s.body)), "}"]
    return loop if fixed else ["{", *indented([f"const int {end} = {text(s.end)};", *loop]), "}"]


def text(value: Value) -> str:
    """Write an expression."""
    if isinstance(value, Number):
        return number_text(float(value.value)) if value.kind is Kind.FLOAT else str(int(value.value))
    if isinstance(value, Name):
        return named(value.name, value.kind)
    if isinstance(value, Part):
        return (
            f"({value.record} + {value.first})"
            if value.kind is Kind.VECTOR
            else f"{value.record}[{value.first}]"
        )
    if isinstance(value, Element):
        return f"{text(value.array)}[{text(value.index)}]"
    if isinstance(value, Call):
        return f"{PREFIX}{value.function}({', '.join(text(a) for a in value.args)})"
    return operation(value)


def bare(condition: Value) -> str:
    """Write a condition that has brackets around it already."""
    written = text(condition)
    operated = isinstance(condition, Operate) and condition.op not in CALLS
    return written[1:-1] if operated else written


def operation(value: Operate) -> str:
    args = [text(a) for a in value.args]
    if value.op == "choose":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if value.op in ("min", "max"):
        test = "<" if value.op == "min" else ">"
        return f"({args[1]} {test} {args[0]} ? {args[1]} : {args[0]})"
    if value.op == "abs":
        return f"fabs({args[0]})" if value.kind is Kind.FLOAT else f"abs({args[0]})"
    if value.op in ("neg", "not"):
        return f"({'-' if value.op == 'neg' else '!'}{args[0]})"
    if value.op in ("//", "%"):
        rest = REMAINDER.format(*args)
        return rest if value.op == "%" else f"(({args[0]} - {rest}) / {args[1]})"
    if value.op in CALLS:
        return CALLS[value.op].format(*args)
    return f"({args[0]} {SYMBOLS.get(value.op, value.op)} {args[1]})"
