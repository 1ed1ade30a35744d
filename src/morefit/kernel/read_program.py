"""Read drivers: the text of plain Python functions becomes the structured form that targets render."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

from morefit.errors import CompileError
from morefit.kernel.program import (
    Assign,
    Call,
    Do,
    Element,
    For,
    Function,
    If,
    Kind,
    Layout,
    Leave,
    Name,
    Number,
    Operate,
    Part,
    Program,
    Put,
    Stage,
    Statement,
    Value,
    While,
    as_float,
    joined,
    number,
)

INTRINSICS = {"sqrt": 1, "abs": 1, "min": 2, "max": 2, "isfinite": 1, "float": 1, "int": 1, "bool": 1}
VIEWS = {"vector_at": Kind.VECTOR, "integers_at": Kind.INTEGERS}  # of memory, from its address
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "-",
}  # fmt: skip
ANNOTATIONS = {kind.value: kind for kind in Kind if kind is not Kind.RECORD}


def read_program(main: Callable[..., Any], layouts: Mapping[str, Layout]) -> Program:
    """Read a function and all that it calls; ``layouts`` say where the fields of records are, by class."""
    reader = Reader(layouts)
    reader.read(main)
    return Program(tuple(reader.functions.values()), frozenset(reader.stages))


@dataclass(eq=False)
class Reader:
    """Reads functions, each after those it calls."""

    layouts: Mapping[str, Layout]
    functions: dict[str, Function] = field(default_factory=dict)
    stages: set[str] = field(default_factory=set)

    def read(self, function: Callable[..., Any]) -> Function:
        name = function.__name__
        if name not in self.functions:
            assert isinstance(function, FunctionType)
            self.functions[name] = FunctionReader(self, function).read()
        return self.functions[name]


@lru_cache(maxsize=16)
def definitions(module: str) -> dict[str, ast.FunctionDef]:
    """Parse the functions of a module."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


