"""RooFit's tutorials 101 to 111, the basics, each in a few lines, with its numbers checked by other means."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import special, stats

import morefit as mf
from areas import area
from tolerances import NUMERICAL, SCIPY_DENSITY, UNIT_INTEGRAL
from tutorial_models import near_truth

X = mf.Observable("x", -10, 10)
MEAN, SIGMA = mf.Parameter("mean", 1, -10, 10), mf.Parameter("sigma", 3, 0.1, 10)
GAUSS = mf.Gaussian(X, MEAN, SIGMA)


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close what a test drew."""
    yield
    plt.close("all")


def test_rf101_basics_a_gaussian_is_drawn_fitted_and_plotted():
    data = mf.generate(GAUSS, 5_000, seed=1)
    result = mf.fit(GAUSS, data)
    assert near_truth(result, mean=1, sigma=3)
    drawn = mf.plot(GAUSS, data, values=result)
    assert drawn.numbers.expected.sum() == pytest.approx(5_000)


def test_rf102_dataimport_histograms_and_columns():
    values = np.random.default_rng(2).normal(0, 3, 2_000)
    events = mf.Dataset.cut({"x": values, "other": values + 1}, [X])
    histogram = np.histogram(values, bins=50, range=(-10, 10))
    of_events, of_bins = mf.fit(GAUSS, events), mf.fit(GAUSS, histogram)
    assert len(events) == histogram[0].sum()
    assert mf.fit(GAUSS, tuple(part.tolist() for part in histogram)).values == of_bins.values
    assert near_truth(of_bins, mean=0, sigma=3)
    assert of_bins.values["mean"] == pytest.approx(
        of_events.values["mean"], abs=0.2 * of_events.errors["mean"]
    )


def test_rf103_interprfuncs_any_formula_is_a_density():
    alpha = mf.Parameter("alpha", 5, 0.1, 20)
    x = mf.Observable("x", -20, 20)
    wave = mf.Density(1 + 0.1 * np.abs(x) + np.sin(np.sqrt(np.abs(x * alpha + 0.1))), x)
    assert area(wave.pdf, -20, -0.02, 0, 20) == pytest.approx(1, abs=1e-8)
    assert near_truth(mf.fit(wave, mf.generate(wave, 5_000, seed=3)), alpha=5)
    # a formula in the place of a parameter
    mean2 = mf.Parameter("mean2", 10, 0, 200)
    root = mf.Gaussian(X, np.sqrt(mean2), 3.0)
    assert near_truth(mf.fit(root, mf.generate(GAUSS, 1_000, truth={"mean": 10**0.5}, seed=4)), mean2=10)


def test_rf104_classfactory_a_density_of_your_own_with_and_without_integral():
    a, b = mf.Parameter("a", 1, 0.5, 5), mf.Parameter("b", 2, -10, 10)

    class Own(mf.Pdf):
        def __init__(self, x, a, b):
            self.x, self.a, self.b = x, a, b

        def density(self):
            return self.a * np.abs(self.x) + (self.x - self.b) ** 2

    class WithIntegral(Own):
        def integral_between(self, low, high):
            def primitive(u):
                return 0.5 * self.a * u * np.abs(u) + (u - self.b) ** 3 / 3

            return primitive(high) - primitive(low)

    by_rule, by_formula = Own(X, a, b), WithIntegral(X, a, b)
    points = np.linspace(-10, 10, 9)
    assert np.allclose(by_rule.pdf(points), by_formula.pdf(points), rtol=NUMERICAL)
    result = mf.fit(by_formula, mf.generate(by_formula, 2_000, seed=5), fixed=["a"])
    assert near_truth(result, b=2)


def test_rf105_funcbinding_functions_of_scipy():
    """A special function is in `mf.`; any other function of Python is called by `mf.opaque`."""
    x = mf.Observable("x", -3, 3)
    errors = mf.Density(mf.erfc(x), x)
    assert errors.pdf(0.5) == pytest.approx(special.erfc(0.5) / 6, rel=SCIPY_DENSITY)
    with pytest.warns(UserWarning, match="opaque"):
        called = mf.Density(mf.opaque(lambda x: special.erfc(x), x), x)
    assert called.pdf(0.5, backend="reference") == pytest.approx(special.erfc(0.5) / 6, rel=NUMERICAL)
    t = mf.Observable("t", 0.001, 0.999)
    shape = mf.shapes.Beta(t, 5.0, mf.Parameter("b", 2.0, 0.5, 9.0))
    inside = np.diff(stats.beta.cdf([0.001, 0.999], 5, 2))[0]
    assert shape.pdf(0.7) == pytest.approx(stats.beta.pdf(0.7, 5, 2) / inside, rel=SCIPY_DENSITY)


