"""Exponential decays, also with oscillations, and cells of templates, seen with a Gaussian resolution, in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import (
    ONE,
    ZERO,
    Expr,
    Op,
    Operand,
    Operation,
    Table,
    TermRule,
    add_all,
    column,
    const,
    lookup,
    multiply_all,
    node_sum,
    to_expr,
    where,
)
from morefit.model.formulas import exprel, gaussian_area, is_wide, largest, smallest

Complex = tuple[Expr, Expr]
SERIES = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0)  # of erfcx, in inverse squares
FAR = 30.0  # from here on the next term is below 1e-17
NARROW_CELL = 0.5  # in widths of the resolution
CELL_NODES = 6  # of a Gauss-Legendre rule, exact to 1e-16 in such cells


def may_be_short(tau: Operand, sigma: Operand) -> bool:
    """Return whether limits let a lifetime be much shorter than a resolution."""
    return FAR * smallest(tau) <= largest(sigma)


def short_decay(t: Expr, tau: Expr, sigma: Expr) -> Expr:
    """Return a normalised exponential decay seen with a Gaussian resolution, also where the lifetime is much shorter.

    There derivatives by the rate cancel: it is a Gaussian times the asymptotic series of erfcx. That costs time.
    """
    left = sigma - tau * t / sigma  # of sigma, by a shift that vanishes with tau
    far, rest = left > FAR * tau, Op.MAX(left, FAR * tau)
    square = (tau / rest) ** 2
    series = to_expr(SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        series = series * square + coefficient
    short = Op.EXP(-0.5 * (t / sigma) ** 2) / (math.sqrt(2 * math.pi) * rest) * series
    return where(far, short, Op.SMEARED_DECAY(t, 1 / tau, sigma) / tau)


def short_decay_area(low: Expr, high: Expr, tau: Expr, mean: Expr, sigma: Expr) -> Expr:
    """Return its integral."""
    first, last = (short_decay(end - mean, tau, sigma) for end in (low, high))
    return gauss_area(low, high, mean, sigma) + tau * (first - last)


def smeared_decay_area(low: Expr, high: Expr, rate: Expr, mean: Expr, sigma: Expr) -> Expr:
    """Return the integral of ``SMEARED_DECAY`` over t, from its own differential equation f' = gauss - rate f."""
    decay = decay_at(low, high, mean)
    first, last = (decay(end - mean, rate, sigma) for end in (low, high))
    return (gauss_area(low, high, mean, sigma) + first - last) / rate


def decay_at(low: Expr, high: Expr, mean: Expr) -> Operation:
    """Return the operation for decays at the ends of a range.

    An integral over a range around the mean is not small: what a Gaussian has ten widths from it does not count.
    """
    known = low.op is high.op is mean.op is Op.CONST
    inside = known and low.number < mean.number < high.number
    return Op.DECAY_AT_END if inside else Op.SMEARED_DECAY


def smeared_wave(t: Expr, rate: Expr, frequency: Expr, sigma: Expr) -> Complex:
    r"""Return $e^{-\Gamma t}\cos\omega t$ and $e^{-\Gamma t}\sin\omega t$ for positive times, convolved with a Gaussian.

    They are the real and imaginary part of $\frac12 e^{-t^2/2\sigma^2}w(z)$ with $z=(\sigma\omega+i(\sigma\Gamma-t/\sigma))/\sqrt2$,
    in the lower half plane by w(z) = 2 exp(-z^2) - w(-z).
    """
    x, y = sigma * frequency / math.sqrt(2), (sigma * rate - t / sigma) / math.sqrt(2)
    gauss, size = 0.5 * Op.EXP(-0.5 * (t / sigma) ** 2), abs(y)
    near = gauss * Op.WOFZ_REAL(x, size), gauss * Op.WOFZ_IMAG(x, size)
    far = Op.EXP(rate * (0.5 * rate * sigma**2 - t) - 0.5 * (sigma * frequency) ** 2)
    phase = frequency * (t - rate * sigma**2)
    return (
        where(y < 0, far * Op.COS(phase) - near[0], near[0]),
        where(y < 0, far * Op.SIN(phase) + near[1], near[1]),
    )


