"""Write incomplete gamma functions, differences of gamma functions at x + h and x, and the beta function.

Incomplete ones are a series or a continued fraction, with derivatives by the shape. In differences large terms do not cancel:
Stirling's series are subtracted term by term, those of 1 / x^2 by divided differences, all others as fractions of one sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from morefit.targets.coefficients import (
    DIGAMMA,
    INCOMPLETE_LIMIT,
    INVERSE_ROOT_TWO_PI,
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


def _ends_of_rise(w: Writer, x: str, h: str, result: str, at_infinity: float) -> str:
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
    return _ends_of_rise(w, x, h, w.select(fall.small, w.add(total, steps), total), INFINITY)


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
    return _ends_of_rise(w, x, w.choose("oeq", h, INFINITY, 1.0, h), result, 0.0)


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


NEGLIGIBLE = 2.0**-56
TINY = 1e-300


def _series(w: Writer, a: str, x: str) -> Sequence[str]:
    """Return the sum of x^k / ((a + 1) ... (a + k)) over k, and its first two derivatives by a."""
    zero, one = w.number(0.0), w.number(1.0)

    def go(*state: str) -> tuple[list[str], str]:
        total, slope, bend, term, k, first, second = state
        k = w.add(k, one)
        inverse = w.div(one, w.add(a, k))
        term = w.mul(term, w.mul(x, inverse))
        first, second = w.add(first, inverse), w.fma(inverse, inverse, second)
        total = w.add(total, term)
        slope = w.fma(w.neg(term), first, slope)
        bend = w.fma(term, w.fma(first, first, second), bend)
        going = w.compare("ogt", term, w.mul(total, NEGLIGIBLE))
        return [total, slope, bend, term, k, first, second], going

    return w.repeat([one, zero, zero, one, zero, zero, zero], go, INCOMPLETE_LIMIT)[:3]


def _fraction(w: Writer, a: str, x: str) -> Sequence[str]:
    """Return Gamma(a, x) e^x / x^a as a continued fraction (Lentz), and two derivatives of its logarithm by a."""
    zero, one = w.number(0.0), w.number(1.0)
    b = w.add(w.sub(x, a), one)
    d = w.div(one, b)
    square = w.mul(d, d)
    start = [d, d, square, zero, b, d, square, w.mul(w.add(square, square), d), w.number(TINY), zero, zero]

    def go(*state: str) -> tuple[list[str], str]:
        h, log_slope, log_bend, k, b, d, d1, d2, e, e1, e2 = state
        k = w.add(k, one)
        n = w.mul(w.neg(k), w.sub(k, a))  # its slope is k, that of b is -1
        b = w.add(b, 2.0)
        below = w.fma(n, d, b)
        below1 = w.fma(n, d1, w.fma(k, d, -1.0))
        below2 = w.fma(n, d2, w.mul(w.add(k, k), d1))
        above = w.fma(n, e, b)
        above1 = w.fma(n, e1, w.fma(k, e, -1.0))
        above2 = w.fma(n, e2, w.mul(w.add(k, k), e1))
        d, d1, d2, below_slope, below_bend = _inverse(w, below, below1, below2)
        e, e1, e2, above_slope, above_bend = _inverse(w, above, above1, above2)
        change = w.mul(d, above)
        slope, bend = w.sub(above_slope, below_slope), w.sub(above_bend, below_bend)
        # all three: the fraction of a whole shape ends, that of its neighbours does not
        off = [w.absolute(v) for v in (w.sub(change, one), slope, bend)]
        going = w.compare("ogt", w.add(off[0], w.add(off[1], off[2])), NEGLIGIBLE)
        slope, bend = w.add(log_slope, slope), w.add(log_bend, bend)
        return [w.mul(h, change), slope, bend, k, b, d, d1, d2, e, e1, e2], going

    return w.repeat(start, go, INCOMPLETE_LIMIT)[:3]


def _inverse(w: Writer, y: str, y1: str, y2: str) -> tuple[str, str, str, str, str]:
    """Return 1 / y and its two derivatives, and two derivatives of log(y)."""
    inverse = w.div(1.0, y)
    slope = w.mul(y1, inverse)
    square = w.mul(slope, slope)
    curve = w.mul(y2, inverse)
    second = w.mul(inverse, w.sub(w.add(square, square), curve))
    return inverse, w.mul(w.neg(slope), inverse), second, slope, w.sub(curve, square)


def _density(w: Writer, a: str, x: str, less: float = 0.0) -> str:
    """Return x^(a - less) e^-x / Gamma(a); of large shapes by Stirling's formula about x = a, where little cancels."""
    large = w.compare("oge", a, LARGE_SHAPE)
    inverse = w.div(1.0, a)
    about = w.mul(a, log_bend(w, w.mul(w.sub(x, a), inverse), w.mul(x, inverse)))
    power = w.sub(a, less)
    plain = w.sub(w.fma(power, w.call("log", x), w.neg(x)), w.call("lgamma", a))
    size = w.mul(w.intrinsic("sqrt", a), INVERSE_ROOT_TWO_PI)
    factor = w.select(large, w.div(size, x) if less else size, 1.0)
    return w.mul(factor, w.call("exp", w.select(large, w.sub(about, stirling_tail(w, a)), plain)))


