"""Toys of fits in ranges: pulls and coverage are right for full and for restricted yields, by formula and by quadrature."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import morefit as mf
from tolerances import PULL_SIGMAS

pytestmark = pytest.mark.slow

ONE_SIGMA = 0.6827
M, T = mf.Observable("m", 5.0, 7.0), mf.Observable("t", 0.0, 5.0)
MU, SIGMA = mf.Parameter("mu", 5.35, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.01, 0.3)
ALPHA, TAU = mf.Parameter("alpha", -1.0, -10.0, 10.0), mf.Parameter("tau", 1.5, 0.2, 10.0)
YIELDS = [mf.Parameter("signal", 3000, 0, 1e6), mf.Parameter("background", 7000, 0, 1e6)]
RANGES, TIMES = [(5.0, 5.4), (5.6, 6.5)], [(0.2, 1.0), (1.5, 5.0)]
TAIL = mf.Exponential(M, ALPHA)


def joined():
    """Return a sum in two observables, one density of which is integrated numerically over each range."""
    peak = mf.Density(np.exp(-0.5 * ((M - MU) / 0.1) ** 2 - T / TAU * (1 + 0.3 * (M - 5.35))), [M, T])
    return mf.Sum([peak, mf.Product([TAIL, mf.Uniform(T)])], yields=YIELDS)


CASES = {
    "full": (mf.Sum([mf.Gaussian(M, MU, SIGMA), TAIL], yields=YIELDS), {"m": RANGES}, "full"),
    "range": (mf.Sum([mf.Gaussian(M, MU, SIGMA), TAIL], yields=YIELDS), {"m": RANGES}, "range"),
    "two observables": (joined(), {"m": RANGES, "t": TIMES}, "full"),
}


@pytest.fixture(scope="module", params=CASES)
def toys(request):
    model, ranges, yields_in = CASES[request.param]
    toys = 200 if request.param == "two observables" else 1000  # the former takes ten times as long for each
    return mf.toy_study(model, toys=toys, ranges=ranges, yields_in=yields_in, seed=11, progress=False)


def test_pulls_of_toys_in_ranges_are_standard_normal(toys):
    assert toys.valid.all()
    assert toys.fraction_by("minuit") == 0
    for name in toys.names:
        pulls = toys.pulls(name)
        assert abs(pulls.mean()) < PULL_SIGMAS / len(pulls) ** 0.5 + 0.05, name
        assert abs(pulls.std() - 1) < PULL_SIGMAS / (2 * len(pulls)) ** 0.5, name


def test_intervals_of_toys_in_ranges_cover(toys):
    for name in toys.names:
        covered = int(np.sum(np.abs(toys.pulls(name)) < 1))
        assert stats.binomtest(covered, len(toys), ONE_SIGMA).pvalue > 1e-4, name


@pytest.mark.parametrize("case", CASES)
def test_draws_in_ranges_follow_the_density(case):
    model, ranges, yields_in = CASES[case]
    restricted = mf.Restricted(model, ranges, yields_in=yields_in)
    data = mf.generate(restricted, 100_000, seed=5)
    for o in model.observables:
        edges = np.concatenate([np.linspace(low, high, 6) for low, high in ranges[o.name]])
        counts = np.histogram(data[o.name], edges)[0]
        probabilities = [restricted.integrate({o: (low, high)}) for low, high in pairwise(edges)]
        gap = np.array(probabilities) == 0
        assert counts[gap].sum() == 0
        expected = len(data) * np.array(probabilities)[~gap]
        assert stats.chisquare(counts[~gap], expected * counts.sum() / expected.sum()).pvalue > 1e-4