def smeared_cells(centre: Expr, edges: Array, rows: Array, sigma: Expr, ends: tuple[Expr, Expr]) -> Expr:
    r"""Return the integral between two ends of a piecewise polynomial times $e^{-(t-c)^2/2\sigma^2}$, cell by cell.

    ``rows`` has a row for each power of the distance from the lower edge of a cell. With $v=(t-c)/\sigma$ and $a$ that of the
    lower edge, integrals of $(v-a)^j$ times a Gaussian follow from those of lower powers.
    """
    table, count = Table.of(np.column_stack([edges[:-1], edges[1:], rows.T])), len(edges) - 1
    rule = TermRule.of(count, 0)
    place = (2 + len(rows)) * column(rule.symbol)
    low, high, *powers = (lookup(table, place + k) for k in range(2 + len(rows)))
    start, end = ((Op.MIN(Op.MAX(edge, ends[0]), ends[1]) - centre) / sigma for edge in (low, high))
    first = (low - centre) / sigma
    side = where(start + end > 0, -1, 1)  # a far tail keeps its digits
    gauss = [Op.EXP(-0.5 * v**2) for v in (start, end)]
    area = math.sqrt(2 * math.pi) * side * (Op.NDTR(side * end) - Op.NDTR(side * start))
    moments = [area]
    for j in range(1, len(rows)):
        ends_part = (start - first) ** (j - 1) * gauss[0] - (end - first) ** (j - 1) * gauss[1]
        lower = (j - 1) * moments[j - 2] if j > 1 else ZERO
        moments.append(ends_part - first * moments[-1] + lower)
    terms = [power * sigma**j * moment for j, (power, moment) in enumerate(zip(powers, moments, strict=True))]
    total = add_all(*terms) if len(terms) > 1 else terms[0]
    if len(rows) > 3 and np.diff(edges).min() < NARROW_CELL * largest(sigma):
        direct = narrow_cell(start, end, first, [power * sigma**j for j, power in enumerate(powers)])
        total = where(end - start < NARROW_CELL, direct, total)
    return count * sigma * node_sum(total, rule)


def narrow_cell(start: Expr, end: Expr, first: Expr, powers: Sequence[Expr]) -> Expr:
    """Return the integral of a polynomial of v - first times a Gaussian over a narrow cell, by nodes.

    Moments from lower ones would lose as many digits as powers of the width have.
    """
    nodes, weights = np.polynomial.legendre.leggauss(CELL_NODES)
    parts = []
    for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
        v = start + (end - start) * (0.5 * (1 + node))
        body = powers[-1]
        for power in reversed(powers[:-1]):
            body = body * (v - first) + power
        parts.append(0.5 * weight * body * Op.EXP(-0.5 * v**2))
    return (end - start) * add_all(*parts)


def wave_area(first: Complex, last: Complex, gauss: Expr, rate: Expr, frequency: Expr) -> Complex:
    """Return the integrals of both waves between two times from their values there: f' = gauss - (rate - i frequency) f."""
    real, imaginary = gauss + first[0] - last[0], first[1] - last[1]
    square = rate**2 + frequency**2
    return (
        (real * rate - imaginary * frequency) / square,
        (real * frequency + imaginary * rate) / square,
    )


def gauss_area(low: Expr, high: Expr, mean: Expr, sigma: Expr) -> Expr:
    """Return the integral of a normalised Gaussian; in a wide range by decays of rate zero, which have the functions of others.

    They are those of the side that has less beyond the range, so that a far tail keeps its digits.
    """
    if not is_wide(low, high, sigma):
        return gaussian_area(low, high, mean, sigma) / (sigma * math.sqrt(2 * math.pi))
    decay = decay_at(low, high, mean)
    below, above = (
        decay(sign * (high - mean), ZERO, sigma) - decay(sign * (low - mean), ZERO, sigma) for sign in (1, -1)
    )
    return where(low + high > 2 * mean, -above, below)


# ------------------------------------------------------------------------- one resolution or another


class Resolution(Protocol):
    """How decay times are measured: decays and waves as they are seen, and their integrals."""

    def decay_by_lifetime(self, t: Expr, tau: Expr) -> Expr:
        """Return an exponential decay, by its lifetime, which may be short."""

    def decay_by_lifetime_area(self, low: Expr, high: Expr, tau: Expr) -> Expr:
        """Return its integral."""

    def decay(self, t: Expr, rate: Expr) -> Expr:
        """Return an exponential decay."""

    def decay_area(self, low: Expr, high: Expr, rate: Expr) -> Expr:
        """Return its integral."""

    def wave(self, t: Expr, rate: Expr, frequency: Expr) -> Complex:
        """Return an exponential decay times a cosine, and times a sine."""

    def wave_area(self, low: Expr, high: Expr, rate: Expr, frequency: Expr) -> Complex:
        """Return their integrals."""


