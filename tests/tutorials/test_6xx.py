"""RooFit's tutorials 601 to 619: likelihoods, profiles, constraints, errors, learned densities, choices."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from iminuit import Minuit
from scipy import optimize, stats

import morefit as mf
from tolerances import PROFILE, SAME_MINIMUM
from tutorial_models import FEW_SIGMA, near_truth, signal_and_background

FRACTION = mf.Parameter("fraction", 0.5, 0, 1)


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close what a test drew."""
    yield
    plt.close("all")


def two_widths(events=1_000):
    """Return the likelihood of two Gaussians of one mean, whose fractions and widths are strongly correlated."""
    x, mean = mf.Observable("x", -20, 20), mf.Parameter("mean", 0, -10, 10)
    wide = mf.Gaussian(x, mean, mf.Parameter("sigma_g2", 4, 3, 6))
    model = mf.Sum([mf.Gaussian(x, mean, 3.0), wide], fractions=[mf.Parameter("frac", 0.5, 0, 1)])
    return mf.Likelihood(model, mf.generate(model, events, seed=2))


def test_rf601_intminuit_step_by_step():
    nll = two_widths()
    minuit = Minuit(nll, **{p.name: p.start for p in nll.parameters})
    minuit.migrad().hesse().minos("sigma_g2")
    result = mf.fit(nll, minos=["sigma_g2"])
    assert result.values["frac"] == pytest.approx(
        minuit.values["frac"], abs=SAME_MINIMUM * result.errors["frac"]
    )
    assert result.minos["sigma_g2"][1] == pytest.approx(minuit.merrors["sigma_g2"].upper, rel=PROFILE)
    lines = mf.intervals.contour(nll, "frac", "sigma_g2", size=15, progress=False).lines(0.6827)
    assert any(line[:, 0].min() < result.values["frac"] < line[:, 0].max() for line in lines)
    fixed = mf.fit(nll, fixed={"mean": 0.3, "sigma_g2": result.values["sigma_g2"]})
    assert fixed.errors["frac"] < result.errors["frac"]
    assert fixed.nll > result.nll


def test_rf602_chi2fit_of_bins():
    model = signal_and_background(fractions=[FRACTION])
    data = mf.generate(model, 10_000, seed=3)
    chi2 = mf.fit(
        mf.BinnedLikelihood(model, data.to_hist(model.observables, 100), statistic="neyman"), fixed=["share"]
    )
    assert near_truth(chi2, fraction=0.5, a0=0.5)
    assert 1e-4 < chi2.p_value < 1 - 1e-4
    few = mf.BinnedLikelihood(model, data[1:100].to_hist(model.observables, 100), statistic="pearson")
    assert np.isfinite(few.value({p.name: p.start for p in few.parameters}))


def test_rf604_constraints_of_a_model_and_of_a_fit():
    x = mf.Observable("x", -10, 10)
    m, s, f = mf.Parameter("m", 0, -10, 10), mf.Parameter("s", 2, 0.1, 10), mf.Parameter("f", 0.5, 0, 1)
    model = mf.Sum([mf.Gaussian(x, m, s), mf.Uniform(x)], fractions=[f])
    data = mf.generate(model, 50, seed=7)
    free, high, low = (
        mf.fit(model, data, constraints=c)
        for c in ([], mf.constraint(f, 0.8, 0.1), mf.constraint(f, 0.2, 0.1))
    )
    assert low.values["f"] < free.values["f"] < high.values["f"]
    assert max(low.errors["f"], high.errors["f"]) < min(0.1, free.errors["f"])
    # to lowest order the constrained value is the weighted mean
    weights = np.array([free.errors["f"], 0.1]) ** -2.0
    assert high.values["f"] == pytest.approx(
        np.average([free.values["f"], 0.8], weights=weights), abs=high.errors["f"]
    )


