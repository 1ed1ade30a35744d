"""RooFit's tutorials 301 to 316, several observables; 311, 312 and 315 are in `test_ranges.py`."""

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from tolerances import NUMERICAL, SCIPY_DENSITY, UNIT_INTEGRAL
from tutorial_models import FEW_SIGMA, near_truth

X, Y = mf.Observable("x", -5, 5), mf.Observable("y", -5, 5)
A0, A1 = mf.Parameter("a0", -0.5, -5, 5), mf.Parameter("a1", -0.5, -1, 1)
SIGMA = mf.Parameter("sigma", 0.5, 0.1, 2)


def test_rf301_composition_a_mean_that_is_a_function_of_another_observable():
    """Not conditional, the density is a formula of both, normalised over both."""
    model = mf.Density(np.exp(-0.5 * ((X - (A0 + A1 * Y)) / SIGMA) ** 2), [X, Y])
    assert near_truth(mf.fit(model, mf.generate(model, 2_000, seed=1)), a0=-0.5, a1=-0.5, sigma=0.5)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    u, v = (side.ravel() for side in np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2))
    area = model.pdf({"x": u, "y": v}) @ np.outer(weights, weights).ravel() / 4
    assert model.integrate({"x": (0, 1), "y": (0, 1)}) == pytest.approx(area, abs=1e-6)


def test_rf302_utilfuncs_formulas_sums_products_and_polynomials_as_arguments():
    """`RooFormulaVar`, `RooPolyVar`, `RooAddition` and `RooProduct` are Python's operators."""
    square = A0 + A1 * Y**2
    formula, addition, product = A0 + A1 * np.sin(Y), sum([A0, Y], 0.0), A1 * Y
    for mean in (square, formula, addition, product):
        model = mf.Gaussian(X, mean, SIGMA, given=[Y])
        assert [o.name for o in model.given] == ["y"]
    inside = np.diff(stats.norm.cdf([-5, 5], -0.75, 0.5))[0]
    value = mf.Gaussian(X, mf.Derived("mean", A0 + A1 * 0.5), SIGMA).pdf(0.0)
    assert value == pytest.approx(stats.norm.pdf(0, -0.75, 0.5) / inside, rel=SCIPY_DENSITY)


def test_rf303_conditional_a_fit_does_not_see_the_distribution_of_what_is_given():
    y = np.random.default_rng(3).normal(0, 1, 3_000).clip(-4.9, 4.9)
    model = mf.Gaussian(X, A0 + A1 * Y, SIGMA, given=[Y])
    data = mf.generate(model, given={"y": y}, seed=3)
    assert np.array_equal(data["y"], y)
    result = mf.fit(model, data)
    assert near_truth(result, a0=-0.5, a1=-0.5, sigma=0.5)
    # a straight line through the points, as numpy fits it
    slope, constant = np.polyfit(data["y"], data["x"], 1)
    assert result.values["a1"] == pytest.approx(slope, abs=0.1 * result.errors["a1"])
    assert result.values["a0"] == pytest.approx(constant, abs=0.1 * result.errors["a0"])


def test_rf304_uncorrprod_a_product_of_two_gaussians():
    model = mf.Product([mf.Gaussian(X, mf.Parameter("mx", 2, -5, 5), 1.0), mf.Gaussian(Y, 0.0, 3.0)])
    data = mf.generate(model, 2_000, seed=4)
    assert near_truth(mf.fit(model, data), mx=2)
    assert abs(np.corrcoef(data["x"], data["y"])[0, 1]) < FEW_SIGMA / 2_000**0.5
    assert model.integrate({"x": (-5, 5), "y": (-5, 5)}) == pytest.approx(1, abs=UNIT_INTEGRAL)


def test_rf305_condcorrprod_a_conditional_density_times_that_of_what_it_is_given():
    model = mf.Product([mf.Gaussian(X, A0 + A1 * Y, SIGMA, given=[Y]), mf.Gaussian(Y, 0.0, 3.0)])
    data = mf.generate(model, 2_000, seed=5)
    assert near_truth(mf.fit(model, data), a0=-0.5, a1=-0.5, sigma=0.5)
    inside = np.diff(stats.norm.cdf([-5, 5], 0, 3))[0]
    below = np.diff(stats.norm.cdf([-5, 0], 0, 3))[0] / inside
    assert model.integrate({"y": (-5, 0)}) == pytest.approx(below, rel=NUMERICAL)


