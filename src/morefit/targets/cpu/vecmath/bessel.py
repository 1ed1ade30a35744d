"""Write modified Bessel functions of real order, times exponentials that take their growth: kve and ive, with their derivatives.

exp(x) K_nu(x) is the integral of exp(-x (cosh(t) - 1)) cosh(nu t), which the trapezoidal rule gives to all digits; so are its
derivatives by the order and by x. exp(-x) I_nu(x) is a power series without cancellation, or an asymptotic one, and so are its
derivatives by x. Those by the order, and large orders, are integrals of exp(x cosh(t) - nu t) along the path t = u + i v on which this is
real: sinh(u) = (nu / x) v / sin(v). All terms of the value and of the first derivative by nu have one sign there. With
v = 2 atan(sinh(s / 2)) the trapezoidal rule gives all digits, also where the path turns sharply at v = pi.
"""

from __future__ import annotations

import math
from functools import partial

from morefit.targets.coefficients import (
    BESSEL_DEPTH,
    BESSEL_SERIES_LIMIT,
    BESSEL_STEP,
    BESSEL_STEPS_LIMIT,
    CONTOUR_FROM,
    CONTOUR_ORDER,
    COSH_LESS_ONE,
    INVERSE_ROOT_TWO_PI,
    LEAST_ORDER,
)
from morefit.targets.cpu.vecmath.function import INFINITY, LARGE, NAN, vector_function
from morefit.targets.cpu.writer import Writer

TOGETHER = 4  # nodes in one round of the loop: their exponentials do not wait for each other
NEGLIGIBLE = 2.0**-57


def _kve(w: Writer, nu: str, x: str, derivatives: int, by_x: int) -> str:
    """Return exp(x) K_nu(x) or one of its derivatives by the order and by -x."""
    order, x = w.absolute(nu), w.clamp(x, 0.0, LARGE)
    sharpness = w.intrinsic("sqrt", w.fma(x, x, w.mul(order, order)))
    step = w.fma(sharpness, BESSEL_STEP[1], BESSEL_STEP[0])
    step = w.div(1.0, w.intrinsic("sqrt", step))
    square = w.mul(step, step)
    growth = w.mul(square, w.polynomial(COSH_LESS_ONE, square))  # 2 (cosh(step) - 1)
    slope = w.mul(order, step)
    fall = w.call("exp", w.mul(slope, -2.0))
    one, zero = w.number(1.0), w.number(0.0)
    start = [
        w.number(0.5 if derivatives == by_x == 0 else 0.0),  # the sum
        zero,  # the number of the node
        zero,  # the exponent there
        zero,  # cosh(t) - 1
        w.mul(growth, 0.5),  # its next difference
        one,  # exp(-2 nu t)
    ]

    def go(*state: str) -> tuple[list[str], str]:
        total, k, exponent, height, rise, ratio = state
        for _ in range(TOGETHER):
            before = exponent
            k = w.add(k, one)
            height = w.add(height, rise)
            rise = w.fma(growth, w.add(height, one), rise)
            ratio = w.mul(ratio, fall)
            exponent = w.fma(slope, k, w.neg(w.mul(x, height)))
            term = w.call("exp", exponent)
            mirrored = w.mul(term, ratio)
            term = w.add(term, mirrored) if derivatives % 2 == 0 else w.sub(term, mirrored)
            for _ in range(derivatives):
                term = w.mul(term, w.mul(k, step))
            for _ in range(by_x):
                term = w.mul(term, height)
            total = w.fma(0.5, term, total)
        matters = w.compare("ogt", term, w.mul(total, NEGLIGIBLE))
        return [total, k, exponent, height, rise, ratio], w.either(
            matters, w.compare("oge", exponent, before)
        )

    total = w.repeat(start, go, BESSEL_STEPS_LIMIT)[0]
    return w.mul(total, step)


def bessel_edges(w: Writer, nu: str, x: str, result: str, at_zero: str) -> str:
    """Put in the values at zero, at infinity and below zero, and NaN."""
    result = w.choose("oeq", x, INFINITY, 0.0, w.choose("oeq", x, 0.0, at_zero, result))
    result = w.choose("olt", x, 0.0, NAN, result)
    return w.select(w.compare("uno", nu, x), w.add(nu, x), result)


def _second_kind(w: Writer, nu: str, x: str, *, by_order: int, by_x: int) -> str:
    """Return exp(x) K_nu(x), or a derivative by nu and x; infinite at zero, NaN below."""
    size = bessel_edges(w, nu, x, _kve(w, nu, x, by_order, by_x), w.number(INFINITY))
    if by_order % 2:
        below, above = (size, w.neg(size)) if by_x else (w.neg(size), size)
        return w.choose("olt", nu, 0.0, below, above)
    return w.neg(size) if by_x == 1 else size


TINY = 1e-150  # instead of zero, where derivatives have a limit