def test_rf605_profilell_lies_below_the_likelihood():
    nll = two_widths()
    best = mf.fit(nll)
    scan = mf.intervals.profile(nll, "frac", np.linspace(0.1, 0.9, 9), best=best, progress=False)
    points = [{**best.values, "frac": frac} for frac in scan.values]
    along = np.array([nll.value(point) for point in points])
    assert np.all(scan.delta <= along - best.nll + 1e-6)
    assert np.max(along - best.nll - scan.delta) > 0.5
    assert mf.plots.profile(scan).numbers is scan


def test_rf606_nllerrorhandling_events_without_density_are_counted():
    m = mf.Observable("m", 5.20, 5.30)
    m0, k = mf.Parameter("m0", 5.291, 5.20, 5.30), mf.Parameter("k", -30, -50, -10)
    argus = mf.shapes.Argus(m, m0, k)
    data = mf.generate(argus, 1_000, seed=5)
    nll = mf.Likelihood(argus, data)
    beyond = np.sum(data["m"] >= 5.285)
    assert nll.value({"m0": 5.285, "k": -30}) == np.inf
    assert len(nll.bad_events({"m0": 5.285, "k": -30})) == beyond > 0
    with pytest.raises(
        mf.FitError, match=f"at the start values {beyond} of 1000 events have no positive density"
    ):
        mf.fit(nll, fixed={"m0": 5.285})
    assert near_truth(mf.fit(nll, fixed=["m0"]), k=-30)


def test_rf607_fitresult_matrices_plots_and_files(tmp_path):
    names = {"mean": (5, -10, 10), "narrow": (0.5, 0.1, 10), "wide": (1, 0.1, 10)}
    model = signal_and_background(**{n: mf.Parameter(n, *v) for n, v in names.items()}, fractions=[FRACTION])
    result = mf.fit(model, mf.generate(model, 3_000, seed=6), fixed=["a1"])
    assert near_truth(result, mean=5, narrow=0.5)
    assert result.correlation_of("narrow", "share") == pytest.approx(
        result.covariance_of("narrow", "share")[0, 1] / result.errors["narrow"] / result.errors["share"]
    )
    assert "edm" in str(result)
    assert mf.plots.correlation(result).numbers.shape == (6, 6)
    result.to_json(tmp_path / "rf607.json")
    assert mf.FitResult.from_json(tmp_path / "rf607.json").nll == result.nll


def test_rf608_fitresultaspdf_a_result_is_a_measurement_of_another_fit():
    """The covariance makes a normal distribution: to draw from, or to add as a constraint."""
    first, second = two_widths(2_000), two_widths(500)
    result, names = mf.fit(first), ("mean", "sigma_g2", "frac")
    drawn = np.random.default_rng(7).multivariate_normal(
        [result.values[n] for n in names], result.covariance_of(*names), 20_000
    )
    assert np.corrcoef(drawn.T)[1, 2] == pytest.approx(result.correlation_of("sigma_g2", "frac"), abs=0.02)
    parameters = {p.name: p for p in first.parameters}
    known = mf.constraint([parameters[n] for n in names], result)
    by_hand = [result.values[n] for n in names], result.covariance_of(*names)
    assert repr(known) == repr(mf.constraint([parameters[n] for n in names], *by_hand))
    with pytest.raises(
        mf.ModelError, match="a result has its covariance, as a Gaussian; leave error and kind out"
    ):
        mf.constraint(parameters["mean"], result, 0.1)
    with pytest.raises(mf.ModelError, match="a result measures parameters, got expression '2\\*mean'"):
        mf.constraint(2 * parameters["mean"], result)
    both = mf.fit(first + second)
    assert mf.fit(second.model, second.data, constraints=known).values["mean"] == pytest.approx(
        both.values["mean"], abs=0.1 * both.errors["mean"]
    )


