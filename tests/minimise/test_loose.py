"""Loosely determined parameters: shelves that are followed to their end, and other minima that are looked for."""

import numpy as np
import pytest

import morefit as mf
from driven_fits import minimise, new_fit
from morefit.kernel.fit_layout import END
from morefit.minimise.loose import (
    MANY,
    MAX_LOOSE,
    find_loose,
    follow,
    has_edge,
    is_steep,
    start_beside_edge,
)
from morefit.minimise.starts import STARTS
from morefit.minimise.trust_region import CONVERGED


@pytest.mark.parametrize("limit", [4.0, 5.0])
def test_issue_13_a_shelf_is_followed_to_its_end(limit):
    # this used to be given up: as at the onset of an empty tail, each step leaves as much of the slope as the one before
    def shelf(x):
        a, b = x
        tail = 3 * np.exp(-a * a / 2)
        gradient = [-a * tail, 400 * (b - 1)]
        return tail + 200 * (b - 1) ** 2, gradient, [[(a * a - 1) * tail, 0], [0, 400.0]]

    fit, _ = minimise(shelf, [1.5, 1.1], [(0.5, limit), (0.1, 3)])
    assert fit.status == CONVERGED
    assert fit.value < 3 * np.exp(-limit * limit / 2) + 1e-4


def ripples(x):
    """Return a wave along the first parameter, each minimum lower than the one before, which the others follow."""
    a, rest = x[0], x[1:] - 0.3 * x[0]
    value = 0.02 * np.cos(12 * a) - 0.02 * a + 0.5 * rest @ rest
    gradient = np.append(-0.24 * np.sin(12 * a) - 0.02 - 0.3 * rest.sum(), rest)
    hessian = np.eye(len(x))
    hessian[0, 0] = -2.88 * np.cos(12 * a) + 0.09 * len(rest)
    hessian[0, 1:] = hessian[1:, 0] = -0.3
    return value, gradient, hessian


def test_another_minimum_of_a_loose_parameter_is_looked_for_where_there_are_many():
    limits = [(0.0, 4.0)] + [(-50.0, 50.0)] * MANY
    one, other = (
        minimise(ripples, [0.15] + [0.0] * MANY, limits, starts=starts)[0] for starts in (0, STARTS)
    )
    assert (one.status, other.status) == (CONVERGED, CONVERGED)
    assert one.x[0] == pytest.approx(np.pi / 12, abs=0.05)
    assert other.value < one.value - 0.005
    np.testing.assert_allclose(other.x[1:], 0.3 * other.x[0], atol=1e-2)


def test_loose_parameters_are_few_and_had_another_curvature_at_the_start():
    size = MAX_LOOSE + 4
    fit = new_fit([0.0] * size, [(-1.0, 1.0)] * size)
    fit.first_bend[:], fit.error[:] = 2.0, 0.5
    fit.hessian[:] = np.eye(size).ravel()
    fit.error[0], fit.first_bend[1] = 0.1, 1.2
    find_loose(fit)
    np.testing.assert_array_equal(fit.loose, [0, 0] + [1] * MAX_LOOSE + [0, 0])


def test_others_follow_along_the_valley_within_their_limits():
    fit = new_fit([0.0, 0.0, 0.0], [(-1.0, 1.0)] * 3)
    fit.best[:] = 0.1, 0.2, 0.3
    fit.end_covariance[:3] = 0.5, 0.25, -2.0
    follow(fit, 0, 0.5)
    np.testing.assert_allclose(fit.x, [0.5, 0.4, -1.0])


def combs(x):
    """Return a likelihood along an edge with a minimum at every 0.7, the lowest at 2.1."""
    (a,) = x
    value, slope, bend = 0.2 * (a - 2.1) ** 2, 0.4 * (a - 2.1), 0.4
    wave = 2 * np.pi / 0.7
    value, slope = value - 0.5 * np.cos(wave * a), slope + 0.5 * wave * np.sin(wave * a)
    return value, [slope], [[bend + 0.5 * wave**2 * np.cos(wave * a)]]


def test_an_edge_between_events_is_tried_on_both_sides_of_some():
    """An end point of a mixture used to stay within some errors of the first end: from each that is lower it goes on to the next."""
    ends = [minimise(combs, [0.4], [(0.0, 4.0)], starts=STARTS, edges=(edge,))[0].x[0] for edge in (0.0, 1.0)]
    assert ends == [pytest.approx(0.714, abs=0.01), pytest.approx(2.1, abs=0.01)]


