"""Kernels and expressions as JSON: written for the next process, which then has nothing to derive or to lower."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from morefit.dataclass import dataclass
from morefit.digests import sha256
from morefit.expr import Expr, OwnSymbol, Symbol, Table, make, toposort
from morefit.expr.operations.record import operation_named
from morefit.expr.quadrature import Domain
from morefit.kernel.ir import (
    Added,
    Body,
    Frame,
    Kernel,
    Line,
    NodeLoop,
    Pairs,
    Precision,
    Reduce,
    Result,
    Sample,
    Scaled,
    Store,
    Sum,
)

Json = Any
PLAIN = (Symbol, OwnSymbol)  # symbols that are their names and nothing else


class Unrecorded(Exception):
    """Something that has no record; what contains it is made anew in every process."""


def fingerprint(roots: Iterable[Expr]) -> str:
    """Return a digest of formulas that is the same in every process; of a symbol its kind and its name count."""
    digest = sha256()
    index: dict[Expr, int] = {}
    roots = tuple(roots)
    for node in toposort(*roots):
        index[node] = len(index)
        digest.update(f"{node.op.name}{[index[a] for a in node.args]}{value_text(node.value)}\n".encode())
    digest.update(str([index[root] for root in roots]).encode())
    return digest.hexdigest()


def value_text(value: object) -> str:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Table):
        return f"Table {value.digest} {value.name}"
    if isinstance(value, Symbol):
        return f"{type(value).__name__} {value.name!r}"
    return repr(value)


# ------------------------------------------------------------------------------------ expressions


class Parts:
    """What the formulas of a kernel are made of and a record refers to by number: symbols, and domains of integrals."""

    def __init__(self, roots: Sequence[Expr]) -> None:
        values = [n.value for n in toposort(*roots) if isinstance(n.value, (Symbol, Domain))]
        self.ordered = list(dict.fromkeys(v for v in values if type(v) not in PLAIN))
        self.numbers = {value: k for k, value in enumerate(self.ordered)}

    def contents(self, known: int | str) -> bytes:
        """Return the numbers of a table, by its number or as text."""
        if isinstance(known, str):
            return base64.b64decode(known)
        table = self.ordered[known]
        assert isinstance(table, Table)
        return table.numbers

    def domain(self, number: int) -> Domain:
        value = self.ordered[number]
        assert isinstance(value, Domain)
        return value


class GraphWriter:
    """Collects expressions as rows: the operation, the rows of the arguments, the value."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.rows: list[Json] = []
        self.index: dict[Expr, int] = {}

    def add(self, root: Expr) -> int:
        """Return the row of an expression."""
        for node in toposort(root):
            if node not in self.index:
                self.index[node] = len(self.rows)
                self.rows.append([node.op.name, [self.index[a] for a in node.args], self.value(node.value)])
        return self.index[root]

    def value(self, value: object) -> Json:
        if isinstance(value, float):
            return value
        if value in self.parts.numbers:
            return [self.parts.numbers[value]]
        if type(value) in PLAIN:
            assert isinstance(value, Symbol)
            return [type(value).__name__, value.name]
        raise Unrecorded(type(value).__name__)


def read_graph(rows: Json, parts: Parts) -> list[Expr]:
    """Return the expressions of all rows."""
    kinds = {kind.__name__: kind for kind in PLAIN}
    nodes: list[Expr] = []
    for op, args, value in rows:
        if isinstance(value, list):
            value = parts.ordered[value[0]] if len(value) == 1 else kinds[value[0]](value[1])
        nodes.append(make(operation_named(op), tuple(nodes[a] for a in args), value))
    return nodes


# ------------------------------------------------------------------------------------ records


@dataclass(frozen=True)
class IntegralRecord:
    """Integrals that a kernel needs first: the domain, what its boxes are made for, what is integrated."""

    domain: Domain
    subject: tuple[Expr, ...]
    bodies: tuple[Expr, ...]