class FunctionReader:
    """Reads one function."""

    def __init__(self, reader: Reader, function: FunctionType) -> None:
        self.reader, self.globals = reader, function.__globals__
        self.node = definitions(function.__module__)[function.__name__]
        self.variables: dict[str, Kind] = {}
        self.records: dict[str, Layout] = {}
        returns = ast.unparse(self.node.returns) if self.node.returns else "None"
        self.kind = ANNOTATIONS.get(returns)

    def read(self) -> Function:
        arguments = []
        for argument in self.node.args.args:
            assert argument.annotation is not None
            kind = self.annotated(argument.arg, argument.annotation)
            arguments.append((argument.arg, kind))
            self.variables[argument.arg] = kind
        statements = tuple(self.statements(self.node.body))
        local = {n: k for n, k in self.variables.items() if n not in dict(arguments)}
        return Function(self.node.name, tuple(arguments), local, statements, self.kind)

    def annotated(self, name: str, annotation: ast.expr) -> Kind:
        text = ast.unparse(annotation)
        if text in ANNOTATIONS:
            return ANNOTATIONS[text]
        if text not in self.reader.layouts:
            raise self.refused(annotation, f"no layout of {text}")
        self.records[name] = self.reader.layouts[text]
        return Kind.RECORD

    def refused(self, node: ast.AST, why: str) -> CompileError:
        line = getattr(node, "lineno", 0)
        return CompileError(
            f"driver '{self.node.name}': line {line}: {why}: {ast.unparse(node)}", ast.unparse(self.node)
        )

    # statements

    def statements(self, nodes: Sequence[ast.stmt]) -> Iterator[Statement]:
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            yield from self.statement(node)

    def statement(self, node: ast.stmt) -> Iterator[Statement]:
        if isinstance(node, ast.Assign):
            yield from self.assignment(node)
        elif isinstance(node, ast.AugAssign):
            place = ast.parse(ast.unparse(node.target), mode="eval").body
            value = ast.BinOp(place, node.op, node.value)
            yield self.store(node.target, self.value(ast.copy_location(value, node)))
        elif isinstance(node, ast.If):
            body, otherwise = (tuple(self.statements(nodes)) for nodes in (node.body, node.orelse))
            yield If(self.condition(node.test), body, otherwise)
        elif isinstance(node, ast.While):
            yield While(self.condition(node.test), tuple(self.statements(node.body)))
        elif isinstance(node, ast.For):
            yield self.loop(node)
        elif isinstance(node, ast.Return):
            yield self.returned(node)
        elif isinstance(node, ast.Break | ast.Continue):
            yield Leave(ast.unparse(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = self.value(node.value)
            assert isinstance(call, Call)
            yield Do(call)
        else:
            raise self.refused(node, "not in the language of drivers")

    def returned(self, node: ast.Return) -> Leave:
        if node.value is None:
            return Leave("return")
        value = as_float(self.value(node.value)) if self.kind is Kind.FLOAT else self.value(node.value)
        if value.kind is not self.kind:
            raise self.refused(node, f"the function returns {self.kind}")
        return Leave("return", value)

    def assignment(self, node: ast.Assign) -> Iterator[Statement]:
        (target,) = node.targets
        if not isinstance(target, ast.Tuple):
            yield self.store(target, self.value(node.value))
            return
        if not isinstance(node.value, ast.Tuple):
            raise self.refused(node, "a tuple needs one value for each name")
        # the right side is evaluated before anything is stored
        values = [self.value(v) for v in node.value.elts]
        names = [f"{ast.unparse(t)} at {node.lineno}".replace(" ", "_") for t in target.elts]
        plain = all(isinstance(t, ast.Name) and t.id not in self.variables for t in target.elts)
        if not plain:
            temporary = [identifier(n) for n in names]
            for name, value in zip(temporary, values, strict=True):
                self.variables[name] = value.kind or Kind.FLOAT
                yield Assign(name, value)
            values = [Name(name, self.variables[name]) for name in temporary]
        for place, value in zip(target.elts, values, strict=True):
            yield self.store(place, value)

    def store(self, target: ast.expr, value: Value) -> Statement:
        if isinstance(target, ast.Name):
            known = self.variables.setdefault(target.id, value.kind or Kind.FLOAT)
            if known is Kind.FLOAT and value.kind is Kind.INT:
                value = as_float(value)
            if known is not value.kind:
                raise self.refused(target, f"is {known.value}, assigned {value.kind}")
            return Assign(target.id, value)
        place = self.value(target)
        if not isinstance(place, Element | Part):
            raise self.refused(target, "nothing can be stored there")
        value = as_float(value) if place.kind is Kind.FLOAT else value
        if value.kind is not place.kind:
            raise self.refused(target, f"is {place.kind}, assigned {value.kind}")
        return Put(place, value)

    def loop(self, node: ast.For) -> For:
        call = node.iter
        known = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not known or not isinstance(node.target, ast.Name):
            raise self.refused(node, "loops run over a range")
        assert isinstance(call, ast.Call)
        bounds = [self.value(a) for a in call.args]
        step = 1
        if len(bounds) == 3:
            step = int(ast.literal_eval(call.args[2]))
            bounds.pop()
        begin, end = bounds if len(bounds) == 2 else (Number(0, Kind.INT), bounds[0])
        self.variables[node.target.id] = Kind.INT
        return For(node.target.id, begin, end, step, tuple(self.statements(node.body)))

    # expressions

    def condition(self, node: ast.expr) -> Value:
        value = self.value(node)
        if value.kind is not Kind.BOOL:
            raise self.refused(node, "must be a condition")
        return value

    def value(self, node: ast.expr) -> Value:
        method = READ.get(type(node))
        if method is None:
            raise self.refused(node, "not in the language of drivers")
        return method(self, node)

    def constant(self, node: ast.Constant) -> Value:
        return number(node.value)

    def named(self, node: ast.Name) -> Value:
        if node.id in self.variables:
            return Name(node.id, self.variables[node.id])
        value = self.globals.get(node.id)
        if not isinstance(value, int | float):
            raise self.refused(node, "is not known")
        return number(value)

    def attribute(self, node: ast.Attribute) -> Value:
        if not isinstance(node.value, ast.Name) or node.value.id not in self.records:
            raise self.refused(node, "is not a field of a record")
        layout = self.records[node.value.id]
        kind = Kind.VECTOR if node.attr in layout.arrays else Kind.FLOAT
        return Part(node.value.id, node.attr, layout.first(node.attr), kind)

    def subscript(self, node: ast.Subscript) -> Value:
        array, index = self.value(node.value), self.value(node.slice)
        if array.kind not in (Kind.VECTOR, Kind.INTEGERS) or index.kind is not Kind.INT:
            raise self.refused(node, "an element needs an array and a whole number")
        return Element(array, index, Kind.FLOAT if array.kind is Kind.VECTOR else Kind.INT)

    def unary(self, node: ast.UnaryOp) -> Value:
        a = self.value(node.operand)
        if isinstance(a, Number) and isinstance(node.op, ast.USub):
            return Number(-a.value, a.kind)
        return Operate("not" if isinstance(node.op, ast.Not) else "neg", (a,), a.kind or Kind.FLOAT)

    def binary(self, node: ast.BinOp) -> Value:
        op = OPERATORS.get(type(node.op))
        if op is None:
            raise self.refused(node, "operator is not in the language of drivers")
        a, b = self.value(node.left), self.value(node.right)
        if op == "/" or Kind.FLOAT in (a.kind, b.kind):
            return Operate(op, (as_float(a), as_float(b)), Kind.FLOAT)
        if isinstance(a, Number) and isinstance(b, Number) and op != "/":
            whole = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}
            if op in whole:
                return Number(int(whole[op]), Kind.INT)
        return Operate(op, (a, b), Kind.INT)

    def compare(self, node: ast.Compare) -> Value:
        values = [self.value(v) for v in (node.left, *node.comparators)]
        tests: list[Value] = []
        for a, op, b in zip(values, node.ops, values[1:], strict=False):
            if Kind.FLOAT in (a.kind, b.kind):
                a, b = as_float(a), as_float(b)
            tests.append(Operate(OPERATORS[type(op)], (a, b), Kind.BOOL))
        return joined("and", tests)

    def boolean(self, node: ast.BoolOp) -> Value:
        return joined(OPERATORS[type(node.op)], [self.condition(v) for v in node.values])

    def choice(self, node: ast.IfExp) -> Value:
        a, b = self.value(node.body), self.value(node.orelse)
        if a.kind is not b.kind:
            a, b = as_float(a), as_float(b)
        return Operate("choose", (self.condition(node.test), a, b), a.kind or Kind.FLOAT)

    def call(self, node: ast.Call) -> Value:
        if not isinstance(node.func, ast.Name):
            raise self.refused(node, "is not a function of the language of drivers")
        name = node.func.id
        if name == "len":
            return self.length(node)
        args = tuple(self.value(a) for a in node.args)
        if name in INTRINSICS:
            return intrinsic(name, args)
        if name in VIEWS:
            return Operate(name, args, VIEWS[name])
        function = self.globals.get(name)
        if isinstance(function, Stage):
            self.reader.stages.add(function.name)
            return Call(function.name, args, function.kind)
        if not isinstance(function, FunctionType):
            raise self.refused(node, "is not known")
        callee = self.reader.read(function)
        by_name = {k.arg: self.value(k.value) for k in node.keywords}
        args += tuple(by_name[n] for n, _ in callee.arguments[len(args) :])
        kinds = [kind for _, kind in callee.arguments]
        args = tuple(as_float(a) if k is Kind.FLOAT else a for a, k in zip(args, kinds, strict=True))
        if any(a.kind is not k for a, k in zip(args, kinds, strict=True)):
            raise self.refused(node, "arguments of other types than the function takes")
        return Call(name, args, callee.kind)

    def length(self, node: ast.Call) -> Value:
        """Return the number of elements of an array in a record, which its layout knows."""
        (array,) = node.args
        if not isinstance(array, ast.Attribute) or not isinstance(array.value, ast.Name):
            raise self.refused(node, "only arrays of records have a known length")
        where = self.records[array.value.id].slice(array.attr)
        return Number(where.stop - where.start, Kind.INT)


READ: dict[type[ast.expr], Callable[[FunctionReader, Any], Value]] = {
    ast.Constant: FunctionReader.constant,
    ast.Name: FunctionReader.named,
    ast.Attribute: FunctionReader.attribute,
    ast.Subscript: FunctionReader.subscript,
    ast.UnaryOp: FunctionReader.unary,
    ast.BinOp: FunctionReader.binary,
    ast.Compare: FunctionReader.compare,
    ast.BoolOp: FunctionReader.boolean,
    ast.IfExp: FunctionReader.choice,
    ast.Call: FunctionReader.call,
}


def intrinsic(name: str, args: tuple[Value, ...]) -> Value:
    assert len(args) == INTRINSICS[name]
    if name == "isfinite":
        return Operate("isfinite", args, Kind.BOOL)
    if name == "float":
        return as_float(args[0])
    if name == "bool":
        return args[0]
    if name == "int":
        return Operate("int", args, Kind.INT)
    if all(a.kind is Kind.INT for a in args) and name != "sqrt":
        return Operate(name, args, Kind.INT)
    return Operate(name, tuple(as_float(a) for a in args), Kind.FLOAT)


def identifier(text: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in text)
