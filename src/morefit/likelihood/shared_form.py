"""Formulas that are equal but for numbers, such as those of categories: one form for all, in which symbols stand for the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, OwnSymbol, leaves, make, price, scalar, toposort
from morefit.expr.walk import arranged, forms_of
from morefit.rewrite.precompute import READ_PRICE

MAX_NUMBERS = 64  # of a form: formulas with more have little in common
FIXED = (Op.POW, Op.LOOKUP, Op.CELL)  # operations that are written otherwise for other numbers


@dataclass(frozen=True, eq=False)
class OwnForm:
    """The log density and the expected number of events of one of those who share a form, in its own parameters."""

    summed: Expr
    expected: Expr | None
    symbols: tuple[Expr, ...]
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SharedForm:
    """Expressions with symbols in the place of numbers, and the numbers of each of those who share it."""

    roots: tuple[Expr, ...]
    symbols: tuple[Expr, ...]
    numbers: tuple[tuple[float, ...], ...]  # of each member


def shared_form(members: Sequence[Sequence[Expr]]) -> SharedForm | None:
    """Return what some lists of expressions have in common but for numbers; None where they differ in more.

    A number that functions of the event alone depend on is not replaced if they cost more than reading them: they are computed
    once per dataset.
    """
    forms = forms_of(*(root for roots in members for root in roots))
    done: dict[tuple[Expr, ...], Expr] = {}
    symbols: dict[tuple[Expr, ...], Expr] = {}
    stack = list(zip(*members, strict=True))
    while stack:
        nodes = stack[-1]
        first = nodes[0]
        if nodes in done:
            stack.pop()
        elif all(node is first for node in nodes[1:]):
            done[stack.pop()] = first
        elif all(node.op is Op.CONST for node in nodes):
            symbols.setdefault(nodes, scalar(OwnSymbol(f"number {len(symbols)}")))
            done[stack.pop()] = symbols[nodes]
        elif not are_alike(nodes):
            return None
        else:
            below = list(zip(*(arranged(node, forms) for node in nodes), strict=True))
            if missing := [pair for pair in below if pair not in done]:
                stack += missing
            else:
                done[stack.pop()] = make(first.op, tuple(done[pair] for pair in below), first.value)
        if len(symbols) > MAX_NUMBERS:
            return None
    roots = tuple(done[nodes] for nodes in zip(*members, strict=True))
    numbers = tuple(tuple(nodes[k].number for nodes in symbols) for k in range(len(members)))
    return SharedForm(roots, tuple(symbols.values()), numbers)


def are_alike(nodes: Sequence[Expr]) -> bool:
    """Return whether operations are the same, with arguments that may differ in numbers."""
    first = nodes[0]
    if any(node.op is not first.op or len(node.args) != len(first.args) for node in nodes):
        return False
    if not first.args or any(node.value is not first.value and node.value != first.value for node in nodes):
        return False  # leaves that are not the same are different names
    if first.op in FIXED and any(node.args[-1] is not first.args[-1] for node in nodes):
        return False
    of_event = bool(leaves(Op.COLUMN, first))
    varies = not of_event or any(node.op in (Op.SCALAR, Op.INTEGRAL) for node in toposort(first))
    return varies or price(first) <= READ_PRICE
