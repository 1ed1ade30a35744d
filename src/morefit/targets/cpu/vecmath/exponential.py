"""Write the exponential and its kin: exp, exp2, expm1, sinh, cosh, tanh."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.targets.cpu.vecmath.function import LN2, vector_function
from morefit.targets.cpu.writer import Pair, Writer

# Coefficients, lowest first, are minimax fits by Remez exchange in 45 digits (mpmath), rounded to float.
# (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, relative to e^r (2^-57.9; float32: 2^-28.2).
EXP = (
    0.5000000000000011,
    0.16666666666666416,
    0.04166666666653048,
    0.008333333333491904,
    0.0013888888943549174,
    0.00019841269512870947,
    2.4801493177219263e-05,
    2.7557580278054714e-06,
    2.7630222559000935e-07,
    2.5002092029393493e-08,
)
EXP_SINGLE = (0.5, 0.166665182, 0.0416662395, 0.0083689075, 0.00139485928)
# (2^r - 1) / r for |r| <= 1/2, Chebyshev fits, relative to 2^r (2^-55.5; float32: 2^-26.7).
EXP2 = (
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606888,
    0.0013333558146416936,
    0.0001540353044173605,
    1.525273382983612e-05,
    1.321544258792169e-06,
    1.0178062445845774e-07,
    7.072585949269223e-09,
    4.4549605981865186e-10,
)
EXP2_SINGLE = (0.693147182, 0.240226507, 0.0555035695, 0.009618083, 0.00133908633, 0.000154531634)
# The same, relative to e^r - 1 (2^-61.7).
EXPM1 = (
    0.5,
    0.16666666666666677,
    0.0416666666666667,
    0.008333333333321605,
    0.0013888888888866956,
    0.00019841269886188635,
    2.4801587360587663e-05,
    2.755724415061594e-06,
    2.7557242618391307e-07,
    2.5109055999850692e-08,
    2.092450546813436e-09,
)
# (sinh(x) / x - 1) / x^2 in x^2, for |x| <= 1 (2^-63.2).
SINH = (
    0.16666666666666669,
    0.008333333333333139,
    0.00019841269841437833,
    2.7557319155289496e-06,
    2.5052123405963232e-08,
    1.6057239777859717e-10,
    7.759328826609848e-13,
)
# (tanh(x) / x - 1) / x^2 in x^2, for |x| <= 0.55 (2^-60.6).
TANH = (
    -0.333333333333333,
    0.13333333333326736,
    -0.05396825396381861,
    0.021869488387307137,
    -0.008863232622117946,
    0.0035920922107787116,
    -0.001455543838709569,
    0.0005884479320600754,
    -0.00023338881897349865,
    8.332481165364165e-05,
    -1.949866901762286e-05,
)

TANH_SMALL = 0.55  # above it tanh > 1/2, so that 1 - 2 / (e^2x + 1) loses nothing
INVERSE_LN2 = 1.4426950408889634


@dataclass(frozen=True)
class Scale:
    """How exp is put together in one precision.

    ``shift`` added to a number of modest size rounds it to an integer ``n``, and leaves ``n`` plus the bias of
    an exponent less one in the lowest bits: shifted left by ``mantissa`` they are the number 2^(n-1).
    """

    mantissa: int
    shift: float
    low: float  # exp is 0 below
    high: float  # exp is infinite above
    tiny: float  # below, exp may be denormal: 2^n is then raised by ``lift`` and lowered in the last step
    lift: int
    flushed: float  # from there on 2^n is a normal number, at it zero
    ln2: tuple[float, float]
    polynomial: tuple[float, ...]

    @property
    def largest(self) -> float:
        """The largest n, as a flushed exponential rounds it: with a larger one 2^n - 2^n |r| is infinity less infinity."""
        exponent = self.shift + 1 - 1.5 * 2.0**self.mantissa
        return self.shift + 1 + exponent


DOUBLE = Scale(
    mantissa=52,
    shift=1.5 * 2.0**52 + 1022,
    low=-746.0,
    high=710.0,
    tiny=-700.0,
    lift=200,
    flushed=-709.0,
    ln2=(0.6931471805599453, 2.3190468138462996e-17),
    polynomial=EXP,
)
SINGLE = Scale(
    mantissa=23,
    shift=1.5 * 2.0**23 + 126,
    low=-104.0,
    high=89.0,
    tiny=-80.0,
    lift=64,
    flushed=-88.0,
    ln2=(0.693147182, -1.90465421e-09),
    polynomial=EXP_SINGLE,
)


def reduce(w: Writer, x: str, shift: str, scale: Scale, largest: float | None = None) -> Pair:
    """Return ``n`` in the lowest bits of a float, at most the largest, and ``x - n ln2``."""
    rounded, n, rest = _less_multiple(w, x, shift, scale, largest)
    return rounded, w.fma(n, -scale.ln2[1], rest)


def _less_multiple(
    w: Writer, x: str, shift: str, scale: Scale, largest: float | None = None
) -> tuple[str, str, str]:
    """Return ``n`` in the lowest bits of a float, ``n``, and ``x`` less ``n`` times the high part of ln2."""
    rounded = w.fma(x, INVERSE_LN2, shift)
    if largest is not None:
        rounded = w.choose("ogt", rounded, largest, largest, rounded)
    n = w.sub(rounded, shift)
    # The difference is exact: the product is, inside fma, and the bits left fit.
    return rounded, n, w.fma(n, -scale.ln2[0], x)


def power_of_two(w: Writer, rounded: str, scale: Scale) -> str:
    """Return 2^(n-1) from what ``reduce`` rounded."""
    return w.from_bits(w.integer_op("shl", w.to_bits(rounded), w.integer(scale.mantissa)))


def less_one(w: Writer, r: str, coefficients: tuple[float, ...]) -> str:
    """Return e^r - 1 for a reduced argument."""
    return w.fma(w.mul(r, r), w.polynomial(coefficients, r), r)


@vector_function()
def exp(w: Writer, x: str) -> str:
    """Return e^x; gradual underflow costs one rounding only."""
    scale = DOUBLE if w.vector.bits == 64 else SINGLE
    x, shift, last = _ends(w, x, scale)
    rounded, r = reduce(w, x, shift, scale)
    power = power_of_two(w, rounded, scale)
    return w.mul(w.fma(power, less_one(w, r, scale.polynomial), power), last)


def _ends(w: Writer, x: str, scale: Scale) -> tuple[str, str, str]:
    """Return x clamped where e^x is neither 0 nor infinite, the shift to round it, and the last factor."""
    x = w.clamp(x, scale.low, scale.high)
    tiny = w.compare("olt", x, scale.tiny)
    shift = w.select(tiny, scale.shift + scale.lift, scale.shift)
    return x, shift, w.select(tiny, 2.0 ** (1 - scale.lift), 2.0)


def exp_of_pair(w: Writer, x: Pair, factor: Pair | None = None) -> str:
    """Return e to a sum, times an optional pair, in float64."""
    high, shift, last = _ends(w, x[0], DOUBLE)
    rounded, n, rest = _less_multiple(w, high, shift, DOUBLE)
    r, low = w.fast_two_sum(rest, w.fma(n, -DOUBLE.ln2[1], x[1]))
    power = power_of_two(w, rounded, DOUBLE)
    square = w.fma(w.mul(r, r), w.polynomial(EXP, r), low)
    if factor is None:
        return w.mul(w.fma(power, w.add(r, square), power), last)
    # (1 + r + square) times the factor, largest last.
    small = w.fma(factor[0], square, w.fma(factor[1], r, factor[1]))
    return w.mul(w.mul(power, w.add(factor[0], w.fma(factor[0], r, small))), last)


def exp_modest(w: Writer, x: str) -> str:
    """Return e^x for |x| < 700, without care for the ends."""
    shift = w.number(DOUBLE.shift + 1)
    rounded, r = reduce(w, x, shift, DOUBLE)
    power = power_of_two(w, rounded, DOUBLE)
    return w.fma(power, less_one(w, r, EXP), power)


@vector_function()
def exp2(w: Writer, x: str) -> str:
    """Return 2^x; gradual underflow costs one rounding only."""
    scale, coefficients = (DOUBLE, EXP2) if w.vector.bits == 64 else (SINGLE, EXP2_SINGLE)
    x = w.clamp(x, scale.low / LN2, scale.high / LN2)
    tiny = w.compare("olt", x, scale.tiny / LN2)
    shift = w.select(tiny, scale.shift + scale.lift, scale.shift)
    rounded = w.add(x, shift)
    r = w.sub(x, w.sub(rounded, shift))
    power = power_of_two(w, rounded, scale)
    whole = w.fma(power, w.mul(r, w.polynomial(coefficients, r)), power)
    return w.mul(whole, w.select(tiny, 2.0 ** (1 - scale.lift), 2.0))


@vector_function(flushed=True)
def exp2_flushed(w: Writer, x: str) -> str:
    """Return 2^x where denormals count as zero: the same, but less exact from 1023.5 on, and cheaper."""
    scale, coefficients = (DOUBLE, EXP2) if w.vector.bits == 64 else (SINGLE, EXP2_SINGLE)
    low, shift = scale.flushed / LN2, w.number(scale.shift + 1)
    x = w.choose("olt", x, low, low, x)
    rounded = w.add(x, shift)
    rounded = w.choose("ogt", rounded, scale.largest, scale.largest, rounded)
    r = w.sub(x, w.sub(rounded, shift))
    power = power_of_two(w, rounded, scale)
    return w.fma(power, w.mul(r, w.lean_polynomial(coefficients, r)), power)


@vector_function(flushed=True)
def exp_flushed(w: Writer, x: str) -> str:
    """Return e^x where denormals count as zero: the same, but less exact from 709.43 on, and cheaper."""
    scale = DOUBLE if w.vector.bits == 64 else SINGLE
    shift = w.number(scale.shift + 1)
    x = w.choose("olt", x, scale.flushed, scale.flushed, x)
    rounded, r = reduce(w, x, shift, scale, scale.largest)
    power = power_of_two(w, rounded, scale)
    square = w.mul(r, r)
    return w.fma(power, w.fma(square, w.lean_polynomial(scale.polynomial, r), r), power)


@vector_function(wide=True)
def expm1(w: Writer, x: str) -> str:
    """Return e^x - 1."""
    clamped = w.clamp(x, -100.0, 710.0)
    rounded, r = reduce(w, clamped, w.number(DOUBLE.shift), DOUBLE)
    half = power_of_two(w, rounded, DOUBLE)  # 2^n itself overflows a little too early
    linear = w.fma(half, r, w.sub(half, 0.5))  # exact where the two would cancel
    result = w.fma(half, w.mul(w.mul(r, r), w.polynomial(EXPM1, r)), linear)
    return w.choose("olt", w.absolute(x), 2.0**-54, x, w.mul(result, 2.0))


def _quarter_exp(w: Writer, x: str) -> Pair:
    """Return e^x / 4 as a pair, for 0 <= x < 710.6."""
    rounded, r = reduce(w, x, w.number(DOUBLE.shift - 1), DOUBLE)
    power = power_of_two(w, rounded, DOUBLE)
    high, low = w.fast_two_sum(1.0, less_one(w, r, EXP))
    return w.mul(power, high), w.mul(power, low)


def _hyperbolic(w: Writer, size: str, sign: float) -> str:
    """Return (e^x + sign e^-x) / 2, from e^x / 4, which overflows later."""
    high, low = _quarter_exp(w, w.clamp(size, 0.0, 710.6))
    other = w.div(0.0625 * sign, high)
    return w.mul(w.add(high, w.add(low, other)), 2.0)


@vector_function(wide=True)
def sinh(w: Writer, x: str) -> str:
    """Return (e^x - e^-x) / 2."""
    size = w.absolute(x)
    square = w.mul(x, x)
    small = w.fma(w.mul(size, square), w.polynomial(SINH, square), size)
    return w.copy_sign(w.choose("olt", size, 1.0, small, _hyperbolic(w, size, -1.0)), x)


@vector_function(wide=True)
def cosh(w: Writer, x: str) -> str:
    """Return (e^x + e^-x) / 2."""
    return _hyperbolic(w, w.absolute(x), 1.0)


@vector_function(wide=True)
def tanh(w: Writer, x: str) -> str:
    """Return sinh(x) / cosh(x)."""
    size = w.absolute(x)
    square = w.mul(x, x)
    small = w.fma(w.mul(size, square), w.polynomial(TANH, square), size)
    clamped = w.clamp(size, 0.0, 20.0)
    grown = w.add(exp_modest(w, w.add(clamped, clamped)), 1.0)
    large = w.sub(1.0, w.div(2.0, grown))
    return w.copy_sign(w.choose("olt", size, TANH_SMALL, small, large), x)