def test_rf610_visualerror_a_band_from_the_covariance():
    x = mf.Observable("x", -10, 10)
    m, s = mf.Parameter("m", 0, -10, 10), mf.Parameter("s", 2, 1, 50)
    model = mf.Sum(
        [mf.Gaussian(x, m, s), mf.Gaussian(x, -1.0, 6.0)], fractions=[mf.Parameter("fsig", 0.33, 0, 1)]
    )
    result = mf.fit(model, mf.generate(model, 1_000, seed=8).to_hist(x, 25))
    points = np.linspace(-8, 8, 9)
    slopes = np.array([model.derivative(points, name, values=result) for name in result.floating])
    band = np.sqrt(np.einsum("ix,ij,jx->x", slopes, result.covariance, slopes))
    drawn = np.random.default_rng(8).multivariate_normal(
        [result.values[n] for n in result.floating], result.covariance, 200
    )
    spread = np.std(
        [model.pdf(points, dict(zip(result.floating, row, strict=True))) for row in drawn], axis=0
    )
    assert band == pytest.approx(spread, rel=0.3)


def test_rf611_weightedfits_errors_that_cover():
    x = mf.Observable("costheta", -1, 1)
    c0, c1 = mf.Parameter("c0", 0, -1, 1), mf.Parameter("c1", 0, -1, 1)
    model = mf.Sum([mf.Polynomial(x, [c0, c1])], yields=[mf.Parameter("ntot", 900, 0, 5_000)])
    accepted = mf.Efficiency(mf.Uniform(x), 0.3 + 0.7 * x**2)
    pulls = {"naive": [], "sumw2": [], "auto": []}
    for toy in mf.generate(accepted, [500] * 40, seed=9):
        weighted = toy.with_weights(1 / (0.3 + 0.7 * toy["costheta"] ** 2))
        for errors, own in pulls.items():
            result = mf.fit(model, weighted, errors=errors)
            own.append(result.values["c1"] / result.errors["c1"])
    widths = {errors: np.std(own) for errors, own in pulls.items()}
    assert widths["naive"] > widths["auto"]
    assert abs(widths["auto"] - 1) < FEW_SIGMA / 80**0.5


def test_rf612_recoverfrominvalidparameters_a_start_where_the_density_is_negative():
    x = mf.Observable("x", -15, 15)
    a1, a2 = mf.Parameter("a1", -0.5, -10, 20), mf.Parameter("a2", 0.2, -10, 20)
    model = mf.Polynomial(x, [a1, a2, 0.01])
    data = mf.generate(model, 5_000, seed=10)
    assert near_truth(mf.fit(model, data, start={"a1": 10.0, "a2": -1.0}, starts=20), a1=-0.5, a2=0.2)


def test_rf613_global_observables_are_drawn_with_the_data():
    x, mu, sigma = (
        mf.Observable("x", -10, 10),
        mf.Parameter("mu", 0, -10, 10),
        mf.Parameter("sigma", 1, 0.1, 2),
    )
    gauss, measured = mf.Gaussian(x, mu, sigma), mf.constraint(mu, 1.0, 0.1)
    nll = mf.Likelihood(gauss, mf.generate(gauss, 50, seed=11), constraints=measured)
    assert mf.fit(nll).values["mu"] > 0.3  # as measured, one away from the data
    toy = mf.generate(nll, truth={"mu": 0.0}, seed=12)
    assert near_truth(mf.fit(toy), mu=0, sigma=1)  # measured anew


