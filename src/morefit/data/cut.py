"""Conditions on events: text such as ``pt > 2 & abs(eta) < 2.5``, or a function of columns."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morefit.data.columns import Mask
from morefit.dataclass import dataclass
from morefit.errors import DataError, MorefitError

Values = NDArray[Any]
WIDE = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}  # by the kind of a dtype
EXACT = 2**53  # whole numbers up to here are doubles; above, some are not
EXAMPLE = 'write it as in cut="pt > 2 & abs(eta) < 2.5"'
# Operators of C and numpy become words of Python, which bind less tightly than comparisons.
SPELLINGS = ((r"&&?", " and "), (r"\|\|?", " or "), (r"!(?!=)|~", " not "))
FUNCTIONS: dict[str, np.ufunc] = {
    "abs": np.absolute, "fabs": np.fabs, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arctan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "hypot": np.hypot, "floor": np.floor, "ceil": np.ceil,
    "min": np.minimum, "max": np.maximum, "isfinite": np.isfinite, "isnan": np.isnan,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], np.ufunc] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide, ast.Mod: np.remainder, ast.Pow: np.float_power,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], np.ufunc] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A condition on events: its text, the columns it needs, and the function that evaluates it on them."""

    text: str
    names: tuple[str, ...]
    evaluate: Callable[[Mapping[str, Values]], Any]

    def mask(self, columns: Mapping[str, Values], length: int) -> Mask:
        """Return for each event whether it passes."""
        arguments = {name: self.widened(name, columns[name]) for name in self.names}
        try:
            with np.errstate(all="ignore"):
                passes = np.asarray(self.evaluate(arguments))
        except MorefitError:
            raise
        except Exception as error:  # of the user's own function
            raise DataError(
                f"cut '{self.text}': failed, {type(error).__name__}: {error}; columns are in double precision,"
                " so that bit operations need astype(int)"
            ) from error
        if passes.dtype != np.bool_ or passes.shape != (length,):
            rule = f"must be true or false for each of {length} events"
            raise DataError(
                f"cut '{self.text}': {rule}, got shape {passes.shape} of dtype {passes.dtype}; {EXAMPLE}"
            )
        return passes

    def widened(self, name: str, column: Values) -> Values:
        """Return a column of numbers or booleans in the widest type of its kind."""
        if column.dtype.kind in WIDE:
            return column.astype(WIDE[column.dtype.kind])
        raise DataError(
            f"cut '{self.text}': column '{name}' must be numbers, or true and false, got dtype {column.dtype};"
            " name another column"
        )


def in_doubles(text: str, columns: Mapping[str, Values]) -> Iterator[Values]:
    """Yield columns as functions take them: in double precision, which does not wrap around."""
    for name, column in columns.items():
        if is_whole(column) and len(column) and max(-int(column.min()), int(column.max())) > EXACT:
            raise DataError(
                f"cut '{text}': column '{name}' has whole numbers above {EXACT}, which are not exact in double"
                f' precision; write the cut as a text, as in cut="{name} == 1"'
            )
        yield column if column.dtype == np.bool_ else column.astype(np.float64)


def is_whole(number: Any) -> bool:
    """Return whether something is a whole number, or a column of them."""
    return isinstance(number, int) or (isinstance(number, np.ndarray) and number.dtype.kind in "iu")


def condition(cut: str | Callable[..., Any]) -> Condition:
    """Return the condition of a text, or of a function whose arguments are named as columns."""
    if isinstance(cut, str):
        root = parse(cut)
        return Condition(cut, tuple(dict.fromkeys(names_in(root))), partial(evaluate_text, cut, root))
    if not callable(cut):
        raise DataError(f"cut {cut!r}: must be a text or a function; {EXAMPLE}")
    name = getattr(cut, "__name__", repr(cut))
    return Condition(name, arguments_of(cut, name), partial(call_function, name, cut))


# functions of this module, which pickle


def evaluate_text(text: str, root: ast.expr, columns: Mapping[str, Values]) -> Any:
    """Evaluate the condition of a text."""
    return Evaluator(text, columns)(root)


def call_function(name: str, function: Callable[..., Any], columns: Mapping[str, Values]) -> Any:
    """Evaluate the condition of a function."""
    return function(*in_doubles(name, columns))


def arguments_of(function: Callable[..., Any], name: str, kind: str = "cut") -> tuple[str, ...]:
    """Return the names of the columns that a function takes; arguments with a default keep it."""
    rule = f"{kind} '{name}': the arguments of a function must be named as columns"
    try:
        every = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise DataError(f"{rule}, got one without a signature; write lambda pt, eta: ...") from None
    arguments = [a for a in every if a.default is inspect.Parameter.empty]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    odd = [str(a) for a in arguments if a.kind not in plain]
    if odd or not arguments:
        raise DataError(f"{rule}, got {', '.join(odd) or 'none'}; write lambda pt, eta: ...")
    return tuple(a.name for a in arguments)


