"""Exponential decays, also with oscillations, and cells of templates, seen with a Gaussian resolution, in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from morefit.arrays import Array
from morefit.dataclass import dataclass
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
from morefit.expr.operations.normal import TAIL_FROM
from morefit.model.formulas import exprel, gaussian_area, is_wide, largest, smallest

Complex = tuple[Expr, Expr]
Gaussian = tuple[Expr, Expr, Expr]  # its share, its mean, its width
# lifetimes in a width, from which on decays are made of what has a limit for short ones
FAR = math.sqrt(2) * TAIL_FROM
SHORT = 10.0  # lifetimes in a width: with fewer, what cancels is little
LATE = 7.0  # after a decay so far out w counts for 1e-21 of an oscillation
NARROW_CELL = 0.5  # in widths of the resolution
CELL_NODES = 6  # of a Gauss-Legendre rule, exact to 1e-16 in such cells


def may_be_short(tau: Operand, sigma: Operand) -> bool:
    """Return whether limits let a lifetime be so much shorter than a resolution that derivatives lose more than 1e-12."""
    return SHORT * smallest(tau) <= largest(sigma)


def short_decay(t: Expr, tau: Expr, sigma: Expr) -> Expr:
    """Return a normalised exponential decay seen with a Gaussian resolution, also where the lifetime is much shorter.

    There derivatives by the rate cancel: it is a Gaussian times a function of tau that is regular at zero. That costs time.
    """
    left = sigma - tau * t / sigma  # of sigma, by a shift that vanishes with tau
    far = sigma / tau - t / sigma > FAR
    rest = where(far, left, 0.5 * FAR * tau)  # elsewhere functions of it need not be computed
    height = Op.TAIL(rest / (math.sqrt(2) * tau)) / (math.sqrt(2 * math.pi) * rest)
    short = Op.EXP(-0.5 * (t / sigma) ** 2) * height
    return where(far, short, Op.SMEARED_DECAY(t, 1 / tau, sigma) / tau)


def short_decay_area(low: Expr, high: Expr, tau: Expr, mean: Expr, sigma: Expr) -> Expr:
    """Return its integral, from its differential equation tau f' = gauss - f."""
    first, last = (short_decay(end - mean, tau, sigma) for end in (low, high))
    return gauss_area(low, high, mean, sigma) + tau * (first - last)


def smeared_decay_area(low: Expr, high: Expr, rate: Expr, mean: Expr, sigma: Expr) -> Expr:
    """Return the integral of ``SMEARED_DECAY`` over t times the rate, from its differential equation f' = gauss - rate f."""
    decay = decay_at(low, high, mean)
    first, last = (decay(end - mean, rate, sigma) for end in (low, high))
    return gauss_area(low, high, mean, sigma) + first - last


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
    gauss, size = 0.5 * Op.EXP(-0.5 * (t / sigma) ** 2), where(y < -LATE, LATE, abs(y))
    near = gauss * Op.WOFZ_REAL(x, size), gauss * Op.WOFZ_IMAG(x, size)
    far = Op.EXP(rate * (0.5 * rate * sigma**2 - t) - 0.5 * (sigma * frequency) ** 2)
    phase = frequency * (t - rate * sigma**2)
    return (
        where(y < 0, far * Op.COS(phase) - near[0], near[0]),
        where(y < 0, far * Op.SIN(phase) + near[1], near[1]),
    )


def short_wave(t: Expr, tau: Expr, frequency: Expr, sigma: Expr) -> Complex:
    r"""Return both waves over the lifetime, also where that is much shorter than the resolution.

    There they are a Gaussian times $\lambda S(z)/(\sigma-\lambda\tau t/\sigma)$ with $\lambda=1/(1-i\omega\tau)$, where
    $S=-i\sqrt\pi zw(z)$ has a limit.
    """
    far = sigma / tau - t / sigma > FAR
    x, y = sigma * frequency / math.sqrt(2), (sigma / tau - t / sigma) / math.sqrt(2)
    safe = where(far, y, TAIL_FROM)
    tail = Op.WOFZ_TAIL_REAL(x, safe), Op.WOFZ_TAIL_IMAG(x, safe)
    # sigma (1 - i omega tau) - tau t / sigma
    real, imaginary = where(far, sigma - tau * t / sigma, FAR * tau), -sigma * frequency * tau
    size = math.sqrt(2 * math.pi) * (real**2 + imaginary**2)
    gauss = Op.EXP(-0.5 * (t / sigma) ** 2) / size
    short = (
        gauss * (tail[0] * real + tail[1] * imaginary),
        gauss * (tail[1] * real - tail[0] * imaginary),
    )
    near = smeared_wave(t, 1 / tau, frequency, sigma)
    return where(far, short[0], near[0] / tau), where(far, short[1], near[1] / tau)


