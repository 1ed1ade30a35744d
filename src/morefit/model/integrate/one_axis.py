"""Densities whose parameters stand in functions of one observable: tables of all are integrated over the others, once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morefit.arrays import Array
from morefit.expr import Expr, Op, add_all, const, evaluate, multiply_all
from morefit.expr.interpolate import piecewise
from morefit.model.integrate.cube import sample_points
from morefit.model.integrate.separate import names_of, open_nested, separate
from morefit.model.integrate.terms import (
    MAX_PLACES,
    PLACES,
    POINTS_IN_CELL,
    WORST,
    axis_weights,
    cancel,
    cell_edges,
    grouped,
    integrate_box,
    integrate_factors,
    on_grid,
)
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter

CHECKED = 1001  # places of an axis at which polynomials of two degrees are compared


def on_one_axis(
    density: Expr, observables: Sequence[Observable], parameters: Sequence[Parameter]
) -> tuple[Expr, Observable] | None:
    """Return a density of one observable that has the same integral, and the observable, if there is one."""
    for x in observables if len(observables) > 1 else ():
        own = terms_along(density, x, observables)
        if own and not cancel(own, sample_points((x,), parameters)):
            return (add_all(*own) if len(own) > 1 else own[0]), x
    return None


def terms_along(density: Expr, x: Observable, observables: Sequence[Observable]) -> list[Expr]:
    """Return the terms of a density, integrated over all observables but one; none if that cannot be done."""
    own = []
    for weight, event in separate(density, x.name, powers=True) or ():
        part = along(event, x, observables)
        if part is None:
            return []
        own.append(multiply_all(*weight, part))
    return own


def along(factors: tuple[Expr, ...], x: Observable, observables: Sequence[Observable]) -> Expr | None:
    """Return the integral of a product over all observables but one, as a function of that one."""
    opened = open_nested(Op.MUL, factors)
    alone = [factor for factor in opened if names_of(factor) <= {x.name}]  # parameters among them
    rest = tuple(factor for factor in opened if not names_of(factor) <= {x.name})
    joint = [(names, parts) for names, parts in grouped(rest) if x.name in names]
    taken = {name for names, _ in joint for name in names} | {x.name}
    apart = tuple(f for names, parts in grouped(rest) if x.name not in names for f in parts)
    number = integrate_factors(apart, tuple(o for o in observables if o.name not in taken))
    if number is None:
        return None
    functions = [
        table_along(parts, x, [o for o in observables if o.name in names and o is not x])
        for names, parts in joint
    ]
    if any(function is None for function in functions):
        return None
    return multiply_all(const(number[0]), *alone, *(f for f in functions if f is not None))


def table_along(factors: Sequence[Expr], x: Observable, others: Sequence[Observable]) -> Expr | None:
    """Return the integral of a product of tables over other axes as a piecewise polynomial; None if it is none.

    No factor is a function of ``x`` alone.
    """
    box = (x, *others)
    edges = cell_edges(multiply_all(*factors), box)
    if edges is None or np.prod([PLACES[-1] * (len(each) - 1.0) for each in edges]) > MAX_PLACES:
        return None
    rows = [polynomials(factors, box, edges, k) for k in range(len(PLACES))]
    if any(each is None for each in rows):
        return None
    first, second = (piecewise(x.expr, edges[0], each) for each in rows if each is not None)
    points = {x.name: np.linspace(x.low, x.high, CHECKED)}
    values = np.array([evaluate(each, points) for each in (first, second)])
    same = np.abs(values[0] - values[1]).max() <= WORST * np.abs(values).max()
    return first if same else None


def polynomials(
    factors: Sequence[Expr], box: tuple[Observable, ...], edges: Sequence[tuple[float, ...]], kind: int
) -> Array | None:
    """Return the coefficients of the integral over all axes but the first, (powers, cells)."""
    from numpy.polynomial.legendre import leggauss

    places, points = PLACES[kind], POINTS_IN_CELL[kind]
    alone = {o.name: [f for f in factors if names_of(f) == {o.name}] for o in box}
    joint = multiply_all(*(f for f in factors if len(names_of(f)) > 1))
    values = on_grid(joint, box, tuple(edges), places)
    for o, own in reversed(list(zip(box[1:], edges[1:], strict=True))):
        product = multiply_all(const(1.0), *alone[o.name])
        weights, exact = axis_weights(product, o, own, places, points), integrate_box(product, (o,))
        if exact is None or not abs(weights.sum() - exact[0]) <= WORST * np.abs(weights).sum():
            return None
        values = values @ weights
    widths = np.diff(edges[0])
    distances = widths[:, None] / 2 * (1 + leggauss(places)[0])
    powers = distances[:, :, None] ** np.arange(places)
    rows = np.linalg.solve(powers, values.reshape(len(widths), places, 1))
    return np.asarray(rows[:, :, 0].T, np.float64)
