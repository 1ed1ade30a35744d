"""Orthogonal polynomials, Bernstein polynomials and real spherical harmonics, by stable recurrences.

A degree is a whole number; a series is a sum of polynomials of degree 0, 1, ... times coefficients, numbers or expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from morefit.errors import ModelError
from morefit.expr import Expr, Op, Operand, add_all, to_expr

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
    degree = len(coefficients) - 1
    check_degree("number of coefficients less one", degree)
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


def legendre_basis(degree: int, x: Expr) -> list[Expr]:
    basis = [to_expr(1), x]
    for n in range(1, degree):
        basis.append((2 * n + 1) / (n + 1) * x * basis[n] - n / (n + 1) * basis[n - 1])
    return basis[: degree + 1]


def chebyshev_basis(degree: int, x: Expr) -> list[Expr]:
    basis = [to_expr(1), x]
    for n in range(1, degree):
        basis.append(2 * x * basis[n] - basis[n - 1])
    return basis[: degree + 1]


def hermite_basis(degree: int, x: Expr) -> list[Expr]:
    basis = [to_expr(1), 2 * x]
    for n in range(1, degree):
        basis.append(2 * x * basis[n] - 2 * n * basis[n - 1])
    return basis[: degree + 1]


def last_of(degree: int, x: Operand, basis: Basis) -> Expr:
    check_degree("degree", degree)
    return basis(degree, to_expr(x))[degree]


def series(coefficients: Sequence[Operand], x: Operand, basis: Basis) -> Expr:
    check_degree("number of coefficients less one", len(coefficients) - 1)
    terms = zip(coefficients, basis(len(coefficients) - 1, to_expr(x)), strict=True)
    return add_all(*(c * polynomial for c, polynomial in terms))


def check_degree(what: str, degree: int) -> None:
    if degree not in range(MAX_DEGREE + 1):
        raise ModelError(f"polynomial: the {what} must be a whole number in [0, {MAX_DEGREE}], got {degree}")