def test_rf614_binned_fit_problems_bins_are_integrated():
    x, c, a = mf.Observable("x", 0.1, 5.1), mf.Parameter("c", -1.8, -5, 5), mf.Parameter("a", -0.3, -5, 5)
    edges = np.linspace(0.1, 5.1, 11)
    for model, name, truth in ((mf.Exponential(x, c), "c", -1.8), (mf.Density(x**a, x), "a", -0.3)):
        expected = 10_000 * np.diff(model.cdf(edges))
        result = mf.fit(
            mf.BinnedLikelihood(model, (expected, edges), variances=expected), start={name: truth + 0.2}
        )
        assert result.values[name] == pytest.approx(truth, abs=1e-5)
    # a small signal over ten million events: the sums are exact, no offset is needed
    mu, sigma = mf.Parameter("mu", 2.0, 0.1, 5.1), mf.Parameter("sigma", 1.0, 0.01, 5)
    yields = [mf.Parameter("nsig", 10_000, 0, 1e9), mf.Parameter("nbkg", 1e7, 0, 1e9)]
    model = mf.Sum([mf.Gaussian(x, mu, sigma), mf.Exponential(x, c)], yields=yields)
    truth = {"mu": 3.0, "sigma": 0.5}
    fine = np.linspace(0.1, 5.1, 101)
    means = 1e4 * np.diff(mf.Gaussian(x, 3.0, 0.5).cdf(fine)) + 1e7 * np.diff(
        mf.Exponential(x, -1.8).cdf(fine)
    )
    counts = np.random.default_rng(13).poisson(means)
    assert near_truth(mf.fit(model, (counts, fine)), **truth, nsig=1e4, nbkg=1e7)


def learned_ratio(observables, parameters, seed):
    """Return the logarithm of a likelihood ratio, as a classifier of simulated and uniform events learns it.

    A logistic regression with quadratic features is the fit of a binomial density; any other classifier is called by
    `mf.opaque`. Parameters are drawn between their limits, and are observables of the training.
    """
    rng = np.random.default_rng(seed)
    drawn = [mf.Observable(p.name, p.low, p.high) for p in parameters]
    thetas = {p.name: rng.uniform(p.low, p.high, 8_000) for p in parameters}
    pairs = list(zip(observables, parameters, strict=True))
    simulated = {o.name: rng.normal(thetas[p.name], 1.5) for o, p in pairs}
    uniform = {o.name: rng.uniform(o.low, o.high, 8_000) for o in observables}
    columns = {n: np.append(simulated[n], uniform[n]) for n in simulated}
    columns |= {n: np.append(theta, rng.permutation(theta)) for n, theta in thetas.items()}
    label = mf.Observable("label", -0.5, 1.5)
    columns["label"] = np.repeat([1, 0], 8_000)

    def ratio(symbols, coefficients):
        products = [1, *symbols, *(u * v for u, v in itertools.combinations_with_replacement(symbols, 2))]
        terms = [c * product for c, product in zip(coefficients, products, strict=True)]
        return sum(terms[1:], terms[0])

    symbols = [*observables, *drawn]
    count = 1 + len(symbols) + len(symbols) * (len(symbols) + 1) // 2
    coefficients = [mf.Parameter(f"c{k}", 0.0, -30, 30) for k in range(count)]
    probability = 1 / (1 + np.exp(-ratio(symbols, coefficients)))
    classifier = mf.shapes.Binomial(label, 1, probability, given=symbols)
    learned = mf.fit(classifier, mf.Dataset.cut(columns, [label, *symbols]))
    return ratio([*observables, *parameters], [learned.values[c] for c in coefficients])


def test_rf615_simulation_based_inference_with_a_learned_ratio():
    x, mu = mf.Observable("x", -5, 15), mf.Parameter("mu", 2.0, 0, 4)
    truth = mf.Gaussian(x, mu, 1.5)
    data = mf.generate(truth, 1_000, truth={"mu": 2.5}, seed=14)
    learned = mf.fit(mf.Density(np.exp(learned_ratio([x], [mu], 14)), x), data)
    exact = mf.fit(truth, data)
    assert learned.values["mu"] == pytest.approx(exact.values["mu"], abs=2 * exact.errors["mu"])
    assert learned.errors["mu"] == pytest.approx(exact.errors["mu"], rel=0.2)


def test_rf616_morphing_between_templates():
    x, mu = mf.Observable("x", -5, 15), mf.Parameter("mu", 2.0, 0, 4)
    rng = np.random.default_rng(15)
    templates = {
        k: mf.Histogram(x, np.histogram(rng.normal(k, 1.5, 100_000), 50, (-5, 15)), "linear")
        for k in range(5)
    }
    data = mf.generate(mf.Gaussian(x, mu, 1.5), 1_000, truth={"mu": 2.5}, seed=15)
    assert near_truth(mf.fit(mf.MomentMorph(mu, templates), data), mu=2.5)


