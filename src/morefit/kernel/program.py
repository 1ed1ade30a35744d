"""The structured form of drivers: functions of scalars and arrays with loops and conditionals, read from plain Python.

A driver (such as a step of the minimiser) is a Python function that runs as it is, and whose text is read into this
form, which targets render. The language is small: numbers, ``float``, ``int`` and ``bool``, arrays of numbers
(``Vector``) and of whole ones (``Integers``), records of named arrays and numbers (``Record``), arithmetic,
comparisons, ``if``, ``while``, ``for i in range(...)`` or ``parallel(...)``, calls of other such functions, and of ``exp``, ``log``,
``sqrt``, ``abs``, ``min``, ``max``, ``isfinite``. What Python does not evaluate is not evaluated, but for elements of arrays, which are
read on both sides of ``and``, ``or`` and ``else``. A function returns one number or nothing. What a target does itself,
such as the sums over events, is a ``Stage``. ``Integers`` and addresses are for targets that have addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from morefit.arrays import Array, Integers
from morefit.errors import CompileError

Vector = Array  # how functions of a driver annotate an array of numbers


class Kind(Enum):
    """The type of a value."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"
    VECTOR = "Vector"
    INTEGERS = "Integers"
    RECORD = "Record"


class Record:
    """A record in memory: fields are numbers, or arrays whose length depends on the number of parameters."""


@dataclass(frozen=True)
class Layout:
    """Where the fields of a record are, in numbers from its begin."""

    sizes: tuple[tuple[str, int | None], ...]  # None: one number, not an array

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where the numbers of each field are."""
        slices, first = {}, 0
        for name, size in self.sizes:
            slices[name] = slice(first, first + (1 if size is None else size))
            first = slices[name].stop
        return slices

    @cached_property
    def arrays(self) -> frozenset[str]:
        """The fields that are arrays."""
        return frozenset(name for name, size in self.sizes if size is not None)

    def first(self, name: str) -> int:
        return int(self.slices[name].start)

    def slice(self, name: str) -> slice:
        return self.slices[name]

    @cached_property
    def size(self) -> int:
        return sum(1 if size is None else size for _, size in self.sizes)


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


def parallel(*bounds: int) -> range:
    """Return a range of turns that may run at the same time.

    Each turn stores only into elements that no other turn reads or stores into. What it assigns to variables is its own,
    and functions that it calls store nothing.
    """
    return range(*bounds)


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


# ------------------------------------------------------------------------------------------ what targets provide


NO_ADDRESSES = "driver: addresses exist in compiled code only; this function cannot run as Python"


def vector_at(address: int) -> Vector:
    """Return the numbers at an address: a word of the language, for compiled code alone."""
    raise CompileError(NO_ADDRESSES)


def integers_at(address: int) -> Integers:
    """Return the whole numbers at an address: a word of the language, for compiled code alone."""
    raise CompileError(NO_ADDRESSES)


class Stage:
    """A function that targets provide, such as the sums over events. In Python it is what ``run`` says."""

    def __init__(self, name: str, kind: Kind | None = None) -> None:
        self.name, self.kind = name, kind
        self.run: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        assert self.run is not None
        return self.run(*args)
