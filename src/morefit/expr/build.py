"""Functions that build expressions, besides the operators of ``node.py``, and named quantities."""

from __future__ import annotations

from dataclasses import fields
from operator import is_
from typing import Any, Self
from weakref import WeakValueDictionary

from morefit.expr.node import ONE, ZERO, Expr, Operand, Quantity, make, to_expr
from morefit.expr.node_rule import NodeRule
from morefit.expr.operations import Op, Operation
from morefit.expr.quadrature import Domain
from morefit.expr.symbol import Symbol, Table


def scalar(symbol: Symbol | str) -> Expr:
    return make(Op.SCALAR, value=Symbol(symbol) if isinstance(symbol, str) else symbol)


def column(symbol: Symbol | str) -> Expr:
    return make(Op.COLUMN, value=Symbol(symbol) if isinstance(symbol, str) else symbol)


def wild(name: str) -> Expr:
    return make(Op.WILD, value=Symbol(name))


def lookup(table: Table, place: Operand) -> Expr:
    """Return the number of a table at a place."""
    return make(Op.LOOKUP, (make(Op.TABLE, value=table), to_expr(place)))


def with_name(symbol: Symbol, body: Expr) -> Expr:
    """Return an expression that has a name in print."""
    return make(Op.NAMED, (body,), symbol)


def same(some: tuple[Expr, ...], others: tuple[Expr, ...]) -> bool:
    """Return whether two tuples have the same expressions."""
    return len(some) == len(others) and all(map(is_, some, others))


def add_all(*terms: Operand) -> Expr:
    """Add any number of terms in one node."""
    return make(Op.ADD, tuple(to_expr(t) for t in terms)) if terms else ZERO


def multiply_all(*factors: Operand) -> Expr:
    """Multiply any number of factors in one node."""
    return make(Op.MUL, tuple(to_expr(f) for f in factors)) if factors else ONE


def where(condition: Operand, yes: Operand, no: Operand) -> Expr:
    """Return ``yes`` where the condition holds (is not zero) and ``no`` elsewhere."""
    return make(Op.WHERE, (to_expr(condition), to_expr(yes), to_expr(no)))


def integral_of(body: Expr, domain: Domain, *places: Expr) -> Expr:
    """Integrate over the axes of a domain; ``places`` are points on them where a narrow peak may hide.

    The arguments after the first say what the boxes of the quadrature are made for: the body itself. They stay when
    the body is differentiated, so that an integral and its derivatives share their boxes.
    """
    return make(Op.INTEGRAL, (body, body, *places), domain)


def node_sum(body: Expr, rule: NodeRule) -> Expr:
    """Sum over the nodes of a rule, with their weights, for each event."""
    return make(Op.NODE_SUM, (body,), rule)


def apply(op: Operation, *args: Operand) -> Expr:
    """Apply an operation."""
    return make(op, tuple(to_expr(a) for a in args))


class NamedQuantity(Quantity, Symbol):
    """A symbol that stands in formulas. Equal ones are the same object, since == makes a condition."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Do nothing: all is done by ``__new__``."""

    @classmethod
    def interned(cls, *values: object) -> Self:
        """Return the one object with these fields, making it if needed."""
        key = (cls, *values)
        known: Self | None = _named.get(key)
        if known is None:
            new = object.__new__(cls)
            for field, value in zip(fields(cls), values, strict=True):
                object.__setattr__(new, field.name, value)
            known = _named.setdefault(key, new)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


_named: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
