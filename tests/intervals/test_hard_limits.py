"""Upper limits where formulas meet their ends: no events, signals of any shape, probabilities below the smallest number."""

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from morefit.intervals import discovery, upper_limit
from morefit.intervals.limit_methods import Asymptotic, Options
from morefit.minimise.conditional import best_fit
from tolerances import RATIO

U = mf.Observable("u", 0.0, 1.0)
FREE = mf.Parameter("s", 1.0, -5.0, 60.0)
EDGES = np.linspace(0.0, 1.0, 6)


def counting(background, signal=FREE, shape=None):
    yields = [signal, mf.Parameter("b", background, fixed=True)]
    return mf.Sum([shape or mf.Uniform(U), mf.Uniform(U)], yields=yields)


def no_events():
    """Return likelihoods of a signal that may be negative, without events: nothing but the sign of a density ends the fit."""
    other = mf.Sum([mf.Uniform(U)], yields=[mf.Parameter("other", 5.0, 0.0, 50.0)])
    peak = counting(0.5, shape=mf.Gaussian(U, 0.5, 0.1))
    joint = mf.BinnedLikelihood(peak, (np.zeros(5), EDGES)) + mf.Likelihood(other, {"u": [0.1, 0.2, 0.7]})
    return {
        "one bin": mf.BinnedLikelihood(counting(0.5), ([0.0], [0.0, 1.0])),
        "bins": mf.BinnedLikelihood(peak, (np.zeros(5), EDGES)),
        "events": mf.Likelihood(peak, {"u": []}),
        "a category": joint,
        "no limits": mf.Likelihood(counting(0.5, mf.Parameter("s", 1.0)), {"u": []}),
    }


@pytest.mark.parametrize("kind", no_events())
def test_issue_no_events_have_a_limit_where_a_signal_may_be_negative(kind):
    # this used to be refused: the free fit has no minimum, but values below 0 count as 0
    limit = upper_limit(no_events()[kind], "s")
    assert limit.best == 0
    np.testing.assert_allclose(limit.q, 2 * limit.values, atol=1e-6)
    assert discovery(no_events()[kind], "s").q == 0


def test_no_events_exclude_three_events_of_signal():
    limit = upper_limit(no_events()["one bin"], "s", toys=1000, seed=1, progress=False)
    assert limit.observed == pytest.approx(-np.log(0.05), abs=4 * limit.errors[0])


def test_a_likelihood_that_ends_where_the_density_is_negative_says_so():
    # it used to be said that it grows without end
    result = mf.fit(no_events()["bins"])
    assert not result.valid
    assert "it grows along s up to where the density becomes negative" in result.reasons[0]


@pytest.mark.parametrize(("background", "few"), [(0.5, True), (5.0, True), (30.0, False)])
def test_limits_by_formulas_of_few_events_say_that_they_are_rough(background, few):
    limit = upper_limit(mf.BinnedLikelihood(counting(background), ([round(background)], [0.0, 1.0])), "s")
    assert any("few events" in note for note in limit.notes) == few
    assert ("note: few events" in str(limit)) == few


@pytest.fixture(scope="module")
def any_shape():
    """Return the likelihood of a peak of any place and width, which far from the data could be the background."""
    m = mf.Observable("m", 0.0, 10.0)
    shape = mf.Gaussian(m, mf.Parameter("mu", 5.0, -5.0, 15.0), mf.Parameter("width", 0.5, 0.01, 5.0))
    yields = [mf.Parameter("s", 300.0, 0.0, 5000.0), mf.Parameter("b", 1000.0, 0.0, 5000.0)]
    model = mf.Sum([shape, mf.Exponential(m, mf.Parameter("slope", -0.2, -2.0, 2.0))], yields=yields)
    rng = np.random.default_rng(1)
    events = np.concatenate([rng.normal(5.0, 0.5, 300), rng.exponential(5.0, 1200)])
    return mf.Likelihood(model, {"m": events[(events > 0) & (events < 10)]})


def test_issue_values_far_above_a_clear_signal_are_excluded(any_shape):
    # both probabilities were 0 there, and their ratio counted as 1: the limit was 1186, not 344 (q of Minuit at 345: 6.05)
    limit = upper_limit(any_shape, "s")
    assert limit.observed == pytest.approx(344.2, abs=0.5)
    assert np.all(limit.p_values[limit.values > limit.observed] < 0.05)
    assert "no effect of mu, width" in limit.notes[0]


def test_profiles_of_several_minima_are_smooth(any_shape):
    # neighbouring values ended in different minima: 0.83, 1.61, 1.90, 1.37, 2.68, 1.96
    scan = Asymptotic(any_shape, best_fit("test", any_shape, None), "s", Options(0.95, "q_tilde", True))
    _, expected = scan.scan(np.linspace(0.0, 1050.0, 22))
    assert np.all(np.diff(expected.t) > 0)


def test_ratios_of_tails_agree_with_scipy_and_have_a_limit():
    scan = Asymptotic.__new__(Asymptotic)
    scan.options = Options(0.95, "q_tilde", True)
    q, spread = np.array([0.5, 2.0, 9.0, 1e5]), 1.3
    above = q > spread**2
    a = np.where(above, (q + spread**2) / (2 * spread), np.sqrt(q))
    ratio = np.exp(stats.norm.logsf(a) - stats.norm.logsf(a - spread))
    np.testing.assert_allclose(scan.tails(q, np.full(4, spread**2))[2][:3], ratio[:3], rtol=RATIO)
    np.testing.assert_allclose(scan.tails(q, np.full(4, 1e-18))[2], np.exp(-q / 2), rtol=1e-6)
    np.testing.assert_allclose(scan.tails(q, np.zeros(4))[2], np.exp(-q / 2), rtol=1e-12)