def _power_series(w: Writer, nu: str, x: str, by_order: int, by_x: int) -> str:
    """Return exp(-x) I_nu(x) as a sum of positive terms, or a derivative, in which each has a factor."""
    half = w.mul(x, 0.5)
    square = w.mul(half, half)
    one, zero, inverse = w.number(1.0), w.number(0.0), w.div(1.0, x)
    logarithm, up = w.call("log", half), w.add(nu, one)
    slope = w.sub(logarithm, w.call("digamma", up)) if by_order else zero
    bend = w.call("trigamma", up) if by_order == 2 else zero

    def part(term: str, k: str, slope: str, bend: str) -> str:
        """Return what a term x^m, m = nu + 2 k, adds: times m / x - 1 for the derivative by x, times ``slope`` for that by nu."""
        if by_order == 2:
            return w.mul(term, w.fma(slope, slope, w.neg(bend)))
        ratio = w.mul(w.fma(k, 2.0, nu), inverse)
        fall = w.sub(ratio, one)
        if by_order:
            return w.mul(term, w.fma(slope, fall, inverse) if by_x else slope)
        factor = fall if by_x == 1 else w.fma(fall, fall, w.neg(w.mul(ratio, inverse)))
        return w.mul(term, factor) if by_x else term

    def go(*state: str) -> tuple[list[str], str]:
        total, plain, term, k, slope, bend = state
        k = w.add(k, one)
        step = w.div(one, w.add(k, nu))
        term = w.mul(term, w.mul(w.div(square, k), step))
        slope, bend = w.sub(slope, step), w.fma(w.neg(step), step, bend)
        total, plain = w.add(total, part(term, k, slope, bend)), w.add(plain, term)
        going = w.compare("ogt", term, w.mul(plain, NEGLIGIBLE))
        return [total, plain, term, k, slope, bend], going

    start = [part(one, zero, slope, bend), one, one, zero, slope, bend]
    total = w.repeat(start, go, BESSEL_SERIES_LIMIT)[0]
    power = w.choose("oeq", nu, 0.0, 0.0, w.mul(nu, logarithm))
    exponent = w.sub(w.sub(power, x), w.call("lgamma", up))
    # Half of the exponential before the sum, half after: neither overflows nor underflows where the result does not.
    factor = w.call("exp", w.mul(exponent, 0.5))
    return w.mul(w.mul(total, factor), factor)


def _asymptotic(w: Writer, nu: str, x: str, derivatives: int) -> str:
    """Return exp(-x) I_nu(x) for x > 30 + nu^2 / 2, by Hankel's expansion, or a derivative of it by x."""
    four = w.mul(w.mul(nu, nu), 4.0)
    inverse = w.div(-0.125, x)

    def part(term: str, k: str) -> str:
        """Return what a term x^-m, m = k + 1/2, adds: times -m / x for the first derivative."""
        for added in range(derivatives):
            term = w.mul(term, w.add(k, 0.5 + added))
        return term

    def go(total: str, term: str, k: str) -> tuple[list[str], str]:
        odd = w.fma(k, 2.0, 1.0)
        k = w.add(k, 1.0)
        factor = w.div(w.mul(w.sub(four, w.mul(odd, odd)), inverse), k)
        term = w.mul(term, factor)
        added = part(term, k)
        total = w.add(total, added)
        return [total, term, k], w.compare("ogt", w.absolute(added), NEGLIGIBLE)

    one, zero = w.number(1.0), w.number(0.0)
    total = w.repeat([part(one, zero), one, zero], go, 60)[0]
    for _ in range(derivatives):
        total = w.mul(total, w.mul(inverse, 8.0))
    return w.mul(total, w.div(INVERSE_ROOT_TWO_PI, w.intrinsic("sqrt", x)))


