"""Many weighted datasets are fitted together as well as one by one, with the same errors."""

from dataclasses import replace

import numpy as np
import pytest

import morefit as mf
from morefit.cli import mass_model
from morefit.minimise import batch
from morefit.minimise.batch import FAILED, MINUIT, NEWTON
from morefit.minimise.trust_region import GIVEN_UP
from morefit.toys.stored import StoredToys
from tolerances import EXACT_ERRORS, RECORDED_ERROR, SAME_MINIMUM


def datasets(sizes, seed=3):
    rng = np.random.default_rng(seed)
    drawn = mf.generate(mass_model(), sizes, seed=seed)
    return [
        d.with_weights(np.where(rng.random(len(d)) < 0.1, -0.5, rng.uniform(0.2, 2, len(d)))) for d in drawn
    ]


def assert_fitted_like_one(found, k, one):
    """Both stop a little above the minimum, at different points."""
    assert found.valid[k] == one.valid
    for j, name in enumerate(found.names):
        assert found.values[k, j] == pytest.approx(one.values[name], abs=SAME_MINIMUM * one.errors[name])
        assert found.errors[k, j] == pytest.approx(one.errors[name], rel=RECORDED_ERROR)


def test_each_weighted_fit_is_that_of_fit():
    given = datasets([1000, 300, 5000, 700])
    found = mf.fit_many(mass_model(), given)
    assert found.valid.all()
    assert found.events.tolist() == [1000, 300, 5000, 700]
    for k, data in enumerate(given):
        one = mf.fit(mass_model(), data)
        assert one.errors_from == "sandwich"
        assert_fitted_like_one(found, k, one)
        likelihood = mf.Likelihood(mass_model(), data)
        inverse = np.linalg.inv(likelihood.hessian(found.values[k]))
        expected = inverse @ likelihood.fisher(found.values[k]) @ inverse
        np.testing.assert_allclose(found.errors[k] ** 2, np.diag(expected), rtol=EXACT_ERRORS)


def test_issue_the_scale_of_weights_does_not_move_fits():
    """Valid fits with weights of 1e-3 used to end up to half an error from the minimum."""
    given, begin = datasets([500] * 8), {"mu": 5.4, "sigma": 0.12, "fsig": 0.6, "alpha": 0.5}
    small = mf.fit_many(mass_model(), [d.with_weights(1e-3 * d.weights) for d in given], start=begin)
    one = mf.fit_many(mass_model(), given, start=begin)
    assert small.valid.all()
    assert (np.abs(small.values - one.values) < SAME_MINIMUM * one.errors).all()


def test_datasets_without_weights_among_them_keep_their_naive_errors():
    plain = mf.generate(mass_model(), 1000, seed=9)
    found = mf.fit_many(mass_model(), [*datasets([500]), plain])
    assert_fitted_like_one(found, 1, mf.fit(mass_model(), plain))


def test_fixed_parameters_stay_and_starts_are_taken():
    model = mass_model()
    held = mf.Sum(
        [mf.Gaussian(m := model.observables[0], mf.Parameter("mu", 5.28, 5, 6), mf.Parameter("sigma", 0.05, fixed=True)),
         mf.Exponential(m, mf.Parameter("alpha", -1.0, -10, 10))], fractions=[mf.Parameter("fsig", 0.3, 0, 1)],
    )  # fmt: skip
    given = datasets([800, 900])
    found = mf.fit_many(held, given, start={"sigma": 0.06, "mu": 5.3})
    assert "sigma" not in found.names
    assert_fitted_like_one(found, 1, mf.fit(held, given[1], fixed={"sigma": 0.06}))


def test_a_parameter_at_its_limit_has_the_error_of_fit():
    model = mass_model()
    m = model.observables[0]
    few = mf.Sum([mf.Gaussian(m, 5.28, 0.06), mf.Exponential(m, mf.Parameter("alpha", -1.0, -10, 10))],
                 fractions=[mf.Parameter("fsig", 0.6, 0.5, 1)])  # fmt: skip
    given = datasets([1000])
    found = mf.fit_many(few, given)
    one = mf.fit(few, given[0])
    assert one.at_limit == ("fsig",)
    assert_fitted_like_one(found, 0, one)


def test_fits_that_do_not_converge_go_to_minuit(monkeypatch):
    given = datasets([1000, 1000])
    honest = batch.minimise

    def pretend(*arguments, **options):
        minima = honest(*arguments, **options)
        converges = np.array([False, True])[-len(minima.x) :] & (len(minima.x) > 1)
        return replace(minima, status=np.where(converges, minima.status, GIVEN_UP))

    monkeypatch.setattr(StoredToys, "fit_whole", lambda toys, ensemble: None)
    monkeypatch.setattr(batch, "minimise", pretend)
    found = mf.fit_many(mass_model(), given)
    assert found.how.tolist() == [MINUIT, NEWTON]
    assert_fitted_like_one(found, 0, mf.fit(mass_model(), given[0]))

    def refuse(*_, **__):
        raise mf.FitError("no")

    monkeypatch.setattr(batch, "minimise_likelihood", refuse)
    failed = mf.fit_many(mass_model(), given)
    assert failed.how.tolist() == [FAILED, NEWTON]
    assert failed.valid.tolist() == [False, True]


def test_pseudo_data_in_the_place_of_weighted_events_warn_that_they_have_no_weights():
    # this used to be silent, and the errors of such fits are those of events that count once
    x = mf.Observable("x", -5.0, 5.0)
    nll = mf.Likelihood(
        mf.Gaussian(x, mf.Parameter("mu", 0.1, -1.0, 1.0), 1.0), {"x": [0.1, 0.4]}, weights=[0.5, 2.0]
    )
    for draw in (mf.generate, lambda term: mf.intervals.asimov(term, {"mu": 0.2})):
        with pytest.warns(UserWarning, match="events have weights, and those in their place have none"):
            assert not draw(nll).weighted


def test_a_model_without_floating_parameters_is_refused():
    m = mass_model().observables[0]
    with pytest.raises(mf.FitError, match="toys: the fitted model has no floating parameter; free one"):
        mf.fit_many(mf.Gaussian(m, 5.28, 0.06), datasets([10]))
