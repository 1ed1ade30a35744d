"""Places, edges and frequencies: which parameters these are, and surveys that find lower valleys along them."""

import numpy as np
import pytest

import morefit as mf
from driven_fits import minimise, new_fit
from morefit.kernel.fit_layout import ANGLE, FREQUENCY, PLACE, STEP, SURVEYED
from morefit.likelihood.places import moved_places
from morefit.minimise.starts import STARTS
from morefit.minimise.survey import (
    NARROW,
    go_to,
    has_partner,
    is_uncertain,
    keep_valleys,
    lowest_place,
    place_at,
    promised_by_turning,
    roam,
    survey_pays,
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
    fit.end[:], fit.end_error[:], fit.surveyed = 11.9, 0.01, 1.0
    wide, close = (np.array([place_at(fit, i, k) for k in range(SURVEYED)]) for i in range(2))
    np.testing.assert_allclose([wide[0], wide[-1]], [0.25, 11.75])
    np.testing.assert_allclose(np.diff(close), 0.04)
    assert close[-1] < 12.0


def test_a_place_that_is_coupled_with_another_follows_it():
    """The second peak of two is at the sum of both: where there is nothing of the first, the sum stays."""
    fit = new_fit([3.0, 2.0, 0.0], [(0.0, 10.0), (0.0, 10.0), (0.0, 100.0)], edges=(PLACE, PLACE, 0.0))
    fit.best[:], fit.end[:], fit.surveyed = (3.0, 2.0, 0.0), (3.0, 2.0, 0.0), 1.0
    fit.best_hessian[:] = np.array([[9.0, 9.0, 0.0], [9.0, 9.0, 0.0], [0.0, 0.0, 1.0]]).ravel()
    assert has_partner(fit, 0) and not has_partner(fit, 2)
    for number, other in ((1.0, 2.0), (2.0, 2.0 + 3.0 - place_at(fit, 0, 5))):
        fit.surveyed = number
        go_to(fit, 5)
        np.testing.assert_allclose(fit.trial, [place_at(fit, 0, 5), other, 0.0])


def test_a_step_that_is_hardly_known_is_surveyed_with_the_narrowest_width():
    for edge, error, width_error in ((STEP, 0.4, 0.5), (PLACE, 0.4, 0.5), (STEP, 0.1, 0.5), (STEP, 0.4, 0.1)):
        fit = new_fit([5.0, 0.6], [(0.0, 10.0), (0.02, 3.0)], edges=(edge, 0.0))
        fit.best[:], fit.end[:], fit.end_error[:] = (6.0, 0.6), (6.0, 0.6), (error, width_error)
        assert survey_pays(fit, 0, NARROW) == (edge == STEP and error > 0.3 and width_error > 0.3)
    fit.end_error[:], fit.surveyed = (0.4, 0.5), 1.0 + NARROW
    places = []
    for k in range(SURVEYED):
        go_to(fit, k)
        places.append(fit.trial.copy())
    places = np.array(places)
    np.testing.assert_allclose(places[:, 1], 0.4 / 12)
    np.testing.assert_allclose(np.diff(places[:, 0]), 0.4 / 6)
    np.testing.assert_allclose(places[:, 0].mean(), 6.0)


def test_an_angle_is_turned_to_where_its_wave_is_lowest():
    fit = new_fit([1.0, 0.5], [(0.0, 10.0), (-np.pi, np.pi)], edges=(FREQUENCY, ANGLE))
    fit.best[:], fit.surveyed = (1.0, 0.5), 1.0
    for turn in range(8):  # of the wave, from its lowest point
        angle = turn * np.pi / 4 + 0.1
        fit.turns[3], fit.gradient[1], fit.hessian[3] = 0.0, 5.0 * np.sin(angle), 5.0 * np.cos(angle)
        promised = promised_by_turning(fit, 3)
        np.testing.assert_allclose(promised, 5.0 * (np.cos(0.1) - np.cos(angle)) if turn else 0.0, atol=1e-9)
        go_to(fit, 3)
        assert -np.pi <= fit.trial[1] <= np.pi
        np.testing.assert_allclose(np.cos(fit.trial[1] - 0.5 + angle), np.cos(0.1))


def test_what_ended_at_a_limit_is_where_it_started_in_other_starts():
    fit = new_fit([5.0, 0.3], [(1.0, 10.0), (0.0, 0.5)], edges=(FREQUENCY, 0.0))
    fit.surveyed = 1.0
    for end, start in ((0.0, 0.3), (0.5, 0.3), (0.2, 0.2)):
        fit.best[:] = 2.0, end
        roam(fit)
        go_to(fit, 4)
        assert fit.trial[1] == fit.x[1] == start


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
    assert moved_places(model) == ({"mu", "d", "phase"}, set(), {"w"})
    binned = mf.BinnedLikelihood(model, np.histogram([], 9, (0.0, 10.0)))
    names = tuple(q.name for q in binned.parameters)
    limits = np.array([(q.low, q.high) for q in binned.parameters])
    kinds = dict(zip(names, binned.edges(names, limits), strict=True))
    assert kinds["mu"] == PLACE and kinds["w"] == FREQUENCY and kinds["A"] == kinds["s"] == 0.0


def test_what_is_higher_on_one_side_is_a_step():
    x, place = mf.Observable("x", 0.0, 10.0), mf.Parameter("place", 5.0, 1.0, 9.0)
    for formula in (mf.erfc(x - place), 1 / (1 + np.exp((x - place) / 0.3)), 2 + mf.erf(x - place)):
        assert moved_places(mf.Density(formula, [x])).steps == {"place"}
    dip = mf.Density(1 - 0.5 * np.exp(-((x - place) ** 2)), [x])
    assert moved_places(dip).places == {"place"}


def test_what_is_only_in_a_condition_moves_nothing():
    # lifetimes used to be places: that of an exponential chooses the end of the range that it is measured from
    x, tau = mf.Observable("x", 0.0, 10.0), mf.Parameter("tau", 1.0, 0.1, 20.0)
    assert moved_places(mf.Exponential(x, -1 / tau)) == (set(), set(), set())


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
