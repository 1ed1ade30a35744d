"""Write the scaled error function and the normal distribution made of it: erfcx, ndtr, log_ndtr."""

from __future__ import annotations

from morefit.targets.coefficients import ERFCX, ERFCX_POLE
from morefit.targets.cpu.vecmath.arithmetic import (
    absolute,
    choose,
    clamp,
    polynomial,
    two_product,
    where_any,
    widened,
)
from morefit.targets.cpu.vecmath.exponential import exp_of_pair
from morefit.targets.cpu.vecmath.function import vector_function
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
    shifted = w.add(x, w.number(ERFCX_POLE))
    inverse = w.div(w.number(1.0), shifted)
    t = w.fma(inverse, w.number(-2.0 * ERFCX_POLE), w.number(1.0))
    result = w.mul(polynomial(w, ERFCX, t), inverse)
    lost = w.sub(x, w.sub(shifted, w.number(ERFCX_POLE)))
    lost = w.fma(w.fma(shifted, inverse, w.number(-1.0)), shifted, lost)
    slope = w.fma(w.add(x, x), result, w.number(ERFCX_SLOPE))
    return choose(w, "olt", x, ERFCX_FLAT, w.fma(lost, slope, result), result)


@vector_function()
@widened
def erfcx(w: Writer, x: str) -> str:
    """Return exp(x^2) erfc(x)."""
    size = absolute(w, x)
    forward = erfcx_positive(w, size)
    negative = w.compare("olt", x, w.number(0.0))
    return where_any(w, negative, forward, lambda: _erfcx_negative(w, size, forward))


def _erfcx_negative(w: Writer, size: str, forward: str) -> str:
    """Return erfcx of a negative number from that of its size."""
    clamped = clamp(w, size, 0.0, ERFCX_INFINITE)
    growth = exp_of_pair(w, two_product(w, clamped, clamped))
    return w.fma(w.number(2.0), growth, w.neg(forward))


def _tail(w: Writer, size: str, scaled: str) -> str:
    """Return the probability beyond a distance from the mean, from half of erfcx there."""
    clamped = clamp(w, size, 0.0, NDTR_ZERO)
    square, low = two_product(w, clamped, w.mul(clamped, w.number(-0.5)))
    return exp_of_pair(w, (square, low), (scaled, w.number(0.0)))


def _half_erfcx(w: Writer, size: str) -> str:
    return w.mul(w.number(0.5), erfcx_positive(w, w.mul(size, w.number(INVERSE_ROOT_TWO))))


@vector_function()
@widened
def ndtr(w: Writer, x: str) -> str:
    """Return the probability that a standard normal number is below x."""
    size = absolute(w, x)
    tail = _tail(w, size, _half_erfcx(w, size))
    negative = w.compare("olt", x, w.number(0.0))
    return w.select(negative, tail, w.sub(w.number(1.0), tail))


@vector_function(out_of_line=True)
@widened
def log_ndtr(w: Writer, x: str) -> str:
    """Return log(ndtr(x)), without loss on either side."""
    size = absolute(w, x)
    scaled = _half_erfcx(w, size)
    above = w.call("log1p", w.neg(_tail(w, size, scaled)))
    below = w.fma(w.mul(x, w.number(-0.5)), x, w.call("log", scaled))
    return w.select(w.compare("olt", x, w.number(0.0)), below, above)
