"""Drivers as OpenCL C: functions that one work item runs, or all items of a work-group together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from morefit.dataclass import dataclass
from morefit.kernel.program import Kind
from morefit.kernel.statements import (
    Assign,
    Call,
    Do,
    Element,
    For,
    Function,
    If,
    Leave,
    Name,
    Number,
    Operate,
    Part,
    Put,
    Statement,
    Value,
    While,
    nodes_in,
)
from morefit.targets.opencl.dialect import OPENCL, Dialect, indented, number_text

TYPES = {Kind.FLOAT: "double", Kind.INT: "int", Kind.BOOL: "int"}
CALLS = {
    "exp": "exp({0})", "log": "log({0})", "sqrt": "sqrt({0})", "floor": "floor({0})", "isfinite": "isfinite({0})",
    "float": "(double)({0})", "int": "(int)({0})",
}  # fmt: skip
SCRATCH = "scratch"  # the numbers of a record that an item has in its private memory
PREFIX = "do_"  # keeps functions apart from those of C, such as step
SYMBOLS = {"and": "&&", "or": "||"}
REMAINDER = "(({0} % {1} + {1}) % {1})"  # as Python has it: of a division that rounds down
TOGETHER = 2  # turns of a loop whose numbers are on their way from memory at the same time


def function_lines(function: Function, memory: str, writer: Writer) -> list[str]:
    """Write one function; its arrays and records are in one kind of memory, but for what the writer has in private memory."""

    def declared(name: str, kind: Kind) -> str:
        if writer.scratch is not None and kind in (Kind.RECORD, Kind.VECTOR):
            own = f"double *{SCRATCH if kind is Kind.RECORD else named(name, kind)}"
            return f"{memory}double *{name}, {own}" if kind is Kind.RECORD else own
        pointer = {Kind.VECTOR: "double *", Kind.RECORD: "double *", Kind.INTEGERS: "const int *"}.get(kind)
        return f"{memory}{pointer}{named(name, kind)}" if pointer else f"{TYPES[kind]} {named(name, kind)}"

    arguments = ", ".join(declared(name, kind) for name, kind in function.arguments)
    kind = TYPES[function.kind] if function.kind else "void"
    variables = [f"{declared(name, kind)};" for name, kind in function.variables.items()]
    body = indented([*variables, *writer.lines(function.body)])
    # inlined, the rare parts of a driver cost registers everywhere, and compilers take long
    return [f"__attribute__((noinline)) {kind} {PREFIX}{function.name}({arguments})", "{", *body, "}", ""]


def named(name: str, kind: Kind) -> str:
    """Return a name that is none of C's own, such as half."""
    return name if kind is Kind.RECORD else f"{name}_"


