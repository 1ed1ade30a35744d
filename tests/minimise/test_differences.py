"""Fits with numeric derivatives: steps from values alone, many points in one pass, to the same minimum."""

import numpy as np
import pytest

import morefit as mf
import zoo
from morefit.minimise.differences import Differences
from morefit.minimise.objective import Objective
from morefit.minimise.problem import make_problem
from tolerances import SAME_MINIMUM

X = mf.Observable("x", 0.0, 10.0)
MEAN, WIDTH = mf.Parameter("mean", 4.0, 0.0, 10.0), mf.Parameter("width", 0.8, 0.1, 3.0)
SLOPE = mf.Parameter("slope", -0.2, -3.0, 3.0)
NS, NB = mf.Parameter("ns", 300.0, 0.0, 1e5), mf.Parameter("nb", 700.0, 0.0, 1e5)
COMPONENTS = [mf.Gaussian(X, MEAN, WIDTH), mf.Exponential(X, SLOPE)]
SPECTRUM = mf.Sum(COMPONENTS, yields=[NS, NB])


def spectrum(seed=3):
    return mf.generate(SPECTRUM, seed=seed)


def weighted(seed=3):
    """Tiny weights, and yields that start where these lead: from 10^6 times as many, no value shows how shapes bend it."""
    data, weight = spectrum(seed), 2e-6
    yields = [mf.Parameter(p.name, weight * p.start, 0.0, weight * p.high) for p in (NS, NB)]
    weights = np.random.default_rng(1).uniform(0.5 * weight, 1.5 * weight, len(data))
    return mf.Likelihood(mf.Sum(COMPONENTS, yields=yields), data, weights=weights)


def binned():
    return mf.BinnedLikelihood(SPECTRUM, np.histogram(spectrum()["x"], bins=40, range=(0.0, 10.0)))


def joint():
    other = mf.Gaussian(X, MEAN + 0.5, WIDTH * mf.Parameter("ratio", 1.2, 0.5, 2.0))
    return mf.Likelihood(SPECTRUM, spectrum()) + mf.Likelihood(other, mf.generate(other, 500, seed=4))


def by_quadrature():
    z = (X - MEAN) / WIDTH
    peak = mf.Density(1 / (1 + z**2) ** 2, [X])
    model = mf.Sum([peak, mf.Exponential(X, SLOPE)], fractions=[mf.Parameter("f", 0.4, 0.0, 1.0)])
    return mf.Likelihood(model, mf.generate(model, 1000, seed=5))


