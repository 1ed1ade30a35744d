"""Loosely determined parameters: shelves that are followed to their end, and other minima that are looked for."""

import numpy as np
import pytest

import morefit as mf
from driven_fits import evaluate, minimise, new_fit
from morefit.minimise.loose import (
    MANY,
    MAX_LOOSE,
    find_loose,
    follow,
    look,
    most_promising,
    start_aside,
    value_of,
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


def test_an_edge_between_events_is_looked_at_on_both_sides():
    """An end point of a mixture used to stay between two events, in the first valley: 13 to 19 % above Minuit's best."""
    ends = []
    for edge in (0.0, 1.0):
        fit = new_fit([0.4], [(0.0, 4.0)], starts=STARTS)
        fit.edge[0], fit.rough = edge, 1.0
        fit.end[0], fit.end_error[0], fit.end_value = 0.7, 0.35, 1.0
        find_loose(fit)
        ends.append((fit.loose[0], value_of(fit, 0), value_of(fit, 1)))
    assert ends[0][0] == 0
    assert ends[1] == (1, pytest.approx(0.0), pytest.approx(1.4))
    fit.best[0], fit.best_value, fit.end_covariance[0], fit.place = 0.7, combs([0.7])[0], 0.1, 1.0
    for side in (0.0, 1.4):
        fit.trial[0] = side
        evaluate(fit, combs)
        look(fit)
    assert most_promising(fit) == 0
    start_aside(fit)
    assert fit.x[0] == pytest.approx(1.4), "where the value is lower"


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
    for model, moved in ((mixture, {"end"}), (argus, set())):
        nll = mf.Likelihood(model, {"x": np.linspace(0.1, 3.9, 9)})
        names = tuple(p.name for p in nll.parameters)
        assert {name for name, edge in zip(names, nll.edges(names), strict=True) if edge} == moved
