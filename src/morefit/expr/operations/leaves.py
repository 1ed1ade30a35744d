"""Leaves: what an expression is made of."""

from __future__ import annotations

from morefit.expr.operations.record import Operation, Trait, not_computed


def leaf(rank: int) -> Operation:
    return Operation(rank=rank, arity=0, numpy=not_computed, traits=Trait.LEAF)


class Leaves:
    """Operations without arguments."""

    CONST = leaf(1)  # a number known now
    SCALAR = leaf(2)  # one number per call: a parameter, or a value hoisted out of the loop
    COLUMN = leaf(3)  # one number per event: an observable, or a value computed once per dataset
    WILD = leaf(4)  # matches anything; lives only in rules
    TABLE = leaf(5)  # numbers known now, to be looked up by their place
