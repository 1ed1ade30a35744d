"""Draw from one of several components: those of the same form are one formula, whose numbers are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.expr import ONE, SYMMETRIC, ZERO, Expr, Op, make, price, where
from morefit.expr.build import same
from morefit.expr.operations import Operation
from morefit.expr.walk import BINDING, forms_of

MAX_DEPTH = 60  # of formulas that are joined
APART = frozenset({Op.CONST, Op.SCALAR, Op.COLUMN, Op.TABLE, *BINDING})  # are chosen as they are
NEUTRAL = {Op.ADD: ZERO, Op.MUL: ONE}


def pick(exprs: Sequence[Expr], edges: Sequence[float], number: Expr) -> Expr:
    """Return the first expression whose edge lies above a number; functions that several have are computed once, if that is half the work.

    Where it is not, the form depends less on the numbers, so that more true values share what is compiled.
    """
    joined = Choice(exprs, edges, number).made
    plain = first_below(list(zip(edges, exprs, strict=True)), number)
    return joined if 2 * price(joined) <= price(plain) else plain


def first_below(options: Sequence[tuple[float, Expr]], number: Expr) -> Expr:
    """Return the expression of the first edge above a number; the last one has no edge."""
    choice = options[-1][1]
    for edge, expr in reversed(options[:-1]):
        if expr is not choice:
            choice = where(number < edge, expr, choice)
    return choice


class Choice:
    """The choice between formulas, from their outermost operations down to what they do not have in common."""

    def __init__(self, exprs: Sequence[Expr], edges: Sequence[float], number: Expr) -> None:
        self.edges, self.number = edges, number
        self.forms = forms_of(*exprs, *NEUTRAL.values())
        self.known: dict[tuple[tuple[int, ...], tuple[Expr, ...]], Expr] = {}
        self.made = self.between(tuple(range(len(exprs))), tuple(exprs), 0)

    def between(self, places: tuple[int, ...], exprs: tuple[Expr, ...], depth: int) -> Expr:
        """Return a formula for the components at some places, of which one is chosen."""
        if same(exprs, exprs[:1] * len(exprs)):
            return exprs[0]
        known = self.known.get((places, exprs))
        if known is None:
            self.known[places, exprs] = known = self.join(places, exprs, depth)
        return known

    def join(self, places: tuple[int, ...], exprs: tuple[Expr, ...], depth: int) -> Expr:
        """Make one formula of each group with the same outermost operation, and choose between these."""
        groups: dict[object, list[int]] = {}
        several = next((op for op in NEUTRAL if any(expr.op is op for expr in exprs)), None)
        for k, expr in enumerate(exprs):
            groups.setdefault(self.kind(expr, several, depth), []).append(k)
        options = list(exprs)
        for group in groups.values():
            if len(group) > 1:
                op = several or exprs[group[0]].op
                own = self.inside(op, tuple(places[k] for k in group), [exprs[k] for k in group], depth)
                for k in group:
                    options[k] = own
        return first_below(
            [(self.edges[place], e) for place, e in zip(places, options, strict=True)], self.number
        )

    def kind(self, expr: Expr, several: Operation | None, depth: int) -> object:
        """Return what formulas that are joined have in common; those that have nothing have a kind of their own.

        What is no sum, or no product, is one of a single term where others are.
        """
        if expr.op in APART or depth == MAX_DEPTH:
            return expr
        if several is not None:
            return several
        tables = tuple(a for a in expr.args if a.op is Op.TABLE)
        power = expr.args[1] if expr.op is Op.POW and expr.args[1].op is Op.CONST else None
        return (expr.op, expr.value, tables, power)

    def inside(self, op: Operation, places: tuple[int, ...], exprs: Sequence[Expr], depth: int) -> Expr:
        """Apply the operation that some formulas share to what is chosen among their arguments."""
        rows = [expr.args if expr.op is op else (expr,) for expr in exprs]
        if op in NEUTRAL:
            most = max(map(len, rows))
            rows = [(*row, *[NEUTRAL[op]] * (most - len(row))) for row in rows]
        if op in SYMMETRIC:
            rows = [tuple(sorted(row, key=lambda one: self.forms[one].kind)) for row in rows]
        chosen = tuple(self.between(places, column, depth + 1) for column in zip(*rows, strict=True))
        return make(op, chosen) if op in NEUTRAL else make(op, chosen, exprs[0].value)
