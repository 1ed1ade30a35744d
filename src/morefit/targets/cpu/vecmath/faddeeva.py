"""Write the Faddeeva function w(x + i y) = exp(-z^2) erfc(-i z) and its derivative: real and imaginary parts.

w(z) is an integral of a Gaussian over a pole: a sum over equally spaced nodes, and what the pole adds to it. Nodes lie at
multiples of ``STEP`` or halfway between them, whichever are farther from x. Terms of the sum have one sign in the real part,
so that it is right also where it is small (Chiarella and Reichel 1968; Al Azah and Chandler-Wilde 2021). The derivative
w' = 2 i / sqrt(pi) - 2 z w, which cancels far out, is such a sum with weights of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from morefit.dataclass import dataclass
from morefit.targets.coefficients import (
    FADDEEVA_BETWEEN,
    FADDEEVA_FAR,
    FADDEEVA_MOMENT_FROM,
    FADDEEVA_MOMENTS,
    FADDEEVA_ON,
    FADDEEVA_RATE,
    FADDEEVA_SERIES,
    FADDEEVA_SERIES_FROM,
    FADDEEVA_STEP,
    INVERSE_ROOT_PI,
)
from morefit.targets.cpu.vecmath.exponential import exp_modest, exp_of_pair
from morefit.targets.cpu.vecmath.function import LARGE, vector_function
from morefit.targets.cpu.vecmath.trigonometric import double_angle, sine_and_cosine_of
from morefit.targets.cpu.writer import Writer

Complex = tuple[str, str]
GAUSSIAN_ZERO = 28.0  # exp(-x^2) is zero from here on
LARGEST = 1e307  # whose inverse does not underflow
# above, exp(-z^2) is no part of w far out; below the real axis all of 2 exp(-z^2) is, on it a half
REAL_AXIS = 0.01


def _node_sums(w: Writer, x: str, y: str, between: str) -> tuple[str, str, str, str]:
    """Return the sums of a, of a t^2 and of a t^2 Re(z^2 - t^2), all over |z^2 - t^2|^2, and their denominator.

    Fractions are added two by two, so that there is one division in the end.
    """
    square = w.neg(w.mul(y, y))
    cross = w.mul(w.add(x, x), y)
    cross = w.mul(cross, cross)
    nodes = list(zip(FADDEEVA_BETWEEN, FADDEEVA_ON, strict=True))

    def total(first: int, last: int) -> tuple[str, ...]:
        """Add the fractions of some nodes; those of a half are added before the next are made, to need few registers."""
        if last - first == 1:
            (t, a), (t_on, a_on) = nodes[first]
            node = w.select(between, t, t_on)
            weight = w.select(between, a, a_on)
            part = w.select(between, a * t * t, a_on * t_on * t_on)
            distance = w.fma(w.sub(x, node), w.add(x, node), square)
            return weight, part, w.mul(part, distance), w.fma(distance, distance, cross)
        middle = (first + last) // 2
        (*left, d), (*right, d2) = total(first, middle), total(middle, last)
        sums = [w.fma(one, d2, w.mul(other, d)) for one, other in zip(left, right, strict=True)]
        return *sums, w.mul(d, d2)

    weights, parts, distances, denominator = total(0, len(nodes))
    return weights, parts, distances, denominator


def _pole(w: Writer, x: str, y: str, off: str) -> tuple[str, str, str]:
    """Return 2 exp(-z^2) / (1 + exp(-2 pi i z / STEP)), x / STEP being ``off`` from the middle between two nodes.

    It comes as a real and an imaginary part and what both are to be divided by.
    """
    height = w.clamp(y, 0.0, FADDEEVA_RATE / 2)
    width = w.clamp(x, 0.0, GAUSSIAN_ZERO)
    square, square_low = w.two_product(width, w.neg(width))
    exponent, low = w.two_sum(square, w.mul(height, w.sub(height, FADDEEVA_RATE)))
    size = exp_of_pair(w, (exponent, w.add(low, square_low)))
    size = w.choose("olt", y, FADDEEVA_RATE / 2, w.add(size, size), 0.0)
    decay = exp_modest(w, w.mul(height, -FADDEEVA_RATE))
    sine, cosine = double_angle(w, w.mul(off, math.pi))
    shifted = w.add(decay, cosine)
    below = w.fma(decay, w.add(shifted, cosine), 1.0)
    turn_sine, turn_cosine = sine_and_cosine_of(w, w.mul(w.add(width, width), height))
    real = w.fma(turn_cosine, shifted, w.mul(turn_sine, sine))
    imaginary = w.fma(turn_cosine, sine, w.neg(w.mul(turn_sine, shifted)))
    return w.mul(size, real), w.mul(size, imaginary), below


def _first_quadrant(w: Writer, x: str, y: str) -> tuple[Complex, Complex]:
    """Return w and its derivative for x >= 0 and y >= 0, neither of them large."""
    ratio = w.mul(x, 1.0 / FADDEEVA_STEP)
    off = w.sub(ratio, w.intrinsic("roundeven", ratio))
    between = w.compare("ole", w.absolute(off), 0.25)
    weights, parts, distances, denominator = _node_sums(w, x, y, between)
    off = w.select(between, off, w.sub(off, w.copy_sign(0.5, off)))
    pole_real, pole_imaginary, below = _pole(w, x, y, off)
    inverse = w.div(1.0, w.mul(denominator, below))
    sums, pole = w.mul(inverse, below), w.mul(inverse, denominator)
    pole_real, pole_imaginary = w.mul(pole_real, pole), w.mul(pole_imaginary, pole)
    size = w.fma(x, x, w.mul(y, y))
    weights = w.mul(size, weights)
    real, imaginary = w.mul(y, w.add(weights, parts)), w.mul(x, w.sub(weights, parts))
    value = w.fma(real, sums, pole_real), w.fma(imaginary, sums, pole_imaginary)
    moment = w.select(between, FADDEEVA_MOMENTS[1], FADDEEVA_MOMENTS[0])
    sums = w.mul(sums, w.choose("ogt", size, FADDEEVA_MOMENT_FROM**2, moment, 1.0))
    real = w.fma(x, pole_real, w.mul(y, w.fma(w.mul(w.add(x, x), parts), sums, w.neg(pole_imaginary))))
    imaginary = w.fma(distances, sums, w.fma(x, pole_imaginary, w.mul(y, pole_real)))
    return value, (w.mul(-2.0, real), w.mul(-2.0, imaginary))


def _far(w: Writer, x: str, y: str) -> Complex:
    """Return i z / (sqrt(pi) (z^2 - 1/2)), as good as exact for large z, for x >= 0 and y >= 0."""
    scale = w.select(w.compare("ogt", x, y), x, y)
    inverse = w.div(1.0, w.clamp(scale, 1.0, LARGEST))
    x, y = (w.mul(w.clamp(v, 0.0, LARGEST), inverse) for v in (x, y))
    half = w.mul(w.mul(inverse, 0.5), inverse)
    distance = w.sub(w.mul(w.sub(x, y), w.add(x, y)), half)
    cross = w.mul(w.add(x, x), y)
    size = w.fma(x, x, w.mul(y, y))
    factor = w.choose("ogt", scale, LARGEST, 0.0, w.mul(inverse, INVERSE_ROOT_PI))
    factor = w.div(factor, w.fma(distance, distance, w.mul(cross, cross)))
    return w.mul(w.mul(y, w.add(size, half)), factor), w.mul(w.mul(x, w.sub(size, half)), factor)


def _reflected(w: Writer, x: str, y: str) -> Complex:
    """Return the real part of 2 exp(-z^2), by which w(z) and -w(-z) differ, and minus its imaginary part."""
    x, y = (w.clamp(v, -LARGE, LARGE) for v in (x, y))
    square, square_low = w.two_product(y, y)
    other, other_low = w.two_product(x, w.neg(x))
    exponent, low = w.two_sum(square, other)
    low = w.add(low, w.add(square_low, other_low))
    modest = w.compare("olt", w.absolute(exponent), 800.0)
    size = exp_of_pair(w, (exponent, w.select(modest, low, 0.0)))
    turn, rest = w.two_product(w.add(x, x), y)
    sine, cosine = w.call("sin", turn), w.call("cos", turn)
    size = w.add(size, size)
    real = w.mul(size, w.fma(w.neg(rest), sine, cosine))
    return real, w.mul(size, w.fma(rest, cosine, sine))


def _large(w: Writer, x: str, y: str) -> str:
    limit = w.number(FADDEEVA_FAR)
    return w.either(w.compare("ogt", x, limit), w.compare("ogt", y, limit))


@dataclass(frozen=True)
class Part:
    """A part of w or of its derivative: how it is chosen, what sign that of x gives it, and what it is below the real axis."""

    of: Callable[[Complex, Complex], str]  # of w and its derivative
    signed: Callable[[str], str]
    # of the value at -z, with its sign, and of what ``_reflected`` returns
    below: Callable[[str, Complex], str]

    def write(self, w: Writer, x: str, y: str) -> str:
        """Return it near the origin, and where a lane needs that far out or in the lower half plane."""
        width, height = w.absolute(x), w.absolute(y)
        near = self.of(*_first_quadrant(w, width, height))
        large, negative = _large(w, width, height), w.compare("olt", y, 0.0)

        def far() -> str:
            return self.of(_far(w, width, height), far_derivative(w, width, height, 1))

        def rare() -> str:
            upper = self.signed(w.where_any(large, near, far))
            return w.where_any(negative, upper, lambda: self.below(upper, _reflected(w, x, y)))

        return w.where_any(w.either(large, negative), self.signed(near), rare)


@vector_function(wide=True)
def wofz_real(w: Writer, x: str, y: str) -> str:
    """Return the real part of w(x + i y)."""
    part = Part(lambda v, _: v[0], lambda value: value, lambda value, gauss: w.sub(gauss[0], value))
    return part.write(w, x, y)


@vector_function(wide=True)
def wofz_imag(w: Writer, x: str, y: str) -> str:
    """Return the imaginary part of w(x + i y)."""
    part = Part(
        lambda v, _: v[1],
        lambda value: w.copy_sign(value, x),
        lambda value, gauss: w.sub(value, gauss[1]),
    )
    return part.write(w, x, y)


@vector_function(wide=True)
def wofz_slope_real(w: Writer, x: str, y: str) -> str:
    """Return the real part of the derivative of w at x + i y."""
    part = Part(
        lambda _, slope: slope[0],
        lambda value: w.select(w.compare("olt", x, 0.0), w.neg(value), value),
        lambda value, gauss: w.fma(-2.0, w.fma(x, gauss[0], w.mul(y, gauss[1])), w.neg(value)),
    )
    return part.write(w, x, y)


@vector_function(wide=True)
def wofz_slope_imag(w: Writer, x: str, y: str) -> str:
    """Return the imaginary part of the derivative of w at x + i y."""
    part = Part(
        lambda _, slope: slope[1],
        lambda value: value,
        lambda value, gauss: w.fma(-2.0, w.fma(y, gauss[0], w.neg(w.mul(x, gauss[1]))), value),
    )
    return part.write(w, x, y)


# ------------------------------------------------------------------------------- far from the origin


def far_derivative(w: Writer, x: str, y: str, order: int) -> Complex:
    """Return a derivative of i / (sqrt(pi) z) (1 + 1 / (2 z^2) + 3 / (4 z^4) + ...)."""
    scale = w.select(w.compare("ogt", w.absolute(x), w.absolute(y)), w.absolute(x), w.absolute(y))
    inverse = w.div(1.0, w.clamp(scale, 1.0, LARGEST))
    u, v = (w.mul(w.clamp(part, -LARGEST, LARGEST), inverse) for part in (x, y))
    inverse = w.div(inverse, w.fma(u, u, w.mul(v, v)))
    first = w.mul(u, inverse), w.neg(w.mul(v, inverse))  # 1 / z
    second = multiply(w, first, first)
    *lower, last = FADDEEVA_SERIES[order]
    total: Complex = w.number(last), w.number(0.0)
    for coefficient in reversed(lower):
        total = multiply(w, total, second, coefficient)
    for power in (second,) * ((order + 1) // 2) + (first,) * ((order + 1) % 2):
        total = multiply(w, total, power)
    return w.neg(total[1]), total[0]


def multiply(w: Writer, a: Complex, b: Complex, added: float = 0.0) -> Complex:
    """Return a product of complex numbers, and a real number added to it."""
    cross = w.mul(a[1], b[1]) if not added else w.fma(a[1], b[1], -added)
    return w.fma(a[0], b[0], w.neg(cross)), w.fma(a[0], b[1], w.mul(a[1], b[0]))


def _gaussian_derivative(w: Writer, x: str, y: str, order: int) -> Complex:
    """Return a derivative of 2 exp(-z^2), of the second to fourth order; a half of it next to the real axis."""
    real, minus = _reflected(w, x, y)
    half = w.choose("olt", y, -REAL_AXIS, 1.0, 0.5)
    gaussian = w.mul(half, real), w.mul(half, w.neg(minus))
    square = multiply(w, (x, y), (x, y))
    if order == 4:
        inner = multiply(w, (w.fma(16.0, square[0], -48.0), w.mul(16.0, square[1])), square, 12.0)
        return multiply(w, gaussian, inner)
    if order == 2:
        return multiply(w, gaussian, (w.fma(4.0, square[0], -2.0), w.mul(4.0, square[1])))
    inner = multiply(w, (w.fma(-8.0, square[0], 12.0), w.mul(-8.0, square[1])), (x, y))
    return multiply(w, gaussian, inner)


def _far_part(w: Writer, x: str, y: str, *, order: int, part: int) -> str:
    """Return the real or imaginary part of a derivative of w where z is far from the origin, zero elsewhere."""
    far = w.compare("uge", w.fma(x, x, w.mul(y, y)), FADDEEVA_SERIES_FROM**2)  # NaN as well

    def series() -> str:
        result = far_derivative(w, x, y, order)[part]
        near = w.compare("ogt", w.fma(y, y, w.neg(w.mul(x, x))), -750.0)
        near = w.both(near, w.compare("ole", y, REAL_AXIS))
        return w.where_any(near, result, lambda: w.add(result, _gaussian_derivative(w, x, y, order)[part]))

    return w.where_any(far, w.number(0.0), series)


for _name, _order, _part in (
    ("bend_far_real", 2, 0),
    ("bend_far_imag", 2, 1),
    ("third_far_real", 3, 0),
    ("third_far_imag", 3, 1),
    ("fourth_far_real", 4, 0),
):
    vector_function(name=f"wofz_{_name}", wide=True)(partial(_far_part, order=_order, part=_part))