@dataclass(frozen=True)
class Record:
    """A kernel, and the expressions of what it reads."""

    kernel: Kernel
    columns: tuple[Expr, ...]
    per_dataset: Mapping[str, Expr]
    integrals: tuple[IntegralRecord, ...]

    def to_bytes(self, parts: Parts) -> bytes:
        writer = GraphWriter(parts)
        record = {
            "kernel": kernel_record(self.kernel, parts),
            "columns": [writer.add(c) for c in self.columns],
            "per_dataset": {name: writer.add(term) for name, term in self.per_dataset.items()},
            "integrals": [
                [
                    writer.value(i.domain),
                    [writer.add(e) for e in i.subject],
                    [writer.add(e) for e in i.bodies],
                ]
                for i in self.integrals
            ],
            "nodes": writer.rows,
        }
        return json.dumps(record).encode()

    @classmethod
    def of(cls, payload: bytes, parts: Parts) -> Record:
        record = json.loads(payload)
        nodes = read_graph(record["nodes"], parts)

        def read(rows: list[int]) -> tuple[Expr, ...]:
            return tuple(nodes[k] for k in rows)

        return cls(
            read_kernel(record["kernel"], parts),
            read(record["columns"]),
            {name: nodes[k] for name, k in record["per_dataset"].items()},
            tuple(
                IntegralRecord(parts.domain(number), read(subject), read(bodies))
                for (number,), subject, bodies in record["integrals"]
            ),
        )


# ------------------------------------------------------------------------------------ kernels


def kernel_record(kernel: Kernel, parts: Parts) -> Json:
    """Return a kernel as JSON; the tables of its formulas, which may be large, by their numbers."""
    places = {value.numbers: k for k, value in enumerate(parts.ordered) if isinstance(value, Table)}
    return {
        "name": kernel.name,
        "frame": frame_record(kernel.frame),
        "parameters": kernel.parameters,
        "per_call": body_record(kernel.per_call),
        "scalars": kernel.scalars,
        "columns": kernel.columns,
        "per_event": body_record(kernel.per_event),
        "outputs": kernel.outputs,
        "tables": [
            [t.name, places.get(t.numbers, base64.b64encode(t.numbers).decode()), t.label]
            for t in kernel.tables
        ],
        "precision": kernel.precision.name,
    }


def read_kernel(record: Json, parts: Parts) -> Kernel:
    """Return the kernel of a record."""
    return Kernel(
        name=record["name"],
        frame=read_frame(record["frame"]),
        parameters=tuple(record["parameters"]),
        per_call=read_body(record["per_call"]),
        scalars=tuple(record["scalars"]),
        columns=tuple(record["columns"]),
        per_event=read_body(record["per_event"]),
        outputs=record["outputs"],
        tables=tuple(Table(name, parts.contents(known), label) for name, known, label in record["tables"]),
        precision=Precision[record["precision"]],
    )


def body_record(body: Body) -> Json:
    return [[line_record(line) for line in body.lines], body.results]


def line_record(line: Line | NodeLoop) -> Json:
    if isinstance(line, NodeLoop):
        return [line.targets, line.node, line.tables, line.count, body_record(line.body)]
    return [line.target, line.op.name, *line.args]


def read_body(record: Json) -> Body:
    lines, results = record
    return Body(tuple(map(read_line, lines)), tuple(results))


def read_line(record: Json) -> Line | NodeLoop:
    if isinstance(record[0], str):
        target, op, *args = record
        return Line(target, operation_named(op), tuple(args))
    targets, node, tables, count, body = record
    return NodeLoop(tuple(targets), node, tuple(tables), count, read_body(body))


def frame_record(frame: Frame) -> Json:
    if isinstance(frame, Sample):
        return ["SAMPLE", frame.numbers, frame.streams]
    if isinstance(frame, Store):
        return ["STORE"]
    pairs = frame.pairs
    return [
        "SUM",
        [[r.output, r.reduce.name] for r in frame.results],
        None if pairs is None else [pairs.left, pairs.right, pairs.output, pairs.sign, pairs.groups],
        [[a.result, a.output] for a in frame.per_set],
        [[a.result, a.output] for a in frame.per_count],
        [[s.result, s.row, s.output] for s in frame.scaled],
    ]


def read_frame(record: Json) -> Frame:
    kind, *rest = record
    if kind == "SAMPLE":
        return Sample(tuple(rest[0]), rest[1])
    if kind == "STORE":
        return Store()
    results, pairs, per_set, per_count, scaled = rest
    return Sum(
        tuple(Result(output, Reduce[reduce]) for output, reduce in results),
        None if pairs is None else Pairs(tuple(pairs[0]), tuple(pairs[1]), *pairs[2:]),
        tuple(Added(*added) for added in per_set),
        tuple(Added(*added) for added in per_count),
        tuple(Scaled(*one) for one in scaled),
    )
