"""Goodness of fit: statistics against SciPy and sums by hand, and p-values that say when a model is wrong."""

import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.errors import DataError, ModelError, OptionError
from morefit.intervals import goodness_of_fit
from morefit.intervals.fit_statistics import MIN_EXPECTED, NEAR, Energy, merged, part_statistic
from tolerances import NUMPY_SUM, PULL_SIGMAS, SAME_MINIMUM

X = mf.Observable("x", -4.0, 6.0)
MU, SIGMA = mf.Parameter("mu", 0.3, -2.0, 2.0), mf.Parameter("sigma", 1.0, 0.2, 4.0)
MODEL = mf.Gaussian(X, MU, SIGMA)
UNBINNED = ("chi2", "ks", "anderson", "energy")


@pytest.fixture(scope="module")
def good():
    return mf.Likelihood(MODEL, mf.generate(MODEL, 400, seed=3))


@pytest.fixture(scope="module")
def bad():
    """Return two peaks, fitted with one."""
    rng = np.random.default_rng(1)
    return mf.Likelihood(
        MODEL, {"x": np.concatenate([rng.normal(-1.2, 0.5, 200), rng.normal(2.0, 0.5, 200)])}
    )


@pytest.mark.parametrize("test", UNBINNED)
def test_a_wrong_model_has_a_small_p_value_and_a_right_one_has_not(test, good, bad):
    assert goodness_of_fit(bad, test, toys=50, seed=1, progress=False).toy_p_value == 0.0
    right = goodness_of_fit(good, test, toys=50, seed=1, progress=False)
    assert 0.01 < right.toy_p_value < 1
    assert right.toy_p_error > 0


def test_distances_of_distributions_are_those_of_scipy(good):
    best = mf.fit(good)
    x, fitted = good.data["x"], best.values
    found = goodness_of_fit(good, "ks", best=best)
    assert found.statistic == pytest.approx(
        stats.kstest(x, lambda y: MODEL.cdf(y, fitted)).statistic, rel=1e-3
    )
    squared = goodness_of_fit(good, "anderson", best=best)
    below = np.sort(MODEL.cdf(x, fitted))
    i = np.arange(1, 401)
    expected = -400 - np.sum((2 * i - 1) / 400 * (np.log(below) + np.log(1 - below[::-1])))
    assert squared.statistic == pytest.approx(expected, rel=SAME_MINIMUM)
    assert np.isnan(found.p_value)
    assert np.isnan(found.toy_p_value)


def test_chi_square_of_merged_bins_is_the_sum_by_hand(good):
    best = mf.fit(good)
    found = goodness_of_fit(good, "chi2", best=best, bins=20)
    edges = np.linspace(-4.0, 6.0, 21)
    expected = 400 * np.diff(MODEL.cdf(edges, best.values))
    starts = merged(expected)
    counts = np.add.reduceat(np.histogram(good.data["x"], edges)[0], starts)
    expected = np.add.reduceat(expected, starts)
    assert expected.min() >= MIN_EXPECTED
    assert found.statistic == pytest.approx(np.sum((counts - expected) ** 2 / expected), rel=SAME_MINIMUM)
    assert found.ndf == len(starts) - 1 - 2
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, found.ndf))


def test_neighbours_are_merged_until_enough_is_expected():
    assert merged(np.array([1.0, 1.0, 4.0, 6.0, 2.0, 1.0])).tolist() == [0, 3]
    assert merged(np.array([0.1, 0.2])).tolist() == [0]


def test_the_energy_is_that_of_all_pairs(good):
    best = mf.fit(good)
    energy = Energy.of(good, best.values, seed=0)
    x, other = good.data["x"], energy.reference["x"]

    def potential(a, b):
        return -0.5 * np.log(((a[:, None] - b) / energy.scales[0]) ** 2 + NEAR**2)

    pairs = potential(x, x)[np.triu_indices(400, 1)].sum() / (400 * 399)
    expected = pairs - potential(x, other).mean() + 0.5 * potential(other, other).mean()
    assert energy(good.data, best.values) == pytest.approx(expected, abs=NUMPY_SUM)


def test_the_energy_at_other_values_is_that_of_a_weighted_reference(good):
    energy = Energy.of(good, {"mu": 0.3, "sigma": 1.0}, seed=0)
    moved = Energy.of(good, {"mu": 0.5, "sigma": 0.9}, seed=5)
    values = {"mu": 0.5, "sigma": 0.9}
    assert energy(good.data, values) == pytest.approx(moved(good.data, values), abs=0.03)


def test_the_energy_test_takes_several_observables():
    y = mf.Observable("y", 0.0, 1.0)
    model = mf.Product([MODEL, mf.shapes.Uniform(y)])
    data = mf.generate(model, 200, seed=1)
    slanted = {"x": data["x"], "y": np.sort(data["y"])[np.argsort(np.argsort(data["x"]))]}
    assert goodness_of_fit(model, "energy", data=data, toys=60, progress=False).toy_p_value > 0.01
    assert goodness_of_fit(model, "energy", data=slanted, toys=60, progress=False).toy_p_value == 0.0


