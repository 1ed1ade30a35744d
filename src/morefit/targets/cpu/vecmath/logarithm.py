"""Write the logarithm and its kin: log, log1p, log2, log10, pow."""

from __future__ import annotations

from morefit.dataclass import dataclass
from morefit.targets.coefficients import LN2_SHORT, LOG_TAIL, TO_BASE_TEN, TO_BASE_TWO, TWO_THIRDS
from morefit.targets.cpu.vecmath.exponential import exp_of_pair
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function
from morefit.targets.cpu.writer import Pair, Writer

# Coefficients, lowest first, are minimax fits by Remez exchange in 45 digits (mpmath), rounded to float.
# With s = f / (2 + f) and z = s^2, log(1 + f) = 2 s + s z P(z), for 1 + f in [sqrt(1/2), sqrt(2)]: P
# (2^-59.5; float32: 2^-30.2).
LOG = (
    0.6666666666666735,
    0.3999999999941348,
    0.2857142874266229,
    0.22222198544263583,
    0.181835658572073,
    0.15314010839576508,
    0.14796351355102252,
)
LOG_SINGLE = (0.666667759, 0.399775177, 0.298723489)


@dataclass(frozen=True)
class Split:
    """How a number is split into 2^k (1 + f) in one precision."""

    mantissa: int
    one: int  # the bits of 1
    root: int  # the bits of sqrt(1/2), where k changes
    infinity: int  # the bits of infinity
    normal: float  # the smallest normal number
    lift: int  # denormal numbers are multiplied by two to this power
    magic: int  # the bits of 2^mantissa, whose lowest bits read as an integer
    ln2: tuple[float, float]
    polynomial: tuple[float, ...]


DOUBLE = Split(
    mantissa=52,
    one=0x3FF0000000000000,
    root=0x3FE6A09E667F3BCD,
    infinity=0x7FF0000000000000,
    normal=2.0**-1022,
    lift=54,
    magic=0x4330000000000000,
    ln2=(0.6931471805599453, 2.3190468138462996e-17),
    polynomial=LOG,
)
SINGLE = Split(
    mantissa=23,
    one=0x3F800000,
    root=0x3F3504F3,
    infinity=0x7F800000,
    normal=2.0**-126,
    lift=25,
    magic=0x4B000000,
    ln2=(0.693147182, -1.90465421e-09),
    polynomial=LOG_SINGLE,
)


def split(w: Writer, x: str, tiny: bool = True) -> Pair:
    """Return k and f of x = 2^k (1 + f), both floats; denormal numbers only if ``tiny``."""
    c = DOUBLE if w.vector.bits == 64 else SINGLE
    bias = 2.0**c.mantissa + (c.one >> c.mantissa)
    offset = w.number(bias)
    if tiny:
        small = w.compare("olt", x, c.normal)
        x = w.select(small, w.mul(x, 2.0**c.lift), x)
        offset = w.select(small, bias + c.lift, offset)
    shifted = w.integer_op("add", w.to_bits(x), w.integer(c.one - c.root))
    exponent = w.integer_op("lshr", shifted, w.integer(c.mantissa))
    k = w.sub(w.from_bits(w.integer_op("or", exponent, w.integer(c.magic))), offset)
    fraction = w.integer_op("and", shifted, w.integer(2**c.mantissa - 1))
    m = w.from_bits(w.integer_op("add", fraction, w.integer(c.root)))
    return k, w.sub(m, 1.0)


def join(w: Writer, k: str, f: str, low: str = "") -> str:
    """Return k ln2 + log(1 + f + low).

    log(1 + f) = f - s (f - z P(z)), where only the small second term is rounded before the last sum.
    """
    c = DOUBLE if w.vector.bits == 64 else SINGLE
    s = w.div(f, w.add(f, 2.0))
    z = w.mul(s, s)
    rest = w.sub(f, w.mul(z, w.polynomial(c.polynomial, z)))
    tail = w.mul(k, c.ln2[1])
    if low:  # 1 / (1 + f) = (1 - s) / (1 + s), to the few bits needed
        inverse = w.fma(s, w.fma(s, 2.0, -2.0), 1.0)
        tail = w.fma(low, inverse, tail)
    return w.fma(k, c.ln2[0], w.add(f, w.fma(w.neg(s), rest, tail)))


def _edges(w: Writer, x: str, result: str, pole: float) -> str:
    """Put in what no arithmetic gives: infinity, NaN, the pole and what lies below it."""
    result = w.choose("olt", x, INFINITY, result, x)
    outside = w.choose("oeq", x, pole, -INFINITY, NAN)
    return w.choose("ole", x, pole, outside, result)


def _rare(w: Writer, x: str) -> str:
    """Return which lanes are not positive, normal and finite, as one comparison of integers."""
    c = DOUBLE if w.vector.bits == 64 else SINGLE
    above = w.integer_op("sub", w.to_bits(x), w.integer(1 << c.mantissa))
    return w.let(f"icmp uge {w.vector.integers} {above}, {w.integer(c.infinity - (1 << c.mantissa))}")


@vector_function()
def log(w: Writer, x: str) -> str:
    """Return the natural logarithm; rare lanes are taken from ``log_far``."""
    return w.where_any(_rare(w, x), join(w, *split(w, x, tiny=False)), lambda: w.call("log_far", x))


