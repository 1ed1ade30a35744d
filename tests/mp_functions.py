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


def wofz_derivative(x: Any, y: Any, order: int) -> Any:
    """Return a derivative of the Faddeeva function: from lower ones, with digits to spare."""
    z = mp.mpc(x, y)
    if abs(z) > FAR and y > 0:  # no digits suffice for differences far out
        terms = (
            mp.factorial(2 * k + order) / (mp.mpf(4) ** k * mp.factorial(k) * z ** (2 * k)) for k in range(60)
        )
        return (-1) ** order * 1j / (mp.sqrt(mp.pi) * z ** (order + 1)) * mp.fsum(terms)
    with mp.extradps(40):
        known = [wofz(x, y)]
        known.append(2j / mp.sqrt(mp.pi) - 2 * z * known[0])
        for k in range(1, order):
            known.append(-2 * z * known[k] - 2 * k * known[k - 1])
    return known[order]


def tail(x: Any, order: int) -> Any:
    """Return a derivative of sqrt(pi) x erfcx(x) by q = 1 / (2 x^2): a moment of exp(-v - q v^2 / 2), or its asymptotic series."""
    q = 1 / (2 * max(x, mp.mpf(2)) ** 2)
    if x > FAR:
        terms = (
            (-1) ** k * mp.fac2(2 * k - 1) * mp.ff(k, order) * q ** (k - order) for k in range(order, 40)
        )
        return mp.fsum(terms)
    return mp.quad(
        lambda v: (-v * v / 2) ** order * mp.exp(-v - q * v * v / 2), [0, 1, 3, 6, 12, 25, 50, 100, 200]
    )


def kve(nu: Any, x: Any, derivatives: int = 0, by_x: int = 0) -> Any:
    """Return exp(x) K_nu(x), or its derivatives by nu and x, by an integral."""
    if derivatives == by_x == 0:
        return mp.besselk(nu, x) * mp.exp(x)
    size = mp.sinh if derivatives % 2 else mp.cosh
    with mp.extradps(5):
        end = mp.acosh(1 + (3 * mp.mp.dps + 10 * abs(nu)) / x)
        step = end / (100 + 10 * int(abs(nu) + min(x, mp.mpf(10**4)) ** 0.5))  # the trapezoidal rule, finely
        nodes = (k * step for k in range(1, int(end / step) + 1))
        heights = ((t, 2 * mp.sinh(t / 2) ** 2) for t in nodes)
        terms = (t**derivatives * h**by_x * size(nu * t) * mp.exp(-x * h) for t, h in heights)
        return (-1) ** by_x * mp.fsum(terms) * step


def ive(nu: Any, x: Any, derivatives: int = 0, by_order: int = 0) -> Any:
    """Return exp(-x) I_nu(x), or a derivative by x and by nu, with digits to spare."""
    with mp.extradps(40):
        if by_order:
            return difference(lambda order: ive(order, x, derivatives), nu, by_order, max(nu, mp.mpf(1)))
        i = [mp.besseli(nu + k, x) * mp.exp(-x) for k in range(derivatives + 1)]
        ratio = nu / x - 1 if derivatives else 0
        if derivatives == 2:
            return (ratio**2 - nu / x**2) * i[0] + (2 * ratio + 1 / x) * i[1] + i[2]
        return ratio * i[0] + i[1] if derivatives else i[0]


def difference(function: Any, at: Any, times: int, size: Any) -> Any:
    """Differentiate once or twice with more digits."""
    with mp.extradps(40):
        step = size * mp.mpf(10) ** -12
        low, high = function(at - step), function(at + step)
        return (high - low) / (2 * step) if times == 1 else (high - 2 * function(at) + low) / step**2


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


def rise(order: int, x: Any, h: Any) -> Any:
    """Return what a polygamma function rises by from x to x + h."""
    with mp.extradps(40):
        return mp.psi(order, x + h) - mp.psi(order, x)


def betaln(a: Any, b: Any) -> Any:
    """Return the logarithm of the beta function."""
    with mp.extradps(20):
        return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """Return the density of a beta distribution."""
    with mp.extradps(20):
        return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - betaln(a, b))


def gamma_density(a: Any, x: Any) -> Any:
    """Return the density of a gamma distribution."""
    with mp.extradps(20):
        return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def betainc(a: Any, b: Any, x: Any, by: str = "") -> Any:
    """Return the regularised incomplete beta function, or its derivative by "a", "b", "aa", "ab" or "bb"."""
    upper = x * (a + b) > a  # the lighter side has the digits

    def side(p: Any, q: Any) -> Any:
        return -lighter(q, p, 1 - x) if upper else lighter(p, q, x)

    if not by:
        return side(a, b) + upper
    if by == "ab":
        with mp.extradps(40):
            steps = a * mp.mpf(10) ** -12, b * mp.mpf(10) ** -12
            corners = (i * j * side(a + i * steps[0], b + j * steps[1]) for i in (-1, 1) for j in (-1, 1))
            return mp.fsum(corners) / (4 * steps[0] * steps[1])
    shape = a if by[0] == "a" else b
    return difference(lambda s: side(s, b) if by[0] == "a" else side(a, s), shape, len(by), shape)


def lighter(a: Any, b: Any, x: Any) -> Any:
    """Return the incomplete beta function by a series of positive terms."""
    total = term = mp.mpf(1)
    n = 0
    while term > mp.eps * total:
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        n += 1
    return beta_density(a, b, x) * x * (1 - x) / a * total
