"""Acceptances of ``mf.Efficiency`` besides formulas: expansions in polynomials, and accepted simulated events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from morefit.arrays import Array, frozen_copy, read_only
from morefit.dataclass import dataclass
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    Expr,
    Op,
    Quantity,
    add_all,
    column,
    const,
    evaluate,
    integral_of,
    leaves,
    multiply_all,
    substitute,
    symbols,
    to_expr,
)
from morefit.expr.quadrature import NodeDomain
from morefit.functions import chebyshev_basis, legendre_basis
from morefit.model.arguments import described, listed
from morefit.model.integrate.cube import sample_points
from morefit.model.integrate.separate import separate
from morefit.model.integrate.terms import cancel, grouped, integrate_factors
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.shapes.series import along

BASES = {"legendre": legendre_basis, "chebyshev": chebyshev_basis}
MAX_OBSERVABLES = 4  # of an acceptance
PROBES = 64  # points at which the size of a function is looked at
MAX_JOINT = 64  # integrals over several observables that a density does not separate
POINTS = {1: 513, 2: 65, 3: 25, 4: 13}  # in each direction, where an acceptance is looked at


class Expansion(Quantity):
    r"""$\sum_{ij\ldots} c_{ij\ldots} P_i(t_1) P_j(t_2)\ldots$ with $t_k$ from -1 to 1 over the range of each observable.

    ``coefficients`` is an array with an axis for each observable, of numbers or of parameters; ``kind`` is "legendre" or
    "chebyshev". It stands in formulas like any expression.
    """

    __slots__ = ("__weakref__", "coefficients", "kind", "observables")

    def __init__(
        self, observables: Sequence[Observable] | Observable, coefficients: Any, kind: str = "legendre"
    ) -> None:
        self.observables = check_observables(observables)
        self.kind = check_kind(kind)
        self.coefficients = check_coefficients(coefficients, len(self.observables))

    @property
    def expr(self) -> Expr:
        return nested_sum(self.coefficients, [self.basis(o) for o in self.observables])

    def basis(self, o: Observable) -> list[Expr]:
        """Return the polynomials of one observable, over its range in the expansion, wherever it is cut."""
        (axis,) = self.axes([o.name])
        return BASES[self.kind](self.coefficients.shape[axis] - 1, along(self.observables[axis], o.expr, -1))

    def axes(self, names: Iterable[str]) -> list[int]:
        """Return the axes of some observables, if they are among those of the expansion."""
        return [k for name in names for k, o in enumerate(self.observables) if o.name == name]

    def split(self, names: Sequence[str]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Go through the orders of some observables, each with the coefficients in the others that are not all zero."""
        moved = np.moveaxis(self.coefficients, self.axes(names), range(len(names)))
        for order in np.ndindex(moved.shape[: len(names)]):
            if not all(map(is_nothing, np.ravel(moved[order]))):
                yield order, moved[order]

    def integral(
        self, density: Expr, box: Sequence[Observable], remaining: Observable | None = None
    ) -> Expr | None:
        """Return the integral of a density times the expansion over a box, as sums of moments; None if it is no sum of
        (parameters) x (event). An observable that remains is not integrated over."""
        terms = separate(density)
        parts = []
        for weight, event in [] if terms is None else terms:
            moments = self.moments(
                event, [o for o in box if remaining is None or o.name != remaining.name], remaining
            )
            if moments is None:
                return None
            rest, numbers = moments
            orders = [((), self.coefficients)] if remaining is None else self.split([remaining.name])
            basis = [ONE] if remaining is None else self.basis(remaining)
            total = [weighted(c, numbers) * basis[sum(order)] for order, c in orders]
            parts.append(multiply_all(add_all(*total), *weight, *rest))
        return add_all(*parts) if parts else None

    def moments(
        self, event: tuple[Expr, ...], box: Sequence[Observable], remaining: Observable | None
    ) -> tuple[list[Expr], Array] | None:
        """Return the factors in an observable that remains, and the integrals of the others times all polynomials."""
        groups = grouped(event)
        groups += [({o.name}, []) for o in box if not any(o.name in names for names, _ in groups)]
        rest: list[Expr] = []
        numbers, placed = np.ones(()), []
        for names, factors in groups:
            if remaining is not None and remaining.name in names:
                if len(names) > 1:
                    return None
                rest += factors
                continue
            own = [o for o in box if o.name in names]
            bases = [self.basis(o) if self.axes([o.name]) else [ONE] for o in own]
            shape = tuple(len(basis) for basis in bases)
            if len(own) > 1 and np.prod(shape) > MAX_JOINT:
                return None
            each = np.empty(shape)
            for order in np.ndindex(shape):
                product = multiply_all(*factors, *(basis[k] for basis, k in zip(bases, order, strict=True)))
                area = moment(product, tuple(own))
                if area is None:
                    return None
                each[order] = area
            numbers = np.multiply.outer(numbers, each)
            placed += own
        axes = [k for k, o in enumerate(placed) if self.axes([o.name])]
        numbers = numbers.reshape([numbers.shape[k] for k in axes])
        wanted = [o.name for o in self.observables if remaining is None or o.name != remaining.name]
        return rest, numbers.transpose([[placed[k].name for k in axes].index(name) for name in wanted])

    def __repr__(self) -> str:
        size = " x ".join(str(n - 1) for n in self.coefficients.shape)
        return f"Expansion({', '.join(o.name for o in self.observables)}; {self.kind}, orders {size})"


