"""Draw from a density whose distribution has an inverse in closed form, or of one observable that is infinite at some points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    OwnSymbol,
    apply,
    column,
    const,
    evaluate,
    substitute,
    toposort,
    where,
)
from morefit.expr.adapt import POWERS
from morefit.model.integrate import singular_ends
from morefit.model.observable import Observable
from morefit.sampling.envelope import Numbers, Recipe, check_values, envelope_recipe

PROBABILITY = column("probability")  # what a quantile is a function of
CHECKS = 65  # points at which a formula for a quantile is checked


def quantile_recipe(quantile: Expr, density: Expr, x: Observable, numbers: Numbers, rises: bool) -> Recipe:
    """Draw by inversion; ``rises`` is False where all events may have the same value."""
    check_quantile(quantile, density, x, rises)
    return Recipe({x.name: drawn_point(quantile, x, numbers)}, ONE, ZERO, 1.0)


def drawn_point(quantile: Expr, x: Observable, numbers: Numbers) -> Expr:
    """Return the quantile of a random number, kept in its range, which rounding may leave at an edge."""
    return inside_range(x, substitute(quantile, {PROBABILITY: numbers.take()}))


def inside_range(x: Observable, point: Expr) -> Expr:
    return Op.MIN(Op.MAX(point, const(x.low)), const(x.high))


def check_quantile(quantile: Expr, density: Expr, x: Observable, rises: bool) -> None:
    """Refuse a formula whose density is not one at these values, or that does not separate points."""
    between = np.linspace(0, 1, CHECKS)[1:-1]
    points = np.broadcast_to(evaluate_plainly(quantile, {PROBABILITY.name: between}), between.shape)
    tried = np.concatenate([np.linspace(x.low, x.high, CHECKS), np.clip(points, x.low, x.high)])
    heights = np.broadcast_to(evaluate(density, {x.name: tried}), tried.shape)
    bounded = ~np.isposinf(heights)  # inversion needs no bound
    check_values(heights[bounded], {x.name: tried[bounded]})
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
    """Invert the normal distribution; its ends are infinite.

    Formula 26.2.23 of Abramowitz and Stegun is right to 5e-4, and each of Halley's steps has three times as many digits. To
    import ``statistics`` for its function takes a fifth of the time of a first draw.
    """
    if probability == 0.5 or not 0 < probability < 1:
        return {0.0: -np.inf, 0.5: 0.0, 1.0: np.inf}.get(probability, np.nan)
    tail = min(probability, 1 - probability)
    t = math.sqrt(-2 * math.log(tail))
    top, bottom = 2.515517 + t * (0.802853 + t * 0.010328), 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    x = t - top / bottom
    for _ in range(2):
        step = (
            (math.erfc(x / math.sqrt(2)) / 2 - tail) * math.sqrt(2 * math.pi) * math.exp(min(x * x / 2, 709))
        )
        x += step / (1 - x * step / 2)
    return math.copysign(x, probability - 0.5)


MAX_BLURRED = 1e-3  # of a density, within the last digit of an observable
GROWS = 1.5  # a density that is that much larger a million times closer to a point is infinite there


def singular_recipe(density: Expr, x: Observable, numbers: Numbers) -> tuple[Recipe, float]:
    """Draw an observable under an envelope; where its density is infinite, a power of a bounded one instead."""
    pieces = singular_pieces(density, x)
    if not pieces:
        return envelope_recipe(density, (x,), numbers)
    stand_in = Observable(f"root_of_{x.name}", 0.0, 1.0)
    for power in POWERS:
        point, slope = from_pieces(pieces, stand_in.expr, power)
        bounded = substitute(density, {x.expr: point}) * slope
        closer = np.array([[1e-9], [1e-6]]) ** (1 / power)  # of a piece; even closer rounding may bound it
        starts = (np.arange(len(pieces)) + closer) / len(pieces)
        near = np.asarray(evaluate(bounded, {stand_in.name: starts}))
        if np.all(near[0] <= near[1] * (1 + 1e-9)):
            recipe, area = envelope_recipe(bounded, (stand_in,), numbers)
            check_rounding(bounded, pieces, power, area, x)
            drawn = substitute(point, {stand_in.expr: recipe.drawn[stand_in.name]})
            return Recipe({x.name: drawn}, recipe.accept, recipe.above, recipe.efficiency), area
    return envelope_recipe(density, (x,), numbers)  # whose error names the point where it is infinite


def check_rounding(
    bounded: Expr, pieces: Sequence[tuple[float, float]], power: int, area: float, x: Observable
) -> None:
    """Refuse a density of which much lies so close to where it is infinite that an observable has no digits for it."""
    for k, (start, end) in enumerate(pieces):
        root = (np.spacing(abs(start)) / abs(end - start)) ** (1 / power) / len(pieces)
        share = float(evaluate(bounded, {f"root_of_{x.name}": k / len(pieces) + root})) * root / area
        if share > MAX_BLURRED:
            raise ModelError(
                f"observable '{x.name}': {share:.2g} of a density lies within rounding of {start:g}, where it is"
                " infinite; use the distance from there as observable"
            )


def singular_pieces(density: Expr, x: Observable) -> list[tuple[float, float]]:
    """Return pieces that cover the range, each from a point where the density may be infinite; none if it is finite."""
    ends = singular_ends(density, x)
    width = x.high - x.low
    infinite: dict[tuple[float, int], bool] = {}
    for end in ends:
        for side in (-1, 1):
            near = np.asarray(evaluate(density, {x.name: end + side * width * np.array([1e-6, 1e-12])}))
            inside = x.low < end + side * 1e-6 * width < x.high
            infinite[end, side] = inside and not bool(near[1] <= GROWS * near[0])
    if not any(infinite.values()):
        return []
    pieces = []
    for low, high in pairwise(sorted({x.low, *ends, x.high})):
        from_low, from_high = infinite.get((low, 1), False), infinite.get((high, -1), False)
        if from_low and from_high:
            pieces += [(low, (low + high) / 2), (high, (low + high) / 2)]
        else:
            pieces.append((high, low) if from_high else (low, high))
    return pieces


def from_pieces(pieces: Sequence[tuple[float, float]], v: Expr, power: int) -> tuple[Expr, Expr]:
    """Return a point of the pieces, each of which has an equal part of [0, 1], closer to its start than v; and its slope."""
    points, slopes = [], []
    for k, (start, end) in enumerate(pieces):
        part = len(pieces) * v - k
        point = start + (end - start) * part**power
        first = const(float(np.nextafter(start, end)))  # where the density is infinite at most next door
        points.append(apply(Op.MAX if end > start else Op.MIN, point, first))
        slopes.append(len(pieces) * abs(end - start) * power * part ** (power - 1))
    for k in reversed(range(len(pieces) - 1)):
        here = v < (k + 1) / len(pieces)
        points[k], slopes[k] = where(here, points[k], points[k + 1]), where(here, slopes[k], slopes[k + 1])
    return points[0], slopes[0]
