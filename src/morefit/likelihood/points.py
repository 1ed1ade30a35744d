"""What is summed over points: squares of their distances to a function, or products of two where errors are correlated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from morefit.arrays import Array, Integers
from morefit.dataclass import dataclass
from morefit.errors import DataError
from morefit.expr import Expr, substitute
from morefit.likelihood.table import Streams, TableColumn, TableModel
from morefit.model import Observable
from morefit.rewrite.derive import gradient
from morefit.rewrite.simplify import normalise

X = TableColumn("x of the point")
Y, Y_ERROR = TableColumn("y of the point"), TableColumn("error of y")
INVERSE = TableColumn("element of the inverse covariance")
ROUNDING = 1e-8  # of the errors: by how much elements on both sides of the diagonal may differ
SINGULAR = 1e-13  # smallest eigenvalue of a matrix of correlations that can be inverted


@dataclass(frozen=True, eq=False, kw_only=True)
class PointModel(TableModel):
    """What is summed over points: a row for each."""

    with_errors: tuple[str, ...]  # the observables that have errors
    counted: ClassVar[str] = Y.name

    @classmethod
    def of(cls, formula: Expr, observables: Sequence[Observable], with_errors: Sequence[str]) -> PointModel:
        """Return the model of points; the derivatives by x are exact."""
        variance: Expr = Y_ERROR.expr**2
        noisy = [o for o in observables if o.name in with_errors]
        for o, slope in zip(noisy, gradient(normalise(formula)[0], [o.expr for o in noisy]), strict=True):
            variance = variance + (slope * x_error(o.name).expr) ** 2
        return cls(
            formula=-0.5 * (Y.expr - formula) ** 2 / variance,
            table=(*observables, Y, Y_ERROR, *(x_error(o.name) for o in noisy)),
            expected=formula,
            with_errors=tuple(o.name for o in noisy),
        )

    def count(self, rows: int) -> int:
        """Return the number of points in a table with this number of rows."""
        return rows

    def points(self, rows: Mapping[str, Array]) -> dict[str, Array]:
        """Return the columns of the points of a table, errors of y among them."""
        return dict(rows)

    def measuring(self, y: Array) -> dict[str, Array]:
        """Return what other y, (points,) or (toys, points), change in the table."""
        return {Y.name: y}

    def draw(
        self, expected: Array, rows: Mapping[str, Array], streams: Streams, toys: int
    ) -> dict[str, Array]:
        """Draw what toys measure at the x of the points: y, and x where it has an error."""
        shape = (toys, len(expected))
        drawn = {Y.name: expected + rows[Y_ERROR.name] * next(streams).standard_normal(shape)}
        for name in self.with_errors:
            drawn[name] = rows[name] + rows[x_error(name).name] * next(streams).standard_normal(shape)
        return drawn


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrelatedModel(PointModel):
    """What is summed over pairs of points with correlated errors: a row for each point with itself first, then for pairs.

    The chi-square is the sum of (element of the inverse covariance) x (distance of one point) x (distance of the other).
    """

    covariance: Array  # (points, points)
    one: Integers  # (rows,), numbers of points
    other: Integers  # (rows,)

    @classmethod
    def correlated(
        cls, formula: Expr, observables: Sequence[Observable], covariance: Array, inverse: Array
    ) -> CorrelatedModel:
        """Return the model of points with a covariance; pairs without an element in its inverse are left out."""
        one, other = np.nonzero(np.triu(inverse, 1))
        own = np.arange(len(inverse))
        there = {o.expr: second(o).expr for o in observables}
        distances = (Y.expr - formula) * (second(Y).expr - substitute(formula, there))
        columns = [*observables, Y]
        return cls(
            formula=-0.5 * INVERSE.expr * distances,
            table=(*columns, *map(second, columns), INVERSE),
            expected=formula,
            with_errors=(),
            covariance=covariance,
            one=np.concatenate([own, one]),
            other=np.concatenate([own, other]),
        )

    @property
    def measurements(self) -> tuple[str, ...]:
        return Y.name, second(Y).name

    def rows(self, points: Mapping[str, Array], inverse: Array) -> dict[str, Array]:
        """Return the table of pairs."""
        pairs = {name: column[self.one] for name, column in points.items()}
        pairs |= {second_name(name): column[self.other] for name, column in points.items()}
        twice = np.where(self.one == self.other, 1.0, 2.0)  # each pair stands for two elements
        return {**pairs, INVERSE.name: twice * inverse[self.one, self.other]}

    def count(self, rows: int) -> int:
        return len(self.covariance)

    def points(self, rows: Mapping[str, Array]) -> dict[str, Array]:
        count = len(self.covariance)
        names = [o.name for o in self.table[: len(self.table) // 2]]
        errors = np.sqrt(np.diag(self.covariance))
        return {**{name: rows[name][:count] for name in names}, Y_ERROR.name: errors}

    def measuring(self, y: Array) -> dict[str, Array]:
        return {Y.name: y[..., self.one], second(Y).name: y[..., self.other]}

    def draw(
        self, expected: Array, rows: Mapping[str, Array], streams: Streams, toys: int
    ) -> dict[str, Array]:
        independent = next(streams).standard_normal((toys, len(expected)))
        return self.measuring(expected + independent @ np.linalg.cholesky(self.covariance).T)


def second(column: Observable) -> TableColumn:
    """Return the column of the other point of a pair."""
    return TableColumn(second_name(column.name))


def second_name(name: str) -> str:
    return f"{name}, other point"


def x_error(name: str) -> TableColumn:
    return TableColumn(f"error of {name}")


def inverted(covariance: Array) -> Array:
    """Return the inverse of a covariance matrix; refuse one that is not symmetric and positive definite."""
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not np.all(errors > 0):
        raise DataError(
            f"least squares: covariance must have positive variances, got {np.diag(covariance).min():g}"
        )
    correlations = covariance / np.outer(errors, errors)
    if (off := float(np.abs(correlations - correlations.T).max())) > ROUNDING:
        raise DataError(
            f"least squares: covariance must be symmetric, got elements that differ by {off:.2g} of the errors"
        )
    lowest = float(np.linalg.eigvalsh(correlations)[0])
    if lowest < SINGULAR * len(errors):
        raise DataError(
            f"least squares: covariance must be positive definite, got {lowest:.2g} as the smallest eigenvalue of the"
            " correlations; leave out a point that the others determine, or add independent errors"
        )
    inverse = np.linalg.inv(correlations) / np.outer(errors, errors)
    return np.asarray((inverse + inverse.T) / 2, np.float64)
