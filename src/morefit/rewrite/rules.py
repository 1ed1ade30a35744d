"""A rule is a pair of expressions, with guards for what its wildcards may stand for. This file matches and applies them, and contains no algebra."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

import numpy as np

from morefit.dataclass import dataclass
from morefit.expr import (
    NARY,
    ZERO,
    Expr,
    Op,
    Operation,
    Table,
    Trait,
    const,
    evaluate,
    leaves,
    make,
    toposort,
    with_trait,
)
from morefit.expr.quadrature import Domain

Match = dict[Expr, Expr]
Make = Callable[[Operation, tuple[Expr, ...]], Expr]


@dataclass(frozen=True)
class Guard:
    """What a wildcard may stand for, and numbers to try it with."""

    accepts: Callable[[Expr], bool]
    examples: tuple[float, ...]


@dataclass(frozen=True)
class Rule:
    """Replace ``before`` with ``after`` wherever every wildcard passes its guard in ``where``."""

    name: str
    before: Expr
    after: Expr
    where: Mapping[Expr, Guard] = field(default_factory=dict)

    def apply(self, node: Expr, make_new: Make) -> Expr | None:
        """Return the better node, or None where the rule does not fit."""
        match: Match = {}
        if not find(self.before, node, match):
            return None
        if not all(guard.accepts(match[leaf]) for leaf, guard in self.where.items()):
            return None
        return fill(self.after, match, make_new)


def find(pattern: Expr, node: Expr, match: Match) -> bool:
    """Return what the wildcards of a pattern stand for if it fits a node, or None. Patterns are shallow."""
    if pattern.op is Op.WILD:
        return match.setdefault(pattern, node) is node
    if not pattern.args:
        return pattern is node
    if pattern.op is not node.op or len(pattern.args) != len(node.args):
        return False
    return all(find(p, n, match) for p, n in zip(pattern.args, node.args, strict=True))


@lru_cache(maxsize=1024)
def pattern_order(pattern: Expr) -> list[Expr]:
    """Return the nodes of a pattern, arguments first; there are few patterns, used all over again."""
    return toposort(pattern)


def fill(pattern: Expr, match: Mapping[Expr, Expr], make_new: Make) -> Expr:
    """Build a pattern with its wildcards replaced."""
    done: dict[Expr, Expr] = dict(match)
    for node in pattern_order(pattern):
        if node not in done:
            done[node] = make_new(node.op, tuple(done[a] for a in node.args)) if node.args else node
    return done[pattern]


@dataclass(frozen=True)
class Collector:
    """An identity for sums and products of any length: a function, and pairs that show what it does."""

    name: str
    op: Operation
    apply: Callable[[Expr, Make], Expr | None]
    examples: tuple[tuple[Expr, Expr], ...]
    where: Mapping[Expr, Guard] = field(default_factory=dict)


def fold_constants(node: Expr) -> Expr | None:
    """Compute a node whose arguments are all numbers, unless the result is not a finite number."""
    if node.op is Op.INTEGRAL:
        return (
            None if leaves(Op.SCALAR, node) or leaves(Op.WILD, node) else as_number(float(evaluate(node, {})))
        )
    if node.op in (Op.LOOKUP, Op.CELL) and node.args[1].op is Op.CONST:
        table = node.args[0].value
        return None if isinstance(table, Table) and table.hidden else as_number(float(evaluate(node, {})))
    if not node.args:
        return None
    for a in node.args:
        if a.op is not Op.CONST:
            return None
    try:
        with np.errstate(all="ignore"):
            return as_number(float(node.op.numpy(*(a.number for a in node.args))))
    except (OverflowError, ValueError, ZeroDivisionError):
        return None


def as_number(value: float) -> Expr | None:
    return const(value) if abs(value) < float("inf") else None


class Rewriter:
    """Builds nodes that no rule can improve; remembers what it has seen."""

    def __init__(self, table: Sequence[Rule | Collector]) -> None:
        self.memo: dict[Expr, Expr] = {}
        self.table: dict[Operation, list[Rule | Collector]] = {}
        for rule in table:
            self.table.setdefault(rule.op if isinstance(rule, Collector) else rule.before.op, []).append(rule)

    def __call__(self, op: Operation, args: tuple[Expr, ...], value: float | Domain = 0.0) -> Expr:
        """Make the best node for an operation on arguments that were made by this rewriter too."""
        if op in NARY and len(args) == 1:
            return args[0]
        node = make(op, args, value)
        best = self.memo.get(node)
        if best is None:
            best = self.memo[node] = self.improve(node)
        return best

    def improve(self, node: Expr) -> Expr:
        folded = fold_constants(node)
        if folded is not None:
            return folded
        for rule in self.table.get(node.op, ()):
            better = rule.apply(node, self)
            if better is not None and better is not node:
                return better
        return node

    def rebuild(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """Make a node again from improved arguments."""
        if not args:
            return node
        return self(node.op, args, node.value if isinstance(node.value, Domain) else 0.0)


NEVER_NEGATIVE = with_trait(Trait.NOT_NEGATIVE)
POSITIVE = with_trait(Trait.POSITIVE)
KEEPS_SIGN = with_trait(Trait.KEEPS_SIGN)
DEPTH = 5  # how far down to look for a proof that something cannot be negative


def nonnegative(node: Expr, depth: int = DEPTH) -> bool:
    """Return whether an expression is known to be >= 0 (or NaN) everywhere."""
    if node.op is Op.CONST:
        return node.number >= 0
    if node.op in NEVER_NEGATIVE:
        return True
    if depth == 0 or node.op not in KEEPS_SIGN:
        return node.op is Op.POW and whole(node.args[1]) and node.args[1].number % 2 == 0
    if node.op is Op.POW:
        return nonnegative(node.args[0], depth - 1) or (whole(node.args[1]) and node.args[1].number % 2 == 0)
    return all(nonnegative(arg, depth - 1) for arg in node.args)


def positive(node: Expr) -> bool:
    """Return whether an expression is known to be > 0 in exact arithmetic."""
    return node.op in POSITIVE or (node.op is Op.CONST and node.number > 0)


def whole(node: Expr) -> bool:
    return node.op is Op.CONST and node.number == int(node.number)


def odd(node: Expr) -> bool:
    return whole(node) and node.number % 2 == 1


NUMBER = Guard(lambda e: e.op is Op.CONST, (0.5, 1.5, -2.0, 3.0))
WHOLE = Guard(whole, (-3.0, -1.0, 2.0, 4.0))
ODD = Guard(odd, (-3.0, 1.0, 5.0))
FRACTION = Guard(lambda e: e.op is Op.CONST and not whole(e), (0.5, -0.3, 1.5))
EVEN = Guard(lambda e: whole(e) and e.number % 2 == 0, (-2.0, 2.0, 4.0))
ODD_HALF = Guard(odd, (-1.0, 1.0, 3.0))
TRUE = Guard(lambda e: e.op is Op.CONST and e.number != 0, (1.0, -2.0))
FALSE = Guard(lambda e: e is ZERO, (0.0,))
NOT_NEGATIVE = Guard(nonnegative, (0.0, 0.5, 3.0))
