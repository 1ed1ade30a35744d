"""RooFit's tutorials 801 to 804, studies of many pseudo-experiments, and 901 and 902, integration and generation."""

import numpy as np
import pytest
from scipy import integrate, stats

import morefit as mf
from tolerances import UNIT_INTEGRAL
from tutorial_models import FEW_SIGMA, signal_and_background

YIELDS = [mf.Parameter("nsig", 150, 0, 1_000), mf.Parameter("nbkg", 150, 0, 1_000)]
TOYS = 200


def test_rf801_mcstudy_binned_and_extended():
    model = signal_and_background(mean=mf.Parameter("mean", 5, 0, 10), yields=YIELDS)
    positive = {"a0": mf.Parameter("a0", 0.5, 0, 0.6), "a1": mf.Parameter("a1", -0.2, -0.4, 0.4)}
    model = model.replace(
        {"share": 0.8, **positive}
    )  # the polynomial must not be negative where a bin is empty
    bins = mf.generate(model, seed=1).to_hist(model.observables, 40)
    study = mf.toy_study(
        mf.BinnedLikelihood(model, bins), toys=TOYS, truth={"mean": 5}, seed=2, progress=False
    )
    pulls = study.pulls("mean")
    assert abs(pulls.mean()) < FEW_SIGMA / TOYS**0.5
    assert abs(pulls.std() - 1) < FEW_SIGMA / (2 * TOYS) ** 0.5
    frame = study.to_pandas()  # RooFit's fitParDataSet: values, errors, nll of each toy
    assert len(frame) == TOYS
    assert frame.filter(like="mean").shape[1] >= 2
    assert np.corrcoef(study.values.T).shape == (5, 5)


def test_rf802_mcstudy_addons_a_number_of_your_own_for_each_toy():
    x = mf.Observable("x", -10, 10)
    mean, sigma = mf.Parameter("mean", 0, -2.0, 1.8), mf.Parameter("sigma", 5, 1, 10)
    gauss, other = mf.Gaussian(x, mean, sigma), mf.Gaussian(x, 2.0, sigma)
    edges = np.linspace(-10, 10, 11)

    def chi2(data, values):
        expected = len(data) * np.diff(gauss.cdf(edges, values))
        return float(np.sum((np.histogram(data["x"], edges)[0] - expected) ** 2 / expected))

    right, wrong = (
        mf.toy_study(pdf, toys=60, events=1_000, fit_model=gauss, statistic=chi2, seed=3, progress=False)
        for pdf in (gauss, other)
    )
    # two parameters, fitted to the events and not to the bins: between 7 and 9 degrees of freedom
    probabilities = stats.chi2.sf(right.statistics["statistic"], 8)
    assert stats.kstest(probabilities, "uniform").pvalue > 1e-4
    assert np.all(wrong.statistics["statistic"].mean() > right.statistics["statistic"].mean())
    assert np.isclose(wrong.values[:, wrong.names.index("mean")], 1.8, atol=1e-3).mean() > 0.5  # at its limit


def test_rf803_mcstudy_addons2_random_truths_and_significances():
    mass = mf.Observable("mjjj", 85.0, 350.0)
    slopes = [mf.Parameter(f"c{k}", c, -1, 1) for k, c in enumerate((-0.846, 0.112, 0.076))]
    nsig, nbkg = mf.Parameter("nsig", 53, 0, 1e3), mf.Parameter("nbkg", 103, 0, 5e3)
    parts = [mf.Gaussian(mass, 162.0, 15.2), mf.shapes.Chebyshev(mass, slopes)]
    model = mf.Sum(parts, yields=[nsig, nbkg])
    totals = np.random.default_rng(4).uniform(50, 500, 12)
    numbers = []
    for seed, total in enumerate(totals):
        truth = {"nsig": total * 53 / 156, "nbkg": total * 103 / 156}
        nll = mf.Likelihood(model, mf.generate(model, truth=truth, seed=seed))
        best = mf.fit(nll)
        numbers.append((best.errors["nsig"], mf.intervals.discovery(nll, nsig, best=best).significance))
    errors, significances = np.transpose(numbers)
    assert stats.spearmanr(totals, errors).statistic > 0.7
    assert stats.spearmanr(totals, significances).statistic > 0.7


def test_rf804_mcstudy_constr_constraints_are_drawn_anew():
    x = mf.Observable("x", -10, 10)
    m, s, f = mf.Parameter("m", 0, -10, 10), mf.Parameter("s", 2, 0.1, 10), mf.Parameter("f", 0.7, 0, 1)
    model = mf.Sum([mf.Gaussian(x, m, s), mf.Uniform(x)], fractions=[f])
    constraint = mf.constraint(f, 0.7, 0.1)
    options = {"toys": TOYS, "events": 200, "seed": 5, "progress": False}
    study = mf.toy_study(model, constraints=constraint, **options)
    free = mf.toy_study(model, **options)
    pulls = study.pulls("f")
    assert abs(pulls.mean()) < FEW_SIGMA / TOYS**0.5
    assert abs(pulls.std() - 1) < FEW_SIGMA / (2 * TOYS) ** 0.5
    place = study.names.index("f")
    assert study.errors[:, place].mean() < free.errors[:, place].mean()


def test_rf901_numintconfig_a_rule_that_adapts_and_says_how_exact_it_is():
    x = mf.Observable("x", -10, 10)
    by_formula = mf.shapes.Landau(x, 0.0, 0.1)
    by_rule = mf.Density(by_formula.density(), x)  # without what is known of its integral
    area = integrate.quad(lambda u: by_rule.pdf(u), -10, 10, points=[0], limit=500, epsabs=1e-12)[0]
    assert area == pytest.approx(1, abs=UNIT_INTEGRAL)
    assert by_rule.pdf(0.1) == pytest.approx(by_formula.pdf(0.1), rel=1e-9)


def test_rf902_numgenconfig_methods_are_chosen_and_agree():
    """By inversion where there is a formula, under an envelope elsewhere: nothing needs to be configured."""
    x = mf.Observable("x", 0, 10)
    model = mf.shapes.Chebyshev(x, [0.0, 0.5, -0.1])
    drawn = mf.generate(model, 2_000, seed=6)["x"]
    assert stats.kstest(drawn, model.cdf).pvalue > 1e-4
    other = mf.generate(model, 2_000, seed=6, generator="xoshiro256++")["x"]
    assert stats.ks_2samp(drawn, other).pvalue > 1e-4
