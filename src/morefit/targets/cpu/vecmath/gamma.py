"""Write the gamma functions: lgamma, digamma, trigamma, tetragamma."""

from __future__ import annotations

from morefit.targets.coefficients import DIGAMMA, TETRAGAMMA, TETRAGAMMA_FROM, TRIGAMMA
from morefit.targets.cpu.vecmath.arithmetic import (
    INFINITY,
    NAN,
    Pair,
    absolute,
    choose,
    copy_sign,
    divide,
    fast_two_sum,
    multiply,
    polynomial,
    reciprocal,
    two_product,
    two_sum,
    vector_function,
    where_any,
    widened,
)
from morefit.targets.cpu.vecmath.logarithm import log_pair
from morefit.targets.cpu.vecmath.trigonometric import sine_and_cosine
from morefit.targets.cpu.writer import Writer

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
PI = (3.141592653589793, 1.2246467991473532e-16)


def _turns(w: Writer, r: str) -> tuple[Pair, Pair]:
    """Return sin(pi r) and cos(pi r) for 0 <= r <= 1/2."""
    far = w.compare("ogt", r, w.number(0.25))
    near = w.select(far, w.sub(w.number(0.5), r), r)
    high, low = two_product(w, near, w.number(PI[0]))
    sine, cosine = sine_and_cosine(w, high, w.fma(near, w.number(PI[1]), low))
    return _select_pair(w, far, cosine, sine), _select_pair(w, far, sine, cosine)


def _select_pair(w: Writer, mask: str, a: Pair, b: Pair) -> Pair:
    return w.select(mask, a[0], b[0]), w.select(mask, a[1], b[1])


def _pi(w: Writer) -> Pair:
    return w.number(PI[0]), w.number(PI[1])


def _off_integer(w: Writer, x: str) -> str:
    """Return the distance of x from the nearest integer."""
    return absolute(w, w.sub(x, w.intrinsic("roundeven", x)))


def _reflect(w: Writer, x: str) -> tuple[str, str]:
    """Return where x is negative, and the argument to use: 1 - x there."""
    negative = w.compare("olt", x, w.number(0.0))
    return negative, w.select(negative, w.sub(w.number(1.0), x), x)


def _lgamma_large(w: Writer, x: str, logarithm: Pair) -> str:
    """Return lgamma by Stirling's formula, (x - 1/2) (log(x) - 1) and the rest, in pairs."""
    a = w.sub(x, w.number(0.5))
    high, low = two_sum(w, logarithm[0], w.number(-1.0))
    product, rest = two_product(w, a, high)
    rest = w.fma(a, w.add(low, logarithm[1]), rest)
    inverse = w.div(w.number(1.0), x)
    series = w.mul(inverse, polynomial(w, STIRLING, w.mul(inverse, inverse)))
    total, lost = two_sum(w, product, w.number(STIRLING_CONSTANT[0]))
    return choose(w, "oeq", product, INFINITY, product, w.add(total, w.add(lost, w.add(rest, series))))


def _lgamma_positive(w: Writer, x: str) -> str:
    """Return lgamma for x > 0: about 2, or brought there by log(x) or log(x (1 + x)), or by Stirling."""
    low, middle, top = (w.compare("olt", x, w.number(bound)) for bound in (0.5, 1.5, STIRLING_FROM))
    u = w.sub(x, w.select(low, w.number(0.0), w.select(middle, w.number(1.0), w.number(2.0))))
    next_high, next_low = fast_two_sum(w, w.number(1.0), x)
    product, rest = two_product(w, x, next_high)
    rest = w.div(w.fma(x, next_low, rest), product)
    high, tail = log_pair(w, w.select(low, product, x))
    tail = w.select(low, w.add(tail, rest), tail)
    # Between 1 and 3/2 the logarithm takes most of this away: hence a pair.
    rest = w.mul(u, polynomial(w, LGAMMA_TWO[1:], u))
    about_two, two_low = fast_two_sum(w, w.number(LGAMMA_TWO[0]), rest)
    shifted = w.add(w.fma(u, about_two, w.neg(high)), w.fma(u, two_low, w.neg(tail)))
    small = w.select(middle, shifted, w.fma(u, about_two, w.mul(u, two_low)))
    return w.select(top, small, _lgamma_large(w, x, (high, tail)))


