"""Integrals for each event that depend on few columns: polynomials of these, with coefficients from a few points.

The normalisation of a density given the error of each event is a smooth function of that error. It, or its logarithm, is computed at
a few values of the column in every call, and not at each event; coefficients of Chebyshev polynomials are sums over these, and
integrals by a sample as far as compiled code knows, so that derivatives and whole fits need nothing else. Of several columns, such as
a tag and an error, there are products of polynomials: of a tag few, since an asymmetry is linear in it. What depends on one
column alone and takes long is a polynomial with numbers, for toys that would compute it anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.expr import (
    Expr,
    Op,
    add_all,
    column,
    const,
    evaluate,
    leaves,
    make,
    multiply_all,
    price,
    rule_of,
    substitute,
    to_expr,
)
from morefit.expr.quadrature import NodeDomain
from morefit.functions import chebyshev_basis

TERMS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of a polynomial that are tried
MORE = 1.25  # times as many, so that they hold where fits end
TOLERANCE = 1e-9  # relative, of an integral at the values at which polynomials are made
FEWER = 2  # times: polynomials whose terms are not fewer than nodes by that are not worth it
CHECKS = 3  # points for each term at which a polynomial is compared with what it stands for, when it is made
MAX_COLUMNS = 3
TAIL = 5  # the last of so many parts of the coefficients show how accurate it is
ROUNDED = 1e-12  # relative error of a column that takes long
DEAR = 500  # price of a column from which on it does
Ranges = Mapping[str, tuple[float, float]]
Rows = Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class Interpolation:
    """A polynomial of a column on a range of it, known from values at nodes."""

    column: Expr
    low: float
    high: float
    terms: int
    in_log: bool  # the polynomial is one of the logarithm of the column

    @property
    def ends(self) -> tuple[float, float]:
        """The range of the column, or of its logarithm."""
        return (np.log(self.low), np.log(self.high)) if self.in_log else (self.low, self.high)

    def values_at(self, places: Array) -> Array:
        """Return values of the column from places between -1 and 1."""
        low, high = self.ends
        own = (low + high) / 2 + (high - low) / 2 * places
        return np.clip(np.exp(own) if self.in_log else own, self.low, self.high)

    @cached_property
    def places(self) -> Array:
        """The nodes of the polynomial, those of Chebyshev."""
        return np.asarray(np.cos(np.pi * (np.arange(self.terms) + 0.5) / self.terms))

    @cached_property
    def coefficients(self) -> Array:
        """The matrix that makes coefficients of values at nodes."""
        factors = np.where(np.arange(self.terms) == 0, 1.0, 2.0) / self.terms
        return np.asarray(factors[:, None] * polynomials(self.places, self.terms).T)

    @property
    def basis(self) -> list[Expr]:
        """The Chebyshev polynomials of the column."""
        low, high = self.ends
        own = to_expr(np.log(self.column)) if self.in_log else self.column
        return chebyshev_basis(self.terms - 1, (own - (low + high) / 2) * (2 / (high - low)))

    @property
    def tail(self) -> Flags:
        """Which coefficients are the last ones."""
        return np.arange(self.terms) >= self.terms - max(1, self.terms // TAIL)


@dataclass(frozen=True)
class Grid:
    """Products of polynomials of some columns, known from values at all combinations of their nodes."""

    axes: tuple[Interpolation, ...]

    @property
    def terms(self) -> int:
        return math.prod(axis.terms for axis in self.axes)

    def points(self, checks: Sequence[int]) -> dict[str, Array]:
        """Return values of the columns at nodes, and at numbers of checks along each axis, which are all over the ranges, with their ends."""
        nodes = np.meshgrid(*(axis.places for axis in self.axes), indexing="ij")
        others = np.meshgrid(*map(places_between, checks), indexing="ij") if len(checks) else nodes
        both = [
            np.concatenate([a.ravel(), b.ravel()] if len(checks) else [a.ravel()])
            for a, b in zip(nodes, others, strict=True)
        ]
        return {axis.column.name: axis.values_at(x) for axis, x in zip(self.axes, both, strict=True)}

    @cached_property
    def coefficients(self) -> Array:
        """The matrix that makes coefficients of values at nodes."""
        return products_of([axis.coefficients for axis in self.axes])

    def errors(self, values: Array, checks: Sequence[int]) -> Array:
        """Return how far the polynomial is from values at nodes and checks, for each row of them and each check.

        Nor is it closer than its last coefficients are to zero.
        """
        coefficients = values[:, : self.terms] @ self.coefficients.T
        each = [polynomials(places_between(n), axis.terms) for n, axis in zip(checks, self.axes, strict=True)]
        between = coefficients @ products_of(each).T
        last = np.zeros([axis.terms for axis in self.axes], np.bool_)
        for k, axis in enumerate(self.axes):
            np.moveaxis(last, k, 0)[axis.tail] = True
        tail = np.abs(coefficients[:, last.ravel()]).max(axis=1, keepdims=True)
        off = np.maximum(np.abs(between - values[:, self.terms :]), tail)
        return np.where(np.isfinite(off), off, np.inf)

    def series(self, coefficients: Sequence[Expr]) -> Expr:
        """Return the polynomial with some coefficients."""
        products = product(*(axis.basis for axis in self.axes))
        return add_all(*(multiply_all(c, *own) for c, own in zip(coefficients, products, strict=True)))

    def through(self, values: Array) -> Expr:
        """Return the polynomial with some values at nodes."""
        return self.series([const(float(c)) for c in self.coefficients @ values])


@dataclass(frozen=True)
class SmoothSum:
    """A sum over nodes for each event, and the polynomial of its columns that stands for it, or for its logarithm."""

    node: Expr
    grid: Grid
    of_log: bool

    @np.errstate(all="ignore")
    def errors(self, sums: Array, checks: Sequence[int]) -> Array:
        """Return how far, relatively, the polynomial is from sums at nodes and checks, for each row of them."""
        off = self.grid.errors(np.log(sums) if self.of_log else sums, checks)
        scale = 1.0 if self.of_log else np.where(sums.min(axis=1) > 0, sums.min(axis=1), 0.0)[:, None]
        worst = (off / scale).max(axis=1)
        return np.asarray(np.where(np.isfinite(worst), worst, np.inf))

    def holds(self, rows: Rows) -> bool:
        """Return whether the polynomial is accurate at rows of parameters, as many checks show."""
        checks = [max(3, CHECKS * axis.terms) for axis in self.grid.axes]
        return bool(
            self.errors(values_of(self.node, rows, self.grid.points(checks)), checks).max() <= TOLERANCE
        )

    def fixed(self, values: Mapping[str, float]) -> Expr:
        """Return what stands for the sum at values of its parameters."""
        (sums,) = values_of(self.node, [values], self.grid.points(()))
        own = self.grid.through(np.log(sums) if self.of_log else sums)
        return to_expr(np.exp(own)) if self.of_log else own

    @cached_property
    def polynomial(self) -> Expr:
        """What stands for the sum at any values of its parameters."""
        grid, label = self.grid, " and ".join(axis.column.name for axis in self.grid.axes)
        there = {axis.column: column(f"{axis.column.name} at nodes") for axis in grid.axes}
        points = {f"{name} at nodes": x for name, x in grid.points(()).items()}
        names = [f"coefficient {k} of {label}" for k in range(grid.terms)]
        domain = NodeDomain.of(
            {**points, **dict(zip(names, grid.coefficients, strict=True))}, np.ones(grid.terms)
        )
        own = substitute(self.node, there)
        own = to_expr(np.log(own)) if self.of_log else own
        total = grid.series([make(Op.INTEGRAL, (column(name) * own, own), domain) for name in names])
        return to_expr(np.exp(total)) if self.of_log else total


@np.errstate(all="ignore")
def values_of(expr: Expr, rows: Rows, points: Mapping[str, Array]) -> Array:
    """Return an expression at values of its columns, for each of some rows of parameters."""
    count = len(next(iter(points.values())))
    return np.array([np.broadcast_to(evaluate(expr, {**row, **points}), count) for row in rows])


def products_of(matrices: Sequence[Array]) -> Array:
    """Return the matrix for all combinations of columns from those for each of them."""
    whole = np.ones((1, 1))
    for matrix in matrices:
        whole = np.asarray(np.kron(whole, matrix))
    return whole


def polynomials(places: Array, terms: int) -> Array:
    """Return the first Chebyshev polynomials at places between -1 and 1, (places, terms)."""
    return np.asarray(np.cos(np.outer(np.arccos(places), np.arange(terms))))


def places_between(checks: int) -> Array:
    """Return places between -1 and 1, with both, closer together at the ends as nodes are."""
    return np.cos(np.linspace(0, np.pi, checks))


def interpolations(x: Expr, ends: tuple[float, float]) -> Iterator[Interpolation]:
    """Yield polynomials of a column, from the fewest terms on."""
    low, high = ends
    for terms in TERMS if low < high else ():
        for in_log in (False, *([True] if low > 0 else [])):
            yield Interpolation(x, low, high, terms, in_log)


def smooth_sum(node: Expr, ranges: Ranges, rows: Rows, most: float = math.inf) -> SmoothSum | None:
    """Return the polynomial of the fewest terms for a sum over nodes, None if there is none of at most so many terms.

    It is made for the first row of parameters, if it holds at the others as well: values of a scan then share kernels.
    """
    columns = leaves(Op.COLUMN, node)
    if not 1 <= len(columns) <= MAX_COLUMNS:
        return None
    most = min(most, rule_of(node).count / FEWER)
    found = [smooth_in_form(node, columns, ranges, rows, most, of_log) for of_log in (False, True)]
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: one.grid.terms) if known else None


def smooth_in_form(
    node: Expr, columns: Sequence[Expr], ranges: Ranges, rows: Rows, most: float, of_log: bool
) -> SmoothSum | None:
    """Return the polynomial of the fewest terms for a sum over nodes, or for its logarithm."""
    axes: list[Interpolation] = []
    for x in columns:
        others = [ranges[other.name] for other in columns if other is not x]
        names = [other.name for other in columns if other is not x]
        corners = [dict(zip(names, corner, strict=True)) for corner in product(*others)]
        along = [{**rows[0], **corner} for corner in corners]
        used = math.prod(axis.terms for axis in axes)
        for own in interpolations(x, ranges[x.name]):
            if used * own.terms > most:
                return None
            if SmoothSum(node, Grid((own,)), of_log).holds(along):
                axes.append(replace(own, terms=int(MORE * own.terms)))  # a line stays one
                break
        else:
            return None
    one = SmoothSum(node, Grid(tuple(axes)), of_log)
    return one if one.grid.terms <= most and one.holds(rows) else None


def smooth_column(expr: Expr, ranges: Ranges) -> Expr:
    """Return a polynomial for an expression of one column alone that takes long, if there is one but for rounding."""
    if price(expr) < DEAR or leaves(Op.SCALAR, expr):
        return expr
    columns = leaves(Op.COLUMN, expr)
    known = len(columns) == 1 and columns[0].name in ranges
    return column_polynomial(expr, columns[0], ranges[columns[0].name]) if known else expr


@lru_cache(maxsize=256)  # every study and every call of fit_many asks
def column_polynomial(expr: Expr, x: Expr, ends: tuple[float, float]) -> Expr:
    """Return the polynomial of the fewest terms for an expression of one column, but for rounding, or itself if there is none."""
    for own in interpolations(x, ends):
        grid, checks = Grid((own,)), [max(3, CHECKS * own.terms)]
        values = values_of(expr, [{}], grid.points(checks))
        if np.all(grid.errors(values, checks) <= ROUNDED * np.abs(values[:, grid.terms :])):
            return grid.through(values[0, : grid.terms])
    return expr
