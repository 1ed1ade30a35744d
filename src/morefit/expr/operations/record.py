"""The record of an operation: everything that morefit knows about it, in one place."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import field
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any

import numpy as np

from morefit.dataclass import dataclass

if TYPE_CHECKING:
    from morefit.expr.node import Expr

# how tightly an operation binds in text; an argument that binds less tightly than its slot needs gets parentheses
COMPARES, ADDS, MULTIPLIES, RAISES, STANDS_ALONE = range(1, 6)


class Trait(Flag):
    """What the algebra may use of an operation."""

    NONE = 0
    LEAF = auto()  # takes no arguments
    NARY = auto()  # commutative and associative, any number of arguments
    SYMMETRIC = auto()  # the order of the arguments does not matter
    COMPARISON = auto()  # 1.0 where it holds and 0.0 elsewhere
    EVEN = auto()  # f(-x) == f(x)
    ODD = auto()  # f(-x) == -f(x)
    NOT_NEGATIVE = auto()  # >= 0, or NaN, for all arguments
    POSITIVE = auto()  # > 0 in exact arithmetic
    KEEPS_SIGN = auto()  # >= 0 where all arguments are
    GROWS = auto()  # overflows for arguments of some hundreds
    LEVELS_OFF = auto()  # has a value where the argument is infinite, and no slope there
    OWN_SLOPE = auto()  # the derivative is more than a sum over partials: a function in rewrite/derive.py
    NO_SLOPE = auto()  # there is no derivative


class LlvmKind(Enum):
    """The kinds of instructions that compute an operation."""

    INSTRUCTION = auto()  # an instruction of LLVM, with its flags
    INTRINSIC = auto()  # an intrinsic function of LLVM
    CALL = auto()  # a function of targets/cpu/vecmath
    COMPARISON = auto()  # 1.0 or 0.0, by a predicate
    CHOICE = auto()  # the first argument where a predicate holds or it is NaN, else the second
    SELECT = auto()  # the second argument where the first is not zero, else the third
    GATHER = auto()  # a number of a table for each lane


@dataclass(frozen=True)
class Llvm:
    """How LLVM computes an operation: by the instruction, function or predicate of this name."""

    kind: LlvmKind
    name: str = ""
    flushed: str = ""  # the name in loops that take denormals as zero, where that is another


@dataclass(frozen=True)
class Prefix:
    r"""LaTeX of a function by its name, as in \sin(x); ``raised``: a power stands behind the name."""

    name: str
    raised: bool = False


@dataclass(frozen=True)
class Around:
    """LaTeX that stands before and after the argument."""

    binding: int
    before: str
    after: str
    inner: int = COMPARES  # the binding that the argument needs at least


@dataclass(frozen=True)
class Infix:
    """LaTeX between two arguments."""

    sign: str


_known: dict[str, Operation] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Operation:
    """One operation with all its meanings; it is called by the name it is assigned to in its family."""

    name: str = field(init=False)
    rank: int = 0  # orders the arguments of sums and products: a new operation takes the next number
    arity: int = 1  # 0: any number
    # of one evaluation, in additions (benchmarks/vecmath.py); of each argument after the first if NARY
    price: int = 0
    numpy: Callable[..., Any]  # the reference meaning
    ufuncs: tuple[str, ...] = ()  # functions of numpy and scipy.special that mean it; of numpy: itself
    # d op(x, y) / dx, d op(x, y) / dy, None for one that is not known, and where a value is finite but a partial is not
    partials: Callable[..., tuple[Any, ...]] | None = None
    singular: Callable[..., Expr] | None = None
    sign: str = ""  # between arguments in text
    latex: Prefix | Around | Infix | None = None  # None: written by show/text.py
    routine: str = ""  # its name in targets/cpu/vecmath and in C, from which llvm and c follow
    llvm: Llvm | None = None  # None: never in a kernel
    # what kernels compute it by, where it is no function of its own
    spelled: Callable[..., Expr] | None = None
    c: str = ""  # with {0}, {1}, ... for the arguments
    traits: Trait = Trait.NONE

    def __post_init__(self) -> None:
        if self.routine:
            arguments = ", ".join(f"{{{k}}}" for k in range(self.arity))
            object.__setattr__(self, "llvm", call(self.routine))
            object.__setattr__(self, "c", f"{self.routine}({arguments})")
        if not self.ufuncs and isinstance(self.numpy, np.ufunc):
            object.__setattr__(self, "ufuncs", (self.numpy.__name__,))

    def __set_name__(self, owner: type, name: str) -> None:
        assert name not in _known, f"operation '{name}' exists already"
        object.__setattr__(self, "name", name)
        _known[name] = self

    def __call__(self, *args: Any) -> Expr:
        """Apply to quantities and numbers."""
        from morefit.expr.build import apply  # expressions are made of operations

        return apply(self, *args)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Operation], tuple[str]]:
        return operation_named, (self.name,)


def operation_named(name: str) -> Operation:
    """Return the one operation of a name."""
    return _known[name]


def instruction(name: str) -> Llvm:
    return Llvm(LlvmKind.INSTRUCTION, name)


def intrinsic(name: str) -> Llvm:
    return Llvm(LlvmKind.INTRINSIC, name)


def call(name: str, flushed: str = "") -> Llvm:
    return Llvm(LlvmKind.CALL, name, flushed)


def scipy_special(name: str, *before: float) -> Callable[..., Any]:
    """Return a function of scipy.special by name; importing it costs 0.15 s, so it waits for the first use."""
    return lambda *x: getattr(importlib.import_module("scipy.special"), name)(*before, *x)


def not_computed(*args: Any) -> Any:
    """Stand for the meaning of a leaf, whose value is an input."""
    raise AssertionError("a leaf has no arguments to compute it from")
