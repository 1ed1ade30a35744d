"""Write differences of gamma functions at x + h and x, and the beta function, without the cancellation of large terms.

Stirling's series are subtracted term by term: those of 1 / x^2 by divided differences, all others as fractions of one sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.targets.coefficients import (
    DIGAMMA,
    LARGE_SHAPE,
    LOG_TAIL,
    STIRLING_TAIL,
    TRIGAMMA,
    TWO_THIRDS,
)
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function
from morefit.targets.cpu.writer import Writer

ASYMPTOTIC_FROM = 4  # of digamma and trigamma
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Fall:
    """The inverses of x and x + h for an x that is large enough for a series, and their differences."""

    def __init__(self, w: Writer, x: str, h: str, start: float) -> None:
        self.small = w.compare("olt", x, start)
        self.x = w.add(x, w.select(self.small, start, 0.0))
        self.end = w.add(self.x, h)
        self.inverse, self.last = w.div(1.0, self.x), w.div(1.0, self.end)
        self.ratio = w.mul(h, self.inverse)
        self.rise = w.mul(self.ratio, self.last)  # 1 / x - 1 / (x + h)
        self.squares = w.mul(self.inverse, self.inverse), w.mul(self.last, self.last)
        self.square_rise = w.mul(self.rise, w.add(self.inverse, self.last))


def _divided(w: Writer, coefficients: Sequence[float], first: str, second: str) -> str:
    """Return (P(first) - P(second)) / (first - second) for a polynomial P."""
    value, slope = w.number(coefficients[-1]), w.number(0.0)
    for c in coefficients[-2::-1]:
        slope, value = w.fma(slope, second, value), w.fma(value, first, c)
    return slope


def _ends(w: Writer, x: str, h: str, result: str, at_infinity: float) -> str:
    """Put in the limits of infinite arguments, and NaN outside x >= 0, h >= 0."""
    result = w.choose("oeq", x, INFINITY, 0.0, w.choose("oeq", h, INFINITY, at_infinity, result))
    inside = w.both(w.compare("oge", x, 0.0), w.compare("oge", h, 0.0))
    return w.select(inside, result, NAN)


@vector_function(wide=True, out_of_line=True)
def digamma_rise(w: Writer, x: str, h: str) -> str:
    """Return digamma(x + h) - digamma(x) for x > 0 and h >= 0: a sum of positive terms."""
    fall = Fall(w, x, h, ASYMPTOTIC_FROM)
    series = w.mul(fall.square_rise, _divided(w, (0.0, *DIGAMMA), *fall.squares))
    total = w.add(w.call("log1p", fall.ratio), w.fma(fall.rise, 0.5, series))
    steps = w.number(0.0)
    for k in range(ASYMPTOTIC_FROM):
        place = w.add(x, float(k))
        steps = w.add(steps, w.div(w.div(h, w.add(place, h)), place))
    return _ends(w, x, h, w.select(fall.small, w.add(total, steps), total), INFINITY)


@vector_function(wide=True, out_of_line=True)
def trigamma_rise(w: Writer, x: str, h: str) -> str:
    """Return trigamma(x + h) - trigamma(x) for x > 0 and h >= 0: a sum of negative terms."""
    fall = Fall(w, x, h, ASYMPTOTIC_FROM)
    rest = w.mul(fall.squares[1], w.polynomial(TRIGAMMA, fall.squares[1]))
    series = w.mul(fall.inverse, _divided(w, (0.0, *TRIGAMMA), *fall.squares))
    total = w.fma(fall.rise, rest, w.fma(fall.square_rise, w.add(series, 0.5), fall.rise))
    steps = w.number(0.0)
    for k in range(ASYMPTOTIC_FROM):
        place = w.add(x, float(k))
        inverse, last = w.div(1.0, place), w.div(1.0, w.add(place, h))
        steps = w.fma(w.mul(w.mul(h, last), inverse), w.add(inverse, last), steps)
    result = w.neg(w.select(fall.small, w.add(total, steps), total))
    result = w.choose("oeq", h, INFINITY, w.neg(w.call("trigamma", x)), result)
    return _ends(w, x, w.choose("oeq", h, INFINITY, 1.0, h), result, 0.0)


def lgamma_rise(w: Writer, x: str, h: str) -> str:
    """Return lgamma(x + h) - lgamma(x) for x > 0, with all digits where h is much smaller than x or one."""
    fall = Fall(w, x, h, LARGE_SHAPE)
    series = w.mul(w.mul(fall.inverse, fall.square_rise), _divided(w, STIRLING_TAIL, *fall.squares))
    series = w.fma(fall.rise, w.polynomial(STIRLING_TAIL, fall.squares[1]), series)
    growth = w.call("log1p", fall.ratio)
    bend = w.sub(w.fma(fall.x, growth, w.neg(h)), w.fma(growth, 0.5, series))
    total = w.fma(h, w.call("log", fall.end), bend)
    product = w.div(h, x)  # of 1 + h / (x + k), less one
    for k in range(1, int(LARGE_SHAPE)):
        ratio = w.div(h, w.add(x, float(k)))
        product = w.add(product, w.fma(product, ratio, ratio))
    return w.select(fall.small, w.sub(total, w.call("log1p", product)), total)


def stirling_tail(w: Writer, x: str) -> str:
    """Return what Stirling's formula for lgamma lacks, for x >= LARGE_SHAPE."""
    inverse = w.div(1.0, x)
    return w.mul(inverse, w.polynomial(STIRLING_TAIL, w.mul(inverse, inverse)))


def log_bend(w: Writer, distance: str, ratio: str) -> str:
    """Return log(1 + distance) - distance; 1 + distance is also a ratio, which has its digits where it is small."""
    s = w.div(distance, w.add(distance, 2.0))
    z = w.mul(s, s)
    third = w.fma(z, w.polynomial(LOG_TAIL, z), TWO_THIRDS[0])
    near = w.mul(s, w.fma(z, third, w.neg(distance)))
    far = w.choose("ogt", distance, -0.5, w.call("log1p", distance), w.call("log", ratio))
    close = w.both(w.compare("ogt", distance, -0.29), w.compare("olt", distance, 0.41))
    return w.select(close, near, w.sub(far, distance))


@vector_function(wide=True, out_of_line=True)
def betaln(w: Writer, a: str, b: str) -> str:
    """Return the logarithm of the beta function, for positive a and b."""
    less = w.compare("olt", a, b)
    p, q = w.select(less, a, b), w.select(less, b, a)
    total = w.add(p, q)
    small = w.sub(w.call("lgamma", p), lgamma_rise(w, q, p))
    shares = w.fma(w.neg(q), w.call("log1p", w.div(p, q)), w.mul(w.call("log", q), -0.5))
    shares = w.fma(w.sub(p, 0.5), w.call("log", w.div(p, total)), shares)
    tails = w.sub(w.add(stirling_tail(w, p), stirling_tail(w, q)), stirling_tail(w, total))
    large = w.add(w.add(shares, HALF_LOG_TWO_PI), tails)
    result = w.choose("olt", p, LARGE_SHAPE, small, large)
    result = w.choose("oeq", q, INFINITY, -INFINITY, w.choose("oeq", p, 0.0, INFINITY, result))
    return w.select(w.compare("oge", p, 0.0), result, NAN)
