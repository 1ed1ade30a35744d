"""Slow truths about constructions with toys: they agree with the exact belts, and p-values are uniform."""

import numpy as np
import pytest

import morefit as mf
from backend_rows import on_one_backend
from morefit.intervals import feldman_cousins, feldman_cousins_gaussian, feldman_cousins_poisson, neyman_belt
from tolerances import PULL_SIGMAS


def gaussian(events):
    """Return a Gaussian of known width, so wide that the mean of so many events has unit error."""
    x = mf.Observable("x", -40.0, 60.0)
    width = mf.Parameter("sigma", np.sqrt(events), fixed=True)
    return mf.Gaussian(x, mf.Parameter("mu", 1.0, 0.0, 15.0), width)


def counting(background):
    """Return signal and background that look the same, so that the number of events is all that counts."""
    x = mf.Observable("x", 0.0, 1.0)
    yields = [mf.Parameter("s", 2.0, 0.0, 100.0), mf.Parameter("b", background, fixed=True)]
    return mf.Sum([mf.Uniform(x), mf.Uniform(x)], yields=yields)


def check_end(end, error, expected, slack=0.0):
    assert abs(end - expected) <= PULL_SIGMAS * error + slack


@pytest.mark.slow
@on_one_backend  # counting, below, is on all; others fit the toys that this one fits
@pytest.mark.parametrize(
    ("mean", "stop", "events"),
    [(2.6, 5.0, 4), pytest.param(1.0, 3.2, 1, marks=pytest.mark.exhaustive), (-1.0, 1.6, 1)],
)
def test_a_bounded_gaussian_has_the_intervals_of_the_exact_belt(mean, stop, events, backend, sizes):
    values = np.linspace(0.0, stop, sizes.scanned)
    data = {"x": mean + np.linspace(-1, 1, events) * (events > 1)}
    found = feldman_cousins(
        mf.Likelihood(gaussian(events), data), "mu", values, toys=sizes.constructed, seed=11, backend=backend
    )
    low, high = feldman_cousins_gaussian(mean)
    interval = found.interval()
    assert not found.invalid.any()
    check_end(interval.high, interval.high_error, high)
    check_end(interval.low, interval.low_error, low)
    assert (interval.low_end == "limit") == (low == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "background"), [(6, 3.0), (10, 0.5)])
def test_counting_has_the_intervals_of_the_exact_belt(n, background, backend, sizes):
    low, high = feldman_cousins_poisson(n, background, non_increasing=False)
    spacing = 0.05
    values = [end + spacing * k for end in (low, high) for k in (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)]
    values.insert(0, 0.0)  # p-values rise so slowly that toys may accept all others below
    model, data = counting(background), {"x": np.linspace(0.1, 0.9, n)}
    found = feldman_cousins(
        mf.Likelihood(model, data), "s", values, toys=sizes.constructed, seed=12, backend=backend
    )
    interval = found.interval()
    assert not found.invalid.any()
    # counts are whole, so p-values jump somewhere between two tested values
    check_end(interval.low, interval.low_error, low, spacing)
    check_end(interval.high, interval.high_error, high, spacing)


@pytest.mark.slow
@on_one_backend
def test_p_values_at_the_truth_are_uniform(backend, sizes):
    from scipy import stats

    x = mf.Observable("x", 0.0, 10.0)
    slope, mean = mf.Parameter("slope", -0.3, -2.0, 2.0), mf.Parameter("mean", 4.0, 0.0, 10.0)
    signal = mf.Gaussian(x, mean, mf.Parameter("sigma", 0.5, fixed=True))
    model = mf.Sum([signal, mf.Exponential(x, slope)], fractions=[mf.Parameter("fraction", 0.3, 0.0, 1.0)])
    found = [
        feldman_cousins(
            mf.Likelihood(model, data), "fraction", [0.3], toys=sizes.judged, seed=100 + k, backend=backend
        )
        for k, data in enumerate(mf.generate(model, [200] * sizes.uniform, seed=13, backend=backend))
    ]
    assert stats.kstest([one.p_values[0] for one in found], "uniform").pvalue > 1e-3


@pytest.mark.slow
@on_one_backend
def test_a_belt_covers_as_often_as_it_says(backend, sizes):
    model = gaussian(4)
    belt = neyman_belt(
        model,
        "mu",
        np.linspace(0.0, 12.0, sizes.belts),
        events=4,
        toys=sizes.in_belts,
        seed=14,
        backend=backend,
    )
    drawn = mf.generate(model, [4] * 2000, truth={"mu": 6.0}, seed=15, backend=backend)
    observed = [float(np.mean(data["x"])) for data in drawn]
    covered = np.mean([low <= 6.0 <= high for low, high, *_ in map(belt.interval, observed)])
    assert abs(covered - 0.9) < PULL_SIGMAS * np.sqrt(0.09 / 2000)
