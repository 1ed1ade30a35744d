"""Places, edges and frequencies: which parameters these are, and surveys that find lower valleys along them."""

import numpy as np
import pytest

import morefit as mf
from driven_fits import minimise, new_fit
from morefit.kernel.fit_layout import FREQUENCY, PLACE, SURVEYED
from morefit.likelihood.places import moved_places
from morefit.minimise.starts import STARTS
from morefit.minimise.survey import (
    go_to,
    has_partner,
    is_uncertain,
    keep_valleys,
    lowest_place,
    place_at,
    roam,
)


def two_pits(x):
    """Return a function with a pit at 2 and one twice as deep at 8."""
    (a,) = x
    value, slope, bend = 50.0, 0.0, 0.0
    for depth, centre in ((25.0, 2.0), (50.0, 8.0)):
        z = (a - centre) / 0.3
        pit = depth * np.exp(-0.5 * z * z)
        value, slope, bend = value - pit, slope + pit * z / 0.3, bend + pit * (1 - z * z) / 0.09
    return value, [slope], [[bend]]


def test_a_place_that_was_only_guessed_is_surveyed():
    # it used to end where it was led first, 25 higher
    ends = [
        minimise(two_pits, [3.0], [(0.0, 10.0)], starts=STARTS, edges=(edge,))[0].x[0]
        for edge in (0.0, PLACE)
    ]
    np.testing.assert_allclose(ends, [2.0, 8.0], atol=1e-3)


@pytest.mark.parametrize(
    ("edge", "rough", "end", "uncertain"),
    [
        (PLACE, 1.0, 6.0, True),
        (PLACE, 0.0, 6.0, False),  # a smooth way
        (PLACE, 1.0, 5.02, False),  # not far
        (FREQUENCY, 1.0, 5.02, True),
        (FREQUENCY, 0.0, 6.0, False),
        (0.0, 1.0, 6.0, False),
    ],
)
def test_only_places_far_from_their_start_and_frequencies_are_surveyed(edge, rough, end, uncertain):
    fit = new_fit([5.0], [(0.0, 10.0)], edges=(edge,))
    fit.rough, fit.end[0], fit.end_error[0], fit.shapes = rough, end, 0.05, 1.0
    assert is_uncertain(fit, 0) == uncertain


def test_places_are_all_over_the_limits_and_those_of_a_frequency_close_together():
    fit = new_fit([5.0, 5.0], [(0.0, 12.0)] * 2, edges=(PLACE, FREQUENCY))
    fit.end[:], fit.end_error[:] = 11.9, 0.01
    wide, close = (np.array([place_at(fit, i, k) for k in range(SURVEYED)]) for i in range(2))
    np.testing.assert_allclose([wide[0], wide[-1]], [0.25, 11.75])
    np.testing.assert_allclose(np.diff(close), 0.04)
    assert close[-1] < 12.0


def test_a_place_that_is_coupled_with_another_follows_it():
    """The second peak of two is at the sum of both: where there is nothing of the first, the sum stays."""
    fit = new_fit([3.0, 2.0, 0.0], [(0.0, 10.0), (0.0, 10.0), (0.0, 100.0)], edges=(PLACE, PLACE, 0.0))
    fit.best[:], fit.end[:], fit.saddles = (3.0, 2.0, 0.0), (3.0, 2.0, 0.0), 2.0
    fit.best_hessian[:] = np.array([[9.0, 9.0, 0.0], [9.0, 9.0, 0.0], [0.0, 0.0, 1.0]]).ravel()
    assert has_partner(fit, 0) and not has_partner(fit, 2)
    for number, other in ((1.0, 2.0), (2.0, 2.0 + 3.0 - place_at(fit, 0, 5))):
        fit.surveyed = number
        go_to(fit, 5)
        np.testing.assert_allclose(fit.trial, [place_at(fit, 0, 5), other, 0.0])


