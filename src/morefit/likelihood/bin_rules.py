"""Rules for the probability of a bin: the density at points inside of it, between kinks or around a peak, and where to try them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from morefit.expr import Expr, Op, add_all, apply, const, multiply_all, substitute, where
from morefit.expr.quadrature import gauss_grid
from morefit.likelihood.table import LARGEST, TableColumn
from morefit.model import Observable, Parameter, Pdf

ELSEWHERE, AWAY = 8, 0.95  # how many other values are tried, each at most so far on the way to a limit
# what counts as near: times the start, and where that is zero, a part of the way between the limits
NEAR, NEAR_PART = 1.5, 0.1
CROWD = 4  # power of the distance from a peak by which points are spread


def edge_columns(o: Observable) -> tuple[TableColumn, TableColumn]:
    """Return the columns of the low and the high edge of each bin along an observable."""
    low, high = (TableColumn(f"{end} edge of {o.name}", o.low, o.high) for end in ("low", "high"))
    return low, high


def rule(pdf: Pdf, points: int, kinks: Sequence[Expr], order: int = 0) -> Expr:
    """Return the integral over a bin by Gauss-Legendre points; on a line, between the kinks of the density.

    A piece is run through with a speed (1 - t^2)^order: a power of the distance to a kink, such as the root with which phase
    space ends, becomes a higher power of t, which points integrate well.
    """
    density, observables = pdf.density(), pdf.observables
    nodes, weights, _ = gauss_grid(len(observables), points)
    if order:
        speed = np.polynomial.Polynomial([1.0, 0.0, -1.0]) ** order
        place = speed.integ()
        nodes, weights = place(nodes) / place(1.0), weights * speed(nodes[0]) / place(1.0)
    lines = [list(pieces(o, kinks)) for o in observables]
    terms = []
    for box in product(*lines):
        half = [(high - low) * 0.5 for low, high in box]
        middle = [(high + low) * 0.5 for low, high in box]
        places = [[m + h * float(t) for m, h, t in zip(middle, half, node, strict=True)] for node in nodes.T]
        values_there = [
            substitute(density, {o.expr: place for o, place in zip(observables, at, strict=True)})
            for at in places
        ]
        mean = add_all(*(float(w) * f for w, f in zip(weights, values_there, strict=True)))
        terms.append(multiply_all(*half, mean))
    return add_all(*terms) if len(terms) > 1 else terms[0]


def rule_around(pdf: Pdf, peaks: Sequence[Expr], points: int) -> Expr:
    """Return the integral over a bin of one observable by points on both sides of some peaks, or on the side next to them.

    Points are fourth powers of the distance, so that they follow a peak that becomes much narrower than the bin.
    """
    (o,), density = pdf.observables, pdf.density()
    nodes, weights, _ = gauss_grid(1, points)
    unit = 0.5 * (nodes[0] + 1)
    parts, factors = unit**CROWD, 0.5 * weights * CROWD * unit ** (CROWD - 1)
    terms = []
    for peak, end, sign in ways_from(list(pieces(o, peaks))):
        way = end - peak
        places = [peak + way * float(part) for part in parts]
        mean = add_all(
            *(
                float(f) * substitute(density, {o.expr: place})
                for f, place in zip(factors, places, strict=True)
            )
        )
        terms.append(multiply_all(const(sign), way, mean))
    return add_all(*terms)


def ways_from(cut: Sequence[tuple[Expr, Expr]]) -> Iterator[tuple[Expr, Expr, float]]:
    """Go from each peak to both sides, of the pieces between which they are the cuts: to the middle of one, or to the end of a bin."""
    (low, first), *between, (last, high) = cut
    yield first, low, -1.0
    for one, other in between:
        middle = (one + other) * 0.5
        yield one, middle, 1.0
        yield other, middle, -1.0
    yield last, high, 1.0


def pieces(o: Observable, kinks: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Cut a bin at the kinks of a density, which may move with parameters; outside the bin a piece has no width."""
    low, high = edge_columns(o)[0].expr, edge_columns(o)[1].expr
    fixed = all(kink.op is Op.CONST for kink in kinks)
    if fixed:
        kinks = sorted(kinks, key=lambda kink: kink.number)
    inside = [apply(Op.MIN, apply(Op.MAX, kink, low), high) for kink in kinks]
    # at some values of parameters there may be none
    cuts = [where(abs(kink) <= LARGEST, cut, low) for kink, cut in zip(kinks, inside, strict=True)]
    for i in range(0 if fixed else len(cuts)):  # their order may change with the parameters
        for j in range(i):
            cuts[j], cuts[i] = apply(Op.MIN, cuts[j], cuts[i]), apply(Op.MAX, cuts[j], cuts[i])
    line = [low, *cuts, high]
    yield from pairwise(line)


def are_near(pdf: Pdf, values: Mapping[str, Any]) -> bool:
    """Return whether values of parameters, numbers or columns, are all near those at the start, for which rules are made."""
    for p in pdf.parameters:
        own, width = np.asarray(values[p.name], np.float64), NEAR_PART * (p.high - p.low)
        with np.errstate(all="ignore"):
            ratio = own / p.start if p.start else np.full(own.shape, np.nan)
        near = ((ratio >= 1 / NEAR) & (ratio <= NEAR)) | (
            (np.abs(own - p.start) <= width) & np.isfinite(width) & (p.start == 0)
        )
        if not near.all():
            return False
    return True


def values_elsewhere(
    parameters: Sequence[Parameter], start: Mapping[str, float]
) -> Iterator[dict[str, float]]:
    """Yield values of parameters on the way to their limits, or to zero and twice the start, in a few combinations."""
    rng = np.random.default_rng(1)
    free = [p for p in parameters if not p.fixed]
    for _ in range(ELSEWHERE if free else 0):
        values = {p.name: start[p.name] for p in parameters}
        for p in free:
            middle = start[p.name]
            ends = (p.low, p.high) if np.isfinite([p.low, p.high]).all() else (0.0, 2 * middle)
            values[p.name] += AWAY * rng.random() ** 0.25 * (ends[rng.integers(2)] - middle)
        yield values
