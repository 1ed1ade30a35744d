"""The vector mathematics is right to MAX_ULP everywhere, the same at every width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from vecmath_harness import ARITY, TYPES, Array, compiled

import mp_functions as precise
from morefit.targets.cpu.vecmath import FAR, FUNCTIONS, define
from morefit.targets.cpu.writer import Vector

MAX_ULP = 2.0  # of the exact value, or of SCALES where a function has zeros that it reaches by cancellation
# More roundings than others: ndtri draws random numbers only, erfcx and its kin are a polynomial of 26 terms in a quotient,
# wofz is a sum over 13 nodes, which a pole cancels by up to nine tenths in the imaginary part.
OTHER_ULP = {
    "ndtri": 6.0,
    "acosh": 3.0,
    "erfcx": 5.0,
    "ndtr": 6.0,
    "log_ndtr": 6.0,
    "wofz_real": 8.0,
    "wofz_imag": 45.0,
    # the exponent of a Bessel function of order 50 is some hundreds, and is rounded
    "kve": 300.0,
    "kve_by_order": 100.0,
    "kve_by_order_twice": 100.0,
    "ive": 1200.0,
    # so are those of incomplete gamma and beta functions
    "gammainc": 100.0,
    "gammaincc": 400.0,
    "gammainc_by_shape": 400.0,
    "gammainc_by_shape_twice": 400.0,
    "betainc": 1200.0,
}
DIGITS = 40
MAIN_WIDTH = 8
WIDTHS = (1, 2, 4, 8)
POINTS = 400  # a range, at the main width in float64
FEW_POINTS = 100  # a range, in float32
STEP = 11  # other widths are measured at one point in so many, and compared bit for bit at all
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
    "ive": Spec(
        precise.ive, ((0, 3), (0, 10), (0, 50), (0, 1)), second=((0, 3), (0, 100), (0, 900), (0, 1e-6))
    ),
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
    "betainc": Spec(
        precise.betainc,
        ((0.1, 3), (0.1, 20), (50, 100)),
        second=((0.1, 3), (0.1, 20), (50, 100)),
        third=((0, 1), (0, 1), (0.4, 0.6)),
        few=True,
    ),
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


# The size of the largest term of a sum that may cancel: the error is measured in its ulp where it is larger
# than the value. For positive arguments only digamma, near its zero at 1.46, needs this.
SCALES: dict[str, Callable[..., Any]] = {
    "wofz_real": _wofz_scale,
    "wofz_imag": _wofz_scale,
    "gammainc_by_shape_twice": _shape_scale,
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


@pytest.fixture(params=FUNCTIONS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_function_is_measured() -> None:
    assert set(SPECS) == set(FUNCTIONS)


@pytest.mark.parametrize("bits", [64, 32])
def test_main_width_is_right_everywhere(name: str, bits: int) -> None:
    worst, where = worst_ulp(name, Vector(MAIN_WIDTH, bits))
    assert worst <= OTHER_ULP.get(name, MAX_ULP), where


@pytest.mark.exhaustive  # it follows from the main width, with which all widths agree bit for bit
@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("width", [w for w in WIDTHS if w != MAIN_WIDTH])
def test_every_width_is_right(name: str, width: int, bits: int) -> None:
    worst, where = worst_ulp(name, Vector(width, bits), STEP)
    assert worst <= OTHER_ULP.get(name, MAX_ULP), where


@pytest.mark.parametrize("bits", [64, 32])
def test_all_widths_agree_bit_for_bit(name: str, bits: int) -> None:
    results = [compiled(name, Vector(w, bits))(*with_specials(name, bits)).tobytes() for w in WIDTHS]
    assert len(set(results)) == 1


def with_specials(name: str, bits: int) -> list[Array]:
    """Return all points of a function, and some that are special."""
    special = [0.0, -0.0, INF, -INF, NAN, 1e30, -1e30, TINY[bits], -TINY[bits], 1.0]
    rows = np.array(list(product(special, repeat=ARITY.get(name, 1))), TYPES[bits])
    return [np.concatenate(pair) for pair in zip(arguments(name, bits), rows.T, strict=True)]


def specials(bits: int) -> Iterator[tuple[str, float, float]]:
    """Return functions of one argument, special arguments and what they give exactly."""
    tiny, huge, half_pi = TINY[bits], HUGE[bits], np.pi / 2
    yield from [
        ("exp", 0.0, 1.0),
        ("exp", -0.0, 1.0),
        ("exp", INF, INF),
        ("exp", -INF, 0.0),
        ("exp", tiny, 1.0),
    ]
    yield from [("exp", 1e4, INF), ("exp", huge, INF), ("exp", -1e4, 0.0), ("exp", -huge, 0.0)]
    yield from [("log", 0.0, -INF), ("log", -0.0, -INF), ("log", 1.0, 0.0), ("log", INF, INF)]
    yield from [("log", -1.0, NAN), ("log", -tiny, NAN), ("log", -INF, NAN), ("log", tiny, np.log(tiny))]
    yield from [("sign", 0.0, 0.0), ("sign", -0.0, -0.0), ("sign", INF, 1.0), ("sign", -tiny, -1.0)]
    yield from [("asinh", INF, INF), ("asinh", -INF, -INF), ("acosh", INF, INF), ("acosh", 1.0, 0.0)]
    yield from [("acosh", 0.5, NAN), ("acosh", -INF, NAN), ("atanh", 1.0, INF), ("atanh", -1.0, -INF)]
    yield from [("atanh", 2.0, NAN), ("atanh", -INF, NAN), ("erfcx", 0.0, 1.0), ("erfcx", -0.0, 1.0)]
    yield from [("erfcx", INF, 0.0), ("erfcx", -INF, INF), ("erfcx", -30.0, INF), ("erfcx", tiny, 1.0)]
    yield from [("ndtr", INF, 1.0), ("ndtr", -INF, 0.0), ("ndtr", 0.0, 0.5), ("ndtr", -50.0, 0.0)]
    yield from [("log_ndtr", INF, -0.0), ("log_ndtr", -INF, -INF), ("log_ndtr", -huge, -INF)]
    for name in ("sin", "tan", "asin", "atan", "asinh", "atanh", "sinh", "tanh", "erf", "log1p", "expm1"):
        slope = 2 / np.sqrt(np.pi) if name == "erf" else 1.0
        yield from [
            (name, 0.0, 0.0),
            (name, -0.0, -0.0),
            (name, tiny, slope * tiny),
            (name, -tiny, -slope * tiny),
        ]
    for name, x in product(("sin", "cos", "tan"), (INF, -INF)):
        yield name, x, NAN
    for name, x in product(("asin", "acos"), (2.0, -2.0, 1.0000002, INF, -INF)):
        yield name, x, NAN
    yield from [("cos", 0.0, 1.0), ("cos", -0.0, 1.0), ("cos", tiny, 1.0)]
    yield from [("asin", 1.0, half_pi), ("asin", -1.0, -half_pi), ("acos", 1.0, 0.0), ("acos", -1.0, np.pi)]
    yield from [
        ("acos", 0.0, half_pi),
        ("acos", -0.0, half_pi),
        ("atan", INF, half_pi),
        ("atan", -INF, -half_pi),
    ]
    yield from [("sinh", INF, INF), ("sinh", -INF, -INF), ("sinh", 800.0, INF), ("sinh", -800.0, -INF)]
    yield from [("cosh", INF, INF), ("cosh", -INF, INF), ("cosh", -800.0, INF), ("cosh", 0.0, 1.0)]
    yield from [("tanh", INF, 1.0), ("tanh", -INF, -1.0), ("tanh", huge, 1.0), ("tanh", -40.0, -1.0)]
    yield from [("erf", INF, 1.0), ("erf", -INF, -1.0), ("erf", huge, 1.0), ("erf", -7.0, -1.0)]
    yield from [
        ("erfc", INF, 0.0),
        ("erfc", -INF, 2.0),
        ("erfc", 0.0, 1.0),
        ("erfc", 30.0, 0.0),
        ("erfc", -30.0, 2.0),
    ]
    yield from [("log1p", -1.0, -INF), ("log1p", -2.0, NAN), ("log1p", INF, INF), ("log1p", -INF, NAN)]
    yield from [("expm1", INF, INF), ("expm1", -INF, -1.0), ("expm1", 800.0, INF), ("expm1", -800.0, -1.0)]
    for x in (0.0, -0.0, -1.0, -2.0, -1e30, INF, -INF, huge):
        yield "lgamma", x, INF
    yield from [("lgamma", 1.0, 0.0), ("lgamma", 2.0, 0.0)]
    yield from [
        ("digamma", 0.0, -INF),
        ("digamma", -0.0, INF),
        ("digamma", -1.0, NAN),
        ("digamma", -1e30, NAN),
    ]
    yield from [
        ("digamma", INF, INF),
        ("digamma", -INF, NAN),
        ("digamma", tiny, -INF),
        ("digamma", -tiny, INF),
    ]
    yield from [
        ("tetragamma", 0.0, -INF),
        ("tetragamma", -0.0, INF),
        ("tetragamma", -1.0, NAN),
        ("tetragamma", INF, -0.0),
        ("tetragamma", -INF, NAN),
        ("trigamma", 0.0, INF),
        ("trigamma", -0.0, INF),
        ("trigamma", -1.0, INF),
        ("trigamma", -1e30, INF),
    ]
    yield from [
        ("trigamma", INF, 0.0),
        ("trigamma", -INF, NAN),
        ("trigamma", tiny, INF),
        ("trigamma", -tiny, INF),
    ]


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("width", WIDTHS)
def test_special_values_are_exact(width: int, bits: int) -> None:
    wrong = []
    with np.errstate(under="ignore"):
        rows = [(name, x, TYPES[bits](expected)) for name, x, expected in specials(bits)]
    for name, x, expected in rows:
        result = compiled(name, Vector(width, bits))(np.array([x]))[0]
        if not same(result, expected):
            wrong.append((name, x, result, expected))
    assert not wrong


def same(a: Any, b: Any) -> bool:
    """Say whether two numbers are the same, zeros with their sign."""
    return bool(np.isnan(a) and np.isnan(b)) or bool(a == b and np.signbit(a) == np.signbit(b))


@pytest.mark.parametrize("bits", [64, 32])
def test_nan_comes_through(name: str, bits: int) -> None:
    nan = np.array([NAN] * 9)
    assert np.isnan(compiled(name, Vector(MAIN_WIDTH, bits))(*[nan] * ARITY.get(name, 1))).all()


# Powers of two, so that numpy's powers are exact, and exponents whole, half, odd and beyond.
BASES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, INF, -INF, NAN]
EXPONENTS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    2.0**52 + 1,
    -(2.0**52) - 1,
    1e20,
    INF,
    -INF,
    NAN,
]


@pytest.mark.parametrize(
    ("name", "first", "second", "judge"),
    [("pow", BASES, EXPONENTS, np.power), ("atan2", BASES, BASES, np.arctan2)],
)
@pytest.mark.parametrize("width", WIDTHS)
def test_functions_of_two_arguments_keep_the_special_cases_of_ieee(
    name: str, first: list[float], second: list[float], judge: Callable[..., Array], width: int
) -> None:
    x, y = np.array(list(product(first, second))).T
    with np.errstate(all="ignore"):
        expected = judge(x, y)
    result = compiled(name, Vector(width, 64))(x, y)
    np.testing.assert_allclose(result, expected, rtol=1e-15, atol=0)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(expected)[known])


def test_negative_bases_have_powers_for_whole_exponents_only() -> None:
    x = -np.linspace(0.5, 3, 40)
    power = compiled("pow", Vector(MAIN_WIDTH, 64))
    for y in (-3.0, -2.0, 2.0, 7.0):
        np.testing.assert_allclose(power(x, np.full_like(x, y)), x**y, rtol=5e-16)
    assert np.isnan(power(x, np.full_like(x, 2.5))).all()


def test_denormal_results_are_gradual() -> None:
    x = np.linspace(-745.1, -708.4, 200)
    results = compiled("exp", Vector(MAIN_WIDTH, 64))(x)
    assert (results > 0).all()
    assert (np.diff(results) >= 0).all()


@pytest.mark.parametrize("bits", [64, 32])
def test_sines_and_cosines_stay_within_one(bits: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-2000, 2000, 100_000) * np.pi / 2 + rng.normal(0, 1e-8, 100_000)
    for name in ("sin", "cos"):
        assert np.abs(compiled(name, Vector(MAIN_WIDTH, bits))(x)).max() == 1


@pytest.mark.parametrize("vector", [Vector(8, 64), Vector(16, 32), Vector(1, 64)])
def test_text_is_the_same_each_time_and_holds_each_function_once(vector: Vector) -> None:
    texts, declarations = define(FUNCTIONS, vector)
    assert (texts, declarations) == define(reversed(FUNCTIONS), vector)
    heads = [t.splitlines()[0] for t in texts]
    assert len(set(heads)) == len(heads)
    own = [
        head for head in heads if f"_{vector.suffix}(" in head
    ]  # what is widened calls functions of doubles too
    assert len(own) == len(FUNCTIONS) + len(FAR)
    assert all(head.startswith(f"define internal {vector.type} @mf_") for head in own)


def test_width_sixteen_compiles_and_agrees(name: str) -> None:
    points = [a[::STEP] for a in arguments(name, 64)]
    assert (
        compiled(name, Vector(16, 64))(*points).tobytes()
        == compiled(name, Vector(MAIN_WIDTH, 64))(*points).tobytes()
    )