def short_wave_area(low: Expr, high: Expr, tau: Expr, frequency: Expr, mean: Expr, sigma: Expr) -> Complex:
    """Return their integrals, from tau f' = gauss - (1 - i frequency tau) f for both together."""
    first, last = (short_wave(end - mean, tau, frequency, sigma) for end in (low, high))
    real = gauss_area(low, high, mean, sigma) + tau * (first[0] - last[0])
    imaginary, turn = tau * (first[1] - last[1]), frequency * tau
    square = 1 + turn**2
    return (real - imaginary * turn) / square, (real * turn + imaginary) / square


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
    """How decay times are measured: decays and waves as they are seen, and their integrals, all over the lifetime if they are smeared."""

    @property
    def gaussians(self) -> Sequence[Gaussian]:
        """The Gaussians that times are smeared by, none if they are exact."""

    def decay(self, t: Expr, tau: Expr, shift: Expr = ZERO) -> Expr:
        """Return an exponential decay, whose rate is one over a lifetime and what is added to it."""

    def decay_area(self, low: Expr, high: Expr, tau: Expr, shift: Expr = ZERO) -> Expr:
        """Return its integral."""

    def wave(self, t: Expr, tau: Expr, frequency: Expr) -> Complex:
        """Return an exponential decay times a cosine, and times a sine."""

    def wave_area(self, low: Expr, high: Expr, tau: Expr, frequency: Expr) -> Complex:
        """Return their integrals."""


class Perfect:
    """Times are exact, and positive."""

    gaussians: Sequence[Gaussian] = ()

    def decay(self, t: Expr, tau: Expr, shift: Expr = ZERO) -> Expr:
        return where(t < 0, ZERO, Op.EXP(-(1 / tau + shift) * t))

    def decay_area(self, low: Expr, high: Expr, tau: Expr, shift: Expr = ZERO) -> Expr:
        first, width = Op.MAX(low, ZERO), Op.MAX(high, ZERO) - Op.MAX(low, ZERO)
        rate = 1 / tau + shift
        return Op.EXP(-rate * first) * width * exprel(-rate * width)

    def wave(self, t: Expr, tau: Expr, frequency: Expr) -> Complex:
        decay = self.decay(t, tau)
        return decay * Op.COS(frequency * t), decay * Op.SIN(frequency * t)

    def wave_area(self, low: Expr, high: Expr, tau: Expr, frequency: Expr) -> Complex:
        first, last = (self.wave(Op.MAX(end, ZERO), tau, frequency) for end in (low, high))
        return wave_area(first, last, ZERO, 1 / tau, frequency)


@dataclass(frozen=True, eq=False)
class Smeared:
    """Times are smeared by Gaussians, each with its share, its mean and its width."""

    gaussians: Sequence[Gaussian]

    def decay(self, t: Expr, tau: Expr, shift: Expr = ZERO) -> Expr:
        def one(mean: Expr, sigma: Expr) -> Expr:
            if not may_be_short(tau, sigma):
                return Op.SMEARED_DECAY(t - mean, 1 / tau + shift, sigma) / tau
            ratio = shorter(tau, shift)
            return ratio * short_decay(t - mean, ratio * tau, sigma)

        return add_all(*(f * one(mean, sigma) for f, mean, sigma in self.gaussians))

    def decay_area(self, low: Expr, high: Expr, tau: Expr, shift: Expr = ZERO) -> Expr:
        ratio = shorter(tau, shift)

        def one(mean: Expr, sigma: Expr) -> Expr:
            if not may_be_short(tau, sigma):
                return smeared_decay_area(low, high, 1 / tau + shift, mean, sigma)
            return short_decay_area(low, high, ratio * tau, mean, sigma)

        return ratio * add_all(*(f * one(mean, sigma) for f, mean, sigma in self.gaussians))

    def wave(self, t: Expr, tau: Expr, frequency: Expr) -> Complex:
        def one(mean: Expr, sigma: Expr) -> Complex:
            if may_be_short(tau, sigma):
                return short_wave(t - mean, tau, frequency, sigma)
            real, imaginary = smeared_wave(t - mean, 1 / tau, frequency, sigma)
            return real / tau, imaginary / tau

        return self.total([one(mean, sigma) for _, mean, sigma in self.gaussians])

    def wave_area(self, low: Expr, high: Expr, tau: Expr, frequency: Expr) -> Complex:
        def one(mean: Expr, sigma: Expr) -> Complex:
            if may_be_short(tau, sigma):
                return short_wave_area(low, high, tau, frequency, mean, sigma)
            first, last = (smeared_wave(end - mean, 1 / tau, frequency, sigma) for end in (low, high))
            gauss = gauss_area(low, high, mean, sigma)
            real, imaginary = wave_area(first, last, gauss, 1 / tau, frequency)
            return real / tau, imaginary / tau

        return self.total([one(mean, sigma) for _, mean, sigma in self.gaussians])

    def total(self, parts: Sequence[Complex]) -> Complex:
        """Add up what the Gaussians make of both waves."""
        shares = [share for share, _, _ in self.gaussians]
        real, imaginary = (
            add_all(*(multiply_all(f, part[k]) for f, part in zip(shares, parts, strict=True)))
            for k in (0, 1)
        )
        return real, imaginary


def shorter(tau: Expr, shift: Expr) -> Expr:
    """Return one over the rate in units of a lifetime."""
    return ONE if shift is ZERO else 1 / (1 + tau * shift)


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
