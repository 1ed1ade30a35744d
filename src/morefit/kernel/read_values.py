"""Read the expressions of drivers: names, arithmetic, conditions and calls, each with its type."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import FunctionType, ModuleType
from typing import Any

from morefit.dataclass import dataclass
from morefit.errors import CompileError
from morefit.kernel.program import Kind, Layout, Stage
from morefit.kernel.statements import Call, Element, Function, Name, Number, Operate, Part, Value, as_float

INTRINSICS = {
    "exp": 1,
    "log": 1,
    "sqrt": 1,
    "floor": 1,
    "abs": 1,
    "min": 2,
    "max": 2,
    "isfinite": 1,
    "float": 1,
    "int": 1,
    "bool": 1,
}
VIEWS = {"vector_at": Kind.VECTOR, "integers_at": Kind.INTEGERS}  # of memory, from its address
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
NUMBERS = (Kind.FLOAT, Kind.INT)


@dataclass(eq=False)
class ValueReader:
    """Reads the expressions of one function."""

    node: ast.FunctionDef
    constants: Mapping[str, Any]  # of the module of the function
    callee: Callable[[FunctionType], Function]  # reads a function that is called
    stages: dict[str, Stage]  # that are called, by name
    variables: dict[str, Kind] = field(default_factory=dict)
    records: dict[str, Layout] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)  # variables of loops that have ended
    turns: tuple[ast.For, ...] = ()  # the parallel loops around what is read
    read: dict[tuple[str, tuple[ast.For, ...]], ast.Name] = field(
        default_factory=dict
    )  # variables in turns, where first

    def refused(self, node: ast.AST, rule: str) -> CompileError:
        """Return the error of a line that breaks a rule of the language."""
        line, text = getattr(node, "lineno", self.node.lineno), ast.unparse(node).partition("\n")[0]
        return CompileError(
            f"driver '{self.node.name}': line {line}: {rule}, got {text}", ast.unparse(self.node)
        )

    def value(self, node: ast.expr) -> Value:
        method = READ.get(type(node))
        if method is None:
            raise self.refused(node, "the language of drivers has no such expression")
        return method(self, node)

    def condition(self, node: ast.expr) -> Value:
        value = self.value(node)
        if value.kind is not Kind.BOOL:
            raise self.refused(node, "a condition must be a comparison or a bool")
        return value

    def numeric(self, node: ast.expr) -> Value:
        """Read a number, whole or not."""
        value = self.value(node)
        if value.kind not in NUMBERS:
            raise self.refused(node, "a number is needed")
        return value

    def whole(self, node: ast.expr) -> Value:
        value = self.value(node)
        if value.kind is not Kind.INT:
            raise self.refused(node, "a whole number is needed")
        return value

    def constant(self, node: ast.Constant) -> Value:
        return self.number(node, node.value)

    def number(self, node: ast.expr, value: object) -> Number:
        for kind, known in ((bool, Kind.BOOL), (int, Kind.INT), (float, Kind.FLOAT)):
            if isinstance(value, kind):
                return Number(value, known)
        raise self.refused(node, "constants must be numbers")

    def named(self, node: ast.Name) -> Value:
        if node.id in self.ended:
            raise self.refused(node, "the variable of a loop is not known after it")
        if node.id in self.variables:
            self.read.setdefault((node.id, self.turns), node)
            return Name(node.id, self.variables[node.id])
        if node.id not in self.constants:
            raise self.refused(node, "a name must be an argument, a variable or a constant of the module")
        return self.number(node, self.constants[node.id])

    def attribute(self, node: ast.Attribute) -> Value:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner not in self.variables and isinstance(module := self.constants.get(owner), ModuleType):
            return self.number(node, getattr(module, node.attr, None))
        layout = self.records.get(owner)
        if layout is None or node.attr not in layout.slices:
            raise self.refused(node, "a field needs a record that has it")
        kind = Kind.VECTOR if node.attr in layout.arrays else Kind.FLOAT
        return Part(owner, node.attr, layout.first(node.attr), kind)

    def subscript(self, node: ast.Subscript) -> Value:
        array, index = self.value(node.value), self.value(node.slice)
        if array.kind not in (Kind.VECTOR, Kind.INTEGERS) or index.kind is not Kind.INT:
            raise self.refused(node, "an element needs an array and a whole number")
        return Element(array, index, Kind.FLOAT if array.kind is Kind.VECTOR else Kind.INT)

    def unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Operate("not", (self.condition(node.operand),), Kind.BOOL)
        if not isinstance(node.op, ast.USub):
            raise self.refused(node, "the language of drivers has no such operator")
        a = self.numeric(node.operand)
        return Number(-a.value, a.kind) if isinstance(a, Number) else Operate("neg", (a,), a.kind)

    def binary(self, node: ast.BinOp) -> Value:
        op = ARITHMETIC.get(type(node.op))
        if op is None:
            raise self.refused(node, "the language of drivers has no such operator")
        a, b = self.numeric(node.left), self.numeric(node.right)
        if op in ("//", "%") and Kind.FLOAT in (a.kind, b.kind):
            raise self.refused(node, "// and % need whole numbers")
        if op == "/" or Kind.FLOAT in (a.kind, b.kind):
            return Operate(op, (as_float(a), as_float(b)), Kind.FLOAT)
        if isinstance(a, Number) and isinstance(b, Number):
            whole = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}
            if op in whole:
                return Number(int(whole[op]), Kind.INT)
        return Operate(op, (a, b), Kind.INT)

    def compare(self, node: ast.Compare) -> Value:
        values = [self.value(v) for v in (node.left, *node.comparators)]
        tests = [
            self.comparison(node, op, a, b)
            for a, op, b in zip(values, node.ops, values[1:], strict=False)
        ]  # fmt: skip
        return joined("and", tests)

    def comparison(self, node: ast.Compare, test: ast.cmpop, a: Value, b: Value) -> Value:
        op = COMPARISONS.get(type(test))
        numbers = a.kind in NUMBERS and b.kind in NUMBERS
        if op is None or not (numbers or (a.kind is b.kind is Kind.BOOL and op in ("==", "!="))):
            raise self.refused(node, "a comparison needs two numbers")
        if Kind.FLOAT in (a.kind, b.kind):
            a, b = as_float(a), as_float(b)
        return Operate(op, (a, b), Kind.BOOL)

    def boolean(self, node: ast.BoolOp) -> Value:
        op = "and" if isinstance(node.op, ast.And) else "or"
        return joined(op, [self.condition(v) for v in node.values])

    def choice(self, node: ast.IfExp) -> Value:
        a, b = self.value(node.body), self.value(node.orelse)
        if a.kind is not b.kind:
            a, b = as_float(a), as_float(b)
        if a.kind is not b.kind:
            raise self.refused(node, "both values of a choice must be of one type")
        return Operate("choose", (self.condition(node.test), a, b), a.kind)

    def call(self, node: ast.Call) -> Value:
        call = self.any_call(node)
        if isinstance(call, Call) and call.returns is None:
            raise self.refused(node, "a value needs a function that returns one")
        return call

    def any_call(self, node: ast.Call) -> Value:
        """Read a call, also of a function that returns nothing."""
        if not isinstance(node.func, ast.Name):
            raise self.refused(node, "a function must be called by its name")
        name = node.func.id
        if name == "len":
            return self.length(node)
        if name in INTRINSICS:
            return self.intrinsic(name, node)
        function = self.constants.get(name)
        if name in VIEWS:
            return Operate(name, (self.whole(self.only(node)),), VIEWS[name])
        if isinstance(function, Stage):
            self.stages[function.name] = function
            return Call(function.name, tuple(self.value(a) for a in node.args), function.kind)
        if not isinstance(function, FunctionType):
            raise self.refused(node, "a function must be known to the module")
        callee = self.callee(function)
        return Call(name, self.arguments(node, callee), callee.kind)

    def arguments(self, node: ast.Call, callee: Function) -> tuple[Value, ...]:
        """Read the arguments of a call, in their order or by name."""
        names = [name for name, _ in callee.arguments]
        nodes = dict(zip(names, node.args, strict=False))
        nodes |= {k.arg: k.value for k in node.keywords if k.arg is not None and k.arg not in nodes}
        if set(nodes) != set(names) or len(node.args) + len(node.keywords) != len(names):
            raise self.refused(node, f"'{callee.name}' needs {', '.join(names) or 'no arguments'}, each once")
        values = {name: self.value(nodes[name]) for name in names}
        for name, kind in callee.arguments:
            values[name] = as_float(values[name]) if kind is Kind.FLOAT else values[name]
            if values[name].kind is not kind:
                raise self.refused(node, f"argument '{name}' of '{callee.name}' must be {kind.value}")
        return tuple(values.values())

    def intrinsic(self, name: str, node: ast.Call) -> Value:
        if len(node.args) != INTRINSICS[name] or node.keywords:
            raise self.refused(node, f"'{name}' needs {INTRINSICS[name]} arguments in their order")
        if name == "bool":
            return self.condition(node.args[0])
        args = tuple(self.numeric(a) for a in node.args)
        whole = all(a.kind is Kind.INT for a in args)
        if name == "float":
            return as_float(args[0])
        if name == "int":
            return args[0] if whole else Operate("int", args, Kind.INT)
        if whole and name in ("abs", "min", "max"):
            return Operate(name, args, Kind.INT)
        kind = Kind.BOOL if name == "isfinite" else Kind.FLOAT
        return Operate(name, tuple(as_float(a) for a in args), kind)

    def only(self, node: ast.Call) -> ast.expr:
        if len(node.args) != 1 or node.keywords:
            raise self.refused(node, "one argument is needed")
        return node.args[0]

    def length(self, node: ast.Call) -> Value:
        """Return the number of elements of an array in a record, which its layout knows."""
        array = self.only(node)
        part = self.value(array) if isinstance(array, ast.Attribute) else None
        if not isinstance(part, Part) or part.kind is not Kind.VECTOR:
            raise self.refused(node, "only arrays of records have a known length")
        where = self.records[part.record].slice(part.field)
        return Number(where.stop - where.start, Kind.INT)


READ: dict[type[ast.expr], Callable[[ValueReader, Any], Value]] = {
    ast.Constant: ValueReader.constant,
    ast.Name: ValueReader.named,
    ast.Attribute: ValueReader.attribute,
    ast.Subscript: ValueReader.subscript,
    ast.UnaryOp: ValueReader.unary,
    ast.BinOp: ValueReader.binary,
    ast.Compare: ValueReader.compare,
    ast.BoolOp: ValueReader.boolean,
    ast.IfExp: ValueReader.choice,
    ast.Call: ValueReader.call,
}


def joined(op: str, tests: Sequence[Value]) -> Value:
    """Join conditions by ``and`` or ``or``."""
    first, *rest = tests
    for test in rest:
        first = Operate(op, (first, test), Kind.BOOL)
    return first
