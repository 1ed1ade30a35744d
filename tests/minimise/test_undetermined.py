"""Parameters that the data do not determine are found, named and shown; the others keep their errors."""

from math import isnan

import numpy as np
import pytest

import morefit as mf
from ensembles import ensemble_of
from morefit.likelihood import Evaluation
from morefit.minimise.newton import minimise
from morefit.minimise.spectrum import decompose, reduced
from morefit.targets.cpu.run import Cpu
from morefit.toys.results import HOW
from tolerances import FEW_ROUNDINGS

X = mf.Observable("x", -5.0, 5.0)
T = mf.Observable("t", 0.0, 10.0)
MU, SIGMA = mf.Parameter("mu", 0.0, -4.0, 4.0), mf.Parameter("sigma", 1.0, 0.1, 5.0)
MINIMISERS = pytest.mark.parametrize(
    "how", [{}, {"strategy": 1}, {"strategy": 2}, {"minimiser": "newton"}], ids=str
)


def bell(n=500, seed=1):
    return mf.generate(mf.Gaussian(X, MU, SIGMA), n, truth={"mu": 0.3}, seed=seed)


def decays(n=500, seed=1):
    slope = mf.Parameter("slope", -0.5, -5.0, 0.0)
    return mf.generate(mf.Exponential(T, slope), n, seed=seed)


def scale_that_cancels(start=3.7):
    scale = mf.Parameter("scale", start, 0.0, 10.0)
    return mf.Density(scale * np.exp(-0.5 * ((X - MU) / SIGMA) ** 2), [X])


def product_of_two(a=1.0, b=0.7):
    return mf.Exponential(T, -mf.Parameter("a", a, 0.01, 10.0) * mf.Parameter("b", b, 0.01, 10.0))


@MINIMISERS
def test_issue_a_scale_that_cancels_is_undetermined(how):
    # this used to be valid, with an error of 3e6 and AT LIMIT in the middle of the limits
    data, found = bell(), None
    found = mf.fit(scale_that_cancels(), data, **how)
    assert not found.valid
    assert found.undetermined == ("scale",)
    assert found.flat_directions == ({"scale": 1.0},)
    assert found.at_limit == ()
    assert found.reasons == (
        "the data do not determine scale: the likelihood does not change with it; fix it",
    )
    alone = mf.fit(mf.Gaussian(X, MU, SIGMA), data, **how)
    for name in ("mu", "sigma"):
        assert found.errors[name] == pytest.approx(alone.errors[name], rel=1e-3)
    assert isnan(found.errors["scale"])


@MINIMISERS
@pytest.mark.parametrize("seed", range(8))
def test_issue_where_only_a_product_is_measured_no_fit_is_valid(seed, how):
    # this used to be valid for 6 of 8 datasets, with errors made by the distance to the minimum
    found = mf.fit(product_of_two(), decays(seed=seed), **how)
    assert not found.valid
    assert found.undetermined == ("a", "b")
    (direction,) = found.flat_directions
    ratio = found.values["b"] / found.values["a"]
    assert direction["b"] / direction["a"] == pytest.approx(-ratio, rel=1e-6)
    (reason,) = found.reasons
    assert reason.startswith(
        "the data do not determine a and b: the likelihood does not change along (a, b) = (1, -0.7"
    )
    assert reason.endswith("; fix one of them")


def test_a_constraint_determines_what_data_do_not():
    free = mf.fit(mf.Exponential(T, mf.Parameter("slope", -0.5, -5.0, 0.0)), decays())
    model = product_of_two()
    b = next(p for p in model.parameters if p.name == "b")
    found = mf.fit(mf.Likelihood(model, decays(), constraints=[mf.constraint(b, 0.7, 0.1)]))
    assert found.valid
    assert found.undetermined == ()
    relative = np.hypot(free.errors["slope"] / free.values["slope"], 0.1 / 0.7)
    assert found.errors["a"] / found.values["a"] == pytest.approx(relative, rel=0.01)


@MINIMISERS
def test_issue_11_both_factors_at_zero_are_a_saddle_and_not_two_flat_directions(how):
    # this used to stay there: "the likelihood does not change with a", nor with b
    model = mf.Gaussian(X, mf.Parameter("a", 0.0, -2.0, 2.0) * mf.Parameter("b", 0.0, -2.0, 2.0), 1.0)
    found = mf.fit(model, bell(), **how)
    assert not found.valid
    if how.get("strategy") is None:
        assert found.undetermined == ("a", "b") and found.values["a"] * found.values["b"] > 0.2
    else:  # Minuit alone does not leave it
        assert found.reasons == ("the Hessian is not positive definite, so there are no errors",)


@pytest.mark.parametrize("how", [{}, {"strategy": 1}], ids=str)  # Newton's method, and Minuit alone
def test_a_likelihood_with_steps_is_told_from_a_flat_one(how):
    # this used to be "the likelihood does not change with edge"
    steps = mf.Gaussian(X, np.floor(10 * mf.Parameter("edge", 0.25, -2.0, 2.0)) / 10, 1.0)
    found = mf.fit(steps, bell(), **how)
    assert found.undetermined == ("edge",)
    assert found.reasons[-1].startswith(
        "the likelihood changes with edge, in steps or farther away, but has no"
    )


