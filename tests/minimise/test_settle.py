"""Minima at kinks that parameters move, of many sets together."""

import numpy as np
import pytest

import morefit as mf
from morefit.likelihood import Evaluation
from morefit.minimise.settle import Kinked, settle

PLACES = np.array([0.7, 1.6])  # of the kink, in each set
LIMITS = np.array([(-5.0, 5.0), (-5.0, 5.0)])


def roof(sets, x, order):
    """Return a valley with a kink along its first parameter, which the second follows."""
    away, behind = x[:, 0] - PLACES[sets], x[:, 1] - 0.5 * x[:, 0]
    value = 3 * abs(away) + 2 * behind**2 + 0.1 * behind**4
    slope = 4 * behind + 0.4 * behind**3
    bend = 4 + 1.2 * behind**2
    gradient = np.stack([3 * np.sign(away) - 0.5 * slope, slope], 1)
    hessian = np.stack([np.stack([0.25 * bend, -0.5 * bend], 1), np.stack([-0.5 * bend, bend], 1)], 1)
    return Evaluation(value, gradient, hessian, np.zeros(len(x), np.int64))


def test_a_fit_ends_at_its_kink():
    scores = np.array([[9.0, -2.0], [-2.0, 4.0]])
    kinked = Kinked(roof, lambda sets, x: np.tile(scores, (len(sets), 1, 1)), LIMITS, 1e-4, [0])
    ends = settle(kinked, np.array([0, 1]), np.array([[-2.0, 3.0], [4.0, -3.0]]))
    assert (ends.edm <= 1e-4).all()
    np.testing.assert_allclose(ends.x, np.stack([PLACES, 0.5 * PLACES], 1), atol=5e-3)
    np.testing.assert_allclose(ends.covariance, np.tile(np.linalg.inv(scores), (2, 1, 1)))


@pytest.mark.parametrize("information", [0.0, 1.0])
def test_without_errors_there_is_no_verdict(information):
    """Products of scores of fewer events than parameters have a flat direction, along which nothing is evaluated."""

    def of_numbers(sets, x, order):
        assert np.isfinite(x).all()  # numerical integrals of others were refused
        return roof(sets, x, order)

    scores = np.full((1, 2, 2), information)
    kinked = Kinked(of_numbers, lambda sets, x: np.repeat(scores, len(sets), axis=0), LIMITS, 1e-4, [0])
    assert np.isnan(settle(kinked, np.array([0]), np.array([[0.7, 0.3]])).edm).all()


def test_the_place_of_a_laplace_density_is_the_median():
    """Each toy used to be fitted by Minuit, one by one; errors are those of a single fit."""
    x, seed = mf.Observable("x", -40.0, 40.0), np.random.default_rng(5)
    model = mf.shapes.Laplace(x, mf.Parameter("mu", 0.5, -5.0, 5.0), mf.Parameter("b", 1.5, 0.1, 5.0))
    data = [mf.Dataset({"x": seed.laplace(0.0, 1.0, 101)}) for _ in range(5)]
    fits = mf.fit_many(model, data, backend=mf.Cpu(threads=1))
    events = np.array([d["x"] for d in data])
    place = np.median(events, axis=1, keepdims=True)
    assert fits.valid.all()
    at = [fits.names.index(name) for name in ("mu", "b")]
    errors = fits.errors[:, at]
    expected = np.stack([place[:, 0], abs(events - place).mean(axis=1)], 1)
    np.testing.assert_allclose(fits.values[:, at] / errors, expected / errors, atol=0.02)
    one = mf.fit(model, data[0])
    np.testing.assert_allclose(errors[0], [one.errors["mu"], one.errors["b"]], rtol=0.02)


def test_issue_13_a_peak_with_a_kink_in_a_mixture_is_not_lost():
    """A third of these used to be valid without the peak, up to 113 above the minimum: second derivatives missed its kink."""
    x = mf.Observable("x", 0.0, 10.0)
    peak = mf.Density(
        np.exp(-abs(x - mf.Parameter("mu", 5.0, 3.0, 7.0)) / mf.Parameter("b", 0.4, 0.1, 3.0)), [x]
    )
    yields = [mf.Parameter("N1", 100.0, 0.0, 1e4), mf.Parameter("N2", 150.0, 0.0, 1e4)]
    model = mf.Sum([peak, mf.Uniform(x)], yields=yields)
    study = mf.toy_study(model, toys=20, seed=4, progress=False, backend=mf.Cpu(threads=1))
    assert study.valid.all()
    assert study.values[:, list(study.names).index("N1")].min() > 50


def test_mixtures_with_kinks_are_fitted_together_as_low_as_alone():
    # no other starts were tried: with another component, each of six ended 0.4 to 3.7 above the minimum, and was valid
    x = mf.Observable("x", 0.5, 10.5)
    core = mf.shapes.DoubleCrystalBall(
        x,
        mf.Parameter("mu", 4.5, 0.5, 10.5),
        mf.Parameter("sigma", 0.8, 0.05, 6.0),
        mf.Parameter("left", 1.2, 0.3, 4.0),
        3.0,
        1.5,
        3.0,
    )
    shoulder = mf.shapes.Laplace(
        x, mf.Parameter("place", 6.0, 0.5, 10.5), mf.Parameter("scale", 1.0, 0.05, 6.0)
    )
    model = mf.Sum([core, shoulder], fractions=[mf.Parameter("f", 0.5, 0.0, 1.0)])
    data = mf.generate(model, [300] * 6, seed=3)
    many = mf.fit_many(model, data, backend=mf.Cpu(threads=1))
    each = np.array([mf.fit(model, one).nll for one in data])
    assert np.all(many.nll[many.valid] <= each[many.valid] + 0.05)