LIKELIHOODS = {
    "extended": lambda: mf.Likelihood(SPECTRUM, spectrum()),
    "weighted": weighted,
    "binned": binned,
    "joint": joint,
    "constrained": lambda: mf.Likelihood(SPECTRUM, spectrum(), constraints=[mf.constraint(WIDTH, 0.9, 0.05)]),
    "by quadrature": by_quadrature,
    "angles": lambda: mf.Likelihood(*zoo.kstarmumu(2000)[:2]),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_fit_without_derivatives_finds_what_one_with_them_finds(name):
    likelihood = LIKELIHOODS[name]()
    exact, numeric = mf.fit(likelihood), mf.fit(likelihood, derivatives="numeric")
    assert exact.valid
    assert numeric.valid, numeric.reasons
    assert numeric.minimiser == "newton"
    for parameter in exact.floating:
        error = exact.errors[parameter]
        assert numeric.values[parameter] == pytest.approx(exact.values[parameter], abs=SAME_MINIMUM * error)
        assert numeric.errors[parameter] == pytest.approx(error, rel=SAME_MINIMUM)


def test_steps_use_no_derivative():
    likelihood = mf.Likelihood(SPECTRUM, spectrum())
    calls = mf.fit(likelihood, derivatives="numeric").calls
    assert calls["gradient"] == 0
    assert calls["hessian"] == 2  # one for the sizes of differences, one that judges the minimum
    assert calls["value"] > 30


def test_fits_do_not_depend_on_those_before():
    likelihood = mf.Likelihood(SPECTRUM, spectrum())
    first = mf.fit(likelihood, derivatives="numeric")
    for seed in (4, 5):
        mf.fit(SPECTRUM, spectrum(seed), derivatives="numeric")
    again = mf.fit(likelihood, derivatives="numeric")
    assert again.values == first.values
    assert again.nll == first.nll


def test_steps_are_found_where_no_curvature_is_known(monkeypatch):
    likelihood = mf.Likelihood(SPECTRUM, spectrum())
    exact = mf.fit(likelihood)
    monkeypatch.setattr(Objective, "at", unknown_at_first(Objective.at))
    numeric = mf.fit(likelihood, derivatives="numeric")
    assert numeric.valid
    assert numeric.minimiser == "newton"
    assert numeric.nll == pytest.approx(exact.nll, abs=1e-4)


def unknown_at_first(evaluate):
    """Return an evaluation whose first Hessian is not a number."""
    seen = []

    def at(objective, x, order):
        evaluation = evaluate(objective, x, order)
        if order == 2 and not seen:
            seen.append(x)
            evaluation.hessian[:] = np.nan
        return evaluation

    return at


@pytest.mark.parametrize("at_limit", [False, True])
def test_differences_are_the_derivatives(at_limit):
    likelihood = mf.Likelihood(SPECTRUM, spectrum())
    limits = {"mean": (4.0, 10.0), "nb": (0.0, 700.0)} if at_limit else {}
    objective = Objective(likelihood, make_problem(likelihood, {}, (), limits))
    start = objective.problem.start
    exact, found = objective.at(start, 2), Differences.around(objective, start).at(start)
    errors = 1 / np.sqrt(np.diagonal(exact.hessian[0]))
    off = 0.05 if at_limit else 0.001
    assert np.abs((found.gradient - exact.gradient)[0] * errors).max() < off
    assert np.abs((found.hessian - exact.hessian)[0] * np.outer(errors, errors)).max() < off + 0.02
    assert found.value[0] == exact.value[0]


def test_no_point_is_outside_of_the_limits():
    seen = []

    class Watched(Objective):
        def values(self, points):
            seen.append(points)
            return super().values(points)

    likelihood = mf.Likelihood(SPECTRUM, spectrum())
    limits = {"mean": (4.0, 4.0001), "ns": (0.0, 300.0)}
    objective = Watched(likelihood, make_problem(likelihood, {}, (), limits))
    differences = Differences.around(objective, objective.problem.start)
    for x in (objective.problem.start, np.array([4.0001, 0.1, 3.0, 0.0, 700.0])):
        with np.errstate(all="ignore"):  # as steps are taken
            differences.at(x)
    low, high = objective.problem.floating_limits.T
    points = np.concatenate(seen)
    assert (points >= low).all()
    assert (points <= high).all()


def test_steps_follow_parameters_of_any_scale():
    mean, width = mf.Parameter("mean", 4e6, 0.0, 1e7), mf.Parameter("width", 8e-9)
    model = mf.Gaussian(X, mean * 1e-6, width * 1e8)
    result = mf.fit(model, mf.generate(model, 1000, seed=2), derivatives="numeric")
    assert result.valid, result.reasons
    assert result.minimiser == "newton"


def test_minuit_takes_over_without_derivatives(monkeypatch):
    monkeypatch.setattr("morefit.minimise.path.newton_steps", lambda *_: (None, None))
    result = mf.fit(SPECTRUM, spectrum(), derivatives="numeric")
    assert result.valid
    assert result.minimiser == "minuit"
    assert result.calls["gradient"] == 0


def test_minuit_takes_differences_itself_if_it_is_wanted():
    result = mf.fit(SPECTRUM, spectrum(), derivatives="numeric", minimiser="minuit")
    assert result.valid
    assert (result.minimiser, result.calls["gradient"]) == ("minuit", 0)


def test_parameters_at_a_limit_are_found():
    limited = mf.Parameter("ns", 50.0, 0.0, 1e5)
    model = mf.Sum([mf.Gaussian(X, MEAN.start, 0.1), mf.Exponential(X, SLOPE)], yields=[limited, NB])
    x = np.random.default_rng(5).uniform(0.0, 10.0, 500)
    data = x[np.abs(x - 4.0) > 0.5]
    exact, numeric = mf.fit(model, {"x": data}), mf.fit(model, {"x": data}, derivatives="numeric")
    assert numeric.at_limit == exact.at_limit == ("ns",)
    assert numeric.valid
    assert numeric.nll == pytest.approx(exact.nll, abs=1e-4)


def test_pairs_of_very_many_parameters_are_left_to_minuit(monkeypatch):
    monkeypatch.setattr("morefit.minimise.path.MOST_PARAMETERS", 3)
    result = mf.fit(SPECTRUM, spectrum(), derivatives="numeric")
    assert result.valid
    assert (result.minimiser, result.calls["gradient"]) == ("minuit", 0)