DT, DT_ERROR = mf.Observable("dt", -10, 10), mf.Observable("dt_error", 0.01, 5)
TAU, BIAS = mf.Parameter("tau", 1.548, 0.5, 4), mf.Parameter("bias", 0.0, -1, 1)
SCALE = mf.Parameter("scale", 1.0, 0.3, 3)
DECAY = mf.shapes.Decay(DT, TAU, sigma=[SCALE * DT_ERROR], mean=[BIAS * DT_ERROR], given=[DT_ERROR])


def dt_errors(events):
    return np.random.default_rng(6).gamma(4.0, 0.15, events).clip(0.02, 4.9)


def test_rf306_condpereventerrors_a_resolution_of_each_event():
    data = mf.generate(DECAY, given={"dt_error": dt_errors(3_000)}, seed=8)
    result = mf.fit(DECAY, data)
    assert near_truth(result, tau=1.548, scale=1.0, bias=0.0)
    numbers = mf.plots.project(DECAY, data, "dt", values=result, bins=10)  # the mean over all rows
    rate, errors = 1 / result.values["tau"], data["dt_error"]
    width, shift = result.values["scale"] * errors, result.values["bias"] * errors
    cdf = [stats.exponnorm.cdf(u, 1 / (rate * width), shift, width) for u in (-10, 0, 2, 10)]
    assert numbers.expected[5] == pytest.approx(np.sum((cdf[2] - cdf[1]) / (cdf[3] - cdf[0])), rel=1e-6)


def test_rf307_fullpereventerrors_with_a_histogram_of_the_errors():
    spread, edges = np.histogram(dt_errors(5_000), bins=8, range=(0.01, 5))
    model = mf.Product([DECAY, mf.Histogram(DT_ERROR, (spread, edges))])
    data = mf.generate(model, 1_000, seed=7)
    assert near_truth(mf.fit(model, data), tau=1.548, scale=1.0, bias=0.0)
    first = np.sum(data["dt_error"] < edges[1])
    expected = 1_000 * spread[0] / spread.sum()
    assert abs(first - expected) < FEW_SIGMA * expected**0.5


def test_rf308_normintegration2d_parts_of_a_plane():
    model = mf.Product([mf.Gaussian(X, -2.0, 3.0), mf.Gaussian(Y, 2.0, 2.0)])
    px, py = (
        np.diff(stats.norm.cdf(ends, m, s))
        for m, s, ends in ((-2, 3, [-5, -1, 1, 5]), (2, 2, [-5, -1, 1, 5]))
    )
    part = model.integrate({"x": (-1, 1), "y": (-1, 1)})
    assert part == pytest.approx(px[1] * py[1] / (px.sum() * py.sum()), rel=SCIPY_DENSITY)
    assert model.marginal("x").cdf(1.0) == pytest.approx(px[:2].sum() / px.sum(), rel=SCIPY_DENSITY)


def test_rf309_ndimplot_a_model_on_a_grid():
    """Figures in two dimensions are those of matplotlib: `pdf` takes a grid, a dataset gives its columns."""
    model = mf.Density(np.exp(-0.5 * ((X - (A0 + A1 * Y)) / SIGMA) ** 2), [X, Y])
    x, y = np.meshgrid(np.linspace(-5, 5, 401), np.linspace(-5, 5, 401), indexing="ij")
    heights = model.pdf({"x": x.ravel(), "y": y.ravel()}).reshape(x.shape)
    assert np.trapezoid(np.trapezoid(heights, dx=0.025), dx=0.025) == pytest.approx(1, abs=1e-3)
    data = mf.generate(model, 2_000, seed=8)
    counts, *_ = np.histogram2d(data["x"], data["y"], bins=5, range=[(-5, 5), (-5, 5)])
    expected = 2_000 * model.integrate({"x": (-1, 1), "y": (-1, 1)})
    assert abs(counts[2, 2] - expected) < FEW_SIGMA * expected**0.5


def test_rf310_sliceplot_decays_of_one_tag():
    """Categories are parts of a joint likelihood: each has its data, its density and its plot."""
    t = mf.Observable("t", -8, 8)
    delta_m, mistag = mf.Parameter("delta_m", 0.5, 0.1, 1), mf.Parameter("mistag", 0.2, 0, 0.5)
    tags = {
        q: mf.shapes.BDecay(t, 1.5, delta_m=delta_m, cos=q * (1 - 2 * mistag), sigma=[0.3]) for q in (1, -1)
    }
    parts = [mf.Likelihood(tags[q], mf.generate(tags[q], n, seed=n)) for q, n in ((1, 1_500), (-1, 1_000))]
    result = mf.fit(parts[0] + parts[1])
    assert near_truth(result, delta_m=0.5, mistag=0.2)
    mixed = mf.plots.project(tags[-1], parts[1].data, "t", values=result, bins=10)
    assert mixed.counts.sum() == pytest.approx(mixed.expected.sum()) == 1_000