def _parts(w: Writer, a: str, x: str) -> tuple[str, str, Sequence[str], Sequence[str]]:
    """Return where the series is used, x^a e^-x / Gamma(a), the series and the fraction."""
    low = w.compare("olt", x, w.add(a, 1.0))
    series = _series(w, a, w.select(low, x, 0.0))
    fraction = _fraction(w, a, w.select(low, w.add(a, 100.0), x))
    return low, _density(w, a, x), series, fraction


def _ends(w: Writer, a: str, x: str, result: str, at_zero: float, at_infinity: float) -> str:
    """Put in the values at zero and infinity, and NaN outside a >= 0, x >= 0."""
    result = w.choose("oeq", x, 0.0, at_zero, w.choose("oeq", x, INFINITY, at_infinity, result))
    inside = w.both(w.compare("ogt", a, 0.0), w.compare("oge", x, 0.0))
    inside = w.both(inside, w.compare("olt", a, INFINITY))
    limit = w.choose("ogt", x, 0.0, at_infinity, NAN)
    return w.select(inside, result, w.choose("oeq", a, 0.0, limit, NAN))


def _gammainc(w: Writer, a: str, x: str) -> tuple[str, str, str]:
    """Return where P is computed, P there, and Q elsewhere."""
    low, density, series, fraction = _parts(w, a, x)
    return low, w.mul(w.div(density, a), series[0]), w.mul(density, fraction[0])


@vector_function(wide=True, out_of_line=True)
def gammainc(w: Writer, a: str, x: str) -> str:
    """Return P(a, x), the distribution function of a gamma distribution of shape a."""
    low, below, above = _gammainc(w, a, x)
    return _ends(w, a, x, w.select(low, below, w.sub(1.0, above)), 0.0, 1.0)


@vector_function(wide=True, out_of_line=True)
def gammaincc(w: Writer, a: str, x: str) -> str:
    """Return Q(a, x) = 1 - P(a, x), without loss for large x."""
    low, below, above = _gammainc(w, a, x)
    return _ends(w, a, x, w.select(low, w.sub(1.0, below), above), 1.0, 0.0)


@vector_function(wide=True, out_of_line=True)
def gammainc_by_shape(w: Writer, a: str, x: str) -> str:
    """Return the derivative of P(a, x) by a."""
    low, density, series, fraction = _parts(w, a, x)
    logarithm = w.call("log", x)
    below = w.sub(logarithm, w.call("digamma", w.add(a, 1.0)))
    above = w.add(w.sub(logarithm, w.call("digamma", a)), fraction[1])
    result = w.mul(w.div(density, a), w.fma(below, series[0], series[1]))
    result = w.select(low, result, w.neg(w.mul(w.mul(density, fraction[0]), above)))
    return _ends(w, a, x, result, 0.0, 0.0)


@vector_function(wide=True, out_of_line=True)
def gammainc_by_shape_twice(w: Writer, a: str, x: str) -> str:
    """Return the second derivative of P(a, x) by a."""
    low, density, series, fraction = _parts(w, a, x)
    logarithm, up = w.call("log", x), w.add(a, 1.0)
    below = w.sub(logarithm, w.call("digamma", up))
    bend = w.fma(below, below, w.neg(w.call("trigamma", up)))
    result = w.fma(bend, series[0], w.fma(w.add(below, below), series[1], series[2]))
    above = w.add(w.sub(logarithm, w.call("digamma", a)), fraction[1])
    bend = w.fma(above, above, w.sub(fraction[2], w.call("trigamma", a)))
    tail = w.neg(w.mul(w.mul(density, fraction[0]), bend))
    result = w.select(low, w.mul(w.div(density, a), result), tail)
    return _ends(w, a, x, result, 0.0, 0.0)


@vector_function(wide=True, out_of_line=True)
def gamma_density(w: Writer, a: str, x: str) -> str:
    """Return x^(a - 1) e^-x / Gamma(a), the density of a gamma distribution."""
    at_zero = w.choose("oeq", a, 1.0, 1.0, w.choose("ogt", a, 1.0, 0.0, INFINITY))
    result = w.choose("oeq", x, INFINITY, 0.0, _density(w, a, x, 1.0))
    result = w.choose("oeq", x, 0.0, at_zero, result)
    inside = w.both(w.compare("ogt", a, 0.0), w.compare("oge", x, 0.0))
    return w.select(w.both(inside, w.compare("olt", a, INFINITY)), result, NAN)