@vector_function(far=True)
def log_far(w: Writer, x: str) -> str:
    """Return the natural logarithm of any number."""
    return _edges(w, x, join(w, *split(w, x)), 0.0)


@vector_function(wide=True)
def log1p(w: Writer, x: str) -> str:
    """Return log(1 + x)."""
    total, lost = w.two_sum(1.0, x)
    k, f = split(w, total, tiny=False)
    # What 1 + x lost is scaled as f was: by (1 + f) / total.
    scaled = w.mul(lost, w.div(w.add(f, 1.0), total))
    small = w.compare("oeq", k, 0.0)
    f = w.select(small, x, f)
    result = join(w, k, f, w.select(small, 0.0, scaled))
    return _edges(w, x, w.copy_sign(result, x), -1.0)


def log_pair(w: Writer, x: str, tiny: bool = True) -> Pair:
    """Return the logarithm of a positive number to about 2^-64, as a pair; denormal numbers only if ``tiny``."""
    k, f = split(w, x, tiny)
    d, d_low = w.fast_two_sum(2.0, f)
    inverse = w.div(1.0, d)
    s = w.mul(f, inverse)
    lost = w.fma(w.neg(s), d_low, w.fma(w.neg(s), d, f))
    s_pair = (s, w.mul(lost, inverse))
    z = w.multiply(s_pair, s_pair)
    inner = w.fma(z[0], w.polynomial(LOG_TAIL, z[0]), TWO_THIRDS[1])
    cubic = w.multiply(s_pair, w.multiply(z, w.fast_two_sum(TWO_THIRDS[0], inner)))
    high, low = w.fast_two_sum(w.add(s, s), cubic[0])
    low = w.add(low, w.fma(s_pair[1], 2.0, cubic[1]))
    total, rest = w.two_sum(w.mul(k, LN2_SHORT[0]), high)
    return w.fast_two_sum(total, w.add(rest, w.fma(k, LN2_SHORT[1], low)))


@vector_function(wide=True, out_of_line=True)
def log2(w: Writer, x: str) -> str:
    """Return the logarithm to base two, exact at its powers."""
    return _to_base(w, x, TO_BASE_TWO)


@vector_function(wide=True, out_of_line=True)
def log10(w: Writer, x: str) -> str:
    """Return the logarithm to base ten, exact at its powers."""
    return _to_base(w, x, TO_BASE_TEN)


def _to_base(w: Writer, x: str, factor: tuple[float, float]) -> str:
    """Multiply the logarithm, a pair, by another: rounded once, nearly, so that whole numbers come out whole."""
    high, low = w.multiply(log_pair(w, x), (w.number(factor[0]), w.number(factor[1])))
    return _edges(w, x, w.add(high, low), 0.0)


def _pow_of_positive(w: Writer, x: str, y: str, tiny: bool) -> str:
    """Return x to the power y for positive finite numbers."""
    high, low = log_pair(w, x, tiny)
    product = w.mul(y, high)
    rest = w.fma(y, low, w.fma(y, high, w.neg(product)))
    modest = w.compare("olt", w.absolute(product), 800.0)
    return exp_of_pair(w, (product, w.select(modest, rest, 0.0)))


@vector_function(wide=True, out_of_line=True)
def pow(w: Writer, x: str, y: str) -> str:
    """Return x to the power y; rare lanes are taken apart."""
    endless = w.compare("ueq", w.absolute(y), INFINITY)
    usual = _pow_of_positive(w, x, y, tiny=False)
    return w.where_any(w.either(_rare(w, x), endless), usual, lambda: _pow_of_any(w, x, y))


def _pow_of_any(w: Writer, x: str, y: str) -> str:
    """Return x to the power y, with the special cases of IEEE 754."""
    size = w.absolute(x)
    power = _pow_of_edges(w, size, y, _pow_of_positive(w, size, y, tiny=True))
    power = _pow_of_negative(w, x, y, power)
    one = w.either(w.compare("oeq", x, 1.0), w.compare("oeq", y, 0.0))
    return w.select(one, 1.0, power)


def _pow_of_edges(w: Writer, size: str, y: str, power: str) -> str:
    """Mend |x|^y where |x| is zero, one, infinite or NaN, or y is NaN."""
    rises = w.compare("ogt", y, 0.0)
    power = w.choose("oeq", size, 0.0, w.select(rises, 0.0, INFINITY), power)
    power = w.choose("oeq", size, INFINITY, w.select(rises, INFINITY, 0.0), power)
    power = w.choose("oeq", size, 1.0, 1.0, power)
    return w.select(w.compare("uno", size, y), w.add(size, y), power)


def _pow_of_negative(w: Writer, x: str, y: str, power: str) -> str:
    """Give the power its sign where x is negative, and NaN where y is no integer."""
    whole = w.compare("oeq", w.intrinsic("trunc", y), y)
    half = w.mul(y, 0.5)
    odd = w.both(whole, w.compare("une", w.intrinsic("trunc", half), half))
    bits = w.let(f"zext {w.vector.mask} {odd} to {w.vector.integers}")
    negative = w.integer_op("lshr", w.to_bits(x), w.integer(w.vector.bits - 1))
    signed = w.flip_sign(power, w.integer_op("and", bits, negative))
    below = w.both(w.compare("olt", x, 0.0), w.compare("one", x, -INFINITY))
    wrong = w.both(below, w.compare("one", w.intrinsic("trunc", y), y))
    return w.select(wrong, NAN, signed)