def _log_reflection(w: Writer, size: str) -> str:
    """Return log(|x sin(pi x)| / pi) from |x|."""
    sine, _ = _turns(w, _off_integer(w, size))
    product = multiply(
        w, multiply(w, sine, (size, w.number(0.0))), (w.number(INVERSE_PI[0]), w.number(INVERSE_PI[1]))
    )
    high, low = log_pair(w, product[0])
    return w.add(high, w.add(low, w.div(product[1], product[0])))


def _lgamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return lgamma for x < 0 from that of -x."""
    reflected = w.neg(w.add(_log_reflection(w, absolute(w, x)), forward))
    return choose(w, "oeq", _off_integer(w, x), 0.0, INFINITY, reflected)


@vector_function(out_of_line=True)
@widened
def lgamma(w: Writer, x: str) -> str:
    """Return log|Gamma(x)|; infinite at its poles."""
    size = absolute(w, x)
    forward = _lgamma_positive(w, size)
    # Next to zero both sides are alike, and x^2 might underflow.
    negative = w.compare("olt", x, w.number(-(2.0**-100)))
    result = where_any(w, negative, forward, lambda: _lgamma_negative(w, x, forward))
    return choose(w, "oeq", x, 0.0, INFINITY, choose(w, "oeq", size, INFINITY, INFINITY, result))


def _shift_up(w: Writer, x: str) -> tuple[str, Pair]:
    """Return where x is small, and the argument of the asymptotic series: x + 4 there."""
    small = w.compare("olt", x, w.number(ASYMPTOTIC_FROM))
    return small, two_sum(w, x, w.select(small, w.number(ASYMPTOTIC_FROM), w.number(0.0)))


def _digamma_positive(w: Writer, x: str) -> str:
    """Return digamma for x > 0, all large terms in pairs."""
    small, (y, y_low) = _shift_up(w, x)
    inverse = w.div(w.number(1.0), y)
    square = w.mul(inverse, inverse)
    series = w.fma(square, polynomial(w, DIGAMMA, square), w.mul(inverse, w.number(0.5)))
    high, low = log_pair(w, y)
    low = w.sub(w.fma(y_low, inverse, low), series)
    first, first_low = reciprocal(w, (x, w.number(0.0)))
    terms = [w.neg(first), *(w.div(w.number(-1.0), w.add(x, w.number(i))) for i in (1.0, 2.0, 3.0))]
    shifted = _add_up(w, high, w.sub(low, first_low), terms)
    # 1 / x is all there is for tiny x, where it or its pair may overflow.
    shifted = choose(w, "olt", x, 2.0**-200, w.neg(first), shifted)
    return w.select(small, shifted, w.add(high, low))


def _add_up(w: Writer, total: str, low: str, terms: list[str]) -> str:
    """Return the sum of all, rounded once, nearly."""
    for term in terms:
        total, lost = two_sum(w, total, term)
        low = w.add(low, lost)
    return w.add(total, low)


def _digamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return digamma for x < 0 from that of 1 - x."""
    off = _off_integer(w, x)
    sine, cosine = _turns(w, off)
    cotangent = divide(w, multiply(w, cosine, _pi(w)), sine)
    cotangent = choose(w, "olt", off, 2.0**-200, w.div(w.number(1.0), off), cotangent)
    side = w.sub(x, w.intrinsic("roundeven", x))
    return choose(w, "oeq", off, 0.0, NAN, w.sub(forward, copy_sign(w, cotangent, side)))


@vector_function(out_of_line=True)
@widened
def digamma(w: Writer, x: str) -> str:
    """Return the derivative of log(Gamma(x)); NaN at its poles below zero."""
    negative, argument = _reflect(w, x)
    forward = _digamma_positive(w, argument)
    result = where_any(w, negative, forward, lambda: _digamma_negative(w, x, forward))
    result = choose(w, "oeq", x, INFINITY, INFINITY, result)
    return choose(w, "oeq", x, 0.0, copy_sign(w, w.number(INFINITY), w.neg(x)), result)


def _inverse_square(w: Writer, x: Pair) -> str:
    """Return 1 / x^2 without underflow on the way."""
    high, low = reciprocal(w, x)
    return w.mul(high, w.fma(low, w.number(2.0), high))


