"""Drivers as LLVM IR: one thread runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from morefit.dataclass import dataclass
from morefit.kernel.program import Kind
from morefit.kernel.read_program import read_program
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
    Program,
    Put,
    Statement,
    Value,
    While,
)
from morefit.targets.cpu.vecmath import define
from morefit.targets.cpu.writer import Vector, function_name, number_text

Condition = Callable[[], str]
TYPES = {
    Kind.FLOAT: "double", Kind.INT: "i64", Kind.BOOL: "i1", Kind.VECTOR: "ptr",
    Kind.INTEGERS: "ptr", Kind.RECORD: "ptr",
}  # fmt: skip
ARITHMETIC = {
    Kind.FLOAT: {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"},
    Kind.INT: {"+": "add", "-": "sub", "*": "mul"},
    Kind.BOOL: {"and": "and", "or": "or"},
}
FLOAT_TESTS = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
INT_TESTS = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
DECLARATIONS = (
    "declare double @llvm.sqrt.f64(double)",
    "declare double @llvm.fabs.f64(double)",
    "declare double @llvm.floor.f64(double)",
    "declare i64 @llvm.abs.i64(i64, i1)",
)
FUNCTIONS = ("exp", "log")
ONE = Vector(1)
INFINITY = number_text(float("inf"), 64)


def program_text(program: Program, *others: Program) -> list[str]:
    """Write all functions of programs, each once, the main ones for others to call; stages are functions of the same module."""
    mains = [program.main, *(other.main for other in others)]
    inner = {f.name: f for one in (program, *others) for f in one.functions[:-1]}
    texts = [
        *(FunctionText(f, "internal") for f in inner.values()),
        *(FunctionText(main, "") for main in mains),
    ]
    return [line for text in texts for line in text.lines()]


def drivers_text(*mains: Callable[..., Any], provided: Sequence[str]) -> str:
    """Write functions of drivers without records, all that they call, and the stages that are ``provided`` as text."""
    lines = program_text(*(read_program(main, {}) for main in mains))
    return "\n".join([*DECLARATIONS, *mathematics(lines), *provided, *lines])


def mathematics(lines: Sequence[str]) -> list[str]:
    """Write the functions of numbers that lines of a program call, and what these need."""
    names = [name for name in FUNCTIONS if any(f"@number_{name}(" in line for line in lines)]
    texts, declarations = define(names, ONE)
    for name in names:
        texts.append(
            f"define internal double @number_{name}(double %x) alwaysinline {{\n"
            f"  %v = insertelement {ONE.type} poison, double %x, i32 0\n"
            f"  %r = call {ONE.type} {function_name(name, ONE, False)}({ONE.type} %v)\n"
            f"  %y = extractelement {ONE.type} %r, i32 0\n  ret double %y\n}}"
        )
    return [*declarations.values(), *texts]


@dataclass(eq=False)
class FunctionText:
    """Writes one function; variables are memory, which LLVM turns into registers.

    What is known to be in one already is read from there: a third of the lines would be loads.
    """

    function: Function
    linkage: str
    body: list[str] = field(default_factory=list)
    count: int = 0
    loops: list[tuple[str, str]] = field(default_factory=list)  # labels of the next turn and of the end
    slots: list[str] = field(default_factory=list)  # memory for the values of branches
    known: dict[str, str] = field(default_factory=dict)  # variables whose value is a number or in a register

    def lines(self) -> list[str]:
        f = self.function
        self.known.update((name, f"%a.{name}") for name, _ in f.arguments)
        arguments = ", ".join(f"{TYPES[kind]} %a.{name}" for name, kind in f.arguments)
        kind = TYPES[f.kind] if f.kind else "void"
        changed = set(assigned(f.body))
        copied = [(name, k) for name, k in f.arguments if name in changed]
        rooms = [f"  %v.{name} = alloca {TYPES[k]}" for name, k in (*copied, *f.variables.items())]
        copies = [f"  store {TYPES[k]} %a.{name}, ptr %v.{name}" for name, k in copied]
        self.statements(f.body)
        end = "  unreachable" if f.kind else "  ret void"
        head = f"define {self.linkage} {kind} @{f.name}({arguments}) {{".replace("  ", " ")
        return [head, "entry:", *rooms, *self.slots, *copies, *self.body, end, "}"]

    def let(self, text: str) -> str:
        self.count += 1
        self.body.append(f"  %r{self.count} = {text}")
        return f"%r{self.count}"

    def label(self, name: str) -> str:
        self.count += 1
        return f"{name}{self.count}"

    def begin(self, label: str) -> None:
        self.body += [f"  br label %{label}", f"{label}:"]

    # statements

    def statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, s: Statement) -> None:
        if isinstance(s, Assign):
            value = self.value(s.value)
            self.body.append(f"  store {TYPES[s.value.kind]} {value}, ptr %v.{s.name}")
            self.known[s.name] = value
        elif isinstance(s, Put):
            value = self.value(s.value)
            self.body.append(f"  store {TYPES[s.place.kind]} {value}, ptr {self.address(s.place)}")
        elif isinstance(s, Do):
            self.call(s.call)
        elif isinstance(s, If):
            self.conditional(s)
        elif isinstance(s, While):
            self.loop(lambda: self.value(s.condition), s.body, [])
        elif isinstance(s, For):
            self.count_loop(s)
        else:
            self.leave(s)

    def leave(self, s: Leave) -> None:
        if s.how == "return":
            text = "ret void" if s.value is None else f"ret {TYPES[s.value.kind]} {self.value(s.value)}"
        else:
            again, end = self.loops[-1]
            text = f"br label %{again if s.how == 'continue' else end}"
        self.body += [f"  {text}", f"{self.label('after')}:"]

    def conditional(self, s: If) -> None:
        yes, no, end = self.label("then"), self.label("else"), self.label("end")
        self.body += [f"  br i1 {self.value(s.condition)}, label %{yes}, label %{no}", f"{yes}:"]
        before = dict(self.known)
        self.statements(s.body)
        self.body += [f"  br label %{end}", f"{no}:"]
        self.known = dict(before)
        self.statements(s.otherwise)
        self.begin(end)
        self.known = without(before, s.body, s.otherwise)

    def count_loop(self, s: For) -> None:
        end = self.value(s.end)
        self.statement(Assign(s.name, s.begin))
        test = "slt" if s.step > 0 else "sgt"

        def more() -> str:
            return self.let(f"icmp {test} i64 {self.value(Name(s.name, Kind.INT))}, {end}")

        follow = Assign(s.name, Operate("+", (Name(s.name, Kind.INT), Number(s.step, Kind.INT)), Kind.INT))
        self.loop(more, s.body, [follow])

    def loop(self, condition: Condition, body: Sequence[Statement], last: Sequence[Statement]) -> None:
        test, inside, again, done = (self.label(name) for name in ("test", "loop", "again", "done"))
        before = without(self.known, body, last)
        self.begin(test)
        self.known = dict(before)
        self.body += [f"  br i1 {condition()}, label %{inside}, label %{done}", f"{inside}:"]
        self.loops.append((again, done))
        self.statements(body)
        self.loops.pop()
        self.begin(again)
        self.statements(last)  # which reads what the test has read
        self.body += [f"  br label %{test}", f"{done}:"]
        self.known = before

    # expressions

    def value(self, value: Value) -> str:
        if isinstance(value, Number):
            return literal(value)
        if isinstance(value, Name):
            return self.variable(value.name, value.kind)
        if isinstance(value, Part) and value.kind is Kind.VECTOR:
            return self.address(value)
        if isinstance(value, Part | Element):
            return self.let(f"load {TYPES[value.kind]}, ptr {self.address(value)}")
        if isinstance(value, Call):
            return self.call(value)
        return self.operate(value)

    def variable(self, name: str, kind: Kind) -> str:
        if name not in self.known:
            self.known[name] = self.let(f"load {TYPES[kind]}, ptr %v.{name}")
        return self.known[name]

    def address(self, place: Element | Part) -> str:
        if isinstance(place, Part):
            record = self.variable(place.record, Kind.RECORD)
            return self.let(f"getelementptr double, ptr {record}, i64 {place.first}")
        array, index = self.value(place.array), self.value(place.index)
        return self.let(f"getelementptr {TYPES[place.kind]}, ptr {array}, i64 {index}")

    def call(self, call: Call) -> str:
        args = ", ".join(f"{TYPES[a.kind]} {text}" for a in call.args for text in [self.value(a)])
        text = f"@{call.function}({args})"
        if call.returns is None:
            self.body.append(f"  call void {text}")
            return ""
        return self.let(f"call {TYPES[call.returns]} {text}")

    def branch(self, value: Operate) -> str:
        """Compute the second operand, or one of two values, only where it is needed."""
        test, *args = value.args
        truth = Number(value.op == "or", Kind.BOOL)
        yes, no = {"and": (*args, truth), "or": (truth, *args), "choose": tuple(args)}[value.op]
        kind, slot = TYPES[value.kind], f"%s.{len(self.slots)}"
        self.slots.append(f"  {slot} = alloca {kind}")
        labels = [self.label(name) for name in ("yes", "no", "both")]
        self.body.append(f"  br i1 {self.value(test)}, label %{labels[0]}, label %{labels[1]}")
        before = dict(self.known)
        for label, one in zip(labels, (yes, no), strict=False):
            self.body.append(f"{label}:")
            self.body += [f"  store {kind} {self.value(one)}, ptr {slot}", f"  br label %{labels[2]}"]
            self.known = dict(before)
        self.body.append(f"{labels[2]}:")
        return self.let(f"load {kind}, ptr {slot}")

    def operate(self, value: Operate) -> str:
        if value.op in ("and", "or", "choose") and any(must_wait(a) for a in value.args[1:]):
            return self.branch(value)
        args = [self.value(a) for a in value.args]
        kind = value.args[0].kind
        if value.op == "choose":
            own = TYPES[value.kind]
            return self.let(f"select i1 {args[0]}, {own} {args[1]}, {own} {args[2]}")
        if value.op in ("min", "max"):
            test = "<" if value.op == "min" else ">"
            second = self.compare(test, kind, args[1], args[0])
            return self.let(f"select i1 {second}, {TYPES[kind]} {args[1]}, {TYPES[kind]} {args[0]}")
        if value.op in FLOAT_TESTS:
            return self.compare(value.op, kind, *args)
        if len(args) == 1:
            return self.unary(value.op, kind, args[0])
        if value.op in ("//", "%"):
            return self.divide(value.op, *args)
        return self.let(f"{ARITHMETIC[kind][value.op]} {TYPES[kind]} {args[0]}, {args[1]}")

    def divide(self, op: str, a: str, b: str) -> str:
        """Divide whole numbers as Python does, which rounds down."""
        towards_zero = self.let(f"srem i64 {a}, {b}")
        remainder = self.let(f"srem i64 {self.let(f'add i64 {towards_zero}, {b}')}, {b}")
        return remainder if op == "%" else self.let(f"sdiv i64 {self.let(f'sub i64 {a}, {remainder}')}, {b}")

    def compare(self, op: str, kind: Kind, a: str, b: str) -> str:
        if kind is Kind.FLOAT:
            return self.let(f"fcmp {FLOAT_TESTS[op]} double {a}, {b}")
        return self.let(f"icmp {INT_TESTS[op]} {TYPES[kind]} {a}, {b}")

    def unary(self, op: str, kind: Kind, a: str) -> str:
        if op == "isfinite":
            size = self.let(f"call double @llvm.fabs.f64(double {a})")
            return self.let(f"fcmp olt double {size}, {INFINITY}")
        texts = {
            ("not", Kind.BOOL): f"xor i1 {a}, true",
            ("neg", Kind.FLOAT): f"fneg double {a}",
            ("neg", Kind.INT): f"sub i64 0, {a}",
            ("float", Kind.INT): f"sitofp i64 {a} to double",
            ("int", Kind.FLOAT): f"fptosi double {a} to i64",
            ("exp", Kind.FLOAT): f"call double @number_exp(double {a})",
            ("log", Kind.FLOAT): f"call double @number_log(double {a})",
            ("sqrt", Kind.FLOAT): f"call double @llvm.sqrt.f64(double {a})",
            ("floor", Kind.FLOAT): f"call double @llvm.floor.f64(double {a})",
            ("vector_at", Kind.INT): f"inttoptr i64 {a} to ptr",
            ("integers_at", Kind.INT): f"inttoptr i64 {a} to ptr",
            ("abs", Kind.INT): f"call i64 @llvm.abs.i64(i64 {a}, i1 false)",
            ("abs", Kind.FLOAT): f"call double @llvm.fabs.f64(double {a})",
        }
        return self.let(texts[op, kind])


def without(known: Mapping[str, str], *blocks: Sequence[Statement]) -> dict[str, str]:
    """Return what is known of variables where some blocks of statements may have run."""
    changed = {name for block in blocks for name in assigned(block)}
    return {name: register for name, register in known.items() if name not in changed}


def assigned(statements: Sequence[Statement]) -> Iterator[str]:
    """Go through the variables that statements assign."""
    for s in statements:
        if isinstance(s, Assign | For):
            yield s.name
        if isinstance(s, If):
            yield from assigned(s.body)
            yield from assigned(s.otherwise)
        elif isinstance(s, While | For):
            yield from assigned(s.body)


def must_wait(value: Value) -> bool:
    """Return whether a value must not be computed where it is not needed: it calls a function, or divides by zero."""
    if isinstance(value, Operate):
        return value.op in ("//", "%") or any(map(must_wait, value.args))
    if isinstance(value, Element):
        return must_wait(value.array) or must_wait(value.index)
    return isinstance(value, Call)


def literal(value: Number) -> str:
    if value.kind is Kind.FLOAT:
        return number_text(float(value.value), 64)
    return str(int(value.value)) if value.kind is Kind.INT else str(bool(value.value)).lower()
