"""Integrals for each event that depend on one column: their logarithms as polynomials of it, with coefficients from a few points.

The normalisation of a density given the error of each event is a smooth function of that error. Its logarithm is computed at
a few values of the column in every call, and not at each event; coefficients of Chebyshev polynomials are sums over these, and
integrals by a sample as far as compiled code knows, so that derivatives and whole fits need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from morefit.arrays import Array, Flags
from morefit.dataclass import dataclass
from morefit.expr import Expr, Op, add_all, column, evaluate, leaves, make, rule_of, substitute, to_expr
from morefit.expr.quadrature import NodeDomain
from morefit.functions import chebyshev_basis
from morefit.kernel.sums import Request
from morefit.pipeline import Columns, Settings, compile_values
from morefit.targets.base import Events

TERMS = (8, 12, 16, 24, 32, 48, 64)  # of a polynomial that are tried
MORE = 1.25  # times as many, so that they hold where fits end
TOLERANCE = 1e-9  # of a logarithm at the values at which polynomials are made
WORST = 1e-8  # where a fit ended
FEWER = 2  # times: polynomials whose terms are not fewer than nodes by that are not worth it
MAX_SUMS = 500  # coefficients and their derivatives: more take seconds to compile
CHECKS = 3  # points for each term at which a polynomial is compared with what it stands for, when it is made
LATER = 9  # points at which it is, where a fit ended
TAIL = 5  # the last of so many parts of the coefficients show how accurate it is


@dataclass(frozen=True)
class SmoothSum:
    """A sum over nodes for each event, and the polynomial of its only column that stands for its logarithm."""

    node: Expr
    column: Expr  # the only one of the sum
    low: float
    high: float
    terms: int
    in_log: bool  # the polynomial is one of the logarithm of the column

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def place(self) -> Expr:
        """Where the value of the column lies between -1 and 1."""
        low, high = self.ends
        own = to_expr(np.log(self.column)) if self.in_log else self.column
        return (own - (low + high) / 2) * (2 / (high - low))

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

    def points(self, checks: int) -> Array:
        """Return values of the column at nodes and at checks, which are all over the range, with its ends."""
        return self.values_at(np.concatenate([self.places, places_between(checks)]))

    @cached_property
    def coefficients(self) -> Array:
        """The matrix that makes coefficients of logarithms at nodes."""
        return np.asarray(np.linalg.inv(chebvander(self.places, self.terms - 1)), np.float64)

    @np.errstate(all="ignore")
    def errors(self, sums: Array) -> Array:
        """Return how far the polynomial is from logarithms of sums at nodes and checks, for each row of them.

        Nor is it closer than its last coefficients are to zero.
        """
        logs = np.log(sums)
        coefficients = logs[:, : self.terms] @ self.coefficients.T
        checks = places_between(logs.shape[1] - self.terms)
        between = coefficients @ chebvander(checks, self.terms - 1).T
        tail = np.abs(coefficients[:, -(self.terms // TAIL) :]).max(axis=1)
        off = np.maximum(np.abs(between - logs[:, self.terms :]).max(axis=1), tail)
        return np.where(np.isfinite(off), off, np.inf)

    @np.errstate(all="ignore")
    def holds(self, rows: Sequence[Mapping[str, float]]) -> bool:
        """Return whether the polynomial is accurate at rows of parameters, as many checks show."""
        points = self.points(CHECKS * self.terms)
        each = (evaluate(self.node, {**row, self.name: points}) for row in rows)
        sums = np.array([np.broadcast_to(own, len(points)) for own in each])
        return bool(self.errors(sums).max() <= TOLERANCE)

    @cached_property
    def polynomial(self) -> Expr:
        """The exponential of the polynomial, which stands for the sum."""
        own = column(f"{self.name} at nodes")
        names = [f"coefficient {k} of {self.name}" for k in range(self.terms)]
        rows = dict(zip(names, self.coefficients, strict=True))
        columns = {own.name: self.values_at(self.places), **rows}
        domain = NodeDomain.of(columns, np.ones(self.terms))
        log = np.log(substitute(self.node, {self.column: own}))
        each = [make(Op.INTEGRAL, (column(name) * log, log), domain) for name in names]
        basis = chebyshev_basis(self.terms - 1, self.place)
        return to_expr(np.exp(add_all(*(c * t for c, t in zip(each, basis, strict=True)))))


def places_between(checks: int) -> Array:
    """Return places between -1 and 1, with both, closer together at the ends as nodes are."""
    return np.cos(np.linspace(0, np.pi, checks))


def smooth_sums(
    nodes: Sequence[Expr],
    floating: Sequence[Expr],
    ranges: Mapping[str, tuple[float, float]],
    rows: Sequence[Mapping[str, float]],
) -> tuple[SmoothSum, ...]:
    """Return those of some sums over nodes that are smooth in their only column, at rows of parameters."""
    found = (smooth_sum(node, floating, ranges, rows) for node in nodes)
    return tuple(one for one in found if one is not None)


def smooth_sum(
    node: Expr,
    floating: Sequence[Expr],
    ranges: Mapping[str, tuple[float, float]],
    rows: Sequence[Mapping[str, float]],
) -> SmoothSum | None:
    """Return the polynomial of the fewest terms for a sum over nodes, None if it has more than that is worth.

    It is made for the first row, if it holds at the others as well: values of a scan then share kernels.
    """
    columns, moving = leaves(Op.COLUMN, node), {*leaves(Op.SCALAR, node)} & {*floating}
    if len(columns) != 1 or not moving:
        return None
    (x,) = columns
    low, high = ranges[x.name]
    derivatives = (1 + len(moving)) * (2 + len(moving)) // 2
    most = min(rule_of(node).count / FEWER, MAX_SUMS / derivatives)
    for terms in TERMS if low < high else ():
        for in_log in (False, *([True] if low > 0 else [])):
            one, more = (SmoothSum(node, x, low, high, n, in_log) for n in (terms, round(MORE * terms)))
            if more.terms <= most and one.holds(rows[:1]) and more.holds(rows):
                return more
    return None


def smoothed(request: Request, smooth: Sequence[SmoothSum]) -> Request:
    """Return what to sum over events, with polynomials in the place of some sums over nodes."""
    if not smooth:
        return request
    return replace(
        request, log_density=substitute(request.log_density, {one.node: one.polynomial for one in smooth})
    )


def rough_rows(
    smooth: Sequence[SmoothSum], parameters: Sequence[Expr], full: Array, settings: Settings
) -> Flags:
    """Return at which rows of all parameters polynomials are not what they stand for."""
    rough = np.zeros(len(full), np.bool_)
    for one in smooth:
        points = one.points(LATER)
        compiled = compile_values((one.node,), tuple(parameters), settings)
        bound = compiled.bind(Columns({one.name: points}), Events.all_sets(len(points)))
        rough |= ~(one.errors(bound(full)[:, 0]) <= WORST)
    return rough
