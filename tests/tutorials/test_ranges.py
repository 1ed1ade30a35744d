"""RooFit's tutorials about ranges, each in a few lines, with its numbers checked by other means."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import morefit as mf
from tolerances import NUMERICAL, NUMPY_SUM, SAME_MINIMUM
from tutorial_models import FEW_SIGMA, near_truth


def test_rf203_ranges_a_fit_in_a_part_of_the_range():
    x = mf.Observable("x", -10, 10)
    mean, fraction = mf.Parameter("mean", 0, -10, 10), mf.Parameter("fraction", 0.5, 0, 1)
    model = mf.Sum([mf.Gaussian(x, mean, 1.0), mf.Uniform(x)], fractions=[fraction])
    data = mf.generate(model, 10_000, seed=1)
    full, signal = mf.fit(model, data), mf.fit(model, data, ranges={"x": (-3, 3)})
    assert near_truth(full, mean=0, fraction=0.5)
    assert near_truth(signal, mean=0, fraction=0.5)
    assert signal.errors["fraction"] > full.errors["fraction"]
    chosen = data["x"][np.abs(data["x"]) <= 3]

    def nll(p):
        norm = p[1] * np.diff(stats.norm.cdf([-10, 10], p[0]))
        peak = p[1] * stats.norm.pdf(chosen, p[0]) / np.diff(stats.norm.cdf([-10, 10], p[0]))
        area = norm * np.diff(stats.norm.cdf([-3, 3], p[0])) / np.diff(stats.norm.cdf([-10, 10], p[0])) ** 2
        return -np.log((peak + (1 - p[1]) / 20) / (area + (1 - p[1]) * 0.3)).sum()

    by_scipy = optimize.minimize(
        nll, [0.1, 0.4], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-7}
    )
    assert signal.nll == pytest.approx(by_scipy.fun, abs=1e-4)
    assert np.allclose([signal.values["mean"], signal.values["fraction"]], by_scipy.x, atol=1e-3)


def test_rf204_extrangefit_a_yield_counted_in_a_signal_range():
    x = mf.Observable("x", 0, 10)
    a0, a1 = mf.Parameter("a0", 0.5, 0, 1), mf.Parameter("a1", 0.2, 0, 1)
    nsig, nbkg = mf.Parameter("nsig", 500, 0, 10_000), mf.Parameter("nbkg", 500, 0, 10_000)
    peak = mf.Gaussian(x, 5, 0.5)
    model = mf.Sum([peak, mf.shapes.Chebyshev(x, [a0, a1])], yields=[nsig, nbkg])
    data = mf.generate(model, seed=2)
    result = mf.fit(model, data)
    in_range = result.derived(
        *(n * pdf.probability_in({"x": (4, 6)}) for n, pdf in zip((nsig, nbkg), model.pdfs, strict=True))
    )
    assert near_truth(result, nsig=500, nbkg=500)
    # the same with the yields of a model that counts in the range: values and errors are those derived
    counted = mf.fit(mf.Restricted(model, {"x": (4, 6)}, yields_in="range").whole, data)
    for k, name in enumerate(("nsig", "nbkg")):
        assert counted.values[name] == pytest.approx(in_range.values[k], rel=2e-3)
        assert counted.errors[name] == pytest.approx(in_range.errors[k], rel=5e-3)
    inside = np.diff(stats.norm.cdf([-2, 2]))[0]
    assert in_range.values[0] / result.values["nsig"] == pytest.approx(inside, rel=NUMERICAL)


def sidebands():
    """Return a model of a decay in a mass with yields, and its data."""
    m = mf.Observable("m", 10, 100)
    slope, mass = mf.Parameter("slope", -0.02, -0.1, 0.1), mf.Parameter("mass", 40, 20, 60, fixed=True)
    nsig, nbkg = mf.Parameter("nsig", 800, 0, 1e5), mf.Parameter("nbkg", 4000, 0, 1e5)
    model = mf.Sum([mf.Gaussian(m, mass, 2.0), mf.Exponential(m, slope)], yields=[nsig, nbkg])
    return m, model, mf.generate(model, seed=3)


def test_rf204a_extended_likelihood_in_several_ranges_gives_full_yields():
    m, model, data = sidebands()
    ranges = {m: [(10, 30), (36, 44), (60, 100)]}
    result = mf.fit(model, data, ranges=ranges)
    assert near_truth(result, nsig=800, nbkg=4000, slope=-0.02)
    # what is expected in the ranges is what was seen there
    seen = result.events
    assert abs(result.derived(model.expected_in(ranges)).value - seen) < SAME_MINIMUM * seen**0.5


def test_rf204b_sidebands_alone_predict_the_background_under_the_signal():
    _, model, data = sidebands()
    ranges, window = {"m": [(10, 30), (50, 100)]}, {"m": (30, 50)}
    result = mf.fit(model, data, ranges=ranges, start={"nsig": 0}, fixed=["nsig"])
    predicted = result.derived(model.expected_in(window))
    inside = (data["m"] > 30) & (data["m"] < 50)
    excess = inside.sum() - predicted.value
    assert abs(excess - 800) < FEW_SIGMA * np.hypot(predicted.error, inside.sum() ** 0.5)
    # an extended fit of a shape with one yield: the number is that of events over the probability of the ranges
    slope = result.values["slope"]
    area = np.sum([(np.exp(slope * b) - np.exp(slope * a)) for a, b in ranges["m"]])
    whole = np.exp(slope * 100) - np.exp(slope * 10)
    assert result.values["nbkg"] == pytest.approx(result.events * whole / area, rel=1e-4)
    # the plain likelihood of the union has the same slope
    plain = mf.fit(model.pdfs[1], data, ranges=ranges)
    assert plain.values["slope"] == pytest.approx(slope, abs=1e-2 * plain.errors["slope"])


def test_rf312_multirangefit_two_rectangles_around_a_signal_in_two_observables():
    x, y = mf.Observable("x", -10, 10), mf.Observable("y", -10, 10)
    sx, sy = mf.Parameter("sx", 0.02, -0.09, 0.09), mf.Parameter("sy", -0.03, -0.09, 0.09)
    nsig, nbkg = mf.Parameter("nsig", 2000, 0, 1e5), mf.Parameter("nbkg", 3000, 0, 1e5)
    signal = mf.Product([mf.Gaussian(x, 1, 1), mf.Gaussian(y, 1, 1)])
    flat = mf.Product([mf.Polynomial(x, [sx]), mf.Polynomial(y, [sy])])
    model = mf.Sum([signal, flat], yields=[nsig, nbkg])
    data = mf.generate(model, seed=4)
    below = mf.Likelihood(model, data, ranges={"x": (-10, 10), "y": (-10, 0)})
    left = mf.Likelihood(model, data, ranges={"x": (-10, 0), "y": (0, 10)})
    result = mf.fit(below + left)  # an L of two rectangles
    assert result.events == np.sum((data["x"] <= 0) | (data["y"] <= 0))
    assert near_truth(result, nbkg=3000, sx=0.02, sy=-0.03)

    def by_hand(p):
        cdf = stats.norm.cdf
        px = np.diff(cdf([-10, 0, 10], 1))
        boxes = [px.sum() * px[0], px[0] * px[1]] / px.sum() ** 2
        sides = [(1 - p[k] * 5) / 2 for k in (0, 1)]
        boxes_flat = [sides[1], sides[0] * (1 - sides[1])]
        dx, dy = (data[n][(data["x"] <= 0) | (data["y"] <= 0)] for n in "xy")
        density = p[2] * stats.norm.pdf(dx, 1) * stats.norm.pdf(dy, 1) / px.sum() ** 2
        density = density + p[3] * (1 + p[0] * dx) * (1 + p[1] * dy) / 400
        return p[2] * sum(boxes) + p[3] * sum(boxes_flat) - np.log(density).sum()

    point = {"sx": 0.01, "sy": -0.02, "nsig": 1900.0, "nbkg": 3100.0}
    assert (below + left).value(point) == pytest.approx(by_hand(list(point.values())), rel=NUMPY_SUM)


def test_rf311_rangeplot_a_projection_of_events_in_a_signal_box():
    x, y, z = (mf.Observable(name, -5, 5) for name in "xyz")
    signal = mf.Product([mf.Gaussian(o, 0, 1) for o in (x, y, z)])
    slope = mf.Parameter("slope", -0.1, -0.19, 0.19)
    flat = mf.Product([mf.Polynomial(x, [slope]), mf.Uniform(y), mf.Uniform(z)])
    fraction = mf.Parameter("fraction", 0.1, 0, 1)
    model = mf.Sum([signal, flat], fractions=[fraction])
    data = mf.generate(model, 20_000, seed=5)
    box = {"y": (-1, 1), "z": (-1, 1)}
    numbers = mf.plot(model, data, "x", ranges=box, bins=10).numbers
    inside = (np.abs(data["y"]) <= 1) & (np.abs(data["z"]) <= 1)
    assert numbers.counts.sum() == inside.sum()
    one_sigma = np.diff(stats.norm.cdf([-1, 1]))[0] / np.diff(stats.norm.cdf([-5, 5]))[0]
    in_bin = np.diff(stats.norm.cdf([0, 1]))[0] / np.diff(stats.norm.cdf([-5, 5]))[0]
    expected = 20_000 * (0.1 * in_bin * one_sigma**2 + 0.9 * (1 - 0.1 / 2) / 10 * 0.04)
    assert numbers.expected[5] == pytest.approx(expected, rel=NUMERICAL)


def test_rf212_plotting_in_ranges_leaves_the_blinded_region_empty():
    x = mf.Observable("x", -10, 10)
    slope = mf.Parameter("slope", -0.2, -1, 1)
    model = mf.Exponential(x, slope)
    data = mf.generate(model, 5000, seed=6)
    result = mf.fit(model, data, ranges={"x": [(-10, -5), (5, 10)]})
    assert near_truth(result, slope=-0.2)
    numbers = mf.plot(model, data, values=result, bins=20, blind=(-5, 5)).numbers
    assert np.isnan(numbers.counts).sum() == np.isnan(numbers.pulls).sum() == 10
    # the curve is normalised in the sidebands, and the data seen there add up to it
    seen = np.isfinite(numbers.counts)
    assert numbers.expected[seen].sum() == pytest.approx(np.nansum(numbers.counts), rel=NUMERICAL)
    whole = np.exp(-10 * result.values["slope"]) - np.exp(10 * result.values["slope"])
    middle = np.exp(-5 * result.values["slope"]) - np.exp(5 * result.values["slope"])
    total = np.nansum(numbers.counts) * whole / (whole - middle)
    assert numbers.expected.sum() == pytest.approx(total, rel=NUMERICAL)


def test_rf315_projectpdf_integrates_the_other_observable_out():
    x, y = mf.Observable("x", -5, 5), mf.Observable("y", -2, 2)
    sigma = mf.Parameter("sigma", 0.5, 0.1, 2)
    model = mf.Density(np.exp(-0.5 * ((x - (1.5 - 0.5 * y)) / sigma) ** 2 - 0.5 * y**2), [x, y])
    data = mf.generate(model, 2000, seed=7)
    numbers = mf.plots.project(model, data, "x", bins=10)

    def shape(v, u):
        return np.exp(-0.5 * ((u - 1.5 + 0.5 * v) / 0.5) ** 2 - 0.5 * v**2)

    area, inside = (integrate.dblquad(shape, low, high, -2, 2)[0] for low, high in ((-5, 5), (1, 2)))
    assert numbers.expected[6] == pytest.approx(2000 * inside / area, rel=1e-7)
    # of a product, or of a sum of products, the projection is a model
    factors = mf.Product([mf.Gaussian(x, 1.5, sigma), mf.Gaussian(y, 0, 1)])
    assert mf.fit(factors.marginal("x"), {"x": data["x"]}).valid
