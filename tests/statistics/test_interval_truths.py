"""Slow truths about intervals: profiles cover, and replicas spread as new datasets would."""

import numpy as np
import pytest

import morefit as mf
from backend_rows import on_one_backend
from morefit.intervals import bootstrap, feldman_cousins_gaussian, profile
from tolerances import PULL_SIGMAS

X = mf.Observable("x", -4.0, 6.0)
MU, SIGMA = mf.Parameter("mu", 0.3, -2.0, 2.0), mf.Parameter("sigma", 1.0, 0.2, 3.0)
MODEL = mf.Gaussian(X, MU, SIGMA)

pytestmark = pytest.mark.slow


def dataset(seed, events):
    numbers = np.random.default_rng(seed).normal(0.3, 1.0, 2 * events)
    return {"x": numbers[(numbers > -4) & (numbers < 6)][:events]}


@pytest.fixture(scope="module")
def profiles(backend, sizes):
    likelihoods = [
        mf.Likelihood(MODEL, dataset(seed, 200), backend=backend) for seed in range(sizes.profiled)
    ]
    return [profile(likelihood, "mu", progress=False) for likelihood in likelihoods]


@on_one_backend  # likelihoods of other backends are this one's: tests/targets
@pytest.mark.parametrize("level", [0.6827, 0.9])
def test_intervals_of_profiles_cover_as_often_as_they_say(level, profiles):
    intervals = [one.interval(level) for one in profiles]
    covered = np.mean([low <= 0.3 <= high for low, high in intervals])
    assert abs(covered - level) < PULL_SIGMAS * np.sqrt(level * (1 - level) / len(profiles))


@on_one_backend  # replicas are weighted, and weighted toys are fitted on all: test_weights.py
def test_replicas_spread_as_new_datasets_do(backend, sizes):
    toys, replicas = sizes.fresh, sizes.replicas
    found = bootstrap(mf.Likelihood(MODEL, dataset(1, 400), backend=backend), replicas=replicas, seed=2)
    fresh = [mf.fit(MODEL, dataset(seed, 400), backend=backend).values["mu"] for seed in range(toys)]
    ratio = found.errors[found.names.index("mu")] / np.std(fresh, ddof=1)
    # of both spreads, and of the spread that the one dataset happens to have
    error = np.sqrt(1 / (2 * toys) + 1 / (2 * replicas) + 1 / (2 * 400))
    assert abs(ratio - 1) < PULL_SIGMAS * error


def test_gaussian_belts_cover_in_experiments():
    rng = np.random.default_rng(3)
    for mu in (0.2, 1.1):
        intervals = [feldman_cousins_gaussian(x) for x in rng.normal(mu, 1, 4000)]
        covered = np.mean([low <= mu <= high for low, high in intervals])
        assert abs(covered - 0.9) < PULL_SIGMAS * np.sqrt(0.09 / 4000)
