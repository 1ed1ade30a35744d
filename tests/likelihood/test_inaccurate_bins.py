"""Where no number of points makes integrals over bins accurate, a value is not wrong in silence."""

import numpy as np
import pytest

import morefit as mf

X, Y = mf.Observable("x", 0.0, 10.0), mf.Observable("y", 0.0, 10.0)
MEAN, WIDTH = mf.Parameter("mean", 5.03, 0.0, 10.0), mf.Parameter("width", 1.0, 1e-3, 3.0)
PEAK = np.exp(-0.5 * ((X - MEAN) / WIDTH) ** 2 - 0.5 * ((Y - MEAN) / WIDTH) ** 2) + 0.01


@pytest.fixture(scope="module")
def nll():
    rng = np.random.default_rng(1)
    counts, *edges = np.histogram2d(*rng.normal(5.0, 1.0, (2, 1000)), bins=10, range=((0, 10), (0, 10)))
    return mf.BinnedLikelihood(mf.Density(PEAK, [X, Y]), (counts, *edges))


@pytest.mark.parametrize("what", ["value", "gradient", "hessian"])
def test_a_peak_that_no_points_follow_is_said(nll, what):
    with pytest.warns(UserWarning, match="not accurate.* at mean = 5.03, width = 0.05"):
        getattr(nll, what)({"mean": 5.03, "width": 0.05})


def test_what_is_accurate_comes_without_a_warning(nll):
    assert np.isfinite(nll.value({"mean": 5.03, "width": 0.9}))
