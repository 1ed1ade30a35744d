"""Leaves, tables and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from morefit.expr.operations.record import Llvm, LlvmKind, Operation, Prefix, Trait, not_computed


def cell_number(edges: Any, x: Any) -> Any:
    """Return between which edges each value lies."""
    cells = len(edges) - 1
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, cells - 1)
    return np.where(np.isnan(x), cells, place).astype(np.float64)[()]


class Tables:
    """Operations on more than numbers."""

    # LOOKUP(table, place): the number at the whole part of a place, which must lie inside the table; a step function
    LOOKUP = Operation(
        rank=40,
        arity=2,
        price=12,
        numpy=lambda table, place: table[np.asarray(place).astype(np.int64)],
        partials=lambda x, y: (0, 0),
        latex=Prefix(r"\operatorname{lookup}"),
        llvm=Llvm(LlvmKind.GATHER),
        c="{0}[(int)({1})]",
    )
    # CELL(edges, x): between which of rising edges a value lies, from 0 on; the first or last cell where it lies beyond
    # them, and one past the last where it is not a number. Kernels compute it by ``kernel/build.py``.
    CELL = Operation(
        rank=69,
        arity=2,
        price=30,
        numpy=cell_number,
        partials=lambda x, y: (0, 0),
        latex=Prefix(r"\operatorname{cell}"),
    )
    # INTEGRAL(body, integrand, places...): over the axes of a domain, whose columns are bound inside it
    INTEGRAL = Operation(
        rank=41,
        arity=0,
        price=1000,
        numpy=lambda weights, body: np.sum(weights * body),
        traits=Trait.OWN_SLOPE,
    )
    # NAMED(expression): what a name stands for, a derived quantity or a blinded parameter; it is in no kernel
    NAMED = Operation(
        rank=70,
        price=1,
        numpy=lambda x: x,
        partials=lambda x: (1,),
        latex=Prefix(r"\operatorname{named}"),
    )
    # NODE_SUM(body): the weighted sum over the nodes of a rule, whose column is bound inside it; its weights add up to 1
    NODE_SUM = Operation(
        rank=71,
        arity=0,
        price=1000,
        numpy=lambda body: body,  # of a number
        traits=Trait.OWN_SLOPE,
    )


def leaf(rank: int) -> Operation:
    return Operation(rank=rank, arity=0, numpy=not_computed, traits=Trait.LEAF)


class Leaves:
    """Operations without arguments."""

    CONST = leaf(1)  # a number known now
    SCALAR = leaf(2)  # one number per call: a parameter, or a value hoisted out of the loop
    COLUMN = leaf(3)  # one number per event: an observable, or a value computed once per dataset
    WILD = leaf(4)  # matches anything; lives only in rules
    TABLE = leaf(5)  # numbers known now, to be looked up by their place
