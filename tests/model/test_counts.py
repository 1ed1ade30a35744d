"""Densities of whole numbers are sums, drawn as whole numbers, and refuse other data."""

import hist
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import morefit as mf
from backend_rows import COMPILED, JUDGE, there

N = mf.Observable("n", -0.5, 15.5)
MEAN, P = mf.Parameter("mean", 3.5, 0.1, 30), mf.Parameter("p", 0.3, 0, 1)
MODELS = {
    "Poisson": (mf.shapes.Poisson(N, MEAN), stats.poisson(3.5)),
    "Binomial": (mf.shapes.Binomial(N, 15, P), stats.binom(15, 0.3)),
}
BACKENDS = {"cpu": COMPILED["cpu"], "opencl": COMPILED["opencl"], "reference": JUDGE["reference"]}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize(("model", "scipy"), MODELS.values(), ids=MODELS)
def test_whole_numbers_are_drawn_with_their_probabilities(model, scipy, backend):
    drawn = mf.generate(model, 20_000, seed=1, backend=there(backend))["n"]
    assert np.all(drawn == np.floor(drawn)) and drawn.min() >= 0
    expected = 20_000 * scipy.pmf(np.arange(16)) / scipy.cdf(15)
    seen, several = np.bincount(drawn.astype(int), minlength=16), expected > 5
    assert (
        stats.chisquare(
            np.append(seen[several], seen[~several].sum()),
            np.append(expected[several], expected[~several].sum()),
        ).pvalue
        > 1e-4
    )


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize(("model", "scipy"), MODELS.values(), ids=MODELS)
def test_probabilities_are_sums_over_whole_numbers(model, scipy, backend):
    backend = there(backend)
    norm = scipy.cdf(15)
    np.testing.assert_allclose(
        model.pdf(np.arange(16), backend=backend), scipy.pmf(np.arange(16)) / norm, rtol=1e-11
    )
    assert model.integrate({"n": (1.5, 4.5)}, backend=backend) == pytest.approx(
        scipy.pmf([2, 3, 4]).sum() / norm, rel=1e-11
    )
    assert model.integrate({"n": (-0.5, 15.5)}, backend=backend) == pytest.approx(1)
    np.testing.assert_allclose(
        model.cdf(np.arange(16) + 0.5, backend=backend), scipy.cdf(np.arange(16)) / norm, rtol=1e-11
    )


def test_a_fit_of_counts_has_the_mean_and_its_error():
    data = {"n": np.array([3.0, 5, 2, 4, 0, 7, 3, 3])}
    wide = mf.Observable("n", -0.5, 99.5)
    result = mf.fit(mf.shapes.Poisson(wide, MEAN), data, tolerance=1e-10)
    assert result.values["mean"] == pytest.approx(np.mean(data["n"]), rel=1e-5)
    assert result.errors["mean"] == pytest.approx(np.sqrt(np.mean(data["n"]) / 8), rel=1e-5)
    share = mf.fit(MODELS["Binomial"][0], data, tolerance=1e-10)
    assert share.values["p"] == pytest.approx(np.mean(data["n"]) / 15, rel=1e-5)


def test_toys_of_counts_have_pulls_of_width_one():
    model = mf.Sum(
        [MODELS["Poisson"][0], mf.shapes.Poisson(N, 9.0)], fractions=[mf.Parameter("f", 0.5, 0, 1)]
    )
    toys = mf.toy_study(model, toys=200, events=300, seed=1, progress=False)
    assert toys.valid.mean() > 0.99
    for name in ("mean", "f"):
        assert toys.pull_summary(name).width == pytest.approx(1, abs=0.2)


def test_small_means_and_ranges_of_one_number_are_drawn():
    assert not mf.generate(MODELS["Poisson"][0], 100, seed=1, truth={"mean": 1e-6})["n"].any()
    one = mf.shapes.Poisson(mf.Observable("n", 1.5, 2.5), MEAN)
    assert set(mf.generate(one, 10, seed=1)["n"]) == {2.0}


def test_a_plot_has_a_bin_for_each_number():
    model = MODELS["Poisson"][0]
    drawn = mf.plot(model, mf.generate(model, 100, seed=1), lower=None)
    plt.close("all")
    np.testing.assert_allclose(np.diff(drawn.numbers.edges), 1)
    np.testing.assert_allclose(drawn.numbers.expected, 100 * model.pdf(np.arange(16)), rtol=1e-9)


def test_data_that_are_not_whole_numbers_are_refused():
    with pytest.raises(
        mf.DataError,
        match=r"dataset: observable 'n': 2 of 3 events are not whole numbers, such as 2.5; the model counts",
    ):
        mf.fit(mf.Sum([MODELS["Poisson"][0]], yields=[3.0]), {"n": [1.0, 2.5, 3.25]})


def test_every_way_to_fit_refuses_other_numbers():
    for use in (mf.Likelihood, lambda model, data: mf.fit_many(model, [data])):
        with pytest.raises(mf.DataError, match=r"1 of 2 events are not whole numbers, such as 2\.5"):
            use(MODELS["Poisson"][0], {"n": [1.0, 2.5]})


