"""Write the gamma functions: lgamma, digamma, trigamma, tetragamma."""

from __future__ import annotations

from morefit.targets.coefficients import DIGAMMA, TETRAGAMMA, TETRAGAMMA_FROM, TRIGAMMA
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, PI, vector_function
from morefit.targets.cpu.vecmath.logarithm import log_pair
from morefit.targets.cpu.vecmath.trigonometric import sine_and_cosine
from morefit.targets.cpu.writer import Pair, Writer

# Coefficients, lowest first, are minimax fits by Remez exchange in 60 digits (mpmath), rounded to float.
# lgamma(2 + u) / u for |u| <= 1/2, relative (2^-59.4).
LGAMMA_TWO = (
    0.42278433509846713,
    0.32246703342411326,
    -0.06735230105319831,
    0.020580808427780563,
    -0.007385551028649774,
    0.0028905103310241393,
    -0.0011927539127558247,
    0.0005096695156647699,
    -0.00022315473521830349,
    9.94576701923732e-05,
    -4.492653051958266e-05,
    2.050561616607888e-05,
    -9.437240903221909e-06,
    4.384595074780127e-06,
    -2.049737730985564e-06,
    9.203024902025688e-07,
    -4.2007861658594176e-07,
    2.7850591945527025e-07,
    -1.4326334648960327e-07,
)
# x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) in 1 / x^2, for x >= 5/2 (2^-58.6).
STIRLING = (
    0.08333333333333333,
    -0.002777777777771623,
    0.0007936507909367123,
    -0.000595237620868778,
    0.0008417070751619099,
    -0.0019150624442354945,
    0.006317666163657623,
    -0.027076304354097424,
    0.129910227147914,
    -0.5925537800945585,
    2.230488269969649,
    -6.1251452794393515,
    10.587102147175056,
    -8.521906384817417,
)

STIRLING_CONSTANT = (0.4189385332046727, 1.6728209650585413e-17)  # (log(2 pi) - 1) / 2
STIRLING_FROM = 2.5
ASYMPTOTIC_FROM = 4.0
INVERSE_PI = (0.3183098861837907, -1.9678676675182486e-17)


def _turns(w: Writer, r: str) -> tuple[Pair, Pair]:
    """Return sin(pi r) and cos(pi r) for 0 <= r <= 1/2."""
    far = w.compare("ogt", r, 0.25)
    near = w.select(far, w.sub(0.5, r), r)
    high, low = w.two_product(near, PI[0])
    sine, cosine = sine_and_cosine(w, high, w.fma(near, PI[1], low))
    return _select_pair(w, far, cosine, sine), _select_pair(w, far, sine, cosine)


def _select_pair(w: Writer, mask: str, a: Pair, b: Pair) -> Pair:
    return w.select(mask, a[0], b[0]), w.select(mask, a[1], b[1])


def _pi(w: Writer) -> Pair:
    return w.number(PI[0]), w.number(PI[1])


def _off_integer(w: Writer, x: str) -> str:
    """Return the distance of x from the nearest integer."""
    return w.absolute(w.sub(x, w.intrinsic("roundeven", x)))


def _reflect(w: Writer, x: str) -> tuple[str, str]:
    """Return where x is negative, and the argument to use: 1 - x there."""
    negative = w.compare("olt", x, 0.0)
    return negative, w.select(negative, w.sub(1.0, x), x)


def _lgamma_large(w: Writer, x: str, logarithm: Pair) -> str:
    """Return lgamma by Stirling's formula, (x - 1/2) (log(x) - 1) and the rest, in pairs."""
    a = w.sub(x, 0.5)
    high, low = w.two_sum(logarithm[0], -1.0)
    product, rest = w.two_product(a, high)
    rest = w.fma(a, w.add(low, logarithm[1]), rest)
    inverse = w.div(1.0, x)
    series = w.mul(inverse, w.polynomial(STIRLING, w.mul(inverse, inverse)))
    total, lost = w.two_sum(product, STIRLING_CONSTANT[0])
    return w.choose("oeq", product, INFINITY, product, w.add(total, w.add(lost, w.add(rest, series))))


