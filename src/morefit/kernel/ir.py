"""What a target renders. No expressions, no targets: names, numbers and operations in order."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import ClassVar

import numpy as np

from morefit.dataclass import dataclass
from morefit.errors import OptionError
from morefit.expr import Op, Operation, Table
from morefit.expr.operations.record import instruction

Atom = str | float  # a name or a number


class Arith:
    """Arithmetic that expressions spell with sums, products and powers, and machines do in one step."""

    SUB = Operation(arity=2, numpy=np.subtract, llvm=instruction("fsub contract"), c="{0} - {1}")
    NEG = Operation(arity=1, numpy=np.negative, llvm=instruction("fneg"), c="-{0}")
    DIV = Operation(arity=2, numpy=np.divide, llvm=instruction("fdiv"), c="{0} / {1}")


class Reduce(Enum):
    """How the results of many events become one number."""

    ADD = auto()  # a sum; compensated between blocks
    EXACT = auto()  # a sum, compensated at every step
    LOG = auto()  # the sum of logarithms, taken as the logarithm of a product


class Precision(Enum):
    """The numbers the lines of one event are computed in; sums are always in double precision."""

    DOUBLE = 64
    SINGLE = 32

    @classmethod
    def named(cls, name: str) -> Precision:
        try:
            return cls[name.upper()]
        except KeyError:
            raise OptionError(f"precision '{name}': not known; use 'double' or 'single'") from None

    @property
    def kind(self) -> type[np.float64] | type[np.float32]:
        """The same numbers in arrays."""
        return np.float64 if self is Precision.DOUBLE else np.float32


@dataclass(frozen=True)
class Line:
    """``target = op(args)``."""

    target: str
    op: Operation
    args: tuple[Atom, ...]

    def __str__(self) -> str:
        return f"{self.target} = {self.op.name.lower()}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class NodeLoop:
    """Sums over the nodes of a rule: each target is the sum of a result of the body times the weight of the node."""

    targets: tuple[str, ...]
    node: str  # the name of the node in the body
    tables: tuple[str, str]  # nodes and weights
    count: int
    body: Body

    def __str__(self) -> str:
        inside = "\n".join(f"  {line}" for one in self.body.lines for line in str(one).splitlines())
        sums = ", ".join(f"{t} += {r}" for t, r in zip(self.targets, self.body.results, strict=True))
        return f"for {self.node} of {self.count}:\n{inside}\n  {sums}"


@dataclass(frozen=True)
class Body:
    """Lines, and loops over nodes between them, that compute some results from names."""

    lines: tuple[Line | NodeLoop, ...]
    results: tuple[Atom, ...]

    @property
    def flat(self) -> Iterator[Line]:
        """All lines, those inside of loops as well."""
        for line in self.lines:
            yield from line.body.flat if isinstance(line, NodeLoop) else (line,)

    @property
    def reads(self) -> set[str]:
        """Every name that is read, or written and read again."""
        inner = [line.body for line in self.lines if isinstance(line, NodeLoop)]
        atoms = [*self.results, *(a for line in self.lines if isinstance(line, Line) for a in line.args)]
        return {a for a in atoms if isinstance(a, str)}.union(*(body.reads for body in inner))

    @property
    def tables(self) -> set[str]:
        """The names of tables that are read."""
        tables = {str(line.args[0]) for line in self.lines if isinstance(line, Line) and line.op is Op.LOOKUP}
        loops = [line for line in self.lines if isinstance(line, NodeLoop)]
        return tables.union(*(line.tables for line in loops), *(line.body.tables for line in loops))

    @property
    def effort(self) -> int:
        """The number of lines that are run."""
        loops = (line.count * line.body.effort for line in self.lines if isinstance(line, NodeLoop))
        return sum(isinstance(line, Line) for line in self.lines) + sum(loops)

    @property
    def plain(self) -> tuple[Line, ...]:
        """The lines of a body without loops."""
        assert all(isinstance(line, Line) for line in self.lines)
        return self.lines  # type: ignore[return-value]


MAX_DRAWS = 10_000  # candidates for one event; more means that the envelope is useless
COUNT = -1  # in place of an output: the sum of the weights of the events, where they are not all one
SCALED = -2  # in place of an output: a sum that is added to several, times results of the per-call stage


@dataclass(frozen=True)
class Result:
    """Where a result of the loop goes: which output, and how it is reduced."""

    output: int  # or COUNT, or SCALED
    reduce: Reduce


@dataclass(frozen=True)
class Pairs:
    """Sums of products of every pair of factors: the lower triangle row by row, from an output on.

    With several groups of as many factors each, the products of all groups are added.
    """

    left: tuple[Atom, ...]
    right: tuple[Atom, ...]  # empty: the same as left
    output: int  # of the first pair
    sign: float  # of all
    groups: int = 1

    @property
    def count(self) -> int:
        """How many factors a group has."""
        return len(self.left) // self.groups


@dataclass(frozen=True)
class Added:
    """A result of the per-call stage that is added to an output."""

    result: int
    output: int


@dataclass(frozen=True)
class Scaled:
    """A sum over events that is added to an output, times a result of the per-call stage."""

    result: int
    row: int  # of the results of the loop
    output: int


@dataclass(frozen=True)
class Sum:
    """Reduce the results over the events of each set; the factors of pairs come after the other results."""

    label: ClassVar[str] = "SUM"
    results: tuple[Result, ...]  # one for each result of the loop that is no factor of a pair
    pairs: Pairs | None = None
    per_set: tuple[Added, ...] = ()  # once per set
    per_count: tuple[Added, ...] = ()  # times the number of events, or the sum of their weights
    scaled: tuple[Scaled, ...] = ()


@dataclass(frozen=True)
class Store:
    """Store every result of every event."""

    label: ClassVar[str] = "STORE"


@dataclass(frozen=True)
class Sample:
    """Draw events: columns are random numbers, the last two results say "accept" and "above the envelope"."""

    label: ClassVar[str] = "SAMPLE"
    # for each column: which random number of a candidate it is, -1 for the event's own number
    numbers: tuple[int, ...]
    streams: bool  # whether they come from streams, which items and lanes go along, or are counted

    @property
    def calls(self) -> int:
        """How often a candidate calls the generator: each call gives two numbers."""
        return max((number // 2 + 1 for number in self.numbers), default=0)


Frame = Sum | Store | Sample  # what happens around the lines of one event


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One pass over the events of one or many parameter sets."""

    name: str
    frame: Frame
    parameters: tuple[str, ...]  # one number per set each, from the caller
    per_call: Body
    scalars: tuple[str, ...]  # names of the per-call results that the loop uses
    columns: tuple[str, ...]  # one number per event each
    per_event: Body
    outputs: int
    tables: tuple[Table, ...] = ()
    precision: Precision = Precision.DOUBLE

    @property
    def sums(self) -> Sum:
        """The frame of a kernel that sums."""
        assert isinstance(self.frame, Sum)
        return self.frame

    @property
    def draws(self) -> Sample:
        """The frame of a kernel that draws."""
        assert isinstance(self.frame, Sample)
        return self.frame

    @property
    def pairs(self) -> Pairs | None:
        """The pairs of factors that are summed, if any."""
        return self.frame.pairs if isinstance(self.frame, Sum) else None

    def shape(self, sets: int, events: int) -> tuple[int, ...]:
        """Return the shape of what a launch returns; the last output of a sum counts bad densities."""
        return (sets, self.outputs + 1) if isinstance(self.frame, Sum) else (sets, self.outputs, events)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, limit: int | None = None) -> str:
        """Write the kernel; ``limit`` bounds the lines shown of the per-call stage."""
        head = f"kernel {self.name} ({self.frame.label}, {self.precision.name})"
        lines = [head, f"  parameters {', '.join(self.parameters)}", "  per call:"]
        lines += [f"    {line}" for line in self.per_call.lines[:limit]]
        if limit is not None and len(self.per_call.lines) > limit:
            lines.append(f"    ... {len(self.per_call.lines) - limit} more lines")
        named = zip(self.scalars, self.per_call.results, strict=False)
        lines += [f"    {name} := {atom}" for name, atom in named if name != atom]
        lines += [f"  per event, columns {', '.join(self.columns)}:"]
        lines += [f"    {line}" for one in self.per_event.lines for line in str(one).splitlines()]
        if isinstance(self.frame, Sum):
            lines += self.sum_text(self.frame, limit)
        if isinstance(self.frame, Store):
            lines += [f"    output {k} <- add {atom}" for k, atom in enumerate(self.per_event.results)]
        return "\n".join(lines)

    def sum_text(self, frame: Sum, limit: int | None) -> list[str]:
        """Write where the results go."""
        weighted = any(result.output == COUNT for result in frame.results)
        count = "sum of weights" if weighted else "number of events"
        lines, names = [], {COUNT: count, SCALED: "a sum"}
        for atom, result in zip(self.per_event.results, frame.results, strict=False):
            where = names.get(result.output) or f"output {result.output}"
            lines.append(f"    {where} <- {result.reduce.name.lower()} {atom}")
        if frame.pairs:
            left = ", ".join(map(str, frame.pairs.left))
            many = f" in {frame.pairs.groups} groups" if frame.pairs.groups > 1 else ""
            lines.append(f"    outputs {frame.pairs.output} ... <- pairs of {left}{many}")
        for times, added in (("", frame.per_set), (f"{count} * ", frame.per_count)):
            lines += [
                f"  output {a.output} <- {times}{self.per_call.results[a.result]}" for a in added[:limit]
            ]
            if limit is not None and len(added) > limit:
                lines.append(f"  ... {len(added) - limit} more outputs")
        results, factors = self.per_event.results, self.per_call.results
        lines += [
            f"  output {s.output} <- sum of {results[s.row]} * {factors[s.result]}"
            for s in frame.scaled[:limit]
        ]
        return lines


# constants of a sum of logarithms as the logarithm of a product of mantissas and a sum of binary exponents
MANTISSA, EXPONENT_ONE = (1 << 52) - 1, 1023 << 52
SMALLEST, RANGE = 1 << 52, 0x7FE0000000000000  # bits of the smallest normal number; how far up to infinity
BIAS = 1022  # (bits - SMALLEST) >> 52 is the exponent of a number with its mantissa in [1, 2), plus this
LN2_HIGH = float.fromhex("0x1.62e43p-1")  # 21 bits: its product with a whole number below 2**32 is exact
LN2_LOW = float.fromhex("-0x1.05c610ca86c39p-29")

# numbers that a block's partial result of each kind takes: ADD a sum; EXACT a sum and its correction; LOG a
# logarithm, a binary exponent and whether a density was bad
WORDS = {Reduce.ADD: 1, Reduce.EXACT: 2, Reduce.LOG: 3}
