"""One damped Newton step as an expression graph, to be compiled for fits that run without Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from morefit.expr import Expr, Op, Operation, apply, column
from morefit.kernel.fit_layout import FitLayout
from morefit.likelihood import Evaluation
from morefit.minimise.newton_rules import Algebra, Numbers, State, advance, root_of_covariance

MAX_PARAMETERS = 12


def operation(op: Operation) -> np.ufunc:
    """Return a function that applies an operation to each element of arrays of expressions."""
    lifted: np.ufunc = np.frompyfunc(partial(apply, op), op.arity or 2, 1)
    return lifted


EXPRESSIONS = Algebra(
    where=operation(Op.WHERE),
    maximum=operation(Op.MAX),
    minimum=operation(Op.MIN),
    sqrt=operation(Op.SQRT),
    less=operation(Op.LESS),
    less_equal=operation(Op.LESS_EQUAL),
    both=operation(Op.MUL),
    either=operation(Op.MAX),
)


@dataclass(frozen=True)
class Step:
    """A step as expressions: one for each row of the state."""

    layout: FitLayout
    exprs: tuple[Expr, ...]


@lru_cache(maxsize=MAX_PARAMETERS)
def make_step(count: int) -> Step:
    """Write the step for a number of floating parameters."""
    layout, exprs = FitLayout(count), write_step(count)
    return Step(layout, tuple(exprs[name] for name in layout.state))


def write_step(count: int) -> dict[str, Expr]:
    """Write the expression of each row; sums of log likelihood come in, their negative is minimised."""
    layout = FitLayout(count)
    low, high = vector("low", count), vector("high", count)
    before = State(
        trial=vector("trial", count),
        status=row("status"),
        x=vector("x", count),
        value=row("value"),
        edm=row("edm"),
        gradient=vector("g", count),
        hessian=matrix("h", count),
        damping=row("damping"),
    )
    sums = Evaluation(-row("new_value"), -vector("new_g", count), -matrix("new_h", count), row("bad"))
    after = advance(EXPRESSIONS, before, sums, low, high, row("goal"))
    root, known = root_of_covariance(EXPRESSIONS, after, low, high)
    errors = EXPRESSIONS.where(known[:, None], EXPRESSIONS.sqrt((root**2).sum(axis=1)), -1.0)
    rows = {"status": after.status, "value": after.value, "edm": after.edm, "damping": after.damping}
    exprs: dict[str, Expr] = {name: exprs[0] for name, exprs in rows.items()}
    vectors = {"trial": after.trial, "x": after.x, "g": after.gradient, "error": errors}
    for prefix, written in vectors.items():
        exprs |= dict(zip(layout.vector(prefix), written[0], strict=True))
    triangle = after.hessian[0][np.tril_indices(count)]
    return exprs | dict(zip(layout.triangle("h"), triangle, strict=True))


def row(name: str) -> Numbers:
    return np.array([column(name)], object)


def vector(prefix: str, count: int) -> Numbers:
    return np.array([[column(name) for name in FitLayout(count).vector(prefix)]], object)


def matrix(prefix: str, count: int) -> Numbers:
    """Return a symmetric matrix, of which there are rows for the lower triangle."""
    return np.array(
        [[[column(f"{prefix}{max(i, j)}_{min(i, j)}") for j in range(count)] for i in range(count)]], object
    )