def _lgamma_positive(w: Writer, x: str) -> str:
    """Return lgamma for x > 0: about 2, or brought there by log(x) or log(x (1 + x)), or by Stirling."""
    low, middle, top = (w.compare("olt", x, bound) for bound in (0.5, 1.5, STIRLING_FROM))
    u = w.sub(x, w.select(low, 0.0, w.select(middle, 1.0, 2.0)))
    next_high, next_low = w.fast_two_sum(1.0, x)
    product, rest = w.two_product(x, next_high)
    rest = w.div(w.fma(x, next_low, rest), product)
    high, tail = log_pair(w, w.select(low, product, x))
    tail = w.select(low, w.add(tail, rest), tail)
    # Between 1 and 3/2 the logarithm takes most of this away: hence a pair.
    rest = w.mul(u, w.polynomial(LGAMMA_TWO[1:], u))
    about_two, two_low = w.fast_two_sum(LGAMMA_TWO[0], rest)
    shifted = w.add(w.fma(u, about_two, w.neg(high)), w.fma(u, two_low, w.neg(tail)))
    small = w.select(middle, shifted, w.fma(u, about_two, w.mul(u, two_low)))
    return w.select(top, small, _lgamma_large(w, x, (high, tail)))


def _log_reflection(w: Writer, size: str) -> str:
    """Return log(|x sin(pi x)| / pi) from |x|."""
    sine, _ = _turns(w, _off_integer(w, size))
    product = w.multiply(
        w.multiply(sine, (size, w.number(0.0))), (w.number(INVERSE_PI[0]), w.number(INVERSE_PI[1]))
    )
    high, low = log_pair(w, product[0])
    return w.add(high, w.add(low, w.div(product[1], product[0])))


def _lgamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return lgamma for x < 0 from that of -x."""
    reflected = w.neg(w.add(_log_reflection(w, w.absolute(x)), forward))
    return w.choose("oeq", _off_integer(w, x), 0.0, INFINITY, reflected)


@vector_function(wide=True, out_of_line=True)
def lgamma(w: Writer, x: str) -> str:
    """Return log|Gamma(x)|; infinite at its poles."""
    size = w.absolute(x)
    forward = _lgamma_positive(w, size)
    # Next to zero both sides are alike, and x^2 might underflow.
    negative = w.compare("olt", x, -(2.0**-100))
    result = w.where_any(negative, forward, lambda: _lgamma_negative(w, x, forward))
    return w.choose("oeq", x, 0.0, INFINITY, w.choose("oeq", size, INFINITY, INFINITY, result))


def _shift_up(w: Writer, x: str) -> tuple[str, Pair]:
    """Return where x is small, and the argument of the asymptotic series: x + 4 there."""
    small = w.compare("olt", x, ASYMPTOTIC_FROM)
    return small, w.two_sum(x, w.select(small, ASYMPTOTIC_FROM, 0.0))


def _digamma_positive(w: Writer, x: str) -> str:
    """Return digamma for x > 0, all large terms in pairs."""
    small, (y, y_low) = _shift_up(w, x)
    inverse = w.div(1.0, y)
    square = w.mul(inverse, inverse)
    series = w.fma(square, w.polynomial(DIGAMMA, square), w.mul(inverse, 0.5))
    high, low = log_pair(w, y)
    low = w.sub(w.fma(y_low, inverse, low), series)
    first, first_low = w.reciprocal((x, w.number(0.0)))
    terms = [w.neg(first), *(w.div(-1.0, w.add(x, i)) for i in (1.0, 2.0, 3.0))]
    shifted = _add_up(w, high, w.sub(low, first_low), terms)
    # 1 / x is all there is for tiny x, where it or its pair may overflow.
    shifted = w.choose("olt", x, 2.0**-200, w.neg(first), shifted)
    return w.select(small, shifted, w.add(high, low))


def _add_up(w: Writer, total: str, low: str, terms: list[str]) -> str:
    """Return the sum of all, rounded once, nearly."""
    for term in terms:
        total, lost = w.two_sum(total, term)
        low = w.add(low, lost)
    return w.add(total, low)


def _digamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return digamma for x < 0 from that of 1 - x."""
    off = _off_integer(w, x)
    sine, cosine = _turns(w, off)
    cotangent = w.divide(w.multiply(cosine, _pi(w)), sine)
    cotangent = w.choose("olt", off, 2.0**-200, w.div(1.0, off), cotangent)
    side = w.sub(x, w.intrinsic("roundeven", x))
    return w.choose("oeq", off, 0.0, NAN, w.sub(forward, w.copy_sign(cotangent, side)))


@vector_function(wide=True, out_of_line=True)
def digamma(w: Writer, x: str) -> str:
    """Return the derivative of log(Gamma(x)); NaN at its poles below zero."""
    negative, argument = _reflect(w, x)
    forward = _digamma_positive(w, argument)
    result = w.where_any(negative, forward, lambda: _digamma_negative(w, x, forward))
    result = w.choose("oeq", x, INFINITY, INFINITY, result)
    return w.choose("oeq", x, 0.0, w.copy_sign(INFINITY, w.neg(x)), result)


