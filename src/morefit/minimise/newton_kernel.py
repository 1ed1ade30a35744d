"""One damped Newton step as an expression graph, to be compiled for fits that run without Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from morefit.expr import Expr, Op, Operation, column
from morefit.likelihood import Evaluation
from morefit.minimise.newton_rules import Algebra, Numbers, State, advance, root_of_covariance

MOST_PARAMETERS = 12


def operation(op: Operation) -> np.ufunc:
    """Return a function that applies an operation to each element of arrays of expressions."""
    lifted: np.ufunc = np.frompyfunc(op, op.arity or 2, 1)
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
    """The rows a step reads and writes, by name; those written come first among those read, in the same order."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    exprs: tuple[Expr, ...]  # one for each row written
    kept: int  # so many rows written are the state that is read again
    told: int  # so many of them, after the trial point, are what a fit reports

    def place(self, name: str) -> int:
        return self.reads.index(name)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def triangle_names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}_{j}" for i in range(count) for j in range(i + 1)]


@lru_cache(maxsize=MOST_PARAMETERS)
def make_step(count: int) -> Step:
    """Write the step for so many parameters."""
    told = ["status", *names("x", count), "value", "edm", *names("error", count)]
    state = [*names("trial", count), *told, *names("g", count), *triangle_names("h", count), "damping"]
    found = ["new_value", *names("new_g", count), *triangle_names("new_h", count), "bad"]
    given = [*names("low", count), *names("high", count), "goal"]
    reads = (*state, *found, *given)
    exprs = write_step(count)
    return Step(reads, tuple(state), tuple(exprs[name] for name in state), len(state), len(told))


def write_step(count: int) -> dict[str, Expr]:
    """Write the expression of each row; sums of log likelihood come in, their negative is minimised."""
    low, high = vector("low", count), vector("high", count)
    before = State(
        vector("trial", count), row("status"), vector("x", count), row("value"), row("edm"), vector("g", count),
        matrix("h", count), row("damping"),
    )  # fmt: skip
    found = Evaluation(-row("new_value"), -vector("new_g", count), -matrix("new_h", count), row("bad"))
    after = advance(EXPRESSIONS, before, found, low, high, row("goal"))
    root, known = root_of_covariance(EXPRESSIONS, after, low, high)
    errors = EXPRESSIONS.where(known[:, None], EXPRESSIONS.sqrt((root**2).sum(axis=1)), -1.0)
    rows = {"status": after.status, "value": after.value, "edm": after.edm, "damping": after.damping}
    exprs: dict[str, Expr] = {name: exprs[0] for name, exprs in rows.items()}
    vectors = {"trial": after.trial, "x": after.x, "g": after.gradient, "error": errors}
    for prefix, written in vectors.items():
        exprs |= dict(zip(names(prefix, count), written[0], strict=True))
    return exprs | dict(
        zip(triangle_names("h", count), after.hessian[0][np.tril_indices(count)], strict=True)
    )


def row(name: str) -> Numbers:
    return np.array([column(name)], object)


def vector(prefix: str, count: int) -> Numbers:
    return np.array([[column(name) for name in names(prefix, count)]], object)


def matrix(prefix: str, count: int) -> Numbers:
    """Return a symmetric matrix, of which rows hold the lower triangle."""
    return np.array(
        [[[column(f"{prefix}{max(i, j)}_{min(i, j)}") for j in range(count)] for i in range(count)]], object
    )
