"""Write error functions, the scaled one, and the normal distribution with its quantile: erf, erfc, erfcx, ndtr, log_ndtr, ndtri."""

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
from morefit.targets.cpu.vecmath.exponential import exp_modest, exp_of_pair
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function
from morefit.targets.cpu.writer import Pair, Writer

# Coefficients, lowest first, are minimax fits by Remez exchange in 45 digits (mpmath), rounded to float.
# erf(x) / x in x^2, for |x| <= 1 (2^-56.9), and for |x| <= 1/2 (2^-57.7).
ERF = (
    1.1283791670955126,
    -0.3761263890318352,
    0.11283791670944215,
    -0.026866170643116628,
    0.0052239776061646405,
    -0.0008548325931718506,
    0.00012055293653955152,
    -1.492471386691391e-05,
    1.6447151741891578e-06,
    -1.6206473519947166e-07,
    1.3711689158851737e-08,
    -7.780816049306432e-10,
)
ERF_HALF = (
    1.1283791670955126,
    -0.3761263890318347,
    0.11283791670925152,
    -0.02686617063281001,
    0.005223977371590219,
    -0.0008548297614000446,
    0.00012053327694650355,
    -1.484564606747305e-05,
    1.4723630945415868e-06,
)
# -log(erfc(x)) in x - 1, for x in [1, 5.95], weighted by erfc(x): an error of 2^-57.1 in erf.
ERF_TAIL = (
    1.8496055099332482,
    2.6389675142347757,
    0.8431072563594164,
    0.04156109802500612,
    -0.010033825178380645,
    0.001977901211397704,
    -0.00023731641778799978,
    -2.6296371903174472e-05,
    2.7199057558020878e-05,
    -9.671493593153197e-06,
    2.1320577027111006e-06,
    -2.0489974777575922e-07,
    -5.7963670482736355e-08,
    3.33724046670887e-08,
    -8.5135850942602e-09,
    1.3181588239489162e-09,
    -1.1922402147517224e-10,
    4.860099972481655e-12,
)
# (x + 2) exp(x^2) erfc(x) in (x - 2) / (x + 2), for x in [1/2, 27.3], relative (2^-57.1).
ERFC = (
    1.021582705242023,
    -0.6871606844138105,
    0.27947209255605804,
    -0.036442231506889064,
    -0.021510661889767375,
    0.006479185068405952,
    0.003090612068406677,
    -0.0008372960827569287,
    -0.0006630736553243353,
    3.437177245674738e-05,
    0.00014447210284955793,
    3.414557713842381e-05,
    -2.170318438530815e-05,
    -1.6100624453673708e-05,
    -1.106767193583367e-06,
    3.566522682888363e-06,
    1.988413838812018e-06,
    1.7942497375882375e-07,
    -6.318186673234196e-07,
    -5.463061653864455e-07,
    1.633113127474601e-07,
    2.2012391727378305e-07,
    -8.238561775382622e-08,
)
ERFC_LOW = (-2.33300502552968e-17, -3.734999421008891e-17)  # what rounding took from the first two
POLE = 2.0
ERFC_TWO = -6.0  # 2 - erfc is below half a unit in the last place of 2
ERFC_ZERO = 27.25  # erfc is below half the smallest denormal number


@vector_function(wide=True)
def erf(w: Writer, x: str) -> str:
    """Return the error function."""
    size = w.absolute(x)
    small = w.mul(size, w.polynomial(ERF, w.mul(x, x)))
    clamped = w.clamp(size, 1.0, 5.95)
    fall = w.polynomial(ERF_TAIL, w.sub(clamped, 1.0))
    large = w.sub(1.0, exp_modest(w, w.neg(fall)))
    return w.copy_sign(w.choose("olt", size, 1.0, small, large), x)


def _without_exponential(w: Writer, x: str) -> Pair:
    """Return exp(x^2) erfc(x) for x >= 1/2, as a pair."""
    inverse = w.reciprocal(w.two_sum(x, POLE))
    t = w.fma(inverse[0], -2.0 * POLE, 1.0)
    lost = w.fma(inverse[0], -2.0 * POLE, w.sub(1.0, t))
    t_low = w.fma(inverse[1], -2.0 * POLE, lost)
    slope = w.fma(t, 2.0 * ERFC[2], ERFC[1])
    # The last two steps of the polynomial are pairs: their rounding would be half the error.
    linear = w.fast_two_sum(ERFC[1], w.mul(t, w.polynomial(ERFC[2:], t)))
    rest, rest_low = w.two_product(t, linear[0])
    high, low = w.fast_two_sum(ERFC[0], rest)
    low = w.add(low, w.fma(t, linear[1], rest_low))
    low = w.add(low, w.fma(t_low, slope, w.polynomial(ERFC_LOW, t)))
    return w.multiply(inverse, (high, low))


@vector_function(wide=True)
def erfc(w: Writer, x: str) -> str:
    """Return 1 - erf(x), without loss for large x; vectors of numbers at which it is 0 or 2 are done at once."""
    flat = w.choose("olt", x, 0.0, 2.0, 0.0)
    inner = w.both(w.compare("ugt", x, ERFC_TWO), w.compare("ult", x, ERFC_ZERO))
    return w.where_any(inner, flat, lambda: _erfc(w, x))


def _erfc(w: Writer, x: str) -> str:
    size = w.absolute(x)
    clamped = w.clamp(size, 0.5, ERFC_ZERO)
    square, square_low = w.two_product(clamped, clamped)
    tail = exp_of_pair(w, (w.neg(square), w.neg(square_low)), _without_exponential(w, clamped))
    outer = w.choose("olt", x, 0.0, w.sub(2.0, tail), tail)
    inner = w.fma(w.neg(x), w.polynomial(ERF_HALF, w.mul(x, x)), 1.0)
    return w.choose("olt", size, 0.5, inner, outer)


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


@vector_function(wide=True)
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


@vector_function(wide=True)
def tail_slope(w: Writer, x: str) -> str:
    """Return the derivative of sqrt(pi) x erfcx(x) by 1 / (2 x^2), for x >= ERFCX_TAIL_FROM."""
    return _moment(w, x, ERFCX_TAIL_SLOPE)


@vector_function(wide=True)
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


@vector_function(wide=True)
def ndtr(w: Writer, x: str) -> str:
    """Return the probability that a standard normal number is below x."""
    size = w.absolute(x)
    tail = _tail(w, size, _half_erfcx(w, size))
    negative = w.compare("olt", x, 0.0)
    return w.select(negative, tail, w.sub(1.0, tail))


@vector_function(wide=True, out_of_line=True)
def log_ndtr(w: Writer, x: str) -> str:
    """Return log(ndtr(x)), without loss on either side."""
    size = w.absolute(x)
    scaled = _half_erfcx(w, size)
    above = w.call("log1p", w.neg(_tail(w, size, scaled)))
    below = w.fma(w.mul(x, -0.5), x, w.call("log", scaled))
    return w.select(w.compare("olt", x, 0.0), below, above)


@vector_function(wide=True)
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