def _inverse_square(w: Writer, x: Pair) -> str:
    """Return 1 / x^2 without underflow on the way."""
    high, low = w.reciprocal(x)
    return w.mul(high, w.fma(low, 2.0, high))


def _trigamma_positive(w: Writer, x: str) -> str:
    """Return trigamma for x > 0."""
    small, y = _shift_up(w, x)
    inverse, inverse_low = w.reciprocal(y)
    square = w.mul(inverse, inverse)
    series = w.fma(w.mul(inverse, square), w.polynomial(TRIGAMMA, square), w.mul(square, 0.5))
    low = w.add(series, inverse_low)
    terms = [_inverse_square(w, w.two_sum(x, i)) for i in (0.0, 1.0, 2.0, 3.0)]
    shifted = w.choose("olt", x, 2.0**-520, INFINITY, _add_up(w, inverse, low, terms))
    return w.select(small, shifted, w.add(inverse, low))


def _trigamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return trigamma for x < 0 from that of 1 - x."""
    off = _off_integer(w, x)
    high, low = w.multiply(w.reciprocal(_turns(w, off)[0]), _pi(w))
    reflected = w.fma(high, high, w.fma(w.add(high, high), low, w.neg(forward)))
    return w.choose("olt", off, 2.0**-520, INFINITY, reflected)


@vector_function(wide=True, out_of_line=True)
def trigamma(w: Writer, x: str) -> str:
    """Return the second derivative of log(Gamma(x)); infinite at its poles."""
    negative, argument = _reflect(w, x)
    forward = _trigamma_positive(w, argument)
    result = w.where_any(negative, forward, lambda: _trigamma_negative(w, x, forward))
    result = w.choose("oeq", x, INFINITY, 0.0, result)
    return w.choose("oeq", x, -INFINITY, NAN, w.choose("oeq", x, 0.0, INFINITY, result))


def _inverse_cube(w: Writer, x: Pair) -> str:
    """Return 1 / x^3, rounded once, nearly."""
    high, low = w.reciprocal(x)
    square, square_low = w.two_product(high, high)
    cube, cube_low = w.two_product(square, high)
    small = w.fma(square_low, high, w.mul(w.mul(3.0, low), square))
    return w.add(cube, w.add(cube_low, small))


def _tetragamma_positive(w: Writer, x: str) -> str:
    """Return tetragamma for x > 0: the asymptotic series, and up to it by recurrence."""
    small = w.compare("olt", x, TETRAGAMMA_FROM)
    y = w.two_sum(x, w.select(small, TETRAGAMMA_FROM, 0.0))
    inverse, inverse_low = w.reciprocal(y)
    square = w.mul(inverse, inverse)
    rest = w.add(inverse, w.mul(square, w.polynomial(TETRAGAMMA, square)))
    square_low = w.fma(w.add(inverse, inverse), inverse_low, w.fma(inverse, inverse, w.neg(square)))
    series = w.fma(square, rest, square_low)
    total, low = square, series
    for i in range(TETRAGAMMA_FROM):
        term = w.mul(2.0, _inverse_cube(w, w.two_sum(x, float(i))))
        total, lost = w.two_sum(total, w.select(small, term, 0.0))
        low = w.add(low, lost)
    result = w.neg(w.add(total, low))
    return w.choose("olt", x, 2.0**-340, -INFINITY, result)


def _tetragamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return tetragamma for x < 0 from that of 1 - x."""
    off = _off_integer(w, x)
    sine, cosine = _turns(w, off)
    inverse = w.multiply(w.reciprocal(sine), _pi(w))
    cube = w.multiply(w.multiply(inverse, inverse), inverse)
    term = w.multiply(cube, cosine)
    size = w.mul(2.0, w.add(term[0], term[1]))
    side = w.sub(x, w.intrinsic("roundeven", x))
    return w.choose("olt", off, 2.0**-340, NAN, w.sub(forward, w.copy_sign(size, side)))


@vector_function(wide=True, out_of_line=True)
def tetragamma(w: Writer, x: str) -> str:
    """Return the third derivative of log(Gamma(x)); NaN at its poles below zero."""
    negative, argument = _reflect(w, x)
    forward = _tetragamma_positive(w, argument)
    result = w.where_any(negative, forward, lambda: _tetragamma_negative(w, x, forward))
    result = w.choose("oeq", x, INFINITY, -0.0, result)
    at_zero = w.copy_sign(INFINITY, w.neg(x))
    return w.choose("oeq", x, -INFINITY, NAN, w.choose("oeq", x, 0.0, at_zero, result))
