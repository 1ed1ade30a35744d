"""Expr, the one node type. Equal expressions are the same object."""

from __future__ import annotations

import math
import zlib
from _weakref import _remove_dead_weakref as remove_dead  # type: ignore[attr-defined]
from abc import ABC, abstractmethod
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from morefit.errors import ModelError
from morefit.expr.operations import COMPARISONS, OPERATIONS, SYMMETRIC, Op, Operation
from morefit.expr.quadrature import Domain
from morefit.expr.show import to_latex, to_text
from morefit.expr.symbol import Symbol, as_double
from morefit.text.rounding import is_number_format

Operand = Any  # whatever to_expr accepts: a Quantity or a real number
LINE = 200  # characters of an expression in a message


class Quantity(ABC):
    """Anything that can stand in a formula: operators and NumPy functions on it build expressions."""

    __slots__ = ()

    @property
    @abstractmethod
    def expr(self) -> Expr:
        """The expression this quantity stands for."""

    __hash__ = object.__hash__  # == makes a condition; equal quantities are the same object

    def __add__(self, other: Operand) -> Expr:
        return build(add, self, other)

    def __radd__(self, other: Operand) -> Expr:
        return build(add, other, self)

    def __sub__(self, other: Operand) -> Expr:
        return build(subtract, self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return build(subtract, other, self)

    def __mul__(self, other: Operand) -> Expr:
        return build(multiply, self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return build(multiply, other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return build(divide, self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return build(divide, other, self)

    def __pow__(self, other: Operand) -> Expr:
        return build(power, self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return build(power, other, self)

    def __mod__(self, other: Operand) -> Expr:
        return build(ufunc_of("remainder"), self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return build(ufunc_of("remainder"), other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return build(ufunc_of("floor_divide"), self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return build(ufunc_of("floor_divide"), other, self)

    def __neg__(self) -> Expr:
        return negate(self.expr)

    def __pos__(self) -> Expr:
        return self.expr

    def __abs__(self) -> Expr:
        return make(Op.ABS, (self.expr,))

    def __lt__(self, other: Operand) -> Expr:
        return build(less, self, other)

    def __le__(self, other: Operand) -> Expr:
        return build(less_equal, self, other)

    def __gt__(self, other: Operand) -> Expr:
        return build(less, other, self)

    def __ge__(self, other: Operand) -> Expr:
        return build(less_equal, other, self)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return compare(equal, self, other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return compare(not_equal, self, other)

    def __and__(self, other: Operand) -> Expr:
        return build(both, self, other)

    def __rand__(self, other: Operand) -> Expr:
        return build(both, other, self)

    def __or__(self, other: Operand) -> Expr:
        return build(either, self, other)

    def __ror__(self, other: Operand) -> Expr:
        return build(either, other, self)

    def __invert__(self) -> Expr:
        return negation(condition(self.expr))

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"expression '{to_text(self.expr, LINE)}': has no truth value; choose between two expressions with"
            " mf.where(condition, a, b), join conditions with &, | and ~ as in (x > 0) & (x < 1), write"
            " np.minimum and np.maximum for min and max, and 'is' to ask for the same object"
        )

    def __float__(self) -> NoReturn:
        raise ModelError(
            f"expression '{to_text(self.expr, LINE)}': is not a number; use np.exp and the like instead of math.exp"
        )

    __int__ = __float__

    def __format__(self, spec: str) -> str:
        if is_number_format(spec):
            raise ModelError(
                f"expression '{to_text(self.expr, LINE)}': has no value to format; write result.derived(expression).value, or"
                " result.values[parameter] for a parameter"
            )
        return format(str(self), spec)

    def __round__(self, digits: int | None = None) -> NoReturn:
        raise ModelError(f"expression '{to_text(self.expr, LINE)}': cannot be rounded; use np.floor")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand, **options: Any) -> Expr:
        if method != "__call__" or options:
            raise ModelError(f"numpy function '{ufunc.__name__}': only plain calls work on expressions")
        return ufunc_of(ufunc.__name__)(*(to_expr(x) for x in inputs))

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        from morefit.expr.numpy_functions import call  # made of expressions

        return call(function, args, options)


Value = float | Symbol | Domain


class Expr(Quantity):
    """An operation applied to other expressions. Build it with operators, never directly."""

    __slots__ = ("__weakref__", "args", "op", "order", "value")

    op: Operation
    args: tuple[Expr, ...]
    value: Value  # CONST: the number; SCALAR, COLUMN, WILD: the symbol; INTEGRAL: the domain
    order: tuple[int, int]  # the same in every process: sorts the arguments of symmetric operations

    @property
    def expr(self) -> Expr:
        return self

    @property
    def name(self) -> str:
        assert isinstance(self.value, Symbol)
        return self.value.name

    @property
    def number(self) -> float:
        assert isinstance(self.value, float)
        return self.value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("expressions never change; build a new one")

    def __repr__(self) -> str:
        return to_text(self, LINE)

    def _repr_latex_(self) -> str:
        return f"${to_latex(self)}$"

    def __reduce__(self) -> tuple[Callable[[Any], Expr], tuple[Any]]:
        from morefit.expr.walk import from_rows, to_rows  # made of expressions

        return from_rows, (to_rows(self),)


class Alive(ref[Expr]):
    """Refers to a node by its key, as in ``WeakValueDictionary``, which does the same in twice the time."""

    __slots__ = ("key",)

    key: tuple[object, ...]


alive: dict[tuple[object, ...], Alive] = {}


def forget(
    reference: Alive, alive: dict[tuple[object, ...], Alive] = alive, remove: Any = remove_dead
) -> None:
    """Remove a node that is gone, unless another thread has made it again; at the end of a process no global is left."""
    remove(alive, reference.key)


def make(op: Operation, args: tuple[Expr, ...] = (), value: Value = 0.0) -> Expr:
    """Return the one Expr with these parts, making it if needed."""
    if op in SYMMETRIC:
        if len(args) == 2:  # most of them
            args = args if args[0].order <= args[1].order else (args[1], args[0])
        elif args:
            args = tuple(sorted(args, key=by_order))
    bits = float(value).hex() if op is Op.CONST else value  # type: ignore[arg-type]  # 0.0 == -0.0, but they are two numbers
    key = (op, bits, *map(id, args))  # the node keeps its arguments alive, so that no other has their ids
    known = alive.get(key)
    node = None if known is None else known()
    if node is None:
        node = object.__new__(Expr)
        set_op(node, op)
        set_args(node, args)
        set_value(node, value)
        set_order(node, stable_order(op, args, value))
        reference = Alive(node, forget)
        reference.key = key
        while (there := alive.setdefault(key, reference)) is not reference:
            if (other := there()) is not None:  # of another thread
                return other
            remove_dead(alive, key)
    return node


by_order = attrgetter("order")
# the slots themselves: making nodes is most of the work of rewriting
set_op, set_args, set_value, set_order = (
    vars(Expr)[name].__set__ for name in ("op", "args", "value", "order")
)


def stable_order(op: Operation, args: tuple[Expr, ...], value: Value) -> tuple[int, int]:
    """Numbers first, then names, then the rest by a hash that does not change from process to process."""
    if op is Op.CONST:
        return (0, zlib.crc32(float(value).hex().encode()))  # type: ignore[arg-type]  # hash(-1.0) == hash(-2.0)
    if type(value) is float:  # most nodes
        return (100, hash((op.rank, 0, tuple([a.order for a in args]))))
    if isinstance(value, Symbol):
        return (op.rank, zlib.crc32(value.name.encode()))
    text = zlib.crc32(str(value).encode()) if isinstance(value, Domain) else 0
    return (100, hash((op.rank, text, tuple([a.order for a in args]))))


def const(number: float) -> Expr:
    """Make a number; it must be finite."""
    value = as_double(number)
    if value is None or not math.isfinite(value):
        raise ModelError(f"constant: must be finite, got {value}")
    return make(Op.CONST, value=value)


def to_expr(value: Operand) -> Expr:
    """Accept a quantity or a real number."""
    expr = known_expr(value)
    if isinstance(value, complex):
        raise ModelError(
            f"expression: takes real numbers, got {value!r}; write the real and imaginary part of an amplitude as two"
            " formulas, and its square as re**2 + im**2"
        )
    if expr is None:
        formula = "; write the formula itself, as in np.exp(-a * x)" * (
            isinstance(value, str) or callable(value)
        )
        raise ModelError(
            f"expression: takes numbers, observables, parameters and expressions, got {type(value).__name__}{formula}"
        )
    return expr


def known_expr(value: Operand) -> Expr | None:
    """Return the expression of a quantity or a real number, or None for anything else."""
    if type(value) is Expr:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, Quantity):
        return value.expr
    number = as_double(value)
    return None if number is None else const(number)


def build(how: Callable[[Expr, Expr], Expr], a: Operand, b: Operand) -> Expr:
    """Join two operands, or leave it to the other one if its kind is foreign."""
    left, right = known_expr(a), known_expr(b)
    if isinstance(a, complex) or isinstance(b, complex):
        left, right = to_expr(a), to_expr(b)  # says what to write instead
    return NotImplemented if left is None or right is None else how(left, right)


def compare(how: Callable[[Expr, Expr], Expr], a: Quantity, b: Operand) -> Expr:
    """Compare for equality; other built-in objects of Python are refused, since == would be a plain False."""
    if type(b).__module__ == "builtins" and known_expr(b) is None:
        raise ModelError(
            f"expression '{to_text(a.expr, LINE)}': is compared with numbers and expressions, got {b!r};"
            " use 'is' to ask for the same object"
        )
    return build(how, a, b)


ONE, ZERO, MINUS_ONE = const(1), const(0), const(-1)


def applied(op: Operation) -> Callable[..., Expr]:
    return lambda *args: make(op, args)


add, multiply, power = applied(Op.ADD), applied(Op.MUL), applied(Op.POW)
less, less_equal = applied(Op.LESS), applied(Op.LESS_EQUAL)
equal, not_equal = applied(Op.EQUAL), applied(Op.NOT_EQUAL)


def negate(a: Expr) -> Expr:
    return const(-a.number) if a.op is Op.CONST else multiply(MINUS_ONE, a)


def subtract(a: Expr, b: Expr) -> Expr:
    return add(a, negate(b))


def divide(a: Expr, b: Expr) -> Expr:
    return multiply(a, power(b, MINUS_ONE))


def negation(a: Expr) -> Expr:
    """Return 1 where an expression is zero."""
    return not_equal(*a.args) if a.op is Op.EQUAL else equal(a, ZERO)


def truth(a: Expr) -> Expr:
    """Return 1 where an expression is not zero; comparisons, and their products and maxima, are so already."""
    parts = [a]
    while parts:
        part = parts.pop()
        if part.op in (Op.MUL, Op.MAX):
            parts += part.args
        elif part.op not in COMPARISONS and not (part is ZERO or part is ONE):  # of numbers: a number
            return not_equal(a, ZERO)
    return a


def condition(a: Expr) -> Expr:
    """Refuse what is not a comparison, or some joined: numbers must not be taken for bits."""
    if truth(a) is not a:
        raise ModelError(
            f"expression '{to_text(a, LINE)}': &, | and ~ join comparisons such as (x > 1); put them in brackets"
        )
    return a


def both(a: Expr, b: Expr) -> Expr:
    return multiply(condition(a), condition(b))


def either(a: Expr, b: Expr) -> Expr:
    return make(Op.MAX, (condition(a), condition(b)))


# NumPy functions that work on expressions, by the name of the ufunc: those of operations, and some made of them
UFUNCS: dict[str, Callable[..., Expr]] = {name: applied(op) for op in OPERATIONS for name in op.ufuncs} | {
    "subtract": subtract,
    "divide": divide,
    "negative": negate,
    "positive": lambda a: a,
    "square": lambda a: power(a, const(2)),
    "reciprocal": lambda a: power(a, MINUS_ONE),
    "hypot": lambda a, b: make(Op.SQRT, (add(power(a, const(2)), power(b, const(2))),)),
    **dict.fromkeys(("deg2rad", "radians"), lambda a: multiply(a, const(math.pi / 180))),
    **dict.fromkeys(("rad2deg", "degrees"), lambda a: multiply(a, const(180 / math.pi))),
    "expit": lambda a: power(add(const(1), make(Op.EXP, (negate(a),))), MINUS_ONE),
    "greater": lambda a, b: less(b, a),
    "greater_equal": lambda a, b: less_equal(b, a),
    "logical_and": lambda a, b: multiply(truth(a), truth(b)),
    "logical_or": lambda a, b: make(Op.MAX, (truth(a), truth(b))),
    "logical_not": negation,
    "kv": lambda nu, x: multiply(make(Op.KVE, (nu, x)), make(Op.EXP, (negate(x),))),
}


def ufunc_of(name: str) -> Callable[..., Expr]:
    """Return what a ufunc does with expressions."""
    if name in UFUNCS:
        return UFUNCS[name]
    from morefit.expr.numpy_functions import COMPOSED  # made of expressions

    if name not in COMPOSED:
        known = ", ".join(sorted([*UFUNCS, *COMPOSED]))
        raise ModelError(f"numpy function '{name}': not known to morefit; it knows {known}")
    return COMPOSED[name]
