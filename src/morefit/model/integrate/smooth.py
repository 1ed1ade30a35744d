"""Integrals for each event that depend on one column: their logarithms as polynomials of it, with coefficients from a few points.

The normalisation of a density given the error of each event is a smooth function of that error. Its logarithm is computed at
a few values of the column in every call, and not at each event; coefficients of Chebyshev polynomials are sums over these, and
integrals by a sample as far as compiled code knows, so that derivatives and whole fits need nothing else. What depends on one
column alone and takes long is a polynomial with numbers, for toys that would compute it anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from morefit.arrays import Array
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
    price,
    rule_of,
    substitute,
    to_expr,
)
from morefit.expr.quadrature import NodeDomain
from morefit.functions import chebyshev_basis

TERMS = (8, 12, 16, 24, 32, 48, 64)  # of a polynomial that are tried
MORE = 1.25  # times as many, so that they hold where fits end
TOLERANCE = 1e-9  # of a logarithm at the values at which polynomials are made
FEWER = 2  # times: polynomials whose terms are not fewer than nodes by that are not worth it
CHECKS = 3  # points for each term at which a polynomial is compared with what it stands for, when it is made
TAIL = 5  # the last of so many parts of the coefficients show how accurate it is
ROUNDED = 1e-12  # relative error of a column that takes long
DEAR = 500  # price of a column from which on it does


@dataclass(frozen=True)
class Interpolation:
    """A polynomial of a column on a range of it, known from values at nodes."""

    column: Expr
    low: float
    high: float
    terms: int
    in_log: bool  # the polynomial is one of the logarithm of the column

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

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

    @property
    def nodes(self) -> Array:
        """The values of the column at nodes."""
        return self.values_at(self.places)

    def points(self, checks: int) -> Array:
        """Return values of the column at nodes and at checks, which are all over the range, with its ends."""
        return self.values_at(np.concatenate([self.places, places_between(checks)]))

    @cached_property
    def coefficients(self) -> Array:
        """The matrix that makes coefficients of values at nodes."""
        factors = np.where(np.arange(self.terms) == 0, 1.0, 2.0) / self.terms
        return np.asarray(factors[:, None] * polynomials(self.places, self.terms).T)

    def errors(self, values: Array) -> Array:
        """Return how far the polynomial is from values at nodes and checks, for each row of them and each check.

        Nor is it closer than its last coefficients are to zero.
        """
        coefficients = values[:, : self.terms] @ self.coefficients.T
        checks = places_between(values.shape[1] - self.terms)
        between = coefficients @ polynomials(checks, self.terms).T
        tail = np.abs(coefficients[:, -(self.terms // TAIL) :]).max(axis=1, keepdims=True)
        off = np.maximum(np.abs(between - values[:, self.terms :]), tail)
        return np.where(np.isfinite(off), off, np.inf)

    def series(self, coefficients: Sequence[Expr]) -> Expr:
        """Return the polynomial with some coefficients."""
        low, high = self.ends
        own = to_expr(np.log(self.column)) if self.in_log else self.column
        basis = chebyshev_basis(self.terms - 1, (own - (low + high) / 2) * (2 / (high - low)))
        return add_all(*(c * t for c, t in zip(coefficients, basis, strict=True)))

    def through(self, values: Array) -> Expr:
        """Return the polynomial with some values at nodes."""
        return self.series([const(float(c)) for c in self.coefficients @ values])

    def values_of(self, expr: Expr, rows: Sequence[Mapping[str, float]], points: Array) -> Array:
        """Return an expression of the column at values of it, for each of some rows of parameters."""
        each = (evaluate(expr, {**row, self.name: points}) for row in rows)
        return np.array([np.broadcast_to(own, len(points)) for own in each])


@dataclass(frozen=True)
class SmoothSum:
    """A sum over nodes for each event, and the polynomial of its only column that stands for its logarithm."""

    node: Expr
    own: Interpolation

    @np.errstate(all="ignore")
    def errors(self, sums: Array) -> Array:
        """Return how far the polynomial is from logarithms of sums at nodes and checks, for each row of them."""
        return np.asarray(self.own.errors(np.log(sums)).max(axis=1))

    def holds(self, rows: Sequence[Mapping[str, float]]) -> bool:
        """Return whether the polynomial is accurate at rows of parameters, as many checks show."""
        with np.errstate(all="ignore"):
            sums = self.own.values_of(self.node, rows, self.own.points(CHECKS * self.own.terms))
        return bool(self.errors(sums).max() <= TOLERANCE)

    def fixed(self, values: Mapping[str, float]) -> Expr:
        """Return what stands for the sum at values of its parameters."""
        (sums,) = self.own.values_of(self.node, [values], self.own.nodes)
        return to_expr(np.exp(self.own.through(np.log(sums))))

    @cached_property
    def polynomial(self) -> Expr:
        """What stands for the sum at any values of its parameters."""
        own = self.own
        there = column(f"{own.name} at nodes")
        names = [f"coefficient {k} of {own.name}" for k in range(own.terms)]
        rows = dict(zip(names, own.coefficients, strict=True))
        domain = NodeDomain.of({there.name: own.nodes, **rows}, np.ones(own.terms))
        log = np.log(substitute(self.node, {own.column: there}))
        each = [make(Op.INTEGRAL, (column(name) * log, log), domain) for name in names]
        return to_expr(np.exp(own.series(each)))


def polynomials(places: Array, terms: int) -> Array:
    """Return the first Chebyshev polynomials at places between -1 and 1, (places, terms)."""
    return np.asarray(np.cos(np.outer(np.arccos(places), np.arange(terms))))


def places_between(checks: int) -> Array:
    """Return places between -1 and 1, with both, closer together at the ends as nodes are."""
    return np.cos(np.linspace(0, np.pi, checks))


def interpolations(expr: Expr, ranges: Mapping[str, tuple[float, float]]) -> Iterator[Interpolation]:
    """Yield polynomials of the only column of an expression, from the fewest terms on; none if it has several."""
    columns = leaves(Op.COLUMN, expr)
    if len(columns) != 1 or columns[0].name not in ranges:
        return
    low, high = ranges[columns[0].name]
    for terms in TERMS if low < high else ():
        for in_log in (False, *([True] if low > 0 else [])):
            yield Interpolation(columns[0], low, high, terms, in_log)


def smooth_sum(
    node: Expr,
    ranges: Mapping[str, tuple[float, float]],
    rows: Sequence[Mapping[str, float]],
    most: float = math.inf,
) -> SmoothSum | None:
    """Return the polynomial of the fewest terms for a sum over nodes, None if there is none of at most so many terms.

    It is made for the first row of parameters, if it holds at the others as well: values of a scan then share kernels.
    """
    most = min(most, rule_of(node).count / FEWER)
    for own in interpolations(node, ranges):
        more = SmoothSum(node, replace(own, terms=round(MORE * own.terms)))
        if more.own.terms <= most and SmoothSum(node, own).holds(rows[:1]) and more.holds(rows):
            return more
    return None


def smooth_column(expr: Expr, ranges: Mapping[str, tuple[float, float]]) -> Expr:
    """Return a polynomial for an expression of one column alone that takes long, if there is one but for rounding."""
    if price(expr) < DEAR or leaves(Op.SCALAR, expr):
        return expr
    known = [(leaf.name, ranges[leaf.name]) for leaf in leaves(Op.COLUMN, expr) if leaf.name in ranges]
    return column_polynomial(expr, *known[0]) if len(known) == 1 else expr


@lru_cache(maxsize=256)  # every study and every call of fit_many asks
@np.errstate(all="ignore")
def column_polynomial(expr: Expr, name: str, ends: tuple[float, float]) -> Expr:
    """Return the polynomial of the fewest terms for an expression of one column, but for rounding, or itself if there is none."""
    for own in interpolations(expr, {name: ends}):
        values = own.values_of(expr, [{}], own.points(CHECKS * own.terms))
        if np.all(own.errors(values) <= ROUNDED * np.abs(values[:, own.terms :])):
            return own.through(values[0, : own.terms])
    return expr
