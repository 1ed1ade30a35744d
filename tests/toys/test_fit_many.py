"""Many stored datasets are fitted together as well as one by one."""

import numpy as np
import pytest

import morefit as mf
from ensembles import ensemble_of
from morefit.cli import mass_model
from morefit.minimise.batch import Batch
from morefit.toys.batch import GOAL
from morefit.toys.stored import StoredToys

SIZES = [300, 500, 5000, 64, 1000, 4097]


def datasets(sizes=SIZES):
    return mf.generate(mass_model(), sizes, seed=5)


def test_each_fit_ends_where_minuit_ends():
    found = mf.fit_many(mass_model(), datasets([1000] * 12))
    assert found.valid.all()
    for k, data in enumerate(datasets([1000] * 12)):
        one = mf.fit(mass_model(), data)
        assert abs(found.nll[k] - one.nll) < 2 * GOAL
        assert found.values[k, 0] == pytest.approx(one.values["mu"], abs=0.05 * one.errors["mu"])


def test_given_events_are_fitted_like_drawn_ones_to_the_bit():
    ensemble = ensemble_of(mass_model(), seed=5, backend=mf.Cpu(threads=2))
    drawn = ensemble.draw(0, np.array(SIZES)).fit_whole(ensemble)
    stored = StoredToys.of_datasets(ensemble, [(d,) for d in datasets()]).fit_whole(ensemble)
    for name in ("values", "errors", "nll", "edm", "method"):
        assert getattr(drawn, name).tobytes() == getattr(stored, name).tobytes()


def test_large_datasets_and_other_backends_agree():
    large = datasets([150_000, 2000])
    ours = mf.fit_many(mass_model(), large)
    assert ours.valid.all()
    one = mf.fit(mass_model(), large[0], minimiser="newton")
    assert ours.nll[0] == pytest.approx(one.nll, abs=2 * GOAL)
    judged = mf.fit_many(mass_model(), datasets([300, 400]), backend="reference")
    same = mf.fit_many(mass_model(), datasets([300, 400]))
    np.testing.assert_allclose(same.values, judged.values, rtol=1e-7)


def test_without_any_signal_its_mean_and_width_are_undetermined_and_the_fit_is_valid():
    # events beyond the reach of the peak; this used to fail
    few = [{"m": np.array([6.5, 6.6, 6.9])}, datasets([1000])[0]]
    fits = mf.fit_many(mass_model(), few)
    assert len(fits) == 2
    assert fits.valid.tolist() == [True, True]
    known = dict(zip(fits.names, np.isfinite(fits.errors[0]), strict=True))
    assert known == {"mu": False, "sigma": False, "alpha": True, "fsig": True}
    assert np.isfinite(fits.errors[1]).all()


def test_fits_that_fail_are_kept_and_marked():
    # where its integral goes to zero, the density at one event grows for ever
    x = mf.Observable("x", -5.0, 5.0)
    model = mf.Polynomial(x, [mf.Parameter("c1", 0.1, -1.0, 1.0), mf.Parameter("c2", 0.1, -1.0, 1.0)])
    fits = mf.fit_many(model, [{"x": np.array([0.3])}, mf.generate(model, 1000, seed=1)])
    assert len(fits) == 2
    assert fits.valid.tolist() == [False, True]


def test_bad_input_is_named():
    with pytest.raises(mf.DataError, match="fit_many: needs at least one dataset, got none"):
        mf.fit_many(mass_model(), [])
    with pytest.raises(
        mf.DataError, match="dataset: has no events; there is nothing to fit, unless the model has yields"
    ):
        mf.fit_many(mass_model(), [{"m": []}])
    weighted = mf.Dataset({"m": [5.3, 5.4]}, mass_model().observables, weights=[1.0, -2.0])
    with pytest.raises(mf.DataError, match="weights: their sum must be positive, got -1"):
        mf.fit_many(mass_model(), [weighted])


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_weighted_datasets_are_fitted_in_compiled_code_like_one_alone(backend, monkeypatch):
    rng = np.random.default_rng(3)
    plain = datasets([300, 800, 500])
    data = [d.with_weights(rng.uniform(0.2, 1.8, len(d))) for d in plain[:2]] + [plain[2]]
    monkeypatch.setattr(Batch, "newton", None)  # step by step is for what fails
    fits = mf.fit_many(mass_model(), data, backend=backend)
    assert fits.valid.all()
    for k, one in enumerate(data):
        alone = mf.fit(mass_model(), one, backend="cpu", minimiser="minuit", tolerance=1e-4)
        values, errors = (np.array([row[n] for n in fits.names]) for row in (alone.values, alone.errors))
        assert np.abs((fits.values[k] - values) / errors).max() < np.sqrt(
            2 * GOAL
        )  # what the goal of the EDM leaves
        np.testing.assert_allclose(fits.errors[k], errors, rtol=5e-3)


