"""MINOS errors by conditional fits are Minuit's, and where there are none, that is said."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import morefit as mf
from backend_rows import COMPILED, JUDGE, there
from morefit.minimise import minos as minos_module
from morefit.minimise.trust_region import GIVEN_UP
from tolerances import MINOS, PROFILE

X, M = mf.Observable("x", -5.0, 5.0), mf.Observable("m", 5.0, 7.0)
MU, SIGMA = mf.Parameter("mu", 5.28, 5.0, 6.0), mf.Parameter("sigma", 0.06, 0.005, 0.13)
FSIG, ALPHA = mf.Parameter("fsig", 0.3, 0.0, 1.0), mf.Parameter("alpha", -1.0, -10.0, 10.0)
NAMES = ("mu", "sigma", "fsig", "alpha")


def mass(sigma=SIGMA, alpha=ALPHA):
    return mf.Sum([mf.Gaussian(M, MU, sigma), mf.Exponential(M, alpha)], fractions=[FSIG])


def data_of(count=1000, seed=1):
    rng = np.random.default_rng(seed)
    signal = rng.binomial(count, 0.3)
    background = 5 + rng.exponential(1.0, 4 * count)
    return {"m": np.append(rng.normal(5.28, 0.06, signal), background[background < 7][: count - signal])}


def bell(count, mean=0.0):
    return {"x": np.random.default_rng(1).normal(mean, 1.0, count)}


def small_signal():
    """An extended fit of few events: errors are asymmetric, and the yield is near its limit."""
    rng = np.random.default_rng(4)
    parts = [mf.Gaussian(X, mf.Parameter("mu", 0.0, -1.0, 1.0), 0.3), mf.Uniform(X)]
    yields = [mf.Parameter("Ns", 5.0, 0.0, 100.0), mf.Parameter("Nb", 20.0, 0.0, 1e3)]
    return mf.Likelihood(
        mf.Sum(parts, yields=yields),
        {"x": np.concatenate([rng.normal(0, 0.3, 6), rng.uniform(-5, 5, 15)])},
    )


def joint():
    """Two datasets with common parameters, one of which is constrained."""
    sigma = mf.Parameter("sigma", 0.06, 0.005, 0.13)
    constraint = mf.constraint(sigma, 0.055, 0.002)
    return mf.Likelihood(mass(sigma=sigma), data_of(150, 2), constraints=[constraint]) + mf.Likelihood(
        mass(sigma=sigma, alpha=mf.Parameter("other", -1.0, -10.0, 10.0)), data_of(200, 3)
    )


def weighted():
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 400)
    return mf.Likelihood(mass(), data_of(400), weights=weights)


def numerical_integral():
    power = mf.Parameter("power", 2.0, 0.5, 6.0)
    density = mf.Density((1 + X**2) ** -power, [X])
    return mf.Likelihood(density, {"x": 0.5 * bell(200)["x"]})


LIKELIHOODS = {
    "mass": lambda: mf.Likelihood(mass(), data_of(200)),
    "few events": small_signal,
    "joint": joint,
    "weighted": weighted,
    "numerical integral": numerical_integral,
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_errors_are_those_of_minuit(name):
    likelihood = LIKELIHOODS[name]()
    options = {"minos": True, "errors": "naive", "tolerance": 1e-4}
    ours, other = mf.fit(likelihood, **options), mf.fit(likelihood, **options, minimiser="minuit", strategy=1)
    assert ours.minimiser == "newton"
    assert list(ours.minos) == list(other.minos) == list(ours.floating)
    for n, error in ours.errors.items():
        for a, b in zip(ours.minos[n], other.minos[n], strict=True):
            assert ours.values[n] + a == pytest.approx(other.values[n] + b, abs=MINOS * error)


@pytest.mark.parametrize("backend", [*JUDGE, "opencl"])
def test_every_backend_gives_the_same_errors(backend):
    expected = mf.fit(mass(), data_of(200), minos=True).minos
    found = mf.fit(mass(), data_of(200), minos=True, backend=there({**COMPILED, **JUDGE}[backend])).minos
    for n in NAMES:
        assert found[n] == pytest.approx(expected[n], rel=MINOS)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_errors_of_a_poisson_mean_are_where_its_likelihood_has_fallen(count):
    n = mf.Parameter("n", count, 0.0, 1e3)
    model = mf.Sum([mf.Uniform(X), mf.Uniform(X)], yields=[0.3 * n, 0.7 * n])
    found = mf.fit(model, {"x": np.zeros(count)}, minos=True)

    def rise(mean):
        return mean - count - count * np.log(mean / count) - 0.5

    low, high = brentq(rise, 1e-9, count), brentq(rise, count, 10 * count + 10)
    assert found.values["n"] + found.minos["n"][0] == pytest.approx(low, abs=MINOS)
    assert found.values["n"] + found.minos["n"][1] == pytest.approx(high, abs=MINOS)


def test_an_error_ends_at_a_limit_and_says_so():
    mu = mf.Parameter("mu", 0.05, -0.1, 4.0)
    found = mf.fit(mf.Gaussian(X, mu, 1.0), {"x": [-0.4, 0.5]}, minos=True)
    lower, upper = found.minos["mu"]
    assert found.values["mu"] + lower == pytest.approx(-0.1, abs=1e-12)
    assert upper == pytest.approx(np.sqrt(0.5), rel=0.01)
    (note,) = found.notes
    assert note == "minos of mu: the lower error ends at the limit, where the nll has risen by 0.022"
    assert note in str(found) and note in found._repr_html_()
    assert mf.FitResult.from_json(found.to_json()).notes == found.notes
    minuit = mf.fit(mf.Gaussian(X, mu, 1.0), {"x": [-0.4, 0.5]}, minos=True, minimiser="minuit")
    assert minuit.minos["mu"][0] == pytest.approx(lower, abs=0.01)
    assert minuit.notes == ("minos of mu: the lower error ends at the limit",)


def test_a_parameter_at_a_limit_has_an_error_on_the_other_side():
    mu = mf.Parameter("mu", 0.5, 0.0, 4.0)
    found = mf.fit(mf.Gaussian(X, mu, 1.0), {"x": [-0.4, -0.2]}, minos=True)
    assert found.at_limit == ("mu",)
    assert found.minos["mu"][0] == 0
    expected = brentq(lambda v: (v + 0.3) ** 2 - 0.3**2 - 0.5, 0, 3)
    assert found.minos["mu"][1] == pytest.approx(expected, rel=0.01)  # the range cuts the Gaussian a little


def test_where_the_nll_does_not_rise_there_is_no_error():
    a = mf.Parameter("a", 0.2)
    model = mf.Gaussian(X, np.tanh(a), 2.0)
    for options in ({}, {"minimiser": "minuit"}):
        found = mf.fit(model, {"x": [0.3, -0.1]}, minos=True, **options)
        assert found.valid
        assert np.isnan(found.minos["a"]).all()
    ours = mf.fit(model, {"x": [0.3, -0.1]}, minos="a")
    assert ours.notes[0] == "minos of a: no lower error, as the nll does not rise by 0.5"
    assert ours.notes[1] == "minos of a: no upper error, as the nll does not rise by 0.5"
    assert found.notes[0].startswith("minos of a: no lower error, ")


def test_what_the_data_do_not_determine_has_no_error():
    """With a fraction of zero the width of its component has no effect."""
    peaks = [mf.Gaussian(X, 0.0, 1.0), mf.Gaussian(X, 3.0, mf.Parameter("width", 0.1, 0.05, 0.3))]
    model = mf.Sum(peaks, fractions=[mf.Parameter("f", 0.9, 0.0, 1.0)])
    found = mf.fit(model, {"x": np.linspace(-2, 2, 200)}, minos=True)
    assert found.undetermined == ("width",) and found.at_limit == ("f",)
    assert np.isnan(found.minos["width"]).all()
    assert "minos of width: no lower error, as the data do not determine it" in found.notes
    assert found.minos["f"][0] < 0 and found.minos["f"][1] == 0


def test_a_lower_minimum_on_the_way_is_taken():
    a = mf.Parameter("a", 0.9, -3.0, 3.0)
    model = mf.Gaussian(X, a**4 - 2 * a**2 + 0.3 * a + 1.2, 2.0)
    plain, found = mf.fit(model, {"x": [0.0]}), mf.fit(model, {"x": [0.0]}, minos=True)
    assert plain.values["a"] > 0 > found.values["a"]
    assert found.nll < plain.nll
    rise = plain.nll - found.nll
    assert found.notes[0] == f"minos: started again from a minimum that is lower by {rise:.3g}"
    assert found.minos == mf.fit(model, {"x": [0.0]}, minos=True, start=found).minos


def test_a_failed_conditional_fit_leaves_the_parameter_to_minuit(monkeypatch):
    expected, plain = mf.fit(mass(), data_of(200), minos=True), minos_module.minimise_others

    def broken(batch, sets, which, x):
        minima = plain(batch, sets, which, x)
        status = np.where(which == 0, GIVEN_UP, minima.status)
        return replace(minima, status=status)

    monkeypatch.setattr(minos_module, "minimise_others", broken)
    calls, minuit = [], minos_module.minos_of_minuit

    def watched(likelihood, problem, options, names, sides):
        calls.append(names)
        return minuit(likelihood, problem, options, names, sides)

    monkeypatch.setattr(minos_module, "minos_of_minuit", watched)
    found = mf.fit(mass(), data_of(200), minos=True)
    assert calls == [[found.floating[0]]]
    for n in NAMES:
        assert found.minos[n] == pytest.approx(expected.minos[n], rel=PROFILE)


def test_all_parameters_and_sides_are_evaluated_together(monkeypatch):
    calls, plain = [], mf.Likelihood.evaluate_many

    def counted(self, data, sets, *rest):
        calls.append(len(sets))
        return plain(self, data, sets, *rest)

    monkeypatch.setattr(mf.Likelihood, "evaluate_many", counted)
    mf.fit(mass(), data_of(1000), minos=True)
    assert max(calls) == 8
    assert len(calls) <= 25


def test_an_invalid_fit_has_no_minos_errors():
    a, b = mf.Parameter("a", 1.0, 0.01, 9.0), mf.Parameter("b", 1.0, 0.01, 9.0)
    found = mf.fit(mf.Gaussian(X, 0.0, a * b), bell(50), minos=True)
    assert not found.valid and found.minos == {}
    assert found.notes == ("minos: not run, as the fit is not valid",)


def test_parameters_may_be_named_or_passed_and_twice():
    sigma = mf.Parameter("sigma", 0.06, 0.005, 0.13)
    model = mass(sigma=sigma)
    assert list(mf.fit(model, data_of(), minos=sigma).minos) == ["sigma"]
    assert list(mf.fit(model, data_of(), minos=[sigma, "mu", "mu"]).minos) == ["sigma", "mu"]


def test_minos_does_not_change_what_found_the_minimum():
    found = mf.fit(mass(), data_of(), minos=["mu"])
    assert found.minimiser == "newton"
    assert "minos" in found.seconds


@pytest.mark.parametrize("name", NAMES)
def test_minos_agrees_with_a_profile_scan(name):
    data = data_of(300, 5)
    found = mf.fit(mass(), data, minos=[name], tolerance=1e-3)
    assert list(found.minos) == [name]

    def rise(value):
        return (
            mf.fit(
                mass(), data, fixed={name: value}, start={n: found.values[n] for n in NAMES}, tolerance=1e-3
            ).nll
            - found.nll
            - 0.5
        )

    best, error = found.values[name], found.errors[name]
    lower = brentq(rise, best - 2 * error, best - 0.4 * error, xtol=1e-3 * error) - best
    upper = brentq(rise, best + 0.4 * error, best + 2 * error, xtol=1e-3 * error) - best
    assert found.minos[name][0] == pytest.approx(lower, rel=PROFILE)
    assert found.minos[name][1] == pytest.approx(upper, rel=PROFILE)


def test_minos_for_all_parameters():
    found = mf.fit(mass(), data_of(), minos=True)
    assert set(found.minos) == set(NAMES)
    for name, (lower, upper) in found.minos.items():
        assert lower < 0 < upper
        assert upper - lower == pytest.approx(2 * found.errors[name], rel=0.1)


def test_minos_does_not_move_the_minimum():
    found = mf.fit(mass(), data_of(), minos=True)
    assert found.values == mf.fit(mass(), data_of()).values
    assert found.valid


def test_minos_takes_one_name_as_text():
    assert list(mf.fit(mass(), data_of(), minos="mu").minos) == ["mu"]


def test_minos_of_a_fixed_parameter_is_refused():
    with pytest.raises(mf.FitError, match="fit: minos needs floating parameters, got 'mu'"):
        mf.fit(mass(), data_of(), minos=["mu"], fixed=["mu"])
