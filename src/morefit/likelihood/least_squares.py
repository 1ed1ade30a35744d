"""Least squares: a function fitted to points with errors in y, which may be correlated, and in x."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from morefit.arrays import Array, Integers
from morefit.data.dataset import Dataset
from morefit.errors import DataError, ModelError
from morefit.expr import Expr, Op, Operand, Quantity, symbols, to_expr
from morefit.likelihood.evaluation import PartData
from morefit.likelihood.points import Y_ERROR, CorrelatedModel, PointModel, X, Y, inverted, x_error
from morefit.likelihood.table import Streams, TableLikelihood
from morefit.model import Observable, Pdf
from morefit.targets.base import Backend
from morefit.text.arguments import in_sentences

Numbers = ArrayLike | Mapping[Any, ArrayLike]


class LeastSquares(TableLikelihood):
    """Half the chi-square of a function for points: (y - f(x))**2 / (2 variance), added up, or that of a covariance.

    ``function`` is a formula of observables and parameters, or a Python function of x that returns one. ``x`` and
    ``x_errors`` are arrays, or by the names of the observables if there are several; errors may be single numbers. The variance is
    y_error**2 + (f'(x) x_error)**2, with the derivative at the parameters of each step. Correlated errors of y are a matrix,
    ``covariance``, in the place of ``y_errors``. Ranges of observables play no role.

    Example: ``mf.LeastSquares(lambda x: mu * x, [1.0, 2.0], [5.9, 11.5], 0.2)``
    """

    model: PointModel

    @in_sentences
    def __init__(
        self,
        function: Operand | Callable[[Any], Any],
        x: Numbers,
        y: ArrayLike,
        y_errors: ArrayLike | None = None,
        x_errors: Numbers | None = None,
        *,
        covariance: ArrayLike | None = None,
        constraints: Sequence[Any] | Any = (),
        backend: str | Backend = "auto",
    ) -> None:
        formula, observables = formula_of(function)
        names = [o.name for o in observables]
        measured = numbers("y", y)
        rows = len(measured)
        columns = {name: numbers("x", each, rows) for name, each in by_observable("x", x, names)}
        columns[Y.name] = measured
        if (y_errors is None) == (covariance is None):
            got = "both" if covariance is not None else "none"
            raise DataError(f"least squares: takes y_errors, or their covariance, and not both, got {got}")
        if covariance is not None:
            if x_errors is not None:
                raise DataError("least squares: x_errors cannot be combined with a covariance; give y_errors")
            matrix = square_matrix(covariance, rows)
            inverse = inverted(matrix)
            pairs = CorrelatedModel.correlated(formula, observables, matrix, inverse)
            self.set_up_table(pairs, pairs.rows(columns, inverse), constraints, backend)
            return
        columns[Y_ERROR.name] = numbers("y_errors", y_errors, rows)
        errors = {} if x_errors is None else dict(by_observable("x_errors", x_errors, names))
        columns |= {x_error(n).name: numbers("x_errors", each, rows) for n, each in errors.items()}
        if not np.all(columns[Y_ERROR.name] > 0):
            raise DataError(f"least squares: y_errors must be positive, got {columns[Y_ERROR.name].min():g}")
        if any(np.any(columns[x_error(n).name] < 0) for n in errors):
            raise DataError("least squares: x_errors must not be negative; give their sizes")
        model = PointModel.of(formula, observables, with_errors=list(errors))
        self.set_up_table(model, columns, constraints, backend)

    @property
    def correlated(self) -> bool:
        """Whether the errors of points are correlated, so that the table has a row for each pair of them."""
        return isinstance(self.model, CorrelatedModel)

    @property
    def points_in_order(self) -> dict[str, Array]:
        """The columns of the points, whatever the rows of the table are; correlated errors without their correlations."""
        return self.model.points(self.data.columns)

    @property
    def unit(self) -> str:
        return "pairs of points" if self.correlated else "points"

    @property
    def ndata(self) -> float:
        return float(self.model.count(self.events))

    def entries_of(self, data: Dataset) -> float:
        return float(self.model.count(len(data)))

    def expected_rows(self, full: Array) -> Array:
        return super().expected_rows(full)[:, : self.model.count(self.events)]

    def rows_table(self, expected: Array) -> None:
        """Return nothing: points have errors of their own, which NumPy draws."""

    def draw_rows(self, expected: Array, streams: Streams, toys: int) -> Mapping[str, Array]:
        return self.model.draw(expected, self.data.columns, streams, toys)

    def asimov(self, values: Mapping[str, float]) -> Self:
        return self.with_columns(self.model.measuring(self.expected_at(values)))

    def measuring(self, data: Any) -> Mapping[str, Array]:
        return self.model.measuring(numbers("y", data, int(self.ndata)))

    def replicas(self, weights: Callable[[], Array], seed: int, numbers: Integers) -> PartData:
        if self.correlated:
            raise DataError(
                "bootstrap: points with correlated errors cannot be resampled one by one; use mf.toy_study"
            )
        return super().replicas(weights, seed, numbers)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.parameters)
        return f"LeastSquares({self.ndata:g} points, parameters: {names})"


def formula_of(function: Any) -> tuple[Expr, tuple[Observable, ...]]:
    """Return a function as a formula, and its observables; a Python function has one of its own."""
    if isinstance(function, Pdf):
        raise ModelError(
            "least squares: takes a function, got a density, which has no height of its own; pass"
            " height * model.density()"
        )
    by_call = callable(function) and not isinstance(function, Quantity)
    result = called(function) if by_call else function
    if not isinstance(result, Quantity):
        raise ModelError(f"least squares: the function must give a formula of parameters, got {result!r}")
    formula = to_expr(result)
    observables = tuple(s for s in symbols(Op.COLUMN, formula) if isinstance(s, Observable))
    if not symbols(Op.SCALAR, formula):
        raise ModelError(
            f"least squares: the function '{formula!r}' has no parameters; write it with mf.Parameter"
        )
    names = {s.name for s in symbols(Op.SCALAR, formula)}
    if both := names & {o.name for o in observables}:
        raise ModelError(f"least squares: {min(both)!r} names an observable and a parameter; rename one")
    return formula, (X,) if by_call else tuple(sorted(observables, key=lambda o: o.name))


def called(function: Any) -> Any:
    """Return what a Python function of x makes of it; those that take parameters as arguments as well are refused."""
    try:
        inspect.signature(function).bind(X)
    except TypeError:
        takes = ", ".join(inspect.signature(function).parameters)
        raise ModelError(
            f"least squares: the function must take x alone, got one of ({takes}); write its parameters as"
            " mf.Parameter, in a formula of an observable or in a function of x"
        ) from None
    except ValueError:  # of C, without a signature
        pass
    return function(X)


def by_observable(what: str, source: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Go through numbers by the names of observables; for one observable they need no name."""
    if not isinstance(source, Mapping):
        if len(names) != 1:
            wanted = ", ".join(map(repr, names)) or "none"
            raise DataError(
                f"least squares: {what} must be by name for the observables {wanted}, got an array"
            )
        yield names[0], source
        return
    by_name = {key.name if isinstance(key, Observable) else key: each for key, each in source.items()}
    if sorted(by_name, key=str) != sorted(names) and (what == "x" or not set(by_name) <= set(names)):
        raise DataError(f"least squares: {what} must have the observables {names}, got {list(by_name)}")
    yield from by_name.items()


def numbers(what: str, source: Any, rows: int | None = None) -> Array:
    """Return finite numbers, one for each point; a single number stands for all."""
    try:
        array = np.asarray(source)
    except ValueError:
        array = np.asarray(None)
    if array.ndim == 2 and what == "y_errors":
        raise DataError("least squares: y_errors must be one for each point; pass a matrix as covariance=")
    if array.dtype.kind not in "iuf" or array.ndim > 1 or (array.ndim == 0 and rows is None):
        raise DataError(f"least squares: {what} must be a list of numbers, got {source!r:.60}")
    if np.ma.is_masked(source):
        raise DataError(
            f"least squares: {what} must not be masked, got {source!r:.60}; leave out what is masked"
        )
    array = np.asarray(array, np.float64)
    if array.ndim == 0 and rows is not None:
        array = np.full(rows, float(array))
    if not len(array) or (rows is not None and len(array) != rows):
        raise DataError(
            f"least squares: {what} must have a number for each of {rows or 'some'} points, got {len(array)}"
        )
    if not np.isfinite(array).all():
        raise DataError(f"least squares: {what} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def square_matrix(source: Any, rows: int) -> Array:
    """Return finite numbers, one for each pair of points."""
    try:
        matrix = np.asarray(source)
    except ValueError:
        matrix = np.asarray(None)
    if matrix.dtype.kind not in "iuf" or matrix.shape != (rows, rows) or not np.isfinite(matrix).all():
        raise DataError(
            f"least squares: covariance must be a matrix of {rows} x {rows} finite numbers, got {source!r:.60}"
        )
    return np.asarray(matrix, np.float64)
