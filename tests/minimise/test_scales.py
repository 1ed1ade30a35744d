"""Fits do not depend on the scale of weights, nor on the units of parameters."""

import numpy as np
import pytest

import morefit as mf

RNG = np.random.default_rng(1)
X = np.clip(RNG.normal(2.0, 0.5, 200), 0.01, 4.99)
WEIGHTS = RNG.uniform(0.5, 1.5, 200)
SAME = 1e-6  # errors


def gaussian(unit=1.0, limits=True):
    x = mf.Observable("x", 0.0, 5 * unit)
    ends = ((unit, 4 * unit), (0.1 * unit, 2 * unit)) if limits else ((None, None), (None, None))
    return mf.Gaussian(x, *(mf.Parameter(n, s * unit, *e) for n, s, e in zip(("mu", "sigma"), (2.2, 0.6), ends, strict=True)))  # fmt: skip


MODEL = gaussian()


def weighted(scale):
    return mf.Dataset({"x": X}, weights=scale * WEIGHTS)


@pytest.mark.parametrize("scale", [1e-5, 1e-12, 1e-100, 1e30])
@pytest.mark.parametrize("minimiser", ["newton", "minuit"])
def test_the_scale_of_weights_does_not_matter(scale, minimiser):
    # below 1e-11 this used to say that the data do not determine the parameters, above 1e30 that the EDM is too large
    expected = mf.fit(MODEL, weighted(1.0), minimiser=minimiser)
    result = mf.fit(MODEL, weighted(scale), minimiser=minimiser)
    assert result.valid
    assert result.minimiser == minimiser
    for name, error in expected.errors.items():
        assert result.values[name] == pytest.approx(expected.values[name], abs=SAME * error)
        assert result.errors[name] == pytest.approx(error, rel=SAME)


def test_the_scale_of_weights_does_not_matter_for_many_datasets_nor_at_a_limit():
    x = MODEL.observables[0]
    model = mf.Gaussian(x, mf.Parameter("mu", 2.5, 2.3, 4.0), mf.Parameter("sigma", 0.6, 0.1, 2.0))
    one, other = (mf.fit(model, weighted(scale)) for scale in (1.0, 2.0**-60))
    assert one.at_limit == other.at_limit == ("mu",)
    several = mf.fit_many(model, [weighted(2.0**-60)])
    for name in ("mu", "sigma"):
        assert other.errors[name] == pytest.approx(one.errors[name], rel=SAME)
        assert several.errors[name][0] == pytest.approx(one.errors[name], rel=SAME)


def test_weights_whose_squares_are_no_numbers_have_no_errors():
    # an error of zero used to be valid
    result = mf.fit(MODEL, weighted(1e-200))
    assert result.reasons == ("the sandwich covariance has variances that are not positive",)


@pytest.mark.parametrize("unit", [2.0**-100, 2.0**100, 2.0**150])
@pytest.mark.parametrize("minimiser", ["newton", "minuit"])
def test_units_of_parameters_do_not_matter_for_minos(unit, minimiser):
    # above 1e30 a parameter without limits used to have "no minimum", and Minuit no MINOS errors above 1e10
    expected = mf.fit(gaussian(limits=False), {"x": X}, minimiser=minimiser, minos=True)
    result = mf.fit(gaussian(unit, limits=False), {"x": X * unit}, minimiser=minimiser, minos=True)
    assert result.valid
    assert result.minimiser == minimiser
    for name in ("mu", "sigma"):
        assert result.values[name] / unit == pytest.approx(
            expected.values[name], abs=1e-3 * expected.errors[name]
        )
        sides = np.array(result.minos[name]) / unit
        np.testing.assert_allclose(sides, expected.minos[name], rtol=1e-3)


@pytest.mark.parametrize("unit", [2.0**-100, 2.0**100])
def test_units_do_not_matter_for_scans(unit):
    ends = []
    for one in (1.0, unit):
        likelihood = mf.Likelihood(gaussian(one), {"x": X * one})
        best = mf.fit(likelihood)
        scan = mf.intervals.profile(likelihood, "mu", size=7, best=best, progress=False)
        grid = mf.intervals.contour(likelihood, "mu", "sigma", size=3, best=best, progress=False)
        assert scan.valid.all()
        assert grid.valid.all()
        ends.append(np.array([*scan.interval(0.68), grid.x[0], grid.y[-1]]) / one)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6)
