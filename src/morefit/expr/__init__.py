"""The language: expressions over constants, scalars (per call) and columns (per event)."""

from morefit.expr.evaluate import MEANING, evaluate
from morefit.expr.node import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    NamedQuantity,
    Operand,
    Quantity,
    Symbol,
    Table,
    add_all,
    apply,
    column,
    const,
    integral_of,
    lookup,
    make,
    multiply_all,
    same,
    scalar,
    to_expr,
    where,
    wild,
)
from morefit.expr.number import as_double
from morefit.expr.ops import ARITY, COMPARISONS, LEAVES, NARY, PRICE, SYMMETRIC, Op
from morefit.expr.show import to_dot, to_latex, to_text
from morefit.expr.walk import (
    fresh_prefix,
    leaves,
    node_price,
    price,
    rebuild,
    remake,
    domain_of,
    substitute,
    symbols,
    toposort,
    uses,
)

__all__ = [
    "ARITY", "COMPARISONS", "LEAVES", "MEANING", "MINUS_ONE", "NARY", "ONE", "PRICE", "SYMMETRIC", "ZERO",
    "Expr", "NamedQuantity", "Op", "Operand", "Quantity", "Symbol", "Table",
    "add_all", "apply", "as_double", "column", "const", "evaluate", "domain_of", "fresh_prefix", "integral_of", "leaves", "lookup", "make", "multiply_all", "node_price", "price",
    "rebuild", "remake", "same", "scalar", "substitute", "symbols", "to_dot", "to_expr", "to_latex", "to_text", "toposort", "uses",
    "where", "wild",
]  # fmt: skip