class Perfect:
    """Times are exact, and positive."""

    def decay_by_lifetime(self, t: Expr, tau: Expr) -> Expr:
        return self.decay(t, 1 / tau)

    def decay_by_lifetime_area(self, low: Expr, high: Expr, tau: Expr) -> Expr:
        return self.decay_area(low, high, 1 / tau)

    def decay(self, t: Expr, rate: Expr) -> Expr:
        return where(t < 0, ZERO, Op.EXP(-rate * t))

    def decay_area(self, low: Expr, high: Expr, rate: Expr) -> Expr:
        first, width = Op.MAX(low, ZERO), Op.MAX(high, ZERO) - Op.MAX(low, ZERO)
        return Op.EXP(-rate * first) * width * exprel(-rate * width)

    def wave(self, t: Expr, rate: Expr, frequency: Expr) -> Complex:
        decay = self.decay(t, rate)
        return decay * Op.COS(frequency * t), decay * Op.SIN(frequency * t)

    def wave_area(self, low: Expr, high: Expr, rate: Expr, frequency: Expr) -> Complex:
        first, last = (self.wave(Op.MAX(end, ZERO), rate, frequency) for end in (low, high))
        return wave_area(first, last, ZERO, rate, frequency)


@dataclass(frozen=True, eq=False)
class Smeared:
    """Times are smeared by Gaussians, each with its share, its mean and its width."""

    gaussians: Sequence[tuple[Expr, Expr, Expr]]

    def decay_by_lifetime(self, t: Expr, tau: Expr) -> Expr:
        if not self.may_be_wide(tau):
            return self.decay(t, 1 / tau)
        return tau * add_all(*(f * short_decay(t - mean, tau, sigma) for f, mean, sigma in self.gaussians))

    def decay_by_lifetime_area(self, low: Expr, high: Expr, tau: Expr) -> Expr:
        if not self.may_be_wide(tau):
            return self.decay_area(low, high, 1 / tau)
        return tau * add_all(*(f * short_decay_area(low, high, tau, mu, s) for f, mu, s in self.gaussians))

    def may_be_wide(self, tau: Expr) -> bool:
        """Return whether limits let the resolution be much wider than a lifetime."""
        return any(may_be_short(tau, sigma) for _, _, sigma in self.gaussians)

    def decay(self, t: Expr, rate: Expr) -> Expr:
        return add_all(*(f * Op.SMEARED_DECAY(t - mean, rate, sigma) for f, mean, sigma in self.gaussians))

    def decay_area(self, low: Expr, high: Expr, rate: Expr) -> Expr:
        return add_all(*(f * smeared_decay_area(low, high, rate, mu, s) for f, mu, s in self.gaussians))

    def wave(self, t: Expr, rate: Expr, frequency: Expr) -> Complex:
        return self.total([smeared_wave(t - mu, rate, frequency, s) for _, mu, s in self.gaussians])

    def wave_area(self, low: Expr, high: Expr, rate: Expr, frequency: Expr) -> Complex:
        areas = []
        for _, mean, sigma in self.gaussians:
            first, last = (smeared_wave(end - mean, rate, frequency, sigma) for end in (low, high))
            gauss = gauss_area(low, high, mean, sigma)
            areas.append(wave_area(first, last, gauss, rate, frequency))
        return self.total(areas)

    def total(self, parts: Sequence[Complex]) -> Complex:
        """Add up what the Gaussians make of both waves."""
        shares = [share for share, _, _ in self.gaussians]
        real, imaginary = (
            add_all(*(multiply_all(f, part[k]) for f, part in zip(shares, parts, strict=True)))
            for k in (0, 1)
        )
        return real, imaginary


def resolution_of(
    name: str, widths: Sequence[Expr], means: Sequence[Expr], fractions: Sequence[Expr]
) -> Resolution:
    """Return the resolution that some Gaussians make, with a fraction for each but the last; none is perfect."""
    count = len(widths)
    if len(fractions) != max(count - 1, 0):
        raise ModelError(
            f"density '{name}': {count} {'width needs' if count == 1 else 'widths need'} {max(count - 1, 0)}"
            f" fraction{'s' * (count != 2)}, got {len(fractions)}; give a fraction for each but the last"
        )
    if len(means) not in {0, min(count, 1), count}:
        raise ModelError(
            f"density '{name}': {count} {'width needs' if count == 1 else 'widths need'} 0 or {count} means"
            f", got {len(means)}; give one for all, or one for each"
        )
    if not count:
        return Perfect()
    centres = [to_expr(mean) for mean in means] or [const(0)]
    centres = centres if len(centres) == count else centres * count
    shares = [*fractions, ONE - add_all(*fractions) if fractions else ONE]
    return Smeared(list(zip(shares, centres, widths, strict=True)))