def _trigamma_positive(w: Writer, x: str) -> str:
    """Return trigamma for x > 0."""
    small, y = _shift_up(w, x)
    inverse, inverse_low = reciprocal(w, y)
    square = w.mul(inverse, inverse)
    series = w.fma(w.mul(inverse, square), polynomial(w, TRIGAMMA, square), w.mul(square, w.number(0.5)))
    low = w.add(series, inverse_low)
    terms = [_inverse_square(w, two_sum(w, x, w.number(i))) for i in (0.0, 1.0, 2.0, 3.0)]
    shifted = choose(w, "olt", x, 2.0**-520, INFINITY, _add_up(w, inverse, low, terms))
    return w.select(small, shifted, w.add(inverse, low))


def _trigamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return trigamma for x < 0 from that of 1 - x."""
    off = _off_integer(w, x)
    high, low = multiply(w, reciprocal(w, _turns(w, off)[0]), _pi(w))
    reflected = w.fma(high, high, w.fma(w.add(high, high), low, w.neg(forward)))
    return choose(w, "olt", off, 2.0**-520, INFINITY, reflected)


@vector_function(out_of_line=True)
@widened
def trigamma(w: Writer, x: str) -> str:
    """Return the second derivative of log(Gamma(x)); infinite at its poles."""
    negative, argument = _reflect(w, x)
    forward = _trigamma_positive(w, argument)
    result = where_any(w, negative, forward, lambda: _trigamma_negative(w, x, forward))
    result = choose(w, "oeq", x, INFINITY, 0.0, result)
    return choose(w, "oeq", x, -INFINITY, NAN, choose(w, "oeq", x, 0.0, INFINITY, result))


def _inverse_cube(w: Writer, x: Pair) -> str:
    """Return 1 / x^3, rounded once, nearly."""
    high, low = reciprocal(w, x)
    square, square_low = two_product(w, high, high)
    cube, cube_low = two_product(w, square, high)
    small = w.fma(square_low, high, w.mul(w.mul(w.number(3.0), low), square))
    return w.add(cube, w.add(cube_low, small))


def _tetragamma_positive(w: Writer, x: str) -> str:
    """Return tetragamma for x > 0: the asymptotic series, and up to it by recurrence."""
    small = w.compare("olt", x, w.number(TETRAGAMMA_FROM))
    y = two_sum(w, x, w.select(small, w.number(TETRAGAMMA_FROM), w.number(0.0)))
    inverse, inverse_low = reciprocal(w, y)
    square = w.mul(inverse, inverse)
    rest = w.add(inverse, w.mul(square, polynomial(w, TETRAGAMMA, square)))
    square_low = w.fma(w.add(inverse, inverse), inverse_low, w.fma(inverse, inverse, w.neg(square)))
    series = w.fma(square, rest, square_low)
    total, low = square, series
    for i in range(TETRAGAMMA_FROM):
        term = w.mul(w.number(2.0), _inverse_cube(w, two_sum(w, x, w.number(float(i)))))
        total, lost = two_sum(w, total, w.select(small, term, w.number(0.0)))
        low = w.add(low, lost)
    result = w.neg(w.add(total, low))
    return choose(w, "olt", x, 2.0**-340, -INFINITY, result)


def _tetragamma_negative(w: Writer, x: str, forward: str) -> str:
    """Return tetragamma for x < 0 from that of 1 - x."""
    off = _off_integer(w, x)
    sine, cosine = _turns(w, off)
    inverse = multiply(w, reciprocal(w, sine), _pi(w))
    cube = multiply(w, multiply(w, inverse, inverse), inverse)
    term = multiply(w, cube, cosine)
    size = w.mul(w.number(2.0), w.add(term[0], term[1]))
    side = w.sub(x, w.intrinsic("roundeven", x))
    return choose(w, "olt", off, 2.0**-340, NAN, w.sub(forward, copy_sign(w, size, side)))


@vector_function(out_of_line=True)
@widened
def tetragamma(w: Writer, x: str) -> str:
    """Return the third derivative of log(Gamma(x)); NaN at its poles below zero."""
    negative, argument = _reflect(w, x)
    forward = _tetragamma_positive(w, argument)
    result = where_any(w, negative, forward, lambda: _tetragamma_negative(w, x, forward))
    result = choose(w, "oeq", x, INFINITY, -0.0, result)
    at_zero = copy_sign(w, w.number(INFINITY), w.neg(x))
    return choose(w, "oeq", x, -INFINITY, NAN, choose(w, "oeq", x, 0.0, at_zero, result))