@dataclass(frozen=True)
class Writer:
    """Writes what one work item runs; the numbers of arrays and records are ``pitch`` apart in memory.

    From ``scratch`` on, if that is given, the numbers of a record are side by side in the private memory of the item, and so are all
    arrays that functions take.
    """

    pitch: int = 1
    scratch: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # of what has another one in the text

    def lines(self, statements: Sequence[Statement]) -> list[str]:
        return [line for s in statements for line in self.statement_lines(s)]

    def statement_lines(self, s: Statement) -> list[str]:
        text = self.text
        if isinstance(s, Assign):
            return [f"{named(s.name, s.value.kind)} = {text(s.value)};"]
        if isinstance(s, Put):
            return self.store_lines(text(s.place), text(s.value))
        if isinstance(s, Do):
            return [f"{text(s.call)};"]
        if isinstance(s, If):
            otherwise = ["} else {", *indented(self.lines(s.otherwise))] if s.otherwise else []
            return [f"if ({self.bare(s.condition)}) {{", *indented(self.lines(s.body)), *otherwise, "}"]
        if isinstance(s, While):
            return [f"while ({self.bare(s.condition)}) {{", *indented(self.lines(s.body)), "}"]
        if isinstance(s, Leave):
            return [f"{s.how};" if s.value is None else f"{s.how} {text(s.value)};"]
        return self.loop_lines(s)

    def store_lines(self, place: str, value: str) -> list[str]:
        return [f"{place} = {value};"]

    def loop_lines(self, s: For) -> list[str]:
        """Write a loop; what the body assigns does not change its end."""
        test, name = "<" if s.step > 0 else ">", named(s.name, Kind.INT)
        fixed = isinstance(s.end, Number)
        end, begin = self.text(s.end) if fixed else f"{name}end", f"{name} = {self.text(s.begin)}"
        loops = []
        if s.parallel and stores_at_end(s.body):
            head = f"for ({begin}; {name} < {end} - {TOGETHER - 1}; {name} += {TOGETHER}) {{"
            loops, begin = ["#pragma unroll 1", head, *indented(self.turns_together(s)), "}"], ""
        # unrolled, all loops of a driver would take compilers seconds; only where nothing is stored or decided is it faster
        unrolled = TOGETHER if all(isinstance(one, Assign) for one in s.body) and not calls(s.body) else 1
        head = f"for ({begin}; {name} {test} {end}; {name} += {s.step}) {{"
        loops += [f"#pragma unroll {unrolled}", head, *indented(self.lines(s.body)), "}"]
        return loops if fixed else ["{", *indented([f"const int {end} = {self.text(s.end)};", *loops]), "}"]

    def turns_together(self, s: For) -> list[str]:
        """Write some turns of a parallel loop at a time: all that they compute, then all that they store.

        Compilers read nothing ahead of a store, so that each turn would wait for memory alone.
        """
        name = named(s.name, Kind.INT)
        made, stores = list[str](), list[str]()
        for turn in range(TOGETHER):
            own = {one.name: f"{one.name}_{turn}" for one in s.body if isinstance(one, Assign)}
            writer = replace(self, names={**self.names, **own, s.name: f"({name} + {turn})"})
            for k, one in enumerate(s.body):
                if isinstance(one, Assign):
                    made.append(f"const {TYPES[one.value.kind]} {own[one.name]} = {writer.text(one.value)};")
                elif isinstance(one, Put):
                    made.append(f"const double stored{k}_{turn} = {writer.text(one.value)};")
                    stores.append(f"{writer.text(one.place)} = stored{k}_{turn};")
        return [*made, *stores]

    def text(self, value: Value) -> str:
        """Write an expression."""
        if isinstance(value, Number):
            return number_text(float(value.value)) if value.kind is Kind.FLOAT else str(int(value.value))
        if isinstance(value, Name):
            return self.names.get(value.name) or named(value.name, value.kind)
        if isinstance(value, Part):
            record, first = value.record, value.first * self.pitch
            if self.scratch is not None and self.is_private(value):
                record, first = SCRATCH, value.first - self.scratch
            return f"({record} + {first})" if value.kind is Kind.VECTOR else f"{record}[{first}]"
        if isinstance(value, Element):
            index, pitch = self.text(value.index), self.pitch_of(value.array)
            return f"{self.text(value.array)}[{index if pitch == 1 else f'{index} * {pitch}'}]"
        if isinstance(value, Call):
            return f"{PREFIX}{value.function}({', '.join(self.argument(a) for a in value.args)})"
        return operation(value.op, value.kind, [self.text(a) for a in value.args])

    def argument(self, value: Value) -> str:
        """Write an argument of a call."""
        if self.scratch is None:
            return self.text(value)
        assert value.kind is not Kind.VECTOR or self.is_private(value), (
            "arrays that functions take are scratch"
        )
        return f"{self.text(value)}, {SCRATCH}" if value.kind is Kind.RECORD else self.text(value)

    def is_private(self, array: Value) -> bool:
        """Return whether an array, or a number of a record, is in private memory."""
        return self.scratch is not None and (not isinstance(array, Part) or array.first >= self.scratch)

    def pitch_of(self, array: Value) -> int:
        """Return how far the numbers of an array are apart."""
        return 1 if self.is_private(array) else self.pitch

    def bare(self, condition: Value) -> str:
        """Write a condition that has brackets around it already."""
        written = self.text(condition)
        operated = isinstance(condition, Operate) and condition.op not in CALLS
        return written[1:-1] if operated else written