@MINIMISERS
def test_issue_11_a_point_of_inflection_is_no_minimum(how):
    # this used to be valid, p = -0.009 +- 0.4, where the likelihood has its maximum at 0.7 +- 0.03
    cube = mf.Gaussian(X, mf.Parameter("p", -1.0, -2.0, 2.0) ** 3, 1.0)
    found = mf.fit(cube, bell(), **how)
    if found.valid:
        assert found.values["p"] == pytest.approx(np.cbrt(bell()["x"].mean()), rel=0.01)
    else:
        assert found.reasons[0].startswith("the likelihood is no parabola along p: its curvature comes from")
        assert isnan(found.errors["p"])


def test_determined_parameters_next_to_a_flat_direction_have_the_errors_they_have_without_it():
    a, b = mf.Parameter("a", 0.1, -5.0, 5.0), mf.Parameter("b", 0.1, -5.0, 5.0)
    data = bell()
    found = mf.fit(mf.Gaussian(X, a + b, SIGMA), data, tolerance=1e-4)
    alone = mf.fit(mf.Gaussian(X, MU, SIGMA), data, tolerance=1e-4)
    assert found.undetermined == ("a", "b")
    assert found.errors["sigma"] == pytest.approx(alone.errors["sigma"], rel=1e-4)
    assert found.covariance_of("sigma").shape == (1, 1)
    assert np.isnan(found.covariance_of("a", "b")).all()


def test_weighted_errors_of_determined_parameters_are_right_too():
    data = bell()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(data))
    found = mf.fit(scale_that_cancels(), data, weights=weights)
    alone = mf.fit(mf.Gaussian(X, MU, SIGMA), data, weights=weights)
    assert found.errors_from == "sandwich"
    assert found.undetermined == ("scale",)
    assert isnan(found.errors["scale"])
    assert found.errors["sigma"] == pytest.approx(alone.errors["sigma"], rel=1e-3)


def test_what_depends_on_a_parameter_at_its_limit_is_undetermined():
    # this used to depend on how close to the limit Minuit stopped: a slope of -0.5 +- 800 in [-5, 1]
    signal = mf.Gaussian(T, mf.Parameter("m", 2.0, 0.0, 10.0), mf.Parameter("w", 0.2, 0.01, 3.0))
    slope, fraction = mf.Parameter("slope", -0.5, -5.0, 1.0), mf.Parameter("f", 0.99, 0.0, 1.0)
    model = mf.Sum([signal, mf.Exponential(T, slope)], fractions=[fraction])
    found = mf.fit(model, {"t": np.random.default_rng(5).normal(2.0, 0.2, 200)})
    assert found.values["f"] == 1.0
    assert found.at_limit == ("f",)
    assert found.undetermined == ("slope",)
    assert found.valid  # for the rest
    assert "fit valid but for slope, UNDETERMINED with f at the limit" in str(found)
    assert found.errors["m"] == pytest.approx(found.values["w"] / np.sqrt(200), rel=0.01)


def test_a_parameter_at_its_limit_is_not_undetermined():
    found = mf.fit(mf.Gaussian(X, MU, SIGMA), {"x": np.full(100, 0.5)})
    assert found.valid
    assert found.at_limit == ("sigma",)
    assert found.values["sigma"] == 0.1  # Minuit alone only comes close to it
    assert found.undetermined == ()


def test_a_limit_that_cannot_be_reached_is_only_approached():
    lowest = mf.Parameter("sigma", 1.0, 0.0, 5.0)
    found = mf.fit(mf.Gaussian(X, MU, lowest), {"x": np.full(100, 0.5)})
    assert not found.valid
    assert 0 < found.values["sigma"] < 1e-6


def test_far_apart_scales_are_not_undetermined():
    # a parameter of size 1e8 and one of size 1e-12 have their natural units, whatever their curvature is
    for size in (1e8, 1e-12):
        wide = mf.Parameter("wide", 0.0, -4 * size, 4 * size)
        found = mf.fit(mf.Gaussian(X, wide / size, SIGMA), bell())
        assert found.valid
        assert found.errors["wide"] == pytest.approx(size / np.sqrt(500), rel=0.1)


def test_parameters_that_are_almost_degenerate_are_determined():
    # a small eigenvalue, but not of rounding: coefficients of a polynomial far from the origin
    m = mf.Observable("m", 5000.0, 6000.0)
    model = mf.Polynomial(m, [mf.Parameter("c1", -1.6e-4), mf.Parameter("c2", 1e-10)])
    data = mf.generate(model, 100_000, seed=3)
    found = mf.fit(model, data, minimiser="newton")
    hessian = mf.Likelihood(model, data).hessian([found.values[n] for n in found.floating])
    scale = 1 / np.sqrt(np.diag(hessian))
    assert np.linalg.eigvalsh(hessian * np.outer(scale, scale))[0] < 1e-4
    assert found.valid
    assert found.undetermined == ()
    np.testing.assert_allclose(found.covariance @ hessian, np.eye(2), atol=1e-6)


