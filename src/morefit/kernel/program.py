"""The language of drivers: functions of scalars and arrays with loops and conditionals, as plain Python.

A driver (such as a step of the minimiser) is a Python function that runs as it is, and whose text is read into this
form (``statements.py``), which targets render. The language is small: numbers, ``float``, ``int`` and ``bool``, arrays of numbers
(``Vector``) and of whole ones (``Integers``), records of named arrays and numbers (``Record``), arithmetic,
comparisons, ``if``, ``while``, ``for i in range(...)`` or ``parallel(...)``, calls of other such functions, and of
``exp``, ``log``, ``sqrt``, ``floor``, ``abs``, ``min``, ``max``, ``isfinite``; constants are those of its module, or of one that
it names. What Python does not evaluate is not evaluated, but for elements of arrays, which are read on both sides of
``and``, ``or`` and ``else``. A function returns one number or nothing. What a target does itself, such as the sums
over events, is a ``Stage``. ``Integers`` and addresses are for targets that have addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import CompileError

if TYPE_CHECKING:
    from morefit.kernel.statements import Program

Vector = Array  # how functions of a driver annotate an array of numbers


class Kind(Enum):
    """The type of a value."""

    FLOAT = "float"
    INT = "int"
    BOOL = "bool"
    VECTOR = "Vector"
    INTEGERS = "Integers"
    RECORD = "Record"

    # that of an Enum is a function of Python, called ten thousand times for a driver
    __hash__ = object.__hash__


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
        start: int = self.slices[name].start
        return start

    def slice(self, name: str) -> slice:
        return self.slices[name]

    @cached_property
    def size(self) -> int:
        return sum(1 if size is None else size for _, size in self.sizes)


def parallel(*bounds: int) -> range:
    """Return a range of turns that may run at the same time.

    Each turn stores only into elements that no other turn reads or stores into. What it assigns to variables is its own,
    and functions that it calls store nothing.
    """
    return range(*bounds)


# ------------------------------------------------------------------------------------------ what targets provide


NO_ADDRESSES = "driver: addresses exist in compiled code only; this function cannot run as Python"


def vector_at(address: int) -> Vector:
    """Return the numbers at an address: a word of the language, for compiled code alone."""
    raise CompileError(NO_ADDRESSES)


def integers_at(address: int) -> Integers:
    """Return the whole numbers at an address: a word of the language, for compiled code alone."""
    raise CompileError(NO_ADDRESSES)


class Stage:
    """A function that targets provide, such as the sums over events. In Python it is what ``run`` says.

    One that ``stores`` nothing may be called by the turns of parallel loops.
    """

    def __init__(self, name: str, kind: Kind | None = None, *, stores: bool = True) -> None:
        self.name, self.kind, self.stores = name, kind, stores
        self.run: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        assert self.run is not None
        return self.run(*args)


@dataclass(frozen=True, eq=False)
class Driver:
    """A program that is read when a target needs its text: its main function, and the layouts of records by class."""

    main: Callable[..., Any]
    layouts: tuple[tuple[str, Layout], ...]
    weighted: bool = False  # whether errors are corrected at the end of a fit, from squared scores

    @cached_property
    def program(self) -> Program:
        from morefit.kernel.read_program import read_program  # slow; code on disk needs none

        return read_program(self.main, dict(self.layouts))
