"""Quantities computed from fitted parameters have exact first-order errors, and no silent numbers."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import morefit as mf
import zoo
from fit_results import BAD, GOOD
from morefit.minimise.derived import Derived

MU, SIGMA, FSIG = mf.Parameter("mu", 5.28), mf.Parameter("sigma", 0.06, 0.0, 1.0), mf.Parameter("fsig", 0.3)
TAU = mf.Parameter("tau", 1.5, fixed=True)
FLAT = replace(
    GOOD,
    covariance=np.where(np.eye(4)[3] + np.eye(4)[3][:, None] > 0, np.nan, GOOD.covariance),
    flat_directions=({"alpha": 1.0},),
)


def numeric(formula, step=1e-6):
    """Return value and error of a function of mu and sigma by differences."""
    at = np.array([GOOD.values["mu"], GOOD.values["sigma"]])
    slopes = [(formula(*(at + d)) - formula(*(at - d))) / (2 * step) for d in step * np.eye(2)]
    return formula(*at), np.sqrt(slopes @ GOOD.covariance[:2, :2] @ slopes)


FORMULAS = {
    "ratio": lambda mu, sigma: sigma / mu,
    "product": lambda mu, sigma: mu * sigma,
    "function": lambda mu, sigma: np.exp(-sigma) * np.sin(mu) ** 2,
    "power": lambda mu, sigma: mu**sigma,
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_errors_are_propagated_with_the_whole_covariance(formula):
    derived = GOOD.derived(formula(MU, SIGMA))
    value, error = numeric(formula)
    assert derived.value == pytest.approx(value, rel=1e-14)
    assert derived.error == pytest.approx(error, rel=1e-6)


def test_a_parameter_has_the_value_and_error_of_the_fit():
    derived = GOOD.derived(SIGMA)
    assert (derived.value, derived.error) == (GOOD.values["sigma"], pytest.approx(GOOD.errors["sigma"]))
    assert str(derived) == "0.06002 +- 0.00030"
    assert repr(derived) == "Derived(sigma: 0.06002 +- 0.00030)"


def test_several_expressions_have_a_covariance():
    derived = GOOD.derived(MU + SIGMA, MU - SIGMA, MU)
    rows = np.array([[1, 1], [1, -1], [1, 0]])
    np.testing.assert_allclose(
        derived.covariance, rows @ GOOD.covariance_of("mu", "sigma") @ rows.T, rtol=1e-12
    )
    np.testing.assert_allclose(derived.errors, np.sqrt(np.diag(derived.covariance)))
    np.testing.assert_allclose(derived.values[:2], [5.28012 + 0.0600213, 5.28012 - 0.0600213])
    assert str(derived).splitlines()[2] == "mu: 5.28012 +- 0.00035"
    assert repr(derived) == "Derived(3 expressions)"
    with pytest.raises(mf.ModelError, match="derived: value needs a single expression, got 3; use values"):
        _ = derived.value
    with pytest.raises(mf.ModelError, match="derived: error needs a single expression, got 3; use errors"):
        _ = derived.error


def test_fixed_parameters_and_numbers_are_exact():
    assert (GOOD.derived(TAU * 2).value, GOOD.derived(TAU * 2).error) == (2 * 1.519, 0.0)
    assert (GOOD.derived(3).value, GOOD.derived(3).error) == (3.0, 0.0)
    assert GOOD.derived(TAU * MU).error == pytest.approx(1.519 * GOOD.errors["mu"])


def test_the_fitted_value_counts_and_not_the_start():
    other = mf.Parameter("mu", 99.0)
    assert GOOD.derived(other * 1.0).value == GOOD.values["mu"]
    assert GOOD.derived(other + MU).error == pytest.approx(
        2 * GOOD.errors["mu"]
    )  # two of the same name are one


def test_what_depends_on_an_undetermined_parameter_has_no_error():
    alpha = mf.Parameter("alpha", -1.0)
    derived = FLAT.derived(MU * SIGMA, alpha * MU)
    assert derived.errors[0] == pytest.approx(GOOD.derived(MU * SIGMA).error)
    assert np.isnan(derived.errors[1]) and np.isnan(derived.covariance[0, 1])
    assert np.isnan(FLAT.derived(alpha).error) and np.isnan(FLAT.derived(0 * MU + alpha).error)
    assert "nan" in str(FLAT.derived(alpha))


def test_without_a_covariance_there_is_no_error():
    assert np.isnan(BAD.derived(mf.Parameter("mean", 5.0) ** 2).error)


def test_integrals_are_derived_too():
    x = mf.Observable("x", 5.0, 5.3)
    part = mf.Gaussian(x, MU, SIGMA).integral() / (SIGMA * np.sqrt(2 * np.pi))
    derived = GOOD.derived(part)
    assert 0 < derived.value < 1 and 0 < derived.error < 0.01


@pytest.mark.parametrize(
    ("expressions", "problem"),
    [
        ((), "derived: needs at least one expression, got none"),
        (
            (mf.Observable("m", 5.0, 7.0) * MU,),
            r"derived: expression 'mu\*m': must not depend on observables, got 'm'; integrate over them",
        ),
        (
            (MU * mf.Parameter("sigm", 1.0),),
            r"derived: expression 'sigm\*mu': parameter 'sigm' is not in the fit, did you mean 'sigma'\?",
        ),
        (("mu",), "expression: takes numbers, observables, parameters and expressions, got str"),
    ],
)
def test_what_cannot_be_derived_is_refused(expressions, problem):
    with pytest.raises(mf.ModelError, match=problem):
        GOOD.derived(*expressions)


def test_derived_quantities_survive_pickling_and_cannot_be_changed():
    derived = GOOD.derived(MU, SIGMA)
    again = pickle.loads(pickle.dumps(derived))
    assert isinstance(again, Derived) and str(again) == str(derived)
    np.testing.assert_array_equal(again.covariance, derived.covariance)
    for one in (again, derived):
        with pytest.raises(ValueError, match="read-only"):
            one.values[0] = 1.0


def test_the_error_of_a_yield_ratio_is_that_of_another_parametrisation():
    model, data, *_ = zoo.mass(2000)
    result = mf.fit(model, data)
    fsig = mf.Parameter("fsig", 0.3)
    signal = result.derived(fsig / (1 - fsig))
    expected = result.errors["fsig"] / (1 - result.values["fsig"]) ** 2
    assert signal.error == pytest.approx(expected, rel=1e-12)
