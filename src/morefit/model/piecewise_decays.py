"""Decays and oscillations times a piecewise polynomial, such as a spline for an acceptance, integrated in closed form.

A decay f that is seen with a Gaussian resolution g obeys f' = g - z f, with the rate z, which is complex for oscillations. For a
polynomial P there is a polynomial Q with z Q - Q' = P, and the integral of P f is that of Q g and a difference of Q f at both ends
(M. Karbach, G. Raven, M. Schiller, arXiv:1407.0748). All cells are summed in one loop inside the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    Table,
    TermRule,
    add_all,
    column,
    evaluate,
    lookup,
    multiply_all,
    node_sum,
    symbols,
    toposort,
    where,
)
from morefit.model.formulas import inverse_size, largest
from morefit.model.integrate.separate import separate
from morefit.model.observable import Observable
from morefit.model.parameter import Parameter
from morefit.model.resolution import SHORT, Complex, Resolution, smeared_wave

MAX_POWER = 3
MAX_LOSS = 2e-11  # of an integral at start values, by rounding of terms that cancel
LIMIT_LOSS = 1e-8  # of an integral at the limits of parameters, as far as they have any
MIN_WIDTH = 0.1  # of a cell, in widths of the resolution: in narrower ones moments of a Gaussian cancel
ROUNDING = 1e-12  # of the values of a polynomial


@dataclass(frozen=True, eq=False)
class Cells:
    """A piecewise polynomial: a row of numbers for each power of the distance from the lower edge of a cell."""

    edges: Array
    rows: Array

    def loss(self, rate: float) -> float:
        """Return the rounding error of its integral with a decay, as far as terms with inverse powers of a rate cancel."""
        order = max(int(np.max(np.nonzero(np.any(self.rows != 0, axis=1))[0], initial=0)), 0)
        shortest = rate * float(np.min(np.diff(self.edges)))
        if shortest <= 0:
            return math.inf
        return float(np.finfo(np.float64).eps) * math.factorial(order) / shortest**order

    def is_wide(self, sigma: Expr | None) -> bool:
        """Return whether its cells are not much narrower than a resolution."""
        return sigma is None or float(np.min(np.diff(self.edges))) >= MIN_WIDTH * reach(sigma)

    def positive(self) -> Cells:
        """Return the part of it that lies above zero."""
        low, high = np.maximum(self.edges[:-1], 0.0), self.edges[1:]
        shifts, some = low - self.edges[:-1], high > 0
        rows = np.array(
            [
                sum(math.comb(j, k) * self.rows[j] * shifts ** (j - k) for j in range(k, len(self.rows)))
                for k in range(len(self.rows))
            ]
        )
        return Cells(np.append(low[some], high[-1]), rows[:, some])


Terms = list[tuple[Expr, Cells]]  # factors that depend on parameters, and what they multiply


def piecewise_terms(function: Expr, x: Observable) -> Terms | None:
    """Write a function of an observable as a sum of piecewise polynomials times functions of parameters, if it is one."""
    terms = separate(function)
    parts: Terms = []
    for factors, events in terms or ():
        cells = cells_of(reduce(multiply_all, events, ONE), x)
        if cells is None:
            return None
        parts.append((reduce(multiply_all, factors, ONE), cells))
    return parts or None


def cells_of(function: Expr, x: Observable) -> Cells | None:
    """Return a function of one observable as a piecewise polynomial of low order, if it is one."""
    inner: list[float] = []
    for node in toposort(function):
        kinks = kinks_of(node, x.expr)
        if kinks is None:
            return None
        inner += [kink for kink in kinks if x.low < kink < x.high]
    edges = np.array([x.low, *sorted(set(inner)), x.high])
    widths = np.diff(edges)
    # more points than coefficients, none at an edge: a function of higher order is none of these
    points = 0.5 * (1 - np.cos(np.pi * (np.arange(2 * MAX_POWER) + 0.5) / (2 * MAX_POWER)))
    places = edges[:-1, None] + widths[:, None] * points
    values = np.broadcast_to(evaluate(function, {x.name: places}), places.shape)
    matrix = points[:, None] ** np.arange(MAX_POWER + 1)
    powers = np.linalg.lstsq(matrix, values.T, rcond=None)[0]
    scale = np.max(np.abs(values), initial=0.0)
    if not np.all(np.abs(matrix @ powers - values.T) <= ROUNDING * scale):
        return None
    powers[np.abs(powers) <= ROUNDING * scale] = 0.0
    return Cells(edges, powers / widths ** np.arange(MAX_POWER + 1)[:, None])


def kinks_of(node: Expr, x: Expr) -> Sequence[float] | None:
    """Return where an operation of a piecewise polynomial has a kink along a column; None if it may be of no such polynomial."""
    if node.op in (Op.CONST, Op.ADD, Op.MUL, Op.TABLE, Op.LOOKUP, Op.WHERE) or node is x:
        return ()
    if node.op is Op.POW:
        power = node.args[1]
        whole = power.op is Op.CONST and power.number in range(MAX_POWER + 1)
        return () if whole else None
    if node.op is Op.CELL and node.args[1] is x:
        assert isinstance(node.args[0].value, Table)
        return tuple(node.args[0].value.array.tolist())
    if node.op in (Op.LESS, Op.LESS_EQUAL) and any(a is x for a in node.args):
        return tuple(a.number for a in node.args if a.op is Op.CONST) or None
    return None


# ------------------------------------------------------------------------------------ integrals


@dataclass(frozen=True, eq=False)
class Wave:
    """A decay times a cosine and a sine, each with a factor; a frequency of zero makes it a decay.

    ``shift`` is what its rate has beyond one over the lifetime.
    """

    cos: Expr
    sin: Expr
    shift: Expr
    frequency: Expr


def accepted_waves(
    function: Expr, x: Observable, tau: Expr, waves: Sequence[Wave], seen: Resolution
) -> Expr | None:
    """Return the integral of a function times a sum of waves that are seen with a resolution, if there is a closed form.

    None if the function is no piecewise polynomial, or where limits of parameters let so much cancel that a rule is better.
    """
    if any(reach(sigma) * reach(1 / tau) >= SHORT for _, _, sigma in seen.gaussians):
        return None  # a lifetime that is not much longer than the resolution has other formulas
    shifts = [wave.shift for wave in waves]
    start = inverse_size(reach(tau)) - max(map(reach, shifts))
    slowest = inverse_size(largest(tau)) - max(map(largest, shifts))
    terms = piecewise_terms(function, x)
    gaussians: Sequence[tuple[Expr, Expr, Expr | None]] = seen.gaussians or [(ONE, ZERO, None)]
    if terms is None or not all(
        cells.is_wide(sigma) and cells.loss(start) <= MAX_LOSS
        for _, cells in terms
        for _, _, sigma in gaussians
    ):
        return None
    if slowest > 0 and any(cells.loss(slowest) > LIMIT_LOSS for _, cells in terms):
        return None
    parts = []
    for factor, cells in terms:
        for share, mean, sigma in gaussians:
            for wave in waves:
                rate = 1 / tau if wave.shift is ZERO else 1 / tau + wave.shift
                areas = accepted_wave(cells, rate, wave.frequency, mean, sigma)
                heights = zip((wave.cos, wave.sin), areas, strict=True)
                parts += [
                    multiply_all(factor, share, height, area)
                    for height, area in heights
                    if height is not ZERO and area is not ZERO
                ]
    return add_all(*parts)


def reach(expr: Expr) -> float:
    """Return how large a quantity is in size at start values, at the ends of the ranges of observables."""
    starts = {p.name: p.start for p in symbols(Op.SCALAR, expr) if isinstance(p, Parameter)}
    own = [o for o in symbols(Op.COLUMN, expr) if isinstance(o, Observable)]
    corners = np.meshgrid(*((o.low, o.high) for o in own))
    values = evaluate(expr, starts | dict(zip([o.name for o in own], corners, strict=True)))
    return float(np.max(np.abs(values)))


def accepted_wave(cells: Cells, rate: Expr, frequency: Expr, mean: Expr, sigma: Expr | None) -> Complex:
    """Return the integrals of a piecewise polynomial times a decay with a cosine, and with a sine.

    With the frequency zero they are those of a decay, and zero. Without ``sigma`` times are exact.
    """
    own = cells.positive() if sigma is None else cells
    count, powers = len(own.edges) - 1, len(own.rows)
    rule = TermRule.of(count, 0)
    table = Table.of(np.column_stack([own.edges[:-1], own.edges[1:], own.rows.T]))
    place = (2 + powers) * column(rule.symbol)
    low, high, *numbers = (lookup(table, place + k) for k in range(2 + powers))
    curve = solution(numbers, inverse_of(rate, frequency))
    first, last = (seen_wave(end - mean, rate, frequency, sigma) for end in (low, high))
    parts = [product(curve[0], first), scaled(product(value_at(curve, high - low), last), -1.0)]
    if sigma is not None:
        moments = gaussian_moments(low, high, mean, sigma, powers)
        parts += [scaled(q, moment) for q, moment in zip(curve, moments, strict=True)]
    real, imaginary = (total_of([part[k] for part in parts]) for k in (0, 1))
    return count * node_sum(real, rule), ZERO if imaginary is ZERO else count * node_sum(imaginary, rule)


def seen_wave(t: Expr, rate: Expr, frequency: Expr, sigma: Expr | None) -> Complex:
    """Return a decay with a cosine and with a sine at a time; with the frequency zero a decay, and zero."""
    if sigma is None:
        decay = Op.EXP(-rate * t)
        if frequency is ZERO:
            return decay, ZERO
        return decay * Op.COS(frequency * t), decay * Op.SIN(frequency * t)
    if frequency is ZERO:
        return Op.SMEARED_DECAY(t, rate, sigma), ZERO
    return smeared_wave(t, rate, frequency, sigma)


def inverse_of(rate: Expr, frequency: Expr) -> Complex:
    """Return one over rate - i frequency."""
    if frequency is ZERO:
        return 1 / rate, ZERO
    square = rate**2 + frequency**2
    return rate / square, frequency / square


def solution(powers: Sequence[Expr], inverse: Complex) -> list[Complex]:
    """Return the coefficients of the polynomial Q with z Q - Q' = P, from those of P and one over z."""
    curve: list[Complex] = []
    above: Complex = (ZERO, ZERO)
    for k, power in reversed(list(enumerate(powers))):
        slope = scaled(above, float(k + 1))
        above = product((total_of([power, slope[0]]), slope[1]), inverse)
        curve.insert(0, above)
    return curve


