"""RooFit's tutorials 701 to 712, efficiencies and special densities, each in a few lines."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from areas import area
from tolerances import NUMERICAL, UNIT_INTEGRAL
from tutorial_models import FEW_SIGMA, near_truth


def test_rf701_efficiencyfit_a_turn_on_from_events_that_passed_and_failed():
    """An efficiency is the conditional probability that a cut of 0 or 1 was passed."""
    x, passed = mf.Observable("x", -10, 10), mf.Observable("passed", -0.5, 1.5)
    middle, width = mf.Parameter("middle", 1, -5, 5), mf.Parameter("width", 2, 0.5, 5)
    efficiency = 0.5 * (1 + mf.erf((x - middle) / width))
    model = mf.Density(mf.where(passed > 0.5, efficiency, 1 - efficiency), [passed], given=[x], integral=1)
    rng = np.random.default_rng(1)
    points = rng.uniform(-9.9, 9.9, 2_000)
    seen = (rng.random(2_000) < stats.norm.cdf((points - 1) * 2**0.5 / 2)).astype(float)
    result = mf.fit(model, {"x": points, "passed": seen})
    assert near_truth(result, middle=1, width=2)


def test_rf702_efficiencyfit_2d_in_two_observables():
    x, y = mf.Observable("x", -10, 10), mf.Observable("y", -10, 10)
    passed = mf.Observable("passed", -0.5, 1.5)
    ax, ay = mf.Parameter("ax", 0.6, 0, 1), mf.Parameter("ay", 0.2, 0, 1)
    efficiency = ((1 - ax) + ax * np.cos(x / 8) ** 2) * ((1 - ay) + ay * np.cos(y / 8) ** 2)
    model = mf.Density(mf.where(passed > 0.5, efficiency, 1 - efficiency), [passed], given=[x, y], integral=1)
    rng = np.random.default_rng(2)
    u, v, chance = rng.uniform(-9.9, 9.9, (3, 5_000))
    probability = (0.4 + 0.6 * np.cos(u / 8) ** 2) * (0.8 + 0.2 * np.cos(v / 8) ** 2)
    seen = (chance < 19.8 * probability - 9.9).astype(float)
    assert near_truth(mf.fit(model, {"x": u, "y": v, "passed": seen}), ax=0.6, ay=0.2)


def test_rf703_effpdfprod_a_decay_times_an_efficiency():
    t, tau = mf.Observable("t", 0, 5), mf.Parameter("tau", 1.54, 0.3, 5)
    efficiency = 0.5 * (1 + mf.erf((t - 1) / 0.5))
    model = mf.Efficiency(mf.Exponential(t, -1 / tau), efficiency)
    data = mf.generate(model, 2_000, seed=3)
    assert near_truth(mf.fit(model, data), tau=1.54)
    assert area(model.pdf, 0, 5) == pytest.approx(1, abs=UNIT_INTEGRAL)
    naive = mf.fit(mf.Exponential(t, -1 / tau), data)
    assert naive.values["tau"] > 1.54 + FEW_SIGMA * naive.errors["tau"]


def test_rf704_amplitudefit_a_sum_of_functions_with_coefficients_of_any_sign():
    t, cosa = mf.Observable("t", -1, 15), mf.Observable("cosa", -1, 1)
    f1, f2 = mf.Parameter("f1", 1, 0, 2, fixed=True), mf.Parameter("f2", 0.5, 0, 2)
    amplitudes = (np.exp(-t.expr / 1.54), np.cosh(0.1 * t) * np.exp(-t / 1.54) * (0.5 + 0.5 * cosa**2))
    model = mf.Density(f1 * amplitudes[0] + f2 * amplitudes[1], [t, cosa])
    data = mf.generate(model, 2_000, seed=4)
    assert near_truth(mf.fit(model, data), f2=0.5)

    def weight(u, v, f2=0.5):
        return np.exp(-u / 1.54) * (1 + f2 * np.cosh(0.1 * u) * (0.5 + 0.5 * v**2))

    area = integrate.dblquad(weight, -1, 1, -1, 15)[0]
    assert model.pdf({"t": [2.0], "cosa": [0.5]})[0] == pytest.approx(weight(2.0, 0.5) / area, rel=1e-7)


def test_rf705_linearmorph_between_two_shapes():
    """`MomentMorph` moves a peak; RooFit's `RooIntegralMorph` interpolates quantiles, with which Gaussians move alike."""
    x = mf.Observable("x", -20, 20)
    alpha = mf.Parameter("alpha", 0.4, 0, 1)
    ends = {0.0: mf.Gaussian(x, -5.0, 2.0), 1.0: mf.Gaussian(x, 5.0, 2.0)}
    moved, faded = mf.MomentMorph(alpha, ends), mf.Morph(alpha, ends)
    assert moved.pdf(-1.0) == pytest.approx(stats.norm.pdf(0, 0, 2), rel=1e-6)
    assert faded.pdf(-1.0) == pytest.approx(
        np.dot([0.6, 0.4], stats.norm.pdf([-1, -1], [-5, 5], 2)), rel=1e-6
    )
    assert near_truth(mf.fit(moved, mf.generate(moved, 1_000, seed=5)), alpha=0.4)


