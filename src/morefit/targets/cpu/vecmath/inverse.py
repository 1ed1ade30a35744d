"""Write the inverse circular and hyperbolic functions: asin, acos, atan, atan2, acosh, asinh, atanh."""

from __future__ import annotations

from morefit.targets.cpu.vecmath.function import INFINITY, vector_function
from morefit.targets.cpu.writer import Writer

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
PI = (3.141592653589793, 1.2246467991473532e-16)
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


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


LN2 = 0.6931471805599453
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