def test_the_expected_information_of_counts_is_exact():
    wide = mf.shapes.Poisson(mf.Observable("n", -0.5, 60.5), MEAN)
    assert mf.fisher_information(wide, 100).errors["mean"] == pytest.approx(np.sqrt(3.5 / 100), rel=1e-6)


def test_wrong_ranges_and_arguments_are_refused():
    with pytest.raises(
        mf.ModelError,
        match=r"must begin and end halfway between whole numbers from -0.5 on, got \[0, 20\]; write mf.Observable\('n', -0.5, 20.5\)",
    ):
        mf.shapes.Poisson(mf.Observable("n", 0, 20), MEAN)
    with pytest.raises(
        mf.ModelError, match=r"must have at most 1000 whole numbers, got 2000; narrow it, or use mf.Gaussian"
    ):
        mf.shapes.Poisson(mf.Observable("n", -0.5, 1999.5), MEAN)
    with pytest.raises(
        mf.ModelError, match=r"observable 'n' must lie in \[-0.5, 10.5\], got the range \[-0.5, 15.5\]"
    ):
        mf.shapes.Binomial(N, 10, P)
    with pytest.raises(mf.ModelError, match=r"density 'Binomial': trials must be a number, got m"):
        mf.shapes.Binomial(N, mf.Parameter("m", 20), P)
    with pytest.raises(mf.ModelError, match=r"argument 'trials' must be a whole number from 1 on, got 2.5"):
        mf.shapes.Binomial(N, 2.5, P)
    with pytest.raises(mf.ModelError, match=r"argument 'mean' must be positive, got 0"):
        mf.shapes.Poisson(N, 0)


def test_whole_numbers_in_bins_are_fitted_as_events_are():
    """This used to look for the column of the events."""
    data = mf.generate(MODELS["Poisson"][0], 500, seed=1)
    bins = np.histogram(data[N], np.arange(N.low, N.high + 1))
    one, other = mf.fit(MODELS["Poisson"][0], data), mf.fit(MODELS["Poisson"][0], bins)
    assert other.values["mean"] == pytest.approx(one.values["mean"], abs=1e-3 * one.errors["mean"])
    assert other.errors["mean"] == pytest.approx(one.errors["mean"], rel=1e-3)


CUT = {
    "a fit in ranges": lambda model, data: mf.fit(model, data, ranges={"n": (2.0, 6.5)}),
    "a probability": lambda model, data: model.integrate({"n": (1.5, 6.0)}),
    "an expression": lambda model, data: model.probability_in({"n": (2.0, 6.5)}),
    "a restricted density": lambda model, data: mf.Restricted(model, {"n": (2.0, 6.5)}),
    "bins": lambda model, data: mf.BinnedLikelihood(model, ([3, 4], [2.0, 3.0, 4.0])),
    "a plot": lambda model, data: mf.plot(model, data, bins=np.arange(0, 10)),
}


@pytest.mark.parametrize("use", CUT.values(), ids=CUT)
def test_ranges_and_bins_that_cut_whole_numbers_are_refused(use):
    # these used to count half of the probability of 2, but all events that have it
    n = mf.Observable("n", -0.5, 20.5)
    model = mf.shapes.Poisson(n, mf.Parameter("mean", 3.0, 0.1, 20.0))
    with pytest.raises(
        mf.DataError, match="'n': ends of ranges and bins of whole numbers must lie halfway between"
    ):
        use(model, {"n": [1.0, 2.0, 5.0]})


def test_the_distribution_of_counts_is_that_of_scipy():
    # at a whole number it used to have half of its probability
    n = mf.Observable("n", -0.5, 20.5)
    model = mf.shapes.Poisson(n, mf.Parameter("mean", 3.0, 0.1, 20.0))
    x = [0.0, 2.0, 2.4, 2.5, 20.0]
    np.testing.assert_allclose(model.cdf(x), stats.poisson.cdf(x, 3) / stats.poisson.cdf(20, 3), rtol=1e-12)


def test_a_chi_square_of_counts_has_a_bin_for_each():
    # it used to have 50 bins, most of them between whole numbers
    n = mf.Observable("n", -0.5, 20.5)
    model = mf.shapes.Poisson(n, mf.Parameter("mean", 3.0, 0.1, 20.0))
    test = mf.intervals.goodness_of_fit(mf.Likelihood(model, mf.generate(model, 500, seed=1)))
    assert test.p_value > 1e-3


def test_axes_of_whole_numbers_are_bins_around_them():
    # this used to be refused
    model, numbers = MODELS["Poisson"][0], np.array([0, 1, 1, 2, 3, 3, 5])
    low, high = int(N.low + 0.5), int(N.high + 0.5)
    counted = hist.Hist(hist.axis.Integer(low, high, name="n")).fill(numbers)
    same = mf.BinnedLikelihood(model, np.histogram(numbers, np.arange(N.low, N.high + 1)))
    assert mf.BinnedLikelihood(model, counted).value([2.0]) == same.value([2.0])
    assert mf.Histogram(N, counted).pdf([1.0, 4.0]) == pytest.approx([2 / 7, 0.0])
    with pytest.raises(mf.DataError, match=r"edges of 'x' must lie in its range \[0.0, 9.0\], got \[-0.5"):
        mf.BinnedLikelihood(mf.Uniform(mf.Observable("x", 0.0, 9.0)), counted)