def _contour(w: Writer, nu: str, x: str, by_order: int, by_x: int) -> str:
    """Return exp(-x) I_nu(x) for x > 0, or a derivative, by the trapezoidal rule along its path."""
    one, zero = w.number(1.0), w.number(0.0)
    step = w.fma(w.intrinsic("sqrt", w.fma(x, x, w.mul(nu, nu))), BESSEL_STEP[1], BESSEL_STEP[0])
    step = w.div(1.0, w.intrinsic("sqrt", step))
    half = w.mul(step, 0.5)
    turn, stretch = w.call("sinh", half), w.call("cosh", half)
    slope = w.div(w.choose("olt", nu, LEAST_ORDER, LEAST_ORDER, nu), x)

    def weight(u: str, v: str, real: str, imaginary: str, rise: str) -> str:
        """Return the imaginary part of (-t)^n (cosh(t) - 1)^m dt / dv, where ``rise`` is du / dv."""
        term, other = one, zero
        for _ in range(by_order):
            term, other = (
                w.fma(v, other, w.neg(w.mul(u, term))),
                w.neg(w.fma(u, other, w.mul(v, term))),
            )
        for _ in range(by_x):
            term, other = (
                w.fma(real, term, w.neg(w.mul(imaginary, other))),
                w.fma(real, other, w.mul(imaginary, term)),
            )
        return w.fma(other, rise, term) if by_order or by_x else one

    def node(sinh: str, inverse_cosh: str, v: str, stretched: str, rise: str) -> tuple[str, str]:
        """Return a term and its exponent, at an angle v; ``stretched`` is v / sin(v) and ``rise`` its derivative."""
        square = w.mul(sinh, sinh)
        z = w.mul(slope, stretched)
        root = w.intrinsic("sqrt", w.fma(z, z, one))
        u = w.call("asinh", z)
        above = w.mul(w.mul(z, w.div(z, w.add(root, one))), w.sub(one, square))
        real = w.mul(w.sub(above, w.add(square, square)), w.mul(inverse_cosh, inverse_cosh))  # of cosh(t) - 1
        exponent = w.fma(x, real, w.neg(w.mul(nu, u)))
        factor = weight(u, v, real, w.mul(slope, v), w.div(w.mul(slope, rise), root))
        return w.mul(w.mul(factor, w.call("exp", exponent)), inverse_cosh), exponent

    first, top = node(zero, one, zero, one, zero)
    depth = w.sub(top, BESSEL_DEPTH)
    if by_order:
        corner = w.choose("olt", x, 20.0, w.add(x, x), 40.0)
        depth = w.sub(depth, w.choose("olt", nu, 1.0, corner, 0.0))

    def go(total: str, sinh: str, cosh: str) -> tuple[list[str], str]:
        sinh, cosh = w.fma(sinh, stretch, w.mul(cosh, turn)), w.fma(cosh, stretch, w.mul(sinh, turn))
        v = w.mul(w.call("atan", sinh), 2.0)
        both = w.div(one, w.mul(sinh, cosh))
        inverse = w.mul(both, sinh)  # of cosh(s / 2)
        inverse_sine = w.mul(w.mul(cosh, cosh), w.mul(w.mul(both, cosh), 0.5))
        cosine = w.mul(w.sub(one, w.mul(sinh, sinh)), w.mul(inverse, inverse))
        stretched = w.mul(v, inverse_sine)
        rise = w.mul(w.fma(w.neg(cosine), stretched, one), inverse_sine)
        term, exponent = node(sinh, inverse, v, stretched, rise)
        return [w.add(total, term), sinh, cosh], w.compare("ogt", exponent, depth)

    total = w.repeat([w.mul(first, 0.5), zero, one], go, BESSEL_STEPS_LIMIT)[0]
    return w.mul(total, w.mul(step, 1 / math.pi))


def _by_x(w: Writer, nu: str, x: str, derivatives: int) -> str:
    """Return exp(-x) I_nu(x) or a derivative by x; NaN where a sign is negative."""
    end = w.fma(w.mul(nu, 0.5), nu, 30.0)
    far = w.compare("ogt", x, end)
    large = w.both(w.compare("ogt", nu, CONTOUR_ORDER), w.compare("ogt", x, CONTOUR_FROM))
    large = w.both(large, w.compare("ole", x, end))
    place = w.clamp(x, TINY, INFINITY) if derivatives else x
    result = _power_series(w, nu, w.select(w.either(far, large), 1.0, place), 0, derivatives)
    inside = w.select(large, w.clamp(x, 0.0, LARGE), 1e9)
    result = w.where_any(large, result, lambda: _contour(w, w.clamp(nu, 0.0, LARGE), inside, 0, derivatives))
    result = w.where_any(far, result, lambda: _asymptotic(w, nu, w.select(far, x, 1e9), derivatives))
    at_zero = result if derivatives else w.choose("oeq", nu, 0.0, 1.0, 0.0)
    return w.choose("olt", nu, 0.0, NAN, bessel_edges(w, nu, x, result, at_zero))


def _by_order(w: Writer, nu: str, x: str, times: int, by_x: int) -> str:
    """Return a derivative of exp(-x) I_nu(x) by the order; NaN where a sign is negative."""
    far = w.compare("ogt", x, CONTOUR_FROM)
    order, place = w.clamp(nu, 0.0, LARGE), w.clamp(x, TINY, LARGE)
    result = _power_series(w, order, w.select(far, 1.0, place), times, by_x)
    large = w.select(far, place, 1e9)
    result = w.where_any(far, result, lambda: _contour(w, order, large, times, by_x))
    at_zero = result if by_x else w.choose("oeq", nu, 0.0, INFINITY if times == 2 else -INFINITY, 0.0)
    return w.choose("olt", nu, 0.0, NAN, bessel_edges(w, nu, x, result, at_zero))


def _first_kind(w: Writer, nu: str, x: str, *, by_order: int, by_x: int) -> str:
    """Return exp(-x) I_nu(x) for x >= 0 and nu >= 0, or a derivative by nu and x; NaN elsewhere."""
    return _by_order(w, nu, x, by_order, by_x) if by_order else _by_x(w, nu, x, by_x)


DERIVATIVES = {
    "": (0, 0), "_slope": (0, 1), "_bend": (0, 2),
    "_by_order": (1, 0), "_by_order_twice": (2, 0), "_by_order_slope": (1, 1),
}  # by nu and by x  # fmt: skip
for _kind, _write in (("kve", _second_kind), ("ive", _first_kind)):
    for _derivative, (_times, _slopes) in DERIVATIVES.items():
        vector_function(name=_kind + _derivative, wide=True, out_of_line=True)(
            partial(_write, by_order=_times, by_x=_slopes)
        )