def test_starts_are_the_lowest_valleys_that_are_not_the_best_end():
    fit = new_fit([1.0], [(0.0, SURVEYED)], edges=(PLACE,))
    fit.surveyed, fit.surveys, fit.best_value, fit.best[0] = 1.0, 1.0, 0.0, 4.5
    fit.profile[:] = 5.0 + np.arange(SURVEYED) % 2
    fit.profile[4], fit.profile[10], fit.profile[15] = 0.0, -1.0, 30.0
    keep_valleys(fit)
    assert lowest_place(fit) == 10 and fit.valleys == 1.0
    assert fit.profile[4] > 1e9 and fit.profile[15] > 1e9 and fit.profile[11] > 1e9


def test_starts_from_anywhere_leave_amounts_where_they_are():
    fit = new_fit([5.0, 5.0, 7.0], [(1.0, 10.0), (-3.0, 10.0), (0.0, 1e5)])
    fit.best[:] = 2.0, 3.0, 7.0
    points = []
    for _ in range(10):
        roam(fit)
        points.append(fit.x.copy())
    points = np.array(points)
    assert (points[:, 2] == 7.0).all() and len(np.unique(points[:, 0])) == 10
    assert points[:, 0].min() >= 1.0 and np.ptp(points[:, 1]) > 8.0


def test_places_and_frequencies_are_known_from_the_formula():
    x = mf.Observable("x", 0.0, 10.0)
    p = {
        name: mf.Parameter(name, 0.5, 0.1, 3.0) for name in ("mu", "d", "s", "w", "phase", "A", "k", "f", "c")
    }
    peaks = [mf.Gaussian(x, p["mu"], p["s"]), mf.Gaussian(x, p["mu"] + p["d"], p["s"])]
    wave = mf.Density(2 + p["A"] * np.cos(p["w"] * x + p["phase"]) + p["c"] * x, [x])
    model = mf.Sum([*peaks, wave, mf.Exponential(x, p["k"])], fractions=[p["f"], 0.2, 0.2])
    assert moved_places(model) == ({"mu", "d", "phase"}, {"w"})
    binned = mf.BinnedLikelihood(model, np.histogram([], 9, (0.0, 10.0)))
    names = tuple(q.name for q in binned.parameters)
    limits = np.array([(q.low, q.high) for q in binned.parameters])
    kinds = dict(zip(names, binned.edges(names, limits), strict=True))
    assert kinds["mu"] == PLACE and kinds["w"] == FREQUENCY and kinds["A"] == kinds["s"] == 0.0


def test_a_peak_that_starts_at_the_end_of_the_range_is_found():
    # this used to be valid with a spike of a few events at 0.6, 58 higher: a mean with limits from zero was taken for an amount
    x = mf.Observable("x", 0.0, 10.0)
    mu, s = mf.Parameter("mu", 0.0, 0.0, 10.0), mf.Parameter("s", 0.5, 0.02, 5.0)
    slope, yields = (
        mf.Parameter("c", -0.1, -3.0, 3.0),
        [mf.Parameter(n, 100.0, 0.0, 1e5) for n in ("Ns", "Nb")],
    )
    model = mf.Sum([mf.Gaussian(x, mu, s), mf.Exponential(x, slope)], yields=yields)
    truth = {"mu": 7.2, "s": 0.3, "Ns": 100.0, "Nb": 300.0, "c": -0.15}
    result = mf.fit(model, mf.generate(model, truth=truth, seed=2))
    assert result.valid and abs(result.values["mu"] - 7.2) < 0.2


@pytest.mark.parametrize("events", [1_000, 30_000])
def test_a_clear_peak_is_not_looked_for_elsewhere(events):
    def model(mean, width, share):
        x = mf.Observable("x", 0.0, 10.0)
        peak = mf.Gaussian(x, mf.Parameter("mu", mean, 0.0, 10.0), mf.Parameter("sigma", width, 0.05, 2.0))
        slope = mf.Exponential(x, mf.Parameter("c", -0.2, -3.0, 3.0))
        return mf.Sum([peak, slope], fractions=[mf.Parameter("f", share, 0.0, 1.0)])

    data = mf.generate(model(3.0, 0.3, 0.3), events, seed=4)
    near, far = (mf.fit(m, data) for m in (model(3.0, 0.3, 0.3), model(3.4, 0.5, 0.2)))
    assert far.nll == pytest.approx(near.nll, abs=1e-3)
    assert far.calls["hessian"] < 40
