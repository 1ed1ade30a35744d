"""Many stored datasets are fitted together as well as one by one."""

import numpy as np
import pytest

import morefit as mf
from ensembles import ensemble_of
from morefit.cli import mass_model
from morefit.minimise.batch import Batch
from morefit.toys.batch import GOAL, StoredToys

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
