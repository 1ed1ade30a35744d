"""Draw from a density whose distribution has an inverse in closed form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import ONE, ZERO, Expr, Op, OwnSymbol, apply, column, const, evaluate, substitute, toposort
from morefit.model.observable import Observable
from morefit.sampling.candidate import Numbers, Recipe, check_values

PROBABILITY = column("probability")  # what a quantile is a function of
CHECKS = 65  # points at which a formula for a quantile is checked


def quantile_recipe(
    quantile: Expr, density: Expr, x: Observable, numbers: Numbers, rises: bool = True
) -> Recipe:
    """Draw by inversion; ``rises`` is False where all events may have the same value."""
    check_quantile(quantile, density, x, rises)
    return Recipe({x.name: drawn_point(quantile, x, numbers)}, ONE, ZERO, 1.0)


def drawn_point(quantile: Expr, x: Observable, numbers: Numbers) -> Expr:
    """Return the quantile of a random number, kept in its range, which rounding may leave at an edge."""
    return inside_range(x, substitute(quantile, {PROBABILITY: numbers.take()}))


def inside_range(x: Observable, point: Expr) -> Expr:
    return apply(Op.MIN, apply(Op.MAX, point, const(x.low)), const(x.high))


def check_quantile(quantile: Expr, density: Expr, x: Observable, rises: bool) -> None:
    """Refuse a formula whose density is not one at these values, or that does not separate points."""
    between = np.linspace(0, 1, CHECKS)[1:-1]
    points = np.broadcast_to(evaluate_plainly(quantile, {PROBABILITY.name: between}), between.shape)
    tried = np.concatenate([np.linspace(x.low, x.high, CHECKS), np.clip(points, x.low, x.high)])
    check_values(np.broadcast_to(evaluate(density, {x.name: tried}), tried.shape), {x.name: tried})
    if not np.all(np.diff(points) >= 0) or (rises and not np.ptp(points) > 0):
        raise ModelError(
            f"density: cannot be drawn from, the inverse of its distribution in '{x.name}' is not a rising"
            " function at the given values; are they too far from the range?"
        )


def evaluate_plainly(expr: Expr, values: Mapping[str, Array]) -> Array:
    """Evaluate without scipy, if it is only the normal distribution that needs it: importing it takes 0.2 s."""
    known = dict(values)
    while (node := next((n for n in toposort(expr) if n.op is Op.NDTRI), None)) is not None:
        stand_in = column(OwnSymbol(f"normal quantile {len(known)}"))
        probabilities = np.asarray(evaluate(node.args[0], known), np.float64)
        known[stand_in.name] = np.vectorize(normal_quantile, otypes=[np.float64])(probabilities)
        expr = substitute(expr, {node: stand_in})
    return np.asarray(evaluate(expr, known), np.float64)


def normal_quantile(probability: float) -> float:
    """Invert the normal distribution; its ends are infinite."""
    if 0 < probability < 1:
        from statistics import NormalDist

        return NormalDist().inv_cdf(probability)
    return {0.0: -np.inf, 1.0: np.inf}.get(probability, np.nan)
