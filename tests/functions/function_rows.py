"""Every function for formulas: where it is tried, against what, and how right it must be. A new one is a new row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

import morefit as mf
import mp_functions as precise

Point = tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """One function; ``tolerance`` is relative, or of ``scale`` where a value or slope is smaller."""

    name: str
    function: Callable[..., Any]
    exact: Callable[..., Any]
    points: Sequence[Point]
    tolerance: float = 1e-14
    slope_tolerance: float = 1e-13
    scale: float = 1e-300
    bend_tolerance: float = 1e-12  # of second derivatives


def line(*numbers: float) -> list[Point]:
    return [(x,) for x in numbers]


XS, YS = (0.0, 0.3, 1.0, 2.5), (1.0, -0.5, 2.0, 0.25)
GRID, HEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0), (1.0, -0.5, 2.0, 0.25, 3.0)
ON_LINES = line(-0.7, 0.1, 0.35, 0.9, 1.2, 1.9, 2.6, 1e5)
PLANE = [
    (0.3, 0.2),
    (-2.5, 1.5),
    (5.5, 1e-3),
    (7.0, 1e-9),
    (0.0, 3.0),
    (40.0, 2.0),
    (3.0, 70.0),
    (2e4, 5.0),
    (1.0, -0.8),
]
SHAPES = [(0.1, 0.05), (0.5, 3.0), (2.5, 1.0), (2.5, 9.0), (60.0, 55.0), (1e3, 1.05e3)]
TWO_SHAPES = [
    (0.5, 0.5, 0.1),
    (2.0, 3.5, 0.7),
    (20.0, 1.5, 0.99),
    (100.0, 200.0, 0.3),
    (3e3, 1e3, 0.74),
    (1e-3, 2.0, 0.3),
    (2.0, 1e-3, 0.9),
]
BETAS = [(0.5, 0.5), (3.0, 1e-3), (20.0, 30.0)]
COEFFICIENTS = (0.5, -1.25, 0.75, 2.0, -0.1)


def interpolated(xs: Sequence[float], ys: Sequence[float]) -> Callable[[Any], Any]:
    def exact(x: Any) -> Any:
        if not xs[0] <= x <= xs[-1]:
            return mp.mpf(ys[0] if x < xs[0] else ys[-1])
        k = min(int(np.searchsorted(xs, float(x), "right")) - 1, len(xs) - 2)
        low, high = mp.mpf(xs[k]), mp.mpf(xs[k + 1])
        return ys[k] + (x - low) * (mp.mpf(ys[k + 1]) - ys[k]) / (high - low)

    return exact


PLANE_HEIGHTS = ((1.0, 2.0, -1.0), (0.5, 1.5, 3.0), (2.0, 1.0, 0.0), (-1.0, 0.25, 0.5))
POWERS = ((1.0, 2.0, -1.0), (0.5, -1.5, 3.0), (2.0, 1.0, 0.5), (-1.0, 0.25, 0.5))


def bilinear(x: Any, y: Any) -> Any:
    across = [interpolated(GRID[:3], row)(y) for row in PLANE_HEIGHTS]
    return interpolated(XS, across)(x)


def polynomials(x: Any) -> Any:
    inside = min(max(x, XS[0]), XS[-1])
    k = min(int(np.searchsorted(XS, float(inside), "right")) - 1, len(XS) - 2)
    return mp.fsum(row[k] * (inside - mp.mpf(XS[k])) ** n for n, row in enumerate(POWERS))


def cubic_of(xs: Sequence[float], ys: Sequence[float]) -> Callable[[Any], Any]:
    """Return the spline of five points: cubics through two ends that meet in the middle with three derivatives in common."""

    def exact(x: Any) -> Any:
        at = [mp.mpf(v) for v in xs]
        # 1, x, x^2, x^3 and (x - middle)_+^3: not-a-knot leaves no other knot
        rows = [[v**k for k in range(4)] + [max(v - at[2], 0) ** 3] for v in at]
        weights = mp.lu_solve(mp.matrix(rows), mp.matrix(list(ys)))
        inside = min(max(x, at[0]), at[-1])
        return mp.fsum(
            w * b
            for w, b in zip(
                weights, [inside**k for k in range(4)] + [max(inside - at[2], 0) ** 3], strict=True
            )
        )

    return exact


def harmonic(degree: int, order: int) -> Callable[[Any, Any], Any]:
    def exact(c: Any, phi: Any) -> Any:
        m = abs(order)
        norm = mp.sqrt((2 * degree + 1) / (4 * mp.pi) * mp.factorial(degree - m) / mp.factorial(degree + m))
        legendre = (-1) ** m * mp.legenp(degree, m, c, type=2).real
        turn = 1 if m == 0 else mp.sqrt(2) * (mp.cos(m * phi) if order > 0 else mp.sin(m * phi))
        return norm * legendre * turn

    return exact


def bernstein_sum(x: Any) -> Any:
    n = len(COEFFICIENTS) - 1
    return mp.fsum(c * mp.binomial(n, k) * x**k * (1 - x) ** (n - k) for k, c in enumerate(COEFFICIENTS))


def sum_of(polynomial: Callable[[int, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mp.fsum(c * polynomial(k, x) for k, c in enumerate(COEFFICIENTS))


ROWS = [
    Row("arcsinh", mf.arcsinh, mp.asinh, line(-3.0, -1e-9, 0.2, 1.0, 50.0, 1e100)),
    Row("arccosh", mf.arccosh, mp.acosh, line(1.0001, 1.5, 3.0, 1e9)),
    Row("arctanh", mf.arctanh, mp.atanh, line(-0.999, -0.3, 1e-9, 0.5)),
    Row("sign", mf.sign, mp.sign, line(-3.0, -1e-300, 2.0)),
    Row(
        "clip", lambda x: mf.clip(x, -1.0, 0.5), lambda x: min(max(x, -1.0), 0.5), line(-2.0, -0.9, 0.4, 0.6)
    ),
    Row("interp", lambda x: mf.interp(x, XS, YS), interpolated(XS, YS), ON_LINES),
    Row("interp on a grid", lambda x: mf.interp(x, GRID, HEIGHTS), interpolated(GRID, HEIGHTS), ON_LINES),
    Row(
        "table",
        lambda x, y: mf.table([x, y], [XS, GRID[:3]], PLANE_HEIGHTS),
        bilinear,
        [(0.1, 0.2), (0.35, 0.7), (0.9, 1.3), (-0.5, 0.4), (3.0, 3.0)],
    ),
    Row("piecewise", lambda x: mf.piecewise(x, XS, POWERS), polynomials, ON_LINES),
    Row("spline", lambda x: mf.spline(x, GRID, HEIGHTS), cubic_of(GRID, HEIGHTS), ON_LINES),
    Row("erf", mf.erf, mp.erf, line(-2.0, 1e-5, 0.7, 5.0)),
    Row("erfc", mf.erfc, mp.erfc, line(-2.0, 1e-5, 0.7, 5.0, 20.0)),
    Row("erfcx", mf.erfcx, precise.erfcx, line(-20.0, -1.0, 1e-5, 0.7, 5.0, 30.0)),
    Row("ndtr", mf.ndtr, precise.ndtr, line(-30.0, -1.0, 0.0, 1e-5, 0.7, 5.0), slope_tolerance=1e-12),
    Row(
        "log_ndtr",
        mf.log_ndtr,
        precise.log_ndtr,
        line(-1e5, -30.0, -1.0, 0.0, 0.7, 8.0),
        slope_tolerance=1e-12,
    ),
    Row("ndtri", mf.ndtri, precise.ndtri, line(1e-20, 0.01, 0.3, 0.7, 0.999), slope_tolerance=1e-12),
    Row(
        "wofz_real",
        mf.wofz_real,
        lambda x, y: precise.wofz(x, y).real,
        PLANE,
        scale=0.1,
        slope_tolerance=1e-12,
    ),
    Row(
        "wofz_imag",
        mf.wofz_imag,
        lambda x, y: precise.wofz(x, y).imag,
        PLANE,
        scale=0.1,
        slope_tolerance=1e-12,
    ),
    Row("gammaln", mf.gammaln, mp.loggamma, line(1e-5, 0.5, 1.5, 3.0, 100.0)),
    Row("digamma", mf.digamma, mp.digamma, line(1e-5, 0.5, 1.5, 3.0, 100.0)),
    Row("beta", mf.beta, mp.beta, [*BETAS, (1e8, 2.0)], 1e-13, slope_tolerance=1e-12),
    # derivatives used to be differences of digamma functions, right to 3e-8 for a = 1e8
    Row("betaln", mf.betaln, precise.betaln, [*BETAS, (1e8, 2.0), (3e7, 5e5)]),
    Row(
        "kv",
        mf.kv,
        mp.besselk,
        [(0.0, 1.0), (-1.5, 0.01), (3.7, 20.0), (1.0, 200.0), (12.0, 3.0)],
        1e-13,
        1e-12,
    ),
    Row(
        "kve",
        mf.kve,
        precise.kve,
        [(0.5, 1.0), (-1.5, 1e-6), (3.7, 20.0), (1.0, 1e4), (50.0, 30.0)],
        1e-13,
        1e-13,
    ),
    Row(
        "iv",
        mf.iv,
        mp.besseli,
        [(0.0, 1.0), (1.5, 0.01), (3.7, 20.0), (1.0, 200.0), (12.0, 3.0)],
        1e-13,
        1e-12,
    ),
    Row(
        "ive",
        mf.ive,
        precise.ive,
        [(0.5, 1.0), (1.5, 1e-6), (3.7, 20.0), (1.0, 1e4), (40.0, 800.0), (300.0, 2e3), (1e-3, 4.0)],
        1e-13,
        1e-12,
    ),
    Row("gammainc", mf.gammainc, precise.gammainc, SHAPES, 1e-13, 1e-12, 1e-3),
    Row("gammaincc", mf.gammaincc, precise.gammaincc, SHAPES, 1e-13, 1e-12, 1e-3),
    Row("betainc", mf.betainc, precise.betainc, TWO_SHAPES, 1e-12, 1e-12),
    Row(
        "legendre",
        lambda x: mf.legendre(9, x),
        lambda x: mp.legendre(9, x),
        line(-1.0, -0.3, 0.55, 1.0),
        scale=0.1,
    ),
    Row(
        "chebyshev",
        lambda x: mf.chebyshev(9, x),
        lambda x: mp.chebyt(9, x),
        line(-1.0, -0.3, 0.55, 1.0),
        scale=0.1,
    ),
    Row(
        "hermite",
        lambda x: mf.hermite(7, x),
        lambda x: mp.hermite(7, x),
        line(-2.0, -0.3, 0.55, 9.0),
        scale=1e3,
    ),
    Row(
        "bernstein",
        lambda x: mf.bernstein(2, 7, x),
        lambda x: 21 * x**2 * (1 - x) ** 5,
        line(0.05, 0.3, 0.999, 1.0),
        scale=1e-3,
    ),
    Row(
        "legendre_series",
        lambda x: mf.legendre_series(COEFFICIENTS, x),
        sum_of(mp.legendre),
        line(-0.9, 0.3),
        scale=1.0,
    ),
    Row(
        "chebyshev_series",
        lambda x: mf.chebyshev_series(COEFFICIENTS, x),
        sum_of(mp.chebyt),
        line(-0.9, 0.3),
        scale=1.0,
    ),
    Row(
        "hermite_series",
        lambda x: mf.hermite_series(COEFFICIENTS, x),
        sum_of(mp.hermite),
        line(-0.9, 3.0),
        scale=10.0,
    ),
    Row(
        "bernstein_series",
        lambda x: mf.bernstein_series(COEFFICIENTS, x),
        bernstein_sum,
        line(0.1, 0.9),
        scale=1.0,
    ),
    *(
        Row(
            f"spherical_harmonic {degree} {order}",
            lambda c, phi, degree=degree, order=order: mf.spherical_harmonic(degree, order, c, phi),
            harmonic(degree, order),
            [(-0.8, 0.3), (0.1, -2.0), (0.95, 3.0)],
            scale=0.1,
        )
        for degree, order in ((0, 0), (1, 1), (1, -1), (3, -2), (8, 5), (6, 0))
    ),
]


@dataclass(frozen=True)
class Far:
    """A function far from the origin: its first and second derivative by one argument there, relative."""

    function: Callable[..., Any]
    first: Callable[..., Any]
    second: Callable[..., Any]
    points: Sequence[Point]
    argument: int = 0
    tolerances: tuple[float, float] = (1e-14, 1e-13)


def derivative_of_w(order: int, side: str) -> Callable[..., Any]:
    return lambda x, y: getattr(precise.wofz_derivative(x, y, order), side)


def log_ndtr_bend(x: Any) -> Any:
    with mp.extradps(300):
        ratio = mp.sqrt(2 / mp.pi) / precise.erfcx(-x / mp.sqrt(2))
        return -ratio * (ratio + x)


OUT = [(4.0, 1e-3), (30.0, 2.0), (-5.0, 9.0), (17.0, 3.0), (3e3, 1.0), (2e5, 1e6), (-1e60, 3e60)]
FAR_ROWS = {
    "erfcx": Far(
        mf.erfcx,
        lambda x: -precise.wofz_derivative(mp.mpf(0), x, 1).imag,
        lambda x: -precise.wofz_derivative(mp.mpf(0), x, 2).real,
        line(1.9, 2.1, 7.0, 1e3, 1e10, 1e90),
    ),
    "log_ndtr": Far(
        mf.log_ndtr,
        lambda x: mp.sqrt(2 / mp.pi) / precise.erfcx(-x / mp.sqrt(2)),
        log_ndtr_bend,
        line(-2.7, -3.0, -40.0, -1e5, -1e100, 5.0),
    ),
    "wofz_real": Far(
        mf.wofz_real, derivative_of_w(1, "real"), derivative_of_w(2, "real"), OUT, 0, (1e-13, 1e-12)
    ),
    "wofz_imag": Far(
        mf.wofz_imag, derivative_of_w(1, "imag"), derivative_of_w(2, "imag"), OUT, 0, (1e-13, 1e-12)
    ),
    "kve": Far(
        mf.kve,
        lambda nu, x: precise.kve(nu, x, 0, 1),
        lambda nu, x: precise.kve(nu, x, 0, 2),
        [(0.3, 30.0), (2.5, 5e3), (12.0, 1e6)],
        1,
        (1e-13, 1e-12),
    ),
    "ive": Far(
        mf.ive,
        lambda nu, x: precise.ive(nu, x, 1),
        lambda nu, x: precise.ive(nu, x, 2),
        [(0.0, 40.0), (2.5, 5e3), (12.0, 1e6), (30.0, 400.0)],
        1,
        (1e-13, 1e-12),
    ),
}