def test_the_saturated_likelihood_of_bins_is_the_chi_square_of_the_fit(good):
    counts, edges = np.histogram(good.data["x"], 25, (-4.0, 6.0))
    binned = mf.BinnedLikelihood(MODEL, (counts, edges))
    best = mf.fit(binned)
    found = goodness_of_fit(binned, "saturated", toys=200, progress=False)
    assert found.statistic == pytest.approx(2 * best.nll, abs=1e-3)
    assert found.ndf == best.ndf
    chi2 = goodness_of_fit(binned, "chi2", toys=200, progress=False)
    assert abs(chi2.toy_p_value - chi2.p_value) < PULL_SIGMAS * chi2.toy_p_error


def test_statistics_of_a_sum_add_up(good, bad):
    joint = good + bad
    best = mf.fit(joint)
    each = [part_statistic("ks", part, best.values, 50, 0)(part.data, best.values) for part in joint.parts]
    assert goodness_of_fit(joint, "ks", best=best).statistic == pytest.approx(sum(each), rel=SAME_MINIMUM)


def test_toys_are_resumed_and_run_on_workers(tmp_path, good):
    whole = goodness_of_fit(good, "ks", toys=40, seed=2, progress=False)
    for _ in range(2):
        saved = goodness_of_fit(good, "ks", toys=40, seed=2, save=tmp_path / "toys.npz", progress=False)
        np.testing.assert_array_equal(saved.toys, whole.toys)
    with ProcessPoolExecutor(1) as pool:
        spread = goodness_of_fit(good, "energy", toys=20, seed=2, executor=pool, progress=False)
    np.testing.assert_allclose(
        spread.toys, goodness_of_fit(good, "energy", toys=20, seed=2, progress=False).toys, rtol=NUMPY_SUM
    )
    assert str(pickle.loads(pickle.dumps(whole))).startswith("goodness of fit, ks: 0.0")


def test_parameters_that_the_fit_had_fixed_stay_fixed_in_toys(good):
    best = mf.fit(good, fixed={"sigma": 1.0})
    found = goodness_of_fit(good, "chi2", best=best, bins=20, toys=20, progress=False)
    assert found.ndf == goodness_of_fit(good, "chi2", bins=20).ndf + 1


@pytest.mark.parametrize(("error", "fitted"), [(100.0, 2), (1e-5, 1)])
def test_parameters_count_as_far_as_data_determine_them(error, fitted, good):
    """A constraint without effect used to count as a bin, though its own chi-square is none of the statistic."""
    counts = np.histogram(good.data["x"], 25, (-4.0, 6.0))
    mean = mf.fit(good).values["mu"]
    nll = mf.BinnedLikelihood(MODEL, counts, constraints=mf.constraint(MU, mean, error))
    plain = mf.BinnedLikelihood(MODEL, counts)
    assert goodness_of_fit(nll).ndf == goodness_of_fit(plain).ndf + 2 - fitted
    with pytest.raises(
        DataError, match="'saturated' takes values that are relative to a perfect description"
    ):
        goodness_of_fit(plain + mf.constraint(10 * SIGMA, 10, kind="poisson"), "saturated")


def test_data_of_the_same_seed_are_not_the_reference_of_the_energy(good):
    """They used to be, so that the energy of such data was smaller than that of any toy."""
    values = {"mu": MU.start, "sigma": SIGMA.start}
    reference = Energy.of(good, values, seed=3).reference
    assert not np.intersect1d(reference["x"], mf.generate(MODEL, 400, seed=3)["x"]).size


def test_tests_that_do_not_fit_the_data_are_refused(good):
    with pytest.raises(OptionError, match=r"goodness_of_fit: test must be one of 'chi2', .*, got 'kuiper'"):
        goodness_of_fit(good, "kuiper")
    points = mf.LeastSquares(lambda x: MU * x, [1.0], [2.0], 0.1)
    with pytest.raises(
        DataError, match="goodness_of_fit: 'chi2' takes events or counts, got points; use 'saturated'"
    ):
        goodness_of_fit(points, "chi2")
    with pytest.raises(DataError, match="goodness_of_fit: 'saturated' takes bins or points, got events"):
        goodness_of_fit(good, "saturated")
    binned = mf.BinnedLikelihood(MODEL, np.histogram(good.data["x"], 25, (-4.0, 6.0)))
    with pytest.raises(DataError, match="goodness_of_fit: 'ks' takes events, got bins; use 'saturated'"):
        goodness_of_fit(binned, "ks")
    with pytest.raises(OptionError, match="goodness_of_fit: bins must be at least 1, got 0"):
        goodness_of_fit(good, bins=0)
    with pytest.raises(DataError, match="goodness_of_fit: toys have no weights"):
        goodness_of_fit(mf.Likelihood(MODEL, good.data, weights=np.full(400, 2.0)))
    y = mf.Observable("y", 0.0, 1.0)
    model = mf.Product([MODEL, mf.shapes.Uniform(y)])
    with pytest.raises(
        ModelError, match="goodness_of_fit: 'ks' takes events of one observable, got 2; use 'energy'"
    ):
        goodness_of_fit(model, "ks", data=mf.generate(model, 50, seed=1))
