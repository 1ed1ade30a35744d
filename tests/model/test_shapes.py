"""Every density is normalised, agrees with scipy, and is exact with its derivatives, also where naive forms fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import integrate, special, stats

import morefit as mf
from derivatives import hessian, value_and_derivatives
from morefit.expr import evaluate, toposort
from morefit.model import formulas, shapes
from morefit.rewrite.derive import gradient
from morefit.rewrite.simplify import normalise
from recorded import recorded
from shape_rows import EXACT_DIGITS, Point, Row, all_rows, families
from shape_rows.exponential import exponential_point
from tolerances import (
    DIFFERENCES,
    EXACT_FIT_ERRORS,
    FEW_ROUNDINGS,
    NUMERICAL,
    PART,
    SCIPY_DENSITY,
    SHAPE,
    UNIT_INTEGRAL,
    UNSCALED,
)

PHI = np.pi
ROWS = all_rows()
OWNERS = {id(row): (family, name) for family, rows in families().items() for name, row in rows.items()}
CASES = [
    pytest.param(row, point, id=f"{name}-{point.label}") for name, row in ROWS.items() for point in row.points
]


def in_first_range(row: Row, point: Point) -> bool:
    """Return whether the kernel of the first point of a row is that of this one."""
    ranges = [(p.low, p.high, tuple(p.values)) for p in (row.points[0], point)]
    return ranges[0] == ranges[1]


# One kernel serves all points of a range: those of the first range are compared compiled, with all their derivatives,
# those of other ranges evaluated.
EVALUATED = [
    pytest.param(*case.values, id=case.id, marks=[pytest.mark.exhaustive] * in_first_range(*case.values))
    for case in CASES
]


@cache
def built(make, low, high, names):
    x = mf.Observable("x", low, high)
    return make(x, *(mf.Parameter(name, 1.0) for name in names))


def pdf_of(row: Row, point: Point) -> mf.Pdf:
    return built(row.make, point.low, point.high, tuple(point.values))


@cache
def slopes_of(pdf):
    """Return log P and its first derivatives."""
    (log,) = normalise(pdf.log_normalised())
    return log, gradient(log, [p.expr for p in pdf.parameters])


@cache
def curvatures_of(pdf):
    return hessian(slopes_of(pdf)[0], [p.expr for p in pdf.parameters])


def reference(row: Row, point: Point, what: str, compute: Callable[[], object]):
    """Return a number of the reference of a row, recorded by the file of its family: mpmath takes minutes for all."""
    family, name = OWNERS[id(row)]
    return recorded(family.split(".")[-1], ("shape_rows", family), f"{what} of {name} at {point!r}", compute)


def judged(row: Row, point: Point):
    """Return log P and its derivatives in natural units, with many digits."""
    return reference(row, point, "derivatives", lambda: judge_derivatives(row, point))


def judge_derivatives(row: Row, point: Point):
    names, count = tuple(point.values), len(point.values)
    low, high, at = mp.mpf(point.low), mp.mpf(point.high), mp.mpf(point.at)
    with mp.workdps(row.digits):
        step = mp.mpf(10) ** (-row.digits // 4)  # central differences are then right to half of the digits

        @cache
        def log(*along):
            """Return log P some steps away along parameters: +1 is the first, -2 the second backwards."""
            moves = {abs(k) - 1: (1 if k > 0 else -1) * step for k in along}
            moved = [
                mp.mpf(point.values[n]) + moves.get(k, 0) * u
                for k, (n, u) in enumerate(zip(names, point.units, strict=True))
            ]
            return row.judge(at, low, high, *moved)

        def second(i, j):
            if i == j:
                return (log(i) - 2 * log() + log(-i)) / step**2
            return (log(i, j) + log(-i, -j) + 2 * log() - log(i) - log(-i) - log(j) - log(-j)) / (2 * step**2)

        along = range(1, count + 1)
        first = [float((log(k) - log(-k)) / (2 * step)) for k in along]
        return float(log()), first, [[float(second(i, j)) for j in range(1, i + 1)] for i in along]


# ------------------------------------------------------------------------- what holds for all


def test_every_density_has_a_row():
    assert set(ROWS) == set(shapes.__all__) - set(mf.physics.__all__)  # these are tested below


def test_every_physics_density_is_tested_here():
    assert mf.physics.__all__ == ["KstarMuMu", "KstarMuMuSWave"]


@pytest.mark.parametrize(("row", "point"), EVALUATED)
def test_density_is_exact_against_mpmath(row, point):
    found = float(evaluate(slopes_of(pdf_of(row, point))[0], {**point.values, "x": point.at}))
    value, _, _ = judged(row, point)
    assert found == pytest.approx(value, rel=row.tolerance, abs=row.tolerance * max(1.0, point.scale**0.5))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("row", "point"), CASES)
def test_recorded_references_are_what_mpmath_computes(row, point):
    value, first, second = judge_derivatives(row, point)
    recorded_value, recorded_first, recorded_second = judged(row, point)
    assert recorded_value == value
    assert recorded_first == first
    assert recorded_second == second


@pytest.mark.parametrize(("row", "point"), EVALUATED)
def test_gradient_is_exact_against_mpmath(row, point):
    _, first = slopes_of(pdf_of(row, point))
    found = [float(evaluate(d, {**point.values, "x": point.at})) for d in first]
    _, expected, _ = judged(row, point)
    np.testing.assert_allclose(
        np.array(found) * point.units, expected, row.tolerance, row.tolerance * point.scale
    )


@pytest.mark.parametrize(("row", "point"), [c for c in EVALUATED if c.values[1].second])
def test_hessian_is_exact_against_mpmath(row, point):
    second = curvatures_of(pdf_of(row, point))
    _, _, expected = judged(row, point)
    for i, line in enumerate(second):
        for j, entry in enumerate(line):
            found = float(evaluate(entry, {**point.values, "x": point.at})) * point.units[i] * point.units[j]
            assert found == pytest.approx(expected[i][j], rel=row.tolerance, abs=row.tolerance * point.scale)


# Their integrals are numerical, with second derivatives that take seconds to compile: those of other numerical integrals
# are compiled in test_written_densities.py. Those of the last three are long formulas, which
# test_hessian_is_exact_against_mpmath evaluates.
SLOW_CURVATURE = {"QGaussian", "Hypatia", "BDecay", "Bukin", "Argus"}


@pytest.mark.parametrize(("name", "order"), [
    pytest.param(name, order, marks=[pytest.mark.exhaustive] * (order == 2 and name in SLOW_CURVATURE), id=f"{name}-{order}")
    for name in ROWS for order in ((1, 2) if name in SLOW_CURVATURE else (2,))
])  # fmt: skip
@pytest.mark.parametrize("first", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_compiled_likelihood_of_one_event_is_exact_against_mpmath(name, order, first):
    row = ROWS[name]
    for point in [p for p in row.points if in_first_range(row, p) is first]:
        pdf = pdf_of(row, point)
        likelihood = mf.Likelihood(pdf, {"x": np.array([point.at])}, backend="cpu")
        x = [point.values[p.name] for p in likelihood.parameters]
        value, slopes, curves = judged(row, point)
        units = np.array(point.units)
        if not units.size:
            assert likelihood.value(x) == pytest.approx(-value, rel=row.tolerance, abs=row.tolerance)
            continue
        found = value_and_derivatives(likelihood, x, order if point.second else 1)
        assert found[0] == pytest.approx(
            -value, rel=row.tolerance, abs=row.tolerance * max(1.0, point.scale**0.5)
        )
        np.testing.assert_allclose(
            -found[1] * units, slopes, row.tolerance, row.tolerance * point.scale, err_msg=point.label
        )
        if point.second and order == 2:
            curvature = -found[2] * np.outer(units, units)
            lower = [curvature[i, j] for i in range(len(units)) for j in range(i + 1)]
            flat = [h for line in curves for h in line]
            np.testing.assert_allclose(
                lower, flat, row.tolerance, row.tolerance * point.scale, err_msg=point.label
            )


# mpmath normalises at all points; what it takes for the density is integrated at the first of each row
@pytest.mark.parametrize(("row", "point"), [
    pytest.param(*case.values, id=case.id, marks=[pytest.mark.exhaustive] * (case.values[1] is not case.values[0].points[0]))
    for case in CASES if not case.values[0].integrated
])  # fmt: skip
def test_density_integrates_to_one(row, point):
    density = pdf_of(row, point).normalised()
    sigma = point.values.get("sigma", point.high - point.low)
    peaks = [p + k * sigma for p in point.peaks for k in (-8, -2, 0, 2, 8)]
    for edge in (k / abs(point.values.get("slope", 0) or 1e-300) for k in (3, 10, 40)):
        peaks += [point.low + edge, point.high - edge]
    near = (
        sigma * sigma / max(1e-300, *(abs(p - c) for p in point.peaks for c in (point.low, point.high)))
        if point.peaks
        else 0
    )
    peaks += [point.low + 5 * near, point.high - 5 * near]
    inside = sorted({p for p in peaks if point.low < p < point.high})
    total, _ = integrate.quad(
        lambda x: float(evaluate(density, {**point.values, "x": x})),
        point.low,
        point.high,
        points=inside,
        epsabs=1e-13,
        epsrel=1e-12,
        limit=200,
    )
    assert total == pytest.approx(1, abs=UNIT_INTEGRAL)


@pytest.mark.parametrize(("row", "point"), [c for c in CASES if c.values[0].scipy is not None])
def test_density_agrees_with_scipy(row, point):
    x = np.linspace(point.low, point.high, 41)
    expected = row.scipy(x, point.low, point.high, *point.values.values())
    if expected is None:
        return  # scipy loses its digits there, or its Crystal Ball stops at n = 1
    found = np.broadcast_to(evaluate(pdf_of(row, point).normalised(), {**point.values, "x": x}), x.shape)
    seen = (expected > UNSCALED) & np.isfinite(
        expected
    )  # our densities are not scaled: far below, they underflow before they are divided
    np.testing.assert_allclose(
        found[seen], np.asarray(expected)[seen], SCIPY_DENSITY * max(1, point.scale**0.5)
    )


@pytest.mark.parametrize(("row", "point"), [c for c in CASES if c.values[0].part])
def test_probability_of_a_part_of_the_range_is_exact(row, point):
    low, high = point.low + 0.3 * (point.high - point.low), point.low + 0.55 * (point.high - point.low)
    counts = pdf_of(row, point).whole_numbers
    if counts:  # of which ranges contain all of a number or nothing
        low, high = np.floor(low) + 0.5, np.floor(high) + 0.5

    def part():
        with mp.workdps(row.digits):
            at, ends, values = (
                mp.mpf(point.at),
                (mp.mpf(point.low), mp.mpf(point.high)),
                point.values.values(),
            )
            inside = row.judge(at, *ends, *values) - row.judge(at, mp.mpf(low), mp.mpf(high), *values)
            return float(mp.exp(inside))

    expected = part() if counts else reference(row, point, "part", part)
    # a range of its own is a kernel of its own: one of each row is compiled
    backend = "cpu" if in_first_range(row, point) else "reference"
    probability = pdf_of(row, point).integrate({"x": (low, high)}, point.values, backend=backend)
    assert probability == pytest.approx(expected, rel=PART * point.scale, abs=UNSCALED)


WITH_LENGTHS = [name for name, row in ROWS.items() if row.lengths is not None]


# small and large units in turns: both tell whether a formula has a length of its own
@pytest.mark.parametrize(("name", "factor"), [
    pytest.param(name, factor, marks=[pytest.mark.exhaustive] * ((k + j) % 2))
    for k, name in enumerate(WITH_LENGTHS) for j, factor in enumerate((1e-6, 1e6))
])  # fmt: skip
def test_the_unit_of_the_observable_does_not_matter(name, factor):
    row = ROWS[name]
    point = row.points[0]
    values = {n: v * factor if n in row.lengths else v for n, v in point.values.items()}
    log, first = slopes_of(built(row.make, point.low * factor, point.high * factor, tuple(values)))
    units = [u * factor if n in row.lengths else u for n, u in zip(values, point.units, strict=True)]
    value, expected, _ = judged(row, point)
    at = {**values, "x": point.at * factor}
    assert float(evaluate(log, at)) == pytest.approx(value - np.log(factor), rel=10 * row.tolerance)
    slopes = [float(evaluate(d, at)) * unit for d, unit in zip(first, units, strict=True)]
    np.testing.assert_allclose(slopes, expected, 100 * row.tolerance, 100 * row.tolerance * point.scale)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.whole])
def test_samples_follow_the_distribution(name):
    point = ROWS[name].points[0]
    pdf = pdf_of(ROWS[name], point)
    drawn = mf.generate(pdf, 5_000, seed=1, truth=point.values)["x"]
    assert stats.kstest(drawn, lambda x: pdf.cdf(x, point.values)).pvalue > 1e-4


FITTED = [
    [name for name, row in rows.items() if row.fit and row.points[0].values] for rows in families().values()
]


# Of each family the first: what a fit joins, the kernel and the events of a shape, the tests above look at for every one.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.exhaustive] * (n != names[0])) for names in FITTED for n in names],
)
def test_a_fit_finds_the_truth_with_the_right_errors(name):
    point = ROWS[name].points[0]
    x = mf.Observable("x", point.low, point.high)
    parameters = [mf.Parameter(n, v) for n, v in point.values.items()]
    pdf = ROWS[name].make(x, *parameters)
    data = mf.generate(pdf, 4_000, seed=2)
    result = mf.fit(pdf, data)
    assert result.valid
    assert all(abs(result.values[p] - p.start) < 4 * result.errors[p] for p in parameters)
    if ROWS[name].smooth:
        nll = mf.Likelihood(pdf, data)
        exact = np.linalg.inv(nll.hessian([result.values[p.name] for p in nll.parameters]))
        errors = [result.errors[p] for p in nll.parameters]
        np.testing.assert_allclose(errors, np.sqrt(np.diag(exact)), EXACT_FIT_ERRORS)


@pytest.mark.slow
def test_a_fit_of_mixing_with_a_resolution_finds_the_truth_with_the_right_errors():
    t = mf.Observable("t", -1.0, 10.0)
    truth = {"tau": 1.5, "delta_m": 0.5, "dilution": 0.6, "sigma": 0.1}
    tau, delta_m, dilution, sigma = parameters = [mf.Parameter(n, v) for n, v in truth.items()]
    pdf = mf.shapes.BDecay(t, tau, delta_m, cos=dilution, sigma=sigma)
    data = mf.generate(pdf, 4_000, seed=2)
    result = mf.fit(pdf, data)
    assert result.valid
    assert all(abs(result.values[p] - p.start) < 4 * result.errors[p] for p in parameters)
    exact = np.linalg.inv(mf.Likelihood(pdf, data).hessian([result.values[p] for p in pdf.parameters]))
    errors = [result.errors[p] for p in pdf.parameters]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(exact)), EXACT_FIT_ERRORS)


# ------------------------------------------------------------------------- where naive forms fail


@pytest.mark.parametrize(
    "z", [0.0, *(s * 10.0**-k for k in range(1, 16) for s in (1, -1)), 0.999999, 1.0, -3.0]
)
def test_exprel_and_its_derivatives_are_exact(z):
    leaf = mf.Parameter("z", 0.0)
    root = formulas.exprel(leaf.expr)
    chain = [root, *gradient(root, [leaf.expr]), hessian(root, [leaf.expr])[0][0]]
    with mp.workdps(EXACT_DIGITS):
        # the integral of t**k exp(z t) over [0, 1], the k-th derivative
        expected = [float(mp.quad(lambda t, k=k: t**k * mp.exp(z * t), [0, 1])) for k in range(3)]
    for expr, wanted in zip(chain, expected, strict=True):
        assert float(evaluate(expr, {"z": z})) == pytest.approx(wanted, rel=SHAPE, abs=0)


@pytest.mark.parametrize("slope", [800.0, -800.0, 1e6])
def test_issue_steep_exponential_does_not_overflow(slope):
    # this used to overflow for rising exponentials: the density was counted from the lower edge
    x, parameter = mf.Observable("x", 0.0, 1.0), mf.Parameter("slope", 1.0)
    likelihood = mf.Likelihood(mf.Exponential(x, parameter), {"x": np.array([0.25, 0.5])})
    total = 2 * np.log(abs(slope)) - abs(slope) * (0.75 if slope < 0 else 1.25)
    assert likelihood.value([slope]) == pytest.approx(-total, rel=FEW_ROUNDINGS)
    assert np.isfinite(likelihood.gradient([slope])).all()
    assert likelihood.hessian([slope])[0, 0] == pytest.approx(2 / slope**2, rel=1e-6)


@pytest.mark.parametrize("limits", [(-np.inf, 0.0), (0.0, np.inf), (-np.inf, np.inf), (-50.0, 50.0)])
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 1e-3, 0.7, 2.0, 30.0])
def test_limits_of_a_slope_change_nothing_but_the_way_it_is_computed(limits, size):
    row = ROWS["Exponential"]
    slope = -size if limits[1] == 0 else size
    point = exponential_point(slope, 5.0, 7.0)
    pdf = mf.Exponential(mf.Observable("x", 5.0, 7.0), mf.Parameter("slope", 0.0, *limits))
    likelihood = mf.Likelihood(pdf, {"x": np.array([point.at])})
    value, (first,), ((second,),) = judged(row, point)
    (unit,) = point.units
    assert likelihood.value([slope]) == pytest.approx(-value, rel=SHAPE, abs=SHAPE * point.scale)
    assert -likelihood.gradient([slope])[0] * unit == pytest.approx(first, rel=SHAPE, abs=SHAPE * point.scale)
    assert -likelihood.hessian([slope])[0, 0] * unit**2 == pytest.approx(
        second, rel=SHAPE, abs=SHAPE * point.scale
    )


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_lone_gaussian_keeps_its_logarithm_a_hundred_sigma_out(backend):
    x = mf.Observable("x", 5.0, 7.0)
    pdf = mf.Gaussian(x, mf.Parameter("mu", 5.5), mf.Parameter("sigma", 0.01))
    likelihood = mf.Likelihood(pdf, {"x": np.array([6.5])}, backend=backend)
    expected = 5000 + np.log(0.01 * np.sqrt(2 * np.pi))
    assert likelihood.value([5.5, 0.01]) == pytest.approx(expected, rel=SHAPE)
    np.testing.assert_allclose(likelihood.gradient([5.5, 0.01]), [-1e4, 100 - 1e6], rtol=SHAPE)


def test_second_derivatives_of_a_gaussian_have_no_kink_in_the_middle():
    x = mf.Observable("x", 5.0, 7.0)
    pdf = mf.Gaussian(x, mf.Parameter("mu", 6.0), mf.Parameter("sigma", 0.5))
    likelihood = mf.Likelihood(pdf, {"x": np.array([5.8])})
    below, at, above = (likelihood.hessian([6.0 + step, 0.5]) for step in (-1e-12, 0.0, 1e-12))
    np.testing.assert_allclose(below, at, rtol=1e-10)
    np.testing.assert_allclose(above, at, rtol=1e-10)


def test_crystal_ball_is_smooth_where_tail_meets_core():
    x = mf.Observable("x", 5.0, 7.0)
    values = {"mu": 5.8, "sigma": 0.1, "alpha": 1.3, "n": 2.5}
    pdf = mf.CrystalBall(x, *(mf.Parameter(n, v) for n, v in values.items()))
    log, first = slopes_of(pdf)
    seam = 5.8 - 0.13
    for expr in (log, *first):
        left, right = (float(evaluate(expr, {**values, "x": seam + step})) for step in (-1e-9, 1e-9))
        assert left == pytest.approx(right, rel=1e-5, abs=1e-5)


def test_polynomial_without_coefficients_points_to_uniform():
    with pytest.raises(mf.ModelError, match=r"polynomial: needs at least one coefficient; use mf\.Uniform"):
        mf.Polynomial(mf.Observable("x", 0, 1), [])


# ------------------------------------------------------------------------- B0 -> K*0 mu+ mu-

KSTAR = {"FL": 0.6, "S3": -0.02, "S4": 0.12, "S5": -0.15, "AFB": 0.1, "S7": 0.03, "S8": -0.04, "S9": 0.05}


def kstar(ctl=(-1.0, 1.0), ctk=(-1.0, 1.0), phi=(-PHI, PHI)):
    ranges = {"ctl": ctl, "ctk": ctk, "phi": phi}
    observables = [mf.Observable(name, *edges) for name, edges in ranges.items()]
    return mf.physics.KstarMuMu(*observables, *(mf.Parameter(n, v, -1, 1) for n, v in KSTAR.items()))


def angular(ctl, ctk, phi, FL, S3, S4, S5, AFB, S7, S8, S9):
    """The density as the paper writes it, in angles."""
    k, l = np.arccos(ctk), np.arccos(ctl)  # noqa: E741
    return 9 / 32 / np.pi * (
        0.75 * (1 - FL) * np.sin(k) ** 2
        + FL * np.cos(k) ** 2
        + 0.25 * (1 - FL) * np.sin(k) ** 2 * np.cos(2 * l)
        - FL * np.cos(k) ** 2 * np.cos(2 * l)
        + S3 * np.sin(k) ** 2 * np.sin(l) ** 2 * np.cos(2 * phi)
        + S4 * np.sin(2 * k) * np.sin(2 * l) * np.cos(phi)
        + S5 * np.sin(2 * k) * np.sin(l) * np.cos(phi)
        + 4 / 3 * AFB * np.sin(k) ** 2 * np.cos(l)
        + S7 * np.sin(2 * k) * np.sin(l) * np.sin(phi)
        + S8 * np.sin(2 * k) * np.sin(2 * l) * np.sin(phi)
        + S9 * np.sin(k) ** 2 * np.sin(l) ** 2 * np.sin(2 * phi)
    )  # fmt: skip


def angular_integral(function, ctl=(-1.0, 1.0), ctk=(-1.0, 1.0), phi=(-PHI, PHI), count=40):
    """Integrate over the angles themselves, where everything is smooth."""
    x, w = leggauss(count)

    def line(low, high):
        return low + (high - low) * (x + 1) / 2, w * (high - low) / 2

    tl, wl = line(np.arccos(ctl[1]), np.arccos(ctl[0]))
    tk, wk = line(np.arccos(ctk[1]), np.arccos(ctk[0]))
    p, wp = line(*phi)
    a, b, c = np.meshgrid(tl, tk, p, indexing="ij")
    weights = np.einsum("i,j,k->ijk", wl * np.sin(tl), wk * np.sin(tk), wp)
    return float(np.sum(weights * function(np.cos(a), np.cos(b), c)))


def test_kstarmumu_agrees_with_the_formula_in_angles():
    rng = np.random.default_rng(1)
    ctl, ctk, phi = rng.uniform(-1, 1, 500), rng.uniform(-1, 1, 500), rng.uniform(-PHI, PHI, 500)
    found = evaluate(kstar().normalised(), {**KSTAR, "ctl": ctl, "ctk": ctk, "phi": phi})
    np.testing.assert_allclose(found, angular(ctl, ctk, phi, **KSTAR), rtol=SCIPY_DENSITY)


@pytest.mark.parametrize(
    "ranges",
    [
        {},
        {"ctl": (-0.8, 0.9)},
        {"ctk": (-0.5, 1.0), "phi": (-PHI / 2, PHI)},
        {"phi": (0.0, PHI)},
        {"phi": (0.0, 2 * PHI)},
        {"ctl": (0.0, 1.0), "ctk": (0.2, 0.7), "phi": (0.1, 0.4)},
    ],
)
def test_kstarmumu_integrates_to_one_on_any_range(ranges):
    density = kstar(**ranges).normalised()

    def function(ctl, ctk, phi):
        return evaluate(density, {**KSTAR, "ctl": ctl, "ctk": ctk, "phi": phi})

    assert angular_integral(function, **ranges) == pytest.approx(1, abs=UNIT_INTEGRAL)


SCALAR = {"FS": 0.1, "AS": 0.05, "AS4": -0.04, "AS5": 0.03, "AS7": 0.02, "AS8": -0.01}


def angular_with_scalar(ctl, ctk, phi, FS, AS, AS4, AS5, AS7, AS8, **p_wave):
    """The density with an S-wave as LHCb writes it, in angles."""
    k, l = np.arccos(ctk), np.arccos(ctl)  # noqa: E741
    return (1 - FS) * angular(ctl, ctk, phi, **p_wave) + 3 / 16 / np.pi * (
        FS * np.sin(l) ** 2
        + AS * np.sin(l) ** 2 * np.cos(k)
        + AS4 * np.sin(2 * l) * np.sin(k) * np.cos(phi)
        + AS5 * np.sin(l) * np.sin(k) * np.cos(phi)
        + AS7 * np.sin(l) * np.sin(k) * np.sin(phi)
        + AS8 * np.sin(2 * l) * np.sin(k) * np.sin(phi)
    )  # fmt: skip


@pytest.mark.parametrize("ranges", [{}, {"ctk": (-0.5, 1.0), "phi": (-PHI / 2, PHI)}])
def test_kstarmumu_with_an_s_wave_is_normalised_and_agrees_with_the_formula_in_angles(ranges):
    edges = {"ctl": (-1.0, 1.0), "ctk": (-1.0, 1.0), "phi": (-PHI, PHI)} | ranges
    values = {**KSTAR, **SCALAR}
    observables = [mf.Observable(name, *ends) for name, ends in edges.items()]
    pdf = mf.physics.KstarMuMuSWave(*observables, *(mf.Parameter(n, v, -1, 1) for n, v in values.items()))
    rng = np.random.default_rng(1)
    events = {name: rng.uniform(*ends, 500) for name, ends in edges.items()}
    area = angular_integral(lambda *angles: angular_with_scalar(*angles, **values), **ranges)
    if not ranges:
        assert area == pytest.approx(1, rel=SCIPY_DENSITY)
    found = evaluate(pdf.normalised(), {**values, **events})
    np.testing.assert_allclose(
        found, angular_with_scalar(*events.values(), **values) / area, rtol=SCIPY_DENSITY
    )


@pytest.mark.parametrize("ranges", [{}, {"ctl": (-0.8, 0.9), "phi": (-1.0, 2.0)}])
def test_kstarmumu_derivatives_agree_with_the_ratios_they_are(ranges):
    """It is linear in its parameters over an integral that is linear too, so the truth is a few quotients."""
    rng = np.random.default_rng(2)
    event = {n: rng.uniform(*ranges.get(n, (-1.0, 1.0)), 1) for n in ("ctl", "ctk", "phi")}
    likelihood = mf.Likelihood(kstar(**ranges), event)
    x = np.array(list(KSTAR.values()))

    def terms(function):
        base = function(np.zeros(8))
        return base, np.array([function(np.eye(8)[k]) - base for k in range(8)])

    p0, p = terms(lambda v: float(angular(*(e[0] for e in event.values()), *v)))
    n0, n = terms(lambda v: angular_integral(lambda *angles: angular(*angles, *v), **ranges))
    density, norm = p0 + p @ x, n0 + n @ x
    first = n / norm - p / density
    second = np.outer(p, p) / density**2 - np.outer(n, n) / norm**2
    assert likelihood.value(x) == pytest.approx(np.log(norm) - np.log(density), rel=SCIPY_DENSITY)
    np.testing.assert_allclose(likelihood.gradient(x), first, SCIPY_DENSITY, SCIPY_DENSITY)
    np.testing.assert_allclose(likelihood.hessian(x), second, SCIPY_DENSITY, SCIPY_DENSITY)


@pytest.mark.parametrize("alpha", [0.0, 1e-12, -1e-12, 0.5])
def test_a_crystal_ball_is_drawn_on_both_sides_of_its_mean_at_any_alpha(alpha):
    # at alpha = 0 nothing used to be drawn on the side of the tail
    x = mf.Observable("x", -3.0, 2.0)
    model = mf.CrystalBall(x, 0.0, 1.0, mf.Parameter("alpha", 1.0, -5.0, 5.0), 2.0)
    drawn = mf.generate(model, 20_000, seed=1, truth={"alpha": alpha})["x"]
    below, whole = (
        integrate.quad(lambda t: float(evaluate(model.density(), {"x": t, "alpha": alpha})), -3, end, points=(-abs(alpha), abs(alpha)))[0]
        for end in (0.0, 2.0)
    )  # fmt: skip
    share = below / whole
    assert np.mean(drawn < 0) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 20_000))


@pytest.mark.parametrize(
    "make",
    [
        lambda x, a: mf.shapes.Moyal(x, 15.0, a),
        lambda x, a: mf.shapes.Weibull(x, 1.5 / a, 0.1),
        lambda x, a: mf.shapes.GeneralisedNormal(x, 15.0, a, 120.0),
    ],
    ids=["Moyal", "Weibull", "GeneralisedNormal"],
)
def test_derivatives_far_from_a_narrow_peak_are_zero(make):
    """An exponential of an exponential used to be zero times infinity there, and Moyal's integral not a number."""
    x, a, f = mf.Observable("x", 0, 20), mf.Parameter("a", 0.01, 1e-3, 2), mf.Parameter("f", 0.5, 0, 1)
    nll = mf.Likelihood(mf.Sum([make(x, a), mf.Uniform(x)], fractions=[f]), {"x": [7.0]})
    assert nll.value([0.01, 0.5]) == pytest.approx(np.log(40))
    np.testing.assert_allclose(nll.gradient([0.01, 0.5]), [0, 2], atol=1e-12)
    np.testing.assert_allclose(nll.hessian([0.01, 0.5]), [[0, 0], [0, 4]], atol=1e-12)


