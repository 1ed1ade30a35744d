"""Write the modified Bessel function of the second kind, of real order, times an exponential that takes its growth: kve.

exp(x) K_nu(x) is the integral of exp(-x (cosh(t) - 1)) cosh(nu t), which the trapezoidal rule gives to all digits; so are its
derivatives by the order and by x.
"""

from __future__ import annotations

from morefit.targets.coefficients import BESSEL_STEP, BESSEL_STEPS_LIMIT, COSH_LESS_ONE
from morefit.targets.cpu.vecmath.function import INFINITY, NAN, vector_function, widened
from morefit.targets.cpu.writer import Writer

TOGETHER = 4  # nodes in one round of the loop: their exponentials do not wait for each other
NEGLIGIBLE = 2.0**-57
LARGE = 1e150  # whose square does not overflow


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


def bessel_edges(w: Writer, nu: str, x: str, result: str, at_zero: str) -> str:
    """Put in the values at zero, at infinity and below zero, and NaN."""
    result = w.choose("oeq", x, INFINITY, 0.0, w.choose("oeq", x, 0.0, at_zero, result))
    result = w.choose("olt", x, 0.0, NAN, result)
    return w.select(w.compare("uno", nu, x), w.add(nu, x), result)


@vector_function(out_of_line=True)
@widened
def kve(w: Writer, nu: str, x: str) -> str:
    """Return exp(x) K_nu(x); infinite at zero, NaN below."""
    return bessel_edges(w, nu, x, _kve(w, nu, x, 0), w.number(INFINITY))


@vector_function(out_of_line=True)
@widened
def kve_by_order(w: Writer, nu: str, x: str) -> str:
    """Return the derivative of exp(x) K_nu(x) by nu."""
    size = bessel_edges(w, nu, x, _kve(w, nu, x, 1), w.number(INFINITY))
    return w.choose("olt", nu, 0.0, w.neg(size), size)


@vector_function(out_of_line=True)
@widened
def kve_by_order_twice(w: Writer, nu: str, x: str) -> str:
    """Return the second derivative of exp(x) K_nu(x) by nu."""
    return bessel_edges(w, nu, x, _kve(w, nu, x, 2), w.number(INFINITY))


@vector_function(out_of_line=True)
@widened
def kve_slope(w: Writer, nu: str, x: str) -> str:
    """Return the derivative of exp(x) K_nu(x) by x."""
    return w.neg(bessel_edges(w, nu, x, _kve(w, nu, x, 0, 1), w.number(INFINITY)))


@vector_function(out_of_line=True)
@widened
def kve_bend(w: Writer, nu: str, x: str) -> str:
    """Return the second derivative of exp(x) K_nu(x) by x."""
    return bessel_edges(w, nu, x, _kve(w, nu, x, 0, 2), w.number(INFINITY))


@vector_function(out_of_line=True)
@widened
def kve_by_order_slope(w: Writer, nu: str, x: str) -> str:
    """Return the derivative of exp(x) K_nu(x) by nu and by x."""
    size = bessel_edges(w, nu, x, _kve(w, nu, x, 1, 1), w.number(INFINITY))
    return w.choose("olt", nu, 0.0, size, w.neg(size))
