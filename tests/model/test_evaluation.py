"""Numbers of models by compiled kernels: density, distribution and probability of a box, on every backend."""

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from areas import area
from backend_rows import JUDGE, STATISTICS, there
from morefit.expr import evaluate
from tolerances import BIN_INTEGRAL, FEW_ROUNDINGS, INTEGRAL_PROMISE, SAME_LINES, SCIPY_DENSITY
from zoo import ZOO

X, Y = mf.Observable("x", -1.0, 3.0), mf.Observable("y", 0.0, 2.0)
MU, SIGMA = mf.Parameter("mu", 0.5, -1.0, 3.0), mf.Parameter("sigma", 0.4, 0.01, 5.0)
SHARE, SLOPE = mf.Parameter("f", 0.3, 0.0, 1.0), mf.Parameter("slope", -0.7, -5.0, 5.0)
POINTS = np.linspace(-1.0, 3.0, 41)
BACKENDS = {**STATISTICS, **JUDGE}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return there(BACKENDS[request.param])


def peak():
    return mf.Gaussian(X, MU, SIGMA)


def mixture():
    return mf.Sum([peak(), mf.Exponential(X, SLOPE)], fractions=[SHARE])


def by_quadrature():
    """Return a density without any formula for its integral."""
    return mf.Density(np.exp(-(((X - MU) / SIGMA) ** 2) / 2), X)


def normal(mu=0.5, sigma=0.4):
    return stats.truncnorm((-1.0 - mu) / sigma, (3.0 - mu) / sigma, mu, sigma)


def falling(slope=-0.7):
    return stats.truncexpon(4.0 * -slope, -1.0, -1 / slope)


# ------------------------------------------------------------------------------------ densities


@pytest.mark.parametrize("make", [peak, by_quadrature])
def test_density_is_that_of_scipy(make, backend):
    tolerance = SCIPY_DENSITY if make is peak else INTEGRAL_PROMISE
    np.testing.assert_allclose(make().pdf(POINTS, backend=backend), normal().pdf(POINTS), rtol=tolerance)


def test_density_of_a_sum_is_that_of_scipy(backend):
    values = {"f": 0.6, "slope": -1.2, "mu": 1.0, "sigma": 0.2}
    expected = 0.6 * normal(1.0, 0.2).pdf(POINTS) + 0.4 * falling(-1.2).pdf(POINTS)
    found = mixture().pdf({"x": POINTS, "other": POINTS}, values, backend=backend)
    np.testing.assert_allclose(found, expected, rtol=SCIPY_DENSITY)


def test_density_of_an_extended_sum_is_normalised(backend):
    model = mf.Sum([peak(), mf.Exponential(X, SLOPE)], yields=[300.0, 700.0])
    np.testing.assert_allclose(model.pdf(POINTS, backend=backend), mixture().pdf(POINTS), rtol=SAME_LINES)


@pytest.mark.parametrize("name", ZOO)
def test_density_of_every_model_is_that_of_numpy(name, backend):
    model, data, values = ZOO[name](50)
    named = {p.name: float(v) for p, v in zip(model.parameters, values, strict=True)}
    expected = evaluate(model.normalised(), {**named, **{o.name: data[o.name] for o in model.observables}})
    found = model.pdf(data, named, backend=backend)
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=INTEGRAL_PROMISE)


def test_density_keeps_the_shape_of_an_array():
    grid = POINTS[:40].reshape(5, 8)
    model = peak()
    assert model.pdf(grid).shape == (5, 8)
    assert model.pdf([0.5, 0.6]).shape == (2,)
    assert np.ndim(model.pdf(0.5)) == np.ndim(model.cdf(0.5)) == 0
    assert model.pdf([]).shape == (0,)
    np.testing.assert_array_equal(model.pdf(grid).ravel(), model.pdf(grid.ravel()))


def test_density_is_zero_outside_the_ranges():
    np.testing.assert_array_equal(peak().pdf([-1.1, 3.1, 1e300]), 0.0)
    model = mf.Product([peak(), mf.Uniform(Y)])
    assert (model.pdf({"x": [0.5, 0.5, -2.0], "y": [1.0, 3.0, 1.0]}) > 0).tolist() == [True, False, False]


def test_values_are_numbers_by_name_a_result_or_start_values():
    model = mixture()
    data = mf.generate(model, 2_000, seed=1)
    result = mf.fit(model, data)
    np.testing.assert_array_equal(model.pdf(data, result), model.pdf(data, dict(result.values)))
    np.testing.assert_array_equal(
        model.pdf(data), model.pdf(data, {"mu": 0.5, "sigma": 0.4, "f": 0.3, "slope": -0.7})
    )
    assert not np.array_equal(model.pdf(data), model.pdf(data, result))
    assert model.integrate({"x": (0, 1)}, result) == model.integrate({X: (0, 1)}, result.values)
    # a result of a larger model knows the values of its parts
    np.testing.assert_array_equal(
        peak().pdf(data, result), peak().pdf(data, {n: result.values[n] for n in ("mu", "sigma")})
    )


# ------------------------------------------------------------------------------------ distributions


@pytest.mark.parametrize("make", [peak, by_quadrature])
def test_distribution_is_that_of_scipy(make, backend):
    found = make().cdf(POINTS, {"mu": 1.2}, backend=backend)
    np.testing.assert_allclose(found, normal(1.2).cdf(POINTS), atol=INTEGRAL_PROMISE)
    assert (found[0], np.diff(found).min() >= 0) == (0.0, True)
    assert found[-1] == pytest.approx(1.0, abs=INTEGRAL_PROMISE)