def nested_sum(coefficients: Any, bases: Sequence[Sequence[Expr]]) -> Expr:
    """Return the sum over the first basis of polynomials times sums over the others."""
    if not bases:
        return to_expr(coefficients)
    terms = []
    for rest, polynomial in zip(coefficients, bases[0], strict=True):
        if not all(is_nothing(c) for c in np.ravel(rest)):
            inner = nested_sum(rest, bases[1:])
            terms.append(inner if polynomial is ONE else inner * polynomial)
    return add_all(*terms) if len(terms) > 1 else terms[0]


def is_nothing(coefficient: Expr) -> bool:
    """Return whether a coefficient is the number zero."""
    return coefficient.op is Op.CONST and coefficient.number == 0.0


@lru_cache(maxsize=4096)
def moment(product: Expr, box: tuple[Observable, ...]) -> float | None:
    """Integrate over a box to full precision of the largest value; None if that cannot be reached.

    What may cancel to nothing has no relative precision, so it is raised by a constant that is taken away again.
    """
    rng = np.random.default_rng(0)
    points = {o.name: rng.uniform(o.low, o.high, PROBES) for o in box}
    raised = float(np.nanmax(np.abs(evaluate(product, points)), initial=0.0)) or 1.0
    area = integrate_factors((product + raised,), box)
    return None if area is None else area[0] - raised * math.prod(o.high - o.low for o in box)


def weighted(coefficients: Any, numbers: Array) -> Expr:
    """Return the sum of coefficients times numbers."""
    pairs = [(c, float(m)) for c, m in zip(np.ravel(coefficients), np.ravel(numbers), strict=True) if m]
    fixed = math.fsum(c.number * m for c, m in pairs if c.op is Op.CONST)
    return add_all(const(fixed), *(c * m for c, m in pairs if c.op is not Op.CONST))


def check_coefficients(coefficients: Any, dimensions: int) -> Any:
    """Return coefficients as an array of expressions with an axis for each observable."""
    array = np.array(coefficients, object)
    if array.ndim != dimensions or not array.size:
        raise ModelError(
            f"acceptance: coefficients must have one axis for each of {dimensions} observables, got shape {array.shape}"
        )
    each = [to_expr(c) for c in array.ravel()]
    if of_events := [c for c in each if symbols(Op.COLUMN, c)]:
        raise ModelError(
            f"acceptance: coefficients must not depend on observables, got {described(of_events[0])}"
        )
    exprs = np.empty(array.shape, object)
    exprs.ravel()[:] = list(map(folded, each))
    if all(map(is_nothing, exprs.ravel())):
        raise ModelError("acceptance: all coefficients are zero")
    return read_only(exprs)


