"""Write the scaled error function and the normal distribution with its quantile: erfcx, ndtr, log_ndtr, ndtri."""

from __future__ import annotations

from collections.abc import Sequence

from morefit.targets.coefficients import (
    CENTRE,
    CENTRE_BOTTOM,
    CENTRE_TOP,
    ERFCX,
    ERFCX_POLE,
    ERFCX_TAIL_BEND,
    ERFCX_TAIL_FROM,
    ERFCX_TAIL_POLE,
    ERFCX_TAIL_SLOPE,
    FAR_BOTTOM,
    FAR_FROM,
    FAR_TOP,
    TAIL_BOTTOM,
    TAIL_FROM,
    TAIL_TOP,
)
from morefit.targets.cpu.vecmath.exponential import exp_of_pair
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function, widened
from morefit.targets.cpu.writer import Writer

ERFCX_SLOPE = -1.1283791670955126  # at zero
ERFCX_FLAT = 64.0  # the slope is too small to matter from here on
INVERSE_ROOT_TWO = 0.7071067811865476
ERFCX_INFINITE = 27.0  # erfcx(-x) is infinite from here on
NDTR_ZERO = 39.0  # ndtr(-x) is below half the smallest denormal number


def erfcx_positive(w: Writer, x: str) -> str:
    """Return exp(x^2) erfc(x) for x >= 0.

    What x + pole and its inverse lose is two units of the result for small x: its slope puts that back.
    """
    shifted = w.add(x, ERFCX_POLE)
    inverse = w.div(1.0, shifted)
    t = w.fma(inverse, -2.0 * ERFCX_POLE, 1.0)
    result = w.mul(w.polynomial(ERFCX, t), inverse)
    lost = w.sub(x, w.sub(shifted, ERFCX_POLE))
    lost = w.fma(w.fma(shifted, inverse, -1.0), shifted, lost)
    slope = w.fma(w.add(x, x), result, ERFCX_SLOPE)
    return w.choose("olt", x, ERFCX_FLAT, w.fma(lost, slope, result), result)


@vector_function()
@widened
def erfcx(w: Writer, x: str) -> str:
    """Return exp(x^2) erfc(x)."""
    size = w.absolute(x)
    forward = erfcx_positive(w, size)
    negative = w.compare("olt", x, 0.0)
    return w.where_any(negative, forward, lambda: _erfcx_negative(w, size, forward))


def _erfcx_negative(w: Writer, size: str, forward: str) -> str:
    """Return erfcx of a negative number from that of its size."""
    clamped = w.clamp(size, 0.0, ERFCX_INFINITE)
    growth = exp_of_pair(w, w.two_product(clamped, clamped))
    return w.fma(2.0, growth, w.neg(forward))


def _moment(w: Writer, x: str, coefficients: Sequence[float]) -> str:
    """Return a polynomial in (x - from - from - pole) / (x + pole), computed where a lane is beyond its begin."""
    first = sum(c * (-1.0) ** k for k, c in enumerate(coefficients))

    def polynomial() -> str:
        inverse = w.div(-2.0 * (ERFCX_TAIL_FROM + ERFCX_TAIL_POLE), w.add(x, ERFCX_TAIL_POLE))
        return w.polynomial(coefficients, w.add(inverse, 1.0))

    return w.where_any(w.compare("uge", x, ERFCX_TAIL_FROM), w.number(first), polynomial)


@vector_function()
@widened
def tail_slope(w: Writer, x: str) -> str:
    """Return the derivative of sqrt(pi) x erfcx(x) by 1 / (2 x^2), for x >= ERFCX_TAIL_FROM."""
    return _moment(w, x, ERFCX_TAIL_SLOPE)


@vector_function()
@widened
def tail_bend(w: Writer, x: str) -> str:
    """Return its second derivative."""
    return _moment(w, x, ERFCX_TAIL_BEND)


def _tail(w: Writer, size: str, scaled: str) -> str:
    """Return the probability beyond a distance from the mean, from half of erfcx there."""
    clamped = w.clamp(size, 0.0, NDTR_ZERO)
    square, low = w.two_product(clamped, w.mul(clamped, -0.5))
    return exp_of_pair(w, (square, low), (scaled, w.number(0.0)))


def _half_erfcx(w: Writer, size: str) -> str:
    return w.mul(0.5, erfcx_positive(w, w.mul(size, INVERSE_ROOT_TWO)))


@vector_function()
@widened
def ndtr(w: Writer, x: str) -> str:
    """Return the probability that a standard normal number is below x."""
    size = w.absolute(x)
    tail = _tail(w, size, _half_erfcx(w, size))
    negative = w.compare("olt", x, 0.0)
    return w.select(negative, tail, w.sub(1.0, tail))


@vector_function(out_of_line=True)
@widened
def log_ndtr(w: Writer, x: str) -> str:
    """Return log(ndtr(x)), without loss on either side."""
    size = w.absolute(x)
    scaled = _half_erfcx(w, size)
    above = w.call("log1p", w.neg(_tail(w, size, scaled)))
    below = w.fma(w.mul(x, -0.5), x, w.call("log", scaled))
    return w.select(w.compare("olt", x, 0.0), below, above)


@vector_function()
@widened
def ndtri(w: Writer, p: str) -> str:
    """Return x such that a standard normal number is below it with probability p; NaN outside [0, 1]."""
    q = w.sub(p, 0.5)
    centre = w.fma(q, w.neg(q), CENTRE * CENTRE)
    central = w.compare("ogt", centre, 0.0)
    upper = w.compare("ogt", q, 0.0)
    small = w.select(upper, w.sub(1.0, p), p)
    root = w.intrinsic("sqrt", w.neg(w.call("log", small)))
    far = w.compare("ogt", root, FAR_FROM)
    shifted = w.sub(root, w.select(far, FAR_FROM, TAIL_FROM))
    top = horner(w, blended(w, far, FAR_TOP, TAIL_TOP), shifted)
    bottom = horner(w, blended(w, far, FAR_BOTTOM, TAIL_BOTTOM), shifted)
    middle = w.mul(q, w.lean_polynomial(CENTRE_TOP, centre))
    top = w.select(central, middle, w.select(upper, top, w.neg(top)))
    bottom = w.select(central, w.lean_polynomial(CENTRE_BOTTOM, centre), bottom)
    result = w.div(top, bottom)
    end = w.select(upper, INFINITY, -INFINITY)
    result = w.select(w.compare("oeq", small, 0.0), end, result)
    return w.choose("olt", small, 0.0, NAN, result)


def blended(w: Writer, mask: str, yes: Sequence[float], no: Sequence[float]) -> list[str]:
    """Choose one of two polynomials in each lane."""
    return [w.select(mask, a, b) for a, b in zip(yes, no, strict=True)]


def horner(w: Writer, coefficients: Sequence[str], x: str) -> str:
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = w.fma(total, x, c)
    return total