def parse(text: str) -> ast.expr:
    """Return a text as a tree of operations; only those of this file are ever evaluated."""
    python = " ".join(text.split())
    for spelling, word in SPELLINGS:
        python = re.sub(spelling, word, python)
    try:
        root = ast.parse(python.strip(), mode="eval").body
        problem = next(not_allowed(root), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise DataError(f"cut '{text}': is not a valid expression: {reason}; {EXAMPLE}") from None
    if problem is not None:
        raise DataError(f"cut '{text}': {problem}; {EXAMPLE}")
    return root


def not_allowed(root: ast.expr) -> Iterator[str]:
    """Yield what is not allowed in a condition, outer parts first."""
    for node in ast.walk(root):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                if len(args) != FUNCTIONS[name].nin:
                    yield f"{name}() takes {FUNCTIONS[name].nin} arguments, got {len(args)}"
            case ast.Call():
                yield f"unknown function {ast.unparse(node.func)!r}, there are {', '.join(FUNCTIONS)}"
            case ast.BinOp(op=ast.BitXor()):
                yield "'^' is not an operation, write ** for a power"
            case ast.Constant(value=bool() | int() | float()):
                pass
            case ast.Constant(value=value):
                yield f"{value!r} is not a number"
            case ast.Attribute() if dotted(node) is None:
                yield f"{ast.unparse(node)!r} is not the name of a column"
            case (
                ast.Name() | ast.Attribute() | ast.BoolOp() | ast.Compare() | ast.BinOp() | ast.UnaryOp()
                | ast.boolop() | ast.unaryop() | ast.operator() | ast.cmpop() | ast.expr_context()
            ):  # fmt: skip
                yield from unknown_operation(node)
            case _:
                yield f"{ast.unparse(node)!r} is not allowed here"


def unknown_operation(node: ast.AST) -> list[str]:
    """Return a message for operations that are not in the tables, such as shifts and ``in``."""
    wrong = (isinstance(node, ast.operator) and type(node) not in (*ARITHMETIC, ast.BitXor)) or (
        isinstance(node, ast.cmpop) and type(node) not in COMPARISONS
    )
    return [f"the operation {type(node).__name__!r} is not allowed here"] if wrong else []


def dotted(node: ast.expr) -> str | None:
    """Return a name with dots, as branches of ROOT files have; None if it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    before = dotted(node.value) if isinstance(node, ast.Attribute) else None
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else None


def names_in(root: ast.expr) -> list[str]:
    """Return the columns that an expression names, in order."""
    names: list[str] = []
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            names.append(dotted(node) or "")
        elif isinstance(node, ast.Call):
            stack += reversed(node.args)
        else:
            stack += reversed(list(ast.iter_child_nodes(node)))
    return names


class Evaluator:
    """Evaluates a checked expression on columns.

    Arithmetic is in double precision, so that nothing wraps around and the format of a file does not matter. Whole
    numbers are compared and divided with remainder exactly, however large: numbers of events are such.
    """

    def __init__(self, text: str, columns: Mapping[str, Values]) -> None:
        self.text, self.columns = text, columns

    def __call__(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Call(func=ast.Name(id=name), args=args):
                return FUNCTIONS[name](*(double(self.number(a)) for a in args))
            case ast.BinOp(left=left, op=op, right=right):
                return calculate(op, self.number(left), self.number(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.logical_not(self.truth(operand))
            case ast.UnaryOp(op=op, operand=operand):
                number = self.number(operand)
                if isinstance(op, ast.UAdd):
                    return number
                return -(number if isinstance(number, int) else double(number))
            case ast.BoolOp(op=op, values=values):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return reduce(join, [self.truth(v) for v in values])
            case ast.Compare(left=left, ops=ops, comparators=right):
                sides = [self.number(side) for side in (left, *right)]
                pairs = zip(ops, sides, sides[1:], strict=False)
                return reduce(np.logical_and, [COMPARISONS[type(op)](a, b) for op, a, b in pairs])
        return self.columns[dotted(node) or ""]

    def number(self, node: ast.expr) -> Any:
        """Evaluate an operand of arithmetic or of a comparison; true counts as one."""
        operand = self(node)
        return double(operand) if np.asarray(operand).dtype == np.bool_ else operand

    def truth(self, node: ast.expr) -> Any:
        """Evaluate an operand of and, or and not: a condition; numbers are errors, as bit operations may be meant."""
        operand = self(node)
        if np.asarray(operand).dtype != np.bool_:
            part = ast.unparse(node)
            raise DataError(
                f"cut '{self.text}': '{part}' must be a condition, got a number; compare it, as in {part} != 0"
            )
        return operand


def calculate(op: ast.operator, left: Any, right: Any) -> Any:
    """Compute in double precision, but the quotient and remainder of whole numbers exactly."""
    divides = isinstance(op, ast.Mod | ast.FloorDiv) and is_whole(left) and is_whole(right)
    if divides and fits(left) and fits(right) and np.all(right > 0):
        return ARITHMETIC[type(op)](np.asarray(left, np.int64), np.asarray(right, np.int64))
    return ARITHMETIC[type(op)](double(left), double(right))


def fits(number: Any) -> bool:
    """Return whether whole numbers are signed integers of 64 bits."""
    return bool(np.all(np.abs(np.asarray(number, np.float64)) < 2.0**63))


def double(number: Any) -> Any:
    """Return numbers in double precision."""
    try:
        return np.asarray(number, np.float64)[()]
    except OverflowError:
        return np.inf if number > 0 else -np.inf
