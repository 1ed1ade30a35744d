"""Write the Faddeeva function w(x + i y) = exp(-z^2) erfc(-i z): its real and its imaginary part.

w(z) is an integral of a Gaussian over a pole: a sum over equally spaced nodes, and what the pole adds to it. Nodes lie at
multiples of ``STEP`` or halfway between them, whichever are farther from x. Terms of the sum have one sign in the real part,
so that it is right also where it is small (Chiarella and Reichel 1968; Al Azah and Chandler-Wilde 2021).
"""

from __future__ import annotations

import math

from morefit.targets.coefficients import (
    FADDEEVA_BETWEEN,
    FADDEEVA_FAR,
    FADDEEVA_ON,
    FADDEEVA_RATE,
    FADDEEVA_STEP,
    INVERSE_ROOT_PI,
)
from morefit.targets.cpu.vecmath.exponential import exp_modest, exp_of_pair
from morefit.targets.cpu.vecmath.function import vector_function, widened
from morefit.targets.cpu.vecmath.trigonometric import double_angle, sine_and_cosine_of
from morefit.targets.cpu.writer import Writer

Complex = tuple[str, str]
GAUSSIAN_ZERO = 28.0  # exp(-x^2) is zero from here on
LARGE = 1e150  # whose square does not overflow
LARGEST = 1e307  # whose inverse does not underflow


def _node_sums(w: Writer, x: str, y: str, between: str) -> tuple[str, str, str]:
    """Return the sums of a (|z|^2 + t^2) / |z^2 - t^2|^2 and of a (|z|^2 - t^2) / |z^2 - t^2|^2, and their denominator.

    Fractions are added two by two, so that there is one division in the end.
    """
    size = w.fma(x, x, w.mul(y, y))
    square = w.neg(w.mul(y, y))
    cross = w.mul(w.add(x, x), y)
    cross = w.mul(cross, cross)
    nodes = list(zip(FADDEEVA_BETWEEN, FADDEEVA_ON, strict=True))

    def total(first: int, last: int) -> tuple[str, str, str]:
        """Add the fractions of some nodes; those of a half are added before the next are made, to need few registers."""
        if last - first == 1:
            (t, a), (t_on, a_on) = nodes[first]
            node = w.select(between, t, t_on)
            weight = w.select(between, a, a_on)
            part = w.select(between, a * t * t, a_on * t_on * t_on)
            distance = w.fma(w.sub(x, node), w.add(x, node), square)
            real, imaginary = w.fma(weight, size, part), w.fma(weight, size, w.neg(part))
            return real, imaginary, w.fma(distance, distance, cross)
        middle = (first + last) // 2
        (r, i, d), (r2, i2, d2) = total(first, middle), total(middle, last)
        return w.fma(r, d2, w.mul(r2, d)), w.fma(i, d2, w.mul(i2, d)), w.mul(d, d2)

    return total(0, len(nodes))


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


def _first_quadrant(w: Writer, x: str, y: str) -> Complex:
    """Return w for x >= 0 and y >= 0, neither of them large."""
    ratio = w.mul(x, 1.0 / FADDEEVA_STEP)
    off = w.sub(ratio, w.intrinsic("roundeven", ratio))
    between = w.compare("ole", w.absolute(off), 0.25)
    real, imaginary, denominator = _node_sums(w, x, y, between)
    off = w.select(between, off, w.sub(off, w.copy_sign(0.5, off)))
    pole_real, pole_imaginary, below = _pole(w, x, y, off)
    inverse = w.div(1.0, w.mul(denominator, below))
    sums, pole = w.mul(inverse, below), w.mul(inverse, denominator)
    real, imaginary = w.mul(w.mul(y, real), sums), w.mul(w.mul(x, imaginary), sums)
    return w.fma(pole_real, pole, real), w.fma(pole_imaginary, pole, imaginary)


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


@vector_function()
@widened
def wofz_real(w: Writer, x: str, y: str) -> str:
    """Return the real part of w(x + i y)."""
    width, height = w.absolute(x), w.absolute(y)
    near = _first_quadrant(w, width, height)[0]
    result = w.where_any(_large(w, width, height), near, lambda: _far(w, width, height)[0])
    negative = w.compare("olt", y, 0.0)
    return w.where_any(negative, result, lambda: w.sub(_reflected(w, x, y)[0], result))


@vector_function()
@widened
def wofz_imag(w: Writer, x: str, y: str) -> str:
    """Return the imaginary part of w(x + i y)."""
    width, height = w.absolute(x), w.absolute(y)
    near = _first_quadrant(w, width, height)[1]
    result = w.where_any(_large(w, width, height), near, lambda: _far(w, width, height)[1])
    result = w.copy_sign(result, x)
    negative = w.compare("olt", y, 0.0)
    return w.where_any(negative, result, lambda: w.sub(result, _reflected(w, x, y)[1]))
