"""Write the circular functions and the inverse circular and hyperbolic ones: sin, cos, tan, asin, acos, atan, atan2, acosh, asinh, atanh."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.targets.cpu.vecmath.function import INFINITY, LN2, PI, vector_function
from morefit.targets.cpu.writer import Pair, Writer

# Coefficients, lowest first, are minimax fits by Remez exchange in 45 digits (mpmath), rounded to float.
# (sin(r) / r - 1) / r^2 in r^2, for |r| <= pi / 2 (2^-61.7; float32: 2^-35.3), and for |r| <= pi / 4 (2^-57.9).
SIN = (
    -0.16666666666666666,
    0.008333333333333194,
    -0.0001984126984120927,
    2.755731921114469e-06,
    -2.505210687338768e-08,
    1.6058939730962972e-10,
    -7.642992039469295e-13,
    2.721179793325737e-15,
)
# The last bits of these were searched for the least error that leaves cos(0) = 1.
SIN_SINGLE = (-0.166666657, 0.00833332818, -0.000198408859, 2.75242451e-06, -2.38828815e-08)
SIN_QUARTER = (
    -0.1666666666666663,
    0.008333333333322094,
    -0.000198412698295711,
    2.7557313615553126e-06,
    -2.5050746923732236e-08,
    1.5896185083697113e-10,
)
# (cos(r) - 1 + r^2 / 2) / r^4 in r^2, for |r| <= pi / 4 (2^-64.2).
COS_QUARTER = (
    0.0416666666666666,
    -0.0013888888888874175,
    2.4801587289515605e-05,
    -2.7557314362142487e-07,
    2.087572461022305e-09,
    -1.1359716690708356e-11,
)

INVERSE_PI = 0.3183098861837907
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
TWO_OVER_PI = 0.6366197723675814


@dataclass(frozen=True)
class Turn:
    """How an argument loses its multiples of pi in one precision."""

    shift: float  # added to a number of modest size, it rounds it to an integer
    limit: float  # the largest argument for which three parts of pi do
    pi: tuple[float, float, float]  # all positive, so that -0 stays -0
    polynomial: tuple[float, ...]


DOUBLE = Turn(1.5 * 2.0**52, 2.0**30, (3.141592653589793, 1.224646799147353e-16, 2.165713347843828e-32), SIN)
SINGLE = Turn(1.5 * 2.0**23, 2.0**16, (3.1415925, 1.50995788e-07, 1.07806059e-14), SIN_SINGLE)


def _turn(w: Writer) -> Turn:
    return DOUBLE if w.vector.bits == 64 else SINGLE


def _less_turns(w: Writer, x: str, n: str, parts: tuple[float, float, float]) -> str:
    """Return x - n pi (Cody and Waite); the first difference is exact, as its bits fit."""
    for part in parts:
        x = w.fma(n, -part, x)
    return x


def _sin_reduced(w: Writer, r: str, coefficients: tuple[float, ...]) -> str:
    """Return sin(r) for a reduced argument; rounding must not carry it past one."""
    z = w.mul(r, r)
    return w.clamp(w.fma(w.mul(r, z), w.polynomial(coefficients, z), r), -1.0, 1.0)


def _far(w: Writer, name: str, x: str, near: str) -> str:
    """Take lanes beyond the limit from a function that is not inlined."""
    beyond = w.compare("ogt", w.absolute(x), _turn(w).limit)
    return w.where_any(beyond, near, lambda: w.call(f"{name}_far", x))


@vector_function()
def sin(w: Writer, x: str) -> str:
    """Return the sine."""
    c = _turn(w)
    rounded = w.fma(x, INVERSE_PI, c.shift)
    r = _less_turns(w, x, w.sub(rounded, c.shift), c.pi)
    near = w.copy_sign(_sin_reduced(w, r, c.polynomial), r)
    return _far(w, "sin", x, w.flip_sign(near, w.to_bits(rounded)))


@vector_function()
def cos(w: Writer, x: str) -> str:
    """Return the cosine, as the sine about the nearest odd multiple of pi / 2."""
    c = _turn(w)
    rounded = w.add(w.fma(x, INVERSE_PI, 0.5), c.shift)
    n = w.sub(w.sub(rounded, c.shift), 0.5)
    r = _less_turns(w, x, n, c.pi)
    return _far(w, "cos", x, w.flip_sign(_sin_reduced(w, r, c.polynomial), w.to_bits(rounded)))


@vector_function(far=True)
def sin_far(w: Writer, x: str) -> str:
    """Return the sine of large arguments."""
    return w.lane_by_lane("sin", x)


@vector_function(far=True)
def cos_far(w: Writer, x: str) -> str:
    """Return the cosine of large arguments."""
    return w.lane_by_lane("cos", x)


def sine_and_cosine(w: Writer, r: str, low: str) -> tuple[Pair, Pair]:
    """Return both as pairs, for |r| <= pi / 4."""
    z, z_low = w.two_product(r, r)
    half = w.mul(z, 0.5)
    shrunk = w.sub(1.0, half)
    cubic = w.fma(w.mul(r, z), w.polynomial(SIN_QUARTER, z), w.mul(low, shrunk))
    lost = w.sub(w.sub(1.0, shrunk), half)
    tail = w.fma(w.mul(z, z), w.polynomial(COS_QUARTER, z), w.fma(z_low, -0.5, lost))
    return w.fast_two_sum(r, cubic), w.fast_two_sum(shrunk, w.fma(w.neg(r), low, tail))


def _near_zero(w: Writer, r: str) -> Pair:
    """Return both for |r| <= pi / 4."""
    z = w.mul(r, r)
    sine = w.fma(w.mul(r, z), w.polynomial(SIN_QUARTER, z), r)
    return sine, w.fma(w.mul(z, z), w.polynomial(COS_QUARTER, z), w.fma(z, -0.5, 1.0))


def double_angle(w: Writer, half: str) -> Pair:
    """Return the sine and cosine of twice an angle of at most pi / 4, in float64."""
    sine, cosine = _near_zero(w, half)
    twice = w.add(sine, sine)
    return w.mul(twice, cosine), w.fma(w.neg(twice), sine, 1.0)


def sine_and_cosine_of(w: Writer, x: str) -> Pair:
    """Return both, in float64, of an angle of at most some hundred turns."""
    shift = w.number(DOUBLE.shift)
    rounded = w.fma(x, TWO_OVER_PI, shift)
    n = w.sub(rounded, shift)
    r = w.fma(n, -HALF_PI[1], w.fma(n, -HALF_PI[0], x))
    sine, cosine = _near_zero(w, r)
    turns = w.to_bits(rounded)
    odd = w.let(f"trunc {w.vector.integers} {turns} to {w.vector.mask}")
    sine, cosine = w.select(odd, cosine, sine), w.select(odd, sine, cosine)
    half = w.integer_op("lshr", turns, w.integer(1))
    next_half = w.integer_op("lshr", w.integer_op("add", turns, w.integer(1)), w.integer(1))
    return w.flip_sign(sine, half), w.flip_sign(cosine, next_half)


@vector_function(wide=True, out_of_line=True)
def tan(w: Writer, x: str) -> str:
    """Return the tangent."""
    shift = w.number(DOUBLE.shift)
    rounded = w.fma(x, TWO_OVER_PI, shift)
    n = w.sub(rounded, shift)
    second, second_low = w.two_product(n, -HALF_PI[1])
    r, lost = w.two_sum(w.fma(n, -HALF_PI[0], x), second)
    low = w.add(lost, w.fma(n, -HALF_PI[2], second_low))
    sine, cosine = sine_and_cosine(w, r, low)
    odd = w.let(f"trunc {w.vector.integers} {w.to_bits(rounded)} to {w.vector.mask}")
    above = tuple(w.select(odd, w.neg(c), s) for s, c in zip(sine, cosine, strict=True))
    below = tuple(w.select(odd, s, c) for s, c in zip(sine, cosine, strict=True))
    near = w.divide((above[0], above[1]), (below[0], below[1]))
    near = w.choose("oeq", x, 0.0, x, near)
    beyond = w.compare("ogt", w.absolute(x), DOUBLE.limit)
    return w.where_any(beyond, near, lambda: w.lane_by_lane("tan", x))


# Coefficients, lowest first, are minimax fits by Remez exchange in 45 digits (mpmath), rounded to float.
# (atan(x) / x - 1) / x^2 in x^2, for |x| <= 1 (2^-57.8).
ATAN = (
    -0.33333333333333093,
    0.19999999999955487,
    -0.1428571428280518,
    0.11111111013733681,
    -0.09090907120629181,
    0.07692281201627464,
    -0.06666415109535662,
    0.05880593168676363,
    -0.05253808074327086,
    0.04723301261915671,
    -0.04221736941027118,
    0.03669388660577465,
    -0.029986095853133953,
    0.02208574789687021,
    -0.013995510761937112,
    0.007263706215172648,
    -0.0029195119078327353,
    0.0008435418993163384,
    -0.00015480897128402655,
    1.349043198884203e-05,
)
# (asin(x) / x - 1) / x^2 in x^2, for |x| <= 1/2 (2^-59.8).
ASIN = (
    0.16666666666666763,
    0.07499999999970033,
    0.04464285717533765,
    0.03038194267319575,
    0.022372215956457824,
    0.017351594699218573,
    0.013981027197820368,
    0.011397227773172014,
    0.010789664210007316,
    0.003670951495041271,
    0.021793540174829335,
    -0.021120705021400368,
    0.03270460771128649,
)


def _atan_tail(w: Writer, x: str) -> str:
    """Return atan(x) - x for |x| <= 1."""
    z = w.mul(x, x)
    return w.mul(w.mul(x, z), w.polynomial(ATAN, z))


@vector_function(wide=True)
def atan(w: Writer, x: str) -> str:
    """Return the angle whose tangent is x."""
    size = w.absolute(x)
    large = w.compare("ogt", size, 1.0)
    ratio = w.select(large, w.div(-1.0, size), size)
    angle = w.add(ratio, w.add(_atan_tail(w, ratio), w.select(large, HALF_PI[1], 0.0)))
    return w.copy_sign(w.add(angle, w.select(large, HALF_PI[0], 0.0)), x)


def _ratio(w: Writer, y: str, x: str) -> str:
    """Return the smaller over the larger of two sizes; 0 / 0 is 0, inf / inf is 1."""
    steep = w.compare("ogt", y, x)
    small, large = w.select(steep, x, y), w.select(steep, y, x)
    ratio = w.choose("oeq", small, 0.0, 0.0, w.div(small, large))
    return w.choose("oeq", small, INFINITY, 1.0, ratio)


@vector_function(wide=True, out_of_line=True)
def atan2(w: Writer, y: str, x: str) -> str:
    """Return the angle of the point (x, y)."""
    width, height = w.absolute(x), w.absolute(y)
    steep = w.compare("ogt", height, width)
    left = w.let(f"icmp slt {w.vector.integers} {w.to_bits(x)}, {w.integer(0)}")
    size = _ratio(w, height, width)
    turned = w.let(f"xor {w.vector.mask} {steep}, {left}")
    ratio = w.select(turned, w.neg(size), size)
    base = [w.select(left, PI[i], 0.0) for i in (0, 1)]
    base = [w.select(steep, HALF_PI[i], base[i]) for i in (0, 1)]
    angle = w.add(base[0], w.add(ratio, w.add(_atan_tail(w, ratio), base[1])))
    angle = w.select(w.compare("uno", x, y), w.add(x, y), angle)
    return w.copy_sign(angle, y)


def _half_angle(w: Writer, size: str) -> tuple[str, str, str]:
    """Return where |x| > 1/2, the sine to use (there sqrt((1 - |x|) / 2)), and asin less that sine."""
    large = w.compare("ogt", size, 0.5)
    halved = w.fma(size, -0.5, 0.5)
    z = w.select(large, halved, w.mul(size, size))
    s = w.select(large, w.intrinsic("sqrt", halved), size)
    return large, s, w.mul(w.mul(s, z), w.polynomial(ASIN, z))


@vector_function(wide=True)
def asin(w: Writer, x: str) -> str:
    """Return the angle whose sine is x; NaN outside [-1, 1]."""
    large, s, tail = _half_angle(w, w.absolute(x))
    rest = w.fma(tail, -2.0, HALF_PI[1])
    less = w.fma(s, -2.0, HALF_PI[0])
    lost = w.fma(s, -2.0, w.sub(HALF_PI[0], less))
    above = w.add(less, w.add(lost, rest))
    return w.copy_sign(w.select(large, above, w.add(s, tail)), x)


@vector_function(wide=True)
def acos(w: Writer, x: str) -> str:
    """Return the angle whose cosine is x; NaN outside [-1, 1]."""
    large, s, tail = _half_angle(w, w.absolute(x))
    near = w.mul(w.add(s, tail), 2.0)
    far = w.add(w.fma(s, -2.0, PI[0]), w.fma(tail, -2.0, PI[1]))
    signed = w.copy_sign(s, x), w.copy_sign(tail, x)
    middle = w.sub(HALF_PI[0], w.add(signed[0], w.sub(signed[1], HALF_PI[1])))
    outer = w.choose("olt", x, 0.0, far, near)
    return w.select(large, outer, middle)


LARGE = 2.0**60  # asinh(x) and acosh(x) are log(2 x) from here on, and x^2 does not overflow before


def _log1p_or_double(w: Writer, size: str, argument: str) -> str:
    """Return log(1 + argument), or log(2 size) where the size is large."""
    large = w.compare("ogt", size, LARGE)
    result = w.call("log1p", w.select(large, size, argument))
    return w.add(result, w.select(large, LN2, 0.0))


@vector_function(wide=True, out_of_line=True)
def asinh(w: Writer, x: str) -> str:
    """Return log(x + sqrt(x^2 + 1)), without loss for small x."""
    size = w.absolute(x)
    square = w.mul(x, x)
    root = w.intrinsic("sqrt", w.fma(x, x, 1.0))
    argument = w.add(size, w.div(square, w.add(root, 1.0)))
    return w.copy_sign(_log1p_or_double(w, size, argument), x)


@vector_function(wide=True, out_of_line=True)
def acosh(w: Writer, x: str) -> str:
    """Return log(x + sqrt(x^2 - 1)), without loss next to 1; NaN below."""
    above = w.sub(x, 1.0)
    root = w.intrinsic("sqrt", w.mul(above, w.add(x, 1.0)))
    result = _log1p_or_double(w, x, w.add(above, root))
    return w.choose("olt", x, 1.0, float("nan"), result)


@vector_function(wide=True, out_of_line=True)
def atanh(w: Writer, x: str) -> str:
    """Return log((1 + x) / (1 - x)) / 2; infinite at 1 and -1, NaN beyond."""
    size = w.absolute(x)
    ratio = w.div(w.add(size, size), w.sub(1.0, size))
    return w.copy_sign(w.mul(w.call("log1p", ratio), 0.5), x)