def test_a_likelihood_without_a_minimum_is_told_from_a_flat_one():
    yields = [mf.Parameter("ns", 3.0), mf.Parameter("nb", 5.0)]
    found = mf.fit(mf.Sum([mf.Gaussian(X, 0.0, 1.0), mf.Uniform(X)], yields=yields), {"x": []})
    assert not found.valid
    assert found.undetermined == ()
    assert "the likelihood has no minimum: it grows without end along ns; set limits" in found.reasons


def test_undetermined_parameters_are_shown_everywhere():
    found = mf.fit(product_of_two(), decays())
    text, page = str(found), found._repr_html_()
    assert text.startswith("fit NOT VALID")
    for line in text.splitlines():
        if line.startswith(("a ", "b ")):
            assert "UNDETERMINED" in line
    assert page.count("UNDETERMINED") == 2
    assert "background:#f8c9c9" in page
    back = mf.FitResult.from_json(found.to_json())
    assert back.flat_directions == found.flat_directions
    assert back.undetermined == ("a", "b")


def test_results_written_before_there_were_flat_directions_can_be_read():
    import json

    found = mf.fit(mf.Gaussian(X, MU, SIGMA), bell())
    content = json.loads(found.to_json())
    del content["flat_directions"]
    assert mf.FitResult.from_json(json.dumps(content)).undetermined == ()


@pytest.mark.parametrize("model", [scale_that_cancels(), product_of_two()], ids=["scale", "product"])
def test_toys_with_undetermined_parameters_are_not_valid_and_say_so(model):
    # this used to be valid where rounding made the Hessian positive definite
    toys = mf.toy_study(model, toys=10, events=300, seed=1, progress=False, backend=Cpu(threads=1))
    assert not toys.valid.any()
    kinds = [
        HOW[k] for k in toys.how
    ]  # where the scale ran to its limit, rounding has the last word on its curvature
    assert kinds.count("undetermined") >= 9 and set(kinds) <= {"undetermined", "failed"}
    assert f"undetermined: {kinds.count('undetermined')}" in str(toys)


def test_newton_steps_do_not_believe_a_small_pivot_before_they_are_close():
    def product(sets, x):
        """(a b - 1)^2 / 2 times 1e4: flat along a b = 1."""
        a, b = x.T
        off = a * b - 1
        gradient = 1e4 * off[:, None] * np.stack([b, a], axis=1)
        cross = a * b + off
        hessian = 1e4 * np.stack([b * b, cross, cross, a * a], axis=1).reshape(-1, 2, 2)
        return Evaluation(0.5e4 * off**2, gradient, hessian, np.zeros(len(x), np.int64))

    start = np.random.default_rng(1).uniform(0.5, 2.0, (50, 2))
    found = minimise(product, start, np.array([[0.01, 10.0]] * 2), 1e-4)
    assert not found.valid.any()


def test_a_curvature_of_rounding_does_not_count():
    hessian = np.array([[4.0, 0.0], [0.0, 1e-13]])
    values, limits = np.zeros(2), np.array([[-9.0, 9.0], [0.0, 10.0]])
    spectrum = decompose(hessian, np.array([0.0, 1e-14]), values, limits, np.array([True, True]))
    assert list(spectrum.null) == [True, False]
    assert spectrum.directions(["a", "b"], spectrum.null) == ({"b": 1.0},)
    np.testing.assert_allclose(spectrum.inverse, [[0.25, 0.0], [0.0, 0.0]], rtol=FEW_ROUNDINGS)


def test_flat_directions_have_as_few_parameters_as_possible():
    mixed = np.array([[1.0, 1.0, 0.0, 2.0], [1.0, -1.0, 0.0, 2.0]]) / np.sqrt(6)
    found = reduced(mixed)
    assert sorted(int(np.count_nonzero(np.abs(row) > 1e-12)) for row in found) == [1, 2]


def test_ensembles_do_not_take_flat_toys_for_converged():
    ensemble = ensemble_of(product_of_two(), seed=3, backend=Cpu(threads=1))
    assert not ensemble.draw(0, np.full(20, 500)).fit_whole(ensemble).valid.any()


@pytest.mark.parametrize("seed", [1063, 1064])
def test_issue_13_where_two_components_coincide_their_fraction_is_named(seed):
    # this used to be "the Hessian is not positive definite", which is where Minuit ended after Newton's method
    x = mf.Observable("x", -5.0, 5.0)
    slopes = [mf.Parameter(f"c{i}", start, -4.0, 4.0) for i, start in enumerate((-0.3, -0.5))]
    fractions = [mf.Parameter("f", 0.5, 0.0, 1.0)]
    model = mf.Sum([mf.Exponential(x, slope) for slope in slopes], fractions=fractions)
    counts = np.histogram(mf.generate(model, 500, seed=seed)["x"], bins=20, range=(-5, 5))
    found = mf.fit(mf.BinnedLikelihood(model, counts))
    assert (found.valid, found.undetermined) == (False, ("f",))
    assert found.values["c0"] == pytest.approx(found.values["c1"], abs=1e-6)
