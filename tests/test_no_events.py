"""Data without events still say something about yields: they are fitted, and limits are set."""

import numpy as np
import pytest

import morefit as mf
from morefit.errors import DataError, FitError
from morefit.intervals import bootstrap, contour, feldman_cousins, feldman_cousins_poisson, profile
from morefit.minimise.conditional import unseen
from tolerances import SAME_MINIMUM

X = mf.Observable("x", 0.0, 10.0)
NONE = {"x": []}
FIXED = mf.Parameter("b", 3.0, fixed=True)


def peak(background=None, mean=5.0):
    """Return a signal over a background of three events, or of a parameter."""
    yields = [mf.Parameter("s", 1.0, 0.0, 50.0), FIXED if background is None else background]
    return mf.Sum([mf.Gaussian(X, mean, 0.5), mf.Uniform(X)], yields=yields)


def counting(background):
    """Return a model of which only the number of events matters."""
    yields = [mf.Parameter("s", 1.0, 0.0, 50.0), mf.Parameter("b", background, fixed=True)]
    return mf.Sum([mf.Uniform(X), mf.Uniform(X)], yields=yields)


def floating_background():
    return mf.Parameter("b", 3.0, 0.0, 50.0)


def floating_mean():
    return mf.Parameter("mu", 5.0, 2.0, 8.0)


@pytest.mark.parametrize("background", [0.5, 3.0])
def test_a_limit_is_that_of_feldman_and_cousins(background):
    # the data used to be refused, though toys without events were fitted
    _, high = feldman_cousins_poisson(0, background, 0.9, non_increasing=False)
    values = np.linspace(0.0, 2.5, 51)
    found = feldman_cousins(
        mf.Likelihood(counting(background), NONE), "s", values, toys=4000, level=0.9, seed=1, progress=False
    )
    region = found.interval()
    assert region.low == 0.0
    assert region.high == pytest.approx(
        high, abs=0.05 + 4 * region.high_error
    )  # p jumps between tested values
    assert found.best == 0.0
    np.testing.assert_allclose(found.t_data, 2 * values, atol=1e-6)
    assert not found.invalid.any()


def test_a_profile_rises_by_the_yield():
    found = profile(mf.Likelihood(peak(), NONE), "s", [0.0, 0.25, 1.0, 2.0, 3.0], progress=False)
    np.testing.assert_allclose(found.delta, found.values, atol=1e-6)
    assert found.interval(0.9)[1] == pytest.approx(0.5 * 1.6448536**2, abs=1e-3)


def test_a_contour_of_two_yields_is_a_straight_line():
    likelihood = mf.Likelihood(peak(floating_background()), NONE)
    found = contour(likelihood, "s", "b", bounds=((0.0, 2.0), (0.0, 2.0)), size=5, progress=False)
    np.testing.assert_allclose(found.delta, np.add.outer(*(np.linspace(0, 2, 5),) * 2), atol=1e-6)


def test_a_bootstrap_of_nothing_is_nothing():
    found = bootstrap(mf.Likelihood(peak(), NONE), replicas=5, progress=False)
    assert found.valid.all()
    assert found.values.tolist() == [[0.0]] * 5


def test_many_fits_may_have_one_without_events():
    found = mf.fit_many(peak(), [NONE, {"x": [5.0, 5.1, 5.2, 5.3]}])
    assert found.valid.all()
    assert found.values[0] == pytest.approx(0.0, abs=1e-6)
    assert found.nll[0] == pytest.approx(3.0)


def test_parameters_that_only_events_tell_of_stay_where_they_start():
    model = peak(floating_background(), floating_mean())
    likelihood = mf.Likelihood(model, NONE)
    assert unseen(likelihood) == ["mu"]
    assert unseen(mf.Likelihood(model, {"x": [5.0]})) == []
    assert unseen(mf.Likelihood(model, NONE, constraints=[mf.constraint(floating_mean(), 5.0, 1.0)])) == []
    assert unseen(likelihood + mf.Likelihood(mf.Gaussian(X, floating_mean(), 1.0), {"x": [5.0]})) == []
    found = profile(likelihood, "s", [0.0, 1.0, 2.0], progress=False)
    assert found.names == ("b",)
    with pytest.raises(
        FitError, match="profile: needs floating parameters that the data determine, got 'mu' and no events"
    ):
        profile(likelihood, "mu", [4.0, 5.0, 6.0], progress=False)


def test_parameters_without_effect_are_found_with_events_that_toys_may_have():
    model = peak(mean=floating_mean())
    found = feldman_cousins(mf.Likelihood(model, NONE), "s", [0.0, 2.0], toys=5, seed=1, progress=False)
    np.testing.assert_allclose(found.t_data, [0.0, 4.0], atol=1e-6)
    assert found.truths[:, found.names.index("mu")].tolist() == [5.0, 5.0]


def test_toys_that_expect_nothing_have_no_events():
    model = peak(floating_background())
    found = feldman_cousins(mf.Likelihood(model, NONE), "s", [0.0, 3.0], toys=20, seed=1, progress=False)
    assert found.t[0].tolist() == [0.0] * 20
    assert found.p_values[0] == 1.0


def test_a_background_makes_up_for_a_signal_that_is_held_at_zero():
    # the background is zero in the best fit, from where no fit without signal could begin
    model = peak(floating_background())
    found = feldman_cousins(mf.Likelihood(model, {"x": [5.0]}), "s", [0.0], toys=5, seed=1, progress=False)
    assert found.truths[0, found.names.index("b")] == pytest.approx(1.0, abs=SAME_MINIMUM)


@pytest.mark.parametrize(
    "use", [mf.fit, lambda model, data: mf.fit_many(model, [data])], ids=["fit", "fit_many"]
)
def test_a_model_without_yields_has_nothing_to_fit(use):
    with pytest.raises(
        DataError, match=r"has no events; there is nothing to fit, unless the model has yields"
    ):
        use(mf.Gaussian(X, floating_mean(), 1.0), NONE)