def test_rf106_plotdecoration_axes_and_artists_are_those_of_matplotlib():
    data = mf.generate(GAUSS, 1_000, seed=6)
    drawn = mf.plot(GAUSS, data, values=mf.fit(GAUSS, data))
    drawn.axes[0].annotate("a box, an arrow", xy=(2, 40), xytext=(4, 60), arrowprops={"color": "red"})
    drawn.axes[0].set_title("a title")
    assert {"data", "model", "legend", "pulls"} <= drawn.artists.keys()
    assert len(drawn.axes[0].texts) == 1


def test_rf107_plotstyles_of_lines_and_of_whole_figures():
    data = mf.generate(GAUSS, 500, seed=7)
    drawn = mf.plot(GAUSS, data, lower=None, style={"axes.linewidth": 3.0})
    drawn.artists["model"].set(color="red", linestyle="--", linewidth=4)
    assert drawn.artists["model"].get_color() == "red"
    assert len(drawn.axes) == 1


def test_rf108_plotbinning_numbers_and_edges():
    data = mf.generate(GAUSS, 1_000, seed=8)
    edges = [-10, -5, -2, 0, 1, 5, 10]
    own = mf.plot(GAUSS, data, bins=edges).numbers
    inside = np.diff(stats.norm.cdf([-10, 10], 1, 3))[0]
    expected = 1_000 * np.diff(stats.norm.cdf(edges, 1, 3)) / inside
    assert np.allclose(own.expected, expected, rtol=NUMERICAL)
    assert np.array_equal(own.counts, np.histogram(data["x"], edges)[0])
    assert len(mf.plot(GAUSS, data, bins=20).numbers.counts) == 20


def test_rf109_chi2residpull_numbers_of_a_plot():
    data = mf.generate(GAUSS, 10_000, seed=9)
    numbers = mf.plots.project(GAUSS, data, "x", values=mf.fit(GAUSS, data), bins=40)
    residuals = numbers.counts - numbers.expected
    full = numbers.expected > 10
    assert stats.chi2.sf(np.sum(residuals[full] ** 2 / numbers.expected[full]), full.sum() - 2) > 1e-4
    error = np.where(residuals > 0, numbers.errors[0], numbers.errors[1])
    assert np.allclose(numbers.pulls[full], (residuals / error)[full])


def test_rf110_normintegration_parts_of_ranges_and_distributions():
    gauss = mf.Gaussian(X, -2.0, 3.0)
    cdf = stats.norm(-2, 3).cdf
    whole = cdf(10) - cdf(-10)
    assert gauss.integrate({"x": (-5, 5)}) == pytest.approx((cdf(5) - cdf(-5)) / whole, rel=SCIPY_DENSITY)
    assert gauss.integrate({"x": (-10, 10)}) == pytest.approx(1, abs=UNIT_INTEGRAL)
    assert gauss.cdf(1.0) == pytest.approx((cdf(1) - cdf(-10)) / whole, rel=SCIPY_DENSITY)


def test_rf111_derivatives_are_exact_by_observables_and_parameters():
    points = np.linspace(-4, 6, 5)
    inside = np.diff(stats.norm.cdf([-10, 10], 1, 3))[0]
    u = (points - 1) / 3
    density = stats.norm.pdf(u) / 3 / inside
    hermite = {1: -u, 2: u**2 - 1, 3: 3 * u - u**3}  # of the derivatives of a Gaussian
    for order, factor in hermite.items():
        assert GAUSS.derivative(points, X, order) == pytest.approx(factor * density / 3**order, rel=NUMERICAL)

    def gauss(sigma):
        return stats.norm.pdf(points, 1, sigma) / np.diff(stats.norm.cdf([-10, 10], 1, sigma))[0]

    step = 1e-4
    slope = (gauss(3 + step) - gauss(3 - step)) / (2 * step)
    assert GAUSS.derivative(points, "sigma") == pytest.approx(slope, abs=1e-8)
    second = (gauss(2 + step) - 2 * gauss(2) + gauss(2 - step)) / step**2
    assert GAUSS.derivative(points, "sigma", 2, {"sigma": 2}) == pytest.approx(second, abs=1e-6)


def test_rf111_a_derivative_by_something_else_is_refused():
    with pytest.raises(mf.ModelError, match="derivative: 'sigm' is not in the model; did you mean 'sigma'"):
        GAUSS.derivative(1.0, "sigm")
    with pytest.raises(mf.OptionError, match="derivative: order must be at least 1, got 0"):
        GAUSS.derivative(1.0, X, 0)
