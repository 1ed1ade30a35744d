"""Inside a branch of a choice its condition is known: choices by the same condition are made there already."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.expr import NARY, Expr, Op, rebuild
from morefit.expr.walk import DIVISION_PRICE, power_price
from morefit.rewrite.rules import Rewriter

OPENED = (*NARY, Op.WHERE)


def settle_choices(roots: Sequence[Expr], new: Rewriter) -> tuple[Expr, ...]:
    """Replace choices inside a branch by what is chosen there; the roots are in the normal form of ``new``.

    Derivatives of densities that are put together from pieces are full of them: most are zero in all pieces but one.
    """
    memos: dict[tuple[Expr, int], dict[Expr, Expr]] = {}

    def settle(node: Expr, args: tuple[Expr, ...]) -> Expr:
        if node.op is not Op.WHERE:
            return new.rebuild(node, args)
        branches = (
            inside(args[side], (args[0], side), memos.setdefault((args[0], side), {}), new) for side in (1, 2)
        )
        return new(Op.WHERE, (args[0], *branches))

    return rebuild(tuple(roots), settle)


def is_opened(node: Expr) -> bool:
    """Return whether to look for choices below; a function of one serves both branches, and one for each would be two."""
    return node.op in OPENED or (
        node.op is Op.POW
        and node.args[1].op is Op.CONST
        and power_price(node.args[1].number) < DIVISION_PRICE
    )


def inside(branch: Expr, place: tuple[Expr, int], memo: dict[Expr, Expr], new: Rewriter) -> Expr:
    """Return what a branch is where its condition holds (side 1) or does not (side 2)."""
    condition, side = place
    stack = [branch]
    while stack:
        node = stack[-1]
        chosen = node.op is Op.WHERE and node.args[0] is condition
        args = (node.args[side],) if chosen else node.args if is_opened(node) else ()
        missing = [] if node in memo else [arg for arg in args if arg not in memo]
        stack += missing
        if not missing:
            stack.pop()
            parts = tuple(memo[arg] for arg in args) if node not in memo else ()
            memo.setdefault(node, node if not parts else parts[0] if chosen else new.rebuild(node, parts))
    return memo[branch]
