"""Sums of (parameters) x (event): every event factor is integrated once and for all; with tables by Gauss nodes in every cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from morefit.arrays import Array
from morefit.expr import (
    ONE,
    Expr,
    Op,
    Table,
    add_all,
    const,
    domain_of,
    evaluate,
    leaves,
    multiply_all,
    toposort,
)
from morefit.expr.evaluate import adapted_to
from morefit.model.integrate.cube import integral_over_box
from morefit.model.integrate.joint import integrate_jointly
from morefit.model.integrate.panels import SAMPLES, Points
from morefit.model.integrate.separate import MAX_TERMS, Term, open_nested, separate, without
from morefit.model.observable import Observable

TOLERANCE = 1e-14  # of an integral that is done once and for all
WORST = 1e-12  # that it may be off, or by which two with more places and points may differ
POINTS = 64  # at which the size of an integral is looked at
ROUNDING = 4e-15  # of the size of a term
MAX_LOST = 1e4  # how much larger terms may be than their sum
FEW = 8  # functions of the same observables that are integrated one by one
TWO = const(2.0)
Ranges = tuple[Observable, ...]
Whole = Callable[[Expr, Ranges], tuple[float, float] | None]  # an integral, and that of the size


def by_terms(density: Expr, observables: Ranges, points: Points | None = None) -> Expr | None:
    """Return the integral of a density as a sum of parameter factors times numbers, if it can be had so.

    ``points`` are values of the parameters, at the start first: none is returned if terms cancel there. Without them powers
    are not opened.
    """
    terms = separate(density, powers=points is not None)
    return None if terms is None else term_by_term(terms, observables, points)


def term_by_term(terms: list[Term], observables: Ranges, points: Points | None = None) -> Expr | None:
    """Integrate every event factor once; terms of one weight are one, and what cancels to nothing is dropped."""
    whole = integrate_many([event for _, event in terms], observables)
    totals: dict[tuple[Expr, ...], tuple[float, float]] = {}
    for weight, event in terms:
        known = integrate_factors(event, observables, whole)
        if known is None:
            return None
        factors = open_powers(weight)
        scale = float(np.prod([f.number for f in factors if f.op is Op.CONST]))
        key = tuple(sorted((f for f in factors if f.op is not Op.CONST), key=lambda f: f.order))
        number, size = totals.get(key, (0.0, 0.0))
        totals[key] = number + scale * known[0], size + abs(scale) * known[1]
    left = {key: number for key, (number, size) in totals.items() if abs(number) > ROUNDING * size}
    products = [multiply_all(const(number), *key) for key, number in left.items()]
    if not left or (points is not None and cancel(products, points)):
        return None
    return sum_of_products(left)


@np.errstate(all="ignore")
def cancel(terms: Sequence[Expr], points: Points) -> bool:
    """Return whether terms are so much larger than their sum that little is left of their digits.

    So it is with (x - a)**2 where x and a are thousands, and their difference is one.
    """
    names = {leaf.name for op in (Op.SCALAR, Op.COLUMN) for leaf in leaves(op, *terms)}
    if not names <= set(points):
        return False
    values = [np.broadcast_to(evaluate(term, points), SAMPLES) for term in terms]
    lost = np.sum(np.abs(values), axis=0) / np.abs(np.sum(values, axis=0))
    return bool(lost[0] > MAX_LOST or np.nanmedian(lost) > MAX_LOST)


def open_powers(factors: tuple[Expr, ...]) -> list[Expr]:
    """Replace products by their factors, and squares by two of them."""
    opened: list[Expr] = []
    for factor in open_nested(Op.MUL, factors):
        squared = factor.op is Op.POW and factor.args[1] is TWO
        opened += 2 * open_nested(Op.MUL, (factor.args[0],)) if squared else [factor]
    return opened


def sum_of_products(numbers: Mapping[tuple[Expr, ...], float]) -> Expr:
    """Return a sum of numbers times products; the factor that stands in most of them is taken out, again and again."""
    left, parts = dict(numbers), list[Expr]()
    while left:
        counts = Counter(factor for key in left for factor in set(key))
        common = max(counts, key=lambda factor: (counts[factor], factor.order), default=ONE)
        if counts[common] < 2:
            parts += [multiply_all(const(number), *key) for key, number in left.items()]
            break
        inside = {key: number for key, number in left.items() if any(f is common for f in key)}
        left = {key: number for key, number in left.items() if key not in inside}
        parts.append(common * sum_of_products({without(key, common): n for key, n in inside.items()}))
    return add_all(*parts) if len(parts) > 1 else parts[0]


def integrate_many(products: Sequence[tuple[Expr, ...]], observables: Ranges) -> Whole:
    """Return what integrates event-only functions over a box; those that many products need are done together."""
    wanted: dict[Ranges, dict[Expr, None]] = {}

    def note(function: Expr, box: Ranges) -> tuple[float, float]:
        wanted.setdefault(box, {})[function] = None
        return 1.0, 1.0

    for factors in products:
        if not any(node.op is Op.CELL for node in toposort(*factors)):
            integrate_factors(factors, observables, note)
    known: dict[Ranges, dict[Expr, tuple[float, float]]] = {}
    for box, functions in wanted.items():
        if (
            len(functions) > FEW
            and (numbers := integrate_jointly([*functions], box, TOLERANCE, WORST)) is not None
        ):
            known[box] = dict(zip(functions, numbers, strict=True))
    return lambda function, box: known.get(box, {}).get(function) or integrate_box(function, box)


def integrate_factors(
    factors: tuple[Expr, ...], observables: Ranges, whole: Whole | None = None
) -> tuple[float, float] | None:
    """Integrate a product over a box, factors in different observables apart; also the integral of its size.

    ``whole`` integrates a function of observables that is no product of functions of some of them.
    """
    whole = whole or integrate_box
    groups = grouped(factors)
    number = size = 1.0
    for names, parts in groups:
        box = tuple(o for o in observables if o.name in names)
        factor_integral = (
            integrate_cells(parts, box, whole)
            or integrate_sums(parts, box, whole)
            or whole(multiply_all(*parts), box)
            if names
            else (float(evaluate(multiply_all(*parts), {})),) * 2
        )
        if factor_integral is None:
            return None
        number, size = number * factor_integral[0], size * abs(factor_integral[1])
    free = set().union(*(g[0] for g in groups))
    for o in observables:
        if o.name not in free:
            number, size = number * (o.high - o.low), size * (o.high - o.low)
    return number, size


def integrate_sums(parts: list[Expr], box: Ranges, whole: Whole) -> tuple[float, float] | None:
    """Integrate a product of factors that are sums of products of functions of one observable each, if it is one.

    An adaptive integral in three observables takes seconds; those in one are the same for many terms.
    """
    number = size = 0.0
    stack, count = [tuple(parts)] if len(box) > 1 else [], 0
    while stack:
        groups = grouped(stack.pop())
        factors = tuple(factor for _, own in groups for factor in own)
        joint = [factor for names, own in groups if len(names) > 1 for factor in own]
        opened = next((f for f in joint if f.op is Op.ADD and len(set(leaves(Op.COLUMN, f))) > 1), None)
        if opened is not None:
            stack += [(term, *without(factors, opened)) for term in opened.args]
        elif joint or (one := integrate_factors(factors, box, whole)) is None:
            return None
        else:
            number, size, count = number + one[0], size + one[1], count + 1
        if len(stack) + count > MAX_TERMS:
            return None
    return (number, size) if count else None


def grouped(factors: tuple[Expr, ...]) -> list[tuple[set[str], list[Expr]]]:
    """Put together factors that share observables, with the names of these."""
    groups: list[tuple[set[str], list[Expr]]] = []
    for factor in open_nested(Op.MUL, factors):
        names = {leaf.name for leaf in leaves(Op.COLUMN, factor)}
        joined = [g for g in groups if g[0] & names]
        groups = [g for g in groups if not g[0] & names]
        groups.append((names.union(*(g[0] for g in joined)), [factor, *(f for g in joined for f in g[1])]))
    return groups


@lru_cache(maxsize=4096)
def integrate_box(expr: Expr, box: Ranges) -> tuple[float, float] | None:
    """Integrate an event-only expression and its size to full precision, or give up."""
    integral = integral_over_box(expr, box, ())
    adapted = adapted_to(integral.args[1:], domain_of(integral), (), TOLERANCE)
    if not adapted.error <= WORST:
        size = size_on_axis(expr, box[0]) if len(box) == 1 else 0.0
        return (0.0, size) if abs(float(adapted.totals[0])) <= WORST * size < np.inf else None
    nodes = adapted.boxes.nodes()
    terms = nodes.weights * evaluate(integral.args[0], nodes.columns)
    return float(np.sum(terms)), float(np.sum(np.abs(terms)))


def size_on_axis(expr: Expr, x: Observable) -> float:
    """Return the integral of the size of an event-only expression along its axis, roughly.

    An integral that vanishes, such as that of an odd function, is never known to a part of itself, but to one of this.
    """
    from numpy.polynomial.legendre import leggauss

    u, w = leggauss(POINTS)
    values = evaluate(expr, {x.name: x.low + (x.high - x.low) * (u + 1) / 2})
    return float((x.high - x.low) / 2 * np.sum(w * np.abs(values)))


PLACES = (2, 3)  # in a cell and direction, between which tables are polynomials: two are enough for lines
POINTS_IN_CELL = (20, 32)  # in a cell, of integrals along one axis
MAX_PLACES = 1 << 24


def integrate_cells(
    factors: Sequence[Expr], box: Sequence[Observable], whole: Whole
) -> tuple[float, float] | None:
    """Integrate a product of event-only factors, some of them tables of several observables, and its size.

    Tables are polynomials in each cell, so that the integral is a sum over places in cells of numbers of the tables times an
    integral along each axis. Return None if there is no table, or if it or the other factors are not smooth in cells;
    ``whole`` integrates a function of one axis by other means, which look for narrow peaks.
    """
    alone: dict[str, list[Expr]] = {o.name: [] for o in box}
    joint: list[Expr] = []
    for factor in factors:
        names = {leaf.name for leaf in leaves(Op.COLUMN, factor)}
        (joint if len(names) > 1 else alone[names.pop()]).append(factor)
    edges = None if not joint else cell_edges(multiply_all(*factors), tuple(box))
    if edges is None or np.prod([PLACES[-1] * (len(each) - 1.0) for each in edges]) > MAX_PLACES:
        return None
    totals = []
    for places, points in zip(PLACES, POINTS_IN_CELL, strict=True):
        signed = on_grid(multiply_all(*joint), tuple(box), edges, places)
        sizes = np.abs(signed)
        for o, own in reversed(list(zip(box, edges, strict=True))):
            product = multiply_all(*alone[o.name]) if alone[o.name] else ONE
            weights = axis_weights(product, o, own, places, points)
            exact = whole(product, (o,))
            if exact is None or not abs(weights.sum() - exact[0]) <= WORST * np.abs(weights).sum():
                return None
            signed, sizes = signed @ weights, sizes @ np.abs(weights)
        totals.append(float(signed))
    return (totals[-1], float(sizes)) if abs(totals[1] - totals[0]) <= WORST * sizes else None


@lru_cache(maxsize=1024)
def axis_weights(function: Expr, x: Observable, edges: tuple[float, ...], places: int, points: int) -> Array:
    """Return the integrals of a function of one axis times the polynomials that are one at a place of a cell and zero at others."""
    from numpy.polynomial.legendre import leggauss, legvander

    u, w = leggauss(points)
    inside, slope = (3 * u - u**3) / 2, 1.5 * (1 - u**2)  # roots at the ends of a cell are smooth in u
    basis = np.linalg.solve(legvander(leggauss(places)[0], places - 1).T, legvander(inside, places - 1).T)
    nodes = in_cells(edges, inside)
    values = np.broadcast_to(evaluate(function, {x.name: nodes}), nodes.shape)
    return np.asarray(np.diff(edges)[:, None] / 2 * ((values * slope * w) @ basis.T)).ravel()


@lru_cache(maxsize=256)
def cell_edges(product: Expr, box: tuple[Observable, ...]) -> tuple[tuple[float, ...], ...] | None:
    """Return the edges of all tables on each axis; None if there is none, or the place in one is not an observable."""
    edges = {o.name: {o.low, o.high} for o in box}
    cells = [node for node in toposort(product) if node.op is Op.CELL]
    for table, place in (node.args for node in cells):
        assert isinstance(table.value, Table)
        if place.op is not Op.COLUMN:
            return None
        edges[place.name] |= set(table.value.array.tolist())
    inside = (sorted(e for e in edges[o.name] if o.low <= e <= o.high) for o in box)
    return tuple(map(tuple, inside)) if cells else None


def in_cells(edges: Sequence[float], inside: Array) -> Array:
    """Return places of all cells between edges, (cells, places); ``inside`` are those of a cell in [-1, 1]."""
    return np.asarray(edges)[:-1, None] + np.diff(edges)[:, None] / 2 * (1 + inside)


@lru_cache(maxsize=4)  # all terms of a density share it
def on_grid(
    joint: Expr, box: tuple[Observable, ...], edges: tuple[tuple[float, ...], ...], places: int
) -> Array:
    """Return a function of all axes at every combination of places in their cells."""
    from numpy.polynomial.legendre import leggauss

    shape = np.ones(len(box), int) - 2 * np.eye(len(box), dtype=int)  # -1: the axis itself
    grid = {
        o.name: in_cells(e, leggauss(places)[0]).reshape(s) for o, e, s in zip(box, edges, shape, strict=True)
    }
    return np.broadcast_to(evaluate(joint, grid), [x.size for x in grid.values()])