def test_argus_with_a_negative_power_is_normalised():
    # this used to be wrong by 24 in the logarithm: next to the end point a node of the integral met the largest density of all
    c, power, end = -10.0, -0.66, 6.8
    x = mf.Observable("x", 5.0, 7.0)
    argus = mf.shapes.Argus(x, mf.Parameter("end", end, 5.0, 8.0), c, mf.Parameter("power", power, -1.0, 1.0))
    u = 1 - (np.array([5.0, 6.0]) / end) ** 2
    area = (
        0.5 * end**2 * special.gamma(power + 1) * 10 ** -(power + 1) * special.gammainc(power + 1, 10 * u[0])
    )
    assert argus.pdf([6.0])[0] == pytest.approx(6 * u[1] ** power * np.exp(c * u[1]) / area, rel=NUMERICAL)


def test_a_range_without_any_density_has_no_probabilities():
    # this used to be one, as the integral was cut at the smallest number
    step = mf.shapes.Fermi(mf.Observable("x", 5.0, 7.0), mf.Parameter("mu", -180.0), 0.02)
    assert np.isnan(step.integrate({"x": (6.3, 6.9)}))


def test_a_voigt_with_a_narrow_resolution_has_the_derivatives_of_a_breit_wigner():
    # second derivatives used to be noise, since slopes of the Faddeeva function cancel, and fits were not valid
    x, mu, gamma = mf.Observable("x", 4.0, 8.0), mf.Parameter("mu", 5.8), mf.Parameter("gamma", 0.1)
    voigt, peak = (
        mf.shapes.Voigt(x, mu, mf.Parameter("sigma", 1e-6), gamma),
        mf.shapes.BreitWigner(x, mu, gamma),
    )
    data = {"x": np.array([5.81, 5.93, 6.4])}
    (_, slopes, bends), (_, exact, second) = (
        value_and_derivatives(mf.Likelihood(pdf, data), at)
        for pdf, at in ((voigt, [5.8, 1e-6, 0.1]), (peak, [5.8, 0.1]))
    )
    assert slopes[[0, 2]] == pytest.approx(exact, rel=DIFFERENCES)
    assert bends[np.ix_([0, 2], [0, 2])] == pytest.approx(second, rel=DIFFERENCES)
    assert bends[1, 1] == pytest.approx(slopes[1] / 1e-6, rel=DIFFERENCES)  # even in sigma