def folded(coefficient: Expr) -> Expr:
    """Return a coefficient without parameters as a number."""
    return coefficient if leaves(Op.SCALAR, coefficient) else const(float(evaluate(coefficient, {})))


def check_kind(kind: str, kinds: Iterable[str] = BASES) -> str:
    if kind not in list(kinds):
        raise ModelError(f"acceptance: kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}")
    return kind


def check_observables(observables: Sequence[Observable] | Observable) -> tuple[Observable, ...]:
    """Return the observables of an acceptance: one to four, all different."""
    known = listed("acceptance: observables", observables)
    for one in known:
        if not isinstance(one, Observable):
            raise ModelError(f"acceptance: observables must be observables, got {described(one)}")
    names = [o.name for o in known]
    if not 1 <= len(names) <= MAX_OBSERVABLES or len(set(names)) < len(names):
        raise ModelError(
            f"acceptance: takes 1 to {MAX_OBSERVABLES} different observables, got {', '.join(names) or 'none'}"
        )
    return known


def values_on_grid(acceptance: Expr, values: Mapping[str, float]) -> tuple[Array, dict[str, Array]]:
    """Return the values of an acceptance on a grid over the ranges of its observables, and the points."""
    observables = [s for s in symbols(Op.COLUMN, acceptance) if isinstance(s, Observable)]
    axes = [np.linspace(o.low, o.high, POINTS[len(observables)]) for o in observables]
    grids = np.meshgrid(*axes, indexing="ij")
    points = {o.name: grid for o, grid in zip(observables, grids, strict=True)}
    heights = np.broadcast_to(evaluate(acceptance, {**values, **points}), grids[0].shape)
    return np.asarray(heights, np.float64), points


# ------------------------------------------------------------------------------------ simulation


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Accepted simulated events: they normalise a density without anybody knowing the efficiency.

    ``weights`` are those of the events, divided by the density that they were generated with.
    """

    observables: tuple[Observable, ...]
    columns: Mapping[str, Array]
    weights: Array

    def __post_init__(self) -> None:
        columns = {simulated(o).name: frozen_copy(self.columns[o.name], np.float64) for o in self.observables}
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "weights", frozen_copy(self.weights, np.float64))

    @cached_property
    def domain(self) -> NodeDomain:
        return NodeDomain.of(self.columns, self.weights)

    def column(self, o: Observable) -> Array:
        """Return the values of an observable."""
        return self.columns[simulated(o).name]

    def at_events(self, density: Expr) -> Expr:
        """Return a density as a function of the simulated events."""
        return substitute(density, {o.expr: simulated(o) for o in self.observables})

    def mean(self, density: Expr) -> Expr:
        """Return the sum of weights times a density over the events: term by term where it is a sum of products."""
        body = self.at_events(density)
        terms = separate(body, powers=True)
        if terms is None:
            return integral_of(body, self.domain)
        sums = [self.weights @ np.broadcast_to(evaluate(multiply_all(*event), self.columns), self.weights.shape)
                for _, event in terms]  # fmt: skip
        own = [multiply_all(const(s), *weight) for s, (weight, _) in zip(sums, terms, strict=True)]
        known = [p for p in symbols(Op.SCALAR, density) if isinstance(p, Parameter)]
        return integral_of(body, self.domain) if cancel(own, sample_points((), known)) else add_all(*own)

    def __repr__(self) -> str:
        return f"Simulation({', '.join(o.name for o in self.observables)}; {len(self.weights)} events)"


def simulated(o: Observable) -> Expr:
    """Return the column of an observable of simulated events, which is not that of the data."""
    return column(f"simulated {o.name}")