def test_rf705_linearmorph_of_quantiles():
    """What `RooIntegralMorph` does is a histogram of interpolated quantiles at some values, and `MomentMorph` between them."""
    x, alpha = mf.Observable("x", -20, 20), mf.Parameter("alpha", 0.45, 0, 1)
    ends, edges = [mf.Gaussian(x, -10.0, 2.0), mf.Polynomial(x, [-0.03, -0.001])], np.linspace(-20, 20, 201)
    q = np.unique([pdf.cdf(edges) for pdf in ends])
    quantiles = [np.interp(q, pdf.cdf(edges), edges) for pdf in ends]

    def mixed(a):
        return np.interp(edges, (1 - a) * quantiles[0] + a * quantiles[1], q)

    places = np.linspace(0, 1, 6)
    morph = mf.MomentMorph(alpha, {a: mf.Histogram(x, (np.diff(mixed(a)), edges), "linear") for a in places})
    assert morph.cdf(edges) == pytest.approx(mixed(0.45), abs=4e-3)
    assert near_truth(mf.fit(morph, mf.generate(morph, 1_000, seed=5)), alpha=0.45)


def test_rf706_histpdf_steps_and_smooth_interpolation():
    x = mf.Observable("x", 0, 20)
    truth = mf.Polynomial(x, [-0.08, 0.002])
    contents, edges = np.histogram(mf.generate(truth, 500, seed=6)["x"], bins=20, range=(0, 20))
    steps = mf.Histogram(x, (contents, edges))
    smooth = mf.Histogram(x, (contents, edges), "cubic")
    assert steps.pdf(edges[:-1] + 0.3) == pytest.approx(contents / contents.sum(), rel=NUMERICAL)
    assert smooth.integrate({"x": (0, 20)}) == pytest.approx(1, abs=UNIT_INTEGRAL)
    drawn = mf.generate(steps, 2_000, seed=7)["x"]
    assert stats.kstest(drawn, steps.cdf).pvalue > 1e-3


def test_rf707_kernelestimation_in_one_and_two_observables():
    x, y = mf.Observable("x", 0, 20), mf.Observable("y", 0, 20)
    truth = mf.Polynomial(x, [-0.08, 0.002])
    data = mf.generate(truth, 2_000, seed=8)
    estimate = mf.KernelDensity(x, data)
    ends = np.linspace(0, 20, 5)
    assert np.diff(estimate.cdf(ends)) == pytest.approx(np.diff(truth.cdf(ends)), abs=0.05)
    plane = mf.KernelDensity([x, y], {"x": data["x"], "y": data["x"][::-1]})
    assert plane.integrate({"x": (0, 20), "y": (0, 20)}) == pytest.approx(1, abs=UNIT_INTEGRAL)


