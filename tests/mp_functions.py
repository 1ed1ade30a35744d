"""Special functions with many digits, where mpmath's own name means something else, or is slow far out."""

from __future__ import annotations

from typing import Any

import mpmath as mp

FAR = 13  # forty terms of the asymptotic series of w(z) have 40 digits from here on


def erfcx(x: Any) -> Any:
    """Return exp(x^2) erfc(x)."""
    return wofz(mp.mpf(0), x).real


def ndtr(x: Any) -> Any:
    """Return the standard normal distribution."""
    return mp.exp(log_ndtr(x)) if x < 0 else mp.ncdf(x)


def log_ndtr(x: Any) -> Any:
    """Return its logarithm."""
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    return mp.log(erfcx(-x / mp.sqrt(2)) / 2) - x**2 / 2


def wofz(x: Any, y: Any) -> Any:
    """Return the Faddeeva function of x + i y."""
    z = mp.mpc(x, y)
    if y < 0:
        return 2 * mp.exp(-(z**2)) - wofz(-x, -y)
    if abs(z) < FAR:
        with mp.extradps(int(abs(z) ** 2 / 2) + 10):  # erfc is near 2 where exp(-z^2) is large
            return mp.exp(-(z**2)) * mp.erfc(-1j * z)
    total, term = mp.mpc(0), mp.mpc(1)
    for k in range(40):
        total += term
        term *= (2 * k + 1) / (2 * z**2)
    gaussian = mp.exp(-(z**2)) if y == 0 else 0
    return gaussian + 1j / (mp.sqrt(mp.pi) * z) * total


def kve(nu: Any, x: Any, derivatives: int = 0) -> Any:
    """Return exp(x) K_nu(x), or its derivatives by nu, by an integral."""
    if derivatives == 0:
        return mp.besselk(nu, x) * mp.exp(x)
    size = mp.sinh if derivatives % 2 else mp.cosh
    with mp.extradps(5):
        end = mp.acosh(1 + (3 * mp.mp.dps + 10 * abs(nu)) / x)
        step = end / (100 + 10 * int(abs(nu) + x**0.5))  # the trapezoidal rule, finely
        nodes = (k * step for k in range(1, int(end / step) + 1))
        terms = (t**derivatives * size(nu * t) * mp.exp(-2 * x * mp.sinh(t / 2) ** 2) for t in nodes)
        return mp.fsum(terms) * step


def ive(nu: Any, x: Any) -> Any:
    """Return exp(-x) I_nu(x)."""
    return mp.besseli(nu, x) * mp.exp(-x)


def ndtri(p: Any) -> Any:
    """Return the quantile of the standard normal distribution."""
    return mp.findroot(
        lambda z: log_ndtr(z) - mp.log(p),
        mp.sqrt(2) * mp.erfinv(2 * p - 1) if p > 1e-3 else -mp.sqrt(-2 * mp.log(p)),
    )


def gammainc(a: Any, x: Any, derivatives: int = 0) -> Any:
    """Return P(a, x), or its derivatives by a."""
    if derivatives == 0:
        return mp.gammainc(a, 0, x, regularized=True)
    with mp.extradps(80):
        return mp.diff(lambda s: mp.gammainc(s, 0, x, regularized=True), a, derivatives)


def gammaincc(a: Any, x: Any) -> Any:
    """Return Q(a, x)."""
    return mp.gammainc(a, x, mp.inf, regularized=True)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Return the regularised incomplete beta function."""
    return mp.betainc(a, b, 0, x, regularized=True)
