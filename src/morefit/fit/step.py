"""One damped Newton step as an expression graph, to be compiled for fits that run without Python.

The rules are those of ``newton.State``: take a trial point if the value does not grow, else damp more; hold
parameters at limits the gradient points out of; stop when half of g H^-1 g is below the goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from morefit.expr import ONE, ZERO, Expr, Op, add_all, apply, column, const, make, multiply_all, where
from morefit.fit.newton import DAMPING, MOST_DAMPING, SAFE_PIVOT

NOT_YET, CONVERGED, GIVEN_UP = 0.0, 1.0, 2.0  # the status of a fit
UNKNOWN = 1e300  # the value before the first evaluation
MOST_PARAMETERS = 12

Matrix = list[list[Expr]]  # lower triangle


@dataclass(frozen=True)
class Step:
    """The rows a step reads and writes, by name; those written come first among those read, in the same order."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    exprs: tuple[Expr, ...]  # one for each row written
    kept: int  # so many rows written are the state that is read again
    told: int  # the first so many of them are what a fit reports

    def place(self, name: str) -> int:
        return self.reads.index(name)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def triangle_names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}_{j}" for i in range(count) for j in range(i + 1)]


@lru_cache(maxsize=MOST_PARAMETERS)
def make_step(count: int) -> Step:
    """Write the step for so many parameters."""
    told = [*names("trial", count), "status", *names("x", count), "value", "edm", *names("error", count)]
    state = [*told, *names("g", count), *triangle_names("h", count), "damping"]
    found = ["new_value", *names("new_g", count), *triangle_names("new_h", count), "bad"]
    given = [*names("low", count), *names("high", count), "goal"]
    reads = (*state, *found, *given)
    exprs = StepWriter(count).write()
    return Step(reads, tuple(state), tuple(exprs[name] for name in state), len(state), len(told))


