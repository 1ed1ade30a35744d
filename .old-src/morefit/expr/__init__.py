"""The language: expressions over constants, scalars (per call) and columns (per event)."""

from morefit.expr.evaluate import MEANING, evaluate
from morefit.expr.node import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    Operand,
    Quantity,
    Symbol,
    Table,
    add_all,
    apply,
    column,
    const,
    lookup,
    make,
    multiply_all,
    scalar,
    to_expr,
    where,
    wild,
)
from morefit.expr.ops import ARITY, COMPARISONS, LEAVES, NARY, PRICE, SYMMETRIC, Op
from morefit.expr.show import to_dot, to_latex, to_text
from morefit.expr.walk import (
    fresh_prefix,
    leaves,
    node_price,
    price,
    rebuild,
    remake,
    substitute,
    symbols,
    toposort,
    uses,
)

__all__ = [
    "ARITY", "COMPARISONS", "LEAVES", "MEANING", "MINUS_ONE", "NARY", "ONE", "PRICE", "SYMMETRIC", "ZERO",
    "Expr", "Op", "Operand", "Quantity", "Symbol", "Table",
    "add_all", "apply", "column", "const", "evaluate", "fresh_prefix", "leaves", "lookup", "make", "multiply_all", "node_price", "price",
    "rebuild", "remake", "scalar", "substitute", "symbols", "to_dot", "to_expr", "to_latex", "to_text", "toposort", "uses",
    "where", "wild",
]  # fmt: skip
