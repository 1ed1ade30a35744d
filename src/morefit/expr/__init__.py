"""The language: expressions over constants, scalars (per call) and columns (per event)."""

from typing import TYPE_CHECKING

from morefit.expr.build import (
    NamedQuantity,
    add_all,
    apply,
    column,
    integral_of,
    lookup,
    multiply_all,
    node_sum,
    same,
    scalar,
    where,
    wild,
    with_name,
)
from morefit.expr.evaluate import evaluate
from morefit.expr.node import (
    MINUS_ONE,
    ONE,
    ZERO,
    Expr,
    Operand,
    Quantity,
    const,
    known_expr,
    make,
    to_expr,
    truth,
)
from morefit.expr.node_rule import NodeRule, NodeSymbol, TemplateRule, TermRule
from morefit.expr.operations import (
    COMPARISONS,
    LEAVES,
    NARY,
    OPERATIONS,
    SYMMETRIC,
    Op,
    Operation,
    Trait,
    with_trait,
)
from morefit.expr.show import to_latex, to_text
from morefit.expr.symbol import HIDDEN, OwnSymbol, Symbol, Table, as_double
from morefit.expr.walk import (
    domain_of,
    fresh_prefix,
    leaves,
    node_price,
    price,
    rebuild,
    remake,
    rule_of,
    substitute,
    substitute_all,
    symbols,
    toposort,
    uses,
    with_finer_rules,
)

if TYPE_CHECKING:
    from morefit.expr.show import to_dot
else:
    from morefit.lazy import import_when_used

    __getattr__ = import_when_used(__name__, {"morefit.expr.show": ["to_dot"]})

__all__ = [
    "COMPARISONS",
    "HIDDEN",
    "LEAVES",
    "MINUS_ONE",
    "NARY",
    "ONE",
    "OPERATIONS",
    "SYMMETRIC",
    "ZERO",
    "Expr",
    "NamedQuantity",
    "NodeRule",
    "NodeSymbol",
    "Op",
    "Operand",
    "Operation",
    "OwnSymbol",
    "Quantity",
    "Symbol",
    "Table",
    "TemplateRule",
    "TermRule",
    "Trait",
    "add_all",
    "apply",
    "as_double",
    "column",
    "const",
    "domain_of",
    "evaluate",
    "fresh_prefix",
    "integral_of",
    "known_expr",
    "leaves",
    "lookup",
    "make",
    "multiply_all",
    "node_price",
    "node_sum",
    "price",
    "rebuild",
    "remake",
    "rule_of",
    "same",
    "scalar",
    "substitute",
    "substitute_all",
    "symbols",
    "to_dot",
    "to_expr",
    "to_latex",
    "to_text",
    "toposort",
    "truth",
    "uses",
    "where",
    "wild",
    "with_finer_rules",
    "with_name",
    "with_trait",
]
