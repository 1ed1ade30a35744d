"""The structured form of drivers, which targets render: values and statements that ``read_program.py`` reads from Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from morefit.dataclass import dataclass
from morefit.kernel.program import Kind

# ------------------------------------------------------------------------------------------ expressions


@dataclass(frozen=True)
class Number:
    value: float | int | bool
    kind: Kind


@dataclass(frozen=True)
class Name:
    name: str
    kind: Kind


@dataclass(frozen=True)
class Part:
    """A field of a record."""

    record: str
    field: str
    first: int
    kind: Kind  # FLOAT or VECTOR


@dataclass(frozen=True)
class Element:
    """An element of an array."""

    array: Value
    index: Value
    kind: Kind  # FLOAT or INT


@dataclass(frozen=True)
class Operate:
    """An operation: + - * / // % on numbers, < <= == != on numbers, and or not on conditions, and functions."""

    op: str
    args: tuple[Value, ...]
    kind: Kind


@dataclass(frozen=True)
class Call:
    """A call of another function of the program."""

    function: str
    args: tuple[Value, ...]
    returns: Kind | None

    @property
    def kind(self) -> Kind:
        assert self.returns is not None
        return self.returns


Value = Number | Name | Part | Element | Operate | Call


def as_float(value: Value) -> Value:
    """Return a value as FLOAT if it is a whole number, else as it is."""
    if isinstance(value, Number) and value.kind is Kind.INT:
        return Number(float(value.value), Kind.FLOAT)
    return Operate("float", (value,), Kind.FLOAT) if value.kind is Kind.INT else value


# ------------------------------------------------------------------------------------------ statements


@dataclass(frozen=True)
class Assign:
    name: str
    value: Value


@dataclass(frozen=True)
class Put:
    """Store a number in an array or record."""

    place: Element | Part
    value: Value


@dataclass(frozen=True)
class Do:
    call: Call


@dataclass(frozen=True)
class If:
    condition: Value
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class While:
    condition: Value
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class For:
    """Repeat for ``name`` = begin, begin + step, ... before end; a negative step counts down."""

    name: str
    begin: Value
    end: Value
    step: int
    body: tuple[Statement, ...]
    parallel: bool = False  # its turns may run at the same time


@dataclass(frozen=True)
class Leave:
    """Leave a loop (``break``), begin its next turn (``continue``), or leave the function (``return``)."""

    how: str
    value: Value | None = None


Statement = Assign | Put | Do | If | While | For | Leave


@dataclass(frozen=True)
class Function:
    name: str
    arguments: tuple[tuple[str, Kind], ...]
    variables: Mapping[str, Kind]
    body: tuple[Statement, ...]
    kind: Kind | None  # of what it returns


@dataclass(frozen=True, eq=False)
class Program:
    """Functions, each after those it calls; the last one is what targets run."""

    functions: tuple[Function, ...]
    stages: frozenset[str] = frozenset()  # functions that targets provide

    @property
    def main(self) -> Function:
        return self.functions[-1]

    def without_stages(self) -> tuple[Function, ...]:
        """Return the functions that need nothing of a target."""
        return tuple(f for f in self.functions if not self.needs_stages(f.body))

    def needs_stages(self, body: Sequence[Statement]) -> bool:
        """Return whether statements call a stage themselves."""
        for s in body:
            if isinstance(s, Do) and s.call.function in self.stages:
                return True
            inner = (
                (*s.body, *s.otherwise) if isinstance(s, If) else s.body if isinstance(s, While | For) else ()
            )
            if self.needs_stages(inner):
                return True
        return False


def nodes_in(tree: object) -> Iterator[object]:
    """Go through statements and values, and all that they are made of."""
    stack = [tree]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple):
            stack += reversed(one)
        elif isinstance(one, Statement | Value):
            yield one
            stack += reversed(vars(one).values())