@pytest.mark.slow
def test_rf617_simulation_based_inference_in_two_dimensions():
    x, y = mf.Observable("x", -5, 15), mf.Observable("y", -5, 15)
    mus = [mf.Parameter("mu1", 2.0, 0, 4), mf.Parameter("mu2", 2.5, 0, 4)]
    truth = mf.Product([mf.Gaussian(x, mus[0], 1.5), mf.Gaussian(y, mus[1], 1.5)])
    data = mf.generate(truth, 1_000, truth={"mu1": 2.5, "mu2": 2.0}, seed=16)
    learned = mf.fit(mf.Density(np.exp(learned_ratio([x, y], mus, 16)), [x, y]), data)
    exact = mf.fit(truth, data)
    assert all(abs(learned.values[n] - exact.values[n]) < 2 * exact.errors[n] for n in ("mu1", "mu2"))


def test_rf618_mixture_models_from_ratios_of_signal_and_background():
    """Any classifier gives r, the ratio of signal to background, once per event; the strength is fitted in r."""
    rng = np.random.default_rng(17)
    m4l = np.append(rng.uniform(80, 170, rng.poisson(200)), rng.normal(125, 3, rng.poisson(60)))
    ratio = stats.norm.pdf(m4l, 125, 3) * 90
    r, mu = mf.Observable("r", 0, 100), mf.Parameter("mu", 0.5, 0.0, 5.0)
    n_signal, n_background = 30.0, 200.0
    total = n_background + mu * n_signal
    # relative to the background alone the density is normalised by itself
    mixture = mf.Density((n_background + mu * n_signal * r) / total, r, integral=1.0, check=False)
    result = mf.fit(mf.Sum([mixture], yields=[total]), {"r": ratio})
    exact = optimize.minimize_scalar(
        lambda s: n_background + s * n_signal - np.log(n_background + s * n_signal * ratio).sum(), (0.1, 4)
    )
    assert result.values["mu"] == pytest.approx(exact.x, abs=SAME_MINIMUM * result.errors["mu"])
    assert near_truth(result, mu=2)


@pytest.mark.slow
def test_rf619_discrete_profiling_of_two_choices_in_two_categories():
    """`mf.Choice` decides in all categories at once."""
    x, mean = mf.Observable("x", 0, 50), mf.Parameter("mean", 25, 0, 50)
    c0, c1 = mf.Parameter("c0", -0.5, -1, 1), mf.Parameter("c1", 0.1, 0, 0.5)
    slope, width = mf.Parameter("slope", -0.025, -0.1, -0.02), mf.Parameter("width", 3, 1, 8)
    falling = mf.Choice(
        "falling", {"exponential": mf.Exponential(x, slope), "series": mf.shapes.Chebyshev(x, [c0, c1])}
    )
    peak = mf.Choice("peak", {"gauss": mf.Gaussian(x, mean, 2.0), "landau": mf.shapes.Landau(x, mean, width)})
    models = mf.Simultaneous(
        {
            "cat0": mf.Sum([falling, mf.Gaussian(x, mean, 3.0)], fractions=[0.7]),
            "cat1": mf.Sum([peak, mf.Exponential(x, -0.05)], fractions=[0.5]),
        },
        "category",
    )
    truth = models.choose({"falling": "exponential", "peak": "gauss"})
    data = mf.generate(truth, {"cat0": 500, "cat1": 500}, seed=18)
    result = mf.fit(models, data)
    heights = result.alternatives
    assert all(
        heights[f"{way}, gauss"] < heights[f"{way}, landau"] for way in falling.labels
    )  # a Landau is no Gaussian
    assert heights["exponential, gauss"] == pytest.approx(
        mf.fit(truth, data).nll + 1.0
    )  # slope and mean cost a half each
    assert result.choices["peak"] == "gauss" and near_truth(result, mean=25)
