"""Where each function of the vector mathematics is measured, and its error there, by mpmath."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
from vecmath_harness import TYPES, Array, compiled

import mp_functions as precise
from morefit.targets.cpu.writer import Vector

DIGITS = 40
POINTS = 400  # a range, at the main width in float64
FEW_POINTS = 100  # a range, in float32
INF, NAN = float("inf"), float("nan")
TINY = {64: 2.0**-1074, 32: 2.0**-149}
HUGE = {64: 1.7976931348623157e308, 32: 3.4028234663852886e38}
TOP_ULP = {64: 2.0**971, 32: 2.0**104}  # between the largest numbers
EDGES = (1.0, 0.5, 2.0, 3.0, 4.0, 10.0, 0.55, 0.25, 1.5, 2.5, 0.7071067811865476, 1.4142135623730951, np.pi)


def _trigamma(x: Any) -> Any:
    return mp.psi(1, x)


def _ndtri(p: Any) -> Any:
    with mp.workdps(60):
        half = mp.log(p) if p < 0.5 else mp.log(1 - p)
        start = mp.sqrt(2) * abs(mp.erfinv(2 * p - 1)) if abs(p - 0.5) < 0.4999 else mp.sqrt(-2 * half) * 0.97
        root = mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - half, start) if p != 0.5 else 0
        return -root if p < 0.5 else root


def _exp2(x: Any) -> Any:
    return mp.mpf(2) ** x


def _log2(x: Any) -> Any:
    return mp.log(x, 2)


def _tetragamma(x: Any) -> Any:
    return mp.psi(2, x)


def _lgamma(x: Any) -> Any:
    return mp.re(mp.loggamma(x))


@dataclass(frozen=True)
class Spec:
    """Where a function is measured: ranges of its argument, powers of ten of its size, chosen points."""

    reference: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]
    decades: tuple[float, float] | None = (-307.0, 307.0)
    signs: tuple[int, ...] = (1, -1)
    points: tuple[float, ...] = ()
    second: tuple[tuple[float, float], ...] = ()  # ranges of the second argument, one a range of the first
    third: tuple[tuple[float, float], ...] = ()
    few: bool = False  # points, where mpmath is slow


FAR_DERIVATIVES = (
    ("bend", 2, "real"), ("bend", 2, "imag"), ("third", 3, "real"), ("third", 3, "imag"), ("fourth", 4, "real"),
)  # fmt: skip
MULTIPLES = tuple(k * np.pi / 2 for k in (*range(1, 40), 1001, 65535, 823550, 683565275))
SPECS = {
    "exp": Spec(
        mp.exp,
        ((-1, 1), (-746, 710), (-746, -707), (-104, 89), (709, 709.8)),
        (-307, 2),
        points=(709.782712893384,),
    ),
    "exp2": Spec(_exp2, ((-1, 1), (-1074, 1023.9), (-1074, -1020), (-150, 127), (1e-3, 2e-3)), (-300, 0)),
    "ndtri": Spec(
        _ndtri, ((0, 0.9999), (0.07, 0.08), (0.92, 0.93), (0, 1e-9), (0.499, 0.501)), (-300, -1), (1,)
    ),
    "log": Spec(mp.log, ((0.5, 2), (0.99, 1.01), (0, 100)), (-323, 308), (1,)),
    "sin": Spec(mp.sin, ((-4, 4), (-1e3, 1e3), (-2e9, 2e9), (-7e4, 7e4)), points=MULTIPLES),
    "cos": Spec(mp.cos, ((-4, 4), (-1e3, 1e3), (-2e9, 2e9), (-7e4, 7e4)), points=MULTIPLES),
    "tan": Spec(mp.tan, ((-4, 4), (-1e3, 1e3), (-2e9, 2e9)), points=MULTIPLES),
    "asin": Spec(mp.asin, ((-1, 1), (0.49, 0.51), (0.999, 1)), (-307, 0), points=(-1.0, 1.0)),
    "acos": Spec(mp.acos, ((-1, 1), (0.49, 0.51), (0.999, 1), (-1, -0.99)), (-307, 0), points=(-1.0, 1.0)),
    "atan": Spec(mp.atan, ((-3, 3), (0.9, 1.1))),
    "atan2": Spec(mp.atan2, ((-2, 2), (-1, 1), (-1e3, 1e3)), second=((-2, 2), (-1e3, 1e3), (-1, 1))),
    "sinh": Spec(mp.sinh, ((-2, 2), (-30, 30), (-710.4, 710.4), (-89, 89)), (-307, 0)),
    "cosh": Spec(mp.cosh, ((-2, 2), (-30, 30), (-710.4, 710.4), (-89, 89)), (-307, 0)),
    "tanh": Spec(mp.tanh, ((-1, 1), (0.5, 0.6), (-25, 25)), (-307, 3)),
    "erf": Spec(mp.erf, ((-1.2, 1.2), (0.9, 6.2), (-7, 7)), (-307, 3)),
    "erfc": Spec(mp.erfc, ((-1, 1), (0.4, 3), (-7, 0), (3, 27.3), (26, 27.3), (9, 10.1)), (-307, 1.4)),
    "erfcx": Spec(
        precise.erfcx, ((-1, 1), (0, 6), (0, 70), (-26.6, 0), (60, 1e3)), (-307, 1.4), points=(1e5, 1e150)
    ),
    "ndtr": Spec(precise.ndtr, ((-1, 1), (-6, 9), (-38, 0), (0, 9)), (-307, 0.9)),
    "log_ndtr": Spec(
        precise.log_ndtr, ((-1, 1), (-6, 9), (-60, 0), (0, 9)), (-307, 1.5), (1,), (-1e5, -1e150)
    ),
    "asinh": Spec(mp.asinh, ((-3, 3), (-0.1, 0.1), (-1e3, 1e3)), (-307, 307)),
    "acosh": Spec(mp.acosh, ((1, 1.01), (1, 3), (1, 1e3)), (0, 307), (1,)),
    "atanh": Spec(mp.atanh, ((-1, 1), (-0.1, 0.1), (0.99, 1)), (-307, -1)),
    "sign": Spec(mp.sign, ((-3, 3),)),
    # The last ranges are where the real part is small, and below the real axis.
    "wofz_real": Spec(
        lambda x, y: precise.wofz(x, y).real,
        ((-8, 8), (0, 30), (-7, 7), (5, 9), (-1e5, 1e5), (-6, 6)),
        second=((0, 8), (0, 30), (0, 1e-3), (0, 1e-9), (0, 1e5), (-6, 0)),
    ),
    "wofz_imag": Spec(
        lambda x, y: precise.wofz(x, y).imag,
        ((-8, 8), (0, 30), (-1e-3, 1e-3), (5, 9), (-1e5, 1e5), (-6, 6)),
        second=((0, 8), (0, 30), (0, 8), (0, 1e-9), (0, 1e5), (-6, 0)),
    ),
    "kve": Spec(
        precise.kve,
        ((-3, 3), (0, 10), (0, 50), (0, 1), (0, 2)),
        second=((0, 3), (0, 100), (1, 100), (0, 1e-6), (1e3, 1e9)),
    ),
    "kve_by_order": Spec(
        lambda n, x: precise.kve(n, x, 1), ((-3, 3), (0, 20)), second=((0.01, 3), (0.1, 100)), few=True
    ),
    "kve_by_order_twice": Spec(
        lambda n, x: precise.kve(n, x, 2), ((-3, 3), (0, 20)), second=((0.01, 3), (0.1, 100)), few=True
    ),
    "tail_slope": Spec(lambda x: precise.tail(x, 1), ((0, 6), (2, 30)), (0.5, 100), (1,), few=True),
    "tail_bend": Spec(lambda x: precise.tail(x, 2), ((0, 6), (2, 30)), (0.5, 100), (1,), few=True),
    **{
        f"wofz_slope_{side}": Spec(
            lambda x, y, side=side: getattr(precise.wofz_derivative(x, y, 1), side),
            ((-8, 8), (0, 30), (-1e5, 1e5)),
            second=((0, 8), (0, 30), (0, 1e5)),
            few=True,
        )
        for side in ("real", "imag")
    },
    **{
        f"wofz_{name}_far_{side}": Spec(
            lambda x, y, order=order, side=side: getattr(precise.wofz_derivative(x, y, order), side),
            ((16, 30), (-30, 30), (-1e5, 1e5)),
            second=((1e-3, 30), (16, 30), (16, 1e5)),
            few=True,
        )
        for name, order, side in FAR_DERIVATIVES
    },
    "kve_slope": Spec(
        lambda n, x: precise.kve(n, x, 0, 1), ((-3, 3), (0, 20)), second=((0.01, 3), (0.1, 1e4)), few=True
    ),
    "kve_bend": Spec(
        lambda n, x: precise.kve(n, x, 0, 2), ((-3, 3), (0, 20)), second=((0.01, 3), (0.1, 1e4)), few=True
    ),
    "kve_by_order_slope": Spec(
        lambda n, x: precise.kve(n, x, 1, 1), ((-3, 3), (0, 20)), second=((0.01, 3), (0.1, 100)), few=True
    ),
    "ive_slope": Spec(
        lambda n, x: precise.ive(n, x, 1), ((0, 3), (0, 10)), second=((0.01, 3), (0.1, 1e3)), few=True
    ),
    "ive_bend": Spec(
        lambda n, x: precise.ive(n, x, 2), ((0, 3), (0, 10)), second=((0.01, 3), (0.1, 1e3)), few=True
    ),
    "ive": Spec(
        precise.ive,
        ((0, 3), (0, 10), (0, 50), (0, 1), (0, 500)),
        second=((0, 3), (0, 100), (0, 900), (0, 1e-6), (1, 1e4)),
    ),
    **{
        name: Spec(
            lambda n, x, by_x=by_x, times=times: precise.ive(n, x, by_x, times),
            ((0, 3), (0, 10), (0, 0.1), (50, 500)),
            second=((0, 3), (0.1, 1e3), (1, 20), (1, 1e4)),
            few=True,
        )
        for name, times, by_x in (
            ("ive_by_order", 1, 0),
            ("ive_by_order_twice", 2, 0),
            ("ive_by_order_slope", 1, 1),
        )
    },
    "gammainc": Spec(
        precise.gammainc, ((0.1, 3), (0.1, 20), (90, 110)), second=((0, 5), (0, 30), (60, 140)), few=True
    ),
    "gammaincc": Spec(
        precise.gammaincc, ((0.1, 3), (0.1, 20), (90, 110)), second=((0, 5), (0, 30), (60, 140)), few=True
    ),
    "gammainc_by_shape": Spec(
        lambda a, x: precise.gammainc(a, x, 1), ((0.1, 3), (0.1, 20)), second=((0, 5), (0, 30)), few=True
    ),
    "gammainc_by_shape_twice": Spec(
        lambda a, x: precise.gammainc(a, x, 2), ((0.1, 3), (0.1, 20)), second=((0, 5), (0, 30)), few=True
    ),
    **{
        f"betainc{by and '_by_'}{by}": Spec(
            lambda a, b, x, by=by: precise.betainc(a, b, x, by),
            ((0.1, 3), (0.1, 20), (50, 100), (1e-3, 1e-2), (1e3, 3e3)),
            second=((0.1, 3), (0.1, 20), (50, 100), (0, 50), (1e3, 3e3)),
            third=((0, 1), (0, 1), (0.4, 0.6), (0, 1), (0.4, 0.6)),
            few=True,
        )
        for by in ("", "a", "b", "aa", "ab", "bb")
    },
    "beta_density": Spec(
        precise.beta_density,
        ((0.1, 3), (0.1, 20), (1e3, 1e5)),
        second=((0.1, 3), (0.1, 20), (1e3, 1e5)),
        third=((0, 1), (0, 1), (0.4, 0.6)),
        few=True,
    ),
    "gamma_density": Spec(
        precise.gamma_density,
        ((0.1, 3), (0.1, 20), (9e4, 1e5)),
        second=((0, 5), (0, 30), (9e4, 1e5)),
        few=True,
    ),
    **{
        name: Spec(
            reference,
            ((0, 3), (3, 100), (0, 1e8), (0, 10), (0, 1e8)),
            second=((0, 3), (0, 3), (0, 100), (0, 1e8), (0, 1e-8)),
            few=True,
        )
        for name, reference in (
            ("digamma_rise", lambda x, h: precise.rise(0, x, h)),
            ("trigamma_rise", lambda x, h: precise.rise(1, x, h)),
            ("betaln", precise.betaln),
        )
    },
    "log2": Spec(_log2, ((0.5, 2), (0.99, 1.01), (0, 100)), (-323, 308), (1,)),
    "log10": Spec(mp.log10, ((0.5, 2), (0.99, 1.01), (0, 100)), (-323, 308), (1,)),
    "log1p": Spec(mp.log1p, ((-1, 2), (-0.35, 0.5), (-1, -0.99), (0, 1e3)), (-307, 308), (1,)),
    "expm1": Spec(mp.expm1, ((-2, 2), (0.3, 0.5), (-50, 10), (-50, 709.7)), (-307, 1)),
    "pow": Spec(
        mp.power,
        ((0, 3), (0.7, 1.5), (0.99999, 1.00001), (0, 1e300), (0, 2e-308), (1.3, 1.5), (1.3, 1.5)),
        second=((-20, 20), (-1500, 1500), (-6e7, 6e7), (-1, 1), (-1, 1), (1600, 1900), (-2700, -1600)),
    ),
    "lgamma": Spec(
        _lgamma,
        ((0, 3), (2.4, 10), (0.99, 1.01), (1.99, 2.01), (-6, 0), (-160, 0), (3, 1e3)),
        (-307, 305),
        (1,),
    ),
    "digamma": Spec(mp.digamma, ((0, 3), (2.5, 10), (-6, 0), (-160, 0), (3, 1e3)), (-307, 307), (1,)),
    "trigamma": Spec(_trigamma, ((0, 3), (2.5, 10), (-6, 0), (-160, 0), (3, 1e3)), (-153, 20), (1,)),
    "tetragamma": Spec(_tetragamma, ((0, 3), (2.5, 15), (-6, 0), (-160, 0), (3, 1e3)), (-102, 20), (1,)),
}


def _lgamma_scale(x: Any) -> Any:
    return 0 if x >= 0 else max(abs(mp.log(abs(x * mp.sin(mp.pi * x)) / mp.pi)), abs(_lgamma(-x)))


def _digamma_scale(x: Any) -> Any:
    return 1 if x >= 0 else max(1, abs(mp.digamma(1 - x)), abs(mp.pi * mp.cot(mp.pi * x)))


def _trigamma_scale(x: Any) -> Any:
    return 0 if x >= 0 else max(_trigamma(1 - x), (mp.pi / mp.sin(mp.pi * x)) ** 2)


def _tetragamma_scale(x: Any) -> Any:
    turn = mp.pi * x
    return 0 if x >= 0 else max(abs(_tetragamma(1 - x)), abs(2 * mp.pi**3 * mp.cot(turn) / mp.sin(turn) ** 2))


def _wofz_scale(x: Any, y: Any) -> Any:
    return 0 if y >= 0 else 2 * mp.exp(y**2 - x**2)


def _shape_scale(a: Any, x: Any) -> Any:
    return min(precise.gammainc(a, x), precise.gammaincc(a, x)) / a


def _beta_scale(a: Any, b: Any, x: Any, by: str) -> Any:
    """Return the product of the slopes of the lighter side, relative: its second derivatives are near zero in places."""
    slopes = [precise.betainc(a, b, x, name) for name in by]
    upper = x * (a + b) > a
    return abs(slopes[0] * slopes[1]) / (precise.lighter(b, a, 1 - x) if upper else precise.lighter(a, b, x))


# The size of the largest term of a sum that may cancel: the error is measured in its ulp where it is larger
# than the value. For positive arguments only digamma, near its zero at 1.46, needs this.
SCALES: dict[str, Callable[..., Any]] = {
    "wofz_real": _wofz_scale,
    "wofz_imag": _wofz_scale,
    "wofz_slope_real": lambda x, y: abs(precise.wofz_derivative(x, y, 1)),
    "wofz_slope_imag": lambda x, y: abs(precise.wofz_derivative(x, y, 1)),
    **{
        f"wofz_{name}_far_{side}": lambda x, y, order=order: abs(precise.wofz_derivative(x, y, order))
        for name, order, side in FAR_DERIVATIVES
    },
    "ive_slope": lambda nu, x: precise.ive(nu, x) / x,
    "ive_bend": lambda nu, x: precise.ive(nu, x) / x**2,
    "gammainc_by_shape_twice": _shape_scale,
    "ive_by_order_twice": lambda nu, x: precise.ive(nu, x) / x,
    "ive_by_order_slope": lambda nu, x: precise.ive(nu, x, 0, 1) / x,
    "betaln": lambda a, b: 1,
    **{f"betainc_by_{by}": lambda a, b, x, by=by: _beta_scale(a, b, x, by) for by in ("aa", "ab", "bb")},
    "lgamma": _lgamma_scale,
    "digamma": _digamma_scale,
    "trigamma": _trigamma_scale,
    "tetragamma": _tetragamma_scale,
}


POLES = {"lgamma", "digamma", "trigamma", "tetragamma"}  # at whole numbers that are not positive


@cache
def arguments(name: str, bits: int) -> tuple[Array, ...]:
    """Return the points of a function, the same in every run."""
    spec, rng = SPECS[name], np.random.default_rng(1)
    count = POINTS if bits == 64 else FEW_POINTS
    count = count // 10 if spec.few else count
    if spec.second:
        firsts = [_spread(rng, low, high, count) for low, high in spec.ranges]
        others = [
            np.concatenate([rng.permutation(_spread(rng, low, high, count)) for low, high in ranges])
            for ranges in (spec.second, spec.third)
            if ranges
        ]
        return _representable(name, bits, np.concatenate(firsts), *others)
    parts = [_spread(rng, low, high, count) for low, high in spec.ranges]
    if spec.decades is not None:
        parts += [sign * 10.0 ** _spread(rng, *spec.decades, count) for sign in spec.signs]
    low, high = (min(a for a, _ in spec.ranges), max(b for _, b in spec.ranges))
    edges = [x for e in EDGES for x in (e, -e, np.nextafter(e, 0), np.nextafter(e, 9)) if low <= x <= high]
    return _representable(name, bits, np.concatenate([*parts, edges, spec.points]))


def _spread(rng: np.random.Generator, low: float, high: float, count: int) -> Array:
    return np.concatenate(
        [np.linspace(low, high, count // 4)[1:-1], rng.uniform(low, high, count - count // 4)]
    )


def _representable(name: str, bits: int, *columns: Array) -> tuple[Array, ...]:
    """Return the rows of numbers that are finite, not zero and no pole, in one precision."""
    with np.errstate(over="ignore", under="ignore"):
        typed = [np.asarray(c, np.float64).astype(TYPES[bits]) for c in columns]
    good = np.all([np.isfinite(c) & (c != 0) for c in typed], axis=0)
    if name in POLES:
        good &= (typed[0] > 0) | (typed[0] != np.floor(typed[0]))
    return tuple(c[good] for c in typed)


@cache
def references(name: str, bits: int) -> list[tuple[Any, float]]:
    """Return the exact values, and the spacing of the numbers there."""
    spec, rows = SPECS[name], []
    with mp.workdps(DIGITS):
        for row in zip(*arguments(name, bits), strict=True):
            exact = [mp.mpf(float(x)) for x in row]
            value = spec.reference(*exact)
            scale = SCALES[name](*exact) if name in SCALES else 0
            rows.append((value, _spacing(max(abs(value), scale), bits)))
    return rows


def _spacing(size: Any, bits: int) -> float:
    if size >= HUGE[bits]:
        return TOP_ULP[bits]
    return float(np.spacing(TYPES[bits](float(size))))


def worst_ulp(name: str, vector: Vector, step: int = 1) -> tuple[float, tuple[float, ...]]:
    """Return the largest error in units of the last place, and where it is."""
    points = [a[::step] for a in arguments(name, vector.bits)]
    results = compiled(name, vector)(*points)
    worst, where = -1.0, (NAN,)
    for row, result, (value, ulp) in zip(
        zip(*points, strict=True), results, references(name, vector.bits)[::step], strict=True
    ):
        error = _error(float(result), value, ulp, vector.bits)
        if error > worst:
            worst, where = error, tuple(float(x) for x in row)
    return worst, where


def _error(result: float, value: Any, ulp: float, bits: int) -> float:
    """Return an error in ulp; infinity stands for the number next to the largest."""
    if np.isnan(result) or mp.isnan(value):
        return INF
    if abs(result) == INF and mp.sign(value) == np.sign(result):
        return float(max(mp.mpf(HUGE[bits]) + TOP_ULP[bits] - abs(value), 0) / ulp)
    return float(abs(mp.mpf(result) - value) / ulp)