class StepWriter:
    """Builds the expressions of one step; sums of log likelihood come in, their negative is minimised."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.range = range(count)

    def all(self, prefix: str) -> list[Expr]:
        return [column(n) for n in names(prefix, self.count)]

    def triangle(self, prefix: str) -> Matrix:
        return [[column(f"{prefix}{i}_{j}") for j in range(i + 1)] for i in self.range]

    def write(self) -> dict[str, Expr]:
        low, high, goal = self.all("low"), self.all("high"), column("goal")
        value, damping = column("value"), column("damping")
        new_value = -column("new_value")
        good = make(Op.EQUAL, (column("bad"), ZERO)) * (abs(new_value) < UNKNOWN)
        taken = good * (new_value <= value + 1e-12 * (1 + abs(value)))

        def pick(new: Expr, old: Expr) -> Expr:
            return where(taken, new, old)

        x = [pick(t, o) for t, o in zip(self.all("trial"), self.all("x"), strict=True)]
        g = [pick(-n, o) for n, o in zip(self.all("new_g"), self.all("g"), strict=True)]
        h = [
            [pick(-n, o) for n, o in zip(new, old, strict=True)]
            for new, old in zip(self.triangle("new_h"), self.triangle("h"), strict=True)
        ]
        value = pick(new_value, value)
        damping = pick(
            where(damping > DAMPING, 0.1 * damping, 0), apply(Op.MAX, 10 * damping, const(DAMPING))
        )
        held = [
            apply(Op.MAX, (x[i] <= low[i]) * (0 <= g[i]), (x[i] >= high[i]) * (g[i] <= 0)) for i in self.range
        ]
        scale = [where(abs(h[i][i]) > 0, abs(h[i][i]) ** -0.5, 1) for i in self.range]
        whole = [[h[i][j] * scale[i] * scale[j] for j in range(i + 1)] for i in self.range]
        matrix = [
            [
                where(apply(Op.MAX, held[i], held[j]), ONE if i == j else ZERO, whole[i][j])
                for j in range(i + 1)
            ]
            for i in self.range
        ]
        slopes = [where(held[i], 0, g[i] * scale[i]) for i in self.range]
        factor, definite = cholesky(matrix)
        edm = 0.5 * add_all(*(y**2 for y in forward(factor, slopes)))
        shift = where(definite, damping, apply(Op.MAX, damping, gershgorin(matrix)))
        damped, _ = cholesky(
            [[m + shift if i == j else m for j, m in enumerate(r)] for i, r in enumerate(matrix)]
        )
        move = backward(damped, forward(damped, slopes))
        trial = [apply(Op.MIN, apply(Op.MAX, x[i] - move[i] * scale[i], low[i]), high[i]) for i in self.range]
        full, positive = cholesky(whole)
        done = taken * definite * positive * (edm <= goal)
        lost = apply(Op.MAX, make(Op.EQUAL, (value, const(UNKNOWN))), MOST_DAMPING < shift)
        status = where(done, CONVERGED, where(lost, GIVEN_UP, NOT_YET))
        errors = [where(positive, e * s, -1) for e, s in zip(inverse_diagonal(full), scale, strict=True)]
        rows = {"status": status, "value": value, "damping": shift, "edm": where(definite, edm, UNKNOWN)}
        for prefix, exprs in (("trial", trial), ("x", x), ("g", g), ("error", errors)):
            rows |= dict(zip(names(prefix, self.count), exprs, strict=True))
        return rows | {f"h{i}_{j}": h[i][j] for i in self.range for j in range(i + 1)}


def total(terms: list[Expr]) -> Expr:
    return add_all(*terms) if len(terms) > 1 else terms[0]


def cholesky(matrix: Matrix) -> tuple[Matrix, Expr]:
    """Factorise a symmetric matrix of unit diagonal; the second says whether it is positive definite."""
    factor: Matrix = []
    fine: list[Expr] = []
    for i, row in enumerate(matrix):
        line: list[Expr] = []
        for j in range(i):
            products = [-line[k] * factor[j][k] for k in range(j)]
            line.append(total([row[j], *products]) * factor[j][j] ** -1)
        pivot = total([row[i], *(-(entry**2) for entry in line)])
        fine.append(pivot > SAFE_PIVOT)
        line.append(apply(Op.SQRT, apply(Op.MAX, pivot, const(SAFE_PIVOT))))
        factor.append(line)
    return factor, multiply_all(*fine) if len(fine) > 1 else fine[0]


def forward(factor: Matrix, right: list[Expr]) -> list[Expr]:
    """Solve L y = right."""
    y: list[Expr] = []
    for i, row in enumerate(factor):
        y.append(total([right[i], *(-row[k] * y[k] for k in range(i))]) * row[i] ** -1)
    return y


def backward(factor: Matrix, right: list[Expr]) -> list[Expr]:
    """Solve L^T x = right."""
    count = len(right)
    x: list[Expr] = [ZERO] * count
    for i in reversed(range(count)):
        terms = [-factor[k][i] * x[k] for k in range(i + 1, count)]
        x[i] = total([right[i], *terms]) * factor[i][i] ** -1
    return x


def inverse_diagonal(factor: Matrix) -> list[Expr]:
    """Return the square roots of the diagonal of the inverse of L L^T."""
    count = len(factor)
    errors = []
    for k in range(count):
        unit = forward([row[k:] for row in factor[k:]], [ONE, *([ZERO] * (count - k - 1))])
        errors.append(apply(Op.SQRT, total([u**2 for u in unit])))
    return errors


def gershgorin(matrix: Matrix) -> Expr:
    """Return a shift of the diagonal that makes a symmetric matrix positive definite for sure."""
    count = len(matrix)
    shift = const(DAMPING)
    for i in range(count):
        others = [abs(matrix[max(i, j)][min(i, j)]) for j in range(count) if j != i]
        shift = apply(Op.MAX, shift, total([*others, -matrix[i][i]]) + DAMPING)
    return shift