def test_rf708_bphysics_mixing_cp_violation_and_lifetime_differences():
    t = mf.Observable("t", -10, 10)
    delta_m, sin2b = mf.Parameter("delta_m", 0.5, 0.1, 1), mf.Parameter("sin2b", 0.7, -1, 1)
    mistag = 0.1
    mixed = {
        q: mf.shapes.BDecay(t, 1.547, delta_m=delta_m, cos=q * (1 - 2 * mistag), sigma=[0.4]) for q in (1, -1)
    }
    golden = {
        q: mf.shapes.BDecay(t, 1.547, delta_m=delta_m, sin=q * (1 - 2 * mistag) * sin2b, sigma=[0.4])
        for q in (1, -1)
    }
    parts = [
        mf.Likelihood(pdf, mf.generate(pdf, 800, seed=9 + k))
        for k, pdf in enumerate([*mixed.values(), *golden.values()])
    ]
    result = mf.fit(parts[0] + parts[1] + parts[2] + parts[3])
    assert near_truth(result, delta_m=0.5, sin2b=0.7)
    wide = mf.shapes.BDecay(
        t, 1.5, delta_m=0.5, delta_gamma=0.1, cosh=1.0, sinh=0.3, cos=0.2, sin=0.1, sigma=[0.4]
    )
    assert area(wide.pdf, -10, -2, 0, 2, 10) == pytest.approx(1, abs=UNIT_INTEGRAL)


def test_rf709_barlowbeeston_templates_with_statistical_errors():
    """Each bin has a factor with a Poisson constraint, as many as the simulation has events there."""
    edges = np.linspace(0, 10, 6)
    x = mf.Observable("x", 0, 10)
    rng = np.random.default_rng(10)
    simulated = np.histogram(rng.normal(5, 1.5, 200), edges)[0] + 1.0
    truth = 500 * np.diff(stats.norm.cdf(edges, 5, 1.5)) + 100
    counts = rng.poisson(truth)
    signal = mf.Parameter("signal", 500, 0, 5_000)
    factors = [mf.Parameter(f"gamma{k}", 1.0, 0.1, 3.0) for k in range(5)]
    bins = [(x >= low) & (x < high) for low, high in itertools.pairwise(edges)]
    total = simulated.sum()
    heights = [signal * n / total * gamma + 100 for n, gamma in zip(simulated, factors, strict=True)]
    yields = sum(heights[1:], heights[0])
    shape = mf.Density(sum(h * one for h, one in zip(heights, bins, strict=True)), x)
    model = mf.Sum([shape], yields=[yields])
    constraints = [
        mf.constraint(n * gamma, n, kind="poisson") for n, gamma in zip(simulated, factors, strict=True)
    ]
    exact = mf.fit(mf.BinnedLikelihood(model, (counts, edges)), fixed=[g.name for g in factors])
    loose = mf.fit(mf.BinnedLikelihood(model, (counts, edges), constraints=constraints))
    assert loose.valid
    assert loose.errors["signal"] > exact.errors["signal"]
    assert abs(loose.values["signal"] - 500) < FEW_SIGMA * loose.errors["signal"]


def test_rf710_roopoly_coefficients_as_those_of_numpy():
    x = mf.Observable("x", 0, 10)
    model = mf.Polynomial(x, [0.01, -0.01, 0.0004])
    area = np.polynomial.Polynomial([1, 0.01, -0.01, 0.0004]).integ()(10)
    values = np.polynomial.Polynomial([1, 0.01, -0.01, 0.0004])([1.0, 8.0])
    assert model.pdf([1.0, 8.0]) == pytest.approx(values / area, rel=NUMERICAL)


def test_rf711_rf712_lagrangianmorph_a_coupling_squared_from_templates():
    """With one coupling g the rate is SM + g interference + g**2 new, as amplitudes squared are; 712 fits it."""
    x, g = mf.Observable("x", 0, 10), mf.Parameter("g", 0.5, -1, 2)
    edges = np.linspace(0, 10, 21)
    centres = (edges[1:] + edges[:-1]) / 2
    rates = {k: (np.exp(-centres / 3) * (1 + k * centres / 10) ** 2, edges) for k in (0.0, 0.5, 1.0)}
    weights = {0.0: (g - 0.5) * (g - 1) * 2, 0.5: -4 * g * (g - 1), 1.0: 2 * g * (g - 0.5)}
    terms = [weights[k] * mf.histogram_function(x, rates[k]) for k in rates]
    model = mf.Density(sum(terms[1:], terms[0]), x)
    exact = np.exp(-centres / 3) * (1 + 0.8 * centres / 10) ** 2
    assert model.pdf(centres, {"g": 0.8}) == pytest.approx(exact / exact.sum() * 2, rel=NUMERICAL)
    assert near_truth(mf.fit(model, mf.generate(model, 2_000, seed=11)), g=0.5)
