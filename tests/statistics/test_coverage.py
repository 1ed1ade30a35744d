"""Fits of many small pseudo-experiments: errors mean what they say."""

import numpy as np
import pytest

import morefit as mf
from tolerances import PULL_SIGMAS

EVENTS = 500
TRUTH = {"mu": 5.28, "sigma": 0.06, "fsig": 0.3, "alpha": -1.0}


def mass():
    m = mf.Observable("m", 5.0, 7.0)
    mu, sigma = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
    fsig, alpha = mf.Parameter("fsig", 0.3, 0.0, 1.0), mf.Parameter("alpha", -1.0, -10.0, 10.0)
    return mf.Sum([mf.Gaussian(m, mu, sigma), mf.Exponential(m, alpha)], fractions=[fsig])


def toy(rng):
    """Draw exactly from the model: signal and background inside the range."""
    count = rng.binomial(EVENTS, TRUTH["fsig"])
    signal = rng.normal(TRUTH["mu"], TRUTH["sigma"], 4 * EVENTS)
    signal = signal[(signal > 5) & (signal < 7)][:count]
    # the inverse of the cumulative distribution of exp(-x) on [0, 2]
    background = 5 - np.log1p(rng.random(EVENTS - count) * np.expm1(-2.0))
    return {"m": np.concatenate([signal, background])}


@pytest.fixture(scope="module")
def results(backend, sizes):
    rng = np.random.default_rng(20261115)
    model = mass()
    return [mf.fit(model, toy(rng), backend=backend) for _ in range(sizes.single_fits)]


@pytest.mark.slow
def test_all_fits_are_valid(results):
    assert [r.reasons for r in results if not r.valid] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTH)
def test_pulls_are_standard_normal(results, name):
    pulls = np.array([(r.values[name] - TRUTH[name]) / r.errors[name] for r in results])
    spread = pulls.std(ddof=1)
    assert abs(pulls.mean()) < PULL_SIGMAS * spread / np.sqrt(len(results))
    assert abs(spread - 1) < PULL_SIGMAS / np.sqrt(2 * len(results))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTH)
def test_intervals_cover_as_often_as_they_say(results, name):
    inside = np.mean([abs(r.values[name] - TRUTH[name]) < r.errors[name] for r in results])
    expected = 0.6827
    assert abs(inside - expected) < PULL_SIGMAS * np.sqrt(expected * (1 - expected) / len(results))
