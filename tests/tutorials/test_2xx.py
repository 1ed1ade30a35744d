"""RooFit's tutorials 201 to 211, sums and convolutions; 203, 204, 204a, 204b and 212 are in `test_ranges.py`."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import morefit as mf
from areas import area
from tolerances import NUMERICAL, UNIT_INTEGRAL
from tutorial_models import near_truth, signal_and_background

FRACTION = mf.Parameter("fraction", 0.5, 0, 1)
YIELDS = [mf.Parameter("nsig", 600, 0, 10_000), mf.Parameter("nbkg", 900, 0, 10_000)]


def test_rf201_composite_sums_of_sums_and_recursive_fractions():
    model = signal_and_background(fractions=[FRACTION])
    data = mf.generate(model, 5_000, seed=1)
    result = mf.fit(model, data, fixed=["share"])
    assert near_truth(result, fraction=0.5, a0=0.5, a1=-0.2)
    (narrow, wide), background = model.pdfs[0].pdfs, model.pdfs[1]
    share = model.pdfs[0].fractions[0]
    at_once = mf.Sum([background, narrow, wide], fractions=[1 - FRACTION, share], recursive=True)
    points = np.linspace(0, 10, 7)
    assert np.allclose(at_once.pdf(points), model.pdf(points), rtol=NUMERICAL)


def test_rf202_extendedmlfit_yields_and_a_single_extended_density():
    model = signal_and_background(yields=YIELDS)
    data = mf.generate(model, seed=2)
    result = mf.fit(model, data, fixed=["share"], tolerance=1e-3)
    assert near_truth(result, nsig=600, nbkg=900)
    assert sum(result.values[n] for n in ("nsig", "nbkg")) == pytest.approx(len(data), rel=1e-4)
    alone = mf.fit(mf.Sum([model.pdfs[1]], yields=[YIELDS[1]]), data, tolerance=1e-3)
    assert alone.values["nbkg"] == pytest.approx(len(data), rel=1e-4)
    assert alone.errors["nbkg"] == pytest.approx(len(data) ** 0.5, rel=1e-3)


def test_rf205_compplot_draws_components_that_add_up():
    model = signal_and_background(fractions=[FRACTION])
    data = mf.generate(model, 1_000, seed=3)
    drawn = mf.plot(model, data, bins=20)
    assert {"signal", "background"} <= drawn.artists.keys()
    assert sum(drawn.numbers.components.values()) == pytest.approx(drawn.numbers.curve)
    # a part of the model by itself, scaled to its share
    signal = mf.plots.project(model.pdfs[0], data, "x", bins=20)
    share = drawn.numbers.components["signal"].sum() / 1_000
    assert share == pytest.approx(0.5)
    assert drawn.numbers.components["signal"] == pytest.approx(share * signal.curve)
    plt.close("all")


def test_rf206_treevistools_print_a_model_and_draw_its_graph():
    model = signal_and_background(fractions=[FRACTION])
    assert str(model).count("Gaussian in x") == 2
    assert str(model).splitlines()[-1].startswith("└─ background, 1 - fraction = 0.5: Chebyshev in x")
    assert mf.explain(model).dot().startswith("digraph")


def test_rf207_comptools_copies_with_other_parts():
    model = signal_and_background(fractions=[FRACTION])
    other = mf.Parameter("other", 0.3, 0, 1)
    changed = model.replace({"a0": other, "signal": mf.Gaussian(model.observables[0], 5.0, 0.7)})
    names = [p.name for p in changed.parameters]
    assert "other" in names
    assert not {"a0", "share"} & set(names)
    assert changed.pdf(2.0) != model.pdf(2.0)
    assert [p.name for p in model.parameters].count("a0") == 1


@pytest.mark.exhaustive  # seconds to compile; tests/model/test_convolution.py has both, the Landau and the fit
def test_rf208_convolution_of_a_landau_with_a_gaussian():
    t, d = mf.Observable("t", -10, 30), mf.Observable("d", -12, 12)
    peak, scale = mf.Parameter("peak", 5, -20, 20), mf.Parameter("scale", 1, 0.1, 10)
    smeared = mf.Convolution(mf.shapes.Landau(t, peak, scale), mf.Gaussian(d, 0.0, 2.0))
    assert near_truth(mf.fit(smeared, mf.generate(smeared, 500, seed=4)), peak=5, scale=1)
    landau = stats.landau(scale=np.pi / 2)  # scipy's has its peak elsewhere
    shift = 5 - optimize.minimize_scalar(lambda u: -landau.pdf(u), (-3, 0, 3), tol=1e-12).x

    def by_scipy(u):
        return integrate.quad(lambda v: landau.pdf(u - v - shift) * stats.norm.pdf(v, 0, 2), -12, 12)[0]

    assert smeared.pdf(8.0) / smeared.pdf(4.0) == pytest.approx(by_scipy(8.0) / by_scipy(4.0), rel=1e-6)


def test_rf209_anaconv_decays_with_truth_gaussian_and_double_gaussian_resolution():
    dt, d = mf.Observable("dt", -10, 10), mf.Observable("d", -9, 9)
    tau, bias = mf.Parameter("tau", 1.548, 0.5, 4), mf.Parameter("bias", 0.1, -1, 1)
    core, tail = mf.Gaussian(d, bias, 1.0), mf.Gaussian(d, 0.0, 2.5)
    exact = mf.shapes.Decay(dt, tau)
    single = mf.Convolution(exact, core)
    double = mf.Convolution(exact, mf.Sum([core, tail], fractions=[0.8]))
    assert exact.pdf(2.0) == pytest.approx(stats.expon.pdf(2, scale=1.548) / stats.expon.cdf(10, scale=1.548))
    assert single.pdf(2.0) / single.pdf(-1.0) == pytest.approx(
        np.divide(*stats.exponnorm.pdf([2, -1], 1.548, 0.1, 1.0)), rel=NUMERICAL
    )
    for model in (single, double):
        assert area(model.pdf, -10, 0, 10) == pytest.approx(1, abs=UNIT_INTEGRAL)
    assert near_truth(mf.fit(double, mf.generate(double, 2_000, seed=5)), tau=1.548, bias=0.1)


def test_rf210_angularconv_a_cyclical_observable_is_the_smeared_formula_of_a_wave():
    """A resolution multiplies the amplitude of a wave by exp(-k**2 s**2 / 2): no convolution is needed."""
    psi = mf.Observable("psi", 0, 2 * np.pi)
    amplitude, width = mf.Parameter("amplitude", 0.8, 0, 1), mf.Parameter("width", 0.3, 0, 1, fixed=True)
    model = mf.Density(1 + amplitude * np.exp(-2 * width**2) * np.sin(2 * psi), psi)
    drawn = mf.generate(mf.Density(1 + amplitude * np.sin(2 * psi), psi), 4_000, seed=6)["psi"]
    measured = (drawn + np.random.default_rng(6).normal(0, 0.3, 4_000)) % (2 * np.pi)
    assert near_truth(mf.fit(model, measured), amplitude=0.8)
    # others: mf.Convolution of the periodic formula itself, which holds outside of the range
    d = mf.Observable("d", -1.8, 1.8)
    smeared = mf.Convolution(mf.Density(1 + amplitude * np.sin(2 * psi), psi), mf.Gaussian(d, 0, 0.3))
    points = np.linspace(0, 6, 5)
    assert smeared.pdf(points) == pytest.approx(model.pdf(points), rel=1e-6)  # differences end at 6 sigma


def test_rf211_paramconv_smears_a_parameter_instead_of_an_observable():
    """A parameter with a distribution is an observable that is integrated over; what is left is a model as any other."""
    x, mean = mf.Observable("x", -10, 10), mf.Observable("mean", -3, 3)
    sigma, a = mf.Parameter("sigma", 0.5, 0.1, 10), mf.Parameter("a", 2, 1, 2.9)
    both = mf.Product([mf.Gaussian(x, mean, sigma, given=[mean]), mf.Density(1.0 * (np.abs(mean) < a), mean)])
    model = both.marginal("x")
    exact = np.diff(stats.norm.cdf([[-2, 2]], np.array([[0.0], [1.7], [3.0]]), 0.5))[:, 0] / 4
    assert model.pdf([0.0, 1.7, 3.0]) == pytest.approx(exact, rel=1e-6)
    counts = np.histogram(mf.generate(both, 1_000, seed=7)["x"], 50, (-10, 10))
    assert near_truth(mf.fit(model, counts), sigma=0.5, a=2)
    # the other one: what nothing depends on integrates to one
    assert both.marginal("mean").pdf(0.5) == pytest.approx(0.25)