def test_limits_that_exclude_short_lifetimes_leave_their_form_out():
    x = mf.Observable("x", 4.0, 8.0)
    long, any_length = (
        mf.shapes.ExponentiallyModifiedGaussian(x, 5.8, 0.1, mf.Parameter("tau", 0.1, *limits))
        for limits in ((0.05, 1.0), ())
    )
    assert len(toposort(long.density())) < 0.5 * len(toposort(any_length.density()))
    assert long.pdf([5.7, 6.3]) == pytest.approx(any_length.pdf([5.7, 6.3]), rel=SHAPE)


# with mixing it is the same density, half of it as a wave of frequency zero
@pytest.mark.parametrize(("tau", "mixing"), [(1e-6, 0.0), (2e-3, 0.0), (0.05, 0.0), (1e-6, 0.5)])
def test_a_lifetime_much_shorter_than_its_resolution_has_an_exact_hessian(tau, mixing):
    """The curvature used to be -1697 instead of 32 at a hundredth of the resolution, with a finite value."""
    t, times = mf.Observable("t", -1.0, 5.0), np.linspace(-0.2, 0.3, 12)
    lifetime, sigma = mf.Parameter("tau", tau, 1e-7, 5.0), mf.Parameter("s", 0.1, 0.01, 1.0)
    decays = mf.shapes.Decay(t, lifetime, sigma=[sigma])
    if mixing:
        decays = mf.shapes.BDecay(t, lifetime, cosh=1 - mixing, cos=mixing, sigma=[sigma])
    likelihood = mf.Likelihood(decays, {"t": times})

    def nll(tau, s):
        def decay(d):
            return mp.exp(s**2 / (2 * tau**2) - d / tau) * mp.erfc((s / tau - d / s) / mp.sqrt(2)) / 2

        ends = [mp.erf(end / (s * mp.sqrt(2))) / 2 for end in (5, -1)]
        area = tau * (ends[0] - ends[1] + decay(mp.mpf(-1)) - decay(mp.mpf(5)))
        return len(times) * mp.log(area) - sum(mp.log(decay(mp.mpf(float(d)))) for d in times)

    with mp.workdps(80):
        at = mp.mpf(tau), mp.mpf(0.1)
        order = [("tau", "s").index(p.name) for p in likelihood.parameters]
        exact = [[float(mp.diff(nll, at, tuple(np.eye(2, dtype=int)[i] + np.eye(2, dtype=int)[j]))) for j in order]
                 for i in order]  # fmt: skip
        value = float(nll(*at))
    point = [(tau, 0.1)[k] for k in order]
    assert likelihood.value(point) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(likelihood.hessian(point), exact, rtol=1e-10)
