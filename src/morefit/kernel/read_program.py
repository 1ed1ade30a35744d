"""Read drivers: the text of plain Python functions becomes the structured form that targets render."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

from morefit.dataclass import dataclass
from morefit.errors import CompileError
from morefit.kernel.program import Kind, Layout, Stage
from morefit.kernel.read_values import ValueReader
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
    Part,
    Program,
    Put,
    Statement,
    Value,
    While,
    as_float,
    nodes_in,
)

ANNOTATIONS = {kind.value: kind for kind in Kind if kind is not Kind.RECORD}
RETURNS = {"None": None, **{kind.value: kind for kind in (Kind.FLOAT, Kind.INT, Kind.BOOL)}}
RANGES = {"range": 3, "parallel": 2}  # what loops run over, and how many bounds at most


def read_program(main: Callable[..., Any], layouts: Mapping[str, Layout]) -> Program:
    """Read a function and all that it calls; ``layouts`` say where the fields of records are, by class."""
    reader = Reader(layouts)
    assert isinstance(main, FunctionType)
    reader.read(main)
    return Program(tuple(reader.functions.values()), frozenset(reader.stages))


@dataclass(eq=False)
class Reader:
    """Reads functions, each after those it calls."""

    layouts: Mapping[str, Layout]
    functions: dict[str, Function] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    known: dict[str, FunctionType] = field(default_factory=dict)  # read, or being read

    def read(self, function: FunctionType) -> Function:
        name = function.__name__
        if self.known.setdefault(name, function) is not function:
            other = self.known[name].__module__
            raise CompileError(
                f"driver '{name}': each function needs a name of its own, got one in {function.__module__} and one in {other}"
            )
        if name not in self.functions:
            self.functions[name] = FunctionReader(self, function).read()
        return self.functions[name]

    def callee(self, function: FunctionType) -> Function:
        """Read a function that is called, which must not be one that is being read."""
        name = function.__name__
        if self.known.get(name) is function and name not in self.functions:
            raise CompileError(f"driver '{name}': no function may call itself; write a loop")
        return self.read(function)

    def stores(self, name: str) -> bool:
        """Return whether a function stores numbers, itself or by those it calls; most stages do."""
        if name in self.stages:
            return self.stages[name].stores
        return any(
            isinstance(node, Put) or (isinstance(node, Call) and self.stores(node.function))
            for node in nodes_in(self.functions[name].body)
        )


@lru_cache(maxsize=16)
def definitions(module: str) -> dict[str, ast.FunctionDef]:
    """Parse the functions of a module."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


