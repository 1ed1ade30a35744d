"""Expr, the one node type. Equal expressions are the same object."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from morefit.errors import ModelError
from morefit.expr.ops import COMPARISONS, SYMMETRIC, Op
from morefit.expr.show import to_latex, to_text

Operand = Any  # whatever to_expr accepts: a Quantity or a real number
LINE = 200  # characters of an expression in a message


class Quantity(ABC):
    """Anything that can stand in a formula: operators and NumPy functions on it build expressions."""

    __slots__ = ()

    @property
    @abstractmethod
    def expr(self) -> Expr:
        """The expression this quantity stands for."""

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

    def __and__(self, other: Operand) -> Expr:
        return build(both, self, other)

    def __rand__(self, other: Operand) -> Expr:
        return build(both, other, self)

    def __or__(self, other: Operand) -> Expr:
        return build(either, self, other)

    def __ror__(self, other: Operand) -> Expr:
        return build(either, other, self)

    def __invert__(self) -> Expr:
        return make(Op.EQUAL, (condition(self.expr), ZERO))

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"expression '{to_text(self.expr, LINE)}': has no truth value; choose between two expressions with"
            " mf.where(condition, a, b)"
        )

    def __float__(self) -> NoReturn:
        raise ModelError(
            f"expression '{to_text(self.expr, LINE)}': is not a number; use np.exp and the like instead of math.exp"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand, **options: Any) -> Expr:
        if method != "__call__" or options:
            raise ModelError(f"numpy function '{ufunc.__name__}': only plain calls work on expressions")
        if ufunc.__name__ not in UFUNCS:
            raise ModelError(
                f"numpy function '{ufunc.__name__}': not known to morefit; it knows {', '.join(sorted(UFUNCS))}"
            )
        return UFUNCS[ufunc.__name__](*(to_expr(x) for x in inputs))


@dataclass(frozen=True)
class Symbol:
    """A name inside an expression; parameters and observables are symbols that know more."""

    name: str


@dataclass(frozen=True)
class Table(Symbol):
    """Numbers inside an expression, kept as the bytes of doubles."""

    numbers: bytes

    @property
    def array(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.frombuffer(self.numbers, np.float64)


Value = float | Symbol | str


class Expr(Quantity):
    """An operation applied to other expressions. Build it with operators, never directly."""

    __slots__ = ("__weakref__", "args", "op", "order", "value")

    op: Op
    args: tuple[Expr, ...]
    value: Value  # CONST: the number; SCALAR, COLUMN, WILD: the symbol; INTEGRAL: the rule
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
        return from_table, (to_table(self),)


_alive: WeakValueDictionary[tuple[object, ...], Expr] = WeakValueDictionary()


def make(op: Op, args: tuple[Expr, ...] = (), value: Value = 0.0) -> Expr:
    """Return the one Expr with these parts, making it if needed."""
    if op in SYMMETRIC and len(args) > 1:
        args = tuple(sorted(args, key=by_order))
    bits = value.hex() if isinstance(value, float) else value  # 0.0 == -0.0, but they are two numbers
    key = (op, args, bits)
    node = _alive.get(key)
    if node is None:
        node = object.__new__(Expr)
        for name, part in (("op", op), ("args", args), ("value", value)):
            object.__setattr__(node, name, part)
        object.__setattr__(node, "order", stable_order(op, args, value))
        node = _alive.setdefault(key, node)
    return node


def by_order(node: Expr) -> tuple[int, int]:
    return node.order


def stable_order(op: Op, args: tuple[Expr, ...], value: Value) -> tuple[int, int]:
    """Numbers first, then names, then the rest by a hash that does not change from process to process."""
    if op is Op.CONST:
        return (0, zlib.crc32(float(value).hex().encode()))  # type: ignore[arg-type]  # hash(-1.0) == hash(-2.0)
    if isinstance(value, Symbol):
        return (op.value, zlib.crc32(value.name.encode()))
    text = zlib.crc32(value.encode()) if isinstance(value, str) else 0
    return (100, hash((op.value, text, tuple(a.order for a in args))))


def const(number: float) -> Expr:
    """Make a number; it must be finite."""
    value = float(number)
    if not np.isfinite(value):
        raise ModelError(f"constant: must be finite, got {value}")
    return make(Op.CONST, value=value)


def scalar(symbol: Symbol | str) -> Expr:
    return make(Op.SCALAR, value=Symbol(symbol) if isinstance(symbol, str) else symbol)


def column(symbol: Symbol | str) -> Expr:
    return make(Op.COLUMN, value=Symbol(symbol) if isinstance(symbol, str) else symbol)


def wild(name: str) -> Expr:
    return make(Op.WILD, value=Symbol(name))


def lookup(table: Table, place: Operand) -> Expr:
    """Return the number of a table at a place."""
    return make(Op.LOOKUP, (make(Op.TABLE, value=table), to_expr(place)))


def to_expr(value: Operand) -> Expr:
    """Accept a quantity or a real number."""
    if isinstance(value, Quantity):
        return value.expr
    if isinstance(value, (Real, np.bool_)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return const(float(value))
    raise ModelError(
        f"expression: takes numbers, observables, parameters and expressions, got {type(value).__name__}"
    )


def build(how: Callable[[Expr, Expr], Expr], a: Operand, b: Operand) -> Expr:
    return how(to_expr(a), to_expr(b))


ONE, ZERO, MINUS_ONE = const(1), const(0), const(-1)


def add(a: Expr, b: Expr) -> Expr:
    return make(Op.ADD, (a, b))


def multiply(a: Expr, b: Expr) -> Expr:
    return make(Op.MUL, (a, b))


def negate(a: Expr) -> Expr:
    return const(-a.number) if a.op is Op.CONST else make(Op.MUL, (MINUS_ONE, a))


def subtract(a: Expr, b: Expr) -> Expr:
    return add(a, negate(b))


def power(a: Expr, b: Expr) -> Expr:
    return make(Op.POW, (a, b))


def divide(a: Expr, b: Expr) -> Expr:
    return multiply(a, power(b, MINUS_ONE))


def less(a: Expr, b: Expr) -> Expr:
    return make(Op.LESS, (a, b))


def less_equal(a: Expr, b: Expr) -> Expr:
    return make(Op.LESS_EQUAL, (a, b))


def not_equal(a: Expr, b: Expr) -> Expr:
    return subtract(ONE, make(Op.EQUAL, (a, b)))


def truth(a: Expr) -> Expr:
    """Return 1 where an expression is not zero; comparisons, and their products and maxima, are so already."""
    parts = [a]
    while parts:
        part = parts.pop()
        if part.op in (Op.MUL, Op.MAX):
            parts += part.args
        elif part.op not in COMPARISONS and part not in (ZERO, ONE):  # of numbers a comparison is a number
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


def add_all(*terms: Operand) -> Expr:
    """Add any number of terms in one node."""
    return make(Op.ADD, tuple(to_expr(t) for t in terms)) if terms else ZERO


def multiply_all(*factors: Operand) -> Expr:
    """Multiply any number of factors in one node."""
    return make(Op.MUL, tuple(to_expr(f) for f in factors)) if factors else ONE


def where(condition: Operand, yes: Operand, no: Operand) -> Expr:
    """Return ``yes`` where the condition holds (is not zero) and ``no`` elsewhere."""
    return make(Op.WHERE, (to_expr(condition), to_expr(yes), to_expr(no)))


def apply(op: Op, *args: Operand) -> Expr:
    """Apply an operation by its name in ``Op``."""
    return make(op, tuple(to_expr(a) for a in args))


def unary(op: Op) -> Callable[..., Expr]:
    return lambda *args: make(op, args)


# NumPy functions that work on expressions, by the name of the ufunc
UFUNCS: dict[str, Callable[..., Expr]] = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "power": power,
    "float_power": power,
    "negative": negate,
    "positive": lambda a: a,
    "square": lambda a: power(a, const(2)),
    "reciprocal": lambda a: power(a, MINUS_ONE),
    "exp": unary(Op.EXP),
    "exp2": unary(Op.EXP2),
    "expm1": unary(Op.EXPM1),
    "log": unary(Op.LOG),
    "log2": lambda a: multiply(const(1 / np.log(2)), make(Op.LOG, (a,))),
    "log10": lambda a: multiply(const(1 / np.log(10)), make(Op.LOG, (a,))),
    "log1p": unary(Op.LOG1P),
    "sqrt": unary(Op.SQRT),
    "sin": unary(Op.SIN),
    "cos": unary(Op.COS),
    "tan": unary(Op.TAN),
    "arcsin": unary(Op.ASIN),
    "arccos": unary(Op.ACOS),
    "arctan": unary(Op.ATAN),
    "arctan2": unary(Op.ATAN2),
    "sinh": unary(Op.SINH),
    "cosh": unary(Op.COSH),
    "tanh": unary(Op.TANH),
    "absolute": unary(Op.ABS),
    "fabs": unary(Op.ABS),
    "floor": unary(Op.FLOOR),
    "minimum": unary(Op.MIN),
    "fmin": unary(Op.MIN),
    "maximum": unary(Op.MAX),
    "fmax": unary(Op.MAX),
    "less": less,
    "less_equal": less_equal,
    "greater": lambda a, b: less(b, a),
    "greater_equal": lambda a, b: less_equal(b, a),
    "equal": unary(Op.EQUAL),
    "not_equal": not_equal,
    "logical_and": lambda a, b: multiply(truth(a), truth(b)),
    "logical_or": lambda a, b: make(Op.MAX, (truth(a), truth(b))),
    "logical_not": lambda a: make(Op.EQUAL, (a, ZERO)),
    # scipy.special
    "erf": unary(Op.ERF),
    "erfc": unary(Op.ERFC),
    "ndtri": unary(Op.NDTRI),
    "gammaln": unary(Op.LGAMMA),
    "psi": unary(Op.DIGAMMA),
}

Rows = tuple[tuple[Op, tuple[int, ...], Value], ...]


def to_table(root: Expr) -> Rows:
    """Flatten a graph to rows that name their arguments by number: pickles without recursion."""
    index: dict[Expr, int] = {}
    rows: list[tuple[Op, tuple[int, ...], Value]] = []
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [a for a in node.args if a not in index]
        if missing:
            stack += missing
            continue
        stack.pop()
        if node not in index:
            index[node] = len(rows)
            rows.append((node.op, tuple(index[a] for a in node.args), node.value))
    return tuple(rows)


def from_table(table: Rows) -> Expr:
    nodes: list[Expr] = []
    for op, args, value in table:
        nodes.append(make(op, tuple(nodes[a] for a in args), value))
    return nodes[-1]