def test_distribution_of_a_sum_in_any_order_and_shape():
    points = np.random.default_rng(1).permutation(np.repeat(POINTS, 2))[:80].reshape(2, 40)
    expected = 0.3 * normal().cdf(points) + 0.7 * falling().cdf(points)
    np.testing.assert_allclose(mixture().cdf(points), expected, rtol=BIN_INTEGRAL, atol=FEW_ROUNDINGS)


def test_distribution_is_zero_below_and_one_above():
    np.testing.assert_array_equal(mixture().cdf([-np.inf, -5.0, 3.5, np.inf]), [0.0, 0.0, 1.0, 1.0])


# ------------------------------------------------------------------------------------ boxes


def test_probability_of_a_range_is_that_of_scipy(backend):
    low, high = normal().cdf([0.2, 0.9])
    for make in (peak, by_quadrature):
        assert make().integrate({"x": (0.2, 0.9)}, backend=backend) == pytest.approx(
            high - low, rel=INTEGRAL_PROMISE
        )


@pytest.mark.parametrize("box", [{"x": (0, 1)}, {"y": (0.5, 1.0)}, {"y": (0.5, 1.0), "x": (0, 1)}])
def test_probability_of_a_box_of_a_product_is_that_of_quadrature(box, backend):
    wave = mf.Density(2 + np.sin(3 * Y) + 0.1 * np.exp(np.cos(Y)), Y)
    model = mf.Product([mixture(), wave])

    def of(pdf, o):
        ends = box.get(o.name, (o.low, o.high))
        return area(pdf.pdf, *ends)

    expected = of(mixture(), X) * of(wave, Y)
    assert model.integrate(box, backend=backend) == pytest.approx(expected, rel=INTEGRAL_PROMISE)


def test_probability_of_a_box_of_a_density_in_two_observables():
    model = mf.Density(1 + X**2 * np.exp(-Y * abs(X - MU)), [X, Y])
    whole = integrate.dblquad(lambda y, x: 1 + x**2 * np.exp(-y * abs(x - 0.5)), -1, 3, 0, 2, epsrel=1e-10)[0]
    part = integrate.dblquad(lambda y, x: 1 + x**2 * np.exp(-y * abs(x - 0.5)), 1, 3, 0.5, 1, epsrel=1e-10)[0]
    assert model.integrate({"x": (1, 3), "y": (0.5, 1)}) == pytest.approx(part / whole, rel=1e-8)


def test_probability_of_everything_is_one():
    assert mixture().integrate({}) == 1.0
    assert mixture().integrate({"x": (-1, 3)}) == pytest.approx(1.0, rel=FEW_ROUNDINGS)


# ------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.pdf(["a"]), mf.DataError, r"observable 'x': values must be numbers, got \['a'\]"),
        (lambda m: m.pdf([[1.0], [1.0, 2.0]]), mf.DataError, "observable 'x': values must be numbers, got"),
        (lambda m: m.pdf(np.nan), mf.DataError, "observable 'x': values must be numbers, got nan"),
        (lambda m: m.pdf(np.inf), mf.DataError, "observable 'x': values must be finite, got inf"),
        (lambda m: m.pdf({"z": [1.0]}), mf.DataError, "'x'"),
        (lambda m: m.pdf(1.0, {"nu": 1.0}), mf.ModelError, "model: has no parameter 'nu'"),
        (lambda m: m.pdf(1.0, [1.0]), mf.ModelError, r"values must be numbers by name, .* got \[1.0\]"),
        (lambda m: m.pdf(1.0, backend="gpu"), mf.BackendError, "backend 'gpu': not known"),
        (lambda m: m.cdf("a"), mf.DataError, "observable 'x': values must be numbers, got 'a'"),
        (lambda m: mf.Product([m, mf.Uniform(Y)]).cdf(1.0), mf.ModelError,
         "model: a cdf is a function of one observable, got 'x', 'y'; use integrate"),
        (lambda m: m.marginal([["x", "y"]]), mf.ModelError, r"observable \['x', 'y'\]: not in the model"),
        (lambda m: m.integrate({"xx": (0, 1)}), mf.ModelError, "observable 'xx': not in the model; did you mean 'x'"),
        (lambda m: m.integrate((0, 1)), mf.DataError, r"ranges: must be \(low, high\) by name, .* got \(0, 1\)"),
        (lambda m: m.integrate({"x": 1}), mf.DataError, r"observable 'x': a sub-range must be \(low, high\), got 1"),
        (lambda m: m.integrate({"x": (1, 0)}), mf.DataError, "observable 'x': a sub-range must not be empty, got"),
        (lambda m: m.integrate({"x": (0, 9)}), mf.DataError, r"a sub-range must lie in \[-1.0, 3.0\], got \(0.0, 9.0\)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_explained(call, error, text):
    with pytest.raises(error, match=text):
        call(peak())


def test_a_result_of_another_model_is_refused():
    other = mf.Exponential(X, SLOPE)
    result = mf.fit(other, mf.generate(other, 100, seed=1))
    with pytest.raises(
        mf.ModelError, match="parameter 'mu': not in the fit result, which has 'slope'; pass the"
    ):
        peak().pdf(0.5, result)