class FunctionReader:
    """Reads one function, statement by statement."""

    def __init__(self, reader: Reader, function: FunctionType) -> None:
        self.reader, self.layouts = reader, reader.layouts
        node = definitions(function.__module__).get(function.__name__)
        if node is None:
            raise CompileError(
                f"driver '{function.__name__}': a function must be defined at the top of its module"
            )
        self.node = node
        self.values = ValueReader(node, function.__globals__, reader.callee, reader.stages)
        self.variables, self.refused = self.values.variables, self.values.refused
        self.loops: list[str] = []  # variables of the loops around a statement
        self.assigned: dict[str, set[tuple[ast.For, ...]]] = {}  # variables, in turns of which parallel loops

    def read(self) -> Function:
        node, kind = self.node, self.returned_kind()
        takes = node.args
        if takes.posonlyargs or takes.kwonlyargs or takes.vararg or takes.kwarg or takes.defaults:
            raise self.refused(takes, "arguments must be plain, without defaults")
        arguments = tuple((argument.arg, self.annotated(argument)) for argument in takes.args)
        self.variables.update(arguments)
        statements = tuple(self.statements(node.body))
        self.refuse_shared_variables()
        if kind is not None and not returns(statements):
            raise self.refused(node, f"every way through it must return {kind.value}")
        names = dict(arguments)
        local = {n: k for n, k in self.variables.items() if n not in names}
        return Function(node.name, arguments, local, statements, kind)

    def returned_kind(self) -> Kind | None:
        text = ast.unparse(self.node.returns) if self.node.returns else "nothing"
        if text not in RETURNS:
            raise self.refused(self.node, f"a driver returns float, int, bool or None, not {text}")
        return RETURNS[text]

    def annotated(self, argument: ast.arg) -> Kind:
        text = ast.unparse(argument.annotation) if argument.annotation else ""
        if text in ANNOTATIONS:
            return ANNOTATIONS[text]
        if text not in self.layouts:
            raise self.refused(
                argument, "an argument needs a type of the language, or a record with a layout"
            )
        self.values.records[argument.arg] = self.layouts[text]
        return Kind.RECORD

    def statements(self, nodes: Sequence[ast.stmt]) -> Iterator[Statement]:
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            yield from self.statement(node)

    def statement(self, node: ast.stmt) -> Iterator[Statement]:
        if isinstance(node, ast.Assign):
            yield from self.assignment(node)
        elif isinstance(node, ast.AugAssign):
            value = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            yield self.store(node.target, self.values.value(value))
        elif isinstance(node, ast.If):
            test = self.values.condition(node.test)
            yield If(test, *(tuple(self.statements(nodes)) for nodes in (node.body, node.orelse)))
        elif isinstance(node, ast.While):
            self.refuse_else(node)
            yield While(self.values.condition(node.test), tuple(self.statements(node.body)))
        elif isinstance(node, ast.For):
            self.refuse_else(node)
            yield self.loop(node)
        elif isinstance(node, ast.Return):
            yield self.returned(node)
        elif isinstance(node, ast.Break | ast.Continue):
            yield Leave(ast.unparse(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield self.done(node.value)
        else:
            raise self.refused(node, "the language of drivers has no such statement")

    def refuse_else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise self.refused(node, "a loop has no else")

    def done(self, node: ast.Call) -> Do:
        call = self.values.any_call(node)
        if not isinstance(call, Call):
            raise self.refused(node, "a value must be used")
        return Do(call)

    def returned(self, node: ast.Return) -> Leave:
        kind = self.returned_kind()
        value = None if node.value is None else self.values.value(node.value)
        if value is not None and kind is Kind.FLOAT:
            value = as_float(value)
        if (value.kind if value else None) is not kind:
            raise self.refused(node, f"must return {kind.value if kind else 'nothing'}")
        return Leave("return", value)

    def assignment(self, node: ast.Assign) -> Iterator[Statement]:
        if len(node.targets) > 1:
            raise self.refused(node, "an assignment has one left side")
        (target,) = node.targets
        if not isinstance(target, ast.Tuple):
            yield self.store(target, self.values.value(node.value))
            return
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
            raise self.refused(node, "a tuple needs one value for each name")
        # the right side is evaluated before anything is stored
        values = [self.values.value(v) for v in node.value.elts]
        if not all(isinstance(t, ast.Name) and t.id not in self.variables for t in target.elts):
            names = [f"value{k}_of_line_{node.lineno}" for k in range(len(values))]
            for name, value in zip(names, values, strict=True):
                self.variables[name] = value.kind
                yield Assign(name, value)
            values = [Name(name, self.variables[name]) for name in names]
        for place, value in zip(target.elts, values, strict=True):
            yield self.store(place, value)

    def store(self, target: ast.expr, value: Value) -> Statement:
        if isinstance(target, ast.Name):
            return self.store_variable(target, value)
        place = self.values.value(target)
        if not isinstance(place, Element | Part) or place.kind is Kind.VECTOR:
            raise self.refused(target, "numbers are stored in variables, elements and fields")
        value = as_float(value) if place.kind is Kind.FLOAT else value
        if value.kind is not place.kind:
            raise self.refused(target, f"{value.kind.value} cannot be stored as {place.kind.value}")
        return Put(place, value)

    def store_variable(self, target: ast.Name, value: Value) -> Assign:
        if target.id in self.loops:
            raise self.refused(target, "the variable of a loop stays as it is inside")
        self.values.ended.discard(target.id)
        self.assigned.setdefault(target.id, set()).add(self.values.turns)
        known = self.variables.setdefault(target.id, value.kind)
        value = as_float(value) if known is Kind.FLOAT else value
        if known is not value.kind:
            raise self.refused(target, f"{value.kind.value} cannot be stored as {known.value}")
        return Assign(target.id, value)

    def loop(self, node: ast.For) -> For:
        call = node.iter
        if (
            not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in RANGES)
            or not isinstance(node.target, ast.Name)
            or not 1 <= len(call.args) <= RANGES[call.func.id]
        ):
            raise self.refused(node, "loops run over a range, or a parallel one without a step")
        step = self.step(call.args[2]) if len(call.args) == 3 else 1
        bounds = [self.values.whole(a) for a in call.args[:2]]
        begin, end = bounds if len(bounds) == 2 else (Number(0, Kind.INT), bounds[0])
        name = node.target.id
        if self.variables.setdefault(name, Kind.INT) is not Kind.INT or name in self.loops:
            raise self.refused(node, "the variable of a loop needs a name of its own")
        self.values.ended.discard(name)
        self.loops.append(name)
        outside = self.values.turns
        self.values.turns = (*outside, node) if is_parallel_loop(node) else outside
        body = tuple(self.statements(node.body))
        self.values.turns = outside
        self.loops.pop()
        self.values.ended.add(name)
        return For(name, begin, end, step, body, parallel=self.is_parallel(node, body))

    def is_parallel(self, node: ast.For, body: tuple[Statement, ...]) -> bool:
        """Return whether the turns of a loop may run at the same time; refuse what they must not do."""
        if not is_parallel_loop(node):
            return False
        for one in nodes_in(body):
            if isinstance(one, Call) and self.reader.stores(one.function):
                raise self.refused(
                    node, f"a turn of a parallel loop must not call '{one.function}', which stores numbers"
                )
            if isinstance(one, Leave) and one.how != "continue":
                raise self.refused(node, "a turn of a parallel loop must not end it")
        return True

    def refuse_shared_variables(self) -> None:
        """Refuse a variable that a parallel loop assigns and that is read elsewhere, also around that loop: every turn has its own."""
        for (name, turns), node in self.values.read.items():
            assigned = self.assigned.get(name, set())
            here = {own for own in assigned if own == turns[: len(own)]}
            # one that turns of these loops assign as well is another one
            if any(all(own[: len(known)] == known for known in here) for own in assigned - here):
                raise self.refused(node, "a variable that a parallel loop assigns is read only there")

    def step(self, node: ast.expr) -> int:
        value = self.values.value(node)
        if not isinstance(value, Number) or value.kind is not Kind.INT or value.value == 0:
            raise self.refused(node, "the step of a range is a constant other than zero")
        return int(value.value)


def is_parallel_loop(node: ast.For) -> bool:
    call = node.iter
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "parallel"


def returns(statements: Sequence[Statement]) -> bool:
    """Return whether every way through some statements ends with ``return``."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, If):
        return returns(last.body) and returns(last.otherwise)
    return isinstance(last, Leave) and last.how == "return"
