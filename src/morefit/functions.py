"""Functions for formulas, besides those of NumPy: special functions, polynomials by stable recurrences, interpolation.

A degree is a whole number; a series is a sum of polynomials of degree 0, 1, ... times coefficients, numbers or expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from morefit.arrays import Array
from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, add_all, to_expr
from morefit.expr.interpolate import (
    antiderivative,
    checked_axis,
    clip,
    cubic_cells,
    interp,
    piecewise,
    piecewise_family,
    short,
    table,
)

__all__ = [
    "arccosh", "arcsinh", "arctanh", "bernstein", "bernstein_series", "beta", "betainc", "betaln", "chebyshev", "chebyshev_series", "clip",
    "digamma", "erf", "erfc", "erfcx", "gammainc", "gammaincc", "gammaln", "hermite", "hermite_series", "interp", "iv", "ive", "kv", "kve", "legendre",
    "legendre_series", "log_ndtr", "ndtr", "ndtri", "piecewise", "sign", "spherical_harmonic", "spline", "table", "wofz_imag", "wofz_real",
]  # fmt: skip


def arcsinh(x: Operand) -> Expr:
    """Return the inverse of the hyperbolic sine, for all x."""
    return Op.ASINH(x)


def arccosh(x: Operand) -> Expr:
    """Return the inverse of the hyperbolic cosine, for x >= 1."""
    return Op.ACOSH(x)


def arctanh(x: Operand) -> Expr:
    """Return the inverse of the hyperbolic tangent, for -1 <= x <= 1."""
    return Op.ATANH(x)


def sign(x: Operand) -> Expr:
    """Return 1, 0 or -1; its derivative is zero."""
    return Op.SIGN(x)


def erf(x: Operand) -> Expr:
    r"""Return the error function $2 / \sqrt\pi \int_0^x e^{-t^2} dt$."""
    return Op.ERF(x)


def erfc(x: Operand) -> Expr:
    """Return 1 - erf(x), without loss for large x."""
    return Op.ERFC(x)


def erfcx(x: Operand) -> Expr:
    """Return exp(x^2) erfc(x), for x > -26.6; an exponential decay with a Gaussian resolution is made of it."""
    return Op.ERFCX(x)


def ndtr(x: Operand) -> Expr:
    """Return the distribution function of the standard normal distribution."""
    return Op.NDTR(x)


def log_ndtr(x: Operand) -> Expr:
    """Return the logarithm of ``ndtr``, right on both sides."""
    return Op.LOG_NDTR(x)


def ndtri(p: Operand) -> Expr:
    """Return the quantile of the standard normal distribution, for 0 <= p <= 1."""
    return Op.NDTRI(p)


def wofz_real(x: Operand, y: Operand) -> Expr:
    r"""Return the real part of the Faddeeva function $w(x + i y) = e^{-z^2} \operatorname{erfc}(-i z)$.

    A Voigt density is this of ((m - mu) / (sqrt(2) sigma), gamma / (sqrt(2) sigma)), over sqrt(2 pi) sigma.
    """
    return Op.WOFZ_REAL(x, y)


def wofz_imag(x: Operand, y: Operand) -> Expr:
    """Return the imaginary part of the Faddeeva function of x + i y."""
    return Op.WOFZ_IMAG(x, y)


def gammaln(x: Operand) -> Expr:
    """Return log|Gamma(x)|."""
    return Op.LGAMMA(x)


def digamma(x: Operand) -> Expr:
    """Return the derivative of ``gammaln``."""
    return Op.DIGAMMA(x)


def beta(a: Operand, b: Operand) -> Expr:
    """Return Gamma(a) Gamma(b) / Gamma(a + b), for positive a and b."""
    return Op.EXP(betaln(a, b))


def betaln(a: Operand, b: Operand) -> Expr:
    """Return log(beta(a, b)), for positive a and b."""
    return Op.BETALN(a, b)


def kv(nu: Operand, x: Operand) -> Expr:
    """Return the modified Bessel function of the second kind K_nu(x), of any real order, for x > 0."""
    return Op.KVE(nu, x) * Op.EXP(-to_expr(x))


def kve(nu: Operand, x: Operand) -> Expr:
    """Return exp(x) K_nu(x), which does not underflow."""
    return Op.KVE(nu, x)


def iv(nu: Operand, x: Operand) -> Expr:
    """Return the modified Bessel function of the first kind I_nu(x), for nu >= 0 and x >= 0."""
    return Op.IVE(nu, x) * Op.EXP(x)


def ive(nu: Operand, x: Operand) -> Expr:
    """Return exp(-x) I_nu(x), which does not overflow."""
    return Op.IVE(nu, x)


def gammainc(a: Operand, x: Operand) -> Expr:
    """Return the regularised incomplete gamma function P(a, x), the distribution function of a gamma distribution."""
    return Op.GAMMAINC(a, x)


def gammaincc(a: Operand, x: Operand) -> Expr:
    """Return Q(a, x) = 1 - P(a, x), without loss for large x."""
    return Op.GAMMAINCC(a, x)


def betainc(a: Operand, b: Operand, x: Operand) -> Expr:
    """Return the regularised incomplete beta function, the distribution function of a beta distribution."""
    return Op.BETAINC(a, b, x)


MAX_DEGREE = 200  # where recurrences have lost five digits at worst


def legendre(degree: int, x: Operand) -> Expr:
    r"""Return the Legendre polynomial $P_n(x)$, orthogonal on [-1, 1]."""
    return last_of(degree, x, legendre_basis)


def chebyshev(degree: int, x: Operand) -> Expr:
    r"""Return the Chebyshev polynomial of the first kind $T_n(x) = \cos(n \arccos x)$."""
    return last_of(degree, x, chebyshev_basis)


def hermite(degree: int, x: Operand) -> Expr:
    r"""Return the Hermite polynomial of the physicists $H_n(x)$, orthogonal under $e^{-x^2}$."""
    return last_of(degree, x, hermite_basis)


def bernstein(index: int, degree: int, x: Operand) -> Expr:
    r"""Return the Bernstein polynomial $\binom{n}{k} x^k (1 - x)^{n - k}$, not negative on [0, 1]."""
    check_degree("degree", degree)
    if not 0 <= index <= degree:
        raise ModelError(f"polynomial 'bernstein': the index must lie in [0, {degree}], got {index}")
    place = to_expr(x)
    return float(math.comb(degree, index)) * place**index * (1 - place) ** (degree - index)


def legendre_series(coefficients: Sequence[Operand], x: Operand) -> Expr:
    """Return a sum of Legendre polynomials."""
    return series(coefficients, x, legendre_basis)


def chebyshev_series(coefficients: Sequence[Operand], x: Operand) -> Expr:
    """Return a sum of Chebyshev polynomials."""
    return series(coefficients, x, chebyshev_basis)


def hermite_series(coefficients: Sequence[Operand], x: Operand) -> Expr:
    """Return a sum of Hermite polynomials of the physicists."""
    return series(coefficients, x, hermite_basis)


def bernstein_series(coefficients: Sequence[Operand], x: Operand) -> Expr:
    """Return a sum of the Bernstein polynomials of one degree: positive on [0, 1] if all coefficients are."""
    degree = degree_of(coefficients)
    return add_all(*(c * bernstein(k, degree, x) for k, c in enumerate(coefficients)))


def spherical_harmonic(degree: int, order: int, cos_theta: Operand, phi: Operand) -> Expr:
    r"""Return the real spherical harmonic $Y_{lm}$, normalised to one on the sphere.

    $\sqrt{2} N P_l^{|m|}(\cos\theta) \cos(m \phi)$, with $\sin(|m| \phi)$ for negative orders, and without the phase
    $(-1)^m$ of Condon and Shortley: $Y_{1,1}$ is proportional to x, $Y_{1,-1}$ to y.
    """
    check_degree("degree", degree)
    if abs(order) > degree:
        raise ModelError(
            f"polynomial 'spherical_harmonic': the order must lie in [-{degree}, {degree}], got {order}"
        )
    m, c, angle = abs(order), to_expr(cos_theta), to_expr(phi)
    diagonal = math.prod(((2 * k + 1) / (2 * k) for k in range(1, m + 1)), start=1 / (4 * math.pi))
    before, here = to_expr(0), math.sqrt(diagonal) * ((1 - c) * (1 + c)) ** (m / 2)
    for n in range(m + 1, degree + 1):
        forward = math.sqrt((4 * n**2 - 1) / (n**2 - m**2))
        back = math.sqrt(((n - 1) ** 2 - m**2) / (4 * (n - 1) ** 2 - 1))
        before, here = here, forward * c * here - forward * back * before
    if order == 0:
        return here
    return math.sqrt(2) * here * (Op.COS if order > 0 else Op.SIN)(m * angle)


# ------------------------------------------------------------------------------------- recurrences

Basis = Callable[[int, Expr], list[Expr]]  # the polynomials of degree 0 to n


def recurrence(degree: int, first: Expr, step: Callable[[int, Expr, Expr], Expr]) -> list[Expr]:
    """Return polynomials from degree 0 on, each by a step from the two before."""
    basis = [to_expr(1), first]
    for n in range(1, degree):
        basis.append(step(n, basis[n], basis[n - 1]))
    return basis[: degree + 1]


def legendre_basis(degree: int, x: Expr) -> list[Expr]:
    return recurrence(degree, x, lambda n, p, q: (2 * n + 1) / (n + 1) * x * p - n / (n + 1) * q)


def chebyshev_basis(degree: int, x: Expr) -> list[Expr]:
    return recurrence(degree, x, lambda n, p, q: 2 * x * p - q)


def hermite_basis(degree: int, x: Expr) -> list[Expr]:
    return recurrence(degree, 2 * x, lambda n, p, q: 2 * x * p - 2 * n * q)


def last_of(degree: int, x: Operand, basis: Basis) -> Expr:
    check_degree("degree", degree)
    return basis(degree, to_expr(x))[degree]


def series(coefficients: Sequence[Operand], x: Operand, basis: Basis) -> Expr:
    terms = zip(coefficients, basis(degree_of(coefficients), to_expr(x)), strict=True)
    return add_all(*(c * polynomial for c, polynomial in terms))


def degree_of(coefficients: Any) -> int:
    """Return the degree of a series, whose coefficients must be listed."""
    if not isinstance(coefficients, (Sequence, np.ndarray)) or isinstance(coefficients, str):
        raise ModelError(f"polynomial: coefficients must be a list, got {coefficients!r:.60}")
    check_degree("number of coefficients less one", len(coefficients) - 1)
    return len(coefficients) - 1


def check_degree(what: str, degree: int) -> None:
    if degree not in range(MAX_DEGREE + 1):
        raise ModelError(f"polynomial: the {what} must be a whole number in [0, {MAX_DEGREE}], got {degree}")


Boundary = Literal["not-a-knot", "natural"]
MIN_KNOTS = {"not-a-knot": 4, "natural": 2}
MAX_KNOTS = 1000  # of a spline, whose points all depend on each other


def spline(
    x: Operand,
    knots: Sequence[float] | Array,
    values: Sequence[Operand],
    *,
    boundary: Boundary = "not-a-knot",
) -> Expr:
    """Return the cubic spline through points; constant beyond the first and the last.

    ``knots`` are numbers that rise; ``values`` are numbers, parameters or expressions. ``boundary`` is "not-a-knot", or
    "natural" for a second derivative of zero at both ends, as in CubicSpline of scipy.
    """
    ends, heights = check_points(knots, values, boundary)
    return weighted(x, ends, heights, basis(ends, boundary))


def spline_integral(x: Operand, knots: Array, heights: Sequence[Expr], boundary: Boundary) -> Expr:
    """Return the integral of a spline from its first knot up to x."""
    return weighted(
        x, knots, heights, np.array([antiderivative(knots, rows) for rows in basis(knots, boundary)])
    )


def weighted(x: Operand, knots: Array, heights: Sequence[Expr], functions: Array) -> Expr:
    """Add piecewise polynomials, (functions, powers, cells), times heights; those times numbers are one."""
    known = np.array([h.number if h.op is Op.CONST else 0.0 for h in heights])
    moving = [k for k, height in enumerate(heights) if height.op is not Op.CONST]
    families = [*functions[moving], np.tensordot(known, functions, 1)]
    *curves, fixed = piecewise_family(to_expr(x), knots, np.array(families))
    return add_all(*(heights[k] * curve for k, curve in zip(moving, curves, strict=True)), fixed)


def check_points(knots: Any, values: Any, boundary: str) -> tuple[Array, list[Expr]]:
    """Return the knots and the heights of a spline."""
    if boundary not in MIN_KNOTS:
        raise ModelError(f"spline: boundary must be 'not-a-knot' or 'natural', got {boundary!r}")
    ends = checked_axis("spline: knots", knots)
    if not MIN_KNOTS[boundary] <= len(ends) <= MAX_KNOTS:
        rule = f"boundary '{boundary}' needs {MIN_KNOTS[boundary]} to {MAX_KNOTS} knots"
        raise ModelError(f"spline: {rule}, got {len(ends)}; use mf.table for another interpolation")
    if not isinstance(values, Iterable) or len(heights := [to_expr(v) for v in values]) != len(ends):
        count = len(heights) if isinstance(values, Iterable) else short(values)
        raise ModelError(f"spline: needs one value for each of {len(ends)} knots, got {count}")
    return ends, heights


def basis(knots: Array, boundary: Boundary) -> Array:
    """Return for each knot the polynomials of the spline that is one there and zero at the others, (knots, powers, cells)."""
    units = np.eye(len(knots))
    derivatives = np.linalg.solve(*equations(knots, boundary))
    return np.array([cubic_cells(knots, unit, d) for unit, d in zip(units, derivatives.T, strict=True)])


def equations(knots: Array, boundary: Boundary) -> tuple[Array, Array]:
    """Return the matrices of the conditions for the derivatives at the knots: left @ derivatives = right @ values."""
    n, h = len(knots), np.diff(knots)
    slopes = (np.eye(n)[1:] - np.eye(n)[:-1]) / h[:, None]  # of the lines between points, times the values
    left, right = np.zeros((n, n)), np.zeros((n, n))
    for k in range(1, n - 1):
        left[k, k - 1 : k + 2] = h[k], 2 * (h[k - 1] + h[k]), h[k - 1]
        right[k] = 3 * (h[k] * slopes[k - 1] + h[k - 1] * slopes[k])
    for end, inner, s, w in ((0, 1, slopes[:2], h[:2]), (n - 1, n - 2, slopes[:-3:-1], h[:-3:-1])):
        if boundary == "natural":
            left[end, [end, inner]] = 2, 1
            right[end] = 3 * s[0]
        else:
            left[end, [end, inner]] = w[1], w[0] + w[1]
            right[end] = ((w[0] + 2 * (w[0] + w[1])) * w[1] * s[0] + w[0] ** 2 * s[1]) / (w[0] + w[1])
    return left, right


def __dir__() -> list[str]:
    return __all__
