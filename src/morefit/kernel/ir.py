"""What a renderer is given. No expressions, no targets: names, numbers and operations in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from morefit.expr import Operation, Table
from morefit.expr.operations.record import instruction

Atom = str | float  # a name or a number


class Arith:
    """Arithmetic that expressions spell with sums, products and powers, and machines do in one step."""

    SUB = Operation(arity=2, numpy=np.subtract, llvm=instruction("fsub contract"), c="{0} - {1}")
    NEG = Operation(arity=1, numpy=np.negative, llvm=instruction("fneg"), c="-{0}")
    DIV = Operation(arity=2, numpy=np.divide, llvm=instruction("fdiv"), c="{0} / {1}")


class Frame(Enum):
    """What happens around the lines of one event."""

    STORE = auto()  # keep every result of every event
    SUM = auto()  # reduce the results over the events of each set
    SAMPLE = (
        auto()
    )  # draw events: columns are random numbers, the last two results say "accept" and "too high"


class Reduce(Enum):
    """How the results of many events become one number."""

    ADD = auto()  # a sum; compensated between blocks
    EXACT = auto()  # a sum, compensated at every step
    LOG = auto()  # the sum of logarithms, taken as the logarithm of a product


class Precision(Enum):
    """The numbers the lines of one event are computed in; sums are always in double precision."""

    DOUBLE = 64
    SINGLE = 32


@dataclass(frozen=True)
class Line:
    """``target = op(args)``."""

    target: str
    op: Operation
    args: tuple[Atom, ...]

    def __str__(self) -> str:
        return f"{self.target} = {self.op.name.lower()}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Body:
    """Straight lines that compute some results from names."""

    lines: tuple[Line, ...]
    results: tuple[Atom, ...]


COUNT = -1  # in place of an output: the sum of the weights of the events, where they are not all one


@dataclass(frozen=True)
class Result:
    """Where a result of the loop goes: which output, and how it is reduced."""

    output: int  # or COUNT
    reduce: Reduce


@dataclass(frozen=True)
class Kernel:
    """One pass over the events of one or many parameter sets."""

    name: str
    frame: Frame
    parameters: tuple[str, ...]  # one number per set each, given by the caller
    per_call: Body
    scalars: tuple[str, ...]  # names of the per-call results that the loop uses
    columns: tuple[str, ...]  # one number per event each
    per_event: Body
    results: tuple[Result, ...]  # one for each result of the loop
    outputs: int
    # sums of products of every pair, lower triangle row by row, added to the outputs from outer_output on;
    # the factors are the last results of the loop: all of outer, then all of outer_right where that differs
    outer: tuple[Atom, ...] = ()
    outer_right: tuple[Atom, ...] = ()
    outer_output: int = 0
    outer_sign: float = 1.0
    tables: tuple[Table, ...] = ()
    per_set: tuple[tuple[int, int], ...] = ()  # (per-call result, output): added once per set
    per_count: tuple[
        tuple[int, int], ...
    ] = ()  # the same, times the number of events or the sum of their weights
    precision: Precision = Precision.DOUBLE

    def shape(self, sets: int, events: int) -> tuple[int, ...]:
        """Say what a launch returns; the last output of a sum counts bad densities."""
        return (sets, self.outputs + 1) if self.frame is Frame.SUM else (sets, self.outputs, events)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, most: int | None = None) -> str:
        """Write the kernel; ``most`` bounds the lines shown of the per-call stage."""
        head = f"kernel {self.name} ({self.frame.name}, {self.precision.name})"
        lines = [head, f"  parameters {', '.join(self.parameters)}", "  per call:"]
        lines += [f"    {line}" for line in self.per_call.lines[:most]]
        if most is not None and len(self.per_call.lines) > most:
            lines.append(f"    ... {len(self.per_call.lines) - most} more lines")
        named = zip(self.scalars, self.per_call.results, strict=False)
        lines += [f"    {name} := {atom}" for name, atom in named if name != atom]
        lines += [f"  per event, columns {', '.join(self.columns)}:"]
        lines += [f"    {line}" for line in self.per_event.lines]
        weighted = any(result.output == COUNT for result in self.results)
        count = "sum of weights" if weighted else "number of events"
        for atom, result in zip(self.per_event.results, self.results, strict=False):
            where = count if result.output == COUNT else f"output {result.output}"
            lines.append(f"    {where} <- {result.reduce.name.lower()} {atom}")
        if self.outer:
            lines.append(f"    outputs {self.outer_output} ... <- pairs of {', '.join(map(str, self.outer))}")
        for times, added in (("", self.per_set), (f"{count} * ", self.per_count)):
            lines += [f"  output {k} <- {times}{self.per_call.results[index]}" for index, k in added[:most]]
            if most is not None and len(added) > most:
                lines.append(f"  ... {len(added) - most} more outputs")
        return "\n".join(lines)