EDGES, POINTS = np.linspace(0.0, 10.0, 6), np.arange(4.0)
ONE, OTHER = mf.Parameter("one", 40.0, 0.0, 1e4), mf.Parameter("other", 60.0, 0.0, 1e4)
LINE = ONE * mf.Observable("x", 0.0, 5.0) + OTHER
WORKSPACE = {
    "channels": [
        {"name": name, "samples": [{"name": "s", "data": [40.0, 50.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}]}
        for name in ("first", "second")
    ],
    "observations": [{"name": name, "data": [41.0, 52.0]} for name in ("first", "second")],
    "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    "version": "1.0.0",
}  # fmt: skip
TEMPLATES = {"one": np.array([30.0, 40.0, 5.0]), "other": np.array([10.0, 40.0, 90.0])}
OTHERS = {  # how the likelihood of some numbers is made, and how fit_many takes others
    "templates": (lambda n: mf.TemplateLikelihood(n, TEMPLATES), [20.0, 35.0, 40.0], [25.0, 30.0, 30.0]),
    "simulated counts": (
        lambda n: mf.TemplateLikelihood(n, TEMPLATES, method="barlow-beeston"),
        np.array([20.0, 35.0, 40.0]),
        np.array([25.0, 30.0, 30.0]),
    ),
    "points": (lambda y: mf.LeastSquares(LINE, POINTS, y, 3.0), 60 + 38 * POINTS, 55 + 39 * POINTS),
    "correlated points": (
        lambda y: mf.LeastSquares(LINE, POINTS, y, covariance=np.eye(4) + 1.0),
        60 + 38 * POINTS,
        55 + 39 * POINTS,
    ),
}


@pytest.mark.parametrize(("likelihood", "first", "second"), OTHERS.values(), ids=OTHERS)
def test_counts_and_points_are_passed_as_the_likelihood_takes_them(likelihood, first, second):
    # this used to take tables with columns of inner names alone
    many = mf.fit_many(likelihood(first), [first, second])
    for k, numbers in enumerate((first, second)):
        one = mf.fit(likelihood(numbers))
        away = many.values[k] - [one.values[n] for n in many.names]
        assert np.all(np.abs(away) < 0.02 * many.errors[k])
        np.testing.assert_allclose(many.errors[k], [one.errors[n] for n in many.names], rtol=0.01)


def test_counts_of_a_workspace_are_passed_by_channel_or_one_after_the_other():
    nll = mf.histfactory.read(WORKSPACE)
    many = mf.fit_many(nll, [{"second": [80, 100], "first": [40, 50]}, [40, 50, 80, 100], [40, 50, 40, 50]])
    np.testing.assert_allclose(many.values[:, 0], [1.5, 1.5, 1.0], atol=0.02 * 0.07)
    with pytest.raises(mf.DataError, match="counts by channel must have 'first', 'second', got"):
        mf.fit_many(nll, [{"first": [40, 50]}])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([1.0, 2.0], "takes the counts of 3 bins, one for each that is fitted, got 2"),
        ([1.0, -2.0, 3.0], "counts must be finite and not negative, got -2"),
        ("many", "counts must be an array of numbers"),
    ],
)
def test_counts_that_do_not_fit_are_refused(numbers, message):
    with pytest.raises(mf.DataError, match=message):
        mf.fit_many(mf.TemplateLikelihood([20, 35, 40], TEMPLATES), [numbers])


def test_a_likelihood_with_weights_is_fitted_to_other_data_as_its_model_is():
    # this used to be refused, as toys have no weights
    weighted = [data.with_weights(np.linspace(0.5, 1.5, len(data))) for data in datasets([300, 400])]
    nll = mf.Likelihood(mass_model(), weighted[0])
    many, alone = mf.fit_many(nll, weighted), mf.fit_many(mass_model(), weighted)
    np.testing.assert_array_equal(many.values, alone.values)
    np.testing.assert_array_equal(many.errors, alone.errors)


def test_data_of_categories_are_passed_by_label():
    model = mf.Simultaneous({"up": mass_model(), "down": mass_model()}, "polarity")
    both = dict(zip(("up", "down"), datasets([300, 400]), strict=True))
    nll = mf.fit(model, both).likelihood
    np.testing.assert_array_equal(
        mf.fit_many(nll, [dict(reversed(both.items()))]).values, mf.fit_many(model, [both]).values
    )


def test_histograms_of_categories_are_fitted_as_in_fit():
    # this used to be refused, though fit takes them
    model = mf.Simultaneous({"up": mass_model(), "down": mass_model()}, "polarity")
    (x,) = mass_model().observables
    first, second = (
        {"up": np.histogram(data[x.name], 20, (x.low, x.high)), "down": data} for data in datasets([300, 400])
    )
    many = mf.fit_many(model, [first, second])
    for k, data in enumerate((first, second)):
        one = mf.fit(model, data)
        assert np.all(np.abs(many.values[k] - [one.values[n] for n in many.names]) < 0.02 * many.errors[k])


@pytest.mark.parametrize(("width", "mean"), [(0.03, 4.3), (0.01, 4.3), (0.003, 5.0)])
def test_a_peak_a_hundred_times_narrower_than_at_the_start_is_fitted_as_alone(width, mean):
    # where compiled code had left the boxes of an integral the nll was 500 too low, so that every minimum was above it
    x = mf.Observable("x", 0.0, 10.0)
    mu, w = mf.Parameter("mu", 5.0, 0.0, 10.0), mf.Parameter("w", 1.0, 0.0005, 3.0)
    peak = mf.Density(1 / (1 + ((x - mu) / w) ** 2) ** 1.5, [x])
    data = [mf.generate(peak, 1000, truth={"w": width, "mu": mean}, seed=seed) for seed in range(2)]
    many = mf.fit_many(peak, data, backend=mf.Cpu(threads=1))
    each = [mf.fit(peak, one) for one in data]
    assert many.valid.all()
    np.testing.assert_allclose(many.nll, [one.nll for one in each], rtol=0, atol=1e-3)
