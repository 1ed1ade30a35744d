"""Write the modified Bessel functions of real order, times an exponential that takes their growth: kve, ive.

exp(x) K_nu(x) is the integral of exp(-x (cosh(t) - 1)) cosh(nu t), which the trapezoidal rule gives to all digits; so are its
derivatives by the order and by x. I_nu is a power series without cancellation, or an asymptotic one, and so are its derivatives.
"""

from __future__ import annotations

from morefit.targets.coefficients import (
    BESSEL_SERIES_LIMIT,
    BESSEL_STEP,
    BESSEL_STEPS_LIMIT,
    COSH_LESS_ONE,
    INVERSE_ROOT_TWO_PI,
)
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function, widened
from morefit.targets.cpu.writer import Writer

TOGETHER = 4  # nodes in one round of the loop: their exponentials do not wait for each other
NEGLIGIBLE = 2.0**-57
LARGE = 1e150  # whose square does not overflow
TINY = 1e-150  # instead of zero, where derivatives have a limit
LIFT = 2.0**-1000  # keeps the power series from overflowing


def _kve(w: Writer, nu: str, x: str, derivatives: int, by_x: int = 0) -> str:
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


def _edges(w: Writer, nu: str, x: str, result: str, at_zero: str) -> str:
    """Put in the values at zero, at infinity and below zero, and NaN."""
    result = w.choose("oeq", x, INFINITY, 0.0, w.choose("oeq", x, 0.0, at_zero, result))
    result = w.choose("olt", x, 0.0, NAN, result)
    return w.select(w.compare("uno", nu, x), w.add(nu, x), result)


@vector_function(out_of_line=True)
@widened
def kve(w: Writer, nu: str, x: str) -> str:
    """Return exp(x) K_nu(x); infinite at zero, NaN below."""
    return _edges(w, nu, x, _kve(w, nu, x, 0), w.number(INFINITY))


@vector_function(out_of_line=True)
@widened
def kve_by_order(w: Writer, nu: str, x: str) -> str:
    """Return the derivative of exp(x) K_nu(x) by nu."""
    size = _edges(w, nu, x, _kve(w, nu, x, 1), w.number(INFINITY))
    return w.choose("olt", nu, 0.0, w.neg(size), size)


@vector_function(out_of_line=True)
@widened
def kve_by_order_twice(w: Writer, nu: str, x: str) -> str:
    """Return the second derivative of exp(x) K_nu(x) by nu."""
    return _edges(w, nu, x, _kve(w, nu, x, 2), w.number(INFINITY))


@vector_function(out_of_line=True)
@widened
def kve_slope(w: Writer, nu: str, x: str) -> str:
    """Return the derivative of exp(x) K_nu(x) by x."""
    return w.neg(_edges(w, nu, x, _kve(w, nu, x, 0, 1), w.number(INFINITY)))


@vector_function(out_of_line=True)
@widened
def kve_bend(w: Writer, nu: str, x: str) -> str:
    """Return the second derivative of exp(x) K_nu(x) by x."""
    return _edges(w, nu, x, _kve(w, nu, x, 0, 2), w.number(INFINITY))


@vector_function(out_of_line=True)
@widened
def kve_by_order_slope(w: Writer, nu: str, x: str) -> str:
    """Return the derivative of exp(x) K_nu(x) by nu and by x."""
    size = _edges(w, nu, x, _kve(w, nu, x, 1, 1), w.number(INFINITY))
    return w.choose("olt", nu, 0.0, size, w.neg(size))


def _power_series(w: Writer, nu: str, x: str, derivatives: int) -> str:
    """Return exp(-x) I_nu(x) as a sum of positive terms, or a derivative, in which each has a factor."""
    half = w.mul(x, 0.5)
    square = w.mul(half, half)
    one = w.number(1.0)
    large = w.compare("ogt", x, 300.0)
    start = w.select(large, LIFT, one)

    inverse = w.div(1.0, x)

    def part(term: str, k: str) -> str:
        """Return what a term x^m, m = nu + 2 k, adds: times m / x - 1 for the first derivative."""
        ratio = w.mul(w.fma(k, 2.0, nu), inverse)
        fall = w.sub(ratio, one)
        factor = fall if derivatives == 1 else w.fma(fall, fall, w.neg(w.mul(ratio, inverse)))
        return w.mul(term, factor) if derivatives else term

    def go(total: str, plain: str, term: str, k: str) -> tuple[list[str], str]:
        k = w.add(k, one)
        term = w.mul(term, w.div(square, w.mul(k, w.add(k, nu))))
        total, plain = w.add(total, part(term, k)), w.add(plain, term)
        return [total, plain, term, k], w.compare("ogt", term, w.mul(plain, NEGLIGIBLE))

    zero = w.number(0.0)
    total = w.repeat([part(start, zero), start, start, zero], go, BESSEL_SERIES_LIMIT)[0]
    power = w.mul(nu, w.call("log", half))
    power = w.choose("oeq", nu, 0.0, 0.0, power)
    exponent = w.sub(w.sub(power, x), w.call("lgamma", w.add(nu, one)))
    # Half of the exponential before the sum, half after: neither overflows nor underflows where the result does not.
    factor = w.call("exp", w.mul(exponent, 0.5))
    return w.mul(w.mul(w.mul(total, factor), w.select(large, 1.0 / LIFT, one)), factor)


def _asymptotic(w: Writer, nu: str, x: str, derivatives: int) -> str:
    """Return exp(-x) I_nu(x) for x > 30 + nu^2 / 2, by Hankel's expansion, or a derivative of it."""
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


def _ive(w: Writer, nu: str, x: str, derivatives: int) -> str:
    """Return exp(-x) I_nu(x) or a derivative; NaN where a sign is negative."""
    far = w.compare("ogt", x, w.fma(w.mul(nu, 0.5), nu, 30.0))
    place = w.clamp(x, TINY, INFINITY) if derivatives else x
    near = _power_series(w, nu, w.select(far, 1.0, place), derivatives)
    result = w.where_any(far, near, lambda: _asymptotic(w, nu, w.select(far, x, 1e9), derivatives))
    at_zero = result if derivatives else w.choose("oeq", nu, 0.0, 1.0, 0.0)
    return w.choose("olt", nu, 0.0, NAN, _edges(w, nu, x, result, at_zero))


@vector_function(out_of_line=True)
@widened
def ive(w: Writer, nu: str, x: str) -> str:
    """Return exp(-x) I_nu(x) for x >= 0 and nu >= 0; NaN elsewhere."""
    return _ive(w, nu, x, 0)


@vector_function(out_of_line=True)
@widened
def ive_slope(w: Writer, nu: str, x: str) -> str:
    """Return its derivative by x."""
    return _ive(w, nu, x, 1)


@vector_function(out_of_line=True)
@widened
def ive_bend(w: Writer, nu: str, x: str) -> str:
    """Return its second derivative by x."""
    return _ive(w, nu, x, 2)