def value_at(curve: Sequence[Complex], distance: Expr) -> Complex:
    """Return the value of a polynomial."""
    total = curve[-1]
    for q in reversed(curve[:-1]):
        raised = scaled(total, distance)
        total = total_of([q[0], raised[0]]), total_of([q[1], raised[1]])
    return total


def gaussian_moments(low: Expr, high: Expr, mean: Expr, sigma: Expr, count: int) -> list[Expr]:
    """Return the integrals of powers of the distance from ``low`` times a normalised Gaussian between two places."""
    start, end = (low - mean) / sigma, (high - mean) / sigma
    side = where(start + end > 0, -1, 1)  # a far tail keeps its digits
    first, last = (Op.EXP(-0.5 * v**2) / math.sqrt(2 * math.pi) for v in (start, end))
    moments = [side * (Op.NDTR(side * end) - Op.NDTR(side * start))]
    for j in range(1, count):
        ends = first - last if j == 1 else -((end - start) ** (j - 1)) * last
        lower = [(j - 1) * moments[j - 2]] if j > 1 else []
        moments.append(add_all(ends, -start * moments[-1], *lower))
    return [sigma**j * moment if j else moment for j, moment in enumerate(moments)]


def product(a: Complex, b: Complex) -> Complex:
    """Return the product of two complex numbers, either of which may be real."""
    if a[1] is ZERO or b[1] is ZERO:
        real, other = (a[0], b) if a[1] is ZERO else (b[0], a)
        return scaled(other, real)
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def scaled(a: Complex, factor: Expr | float) -> Complex:
    """Return a complex number times a real one."""
    real, imaginary = (ZERO if part is ZERO else factor * part for part in a)
    return real, imaginary


def total_of(parts: Sequence[Expr]) -> Expr:
    """Add up what is not zero."""
    some = [part for part in parts if part is not ZERO]
    return add_all(*some) if len(some) > 1 else (some[0] if some else ZERO)