def test_rf313_paramranges_a_region_with_moving_edges():
    """A box whose edge in z depends on x and y is a condition in the formula."""
    x, y, z = (mf.Observable(n, 0, 10) for n in "xyz")
    cone = mf.Density(mf.where(z < x + 0.5 * y, 1.0, 0.0), [x, y, z])
    allowed = integrate.dblquad(lambda v, u: min(10.0, u + 0.5 * v), 0, 10, 0, 10, epsabs=1e-4)[0]
    inside = integrate.dblquad(lambda v, u: min(5.0, u + 0.5 * v), 0, 5, 0, 5, epsabs=1e-4)[0]
    part = cone.integrate({"x": (0, 5), "y": (0, 5), "z": (0, 5)})
    assert part == pytest.approx(inside / allowed, rel=1e-5)


def test_rf314_paramfitrange_a_first_time_of_each_event():
    t, first = mf.Observable("t", 0, 5), mf.Observable("first", 0, 2)
    tau = mf.Parameter("tau", 1.54, 0.1, 10)
    model = mf.Density(
        mf.where(t >= first, np.exp(-t / tau), 0.0), [t], given=[first],
        integral=tau * (np.exp(-first / tau) - np.exp(-5 / tau)),
    )  # fmt: skip
    starts = np.random.default_rng(9).uniform(0.1, 1.9, 2_000)
    data = mf.generate(model, given={"first": starts}, seed=9)
    assert (data["t"] >= data["first"]).all()
    assert near_truth(mf.fit(model, data), tau=1.54)
    naive = mf.fit(mf.Exponential(t, -1 / tau), {"t": data["t"]})
    assert abs(naive.values["tau"] - 1.54) > FEW_SIGMA * naive.errors["tau"]


def test_rf316_llratioplot_a_cut_on_the_ratio_of_likelihoods_in_the_other_observables():
    x, y, z = (mf.Observable(name, -5, 5) for name in "xyz")
    signal = mf.Product([mf.Gaussian(o, 0, 1) for o in (x, y, z)])
    flat = mf.Product([mf.Polynomial(x, [-0.1]), mf.Uniform(y), mf.Uniform(z)])
    model = mf.Sum([signal, flat], fractions=[mf.Parameter("fraction", 0.1, 0, 1)])
    data = mf.generate(model, 5_000, seed=10)
    others = {name: data[name] for name in "yz"}
    one, both = signal.marginal(["y", "z"]), model.marginal(["y", "z"])
    ratio = one.pdf(others) / both.pdf(others)
    by_hand = stats.norm.pdf(data["y"]) * stats.norm.pdf(data["z"]) / np.diff(stats.norm.cdf([-5, 5]))[0] ** 2
    assert ratio == pytest.approx(by_hand / (0.1 * by_hand + 0.9 * 0.01), rel=NUMERICAL)
    chosen = data[ratio > 3]
    enriched = mf.fit(model.marginal("x"), {"x": chosen["x"]})
    assert enriched.values["fraction"] > 0.1 + FEW_SIGMA * enriched.errors["fraction"]
    # the curve after the cut: how much of each part passes it, by simulation, as in RooFit
    drawn = [mf.generate(part.marginal(["y", "z"]), 50_000, seed=11) for part in (signal, flat)]
    passing = [np.mean(one.pdf(own.columns) / both.pdf(own.columns) > 3) for own in drawn]
    share = 0.1 * passing[0] / (0.1 * passing[0] + 0.9 * passing[1])
    after = mf.Sum([signal.marginal("x"), flat.marginal("x")], fractions=[share])
    shown = mf.plot(after, {"x": chosen["x"]}, bins=20).numbers
    expected = len(chosen) * np.diff(after.cdf(shown.edges))
    assert np.sum((shown.counts - expected) ** 2 / expected) < stats.chi2(20).ppf(0.999)
    assert enriched.values["fraction"] == pytest.approx(share, abs=FEW_SIGMA * enriched.errors["fraction"])