def test_a_side_of_an_edge_that_rises_like_a_parabola_is_left_out():
    fit = new_fit([0.0], [(-9.0, 9.0)])
    fit.edge[0], fit.rough, fit.end_error[0] = 1.0, 1.0, 0.1
    sides = []
    # the nearest is only one event away; then above a parabola, flat, and more than half of a parabola
    for rise in (2.0, 2.0, 0.1, 0.99):
        start_beside_edge(fit)
        sides.append(float(fit.x[0]))
        fit.value, fit.best_value = rise, 0.0
        assert is_steep(fit) == (rise > 0.5)
    np.testing.assert_allclose(sides, [-0.11, -0.198, 0.11, 0.198])
    assert not has_edge(fit)


def test_beside_an_edge_that_is_shallow_nothing_is_left_out():
    fit = new_fit([0.0], [(-9.0, 9.0)])
    fit.edge[0], fit.end_error[0] = 1.0, 0.1
    sides = []
    while has_edge(fit):
        start_beside_edge(fit)
        sides.append(float(fit.x[0]))
        fit.value, fit.best_value = 20.0 * fit.x[0] ** 2, 0.0
        is_steep(fit)
    rings = 0.11 * 1.8 ** np.arange(5)
    np.testing.assert_allclose(sides, [*-rings, *rings])


def test_edges_are_known_from_the_formula():
    """Beyond them there is no density; a Crystal Ball goes on, and alone a density has no events there."""
    x = mf.Observable("x", 0.0, 5.0)
    end, mu, power = (
        mf.Parameter("end", 4.0, 3.0, 5.0),
        mf.Parameter("mu", 2.0, 1.0, 3.0),
        mf.Parameter("p", 1.5),
    )
    argus = mf.Density(mf.where(x < end, end - x, 0.0) ** power, [x])
    peak = mf.CrystalBall(x, mu, mf.Parameter("s", 0.3, 0.1, 1.0), mf.Parameter("a", 1.5, 0.5, 5.0), 3.0)
    mixture = mf.Sum([peak, argus], fractions=[mf.Parameter("f", 0.4, 0.0, 1.0)])
    small = mf.Density(mf.where(x < end, end - x, 0.0) ** power + 1e-6, [x])
    # counts used to have no edges, and a density that is not quite zero beyond had none either
    counts = mf.Sum([peak, small], fractions=[mf.Parameter("f", 0.4, 0.0, 1.0)])
    values = np.linspace(0.1, 3.9, 9)
    likelihoods = (mf.Likelihood(model, {"x": values}) for model in (mixture, argus))
    binned = mf.BinnedLikelihood(counts, np.histogram(values, 9, (0.0, 5.0)))
    for nll, moved in zip((*likelihoods, binned), ({"end"}, set(), {"end"}), strict=True):
        names = tuple(p.name for p in nll.parameters)
        edges = nll.edges(names, np.array([(p.low, p.high) for p in nll.parameters]))
        assert {name for name, edge in zip(names, edges, strict=True) if edge == END} == moved


@pytest.mark.parametrize("start", [-2.5, 2.5])
def test_an_angle_goes_on_at_its_other_limit(start):
    """It used to stay at a limit, as Minuit does: 17 % of the toys with an asymmetry of unknown phase ended above others."""
    lowest = np.copysign(3.0, -start)

    def wave(x):
        (a,) = x - lowest
        return 1 - np.cos(a), [np.sin(a)], [[np.cos(a)]]

    at_limit, turned = (
        minimise(wave, [start], [(-np.pi, np.pi)], edges=(edge,))[0].x[0] for edge in (0.0, -1.0)
    )
    assert at_limit == np.copysign(np.pi, start)
    assert turned == pytest.approx(lowest, abs=1e-3)


def test_angles_are_known_from_the_formula():
    """They are in sines and cosines alone, whole turns apart between their limits, and nothing else measures them."""
    x, pi = mf.Observable("x", 0.0, 5.0), np.pi
    phase, slow, half, w = (
        mf.Parameter("phase", 0.5, -pi, pi),
        mf.Parameter("slow", 0.5, -pi, pi),
        mf.Parameter("half", 0.5, 0.0, pi),
        mf.Parameter("w", 1.0, 0.0, 2 * pi),
    )
    model = mf.Density(
        4 + np.cos(w * x + phase) + np.sin(0.5 * slow + x) + np.cos(2 * half + x) + np.cos(w * x), [x]
    )

    def turning(nll):
        names = tuple(p.name for p in nll.parameters)
        limits = np.array([(p.low, p.high) for p in nll.parameters])
        return {name for name, edge in zip(names, nll.edges(names, limits), strict=True) if edge < 0}

    nll = mf.Likelihood(model, {"x": np.linspace(0.1, 3.9, 9)})
    assert turning(nll) == {"phase", "half"}
    assert turning(nll + mf.constraint(phase, 0.3, 0.1)) == {"half"}
    assert turning(mf.Likelihood(mf.Density(4 + np.cos(x + phase) + phase**2, [x]), {"x": [1.0]})) == set()
