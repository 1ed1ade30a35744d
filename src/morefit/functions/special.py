"""Functions of formulas by name, for what NumPy has no ufunc for, or scipy would have to be imported for."""

from __future__ import annotations

from morefit.expr import Expr, Op, Operand, to_expr


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
    """Return log(beta(a, b)); what the logarithms of the three gamma functions round away, it lacks."""
    return Op.LGAMMA(a) + Op.LGAMMA(b) - Op.LGAMMA(to_expr(a) + b)


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
    """Return the regularised incomplete beta function, the distribution function of a beta distribution.

    It has a derivative by x only: with parameters as shapes, a density needs a numerical integral.
    """
    return Op.BETAINC(a, b, x)
