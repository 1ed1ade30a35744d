"""Tables and integrals."""

from __future__ import annotations

import numpy as np

from morefit.expr.operations.record import Llvm, LlvmKind, Operation, Prefix, Trait


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
    # INTEGRAL(body, integrand, places...): over the axes of a domain, whose columns are bound inside it
    INTEGRAL = Operation(
        rank=41,
        arity=0,
        price=1000,
        numpy=lambda weights, body: np.sum(weights * body),
        traits=Trait.OWN_SLOPE,
    )
    # NODE_SUM(body): the weighted sum over the nodes of a rule, whose column is bound inside it; its weights add up to 1
    NODE_SUM = Operation(
        rank=69,
        arity=0,
        price=1000,
        numpy=lambda body: body,  # of a number
        traits=Trait.OWN_SLOPE,
    )
