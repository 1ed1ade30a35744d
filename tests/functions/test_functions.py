"""Every function for formulas is right on every backend, and so are its derivatives."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product

import mpmath as mp
import numpy as np
import pytest
import scipy.special
from function_rows import FAR_ROWS, ROWS, Row

import morefit as mf
from backend_rows import there
from morefit.expr import column, evaluate
from morefit.kernel.ir import Precision
from morefit.pipeline import Columns, Settings, compile_values
from morefit.rewrite.derive import gradient
from morefit.targets.base import Events
from morefit.targets.cpu.run import Cpu
from morefit.targets.opencl.run import OpenCL
from morefit.targets.reference.run import Reference
from recorded import recorded
from tolerances import SCIPY_FUNCTION, SINGLE

BACKENDS = {
    "cpu": Cpu(threads=1),
    "width-1": Cpu(threads=1, width=1),
    "opencl": OpenCL(),
    "reference": Reference(),
}
NAMES = "xyz"
CHUNK = 9  # functions in a kernel
EXACT_ZERO = 1e-28  # what differences with many digits leave of zero
x = column("x")


@pytest.fixture(params=ROWS, ids=lambda row: row.name)
def row(request) -> Row:
    return request.param


@cache
def computed(chunk: int, backend, precision):
    """Compute some functions and their derivatives by one kernel: a device takes long to build each."""
    rows = ROWS[chunk * CHUNK :][:CHUNK]
    count = max(len(row.points) for row in rows)
    roots, columns, places = [], {}, {}
    for number, row in enumerate(rows):
        leaves = [column(f"{name}{number}") for name in NAMES[: len(row.points[0])]]
        for leaf, values in zip(leaves, zip(*row.points, strict=True), strict=True):
            columns[leaf.name] = np.resize(values, count)
        root = row.function(*leaves)
        slopes = gradient(root, leaves)
        bends = [bend for k, slope in enumerate(slopes) for bend in gradient(slope, leaves[k:])]
        places[row.name] = slice(len(roots), len(roots) + 1 + len(slopes) + len(bends))
        roots += [root, *slopes, *bends]
    compiled = compile_values(tuple(roots), (), Settings(backend, precision, precompute="none"))
    with np.errstate(over="ignore"):  # a number beyond the range of single precision
        found = compiled.bind(Columns(columns), Events.all_sets(count))(np.empty((1, 0)))[0]
    return {name: found[place] for name, place in places.items()}


def values_and_slopes(row: Row, backend, precision=Precision.DOUBLE):
    """Return the values of a function at its points and its derivatives there: first ones, then second ones by pairs."""
    return computed(ROWS.index(row) // CHUNK, backend, precision)[row.name][:, : len(row.points)]


def exact(row: Row, what: str, digits: int, compute):
    """Return a number with many digits, recorded: mpmath takes half a minute for all."""

    modules = ("function_rows", "mp_functions")
    with mp.workdps(digits):
        return mp.mpf(recorded("functions", modules, f"{what} of {row.name}", lambda: str(compute())))


def exact_value(row: Row, point: tuple[float, ...]):
    return exact(row, f"value at {point}", 40, lambda: row.exact(*map(mp.mpf, point)))


def exact_slope(row: Row, argument: int, point: tuple[float, ...]):
    """Differentiate with many digits, away from kinks."""

    def along(value):
        return row.exact(*(value if k == argument else mp.mpf(number) for k, number in enumerate(point)))

    def slope():
        at = mp.mpf(point[argument])
        return mp.diff(along, at, h=mp.mpf(10) ** -18 * (abs(at) or 1))

    return exact(row, f"slope by argument {argument} at {point}", 60, slope)


@pytest.mark.parametrize("name", BACKENDS)
def test_function_is_right(row, name):
    values = values_and_slopes(row, there(BACKENDS[name]))[0]
    tolerance = max(row.tolerance, SCIPY_FUNCTION) if name == "reference" else row.tolerance
    for point, value in zip(row.points, values, strict=True):
        truth = exact_value(row, point)
        assert abs(value - truth) <= tolerance * max(abs(truth), row.scale), point


def test_derivative_is_right(row):
    arguments = range(len(row.points[0]))
    slopes = [found[1:][: len(arguments)] for found in of_both(row)]
    with mp.workdps(60):
        for argument, *numbers in zip(arguments, *slopes, strict=True):
            for point, *both in zip(row.points, *numbers, strict=True):
                truth = exact_slope(row, argument, point)
                worst = max(abs(slope - truth) for slope in both)
                assert worst <= row.slope_tolerance * max(abs(truth), row.scale), (
                    argument,
                    point,
                    both,
                    truth,
                )


def of_both(row: Row):
    """Return values and derivatives by vectors and by OpenCL."""
    return [values_and_slopes(row, backend) for backend in (BACKENDS["cpu"], there(BACKENDS["opencl"]))]


def exact_bend(row: Row, pair: tuple[int, int], point: tuple[float, ...]):
    """Differentiate twice with many digits, away from kinks."""

    def bend():
        at = [mp.mpf(number) for number in point]
        steps = [mp.mpf(10) ** -18 * (abs(number) or 1) for number in at]

        def moved(*signs):
            places = list(at)
            for argument, sign in zip(pair, signs, strict=True):
                places[argument] += sign * steps[argument]
            return row.exact(*places)

        if pair[0] == pair[1]:
            return (moved(1, 0) - 2 * moved(0, 0) + moved(-1, 0)) / steps[pair[0]] ** 2
        corners = (i * j * moved(i, j) for i, j in product((-1, 1), repeat=2))
        return mp.fsum(corners) / (4 * steps[pair[0]] * steps[pair[1]])

    return exact(row, f"bend by arguments {pair} at {point}", 80, bend)


def test_second_derivative_is_right(row):
    pairs = list(combinations_with_replacement(range(len(row.points[0])), 2))
    bends = [found[1 + len(row.points[0]) :] for found in of_both(row)]
    with mp.workdps(80):
        for pair, *numbers in zip(pairs, *bends, strict=True):
            for point, *both in zip(row.points, *numbers, strict=True):
                truth = exact_bend(row, pair, point)
                worst = max(abs(number - truth) for number in both)
                size = max(abs(truth), row.scale, EXACT_ZERO)
                assert worst <= row.bend_tolerance * size, (pair, point, both, truth)


@cache
def computed_far_out(backend):
    """Compute the derivatives of all functions far from the origin by one kernel."""
    count = max(len(row.points) for row in FAR_ROWS.values())
    roots, columns = [], {}
    for name, row in FAR_ROWS.items():
        leaves = [column(f"{name}{k}") for k in range(len(row.points[0]))]
        for leaf, values in zip(leaves, zip(*row.points, strict=True), strict=True):
            columns[leaf.name] = np.resize(values, count)
        (slope,) = gradient(row.function(*leaves), [leaves[row.argument]])
        roots += [slope, *gradient(slope, [leaves[row.argument]])]
    compiled = compile_values(tuple(roots), (), Settings(backend, Precision.DOUBLE, precompute="none"))
    found = compiled.bind(Columns(columns), Events.all_sets(count))(np.empty((1, 0)))[0]
    return dict(zip(FAR_ROWS, found.reshape(-1, 2, count), strict=True))


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
@pytest.mark.parametrize("name", FAR_ROWS)
def test_derivatives_keep_their_digits_far_from_the_origin(name, backend):
    # the second derivative of erfcx used to be right to 1e-4 at 1000, that of w to 8 % at 3000
    row, found = FAR_ROWS[name], computed_far_out(there(BACKENDS[backend]))[name]
    with mp.workdps(40):
        for exact, numbers, tolerance in zip((row.first, row.second), found, row.tolerances, strict=True):
            for point, number in zip(row.points, numbers, strict=False):
                truth = exact(*map(mp.mpf, point))
                assert abs(number - truth) <= tolerance * abs(truth), point


def test_function_in_single_precision_is_right_for_its_arguments(row):
    values = values_and_slopes(row, BACKENDS["cpu"], Precision.SINGLE)[0]
    for point, value in zip(row.points, values, strict=True):
        if all(abs(number) < 1e30 for number in point):
            truth = exact_value(row, tuple(float(np.float32(number)) for number in point))
            if 1e-30 < abs(truth) < 1e30:
                assert abs(value - truth) <= SINGLE * max(abs(truth), row.scale, 1e-3), point


def test_every_public_function_has_a_row():
    assert {row.name.split()[0] for row in ROWS} == set(mf.functions.__all__)


UFUNCS = [np.arcsinh, np.arccosh, np.arctanh, np.sign]
UFUNCS += [
    getattr(scipy.special, name) for name in ("erfcx", "ndtr", "log_ndtr", "ndtri", "erf", "psi", "gammaln")
]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufuncs_of_numpy_and_scipy_take_expressions(ufunc):
    at = 1.25 if ufunc is np.arccosh else 0.5
    assert evaluate(ufunc(x), {"x": at}) == pytest.approx(ufunc(at), rel=1e-15)


@pytest.mark.parametrize("name", ["kv", "kve"])
def test_bessel_functions_of_scipy_take_expressions(name):
    function = getattr(scipy.special, name)
    assert evaluate(function(1.5, x), {"x": 0.5}) == pytest.approx(function(1.5, 0.5), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "shapes"), [("gammainc", [2.5]), ("gammaincc", [2.5]), ("betainc", [2.5, 0.5])]
)
def test_incomplete_functions_of_scipy_take_expressions(name, shapes):
    function = getattr(scipy.special, name)
    assert evaluate(function(*shapes, x), {"x": 0.5}) == function(*shapes, 0.5)


def test_third_derivatives_by_the_shapes_of_an_incomplete_beta_function_are_not_known():
    (slope,) = gradient(mf.betainc(2.0, x, 0.5), [x])
    (bend,) = gradient(slope, [x])
    with pytest.raises(
        mf.ModelError, match="operation 'betainc_by_bb': has no derivative by its argument number 2; fix what"
    ):
        gradient(bend, [x])


def test_clip_and_interp_of_numpy_take_expressions():
    at = np.linspace(-1, 3, 50)
    assert np.clip(x, 0, 1) is mf.clip(x, 0, 1)
    np.testing.assert_allclose(
        evaluate(np.interp(x, [0, 1, 2.5], [1, 3, 2]), {"x": at}),
        np.interp(at, [0, 1, 2.5], [1, 3, 2]),
        rtol=1e-15,
    )


@pytest.mark.parametrize("knots", [2, 3, 4, 5, 8, 9, 33, 100])
def test_interpolation_finds_every_cell(knots):
    rng = np.random.default_rng(knots)
    xs, ys = np.sort(rng.uniform(0, 1, knots)), rng.uniform(0, 1, knots)
    at = np.concatenate([xs, np.linspace(-0.1, 1.1, 200)])
    np.testing.assert_allclose(evaluate(mf.interp(x, xs, ys), {"x": at}), np.interp(at, xs, ys), rtol=1e-12)


def test_what_is_not_a_number_stays_so_in_an_interpolation():
    assert np.isnan(evaluate(mf.interp(x, [0, 1, 2], [1, 2, 3]), {"x": np.nan}))
    assert np.isnan(evaluate(mf.interp(x, [0, 1, 3], [1, 2, 3]), {"x": np.nan}))


def test_a_table_may_be_looked_up_at_a_parameter():
    """This used to be an internal error: tables were for loops over events only."""
    m, p = mf.Observable("m", 0.0, 1.0), mf.Parameter("p", 0.7, 0.1, 2.0)
    density = mf.Density(np.exp(-m * mf.interp(p, [0.0, 1.0, 3.0], [1.0, 2.0, 2.5])), observables=[m])
    plain = mf.Density(np.exp(-1.7 * m), observables=[m])
    np.testing.assert_allclose(density.pdf([0.1, 0.9]), plain.pdf([0.1, 0.9]), rtol=1e-12)


def test_points_of_an_interpolation_are_checked():
    with pytest.raises(
        mf.ModelError, match=r"interp: xs must be two or more numbers that rise, got \[1.0\]; sort them"
    ):
        mf.interp(x, [1.0], [2.0])
    with pytest.raises(
        mf.ModelError, match=r"interp: xs must be two or more numbers that rise, got \[1.0, 0.0\]"
    ):
        mf.interp(x, [1.0, 0.0], [2.0, 3.0])


def test_degrees_and_orders_are_checked():
    with pytest.raises(
        mf.ModelError, match=r"polynomial: the degree must be a whole number in \[0, 200\], got -1"
    ):
        mf.legendre(-1, x)
    with pytest.raises(mf.ModelError, match=r"polynomial 'bernstein': the index must lie in \[0, 3\], got 4"):
        mf.bernstein(4, 3, x)
    with pytest.raises(mf.ModelError, match=r"'spherical_harmonic': the order must lie in \[-1, 1\], got 2"):
        mf.spherical_harmonic(1, 2, x, x)
    with pytest.raises(
        mf.ModelError, match="polynomial: the number of coefficients less one must be a whole number"
    ):
        mf.chebyshev_series([], x)


def test_coefficients_of_a_series_may_be_parameters():
    c = mf.Parameter("c", 0.5)
    assert evaluate(mf.legendre_series([1.0, c], x), {"x": 0.5, "c": 0.5}) == 1.25
