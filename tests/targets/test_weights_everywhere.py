"""Errors of weighted fits and expected information are the same on every backend."""

import numpy as np
import pytest

import morefit as mf
from morefit.cli import mass_model
from tolerances import EXACT_ERRORS, REPEATED

EVENTS = 800


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    weights = np.where(rng.random(EVENTS) < 0.1, -0.5, rng.uniform(0.2, 2.0, EVENTS))
    return mf.generate(mass_model(), EVENTS, seed=4).with_weights(weights)


def extended():
    m = mf.Observable("m", 5.0, 7.0)
    signal = mf.Gaussian(m, mf.Parameter("mu", 5.28, 5, 6), mf.Parameter("sigma", 0.06, 0.005, 0.13))
    yields = [mf.Parameter("s", 200.0, 0, 1e4), mf.Parameter("b", 500.0, 0, 1e4)]
    return mf.Sum([signal, mf.Exponential(m, mf.Parameter("alpha", -1.0, -10, 10))], yields=yields)


@pytest.mark.parametrize("errors", ["sandwich", "sumw2"])
def test_errors_of_weighted_fits(fast, data, errors):
    judged = mf.fit(extended(), data, errors=errors, minimiser="newton", backend="reference")
    found = mf.fit(extended(), data, errors=errors, minimiser="newton", backend=fast)
    for name in judged.floating:
        assert found.errors[name] == pytest.approx(judged.errors[name], rel=EXACT_ERRORS)


def test_many_weighted_fits(fast, data):
    many = [data, data[:500]]
    judged, found = (mf.fit_many(extended(), many, backend=b) for b in ("reference", fast))
    assert found.valid.all()
    np.testing.assert_allclose(found.errors, judged.errors, rtol=REPEATED)


def test_toys_weighted_by_a_formula(fast):
    model = extended()
    (m,) = model.observables
    weights = 1 / (0.3 + 0.2 * (m - 5.0))
    judged, found = (
        mf.toy_study(model, weights=weights, toys=3, seed=1, progress=False, backend=b)
        for b in ("reference", fast)
    )
    assert found.valid.all() and found.events.tolist() == judged.events.tolist()
    np.testing.assert_allclose(found.errors, judged.errors, rtol=EXACT_ERRORS)
    np.testing.assert_allclose(found.values / found.errors, judged.values / judged.errors, atol=REPEATED)


def test_expected_information(fast):
    judged, found = (mf.fisher_information(extended(), backend=b) for b in ("reference", fast))
    scale = np.sqrt(np.diag(judged.matrix))
    np.testing.assert_allclose(
        found.matrix / np.outer(scale, scale), judged.matrix / np.outer(scale, scale), atol=1e-10
    )