@dataclass(frozen=True)
class GroupWriter(Writer):
    """Writes what all items of a work-group run together.

    Each computes the same; one stores the numbers, after all have read what was there before, and all wait for it. The
    turns of a parallel loop are shared among them.
    """

    dialect: Dialect = OPENCL

    def store_lines(self, place: str, value: str) -> list[str]:
        d = self.dialect
        lines = [f"const double stored = {value};", d.wait_memory, f"if ({d.item} == 0) {place} = stored;"]
        return ["{", *indented([*lines, d.wait_memory]), "}"]

    def loop_lines(self, s: For) -> list[str]:
        if not s.parallel:
            return super().loop_lines(s)
        name, wait, turn = named(s.name, Kind.INT), self.dialect.wait_memory, Writer(self.pitch)
        begin, end = turn.text(s.begin), turn.text(s.end)
        head = (
            f"for ({name} = {begin} + {self.dialect.item}; {name} < {end}; {name} += {self.dialect.items}) {{"
        )
        return [wait, "#pragma unroll 1", head, *indented(turn.lines(s.body)), "}", wait]


@dataclass(frozen=True)
class TileWriter(Writer):
    """Writes what one work item runs, whose numbers lie among those of others; whole numbers and ``shared`` arrays are read by all."""

    shared: frozenset[str] = frozenset()

    def pitch_of(self, array: Value) -> int:
        own = isinstance(array, Name) and array.kind is Kind.VECTOR and array.name not in self.shared
        return self.pitch if own else 1


def calls(body: Sequence[Statement]) -> bool:
    """Return whether statements call other functions."""
    return any(isinstance(one, Call) for one in nodes_in(tuple(body)))


def stores_at_end(body: Sequence[Statement]) -> bool:
    """Return whether a turn only computes and stores, and may store at its end: it reads nothing that it has stored."""
    stored, assigned = list[Value](), set[str]()
    own = {one.name for one in body if isinstance(one, Assign)}
    for one in body:
        if not isinstance(one, Assign | Put):
            return False
        read = (
            (one.value, one.place.index)
            if isinstance(one, Put) and isinstance(one.place, Element)
            else one.value
        )
        nodes = list(nodes_in(read))
        early = {n.name for n in nodes if isinstance(n, Name)} & own - assigned
        arrays = [n.array if isinstance(n, Element) else n for n in nodes if isinstance(n, Element | Part)]
        if early or any(may_be_one(array, other) for array in arrays for other in stored):
            return False
        if isinstance(one, Put):
            stored.append(one.place.array if isinstance(one.place, Element) else one.place)
        elif one.name in assigned:
            return False
        else:
            assigned.add(one.name)
    return not calls(body)


def may_be_one(one: Value, other: Value) -> bool:
    """Return whether two arrays may be the same: fields of a record are not, arguments may be."""
    return one == other or not (isinstance(one, Part) and isinstance(other, Part))


def operation(op: str, kind: Kind, args: Sequence[str]) -> str:
    """Write an operation in brackets."""
    if op == "choose":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if op in ("min", "max"):
        test = "<" if op == "min" else ">"
        return f"({args[1]} {test} {args[0]} ? {args[1]} : {args[0]})"
    if op == "abs":
        return f"fabs({args[0]})" if kind is Kind.FLOAT else f"abs({args[0]})"
    if op in ("neg", "not"):
        return f"({'-' if op == 'neg' else '!'}{args[0]})"
    if op in ("//", "%"):
        rest = REMAINDER.format(*args)
        return rest if op == "%" else f"(({args[0]} - {rest}) / {args[1]})"
    if op in CALLS:
        return CALLS[op].format(*args)
    return f"({args[0]} {SYMBOLS.get(op, op)} {args[1]})"
